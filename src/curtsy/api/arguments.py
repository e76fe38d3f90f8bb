"""What scripts give to api.py, checked before anything begins: the error says what is wanted."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from os import PathLike
from pathlib import Path
from typing import Any

from curtsy.api.page import view
from curtsy.core.errors import UsageError
from curtsy.records import user_functions


def seeds(given: tuple[Any, ...]) -> tuple[str, ...]:
    if not given:
        raise UsageError('There are no seeds: give at least one URL, for example crawl("https://example.com/").')
    for one in given:
        if isinstance(one, Iterable) and not isinstance(one, str | bytes):
            raise UsageError("Seeds are given one by one: crawl(*urls), not crawl(urls).")
        if not isinstance(one, str):
            raise UsageError(f'A seed is a URL as text, not {_told(one)}: crawl("https://example.com/").')
    return given


def texts(name: str, given: Any) -> list[Any]:
    """Those of a list; a text by itself would be taken for its letters."""
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise UsageError(f"`{name}` is a list of patterns, not {_told(given)}.")
    return list(given)


def crawl_id(given: Any) -> str:
    if not isinstance(given, str):
        raise UsageError(f'A crawl is named by its id, the beginning of one, or "last", not by {_told(given)}.')
    return given


def path(name: str, given: Any) -> Path | None:
    if given is not None and not isinstance(given, str | PathLike):
        raise UsageError(f"`{name}` is a path, not {_told(given)}.")
    return None if given is None else Path(given)


def named(name: str, given: Any, *kinds: type) -> None:
    """None, or of one of these types."""
    if given is not None and not isinstance(given, kinds):
        raise UsageError(f"`{name}` is {' or '.join(kind.__name__ for kind in kinds)}, not {_told(given)}.")


def makers(
    extract: Callable[..., Any] | None, score: Callable[..., Any] | None, schema: Any, rubric: Any
) -> tuple[Any, str | None]:
    """Makes functions known by their names; the schema and the rubric that stand for them."""
    named("schema", schema, str, dict)
    named("rubric", rubric, str)
    if extract is not None:
        if schema is not None:
            raise UsageError("`extract` makes the records itself: leave `schema` out.")
        schema = _name("extract(page)", extract)
        _check_call(f"{schema}(page)", extract, None)
        user_functions.add_extractor(schema, lambda stored: extract(view(stored.page, "", stored.body)))
    if score is not None:
        if rubric is not None:
            raise UsageError("`score` scores the records itself: leave `rubric` out.")
        rubric = _name("score(schema, data, quotes)", score)
        _check_call(f"{rubric}(schema=..., data=..., quotes=...)", score, schema=None, data=None, quotes=None)
        user_functions.add_scorer(rubric, score)
    return schema, rubric


def _name(wanted: str, given: Any) -> str:
    if not callable(given):
        raise UsageError(f"`{wanted}` is a function, not {_told(given)}.")
    if inspect.iscoroutinefunction(given):
        raise UsageError(f"`{wanted}` is a plain function: `def`, not `async def`.")
    return str(getattr(given, "__name__", _told(given)))


def _check_call(wanted: str, given: Callable[..., Any], *args: Any, **named: Any) -> None:
    """That it can be called so; what has no signature is believed."""
    try:
        signature = inspect.signature(given)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        raise UsageError(f"It is called as `{wanted}`, and the function does not take that: {error}.") from None


def _told(given: Any) -> str:
    """`5 (int)`"""
    shown = repr(given)
    return f"{shown if len(shown) <= 60 else shown[:60] + '...'} ({type(given).__name__})"
