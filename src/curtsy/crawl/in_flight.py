"""Leases under way in one process: judged, asked, and given back with what they brought.

Nothing is sent for a lease whose crawl does not run, whose host is denied or whose robots rules forbid it. Pages are
read in the fetch callbacks.
"""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any, Protocol

from curtsy.core import metrics
from curtsy.core.clock import boot
from curtsy.core.model import Kind, Lane, Lease, Page
from curtsy.core.observe import count, log
from curtsy.core.outcome import Action, Decision, Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.crawl import results
from curtsy.crawl.commit_queue import CommitQueue
from curtsy.crawl.crawl_cache import CrawlCache
from curtsy.crawl.crawl_context import CrawlContext
from curtsy.crawl.host_policy import HostPolicy
from curtsy.crawl.request_builder import Jobs
from curtsy.crawl.results import UNSENT, Finished
from curtsy.fetch.http import HttpFetcher
from curtsy.fetch.transfer import Done, FetchJob, Started
from curtsy.frontier.messages import Release
from curtsy.html.links import sitemap
from curtsy.html.reading import ParseTimeout, within
from curtsy.rules.politeness import effect
from curtsy.rules.urls import fingerprint, origin
from curtsy.services.reader_process import aside
from curtsy.store.warc import WarcRecord

Headers = tuple[tuple[str, str], ...]
#: of a header's name: what is true of a body as it was sent, or of the way it came
_OF_BODY = re.compile(r"content-|transfer-|connection$|keep-alive$|trailer$|upgrade$|te$", re.IGNORECASE)
#: a host whose crawl is another process's, or nobody's, is not taken again for so long
_FOREIGN_MS = 2_000
#: more hosts than anybody reads of
_MAX_TROUBLED = 10_000


@dataclass(slots=True)
class _Flight:
    lease: Lease
    context: CrawlContext | None
    previous: Page | None = None


class Fetcher(Protocol):
    """Whatever asks: libcurl, or a browser. Every job ends in one `done`, on the loop."""

    def start(self, job: FetchJob, done: Done, started: Started | None = None) -> None: ...

    def cancel(self, job_id: int, unsent_only: bool = False) -> None: ...

    def drop_idle(self, older_than_s: float) -> int: ...

    async def close(self) -> None: ...


class Renderer(Fetcher, Protocol):
    """One that needs a program beside it."""

    @property
    def trouble(self) -> str:
        """Why that program does not start, after some tries; else nothing."""
        ...


