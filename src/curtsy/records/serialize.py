"""The public form of a record, the same in commands, in the HTTP API and in exports.

Withheld values and the quotes claimed for them are never included. `contradicted` has only the paths of fields.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from curtsy.core.record import Record
from curtsy.grounding import field_confidence
from curtsy.records import evidence
from curtsy.store import crawls, pages, records
from curtsy.store.engine import Store

#: the statuses that a list may select
STATUSES = ("published", "held", "rejected", "superseded")
_OF_FIELD = ("path", "value", "rung", "verdict", "note", "evidence")
_PLAIN = (
    "url", "subject", "kind", "schema", "schema_hash", "ordinal", "version", "status", "data", "scores", "confidence",
    "low_confidence", "rungs", "usage", "failure", "request_id",
)  # fmt: skip


def line(record: Record) -> dict[str, Any]:
    """Everything except the creation time, whose form depends on the output."""
    fields = [field_line(one) for one in record.fields]
    page = pages.page_id(record.crawl, bytes.fromhex(record.subject)) if record.kind == "page" else None
    plain = {name: getattr(record, name) for name in _PLAIN}
    return {"id": str(record.n), "page": page, **plain, "contradicted": list(record.contradicted), "fields": fields}


def field_line(field: dict[str, Any]) -> dict[str, Any]:
    """A value with its evidence, with all their keys."""
    found = {name: field.get(name, "") for name in _OF_FIELD}
    quotes = field.get("evidence", ())
    return found | {
        "confidence": field_confidence.of_field(field["rung"], field["verdict"], quotes),
        "evidence": [evidence.completed(one) for one in quotes],
    }


def withheld(record: Record) -> list[dict[str, Any]]:
    """The values that are not published, for reviewers."""
    return [field_line(one) | {"claimed_quote": one.get("claimed_quote")} for one in record.withheld]


def of_crawl(
    store: Store,
    which: str,
    *,
    statuses: Collection[str] = records.PUBLISHED,
    low_confidence: bool | None = None,
    every_schema: bool = False,
) -> Iterator[Record]:
    """Yield the records of a crawl under its current schema, in short transactions that do not block the crawl."""
    with store.read() as tx:
        crawl = crawls.get(tx, which, members=False)
    after, hash = 0, None if every_schema else crawl.schema_hash
    while True:
        with store.read() as tx:
            found, after = records.chunk(tx, crawl.n, after, 500, low_confidence, statuses, hash)
        if not found:
            return
        yield from found
