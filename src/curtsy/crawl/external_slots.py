"""Slots for external clients: a Scrapy spider, an Airflow task or a script takes a host's slot before it fetches.

No host gets two requests at once, or two within its delay, from crawls and external clients that share one frontier. An
`ExternalSlot` lasts as long as a slot, less a margin, and nothing may be sent after it. What the client reports when it
returns the slot (times, status, Retry-After) counts like a result of a crawl.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from curtsy.core.clock import boot
from curtsy.core.errors import CurtsyError, EpochLost, FrontierUnavailable, StoreUnavailable
from curtsy.core.model import Entry, Lane, Lease, Request, hot_value
from curtsy.core.observe import log
from curtsy.core.outcome import Fault, HostEffect, Outcome
from curtsy.core.settings import Settings
from curtsy.core.shutdown import StopFlag, end
from curtsy.core.threads import in_thread
from curtsy.crawl.host_policy import HostPolicy
from curtsy.crawl.maintenance import Maintenance
from curtsy.crawl.outages import Outages
from curtsy.frontier.messages import Release, Times
from curtsy.rules.politeness import effect
from curtsy.services import backends
from curtsy.services.backends import Services
from curtsy.services.epochs import send_hosts
from curtsy.store import requests

#: the kind in the request log
KIND = "g"
#: a client that waits for a slot checks again at least this often
_LONGEST_WAIT_S = 5.0


class Denied(CurtsyError):
    """The host is on the operator's deny list."""


class SlotExpired(CurtsyError):
    """The slot has expired: nothing may be sent with it."""


@hot_value()
class ExternalSlot:
    """A host's slot that an external client holds."""

    host: str
    fence: int
    shard: int
    #: in force for this slot
    delay_ms: int
    per_host: int
    #: boot clock: nothing may be sent after it
    valid_until: float

    @property
    def left_s(self) -> float:
        return self.valid_until - boot()

    def check(self) -> None:
        """Raises SlotExpired if there is no time left to send anything."""
        if self.left_s <= 0:
            raise SlotExpired(f"The slot of {self.host} has expired: take another one before the next request.")


@hot_value()
class Report:
    """What a client did with its slot. Times are the boot clock; `started` None: nothing was sent."""

    slot: ExternalSlot
    started: float | None
    ended: float
    url: str = ""
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    fault: Fault | None = None


