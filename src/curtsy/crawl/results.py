"""From the outcome of a fetch to its result: the decision, the page's facts, its links, its effect on the host. No I/O.

A URL passes through the crawl loop as one immutable value per step:

    Lease      the frontier granted the URL together with its host's slot
    Outcome    the fetch ended
    Result     this module decided what the outcome means
    Returned   the slot was returned to the frontier, which answered with the times of the request
    Written    the commit's transaction stored a group of them
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from curtsy.content.documents.model import FileText
from curtsy.content.documents.sniff import kind_of
from curtsy.content.head import MAX_TITLE_LENGTH, is_html, robots_tag
from curtsy.content.parser_limits import is_heavy
from curtsy.content.reading import ParseTimeout, Reading, read_by_scan, within
from curtsy.content.sitemaps import Listing, kind_of_xml, sitemap
from curtsy.core.document_facts import DocumentFacts
from curtsy.core.model import Chain, Crawl, Entry, Kind, Lease, NewUrl, Page, hot_value
from curtsy.core.observe import count, log_crawl
from curtsy.core.outcome import Action, Decision, Fault, HostEffect, Outcome
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.sitemap_links import (
    LONG_SITEMAP_BYTES,
    MAX_SITEMAP_URLS,
    guessed_sitemap,
    listings_of,
    of_guess,
    offered_sitemaps,
    sitemap_links,
)
from curtsy.frontier.messages import Release, Times
from curtsy.rules.decide import decide, next_chain
from curtsy.rules.politeness import effect
from curtsy.rules.robots import Robots
from curtsy.rules.robots_policy import RobotsDecision, decide_robots, host_effect, not_asked
from curtsy.rules.urls import fingerprint, origin, short

_KEPT = Decision(action=Action.DONE)
#: faults that the URL did not cause: it returns to the head of its list
UNSENT = frozenset({Fault.SLOT_EXPIRED, Fault.ADDRESS_BUSY, Fault.CANCELLED})


@hot_value(eq=False)
class PageFacts:
    """A page whose body is kept."""

    title: str | None = None
    charset: str | None = None
    canonical: str | None = None
    language: str | None = None
    #: parts of the page could not be read
    truncated: bool = False
    #: None: it is not a document
    document: DocumentFacts | None = None


@hot_value(eq=False)
class Result:
    """The result of a lease."""

    lease: Lease
    #: empty for robots.txt, which has no row
    fp: bytes
    decision: Decision
    outcome: Outcome | None = None
    effect: HostEffect | None = None
    links: Sequence[NewUrl] = ()
    #: None: the body is not kept
    page: PageFacts | None = None
    #: the same page in an earlier crawl
    previous: Page | None = None
    #: the entry for the next attempt
    retry: Entry | None = None
    #: the origin whose sitemaps are among the links
    sitemaps_of: str | None = None
    #: joins the crawl's scope
    member: str | None = None
    #: the decision about robots.txt, for a robots entry
    robots: RobotsDecision | None = None
    #: the status of the response, where the outcome shows the stored page instead
    answered: int | None = None
    #: whether the page needed a browser; None: unknown
    needed_browser: bool | None = None
    #: False while its body is being read outside the event loop: another result of the same fence follows
    is_complete: bool = True
    #: the page must be read in another process: it may block the parser
    is_heavy: bool = False
    #: the kind of a document that must be read in another process
    unread: str | None = None
    #: fingerprints of URLs, with what a sitemap says about them
    listings: Sequence[tuple[bytes, Listing]] = ()

    def release(self, *, hold: bool = False) -> Release:
        """The slot to return, with the effect on its host. `hold`: only its times, the slot follows later."""
        outcome = self.outcome
        assert outcome is not None
        return Release(
            lease=self.lease,
            started=outcome.started,
            ended=outcome.ended,
            # After a browser's visit the delay runs from its end.
            broken_off=outcome.broken_off or self.lease.entry.kind is Kind.BROWSER,
            effect=None if hold else self.effect,
            hold=hold,
        )


@hot_value(eq=False)
class Returned:
    """A result whose slot was returned."""

    result: Result
    #: by the server's clock; None: nothing was sent
    times: Times | None

    @property
    def ended_ms(self) -> int:
        return self.times.end_ms if self.times is not None else 0


def not_sent(lease: Lease, reason: str) -> Result:
    """Skipped before anything was sent: robots, denied."""
    return Result(
        lease=lease, fp=fingerprint(lease.entry.url), decision=Decision(action=Action.SKIP, reason=reason, counts=False)
    )


def for_browser(lease: Lease) -> Result:
    """No plain request is sent: pages of this host have needed a browser."""
    return Result(
        lease=lease,
        fp=fingerprint(lease.entry.url),
        decision=Decision(action=Action.RENDER, reason="render", counts=False),
        retry=replace(lease.entry, kind=Kind.BROWSER),
    )


def of_robots(lease: Lease, outcome: Outcome, settings: Settings, rng: random.Random) -> Result:
    """The result of a robots entry."""
    chain = lease.entry.chain
    answer = decide_robots(outcome, len(chain.trail) if chain else 0)
    own = effect(outcome, lease.failures, lease.adaptive_ms, settings, rng=rng)
    return Result(
        lease=lease, fp=b"", decision=Decision(action=Action.DONE), outcome=outcome, robots=answer,
        effect=host_effect(answer, own, lease.failures, settings, rng),
    )  # fmt: skip


def unasked_robots(lease: Lease, reason: str, now: float) -> Result:
    """The robots.txt of this entry may not be fetched."""
    return Result(
        lease=lease,
        fp=b"",
        decision=Decision(action=Action.DONE),
        outcome=Outcome(url=lease.entry.url, ended=now),
        robots=not_asked(reason, redirected=lease.entry.chain is not None),
    )


def of_url(
    lease: Lease, outcome: Outcome, context: CrawlContext, settings: Settings, rng: random.Random,
    previous: Page | None = None, robots: Robots | None = None, reading: Reading | FileText | None = None,
) -> Result:  # fmt: skip
    """The result of a page or a sitemap.

    `robots`: the rules of its origin, whose sitemaps are offered with it. `reading`: the facts of a heavy page or a
    document.
    """
    entry = lease.entry
    decision = decide(outcome, entry.attempts, settings, chain=entry.chain, rng=rng)
    if entry.chain is not None and entry.chain.guess:
        decision = of_guess(decision, outcome)
    if context.crawl.cookies and outcome.started is not None:
        context.store_cookies(lease.host, entry.url, outcome)
    member, found = None, _Found(decision)
    if decision.action is Action.RETRY:
        found = _Found(decision, retry=_next_try(entry, outcome, decision))
    elif decision.location is not None:
        found = _Found(decision, _redirect(entry, outcome, decision.location, context))
    elif decision.action is Action.DONE and decision.reason == "":
        try:
            if entry.kind is Kind.SITEMAP:
                found = _read_sitemap(entry, outcome, context, settings)
            else:
                member = _joining(entry, context)
                found = _read_page(entry, outcome, context, settings, reading)
        except ParseTimeout:
            outcome, found = _too_slow(entry, outcome, context.crawl, settings)
    links, sitemaps_of = found.links, None
    if robots is not None and context.crawl.sitemaps and (where := origin(entry.url)) not in context.sitemapped:
        if robots.sitemaps:
            sitemaps_of, links = where, [*links, *offered_sitemaps(robots, entry.url, context)]
        elif found.page is not None and settings.guess_sitemap:
            sitemaps_of, links = where, [*links, *guessed_sitemap(where, robots, context, settings)]
    return Result(
        lease=lease, fp=fingerprint(entry.url), decision=found.decision, outcome=outcome,
        effect=effect(outcome, lease.failures, lease.adaptive_ms, settings, rng=rng),
        links=links, page=found.page,
        # A screenshot is stored with the body: a page with a new one is written again.
        previous=None if outcome.screenshot is not None else previous,
        retry=found.retry, sitemaps_of=sitemaps_of,
        # A page that waits for a browser joins with its visit.
        member=member if found.retry is None else None,
        needed_browser=found.needed_browser, is_complete=found.is_complete, is_heavy=found.is_heavy,
        unread=found.unread, listings=found.listings,
    )  # fmt: skip


def unchanged(lease: Lease, outcome: Outcome, settings: Settings, rng: random.Random, previous: Page) -> Result:
    """304: the result until the stored body has been read again for its links."""
    return Result(
        lease=lease, fp=fingerprint(lease.entry.url), decision=Decision(action=Action.DONE, reason="not_modified"),
        outcome=outcome, effect=effect(outcome, lease.failures, lease.adaptive_ms, settings, rng=rng),
        previous=previous, answered=outcome.status, is_complete=False,
    )  # fmt: skip


def completed(before: Result, again: Result) -> Result:
    """A page that was read outside the event loop, with the effect and the status of its response."""
    return replace(again, effect=before.effect, previous=before.previous, answered=before.answered)


def give_up(before: Result, crawl: Crawl, settings: Settings) -> Result:
    """Reading the page or sitemap outside the event loop took too long."""
    assert before.outcome is not None
    outcome, found = _too_slow(before.lease.entry, before.outcome, crawl, settings)
    return replace(
        before, outcome=outcome, decision=found.decision, page=found.page, links=(), retry=None, sitemaps_of=None,
        needed_browser=None, is_complete=True, is_heavy=False,
    )  # fmt: skip


def ask_again(before: Result, reason: str) -> Result:
    """The stored body could not be read, so the 304 is useless: the URL stays open, and this counts as an attempt."""
    entry = before.lease.entry
    return replace(
        before,
        decision=Decision(action=Action.RETRY, reason=reason),
        retry=replace(entry, attempts=entry.attempts + 1),
        is_complete=True,
    )


def fetch_again(before: Result) -> Result:
    """The run ends before its document was read: the URL stays open, and this was not an attempt."""
    return replace(
        before, decision=Decision(action=Action.RETRY, reason="cancelled", counts=False), retry=before.lease.entry,
        page=None, links=(), sitemaps_of=None, is_complete=True, unread=None,
    )  # fmt: skip


def with_links(before: Result, links: Sequence[NewUrl], listings: Sequence[tuple[bytes, Listing]]) -> Result:
    """A long sitemap whose links have been read."""
    return replace(before, links=[*links, *before.links], listings=listings, is_complete=True)


@hot_value(kw_only=False, eq=False)
class _Found:
    """What reading a response gives."""

    decision: Decision
    links: Sequence[NewUrl] = ()
    page: PageFacts | None = None
    retry: Entry | None = None
    needed_browser: bool | None = None
    is_complete: bool = True
    is_heavy: bool = False
    unread: str | None = None
    listings: Sequence[tuple[bytes, Listing]] = ()


def _next_try(entry: Entry, outcome: Outcome, decision: Decision) -> Entry:
    chain = entry.chain
    if decision.reason == "cookie":
        chain = next_chain(chain, outcome, seed=entry.depth == 0)
    return replace(entry, attempts=entry.attempts + int(decision.counts), chain=chain)


def _redirect(entry: Entry, outcome: Outcome, location: str, context: CrawlContext) -> list[NewUrl]:
    """The target becomes a separate URL, so the politeness of its host applies. A seed's redirect may leave the
    scope.
    """
    chain = next_chain(entry.chain, outcome, seed=entry.depth == 0)
    location = _folded_target(location, chain, context)
    kind = Kind.PAGE if entry.kind is Kind.BROWSER else entry.kind
    if entry.depth == 0:
        return [context.any_row(location, 0, kind, replace(chain, seed=True))]
    if entry.chain is not None and entry.chain.guess:
        chain = replace(chain, guess=True)
    row = context.row(location, entry.depth, kind, chain)
    return [] if row is None else [row]


def _folded_target(location: str, chain: Chain, context: CrawlContext) -> str:
    """The target folded; as it is if it folds into a URL that led to it: the server insists on this one."""
    folded = context.folding.named(location)
    return location if folded != location and short(fingerprint(folded)) in chain.trail else folded


def _read_sitemap(entry: Entry, outcome: Outcome, context: CrawlContext, settings: Settings) -> _Found:
    decision = Decision(action=Action.DONE, reason="sitemap")
    if len(outcome.body) > LONG_SITEMAP_BYTES:
        return _Found(decision, is_complete=False)
    links: list[NewUrl] = []
    content = within(settings.parse_timeout_s, sitemap, outcome.body, MAX_SITEMAP_URLS)
    for some in sitemap_links(entry.url, context, content):
        links += some
    return _Found(decision, links, listings=listings_of(entry.url, content, context.folding))


def _joining(entry: Entry, context: CrawlContext) -> str | None:
    """The host or domain that joins the scope, where a seed's redirects end outside of it."""
    if entry.chain is None or not entry.chain.seed:
        return None
    member = context.scope.member(entry.url, context.crawl.scope)
    if member in context.crawl.members:
        return None
    context.admit(member)
    return member


