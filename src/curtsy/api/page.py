"""A stored page for scripts and extractors: its metadata, its body, and its content."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from curtsy.content.document import Document, is_html
from curtsy.content.links import LinkMemo, hrefs
from curtsy.core.model import Page as StoredPage


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A committed page."""

    id: str
    #: id of its crawl; empty for an extractor
    crawl: str
    url: str
    host: str
    status: int
    fetched: datetime
    #: links from a seed
    depth: int
    content_type: str | None
    charset: str | None
    title: str | None
    language: str | None
    canonical: str | None
    sha256: str | None
    #: bytes of the body
    size: int
    etag: str | None
    last_modified: str | None
    #: since an earlier crawl
    unchanged: bool
    #: id of the page with the identical body
    same_as: str | None
    #: parts of it could not be read
    truncated: bool
    #: the body after content decoding; None if it was not kept
    content: bytes | None = field(repr=False)

    @property
    def is_html(self) -> bool:
        return is_html(self.content_type, self.content or b"")

    def document(self) -> Document:
        """The parsed page: its text, Markdown, structured data, tree."""
        return Document.parse(self.content or b"", self.content_type, self.url)

    def text(self) -> str:
        """The visible text; empty unless it is HTML or plain text."""
        if not self.is_html:
            plain = (self.content_type or "").startswith("text/")
            return (self.content or b"").decode(self.charset or "utf-8", "replace") if plain else ""
        return self.document().text()

    def markdown(self) -> str:
        """As Markdown; other types as their text."""
        return self.document().markdown() if self.is_html else self.text()

    def links(self) -> list[str]:
        """The normalized URLs of its links, without those marked nofollow."""
        if not self.is_html:
            return []
        document = self.document()
        return list(dict.fromkeys(LinkMemo().resolve_all(document.base_url, hrefs(document))))


def view(page: StoredPage, crawl: str, content: bytes | None) -> Page:
    """The page with its body; None if the body was not kept."""
    names = (name for name in Page.__slots__ if name not in ("crawl", "fetched", "content"))
    return Page(
        **{name: getattr(page, name) for name in names},
        crawl=crawl,
        fetched=datetime.fromtimestamp(page.fetched_ms / 1000, UTC),
        content=content,
    )
