"""Reviews: every decision of a person about a record, with who and when. None is ever changed."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from sqlalchemy import Connection, text

from curtsy.core.record import Review
from curtsy.store.tables import reviews

_NAMES = tuple(field.name for field in fields(Review))
_COLUMNS = ", ".join(_NAMES)
_OF = text(f"SELECT {_COLUMNS} FROM reviews WHERE record = :record ORDER BY n")
_GOLDEN = text(
    f"SELECT {_COLUMNS} FROM reviews WHERE decision IN ('approve', 'correct', 'choose') AND (golden OR :every) "
    "AND (crawl = :crawl OR :crawl = 0) AND n > :after ORDER BY n LIMIT :limit"
)


def add(tx: Connection, review: Review) -> Review:
    values: dict[str, Any] = {name: getattr(review, name) for name in _NAMES if name != "n"}
    values |= {
        name: None if (value := getattr(review, name)) is None else _json(value) for name in ("correction", "undo")
    }
    values["before"] = _json(review.before)
    n = tx.execute(reviews.insert().values(values).returning(reviews.c.n)).scalar_one()
    return Review(**{**{name: getattr(review, name) for name in _NAMES}, "n": int(n)})


def of(tx: Connection, record: int) -> list[Review]:
    """Oldest first."""
    return [_review(row) for row in tx.execute(_OF, {"record": record})]


def golden(tx: Connection, crawl: int | None, every: bool, after: int = 0, limit: int = 500) -> list[Review]:
    """Decisions marked as golden cases, or with `every` all that say what a record should be."""
    given = {"crawl": crawl or 0, "every": every, "after": after, "limit": limit}
    return [_review(row) for row in tx.execute(_GOLDEN, given)]


_OF_BATCH = text("SELECT record FROM reviews WHERE batch = :batch AND batch <> '' AND decision <> 'undo' ORDER BY n")


def of_batch(tx: Connection, batch: str) -> list[int]:
    """The records that a decision about many records decided."""
    return [int(n) for n in tx.execute(_OF_BATCH, {"batch": batch}).scalars()]


def _review(row: Any) -> Review:
    values = dict(row._mapping)
    values |= {name: None if values[name] is None else json.loads(values[name]) for name in ("correction", "undo")}
    return Review(**{**values, "before": json.loads(row.before), "golden": bool(row.golden)})


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
