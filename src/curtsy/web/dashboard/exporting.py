"""A crawl's pages and records as a file, streamed while it is read: nothing is held in memory."""

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
from curtsy.export import pages as export
from curtsy.records import serialize
from curtsy.store import warc
from curtsy.store.engine import Store

#: name of the file, what it is, what is in it
FORMATS = (
    (
        "pages.jsonl",
        "Pages as JSON lines",
        "One object per page: URL, status, times, title, digest, where its body is.",
    ),
    ("pages.csv", "Pages as CSV", "The same for a spreadsheet; what would be a formula is made harmless."),
    ("pages.warc.gz", "Responses as WARC", "The stored responses with headers and bodies, as archives read them."),
    (
        "records.jsonl",
        "Records as JSON lines",
        "What was made of the pages; doubtful ones only once somebody approved them.",
    ),
)
_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8", "gz": "application/gzip"}
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_CHUNK = 500


def stream(store: Store, settings: Settings, crawl: Crawl, name: str) -> Response | None:
    """As an attachment; None: there is no such format."""
    pages = export.pages_of(store, crawl.n)
    made: dict[str, Iterable[bytes]] = {
        "pages.jsonl": _jsonl(map(export.row_of, pages)),
        "pages.csv": _csv(pages),
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


def _csv(pages: Iterator[Page]) -> Iterator[bytes]:
    text = io.StringIO()
    writer = csv.DictWriter(text, list(export.COLUMNS))
    writer.writeheader()
    while some := list(islice(pages, _CHUNK)):
        for page in some:
            writer.writerow({name: _inert(value) for name, value in export.row_of(page).items()})
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
