"""Whether tasks wait in the triggerer by default, and deprecated names of arguments."""

from __future__ import annotations

import warnings

from airflow.configuration import conf

_SECTION, _OPTION = "operators", "default_deferrable"


def default_deferrable() -> bool:
    """`[operators] default_deferrable` if the deployment sets it; otherwise true, unlike Airflow's own default."""
    section = conf.as_dict(display_source=True, display_sensitive=False).get(_SECTION, {})
    _, source = section.get(_OPTION, ("", "default"))
    return True if source == "default" else conf.getboolean(_SECTION, _OPTION)


def renamed(old: str, new: str, given: float | None, value: float) -> float:
    """The value of an argument that may have been given by its deprecated name."""
    if given is None:
        return value
    warnings.warn(f"The argument `{old}` is now called `{new}`", DeprecationWarning, stacklevel=4)
    return given
