"""From an outcome to what the commit writes: the decision, the page's facts, its links, its host's effect. No I/O."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from curtsy.core.model import Entry, Kind, Lease, NewUrl, Page
from curtsy.core.observe import count, log
from curtsy.core.outcome import Action, Decision, Fault, HostEffect, Outcome
from curtsy.core.settings import Settings
from curtsy.crawl.crawl_context import CrawlContext, Jar
from curtsy.frontier.messages import Release, Times
from curtsy.html.document import is_html, robots_tag
from curtsy.html.links import SitemapContent, sitemap
from curtsy.html.parser_limits import is_heavy
from curtsy.html.reading import ParseTimeout, Reading, read, within
from curtsy.rules.decide import RobotsDecision, decide, decide_robots, next_chain
from curtsy.rules.politeness import backoff_ms, effect
from curtsy.rules.robots import Robots
from curtsy.rules.urls import fingerprint, normalise, origin

#: an index of sitemaps may name this many URLs at a time; the rest of a larger one is left
MAX_SITEMAP_URLS = 50_000
#: a longer one, which may be compressed, is read beside the loop: 50,000 links would stop it for a third of a second
LONG_SITEMAP_BYTES = 16_384
_SLICE = 1000
_FEEDS = ("application/rss+xml", "application/atom+xml")
#: nothing was learnt of the URL: it goes back to the head of its list
UNSENT = frozenset({Fault.SLOT_EXPIRED, Fault.ADDRESS_BUSY, Fault.CANCELLED})


@dataclass(slots=True, kw_only=True)
class Finished:
    """One lease on its way through the commit."""

    lease: Lease
    fp: bytes
    decision: Decision
    outcome: Outcome | None = None
    effect: HostEffect | None = None
    links: list[NewUrl] = field(default_factory=list)
    #: the body is worth keeping: this becomes a page
    page: bool = False
    title: str | None = None
    charset: str | None = None
    canonical: str | None = None
    language: str | None = None
    #: parts of the page could not be read
    truncated: bool = False
    #: the page it was in an earlier crawl
    previous: Page | None = None
    #: as it is tried again
    retry: Entry | None = None
    #: the origin whose sitemaps are among the links
    offers: str | None = None
    #: joins the crawl's scope
    member: str | None = None
    #: what robots.txt said, for a robots entry
    robots: RobotsDecision | None = None
    #: by the server's clock; None until the slot is back, and for good where nothing was sent
    times: Times | None = None
    #: the slot is back
    returned: bool = False
    #: the status that was answered, where the outcome shows the stored page instead
    answered: int | None = None
    #: the page needed a browser, or did not; None: nothing was learnt of that
    needed_browser: bool | None = None
    #: everything about the page is known; False while its stored body or a long sitemap is being read
    complete: bool = True
    #: the page is to be read beside the loop
    heavy: bool = False

    def take(self, other: Finished) -> None:
        """What was learnt of the page from its stored body; times, effect and lease stay."""
        self.decision, self.outcome, self.page, self.links = other.decision, other.outcome, other.page, other.links
        self.title, self.charset, self.canonical = other.title, other.charset, other.canonical
        self.language, self.member, self.retry = other.language, other.member, other.retry
        self.truncated, self.needed_browser = other.truncated, other.needed_browser

    def release(self, *, hold: bool = False) -> Release:
        """The slot on its way back, with the effect on its host; `hold`: only its times, the slot comes later."""
        outcome = self.outcome
        assert outcome is not None
        return Release(
            lease=self.lease,
            started=outcome.started,
            ended=outcome.ended,
            # The delay runs from the end of a visit.
            broken_off=outcome.broken_off or self.lease.entry.kind is Kind.BROWSER,
            effect=None if hold else self.effect,
            hold=hold,
        )

    @property
    def size(self) -> int:
        return len(self.outcome.body) if self.outcome is not None else 0


def not_sent(lease: Lease, reason: str) -> Finished:
    """Skipped before anything was sent: robots, denied."""
    return Finished(
        lease=lease, fp=fingerprint(lease.entry.url), decision=Decision(action=Action.SKIP, reason=reason, counts=False)
    )


def for_browser(lease: Lease) -> Finished:
    """Nothing is asked plainly: pages of this host have needed a browser."""
    return Finished(
        lease=lease,
        fp=fingerprint(lease.entry.url),
        decision=Decision(action=Action.RENDER, reason="render", counts=False),
        retry=replace(lease.entry, kind=Kind.BROWSER),
    )


def of_robots(lease: Lease, outcome: Outcome, settings: Settings, rng: random.Random) -> Finished:
    """A robots entry: rules, allow, forbid for now, or follow."""
    chain = lease.entry.chain
    answer = decide_robots(outcome, len(chain.trail) if chain else 0)
    done = effect(outcome, lease.failures, lease.adaptive_ms, settings, rng=rng)
    if answer.verdict == "forbid" and done.failures <= lease.failures:
        # A host that answers, but not this, is as good as one that does not: it is left alone for longer each time.
        pause_ms = max(done.block_ms, backoff_ms(lease.failures, settings, rng))
        done = replace(done, failures=lease.failures + 1, block_ms=pause_ms)
    return Finished(
        lease=lease, fp=b"", decision=Decision(action=Action.DONE), outcome=outcome, effect=done, robots=answer
    )


def unasked_robots(lease: Lease, reason: str, now: float) -> Finished:
    """Nothing of the origin is asked, not even its rules; an origin that was redirected here is without rules."""
    own = lease.entry.chain is None
    return Finished(
        lease=lease,
        fp=b"",
        decision=Decision(action=Action.DONE),
        outcome=Outcome(url=lease.entry.url, ended=now),
        robots=RobotsDecision(verdict="skip" if own else "forbid", reason=reason),
    )


def of_url(
    lease: Lease, outcome: Outcome, context: CrawlContext, settings: Settings, rng: random.Random,
    previous: Page | None = None, reading: Reading | None = None,
) -> Finished:  # fmt: skip
    """A page or a sitemap. `reading`: what was read of the page beside the loop."""
    entry = lease.entry
    decision = decide(outcome, entry.attempts, settings, chain=entry.chain, rng=rng)
    done = Finished(
        lease=lease,
        fp=fingerprint(entry.url),
        decision=decision,
        outcome=outcome,
        effect=effect(outcome, lease.failures, lease.adaptive_ms, settings, rng=rng),
        # What stands beside a body is written with it: a page that brings such things is written again.
        previous=None if outcome.screenshot is not None or outcome.markdown is not None else previous,
    )
    if context.crawl.cookies and outcome.started is not None:
        _keep_cookies(context, lease, outcome)
    if decision.action is Action.RETRY:
        _try_again(done, entry, outcome)
    elif decision.location is not None:
        _follow(done, context, decision.location)
    elif decision.action is Action.DONE and decision.reason == "":
        try:
            if entry.kind is Kind.SITEMAP:
                _read_sitemap(done, context, outcome, settings)
            else:
                _read_page(done, context, outcome, settings, reading)
        except ParseTimeout:
            give_up(done, settings)
    return done


def give_up(done: Finished, settings: Settings) -> None:
    """Reading it took too long: a dead letter. The body of a page is stored; its links are not known."""
    outcome = done.outcome
    assert outcome is not None
    count("parse_timeouts")
    log("parse_timeout", level="warning", url=done.lease.entry.url, bytes=len(outcome.body))
    took = f"reading its {len(outcome.body):,} bytes took more than {settings.parse_timeout_s:g} s"
    done.outcome = replace(outcome, detail=took)
    done.decision = Decision(action=Action.DEAD, reason="parse_timeout")
    done.page = done.lease.entry.kind is not Kind.SITEMAP and not _header_rules(outcome, settings)[0]
    done.links, done.retry, done.needed_browser, done.heavy = [], None, None, False


def _header_rules(outcome: Outcome, settings: Settings) -> tuple[bool, bool]:
    tags = outcome.header_all("x-robots-tag")
    return robots_tag(tags, settings.agent) if tags else (False, False)


def _keep_cookies(context: CrawlContext, lease: Lease, outcome: Outcome) -> None:
    if lines := outcome.header_all("set-cookie"):
        context.jars.setdefault(lease.host, Jar()).take(lease.entry.url, lines)


def _try_again(done: Finished, entry: Entry, outcome: Outcome) -> None:
    chain = entry.chain
    if done.decision.reason == "cookie":
        chain = next_chain(chain, outcome, seed=entry.depth == 0)
    done.retry = replace(entry, attempts=entry.attempts + int(done.decision.counts), chain=chain)


def ask_again(done: Finished, reason: str) -> None:
    """What was answered is of no use without what is stored: the URL stays open, as one that was tried."""
    done.decision = Decision(action=Action.RETRY, reason=reason)
    done.retry = replace(done.lease.entry, attempts=done.lease.entry.attempts + 1)


def _follow(done: Finished, context: CrawlContext, location: str) -> None:
    """The target becomes a URL of its own: its host's politeness holds. From a seed it is followed anywhere."""
    entry = done.lease.entry
    outcome = done.outcome
    assert outcome is not None
    chain = next_chain(entry.chain, outcome, seed=entry.depth == 0)
    kind = Kind.PAGE if entry.kind is Kind.BROWSER else entry.kind
    if entry.depth == 0:
        done.links.append(context.any_row(location, 0, kind, replace(chain, seed=True)))
    elif (row := context.row(location, entry.depth, kind, chain)) is not None:
        done.links.append(row)