def _header_rules(outcome: Outcome, settings: Settings) -> tuple[bool, bool]:
    """(noindex, nofollow) of the X-Robots-Tag headers."""
    tags = outcome.header_all("x-robots-tag")
    return robots_tag(tags, settings.agent) if tags else (False, False)


def _read_page(
    entry: Entry, outcome: Outcome, context: CrawlContext, settings: Settings, reading: Reading | FileText | None
) -> _Found:
    content_type = outcome.header("content-type")
    noindex, nofollow = _header_rules(outcome, settings)
    page, needed, links = PageFacts(), None, []
    if is_html(content_type, outcome.body) and not isinstance(reading, FileText):
        if reading is None:
            given = (outcome.body, content_type, entry.url, settings.agent, context.auto_render)
            reading = within(settings.parse_timeout_s, read_by_scan, *given)
            if reading is None:
                if is_heavy(outcome.body):
                    return _Found(_KEPT, page=page, is_complete=False, is_heavy=True)
                from curtsy.content.tree_reading import read_tree  # start-up: most crawls need no tree

                reading = within(settings.parse_timeout_s, read_tree, *given)
        page = PageFacts(
            title=reading.title, charset=reading.charset, canonical=reading.canonical, language=reading.language,
            truncated=reading.truncated,
        )  # fmt: skip
        noindex = noindex or reading.noindex
        if context.auto_render and not noindex:
            needed = _needed_browser(entry.kind, lacks_content=reading.browser is not None)
            if needed:
                # The page has no content without scripts: it is not kept, and waits for a browser.
                retry = replace(entry, kind=Kind.BROWSER, attempts=0)
                return _Found(Decision(action=Action.RENDER, reason="render"), retry=retry, needed_browser=True)
        if not (nofollow or reading.nofollow):
            links = context.new_links(reading.base_url, reading.links, entry.depth + 1)
            if reading.canonical is not None and context.folding.is_contradicted(entry.url, reading.canonical):
                named = context.row(reading.canonical, entry.depth)
                links += [] if named is None else [named]
    elif (xml := kind_of_xml(content_type, outcome.body)) == "sitemap" and context.crawl.sitemaps:
        return _read_sitemap(entry, outcome, context, settings)
    elif xml == "feed":
        if not nofollow:
            content = within(settings.parse_timeout_s, sitemap, outcome.body, MAX_SITEMAP_URLS)
            links = context.new_links(entry.url, content.urls, entry.depth + 1)
    elif not (noindex and nofollow) and (kind := kind_of(content_type, outcome.body, entry.url)) is not None:
        if not isinstance(reading, FileText):
            if kind in settings.document_types:
                return _Found(_KEPT, page=page, is_complete=False, unread=kind)
        else:
            page = _document(reading)
            links = [] if nofollow else context.new_links(entry.url, list(reading.links), entry.depth + 1)
    if noindex:
        return _Found(Decision(action=Action.SKIP, reason="noindex"), links, needed_browser=needed)
    return _Found(_KEPT, links, page, needed_browser=needed)


