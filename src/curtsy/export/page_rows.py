"""Pages as rows of a table, with their content if it is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from curtsy.content.charset import charset_of, decode
from curtsy.content.documents.model import Limits
from curtsy.content.head import is_html
from curtsy.core.document_facts import DocumentFacts
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Page
from curtsy.core.settings import Settings
from curtsy.export.tables import iso
from curtsy.services.stored_files import markdown_of, text_of
from curtsy.store import pages, responses, urls
from curtsy.store.engine import Store
from curtsy.store.responses import Response
from curtsy.store.rows import settled_to
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import SegmentStore, read_without_transaction

if TYPE_CHECKING:
    from sqlalchemy import Connection

#: columns on request: what a reader sees, the main content as Markdown, the decoded HTML
CONTENT = ("text", "markdown", "html")
#: name -> kind (tables.py), in the order of the columns
COLUMNS = {
    "url": "string!",
    "status": "int32!",
    "fetched_at": "timestamp!",
    "content_type": "string",
    "title": "string",
    "sha256": "string",
    "depth": "int32!",
    "segment": "string",
    "id": "string!",
    "host": "string!",
    "charset": "string",
    "size": "int64!",
    "language": "string",
    "canonical": "string",
    "etag": "string",
    "last_modified": "string",
    "unchanged": "bool!",
    "same_as": "string",
    "truncated": "bool!",
    "document": "string",
    "problem": "string",
    "document_pages": "int32",
    "author": "string",
    "created": "string",
    "modified": "string",
    "lastmod": "string",
    "priority": "double",
    "crawl": "string!",
}


def segments_of(settings: Settings) -> SegmentStore:
    """Return the segments of these settings, for reading."""
    return open_segments(settings.segments_url or settings.segments_dir, int(settings.segment_mb * 1e6))


def settled(store: Store, n: int, table: str = "pages") -> int:
    """The number up to which the rows of a crawl are complete: no transaction adds one below it."""
    if store.dialect == "postgresql":
        return store.run(settled_to, table, n)
    with store.read() as tx:
        return settled_to(tx, table, n)


@dataclass(frozen=True, slots=True)
class PageRows:
    """Makes the rows of one crawl's pages."""

    store: Store
    segments: SegmentStore
    crawl: Crawl
    #: some of CONTENT
    content: tuple[str, ...] = ()
    #: of reading documents; None: the defaults, without OCR
    limits: Limits | None = None
    #: called after each page with the number of pages read
    progress: Callable[[int], None] | None = None

    def pages(self, after: int = 0, upto: int | None = None) -> Iterator[Page]:
        """Yield the pages in commit order, as `pages_of`."""
        for number, page in enumerate(pages_of(self.store, self.crawl.n, after, upto), 1):
            yield page
            if self.progress is not None:
                self.progress(number)

    def responses(self) -> Iterator[Response]:
        """Yield the redirects and errors of the crawl in commit order."""
        after = 0
        while True:
            with self.store.read() as tx:
                found, after = responses.chunk(tx, self.crawl.n, after)
            if not found:
                return
            yield from found

    @property
    def columns(self) -> dict[str, str]:
        return COLUMNS | dict.fromkeys(self.content, "string")

    def row(self, page: Page) -> dict[str, Any]:
        row = row_of(page, self.crawl.id)
        return row | self._content(page) if self.content else row

    def _content(self, page: Page) -> dict[str, str | None]:
        record = read_without_transaction(self.store, self.segments, page)
        if record is None:
            return dict.fromkeys(self.content)
        return {name: content_of(name, record.body, page, self.limits) for name in self.content}


def check_content(names: tuple[str, ...]) -> None:
    for name in names:
        if name not in CONTENT:
            raise UsageError(f"Unknown content: {name!r}. Use one or more of: {', '.join(CONTENT)}.")


def content_of(name: str, body: bytes, page: Page, limits: Limits | None = None) -> str | None:
    """The text, Markdown or HTML of a stored body; None if it has none."""
    if name == "text":
        return text_of(body, page.content_type, page.url, limits) or None
    if name == "markdown":
        return markdown_of(body, page.content_type, page.url, limits) or None
    if not is_html(page.content_type, body):
        return None
    return decode(body, charset_of(body, page.content_type, url=page.url))


def pages_of(store: Store, crawl: int, after: int = 0, upto: int | None = None) -> Iterator[Page]:
    """Yield pages in commit order, in short transactions that never block a crawl."""
    while True:
        with store.read() as tx:
            found, after = pages.chunk(tx, crawl, after, upto=upto)
            listed = with_listings(tx, found)
        if not found:
            return
        yield from listed


def with_listings(tx: Connection, found: list[Page]) -> list[Page]:
    """The pages with what sitemaps say about them."""
    listed = urls.sitemap_entries(tx, [(page.crawl, page.fp) for page in found])
    said = [(page, listed.get((page.crawl, page.fp))) for page in found]
    return [
        page if says is None else replace(page, lastmod=says.lastmod, priority=says.priority) for page, says in said
    ]


def row_of(page: Page, crawl: str) -> dict[str, Any]:
    """Return one page as a row of every table format; `crawl`: id of its crawl."""
    body = page.body
    row = {name: getattr(page, name, None) for name in COLUMNS}
    row |= {"crawl": crawl, "fetched_at": iso(page.fetched_ms)}
    row |= _document(page.document)
    row["segment"] = None if body is None else f"{body.segment}:{body.offset}:{body.length}"
    return row


def _document(facts: DocumentFacts | None) -> dict[str, Any]:
    if facts is None:
        return {"document": None}
    return {
        "document": facts.kind, "problem": facts.problem or None, "document_pages": facts.pages or None,
        "author": facts.author or None, "created": facts.created or None, "modified": facts.modified or None,
    }  # fmt: skip
