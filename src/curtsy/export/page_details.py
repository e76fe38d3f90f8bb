"""One stored page with everything in the store about it: for `show`, here and over HTTP."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from curtsy.content.document import Document, is_html
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
from curtsy.store import crawls, pages, records
from curtsy.store.segments import read_page
from curtsy.store.warc import WarcRecord

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from curtsy.store.engine import Store

#: versions of a page that the history lists
_MOST_VERSIONS = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PageDetails:
    """A page with everything in the store about it."""

    page: Page
    crawl: str
    #: None: its body was not stored
    response: WarcRecord | None
    records: tuple[Record, ...]
    #: the same URL in every crawl, newest first: (id of the crawl, page)
    history: tuple[tuple[str, Page], ...]


def find(store: Store, settings: Settings, url: str, crawl: str | None) -> PageDetails:
    """The page of a URL, in one crawl or in the newest that has it; UsageError if no crawl has it."""
    segments = segments_of(settings)
    try:
        with store.read() as tx:
            page = _page(tx, url, crawl)
            ids = crawls.ids(tx, [page.crawl])
            versions = pages.versions(tx, page.fp, _MOST_VERSIONS)
            names = crawls.ids(tx, {one.crawl for one in versions})
            return PageDetails(
                page=page,
                crawl=ids[page.crawl],
                response=read_page(tx, segments, page),
                records=tuple(records.of_page(tx, page.crawl, page.fp.hex())),
                history=tuple((names[one.crawl], one) for one in versions if one.crawl in names),
            )
    finally:
        segments.close()


def _page(tx: Connection, url: str, crawl: str | None) -> Page:
    if "://" not in url and "/" not in url and "." not in url:
        found = pages.by_id(tx, url)
        if found is None:
            raise UsageError(f"There is no page {url!r}. Page ids are in exports and in `curtsy explain URL`.")
        return found
    normal, _ = explain.target(url if "://" in url or "/" in url else f"{url}/", "host")
    if normal is None:
        raise UsageError(f"{hide_credentials(url)!r} is not an http or https URL.")
    number = None if crawl is None else crawls.get(tx, crawl, members=False).n
    versions = pages.versions(tx, fingerprint(normal), 10_000 if number is not None else 1)
    for page in versions:
        if number in (None, page.crawl):
            return page
    raise UsageError(f"No page of {normal} is stored. See why with: curtsy explain {normal}")


def document(found: PageDetails, parts: Collection[str]) -> dict[str, Any]:
    """The row of the page, whether its body is stored, and these parts, without the body."""
    shown = row_of(found.page, found.crawl) | {"has_content": found.response is not None}
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
