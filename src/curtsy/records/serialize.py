"""A record as everybody sees it who is not its reviewer: by command, over HTTP, in exports. One form everywhere.

What is withheld never leaves here: not the values, not the quotes that were claimed for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from curtsy.store import crawls, pages, records

if TYPE_CHECKING:
    from curtsy.core.record import Record
    from curtsy.store.engine import Store

#: what a list may be asked for
STATUSES = ("published", "held", "rejected", "superseded")
_OF_FIELD = ("path", "value", "rung", "verdict", "note", "evidence")
_PLAIN = (
    "url", "subject", "kind", "schema", "schema_hash", "ordinal", "version", "status", "data", "scores", "confidence",
    "low_confidence", "rungs", "usage", "request_id",
)  # fmt: skip


def line(record: Record) -> dict[str, Any]:
    """All but the time it was made, which has another form in each place."""
    fields = [{name: one.get(name, "") for name in _OF_FIELD} for one in record.fields]
    page = pages.page_id(record.crawl, bytes.fromhex(record.subject)) if record.kind == "page" else None
    return {"id": str(record.n), "page": page, **{name: getattr(record, name) for name in _PLAIN}, "fields": fields}


def of_crawl(
    store: Store,
    which: str,
    *,
    statuses: Collection[str] = records.PUBLISHED,
    low_confidence: bool | None = None,
    every_schema: bool = False,
) -> Iterator[Record]:
    """Records of a crawl by the schema that it has now, in short transactions: reading never holds up a crawl."""
    with store.read() as tx:
        crawl = crawls.get(tx, which, members=False)
    after, hash = 0, None if every_schema else crawl.schema_hash
    while True:
        with store.read() as tx:
            found, after = records.chunk(tx, crawl.n, after, 500, low_confidence, statuses, hash)
        if not found:
            return
        yield from found
