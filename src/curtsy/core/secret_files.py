"""Secrets in files: `CURTSY_WEBHOOK_SECRET_FILE` names a file that holds the value of `CURTSY_WEBHOOK_SECRET`.

Containers mount secrets as files. A process list and `docker inspect` then show only where a secret is.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from curtsy.core.errors import SettingsError

ENDING = "_FILE"


def variable(name: str) -> str | None:
    """The value of a variable, or the content of the file that `<name>_FILE` names; None without either."""
    given, path = os.environ.get(name), os.environ.get(name + ENDING)
    if not path:
        return given
    if given is not None:
        raise SettingsError(f"Both {name} and {name + ENDING} are set. Remove one of them.")
    try:
        return Path(path).read_text("utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{name + ENDING} names {path}, which cannot be read: {error}") from error


def values(prefix: str, settings: Collection[str]) -> dict[str, str]:
    """Variable (in lower case) -> value, for the settings whose value is in a file."""
    found = {setting: variable(prefix + setting.upper()) for setting in settings if is_named(prefix, setting, settings)}
    return {f"{prefix}{setting}".lower(): value for setting, value in found.items() if value is not None}


def is_named(prefix: str, setting: str, settings: Collection[str]) -> bool:
    """`ca_file` is a setting itself: `CURTSY_CA_FILE` names no secret."""
    return f"{setting}{ENDING}".lower() not in settings and bool(os.environ.get(f"{prefix}{setting}{ENDING}".upper()))
