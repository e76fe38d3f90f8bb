"""A stored page for scripts and extractors: its metadata, its body, and its content."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from curtsy.api.notebook import page_html
from curtsy.content.document import Document
from curtsy.content.documents.model import FileText, Limits
from curtsy.content.head import is_html
from curtsy.content.links import LinkMemo, hrefs
from curtsy.core.document_facts import DocumentFacts
from curtsy.core.model import Page as StoredPage
from curtsy.services import stored_files

#: what a stored page does not have in this form
_OWN = frozenset(("crawl", "fetched", "content", "document_facts", "limits", "read_file"))


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
    #: of a PDF or another document: kind, author, dates, and why it was not read completely; else None
    document_facts: DocumentFacts | None
    #: the body after content decoding; None if it was not kept
    content: bytes | None = field(repr=False)
    #: of reading documents, by the settings of the crawl
    limits: Limits | None = field(default=None, repr=False, compare=False)
    #: the document, if it was read already
    read_file: FileText | None = field(default=None, repr=False, compare=False)

    @property
    def is_html(self) -> bool:
        return is_html(self.content_type, self.content or b"")

    def document(self) -> Document:
        """The parsed HTML page: its text, Markdown, structured data, tree."""
        return Document.parse(self.content or b"", self.content_type, self.url)

    def file(self) -> FileText | None:
        """A PDF or another document as it was read: its text, pages, tables, headings. None: it is something else.

        It is read in another process, with limits. Scanned pages have text if the setting `document_ocr` is on.
        """
        if self.read_file is not None:
            return self.read_file
        return stored_files.file_of(self.content or b"", self.content_type, self.url, self.limits)

    def text(self) -> str:
        """The visible text, also of documents; empty for bodies without text, such as pictures."""
        if self.read_file is not None:
            return self.read_file.text
        return stored_files.text_of(self.content or b"", self.content_type, self.url, self.limits)

    def markdown(self, full_page: bool = False) -> str:
        """The main content as Markdown, or the full page with its menus and footers; also documents; other types as
        their text."""
        if self.read_file is not None:
            return self.read_file.markdown
        return stored_files.markdown_of(self.content or b"", self.content_type, self.url, self.limits, full_page)

    def links(self) -> list[str]:
        """The normalized URLs of its links, without those marked nofollow."""
        if not self.is_html:
            file = self.file()
            return [] if file is None else list(dict.fromkeys(LinkMemo().resolve_all(self.url, list(file.links))))
        document = self.document()
        return list(dict.fromkeys(LinkMemo().resolve_all(document.base_url, hrefs(document))))

    def _repr_html_(self) -> str:
        """Its facts and the beginning of its text, for a notebook."""
        names = ("url", "title", "status", "content_type", "language", "size", "depth", "fetched", "id", "crawl")
        return page_html([(name, getattr(self, name)) for name in names], self.text())


def view(
    page: StoredPage, crawl: str, content: bytes | None, limits: Limits | None = None, file: FileText | None = None
) -> Page:
    """The page with its body; None if the body was not kept. `file` is the document in it, if it was read already."""
    names = (name for name in Page.__slots__ if name not in _OWN)
    return Page(
        **{name: getattr(page, name) for name in names},
        crawl=crawl,
        document_facts=page.document,
        fetched=datetime.fromtimestamp(page.fetched_ms / 1000, UTC),
        content=content,
        limits=limits,
        read_file=file,
    )
