"""What is different in a page and in the values of its records, between two crawls."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from curtsy.control.changes import Report
from curtsy.core.errors import Damaged
from curtsy.core.model import Page
from curtsy.rules.urls import fingerprint
from curtsy.services.stored_files import text_of
from curtsy.store import pages, records
from curtsy.store.engine import Store
from curtsy.store.segments import SegmentStore, read_page

#: lines of a text that are compared, and characters of a line: the comparison is quadratic in the worst case
_MOST_LINES = 1000
_MOST_CHARS = 300
#: records of a crawl that are compared
_MOST_RECORDS = 10_000


class ValueChange(NamedTuple):
    url: str
    #: JSON pointer
    field: str
    before: Any
    now: Any


def texts(store: Store, segments: SegmentStore, report: Report, url: str, most: int) -> list[str]:
    """Lines that a reader lost (`- ...`) and got (`+ ...`), at most `most`."""
    before, now = (_lines(store, segments, crawl.n, url) for crawl in (report.against, report.crawl))
    found = difflib.unified_diff(before, now, n=0, lineterm="")
    lines = [f"{line[0]} {line[1:]}" for line in found if line[:3] not in ("---", "+++") and line[0] in "+-"]
    return lines[:most]


def _lines(store: Store, segments: SegmentStore, crawl: int, url: str) -> list[str]:
    with store.read() as tx:
        page: Page | None = pages.get(tx, crawl, fingerprint(url))
        try:
            response = None if page is None else read_page(tx, segments, page)
        except Damaged:
            response = None
    if page is None or response is None:
        return []
    lines = (" ".join(line.split()) for line in text_of(response.body, page.content_type, url).splitlines())
    return [line[:_MOST_CHARS] for line in lines if line][:_MOST_LINES]


def values(store: Store, report: Report) -> list[ValueChange]:
    """Published values that are different, in the order of the later crawl's records."""
    before = {key: leaves for key, _, leaves in _records(store, report.against.n, report.against.schema_hash)}
    found: list[ValueChange] = []
    for key, url, now in _records(store, report.crawl.n, report.crawl.schema_hash):
        was = before.get(key)
        if was is None:
            continue
        fields = [*now, *(field for field in was if field not in now)]
        found += [ValueChange(url, one, was.get(one), now.get(one)) for one in fields if was.get(one) != now.get(one)]
    return found


def _records(store: Store, crawl: int, hash: str | None) -> Iterator[tuple[tuple[str, int], str, dict[str, Any]]]:
    with store.read() as tx:
        found, _ = records.chunk(tx, crawl, 0, _MOST_RECORDS, schema_hash=hash)
    for record in found:
        yield (record.subject, record.ordinal), record.url, dict(_leaves(record.data))


def _leaves(data: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _leaves(value, f"{path}/{key}")
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _leaves(value, f"{path}/{number}")
    elif data is not None:
        yield path, data
