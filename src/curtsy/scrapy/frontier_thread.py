"""The thread between Scrapy and the frontier: stores requests, takes slots, and provides requests that are ready.

Scrapy does not wait, so all waiting happens here, on a separate event loop. Each round stores new requests before it
settles their parents (a crash in between loses nothing), releases slots, takes slots of hosts with work, and provides
their next requests.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from curtsy.core import clock
from curtsy.core.clock import boot
from curtsy.core.errors import StoreUnavailable
from curtsy.core.loop_thread import LoopThread
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.core.threads import in_thread
from curtsy.crawl.external_slots import Denied, ExternalSlot, ExternalSlots, Report, open_external_slots
from curtsy.store import external_requests
from curtsy.store.engine import read
from curtsy.store.external_requests import Held, NewRequest, Settled

T = TypeVar("T")

#: the host of requests without a server: data:, file:
NO_HOST = "nobody.invalid"
#: a request is leased for this long, unless it is renewed
_HOLD_S = 30.0
_RENEW_S = 10.0
#: interval of the queries for requests that other processes added or abandoned
_LOOK_S = 1.0
_IDLE_S = 0.25
#: a slot with less time left is not used
_LEAST_S = 2.0


@dataclass(slots=True)
class LocalRequest:
    """A request that cannot be serialized: it exists only in this process."""

    host: str
    request: Any


@dataclass(slots=True)
class Ready:
    """A request that may be downloaded now."""

    slot: ExternalSlot
    held: Held | None = None
    local: LocalRequest | None = None


@dataclass(slots=True)
class _Inbox:
    adds: list[NewRequest] = field(default_factory=list)
    settled: list[Settled] = field(default_factory=list)
    reports: list[Report] = field(default_factory=list)


class FrontierThread:
    """One per spider. Public methods are called from Scrapy's thread."""

    def __init__(
        self, settings: Settings, name: str, capacity: int, notify: Callable[[], None],
        delays: Mapping[str, float] | None = None,
    ) -> None:  # fmt: skip
        self.settings, self._name, self._capacity = settings, name, capacity
        #: host name -> seconds, for hosts with a longer delay
        self._delays = dict(delays or {})
        #: called from the thread when Scrapy has something to do
        self._notify = notify
        self._holder = os.urandom(8).hex()
        self._lock = threading.Lock()
        self._inbox = _Inbox()
        #: number of changes received, and stored
        self._received = self._written = 0
        self.ready: deque[Ready] = deque()
        self._locals: dict[str, deque[LocalRequest]] = {}
        self._active: set[int] = set()
        self._hosts: set[str] = set()
        self._due: dict[str, float] = {}
        self._pending = True
        self._closing = self._ended = False
        self.duplicates = 0
        self.error: BaseException | None = None
        self._opened: Future[None] = Future()
        self._wake: asyncio.Event | None = None
        self._slots: ExternalSlots | None = None
        self._run = 0
        self._thread = LoopThread("curtsy-frontier", self._work, on_end=self._over)

    # From Scrapy's thread

    def open(self) -> None:
        self._thread.start()
        self._opened.result()

    def add(self, row: NewRequest) -> None:
        with self._lock:
            self._inbox.adds.append(row)
            self._received += 1
        self._wake_up()

    def add_local(self, local: LocalRequest) -> None:
        with self._lock:
            self._locals.setdefault(local.host, deque()).append(local)
        self._wake_up()

    def settle(self, row: Settled) -> None:
        with self._lock:
            self._inbox.settled.append(row)
            self._received += 1
        self._wake_up()

    def report(self, report: Report) -> None:
        with self._lock:
            self._inbox.reports.append(report)
        self._wake_up()

    @property
    def has_pending(self) -> bool:
        """Whether requests are open or held, in this process or another one, as of the last query."""
        with self._lock:
            return self._received != self._written or bool(self.ready or self._locals) or self._pending

    def take(self, host: str) -> Future[ExternalSlot]:
        """A slot for a download that was not scheduled: robots.txt, an inline request."""
        assert self._slots is not None
        return self._thread.submit(self._slots.take(host, self._delay_s(host)))

    def close(self, *, ended: bool) -> None:
        """Return held requests; `ended`: the run is over if no process has requests of it."""
        self._closing = True
        self._ended = ended
        self._wake_up()
        self._thread.stop(30)

    def _wake_up(self) -> None:
        if self._wake is not None:
            self._thread.call(self._wake.set)

    # In the thread

    def _over(self, error: BaseException | None) -> None:
        if error is None:
            return
        self.error = error
        if not self._opened.done():
            self._opened.set_exception(error)
        else:
            log("scrapy_frontier_failed", level="error", error=repr(error))
            self._notify()

    async def _work(self) -> None:
        self._wake = asyncio.Event()
        async with open_external_slots(self.settings) as slots:
            self._slots = slots
            self._run = await self._store(external_requests.begin, self._name, clock.now_ms())
            self._opened.set_result(None)
            look_at = renew_at = 0.0
            while not self._closing:
                self._wake.clear()
                now = boot()
                if now >= renew_at:
                    renew_at = now + _RENEW_S
                    await self._store(external_requests.renew, list(self._active), self._holder, _until_ms())
                await self._write()
                if now >= look_at:
                    look_at = now + _LOOK_S
                    await self._look()
                await self._hand_out()
                await self._sleep()
            await self._end()

    async def _store(self, fn: Callable[..., T], *args: Any) -> T:
        """Waits for an unavailable database; changes stay in memory meanwhile."""
        assert self._slots is not None
        store = self._slots.services.store
        while True:
            try:
                return await in_thread(store.run, fn, *args)
            except StoreUnavailable as error:
                log("scrapy_store_unavailable", level="warning", error=str(error))
                await asyncio.sleep(1.0)

    async def _write(self) -> None:
        with self._lock:
            inbox, self._inbox = self._inbox, _Inbox()
            received = self._received
        if inbox.adds or inbox.settled:
            fresh = await self._store(_write, self._run, inbox.adds, inbox.settled, self._holder, clock.now_ms())
            self.duplicates += len(inbox.adds) - fresh
            self._hosts.update(row.host for row in inbox.adds)
            self._active.difference_update(row.n for row in inbox.settled)
        if inbox.reports:
            assert self._slots is not None
            await self._slots.give_back(inbox.reports)
            # The next time of the host is queried again when it has work.
            for report in inbox.reports:
                self._due.pop(report.slot.host, None)
        if inbox.adds or inbox.settled:
            self._pending = await self._has_pending()
        with self._lock:
            self._written = received
        if not self._pending:
            self._notify()

    async def _look(self) -> None:
        """Finds requests that other processes added, or abandoned when they died."""
        await self._store(external_requests.reopen_expired, self._run, clock.now_ms())
        assert self._slots is not None
        self._hosts.update(await read(self._slots.services.store, external_requests.open_hosts, self._run))
        pending = await self._has_pending()
        if self._pending and not pending:
            self._notify()
        self._pending = pending

    async def _has_pending(self) -> bool:
        assert self._slots is not None
        return await read(self._slots.services.store, external_requests.has_pending, self._run)

    async def _hand_out(self) -> None:
        """Takes slots of hosts with work, then their requests. Without a request the slot is released."""
        now = boot()
        room = self._capacity - len(self._active) - len(self.ready)
        hosts = [h for h in {*self._hosts, *self._locals} if self._due.get(h, 0.0) <= now][: max(0, room)]
        if not hosts:
            return
        found = await asyncio.gather(*(self._try(host) for host in hosts))
        slots = {slot.host: slot for slot in found if slot is not None}
        if not slots:
            return
        local = self._take_locals(slots)
        wanted = [host for host in slots if host not in local]
        rows = await self._store(external_requests.take, self._run, wanted, self._holder, _until_ms()) if wanted else []
        got = {row.host: row for row in rows}
        self._active.update(row.n for row in rows)
        unused = [host for host in wanted if host not in got]
        self._hosts.difference_update(unused)
        if unused:
            assert self._slots is not None
            await self._slots.give_back([Report(slot=slots[h], started=None, ended=boot()) for h in unused])
        with self._lock:
            self.ready.extend(Ready(slot=slots[host], held=row) for host, row in got.items())
            self.ready.extend(Ready(slot=slots[host], local=one) for host, one in local.items())
        if got or local:
            self._notify()

    def _take_locals(self, slots: dict[str, ExternalSlot]) -> dict[str, LocalRequest]:
        found = {}
        with self._lock:
            for host in slots:
                if waiting := self._locals.get(host):
                    found[host] = waiting.popleft()
                    if not waiting:
                        del self._locals[host]
        return found

    async def _try(self, host: str) -> ExternalSlot | None:
        assert self._slots is not None
        try:
            slot, wait_s = await self._slots.try_take(host, self._delay_s(host))
        except Denied as error:
            await self._refuse(host, str(error))
            return None
        self._due[host] = boot() + wait_s
        return slot

    def _delay_s(self, host: str) -> float:
        if host == NO_HOST:
            return 0.0
        return max(self.settings.delay_s, self._delays.get(host.partition(":")[0], 0.0))

    async def _refuse(self, host: str, why: str) -> None:
        """The requests of a denied host become dead letters."""
        held = await self._store(external_requests.take, self._run, [host], self._holder, _until_ms())
        if not held:
            self._hosts.discard(host)
        letters = [Settled(n=row.n, state="failed", cause="denied", detail=why) for row in held]
        await self._store(external_requests.settle, letters, self._holder, clock.now_ms())
        with self._lock:
            self._locals.pop(host, None)

    async def _sleep(self) -> None:
        now = boot()
        wait_s = _IDLE_S
        if len(self._active) + len(self.ready) < self._capacity:
            soonest = min((self._due.get(h, 0.0) for h in {*self._hosts, *self._locals}), default=now + _IDLE_S)
            wait_s = min(_IDLE_S, max(0.003, soonest - now))
        assert self._wake is not None
        try:
            await asyncio.wait_for(self._wake.wait(), wait_s)
        except TimeoutError:
            pass

    async def _end(self) -> None:
        """Releases unused slots, then held requests."""
        with self._lock:
            unused = [Report(slot=one.slot, started=None, ended=boot()) for one in self.ready]
            self.ready.clear()
        assert self._slots is not None
        await self._slots.give_back(unused)
        await self._write()
        await self._store(external_requests.give_back, self._run, self._holder)
        if self._ended:
            await self._store(external_requests.end, self._run, clock.now_ms())


def _write(tx: Any, run: int, adds: list[NewRequest], settled: list[Settled], holder: str, now_ms: int) -> int:
    fresh = external_requests.add(tx, run, adds, now_ms)
    external_requests.settle(tx, settled, holder, now_ms)
    return len(fresh)


def is_usable(slot: ExternalSlot) -> bool:
    return slot.left_s >= _LEAST_S


def _until_ms() -> int:
    return clock.now_ms() + int(_HOLD_S * 1000)
