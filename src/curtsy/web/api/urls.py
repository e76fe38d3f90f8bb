"""The URLs that a crawl knows."""

from __future__ import annotations

from curtsy.store import url_queries
from curtsy.web.models.urls import UrlOf
from curtsy.web.paging import Page, Paged, decode_one, invalid_cursor, page
from curtsy.web.routing import Call, endpoint


@endpoint("GET", "/v1/crawls/{id}/urls", scope="read")
def list_urls(call: Call, id: str, query: Paged) -> Page[UrlOf]:
    """List the URLs that a crawl knows, fetched or not, in no particular order."""
    n = call.crawl(id).n
    try:
        after = bytes.fromhex(decode_one(query.cursor, str, ""))
    except ValueError:
        raise invalid_cursor() from None
    with call.store.read() as tx:
        found = url_queries.known(tx, n, after, query.limit + 1)
    return page(UrlOf, found, query.limit, lambda one: one.fp.hex(), _shown)


def _shown(one: url_queries.KnownUrl) -> UrlOf:
    return UrlOf(url=one.url, state=one.state, reason=one.reason or None, depth=one.depth, lastmod=one.lastmod)
