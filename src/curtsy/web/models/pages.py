"""Pages."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, Field

from curtsy.core.model import Page
from curtsy.web.models.documents import DocumentInfo
from curtsy.web.models.fields import Address, Name, Since, Time, fill
from curtsy.web.paging import Paged


class PageOf(BaseModel):
    """A fetched URL of a crawl."""

    id: str
    crawl: str
    url: str
    host: str
    status: int
    fetched: Time
    depth: int
    content_type: str | None
    charset: str | None
    title: str | None
    language: str | None
    canonical: str | None
    sha256: str | None = Field(description="Of the body.")
    size: int = Field(description="Bytes of the body.")
    etag: str | None
    last_modified: str | None
    unchanged: bool = Field(description="Since an earlier crawl.")
    same_as: str | None = Field(description="Id of the page whose identical body is stored for both.")
    truncated: bool = Field(description="Parts of the page could not be read; the stored body is complete.")
    document: DocumentInfo | None = Field(description="If the page is a document; else null.")
    has_content: bool = Field(description="Whether `/v1/pages/{id}/content` has a body.")
    request_id: str
    text: str | None = Field(None, description="What a reader sees; only if `content` asks for it.")
    markdown: str | None = Field(None, description="The main content; only if `content` asks for it.")
    html: str | None = Field(None, description="The decoded HTML; only if `content` asks for it.")


class PagesQuery(Paged):
    status: int | None = Field(None, ge=100, le=999, description="Only with this HTTP status.")
    host: Name | None = Field(None, description="Only of this host.")
    since: Since | None = None
    url: Address | None = Field(
        None,
        description="Only URLs with this prefix, which must contain a complete host: `https://example.com/blog/`.",
    )
    content: str | None = Field(
        None,
        pattern=r"^(text|markdown|html)(,(text|markdown|html)){0,2}$",
        description="Also the content: `text`, `markdown`, `html`, with commas between. At most 20 pages per answer.",
    )


def page_of(page: Page, crawl: str, content: Mapping[str, str | None] | None = None) -> PageOf:
    document = None if page.document is None else fill(DocumentInfo, page.document)
    shown = {name: (content or {}).get(name) for name in ("text", "markdown", "html")}
    return fill(PageOf, page, crawl=crawl, document=document, has_content=page.body is not None, **shown)
