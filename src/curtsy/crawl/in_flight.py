"""Leases in flight in one process: checked, fetched, and returned with their results.

Nothing is sent for a lease whose crawl does not run, whose host is denied or whose robots rules forbid it. Pages are
parsed in the fetch callbacks.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

from curtsy.content.documents.model import FileText
from curtsy.content.reading import Reading
from curtsy.core import metrics, tracing
from curtsy.core.clock import boot
from curtsy.core.model import Kind, Lane, Lease, Page
from curtsy.core.observe import count
from curtsy.core.outcome import Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.crawl import crash_record, results
from curtsy.crawl.commit_queue import CommitQueue
from curtsy.crawl.crawl_cache import CrawlCache
from curtsy.crawl.host_policy import HostPolicy
from curtsy.crawl.request_builder import RequestBuilder
from curtsy.crawl.results import UNSENT, Result
from curtsy.crawl.slow_reading import RequestUnderWay, SlowReading
from curtsy.crawl.url_runs import Follower, UrlRuns
from curtsy.fetch.document_limits import DocumentLimits
from curtsy.fetch.http import HttpFetcher
from curtsy.fetch.transfer import Done, FetchJob, Started
from curtsy.frontier.messages import Release
from curtsy.rules.politeness import FINE, is_fine
from curtsy.rules.robots_policy import DENIED, refusal
from curtsy.rules.urls import origin
from curtsy.store.warc import WarcRecord

#: a host whose crawl this process does not serve is not leased again for this long
_FOREIGN_MS = 2_000
_MAX_TROUBLED = 10_000
#: seconds for which a host counts as active after its last request; the default delay is 1 s
_RECENT_S = 5.0


class Fetcher(Protocol):
    """Sends requests: with libcurl or a browser. Every job ends in one call of `done`, on the loop."""

    def start(self, job: FetchJob, done: Done, started: Started | None = None) -> None: ...

    def cancel(self, job_id: int, unsent_only: bool = False) -> None: ...

    def drop_idle(self, older_than_s: float) -> int: ...

    async def close(self) -> None: ...


class InFlight:
    """One per process. `back` and `starts` wait for the next exchange with the frontier; `on_back` announces them."""

    def __init__(
        self, *, settings: Settings, fetcher: HttpFetcher, crawl_cache: CrawlCache, host_policy: HostPolicy,
        groups: CommitQueue, stored: Callable[[Page], Awaitable[WarcRecord | None]], on_back: Callable[[], None],
        browser: Callable[[], Fetcher], documents: DocumentLimits, may_continue: Callable[[], bool],
    ) -> None:  # fmt: skip
        """`may_continue`: the process takes more work, so runs of URLs continue."""
        self._settings, self._fetcher, self._crawl_cache = settings, fetcher, crawl_cache
        self._host_policy, self._groups = host_policy, groups
        #: starts the browser when the first page needs it
        self._browser = browser
        self._on_back = on_back
        self._documents = documents
        self._requests = RequestBuilder(settings, documents)
        self._rng = random.Random()
        self.under_way: dict[int, RequestUnderWay] = {}
        self.runs = UrlRuns(may_continue)
        #: slots of hosts without a delay in `back`: they are idle until the next exchange
        self.idle_slots = 0
        #: which URL is to blame if this process crashes
        self._record = crash_record.current()
        #: URLs that could not be read because of an internal error
        self.unreadable: set[int] = set()
        #: slots that are being returned; True: with a result that waits for the times of its request
        self.back: list[tuple[Release, bool]] = []
        #: (fence, boot time) of requests that have begun, where the frontier needs to know
        self.starts: list[tuple[int, float]] = []
        #: hosts that are blocked because of a fault: the fault, and until when by the boot clock
        self.troubled: dict[str, tuple[str, float]] = {}
        #: host -> when it last asked for a pause, or failed; of hosts with several slots
        self._blocked_at: dict[str, float] = {}
        #: when the last request that was sent ended
        self.last_end = boot()
        #: hosts whose last request ended a moment ago, and when
        self._recent: dict[str, float] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self._slow = SlowReading(
            settings, groups, documents, self._result, stored, crawl_cache.learn, on_back, self.unreadable
        )

    def begin(self) -> None:
        """A run begins: nothing of an earlier one is in flight."""
        self.under_way.clear()
        self.runs.clear()
        self._blocked_at.clear()
        self._recent.clear()
        self.back.clear()
        self.idle_slots = 0
        self.starts.clear()
        self.unreadable.clear()
        self._slow.begin()

    @property
    def reading(self) -> int:
        """Number of pages, documents and sitemaps that are being read outside the event loop."""
        return self._slow.reading

    @property
    def leases(self) -> list[Lease]:
        return [*(request.lease for request in self.under_way.values()), *self.runs.leases]

    def of_lane(self, lane: Lane) -> int:
        """How many of that lane."""
        return sum(request.lease.lane is lane for request in self.under_way.values()) if self.under_way else 0

    def take(self) -> tuple[list[tuple[Release, bool]], list[tuple[int, float]]]:
        """What the next exchange sends to the frontier. If that fails, `untake` keeps it for the following one."""
        back, self.back = self.back, []
        self.idle_slots = 0
        starts, self.starts = self.starts, []
        return back, starts

    def untake(self, back: list[tuple[Release, bool]], starts: list[tuple[int, float]]) -> None:
        self.back, self.starts = back + self.back, starts + self.starts

    def send_effect_again(self, result: Result) -> None:
        """A new epoch does not know the effect of this result, whose slot was already returned."""
        self.back.append((result.release(), False))

    def stop_runs(self, concerns: Callable[[Lease], bool] = lambda _lease: True) -> None:
        """Returns the URLs that wait for others to end. The requests in flight end with their slots."""
        for lease in self.runs.stop(concerns):
            self._give_url_back(lease)

    def cancel_all(self, *, unsent_only: bool = False) -> None:
        self.stop_runs()
        for fence, request in list(self.under_way.items()):
            self._fetcher_of(request.lease).cancel(fence, unsent_only=unsent_only)

    def cancel_unsent(self, concerns: Callable[[Lease], bool]) -> None:
        """Cancels requests that have sent nothing yet: their crawl was paused, or their host asked for a pause."""
        self.stop_runs(concerns)
        for fence, request in list(self.under_way.items()):
            if concerns(request.lease):
                self._fetcher_of(request.lease).cancel(fence, unsent_only=True)

    def _fetcher_of(self, lease: Lease) -> Fetcher:
        return self._fetcher if lease.entry.kind is not Kind.BROWSER else self._browser()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs a task next to the crawl loop."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    # Starting

    def start(self, lease: Lease, previous: Page | None) -> None:
        entry = lease.entry
        if self._blocked_at and self._blocked_at.get(lease.host, 0.0) > lease.asked_at:
            self.give_back(lease)  # it was granted before its host asked for a pause
            return
        if not self._crawl_cache.may_run(lease.crawl):
            self.give_back(lease, _FOREIGN_MS if lease.crawl in self._crawl_cache.foreign else 0)
            return
        if entry.kind is Kind.ROBOTS:
            if self._host_policy.denies(lease.host):
                unasked = results.unasked_robots(lease, DENIED, boot())
                self._bring(unasked, Release(lease=lease, started=None, ended=boot(), hold=entry.chain is None))
                return
            self.under_way[lease.fence] = RequestUnderWay(lease, None)
            self._record.begin(lease.fence)
            self._fetcher.start(self._requests.for_robots(lease), self._completed)
            return
        context = self._crawl_cache.contexts[lease.crawl]
        rules = self._crawl_cache.rules.get(origin(entry.url))
        if rules is None:
            # Its rules disappeared between the lease and the read: nothing is sent without them.
            self.give_back(lease)
            return
        if self._host_policy.denies(lease.host):
            self._skip(lease, DENIED)
            return
        if rules.verdict == DENIED:
            # The host is no longer denied, but its robots.txt must be fetched first.
            self.give_back(lease, wait_ms=1000)
            return
        if (reason := refusal(rules.verdict, rules.robots, entry.url, self._settings.agent)) is not None:
            self._skip(lease, reason)
            return
        if context.auto_render and entry.kind is Kind.PAGE and self._crawl_cache.goes_to_browser(lease):
            self._settle_unsent(lease, results.for_browser(lease))
            return
        # Only the first attempt is conditional: if the stored body cannot be read, the next one fetches the page.
        job = self._requests.for_url(lease, context, previous if not entry.attempts else None)
        self.under_way[lease.fence] = RequestUnderWay(lease, context, previous)
        self._record.begin(lease.fence)
        if entry.kind is Kind.BROWSER:
            # Its start is not reported: the host has no other request while the visit lasts.
            self._browser().start(job, self._completed)
            return
        # Without a delay, nothing counts from a start.
        reported = lease.per_host > 1 and lease.delay_ms > 0
        self._fetcher.start(job, self._completed, self._started if reported else None)

    def give_back(self, lease: Lease, wait_ms: int = 0) -> None:
        self._end_run(lease)
        self._give_url_back(lease, wait_ms)

    def _give_url_back(self, lease: Lease, wait_ms: int = 0) -> None:
        release = Release(lease=lease, started=None, ended=boot(), url_back=True, wait_ms=wait_ms)
        self._return(release, has_result=False)

    def _end_run(self, lease: Lease) -> None:
        """The URLs that follow are returned before the slot."""
        for follower in self.runs.rest_after(lease):
            self._give_url_back(follower)

    def _next_of_run(self, lease: Lease) -> Follower | None:
        """The URL that the slot passes to; None: its run ends here."""
        if not self.runs:
            return None
        follower = self.runs.next_after(lease)
        if follower is None:
            self._end_run(lease)
        return follower

    def _return(self, release: Release, *, has_result: bool) -> None:
        self.back.append((release, has_result))
        self.idle_slots += release.lease.delay_ms == 0 and not release.successor
        self._on_back()

    def _skip(self, lease: Lease, reason: str) -> None:
        """Nothing is sent: the slot is returned, and the URL is settled."""
        self._settle_unsent(lease, results.not_sent(lease, reason))

    def _settle_unsent(self, lease: Lease, result: Result) -> None:
        self._groups.hold(result)
        follower = self._next_of_run(lease)
        successor = follower[0].fence if follower is not None else 0
        self._return(Release(lease=lease, started=None, ended=boot(), successor=successor), has_result=True)
        if follower is not None:
            self.start(*follower)

    # Ending

    def _started(self, fence: int, at: float) -> None:
        self.starts.append((fence, at))
        asyncio.get_running_loop().call_soon(self._on_back)

    def _completed(self, fence: int, outcome: Outcome) -> None:
        record = self._record
        record.end(fence)
        record.begin_reading(fence)
        try:
            self._done(fence, outcome)
        except Exception:
            self.unreadable.add(fence)
            raise
        finally:
            record.end_reading()

    def _done(self, fence: int, outcome: Outcome) -> None:
        """A fetch ended: its slot is returned with the next exchange, its result joins a group."""
        request = self.under_way.pop(fence)
        lease = request.lease
        self._note_document(fence, outcome)
        if outcome.ended > lease.valid_until:
            # Happens only to a process that was suspended: the slot limits the transfer itself.
            outcome = replace(outcome, ended=max(lease.valid_until, outcome.started or 0.0))
        if outcome.started is None and outcome.fault in UNSENT:
            self.give_back(lease, wait_ms=250)
            return
        self.last_end = self._recent[lease.host] = boot()
        if lease.entry.kind is Kind.ROBOTS:
            result = results.of_robots(lease, outcome, self._settings, self._rng)
            self._bring(result, result.release(hold=lease.entry.chain is None))
            return
        assert request.context is not None
        _measure(outcome, lease.delay_ms)
        if tracing.active is not None:
            tracing.active.fetched(request.context.crawl, lease.entry.url, outcome)
        passed_on = lease.delay_ms == 0 and self._pass_on(request, outcome)
        asked = lease.entry.kind is Kind.PAGE and request.previous is not None and not lease.entry.attempts
        if outcome.status == 304 and asked and outcome.fault is None:
            self._unchanged(request, outcome, passed_on)
            return
        result = self._result(request, outcome)
        if result.needed_browser is not None:
            self._crawl_cache.learn(lease.host, result.needed_browser)
        self._bring(result, None if passed_on else result.release())
        if not result.is_complete:
            self.spawn(self._slow.read(request, result))

    def _pass_on(self, request: RequestUnderWay, outcome: Outcome) -> bool:
        """Starts the next URL of the run before this page is parsed. False: the slot is returned with the result."""
        lease = request.lease
        assert request.context is not None
        if outcome.started is not None:
            self.runs.note(outcome.ended - outcome.started)
        if not self.runs:
            return False
        if not is_fine(outcome, lease.adaptive_ms):
            self.stop_runs(lambda other: other.host == lease.host)
            return False
        # The next request must send the cookies that this answer sets.
        follower = None if request.context.crawl.cookies else self._next_of_run(lease)
        if follower is None:
            self._end_run(lease)
            return False
        successor = follower[0].fence
        release = Release(lease=lease, started=outcome.started, ended=outcome.ended, effect=FINE, successor=successor)
        self._return(release, has_result=True)
        self.start(*follower)
        self._fetcher.send_now()
        return True

    def _note_document(self, fence: int, outcome: Outcome) -> None:
        budget = self._documents.budget
        if outcome.fault is Fault.NO_ROOM:
            # Its size is unknown: assume a large one.
            budget.note(self._documents.max_bytes // 10)
        elif outcome.fault is None:
            budget.note(budget.held(fence) if budget.used else 0)
        if not outcome.body and budget.used:
            budget.free(fence)

    def _result(self, request: RequestUnderWay, outcome: Outcome, reading: Reading | FileText | None = None) -> Result:
        assert request.context is not None
        rules = self._crawl_cache.rules.get(origin(request.lease.entry.url))
        return results.of_url(
            request.lease, outcome, request.context, self._settings, self._rng, request.previous,
            rules.robots if rules is not None else None, reading,
        )  # fmt: skip

    def active_hosts(self, now: float) -> int:
        """Hosts with a request in flight now or a moment ago: between two requests a host rests for its delay."""
        self._recent = {host: ended for host, ended in self._recent.items() if now - ended < _RECENT_S}
        return len({lease.host for lease in self.leases} | self._recent.keys())

    def _note_trouble(self, result: Result) -> None:
        host, effect, outcome = result.lease.host, result.effect, result.outcome
        if effect is None or not effect.block_ms or outcome is None:
            self.troubled.pop(host, None)
            return
        if result.lease.per_host > 1:
            # Other slots of the host may be in use: requests that are not sent yet must wait.
            self._blocked_at[host] = boot()
            self.cancel_unsent(lambda lease: lease.host == host)
        if len(self.troubled) < _MAX_TROUBLED:
            fault = outcome.fault.value if outcome.fault else f"status {outcome.status}"
            self.troubled[host] = fault, boot() + effect.block_ms / 1000

    def _bring(self, result: Result, release: Release | None) -> None:
        """`release`: None if the slot has passed on."""
        if self.troubled or result.effect is not None:
            self._note_trouble(result)
        self._groups.hold(result)
        if release is not None:
            self._return(release, has_result=True)

    def _unchanged(self, request: RequestUnderWay, outcome: Outcome, passed_on: bool) -> None:
        """304: the stored body is read again for its links; the slot does not wait for that."""
        assert request.previous is not None
        result = results.unchanged(request.lease, outcome, self._settings, self._rng, request.previous)
        self._bring(result, None if passed_on else result.release())
        self.spawn(self._slow.read_stored(request, request.previous, result, outcome))

    def give_up_documents(self) -> None:
        """The run ends: documents that are not read yet are fetched again by another run."""
        self._slow.give_up_documents()


_BYTES = metrics.Counter("curtsy_response_bytes_total")
_FETCH, _DELAY = metrics.Histogram("curtsy_fetch_seconds"), metrics.Histogram("curtsy_delay_seconds")


@cache
def _class_of(status: int) -> tuple[str, metrics.Counter]:
    """The names under which responses of a status are counted."""
    if not status:
        return "no_answer", metrics.Counter("curtsy_responses_total", status="none")
    return f"status_{status // 100}xx", metrics.Counter("curtsy_responses_total", status=f"{status // 100}xx")


def _measure(outcome: Outcome, delay_ms: int) -> None:
    name, responses = _class_of(outcome.status)
    count(name)
    responses.inc()
    _BYTES.inc(len(outcome.body))
    if outcome.started is not None:
        _FETCH.observe(outcome.ended - outcome.started)
        _DELAY.observe(delay_ms / 1000)
