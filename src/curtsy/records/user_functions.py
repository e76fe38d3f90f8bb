"""Extractors and scorers that are functions of the calling program, registered by name in this process.

Stages look them up by the name that is stored with the crawl. If a process does not know the name, the stage becomes a
dead letter, which another process can replay.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from curtsy.content.document import Document
from curtsy.content.head import is_html
from curtsy.core.claims import without_nul
from curtsy.core.errors import UsageError
from curtsy.grounding import page_schema, rubrics, schema
from curtsy.grounding.page_schema import Stored
from curtsy.records.extraction import StageFault

#: makes one item from a page, several, or none
Extractor = Callable[[Stored], Any]
#: takes `schema`, `data` and `quotes`; returns a number from 0 to 100, or a result like that of a rubric
Scorer = Callable[..., Any]


def add_extractor(name: str, fn: Extractor) -> None:
    """Register the function that makes the items of the schema of that name."""
    _check(name, schema.built_in(), "schema")
    page_schema.extractors[name] = lambda stored: _items(name, fn, stored)


def add_scorer(name: str, fn: Scorer) -> None:
    _check(name, rubrics.built_in(), "rubric")
    rubrics.scorers[name] = partial(_scored, name, fn)


def _check(name: str, taken: tuple[str, ...], what: str) -> None:
    if not name.isidentifier():
        raise UsageError(f"{name!r} is not a valid function name. Define the function with `def`.")
    if name in taken:
        raise UsageError(f"{name!r} is the name of a built-in {what}. Rename the function.")


def _items(name: str, fn: Extractor, stored: Stored) -> list[dict[str, Any]]:
    try:
        made = fn(stored)
        given = [] if made is None else [made] if isinstance(made, Mapping) else list(made)
        items = [{"url": stored.page.url, "words": _words(stored), **item} for item in given]
        if "\\u0000" in _check_json(items):
            items = [without_nul(item) for item in items]
    except (Exception, SystemExit) as error:  # anything that a user's function may raise
        raise _failed(name, error) from error
    return items


def _scored(name: str, fn: Scorer, **given: Any) -> Any:
    try:
        made = fn(**given)
        _check_json(dict(made) if isinstance(made, Mapping) else made)
    except (Exception, SystemExit) as error:
        raise _failed(name, error) from error
    return made


def _check_json(made: Any) -> str:
    """Return it as JSON. Raise for values that databases reject: NaN, lone surrogates."""
    dumped = json.dumps(made, allow_nan=False, ensure_ascii=False)
    dumped.encode()
    return dumped


def _failed(name: str, error: BaseException) -> StageFault:
    """A retry would fail too."""
    return StageFault("function_failed", f"{name}: {type(error).__name__}: {error}"[:500], False)


def _words(stored: Stored) -> int:
    if is_html(stored.content_type, stored.body):
        return len(Document.parse(stored.body, stored.content_type, stored.page.url).text().split())
    return len(stored.body.split()) if (stored.content_type or "").startswith("text/") else 0
