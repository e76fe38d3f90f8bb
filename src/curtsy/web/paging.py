"""Lists in pages: an opaque cursor says where the next page begins, so that rows added meanwhile shift nothing."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from curtsy.web.problems import Mistake, Problem

T = TypeVar("T")
#: what every database takes as a number
_LARGEST = 2**63 - 1


class Paged(BaseModel):
    """The query of every list. Subclass it to add filters."""

    model_config = ConfigDict(extra="forbid")

    cursor: str | None = Field(
        None, max_length=2000, description="`next` of the page before; leave it out for the first."
    )
    limit: int = Field(100, ge=1, le=1000, description="Items on a page.")


class Page(BaseModel, Generic[T]):
    """One page of a list."""

    items: list[T]
    next: str | None = Field(description="Give it as `cursor` to get the next page; null: this is the last one.")


def encode(*position: str | int | None) -> str:
    """The cursor behind which the next page begins."""
    return base64.urlsafe_b64encode(json.dumps(position, separators=(",", ":")).encode()).decode().rstrip("=")


def decode(cursor: str | None, *kinds: type) -> tuple[Any, ...] | None:
    """The position that `encode` was given, checked against the kinds of its parts; None for the first page."""
    if cursor is None:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        found = None
    fits = isinstance(found, list) and len(found) == len(kinds)
    if not fits or not all(_is(part, kind) for part, kind in zip(found, kinds, strict=True)):
        mistake = Mistake(where="query.cursor", message="not a cursor of this list")
        raise Problem(422, "invalid-cursor", "The cursor is not of this list. Begin without one.", errors=[mistake])
    return tuple(found)


def _is(part: Any, kind: type) -> bool:
    """Whoever changes a cursor gets no further than here: the store takes what passes."""
    if type(part) is not kind:
        return False
    if isinstance(part, int):
        return abs(part) <= _LARGEST
    return not isinstance(part, str) or part.isprintable()


def page(items: list[T], limit: int, position: Any) -> Page[T]:
    """A page of `items`, of which one more than `limit` was asked for; `position(item)` are the parts of its cursor."""
    more = len(items) > limit
    shown = items[:limit]
    return Page[T](items=shown, next=encode(*position(shown[-1])) if more else None)