class ExternalSlots:
    """One per process and loop; made by `open_external_slots`."""

    def __init__(self, services: Services) -> None:
        self.services, self.settings = services, services.settings
        self._frontier, self._store = services.frontier, services.store
        self._stop = StopFlag()
        self._maintenance = Maintenance(services.frontier, services.store, services.scans)
        self._outages = Outages(
            services.frontier, services.store, services.scans, self._stop, services.restart_server, lambda: None
        )
        self._host_policy = HostPolicy(services.frontier, services.store)
        self._maintaining: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._outages.persist(self._host_policy.refresh)
        self._maintenance.start()
        self._maintaining = asyncio.get_running_loop().create_task(self._maintain())

    async def stop(self) -> None:
        self._stop.now = self._stop.drain = True
        if self._maintaining is not None:
            await end([self._maintaining])
        await self._maintenance.stop()

    async def try_take(self, host: str, delay_s: float | None = None) -> tuple[ExternalSlot | None, float]:
        """A slot of the host, or None and the seconds to wait. `delay_s`: minimum delay; None: the setting's."""
        if self._host_policy.denies(host):
            raise Denied(f"The host {host} is on the deny list: send it no requests.")
        least_s = self.settings.delay_s if delay_s is None else delay_s
        try:
            before = boot()
            reply = await self._frontier.slot(host, least_s)
            if reply.wait_ms < 0:
                await send_hosts(self._frontier, self._store, {host})
                before = boot()
                reply = await self._frontier.slot(host, least_s)
        except EpochLost as error:
            await self._outages.recover(error)
            return None, 0.1
        except (FrontierUnavailable, StoreUnavailable) as error:
            log("slot_not_taken", level="warning", host=host, error=str(error))
            if isinstance(error, FrontierUnavailable):
                await self._outages.look_for_server(error)
            return None, 1.0
        if reply.fence is None:
            return None, max(0.005, reply.wait_ms / 1000)
        shard = self._frontier.shard_of(host).number
        return ExternalSlot(
            host=host, fence=reply.fence, shard=shard, delay_ms=reply.delay_ms, per_host=reply.per_host,
            valid_until=before + self.settings.slot_validity_s,
        ), 0.0  # fmt: skip

    async def take(self, host: str, delay_s: float | None = None) -> ExternalSlot:
        """Waits for a slot. If it is canceled while waiting, no slot stays taken."""
        while True:
            asking = asyncio.ensure_future(self.try_take(host, delay_s))
            try:
                slot, wait_s = await asyncio.shield(asking)
            except asyncio.CancelledError:
                with suppress(Exception):
                    slot, _ = await asking
                    if slot is not None:
                        await self.give_back([Report(slot=slot, started=None, ended=boot())])
                raise
            if slot is not None:
                return slot
            await asyncio.sleep(min(wait_s, _LONGEST_WAIT_S))

    async def give_back(self, reports: Sequence[Report]) -> None:
        """Returns slots. The host's delay counts from the end, because the time when the client sent its bytes is
        unknown.
        """
        if not reports:
            return
        releases = [self._release(report) for report in reports]
        reply = await self._outages.persist(lambda: self._frontier.lease([], releases))
        rows = [_row(report, reply.times.get(report.slot.fence)) for report in reports]
        sent = [row for row in rows if row is not None]
        if sent:
            await self._outages.persist(lambda: in_thread(self._store.run, requests.insert, sent))

    @asynccontextmanager
    async def slot(self, host: str, delay_s: float | None = None) -> AsyncIterator[ExternalSlot]:
        """`async with slots.slot(host):` for one request; an error inside does not count against the host."""
        taken = await self.take(host, delay_s)
        started = boot()
        try:
            yield taken
        finally:
            await asyncio.shield(self.give_back([Report(slot=taken, started=started, ended=boot())]))

    def _release(self, report: Report) -> Release:
        return Release(
            lease=_lease(report.slot), started=report.started, ended=min(report.ended, report.slot.valid_until),
            broken_off=True, effect=self._effect(report),
        )  # fmt: skip

    def _effect(self, report: Report) -> HostEffect | None:
        """Only 429 and 503 have an effect: the site requests a pause."""
        if report.status not in (429, 503) or report.started is None:
            return None
        outcome = Outcome(
            url=report.url, status=report.status, headers=report.headers, started=report.started, ended=report.ended
        )
        found = effect(outcome, 0, None, self.settings)
        return HostEffect(block_ms=found.block_ms, failures=found.failures, slow=False)

    async def _maintain(self) -> None:
        """Maintenance while no crawl runs: slots of clients that died are taken back."""
        refresh_at = 0.0
        while True:
            try:
                await self._maintenance.tick()
                if boot() >= refresh_at:
                    refresh_at = boot() + 1.0
                    await self._host_policy.refresh()
            except EpochLost as error:
                await self._outages.recover(error)
            except (FrontierUnavailable, StoreUnavailable) as error:
                log("maintenance_failed", level="warning", error=str(error))
            except Exception as error:
                log("maintenance_broke", level="error", error=repr(error))
                await asyncio.sleep(1.0)
            await asyncio.sleep(0.1)


@asynccontextmanager
async def open_external_slots(settings: Settings) -> AsyncIterator[ExternalSlots]:
    """Slots of the frontier of these settings: `frontier_url`, or the private one of the data folder."""
    services = backends.build(settings)
    try:
        await services.open()
        slots = ExternalSlots(services)
        await slots.start()
        try:
            yield slots
        finally:
            await slots.stop()
    finally:
        await services.close()


def _lease(slot: ExternalSlot) -> Lease:
    return Lease(
        fence=slot.fence, shard=slot.shard, host=slot.host, crawl=0, crawl_version=0, lane=Lane.BATCH,
        entry=Entry(url=""), delay_ms=slot.delay_ms, per_host=slot.per_host, robots_ms=0, valid_until=slot.valid_until,
    )  # fmt: skip


def _row(report: Report, times: Times | None) -> Request | None:
    if times is None or report.started is None:
        return None
    slot = report.slot
    return Request(
        fence=slot.fence, crawl=None, host=slot.host, url=report.url, start_ms=times.start_ms, end_ms=times.end_ms,
        kind=KIND, status=report.status, fault=report.fault.value if report.fault else None, delay_ms=slot.delay_ms,
        per_host=slot.per_host,
    )  # fmt: skip
