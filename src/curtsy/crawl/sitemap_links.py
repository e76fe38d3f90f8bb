"""The links of sitemaps, and the sitemaps that a site names in robots.txt or that are tried at the usual place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from curtsy.content.sitemaps import Listing, SitemapContent
from curtsy.core.model import Chain, Kind, NewUrl
from curtsy.core.outcome import Action, Decision, Outcome
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.rules.folding import Folding
from curtsy.rules.robots import Robots
from curtsy.rules.urls import fingerprint, normalise, origin

#: URLs used of one sitemap; the rest of a larger one is ignored
MAX_SITEMAP_URLS = 50_000
#: a longer sitemap, which may be compressed, is parsed in a thread: 50,000 links would stop the loop for 0.3 s
LONG_SITEMAP_BYTES = 16_384
_SLICE = 1000
#: the URL that is tried if robots.txt names no sitemap
_SITEMAP_PATH = "/sitemap.xml"
_SITEMAP_NAME = re.compile(r"(?i)sitemap[^/]*\Z|\.xml(?:\.gz)?\Z")
_NO_SITEMAP = Decision(action=Action.DONE, reason="no_sitemap")


def listings_of(url: str, content: SitemapContent, folding: Folding) -> list[tuple[bytes, Listing]]:
    """What the sitemap says about its URLs, by their fingerprints."""
    found = ((normalise(href, url), listing) for href, listing in content.listings.items())
    return [(fingerprint(folding.links(target)), listing) for target, listing in found if target is not None]


def sitemap_links(url: str, context: CrawlContext, content: SitemapContent) -> Iterator[list[NewUrl]]:
    """The links of a sitemap, in slices."""
    for at in range(0, len(content.urls), _SLICE):
        yield context.new_links(url, content.urls[at : at + _SLICE], 1)
    if content.sitemaps:
        yield _sitemap_rows(content.sitemaps, url, context)


def _sitemap_rows(found: Sequence[str], url: str, context: CrawlContext) -> list[NewUrl]:
    rows = []
    for href in found:
        target = normalise(href, url)
        if target and (row := context.row(target, 1, Kind.SITEMAP)) is not None:
            rows.append(row)
    return rows


def offered_sitemaps(robots: Robots, url: str, context: CrawlContext) -> list[NewUrl]:
    """The sitemaps in scope that the origin's robots.txt names, until they are committed."""
    if not context.crawl.sitemaps or origin(url) in context.sitemapped:
        return []
    return _sitemap_rows(robots.sitemaps, url, context)


def guessed_sitemap(where: str, robots: Robots, context: CrawlContext, settings: Settings) -> list[NewUrl]:
    """The usual place of an origin's sitemap. Not in a crawl without a scope, which fetches few pages from many
    origins.
    """
    url = where + _SITEMAP_PATH
    if context.crawl.scope == "any" or not robots.allows(url, settings.agent):
        return []
    row = context.row(url, 1, Kind.SITEMAP, Chain(guess=True))
    return [] if row is None else [row]


def of_guess(decision: Decision, outcome: Outcome) -> Decision:
    """The site did not announce this sitemap: a failure is neither a dead letter nor retried, unless the URL did not
    cause it. Only a sitemap, or a redirect to one, counts.
    """
    if decision.location is not None and not _SITEMAP_NAME.search(decision.location):
        return _NO_SITEMAP
    lacking = decision.action in (Action.DEAD, Action.SKIP) or decision.reason == "gone"
    return _NO_SITEMAP if lacking or (decision.action is Action.RETRY and outcome.status) else decision
