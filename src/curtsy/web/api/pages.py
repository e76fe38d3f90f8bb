"""Pages and their stored bodies."""

from __future__ import annotations

import re
from contextlib import closing

from curtsy.content.documents.sniff import kind_of
from curtsy.core.errors import Damaged, UsageError
from curtsy.core.model import Page as StoredPage
from curtsy.export.page_details import RESPONSE_ID
from curtsy.export.page_rows import content_of, segments_of
from curtsy.rules.urls import host_key, normalise
from curtsy.services.stored_files import picture_of
from curtsy.store import crawls, listing, pages, responses
from curtsy.store.responses import Response
from curtsy.store.segments import read_page
from curtsy.web.models.fields import since_to_ms
from curtsy.web.models.pages import PageOf, PagesQuery, page_of
from curtsy.web.paging import Page, decode, encode, invalid_cursor
from curtsy.web.problems import Mistake, Problem
from curtsy.web.routing import Call, Download, download, endpoint

_PAGE_ID = re.compile(r"[1-9][0-9]{0,17}-[0-9a-f]{32}")
#: a page may have many MB
_MOST_WITH_CONTENT = 20
_NUMBER = re.compile(r"[1-9][0-9]{0,5}")
_ENDINGS = {
    "text/html": "html",
    "application/xhtml+xml": "xhtml",
    "application/pdf": "pdf",
    "application/json": "json",
    "text/plain": "txt",
    "application/xml": "xml",
    "text/xml": "xml",
}


@endpoint("GET", "/v1/crawls/{id}/pages", scope="read")
def list_pages(call: Call, id: str, query: PagesQuery) -> Page[PageOf]:
    """List the pages of a crawl, in the order in which they were stored.

    With `since` but without `host`, `url` or a rare `status`, the order is that of the fetches. One request examines a
    limited number of rows, so `items` may be short or empty although `next` is not null.
    """
    crawl = call.crawl(id)
    wanted = listing.PagesWanted(
        crawl=crawl.n,
        status=query.status,
        host=_host(call, query),
        since_ms=None if query.since is None else since_to_ms(query.since),
        prefix=None if query.url is None else _prefix(query.url),
    )
    names = () if query.content is None else tuple(query.content.split(","))
    limit = min(query.limit, _MOST_WITH_CONTENT) if names else query.limit
    with call.store.read() as tx:
        found, following = listing.pages_of(tx, wanted, position(query.cursor), limit)
    items = [page_of(page, crawl.id, _contents(call, page, names)) for page in found]
    return Page[PageOf](items=items, next=encode(following))


def position(cursor: str | None) -> listing.Place | None:
    found = decode(cursor, int, int)
    if found is not None and max(map(abs, found)) >= 1 << 62:
        raise invalid_cursor()
    return None if found is None else (found[0], found[1])


def _host(call: Call, query: PagesQuery) -> str | None:
    unit = call.settings.politeness_unit
    named = None if query.host is None else call.host(query.host)
    if query.url is None:
        return named
    meant = host_key(_prefix(query.url), unit)
    if named not in (None, meant):
        raise UsageError(f"The URL {query.url!r} does not belong to the host {named!r}.")
    return meant


def _prefix(url: str) -> str:
    """The prefix of stored URLs: the host is normalized, the rest is unchanged."""
    found = re.fullmatch(r"(https?://[^/?#]+/)(.*)", url, re.IGNORECASE)
    origin = normalise(found[1]) if found else None
    if found is None or origin is None:
        mistake = Mistake(where="query.url", message="must start like https://example.com/")
        raise Problem(422, "invalid-request", "The URL prefix must contain a complete host.", errors=[mistake])
    return origin + found[2]


@endpoint("GET", "/v1/pages/{id}", scope="read")
def page(call: Call, id: str) -> PageOf:
    """The metadata of a page."""
    found, crawl = _page(call, id)
    return page_of(found, crawl)


