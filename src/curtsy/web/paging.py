"""Lists in pages: an opaque cursor marks where the next page starts, so rows added meanwhile shift nothing."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from curtsy.web.models.fields import fill
from curtsy.web.problems import Mistake, Problem

M = TypeVar("M", bound=BaseModel)
S = TypeVar("S")
T = TypeVar("T")
#: the largest integer that every database accepts
_LARGEST = 2**63 - 1
NEXT = "Send it as `cursor` to get the next page; null: this is the last page."


class Paged(BaseModel):
    """The query of every list. Subclass it to add filters."""

    model_config = ConfigDict(extra="forbid")

    cursor: str | None = Field(
        None, max_length=2000, description="`next` of the previous page; omit it for the first page."
    )
    limit: int = Field(100, ge=1, le=1000, description="Items per page.")


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(description=NEXT)


def encode(position: tuple[str | int | None, ...] | None) -> str | None:
    """The cursor of the page after this position; None after the last page."""
    if position is None:
        return None
    return base64.urlsafe_b64encode(json.dumps(position, separators=(",", ":")).encode()).decode().rstrip("=")


def decode(cursor: str | None, *kinds: type) -> tuple[Any, ...] | None:
    """The position that `encode` was given, checked against the types of its parts; None for the first page."""
    if cursor is None:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        found = None
    if (
        not isinstance(found, list)
        or len(found) != len(kinds)
        or not all(_is(part, kind) for part, kind in zip(found, kinds, strict=True))
    ):
        raise invalid_cursor()
    return tuple(found)


def decode_one(cursor: str | None, kind: type, first: Any = None) -> Any:
    """As `decode` for a position of one part; `first` for the first page."""
    found = decode(cursor, kind)
    return first if found is None else found[0]


def invalid_cursor() -> Problem:
    mistake = Mistake(where="query.cursor", message="not a cursor of this list")
    detail = "The cursor does not belong to this list. Start without a cursor."
    return Problem(422, "invalid-cursor", detail, errors=[mistake])


def _is(part: Any, kind: type) -> bool:
    """Cursors can be forged: only values that the store accepts pass."""
    if type(part) is not kind:
        return False
    if isinstance(part, int):
        return abs(part) <= _LARGEST
    return not isinstance(part, str) or part.isprintable()


def page(
    model: type[M], rows: list[S], limit: int, position: Callable[[S], Any], item: Callable[[S], M] | None = None
) -> Page[M]:
    """A page of `rows`, which has one more than `limit` if there is a next page; `position` is the cursor of a row."""
    shown = rows[:limit]
    items = [fill(model, row) if item is None else item(row) for row in shown]
    return Page[model](items=items, next=encode((position(shown[-1]),)) if len(rows) > limit else None)  # type: ignore[valid-type]
