"""Export a crawl's published records as lines or a table. Held, rejected and superseded records are not exported, and
withheld values never leave the store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.export.tables import Format, Tally, iso, table
from curtsy.records import serialize
from curtsy.store.engine import Store

#: name -> type in Parquet, in the order of the columns
COLUMNS = {
    "id": "string",
    "url": "string",
    "page": "string",
    "subject": "string",
    "kind": "string",
    "schema": "string",
    "schema_hash": "string",
    "ordinal": "int32",
    "version": "int32",
    "data": "string",
    "fields": "string",
    "contradicted": "string",
    "scores": "string",
    "confidence": "string",
    "low_confidence": "bool",
    "failure": "string",
    "created": "string",
    "reviewed": "string",
    "request_id": "string",
}
#: objects in JSONL, JSON text in tables
_NESTED = ("data", "fields", "contradicted", "scores", "confidence", "failure")


def blocks_of(store: Store, crawl: Crawl, chosen: Format, written: Tally, csv_safe: bool = False) -> Iterator[bytes]:
    """Return the file of all published records of a crawl under its current schema."""
    nested = chosen is Format.JSONL
    rows = (row_of(record, nested=nested) for record in serialize.of_crawl(store, crawl.id))
    return table(rows, COLUMNS, chosen, written, csv_safe)


def row_of(record: Record, *, nested: bool) -> dict[str, Any]:
    """Return the public form of a record; without `nested`, objects are JSON text."""
    shown = serialize.line(record) | {"created": iso(record.created_ms), "reviewed": iso(record.reviewed_ms)}
    if not nested:
        shown |= {name: None if shown[name] is None else _json(shown[name]) for name in _NESTED}
    return {name: shown[name] for name in COLUMNS}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