class InFlight:
    """One per process. `back` and `starts` wait for the next exchange with the frontier; `on_back` tells of them."""

    def __init__(
        self, settings: Settings, fetcher: HttpFetcher, crawl_cache: CrawlCache, host_policy: HostPolicy,
        groups: CommitQueue, stored: Callable[[Page], Awaitable[WarcRecord | None]], on_back: Callable[[], None],
        browser: Callable[[], Fetcher],
    ) -> None:  # fmt: skip
        self._settings, self._fetcher, self._crawl_cache = settings, fetcher, crawl_cache
        self._host_policy, self._groups = host_policy, groups
        #: for pages that wait for one: made when the first of them is started
        self._browser = browser
        #: reads the stored response of a page
        self._stored = stored
        self._on_back = on_back
        self._jobs = Jobs(settings)
        self._rng = random.Random()
        self.under_way: dict[int, _Flight] = {}
        #: slots on their way back, with what they brought
        self.back: list[tuple[Release, Finished | None]] = []
        #: (fence, boot time) of requests that have begun, where the frontier waits to hear of it
        self.starts: list[tuple[int, float]] = []
        #: hosts that are left alone because of a fault, with it and until when by the boot clock
        self.troubled: dict[str, tuple[str, float]] = {}
        #: when the last request ended that was sent
        self.last_end = boot()
        #: stored bodies being read
        self.reading = 0
        self.tasks: set[asyncio.Task[None]] = set()
        #: one heavy page is read at a time
        self._aside = asyncio.Lock()

    def begin(self) -> None:
        """A run begins: nothing of an earlier one is under way."""
        self.under_way.clear()
        self.back.clear()
        self.starts.clear()
        self.reading = 0

    @property
    def leases(self) -> list[Lease]:
        return [flight.lease for flight in self.under_way.values()]

    def of_lane(self, lane: Lane) -> int:
        """How many of that lane."""
        return sum(flight.lease.lane is lane for flight in self.under_way.values()) if self.under_way else 0

    def take(self) -> tuple[list[tuple[Release, Finished | None]], list[tuple[int, float]]]:
        """What is to be told in the next exchange."""
        back, self.back = self.back, []
        starts, self.starts = self.starts, []
        return back, starts

    def cancel_all(self, *, unsent_only: bool = False) -> None:
        for fence, flight in list(self.under_way.items()):
            self._fetcher_of(flight.lease).cancel(fence, unsent_only=unsent_only)

    def break_off(self, crawls: set[int]) -> None:
        """They were paused or have ended: of what is under way only that goes on whose bytes have left."""
        for fence, flight in [
            (fence, flight) for fence, flight in self.under_way.items() if flight.lease.crawl in crawls
        ]:
            self._fetcher_of(flight.lease).cancel(fence, unsent_only=True)

    def _fetcher_of(self, lease: Lease) -> Fetcher:
        return self._fetcher if lease.entry.kind is not Kind.BROWSER else self._browser()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Work beside the loop."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # Starting

    def start(self, lease: Lease, previous: Page | None) -> None:
        entry = lease.entry
        if not self._crawl_cache.may_run(lease.crawl):
            self.give_back(lease, _FOREIGN_MS if lease.crawl in self._crawl_cache.foreign else 0)
            return
        if entry.kind is Kind.ROBOTS:
            if self._host_policy.denies(lease.host):
                done = results.unasked_robots(lease, "denied", boot())
                self._bring(done, Release(lease=lease, started=None, ended=boot(), hold=entry.chain is None))
                return
            self.under_way[lease.fence] = _Flight(lease, None)
            self._fetcher.start(self._jobs.for_robots(lease), self._done)
            return
        context = self._crawl_cache.contexts[lease.crawl]
        rules = self._crawl_cache.rules.get(origin(entry.url))
        if rules is None:
            # Its rules vanished between lease and reading: nothing is sent without them.
            self.give_back(lease)
            return
        if self._host_policy.denies(lease.host):
            self._skip(lease, "denied")
            return
        if rules[2] == "denied":
            # Not any more, but its rules are to be asked for first.
            self.give_back(lease, wait_ms=1000)
            return
        if rules[2] == Fault.FORBIDDEN_ADDRESS:
            self._skip(lease, rules[2])
            return
        if not rules[1].allows(entry.url, self._settings.agent):
            self._skip(lease, "robots")
            return
        if context.auto_render and entry.kind is Kind.PAGE and self._crawl_cache.goes_to_browser(lease):
            self._settle_unsent(lease, results.for_browser(lease))
            return
        # Only the first try: if the stored body cannot be read, the next one gets it from the site.
        job = self._jobs.for_url(lease, context, previous if not entry.attempts else None)
        self.under_way[lease.fence] = _Flight(lease, context, previous)
        if entry.kind is Kind.BROWSER:
            # Its start is not reported: nobody else is sent to the host while the visit lasts.
            self._browser().start(job, self._done)
            return
        self._fetcher.start(job, self._done, self._started if lease.per_host > 1 else None)

    def give_back(self, lease: Lease, wait_ms: int = 0) -> None:
        release = Release(lease=lease, started=None, ended=boot(), url_back=True, wait_ms=wait_ms)
        self.back.append((release, None))
        self._on_back()

    def _skip(self, lease: Lease, reason: str) -> None:
        """Nothing is sent: the turn goes back, the URL is settled."""
        self._settle_unsent(lease, results.not_sent(lease, reason))

    def _settle_unsent(self, lease: Lease, done: Finished) -> None:
        self._groups.hold(done)
        self.back.append((Release(lease=lease, started=None, ended=boot()), done))
        self._on_back()

    # Ending

    def _started(self, fence: int, at: float) -> None:
        self.starts.append((fence, at))
        asyncio.get_running_loop().call_soon(self._on_back)

    def _done(self, fence: int, outcome: Outcome) -> None:
        """A fetch ended: its slot goes back with the next exchange, its result into the group."""
        flight = self.under_way.pop(fence)
        lease = flight.lease
        if outcome.ended > lease.valid_until:
            # Only a process that was stopped sees this; the transfer itself was limited by the slot.
            outcome = replace(outcome, ended=max(lease.valid_until, outcome.started or 0.0))
        if outcome.started is None and outcome.fault in UNSENT:
            self.give_back(lease, wait_ms=250)
            return
        self.last_end = boot()
        if lease.entry.kind is Kind.ROBOTS:
            done = results.of_robots(lease, outcome, self._settings, self._rng)
            self._bring(done, done.release(hold=lease.entry.chain is None))
            return
        assert flight.context is not None
        count(f"status_{outcome.status // 100}xx" if outcome.status else "no_answer")
        _measure(outcome)
        asked = lease.entry.kind is Kind.PAGE and flight.previous is not None and not lease.entry.attempts
        if outcome.status == 304 and asked and outcome.fault is None:
            self._unchanged(flight, outcome)
            return
        done = results.of_url(lease, outcome, flight.context, self._settings, self._rng, flight.previous)
        if done.needed_browser is not None:
            self._crawl_cache.learn(lease.host, done.needed_browser)
        self._offer_sitemaps(done, flight.context)
        self._bring(done, done.release())
        if not done.complete:
            self.reading += 1
            self.spawn(self._read_heavy(flight, done) if done.heavy else self._read_long(done, flight.context))

    def _note_trouble(self, done: Finished) -> None:
        host, effect_, outcome = done.lease.host, done.effect, done.outcome
        if effect_ is None or not effect_.block_ms or outcome is None:
            self.troubled.pop(host, None)
        elif len(self.troubled) < _MAX_TROUBLED:
            fault = outcome.fault.value if outcome.fault else f"status {outcome.status}"
            self.troubled[host] = fault, boot() + effect_.block_ms / 1000

    def _bring(self, done: Finished, release: Release) -> None:
        if self.troubled or done.effect is not None:
            self._note_trouble(done)
        self._groups.hold(done)
        self.back.append((release, done))
        self._on_back()

    def _offer_sitemaps(self, done: Finished, context: CrawlContext) -> None:
        where = origin(done.lease.entry.url)
        rules = self._crawl_cache.rules.get(where)
        if rules is not None and rules[1].sitemaps:
            done.offers = where
            done.links += results.sitemaps_of(rules[1], done.lease.entry.url, context)

    def _unchanged(self, flight: _Flight, outcome: Outcome) -> None:
        """304: the stored body is read again for its links; the slot does not wait for that."""
        lease = flight.lease
        done = Finished(
            lease=lease, fp=fingerprint(lease.entry.url), decision=Decision(action=Action.DONE, reason="not_modified"),
            outcome=outcome, previous=flight.previous,
        )  # fmt: skip
        done.effect = effect(outcome, lease.failures, lease.adaptive_ms, self._settings, rng=self._rng)
        done.complete, done.answered = False, outcome.status
        self._bring(done, done.release())
        self.reading += 1
        self.spawn(self._read_stored(flight, done))

    async def _read_stored(self, flight: _Flight, done: Finished) -> None:
        assert flight.previous is not None
        assert flight.context is not None
        assert done.outcome is not None
        try:
            record = await self._stored(flight.previous)
            if record is None:
                raise LookupError("there is none")
            headers = _renewed(record.headers, done.outcome.headers)
            stored = replace(done.outcome, status=200, headers=headers, body=record.body)
            again = results.of_url(done.lease, stored, flight.context, self._settings, self._rng, flight.previous)
            if again.heavy:
                again = await self._heavy(flight, again)
            done.take(again)
        except Exception as error:
            log("stored_body_unreadable", level="warning", url=done.lease.entry.url, error=str(error))
            results.ask_again(done, "stored_body_unreadable")
        finally:
            self.reading -= 1
            self._offer_sitemaps(done, flight.context)
            done.complete = True
            if done.returned:
                self._groups.add(done)

    async def _read_heavy(self, flight: _Flight, done: Finished) -> None:
        """A page that may keep the parser for long: others have their turn meanwhile."""
        assert flight.context is not None
        try:
            done.take(await self._heavy(flight, done))
            if done.needed_browser is not None:
                self._crawl_cache.learn(done.lease.host, done.needed_browser)
            self._offer_sitemaps(done, flight.context)
        except Exception as error:
            # Nothing was learnt of it: the lease runs out, and the URL counts as one that harms its worker.
            count("unexpected_errors")
            log("page_unreadable", level="error", url=done.lease.entry.url, error=repr(error))
            self._groups.held.pop(done.lease.fence, None)
        else:
            done.complete = True
            if done.returned:
                self._groups.add(done)
                self._on_back()
        finally:
            self.reading -= 1

    async def _heavy(self, flight: _Flight, done: Finished) -> Finished:
        """The page with what a process beside this one read of it."""
        context, outcome, lease = flight.context, done.outcome, done.lease
        assert context is not None
        assert outcome is not None
        settings = self._settings
        given = (outcome.body, outcome.header("content-type"), lease.entry.url, settings.agent, context.auto_render)
        count("heavy_pages")
        try:
            async with self._aside:
                reading = await in_thread(aside.read, settings.parse_timeout_s, *given)
        except ParseTimeout:
            results.give_up(done, settings)
            return done
        return results.of_url(lease, outcome, context, settings, self._rng, flight.previous, reading)

    async def _read_long(self, done: Finished, context: CrawlContext) -> None:
        """A long sitemap: others have their turn between the slices of its links."""
        assert done.outcome is not None
        try:
            # It may be fifty times as long as a page.
            limit_s = self._settings.parse_timeout_s * (1 + len(done.outcome.body) / 1e6)
            content = await in_thread(within, limit_s, sitemap, done.outcome.body, results.MAX_SITEMAP_URLS)
            for _ in results.sitemap_links(done, context, content):
                await asyncio.sleep(0)
        except ParseTimeout:
            results.give_up(done, self._settings)
            done.complete = True
            if done.returned:
                self._groups.add(done)
                self._on_back()
        except Exception as error:
            # Half of its links are not its links: the lease runs out, and the URL counts as one that harms its worker.
            count("unexpected_errors")
            log("sitemap_unreadable", level="error", url=done.lease.entry.url, error=repr(error))
            self._groups.held.pop(done.lease.fence, None)
        else:
            done.complete = True
            if done.returned:
                self._groups.add(done)
                self._on_back()
        finally:
            self.reading -= 1


def _renewed(stored: Headers, answered: Headers) -> Headers:
    """The headers of a 304 take the place of those that came with the body (RFC 9110 15.4.5), except what describes the
    body or the connection. Cookies are set by the response that comes, not by the one that is stored."""
    fresh = tuple(pair for pair in answered if not _OF_BODY.match(pair[0]))
    names = {"set-cookie", *(name.lower() for name, _ in fresh)}
    return (*(pair for pair in stored if pair[0].lower() not in names), *fresh)


def _measure(outcome: Outcome) -> None:
    metrics.inc("curtsy_pages_total", status=f"{outcome.status // 100}xx" if outcome.status else "none")
    if outcome.started is not None:
        metrics.observe("curtsy_fetch_seconds", outcome.ended - outcome.started)
