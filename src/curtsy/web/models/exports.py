"""Exports, and one stored page with everything about it."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from curtsy.export.request import FORMATS, ExportRequest
from curtsy.web.models.fields import Address, CrawlId

_CONTENT = r"^(text|markdown|html)(,(text|markdown|html)){0,2}$"
_PART = "(headers|text|markdown|links|records|history)"


class ExportQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    what: Literal["pages", "records", "tables", "evidence", "urls"] = Field(
        "pages",
        description="`records`: published records as they are stored; `tables`: the same as flat tables with their "
        "lists and evidence; `evidence`: only the table of evidence.",
    )
    format: Literal["jsonl", "csv", "parquet", "warc", "markdown", "xlsx", "sqlite", "duckdb"] | None = Field(
        None, description="Default: `jsonl` for pages and records, `csv` for tables."
    )
    csv_safe: bool = Field(False, description="No cell of a CSV file is a formula.")
    full_page: bool = Field(False, description="Markdown with menus, headers and footers.")
    content: str | None = Field(
        None,
        pattern=_CONTENT,
        description="Pages as `jsonl` or `parquet` also have these columns: `text`, `markdown`, `html`, with commas "
        "between.",
    )
    partition_by: Literal["host", "date"] | None = Field(None, description="Pages as a file for each host or date.")
    lists: Literal["rows", "json"] = Field("rows", description="Lists of `tables`: rows of another table, or JSON.")

    def request(self) -> ExportRequest:
        partitioned = self.partition_by is not None and self.format is None
        return ExportRequest(
            what=self.what,
            format="parquet" if partitioned else self.format or FORMATS[self.what][0],
            csv_safe=self.csv_safe,
            full_page=self.full_page,
            content=tuple(dict.fromkeys((self.content or "").split(","))) if self.content else (),
            partition_by=self.partition_by,
            lists=self.lists,
        )


class ShowQuery(BaseModel):
    model_config = ConfigDict(extra="forbid")

    url: Address = Field(description="The URL of a page, or the id of a page or response.")
    crawl: CrawlId | None = Field(None, description="Look in this crawl; default: the newest one that has the page.")
    parts: str = Field(
        "none",
        pattern=rf"^(none|{_PART}(,{_PART}){{0,5}})$",
        description="Also these parts, with commas between: `headers`, `text`, `markdown`, `links`, `records`, "
        "`history`.",
    )


class PageVersion(BaseModel):
    """The page of the same URL in one crawl."""

    crawl: str
    id: str
    fetched_at: str
    status: int
    sha256: str | None
    size: int
    unchanged: bool
    title: str | None


class PageDetails(BaseModel):
    """A stored page, redirect or error as a row of an export, and the parts that `parts` names; others are null."""

    url: str
    status: int
    fetched_at: str
    content_type: str | None
    title: str | None
    sha256: str | None
    depth: int
    segment: str | None = Field(description="Where the body is stored: segment, offset and length.")
    id: str
    host: str
    charset: str | None
    size: int
    language: str | None
    canonical: str | None
    etag: str | None
    last_modified: str | None
    unchanged: bool
    same_as: str | None
    truncated: bool
    document: str | None = Field(description="Kind of a document, such as `pdf`.")
    problem: str | None
    document_pages: int | None
    author: str | None
    created: str | None
    modified: str | None
    lastmod: str | None
    priority: float | None
    crawl: str
    is_page: bool = Field(description="False: a redirect or an error; its body is `/v1/responses/{id}/content`.")
    has_content: bool = Field(description="Whether `/v1/pages/{id}/content` has a body.")
    headers: list[list[str]] | None = Field(None, description="Name and value of each header of the response.")
    text: str | None = None
    markdown: str | None = None
    links: list[str] | None = Field(None, description="Absolute URLs, each once.")
    records: list[dict[str, Any]] | None = Field(None, description="Published records that come from it or cite it.")
    history: list[PageVersion] | None = Field(None, description="The same URL in all crawls, newest first.")
