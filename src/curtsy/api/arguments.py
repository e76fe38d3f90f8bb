"""Checks the arguments of the Python API before a crawl starts; errors say what is expected."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from curtsy.api.page import view
from curtsy.core.errors import UsageError
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import OLD_NAMES
from curtsy.records import user_functions


def seeds(value: tuple[Any, ...]) -> tuple[str, ...]:
    if not value:
        raise UsageError('Give at least one URL as a seed, for example crawl("https://example.com/").')
    for one in value:
        if isinstance(one, Iterable) and not isinstance(one, str | bytes):
            raise UsageError("Pass seeds one by one: crawl(*urls), not crawl(urls).")
        if not isinstance(one, str):
            raise UsageError(f'A seed must be a URL as str, not {_shown(one)}: crawl("https://example.com/").')
    return value


def texts(name: str, value: Any, kind: str = "patterns") -> list[Any]:
    """The texts of a list; a single str would be split into its letters."""
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise UsageError(f"`{name}` must be a list of {kind}, not {_shown(value)}.")
    return list(value)


def crawl_id(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f'Name a crawl by its id, the beginning of it, or "last", not by {_shown(value)}.')
    return value


def path(name: str, value: Any) -> Path | None:
    if value is not None and not isinstance(value, str | PathLike):
        raise UsageError(f"`{name}` must be a path, not {_shown(value)}.")
    return None if value is None else Path(value)


def named(name: str, value: Any, *kinds: type) -> None:
    """None, or of one of these types."""
    if value is not None and not isinstance(value, kinds):
        raise UsageError(f"`{name}` must be {' or '.join(kind.__name__ for kind in kinds)}, not {_shown(value)}.")


def options(settings: Iterable[str], of: Callable[..., Any]) -> None:
    """Checks the names of further settings. What is misspelled may be an argument of the function itself."""
    unknown = [name for name in settings if name not in Settings.model_fields and name not in OLD_NAMES]
    if not unknown:
        return
    own = [name for name, one in inspect.signature(of).parameters.items() if one.kind is one.KEYWORD_ONLY]
    near = get_close_matches(unknown[0], [*own, *Settings.model_fields], n=1)
    meant = f"Perhaps you mean {near[0]}." if near else "docs/reference/settings.md lists the settings."
    raise UsageError(f"{of.__name__}() has no argument {unknown[0]!r}, and there is no such setting. {meant}")


def makers(
    extract: Callable[..., Any] | None, score: Callable[..., Any] | None, schema: Any, rubric: Any
) -> tuple[Any, str | None]:
    """Registers functions by their names; returns the schema and the rubric that name them."""
    named("schema", schema, str, dict)
    named("rubric", rubric, str)
    if extract is not None:
        if schema is not None:
            raise UsageError("`extract` replaces `schema`: use one of them.")
        schema = _name("extract(page)", extract)
        _check_call(f"{schema}(page)", extract, None)
        user_functions.add_extractor(
            schema, lambda stored: extract(view(stored.page, "", stored.body, file=stored.file))
        )
    if score is not None:
        if rubric is not None:
            raise UsageError("`score` replaces `rubric`: use one of them.")
        rubric = _name("score(schema, data, quotes)", score)
        _check_call(f"{rubric}(schema=..., data=..., quotes=...)", score, schema=None, data=None, quotes=None)
        user_functions.add_scorer(rubric, score)
    return schema, rubric


def _name(wanted: str, value: Any) -> str:
    if not callable(value):
        raise UsageError(f"`{wanted}` must be a function, not {_shown(value)}.")
    if inspect.iscoroutinefunction(value):
        raise UsageError(f"`{wanted}` must be a plain function: `def`, not `async def`.")
    return str(getattr(value, "__name__", _shown(value)))


def _check_call(wanted: str, value: Callable[..., Any], *args: Any, **named: Any) -> None:
    """Checks that the function takes these arguments. A function without a signature passes."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        raise UsageError(f"The function is called as `{wanted}` but does not accept that: {error}.") from None


def _shown(value: Any) -> str:
    """`5 (int)`"""
    shown = repr(value)
    return f"{shown if len(shown) <= 60 else shown[:60] + '...'} ({type(value).__name__})"
