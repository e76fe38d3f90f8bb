"""Exports of a crawl that the dashboard offers: streamed as by the API."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from flask import Response

from curtsy.core.model import Crawl, Page
from curtsy.core.settings import Settings
from curtsy.export import page_rows as export
from curtsy.records import serialize
from curtsy.store import warc
from curtsy.store.engine import Store

#: file name, title, description
FORMATS = (
    (
        "pages.jsonl",
        "Pages as JSON lines",
        "One object per page: URL, status, times, title, digest, location of its body.",
    ),
    ("pages.csv", "Pages as CSV", "The same for a spreadsheet. Values that look like formulas are escaped."),
    ("pages.warc.gz", "Responses as WARC", "The stored responses with headers and bodies, in the archive format."),
    (
        "records.jsonl",
        "Records as JSON lines",
        "The published records. Records that need a decision are not included.",
    ),
)
_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8", "gz": "application/gzip"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_CHUNK = 500


def stream(store: Store, settings: Settings, crawl: Crawl, name: str) -> Response | None:
    """An attachment; None for an unknown format."""
    pages = export.pages_of(store, crawl.n)
    made: dict[str, Iterable[bytes]] = {
        "pages.jsonl": _jsonl(export.row_of(page, crawl.id) for page in pages),
        "pages.csv": _csv(pages, crawl.id),
        "pages.warc.gz": _warc(pages, settings),
        "records.jsonl": _jsonl(_records(store, crawl)),
    }
    if name not in made:
        return None
    response = Response(made[name], content_type=_TYPES[name.rpartition(".")[2]])
    response.headers.set("Content-Disposition", "attachment", filename=f"{crawl.id[:13]}-{name}")
    return response


def _jsonl(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    rows = iter(rows)
    while some := list(islice(rows, _CHUNK)):
        lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":"), default=str) for row in some)
        yield "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")


def _csv(pages: Iterator[Page], crawl: str) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(export.COLUMNS))
    writer.writeheader()
    while some := list(islice(pages, _CHUNK)):
        for page in some:
            writer.writerow({name: _inert(value) for name, value in export.row_of(page, crawl).items()})
        yield text.getvalue().encode("utf-8", "replace")
        text.seek(0)
        text.truncate()
    yield text.getvalue().encode("utf-8", "replace")


def _inert(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _warc(pages: Iterator[Page], settings: Settings) -> Iterator[bytes]:
    segments = export.segments_of(settings)
    try:
        yield warc.warcinfo("export.warc.gz")
        for page in pages:
            if page.body is not None:
                record = segments.read_bytes(page.body)
                warc.read(record, page.body)
                yield record
    finally:
        segments.close()


def _records(store: Store, crawl: Crawl) -> Iterator[dict[str, Any]]:
    return map(serialize.line, serialize.of_crawl(store, crawl.id))