def _document(file: FileText) -> PageFacts:
    facts = DocumentFacts(
        kind=file.kind, problem=file.problem, pages=file.page_count, author=file.author[:MAX_TITLE_LENGTH],
        created=file.created, modified=file.modified, ocr=file.ocr,
    )  # fmt: skip
    title = " ".join(file.title.split())[:MAX_TITLE_LENGTH]
    return PageFacts(title=title or None, language=file.language or None, truncated=file.truncated, document=facts)


def _needed_browser(kind: Kind, *, lacks_content: bool) -> bool | None:
    """Whether the page needs a browser. A page without content after a visit counts against the next visit."""
    if kind is Kind.BROWSER:
        # If the visit helped, the finding before it remains.
        return False if lacks_content else None
    return lacks_content and kind is Kind.PAGE


def _too_slow(entry: Entry, outcome: Outcome, crawl: Crawl, settings: Settings) -> tuple[Outcome, _Found]:
    """Reading took too long: a dead letter. The body of a page is stored; its links are unknown."""
    count("parse_timeouts")
    log_crawl(crawl, "parse_timeout", level="warning", url=entry.url, bytes=len(outcome.body))
    detail = f"reading its {len(outcome.body):,} bytes took more than {settings.parse_timeout_s:g} s"
    is_kept = entry.kind is not Kind.SITEMAP and not _header_rules(outcome, settings)[0]
    decision = Decision(action=Action.DEAD, reason="parse_timeout")
    return replace(outcome, detail=detail), _Found(decision, page=PageFacts() if is_kept else None)
