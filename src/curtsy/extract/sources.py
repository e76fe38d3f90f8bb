"""A page as the rungs use it: its text, its structured data as a JSON document, its elements."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from curtsy.content.charset import charset_of, decode, media_type
from curtsy.content.document import Document, is_html
from curtsy.content.structured import tidy
from curtsy.core.claims import Source, SourceKind
from curtsy.extract.page_selection import roles_of

#: characters of a text that is not HTML
_MAX_TEXT = 2_000_000


@dataclass(frozen=True)
class PageSources:
    """One page. The JSON pointers of structured sources refer to `data`."""

    page: str
    url: str
    title: str | None
    #: the visible text
    text: Source
    #: [{"kind": ..., "data": ...}, ...], bounded
    data: list[dict[str, Any]]
    #: None: the page is not HTML
    document: Document | None
    #: the page's roles, by its URL and title
    roles: frozenset[str]

    @cached_property
    def structured(self) -> Source:
        """`data` as JSON text."""
        dumped = json.dumps(self.data, ensure_ascii=False)
        return Source(SourceKind.STRUCTURED, self.page, self.url, dumped)

    @cached_property
    def words(self) -> int:
        return len(self.text.text.split())


def sources_of(page_id: str, url: str, body: bytes, content_type: str | None) -> PageSources:
    """Never raises, for any bytes. A page that is neither HTML nor text has no words."""
    if is_html(content_type, body):
        document = Document.parse(body, content_type, url)
        text, title, data = document.text(), document.title, tidy(document.structured())
        return _made(page_id, url, title, text, data, document)
    kind = media_type(content_type)
    text = decode(body[:_MAX_TEXT], charset_of(body, content_type, url=url)) if kind.startswith("text/") else ""
    return _made(page_id, url, None, text, [], None)


def _made(
    page_id: str, url: str, title: str | None, text: str, data: list[dict[str, Any]], document: Document | None
) -> PageSources:
    return PageSources(
        page=page_id,
        url=url,
        title=title,
        text=Source(SourceKind.TEXT, page_id, url, text),
        data=data,
        document=document,
        roles=roles_of(url, title),
    )