@download("/v1/pages/{id}/content", "application/octet-stream", "The stored body, decoded")
def content(call: Call, id: str) -> Download:
    """The stored body of a page, as an attachment, so that a browser does not show it as part of this site."""
    found, _ = _page(call, id)
    kind = (found.content_type or "").partition(";")[0].strip().lower()
    return Download(body=_body(call, found), name=f"{found.id}.{_ENDINGS.get(kind, 'bin')}")


@download("/v1/responses/{id}/content", "application/octet-stream", "The stored body, decoded")
def response_content(call: Call, id: str) -> Download:
    """The stored body of a redirect or an error, as an attachment; at most its first 64 KB are stored."""
    found = stored_response(call, id)
    with closing(segments_of(call.settings)) as segments:
        return Download(body=segments.read(found.body).body, name=f"{found.id}.bin")


@download("/v1/pages/{id}/text", "text/plain", "The text, in UTF-8")
def page_text(call: Call, id: str) -> Download:
    """What a reader sees of a page, or the text of a document; empty for pictures and other files."""
    return _read(call, id, "text", "txt", "text/plain")


@download("/v1/pages/{id}/markdown", "text/markdown", "The Markdown, in UTF-8")
def page_markdown(call: Call, id: str) -> Download:
    """The main content of a page, or a whole document, as Markdown; empty for pictures and other files."""
    return _read(call, id, "markdown", "md", "text/markdown")


def _read(call: Call, id: str, name: str, ending: str, media_type: str) -> Download:
    found, _ = _page(call, id)
    text = content_of(name, _body(call, found), found) or ""
    body = text.encode("utf-8", "replace")
    return Download(body=body, name=f"{found.id}.{ending}", media_type=f"{media_type}; charset=utf-8")


def _contents(call: Call, page: StoredPage, names: tuple[str, ...]) -> dict[str, str | None]:
    if not names or page.body is None:
        return {}
    body = _body(call, page)
    return {name: content_of(name, body, page) for name in names}


@download("/v1/pages/{id}/pictures/{number}", "image/png", "The picture")
def picture(call: Call, id: str, number: str) -> Download:
    """A page of a stored PDF as a picture, with at most 2.5 million dots. Pages count from 1.

    The `boxes` of evidence mark places on it: in points from the top left corner, next to the size of the page.
    """
    found, _ = _page(call, id)
    body = _body(call, found)
    is_pdf = kind_of(found.content_type, body, found.url) == "pdf"
    drawn = picture_of(body, int(number)) if is_pdf and _NUMBER.fullmatch(number) else None
    if drawn is None:
        raise Problem(404, "no-picture", "There is no such page of a PDF, or it cannot be drawn.")
    return Download(body=drawn, name=f"{found.id}-{number}.png", media_type="image/png")


def _body(call: Call, found: StoredPage) -> bytes:
    try:
        with closing(segments_of(call.settings)) as segments, call.store.read() as tx:
            record = read_page(tx, segments, found)
    except Damaged:
        _page(call, found.id)  # it may have been deleted meanwhile
        raise
    if record is not None and record.type not in ("response", "revisit"):
        raise _unknown()
    if record is None:
        raise Problem(404, "no-content", "The body of this page was not stored.")
    return record.body


def _page(call: Call, id: str) -> tuple[StoredPage, str]:
    """The page and its crawl's id."""
    with call.store.read() as tx:
        found = pages.by_id(tx, id) if _PAGE_ID.fullmatch(id) else None
        crawl = crawls.ids(tx, [found.crawl]).get(found.crawl) if found is not None else None
    if found is None or crawl is None:
        raise _unknown()
    return found, crawl


def stored_response(call: Call, id: str) -> Response:
    """The row of a redirect or an error."""
    with call.store.read() as tx:
        found = responses.by_id(tx, id) if RESPONSE_ID.fullmatch(id) else None
    if found is None:
        raise Problem(404, "no-such-response", "There is no stored response with this id. It may have been deleted.")
    return found


def _unknown() -> Problem:
    return Problem(404, "no-such-page", "There is no page with this id. GET /v1/crawls/{id}/pages lists them.")
