"""One stored page with everything in the store about it: for `show`, here and over HTTP.

A URL without a page may have a stored redirect or error, which is shown in its place.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curtsy.content.document import Document
from curtsy.content.head import is_html
from curtsy.content.links import hrefs
from curtsy.control import explain
from curtsy.core.errors import UsageError
from curtsy.core.model import Page
from curtsy.core.record import Record
from curtsy.core.settings import Settings
from curtsy.core.times import timestamp
from curtsy.export.page_rows import content_of, row_of, segments_of
from curtsy.records import serialize
from curtsy.rules.urls import fingerprint, hide_credentials, normalise
from curtsy.services.stored_files import file_of
from curtsy.store import crawls, pages, records, responses, urls
from curtsy.store.responses import Response
from curtsy.store.segments import SegmentStore, read_page
from curtsy.store.warc import WarcRecord

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from curtsy.store.engine import Store

RESPONSE_ID = re.compile(r"[0-7]?[0-9a-f]{1,15}")
#: versions of a page that the history lists
_MOST_VERSIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDetails:
    """A page with everything in the store about it."""

    page: Page
    crawl: str
    #: None: its body was not stored
    response: WarcRecord | None
    #: False: a redirect or an error
    is_page: bool
    records: tuple[Record, ...]
    #: the same URL in every crawl, newest first: (id of the crawl, page)
    history: tuple[tuple[str, Page], ...]


def find(store: Store, settings: Settings, url: str, crawl: str | None) -> PageDetails:
    """The page of a URL, in one crawl or in the newest that has it, or its last redirect or error; UsageError if no
    crawl has either.
    """
    with closing(segments_of(settings)) as segments, store.read() as tx:
        page, other = _page(tx, segments, url, crawl)
        ids = crawls.ids(tx, [page.crawl])
        versions = pages.versions(tx, page.fp, _MOST_VERSIONS)
        names = crawls.ids(tx, {one.crawl for one in versions})
        return PageDetails(
            page=page,
            crawl=ids[page.crawl],
            response=other or read_page(tx, segments, page),
            is_page=other is None,
            records=tuple(records.of_page(tx, page.crawl, page.fp.hex())),
            history=tuple((names[one.crawl], one) for one in versions if one.crawl in names),
        )


def response_of(tx: Connection, segments: SegmentStore, found: Response) -> tuple[Page, WarcRecord]:
    """A stored redirect or error as a page for display, and its record."""
    record = segments.read(found.body)
    headers = {name.lower(): value for name, value in reversed(record.headers)}
    row = urls.get(tx, found.crawl, found.fp)
    page = Page(
        id=found.id, crawl=found.crawl, fp=found.fp, url=record.url or "", host=found.host, status=found.status,
        fetched_ms=found.fetched_ms, depth=row.depth if row is not None else 0,
        content_type=headers.get("content-type"), size=len(record.body),
        sha256=record.fields.get("warc-payload-digest", "").removeprefix("sha256:") or None,
        truncated="warc-truncated" in record.fields, body=found.body, fence=found.fence,
    )  # fmt: skip
    return page, record


def _page(tx: Connection, segments: SegmentStore, url: str, crawl: str | None) -> tuple[Page, WarcRecord | None]:
    """The page, or a redirect or error with its record."""
    if "://" not in url and "/" not in url and "." not in url:
        if RESPONSE_ID.fullmatch(url) and (other := responses.by_id(tx, url)) is not None:
            return response_of(tx, segments, other)
        found = pages.by_id(tx, url)
        if found is None:
            raise UsageError(f"There is no page {url!r}. Page ids are in exports and in `curtsy explain URL`.")
        return found, None
    normal, _ = explain.target(url if "://" in url or "/" in url else f"{url}/", "host")
    if normal is None:
        raise UsageError(f"{hide_credentials(url)!r} is not an http or https URL.")
    number = None if crawl is None else crawls.get(tx, crawl, members=False).n
    versions = pages.versions(tx, fingerprint(normal), 10_000 if number is not None else 1)
    for page in versions:
        if number in (None, page.crawl):
            return page, None
    if (last := responses.newest(tx, fingerprint(normal), number)) is not None:
        return response_of(tx, segments, last)
    raise UsageError(f"No page of {normal} is stored. See why with: curtsy explain {normal}")


def document(found: PageDetails, parts: Collection[str]) -> dict[str, Any]:
    """The row of the page, whether its body is stored, and these parts, without the body."""
    shown = row_of(found.page, found.crawl)
    shown |= {"is_page": found.is_page, "has_content": found.response is not None}
    return shown | {name: PARTS[name](found) for name in parts}


def _headers(found: PageDetails) -> list[list[str]] | None:
    return None if found.response is None else [list(pair) for pair in found.response.headers]


def _content(name: str) -> Callable[[PageDetails], str | None]:
    def read(found: PageDetails) -> str | None:
        return None if found.response is None else content_of(name, found.response.body, found.page)

    return read


def _links(found: PageDetails) -> list[str]:
    """The links of an HTML page or a document, absolute, each once."""
    response, page = found.response, found.page
    if response is None:
        return []
    if is_html(page.content_type, response.body):
        read = Document.parse(response.body, page.content_type, page.url)
        absolute = (normalise(href, read.base_url) for href in hrefs(read))
    else:
        file = file_of(response.body, page.content_type, page.url)
        absolute = (normalise(href, page.url) for href in (file.links if file is not None else ()))
    return list(dict.fromkeys(url for url in absolute if url is not None))


def _records(found: PageDetails) -> list[dict[str, Any]]:
    return [serialize.line(one) | {"created": timestamp(one.created_ms)} for one in found.records]


def _history(found: PageDetails) -> list[dict[str, Any]]:
    return [
        {
            "crawl": crawl, "id": page.id, "fetched_at": timestamp(page.fetched_ms), "status": page.status,
            "sha256": page.sha256, "size": page.size, "unchanged": page.unchanged, "title": page.title,
        }
        for crawl, page in found.history
    ]  # fmt: skip


PARTS: dict[str, Callable[[PageDetails], Any]] = {
    "headers": _headers,
    "text": _content("text"),
    "markdown": _content("markdown"),
    "links": _links,
    "records": _records,
    "history": _history,
}
