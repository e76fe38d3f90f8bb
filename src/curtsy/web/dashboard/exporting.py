"""Exports of a crawl that the dashboard offers: streamed as by the API."""

from __future__ import annotations

from flask import Response

from curtsy.core.model import Crawl
from curtsy.core.settings import Settings
from curtsy.export import streams
from curtsy.export.request import ExportRequest
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
_REQUESTS = {
    "pages.jsonl": ExportRequest(),
    "pages.csv": ExportRequest(format="csv", csv_safe=True),
    "pages.warc.gz": ExportRequest(format="warc"),
    "records.jsonl": ExportRequest(what="records"),
}
_TYPES = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8", "gz": "application/gzip"}


def stream(store: Store, settings: Settings, crawl: Crawl, name: str) -> Response | None:
    """An attachment; None for an unknown format. UsageError if there is nothing to export."""
    if name not in _REQUESTS:
        return None
    made = streams.export(store, settings, crawl, _REQUESTS[name])
    response = Response(made.blocks, content_type=_TYPES[name.rpartition(".")[2]])
    response.headers.set("Content-Disposition", "attachment", filename=made.name)
    return response