def _read_sitemap(done: Finished, context: CrawlContext, outcome: Outcome, settings: Settings) -> None:
    done.decision = Decision(action=Action.DONE, reason="sitemap")
    if len(outcome.body) > LONG_SITEMAP_BYTES:
        done.complete = False
        return
    content = within(settings.parse_timeout_s, sitemap, outcome.body, MAX_SITEMAP_URLS)
    for _ in sitemap_links(done, context, content):
        pass


def sitemap_links(done: Finished, context: CrawlContext, content: SitemapContent) -> Iterator[None]:
    """Adds the links of a sitemap, and stops after each slice of them."""
    url = done.lease.entry.url
    for at in range(0, len(content.urls), _SLICE):
        done.links += context.new_links(url, content.urls[at : at + _SLICE], 1)
        yield
    for href in content.sitemaps:
        target = normalise(href, url)
        if target and (row := context.row(target, 1, Kind.SITEMAP)) is not None:
            done.links.append(row)


def _read_page(
    done: Finished, context: CrawlContext, outcome: Outcome, settings: Settings, reading: Reading | None
) -> None:
    entry = done.lease.entry
    done.page = True
    if entry.chain is not None and entry.chain.seed:
        member = context.scope.member(entry.url, context.crawl.scope)
        if member not in context.crawl.members:
            done.member = member
            context.admit(member)
    content_type = outcome.header("content-type")
    noindex, nofollow = _header_rules(outcome, settings)
    if is_html(content_type, outcome.body):
        if reading is None:
            if is_heavy(outcome.body):
                done.complete, done.heavy = False, True
                return
            given = (outcome.body, content_type, entry.url, settings.agent, context.auto_render)
            reading = within(settings.parse_timeout_s, read, *given)
        done.title, done.charset = reading.title, reading.charset
        done.canonical, done.language = reading.canonical, reading.language
        done.truncated = reading.truncated
        noindex = noindex or reading.noindex
        if context.auto_render and not noindex and _goes_to_browser(done, reading.browser):
            return
        if not (nofollow or reading.nofollow):
            done.links = context.new_links(reading.base_url, reading.links, entry.depth + 1)
    elif content_type and content_type.partition(";")[0].strip().lower() in _FEEDS and not nofollow:
        content = within(settings.parse_timeout_s, sitemap, outcome.body, MAX_SITEMAP_URLS)
        done.links = context.new_links(entry.url, content.urls, entry.depth + 1)
    if noindex:
        done.page = False
        done.decision = Decision(action=Action.SKIP, reason="noindex")


def _goes_to_browser(done: Finished, reason: str | None) -> bool:
    """A page without content worth having is not kept: it waits for a browser. One that has none after a visit either
    speaks against the next."""
    entry = done.lease.entry
    done.needed_browser = reason is not None and entry.kind is Kind.PAGE
    if not done.needed_browser:
        if reason is None and entry.kind is Kind.BROWSER:
            done.needed_browser = None  # what was learnt of it before its visit stands
        return False
    done.page, done.member = False, None
    done.decision = Decision(action=Action.RENDER, reason="render")
    done.retry = replace(entry, kind=Kind.BROWSER, attempts=0)
    return True


def sitemaps_of(rules: Robots, url: str, context: CrawlContext) -> list[NewUrl]:
    """The sitemaps that an origin's robots.txt names, until they were committed; those in the crawl's scope."""
    if not context.crawl.sitemaps or origin(url) in context.sitemapped:
        return []
    rows = []
    for href in rules.sitemaps:
        target = normalise(href, url)
        if target and (row := context.row(target, 1, Kind.SITEMAP)) is not None:
            rows.append(row)
    return rows
