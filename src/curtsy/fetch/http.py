"""HttpFetcher: many requests at once through libcurl, with callbacks instead of a task per request.

Every job ends in exactly one `done` call, on the loop. Nothing is sent after a job's deadline,
nothing is sent twice, and nothing is sent to an address that the guard refuses.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable
from functools import partial
from typing import Any

import certifi
import pycurl

from curtsy.core.outcome import Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.curl_errors import is_bad_line
from curtsy.fetch.dns import Answer, Resolver
from curtsy.fetch.guard import address_allowed, check_url, is_listed, is_private_name, networks
from curtsy.fetch.multi import Multi
from curtsy.fetch.proxies import Proxies
from curtsy.fetch.raw_connection import RawConnections
from curtsy.fetch.transfer import Done, FetchJob, Started, Transfer, boot_clock

__all__ = ["FetchJob", "HttpFetcher", "boot_clock"]

#: nothing is started with less time left
_MIN_VALIDITY_S = 1.0
#: with more transfers, requests are sent in the next turn of the loop
_FEW_TRANSFERS = 8
_MAX_POOLED = 512
_MAX_MALFORMED = 10_000
#: a name that is slow to resolve must not delay other requests
_PATIENCE_S = 0.2
#: proxies that get an address from libcurl instead of a name
_GIVEN_ADDRESSES = ("socks4://", "socks5://")


class HttpFetcher:
    """One per process and loop. `done` may call `start`; `started` must not."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop):
        self._loop = loop
        self._settings = settings
        self._private = networks(settings.allow_private)
        self._resolver = Resolver(settings, loop)
        self._proxies = Proxies(settings.proxies, settings.proxy_dns)
        self._multi = Multi(loop, self._finished)
        self._active: dict[int, Transfer] = {}
        self._pool: list[Transfer] = []
        self._busy: dict[str, int] = {}
        self._ruled = {rule.rpartition("=")[2].rpartition(":")[0].strip("[]") for rule in settings.resolve}
        self._ca_file = str(settings.ca_file or os.environ.get("SSL_CERT_FILE") or certifi.where())
        self._raw = RawConnections(self._ca_file, settings.connect_timeout_s)
        #: origins whose last response had a line that libcurl refuses, oldest first
        self._malformed: dict[str, None] = {}
        self._raw_tasks: dict[int, asyncio.Task[None]] = {}
        self._closed = False

    @property
    def in_flight(self) -> int:
        return len(self._active)

    def start(self, job: FetchJob, done: Done, started: Started | None = None) -> None:
        """Makes the request; `started(id, boot time)` is called just before its bytes leave."""
        if self._closed:
            self._refuse(job, done, Fault.CANCELLED, "the fetcher is closed")
            return
        target = check_url(job.url)
        if target is None:
            self._refuse(job, done, Fault.FORBIDDEN_ADDRESS, "not a normalized http or https URL")
            return
        transfer = self._pool.pop() if self._pool else self._new_transfer()
        transfer.assign(job, target, done, started)
        self._active[job.id] = transfer
        rule = self._resolver.rule(target.host)
        if rule is not None:
            self._by_rule(transfer, rule)
            return
        answer = self._resolver.cached(target.host)
        if answer is None and self._proxies.resolves(job.proxy_pool):
            self._by_name(transfer)
        elif answer is not None:
            self._resolved(transfer, answer)
        else:
            self._resolver.lookup(target.host, lambda answer: self._looked_up(job, transfer, answer))

    def send_now(self) -> None:
        """Sends what was started, before the loop continues: the host answers while the caller does other work.

        With many transfers there is always work to do meanwhile, and one call of libcurl for all of them costs less.
        """
        if len(self._active) <= _FEW_TRANSFERS:
            self._multi.send_now()

    def cancel(self, job_id: int, unsent_only: bool = False) -> None:
        """Cancels a job that is in flight: its `done` gets CANCELLED. `unsent_only`: unless something was sent."""
        if self._multi.busy:
            self._loop.call_soon(self.cancel, job_id, unsent_only)
            return
        transfer = self._active.get(job_id)
        if transfer is None or (unsent_only and transfer.started is not None):
            return
        if transfer.running:
            self._remove(transfer, close=True)
        if (task := self._raw_tasks.pop(job_id, None)) is not None:
            task.cancel()
        self._end(transfer, transfer.outcome(0, "cancelled", Fault.CANCELLED))

    def drop_idle(self, older_than_s: float) -> int:
        """Close connections that were idle for longer; return how many. For fetchers that are kept between shifts."""
        return self._multi.drop_idle(older_than_s)

    async def prepare(self, hosts: Iterable[tuple[str, int]]) -> None:
        """Resolve names ahead, so that no slot time is spent on it; slow lookups continue after this returns."""
        if self._proxies.resolves("default"):
            return  # only the proxy can resolve the names
        unknown = {host for host, _ in hosts if self._resolver.cached(host) is None and not self._resolver.rule(host)}
        waits = []
        for host in unknown:
            future: asyncio.Future[None] = self._loop.create_future()
            self._resolver.lookup(host, partial(_resolve_future, future))
            waits.append(future)
        if waits:
            await asyncio.wait(waits, timeout=_PATIENCE_S)

    async def close(self) -> None:
        """Ends every job as canceled, closes every connection."""
        if self._closed:
            return
        for job_id in list(self._active):
            self.cancel(job_id)
        self._closed = True
        self._resolver.close()
        self._multi.close()
        for transfer in self._pool:
            transfer.curl.close()
        self._pool.clear()
        # Callbacks that are scheduled for the next turn of the event loop run before this returns.
        await asyncio.sleep(0)

    # Called by transfers, inside libcurl.

    def may_connect(self, transfer: Transfer, address: str) -> bool:
        if transfer.proxy is not None:
            return True
        return address in transfer.addresses or self._allowed(address)

    def admit(self, transfer: Transfer, address: str) -> Fault | None:
        if transfer.proxy is not None:
            return None
        if not self.may_connect(transfer, address):
            return Fault.FORBIDDEN_ADDRESS
        # A kept connection may go to another address of the host than the reserved one.
        if address != transfer.reserved and self._limited(address):
            if self._busy.get(address, 0) >= self._settings.per_address:
                return Fault.ADDRESS_BUSY
            self._unreserve(transfer)
            self._reserve(transfer, address)
        self._multi.asking(transfer.origin)
        return None

    def socket_opened(self, fd: int) -> None:
        self._multi.own(fd)

    def sending(self, transfer: Transfer) -> None:
        self._multi.sending.append(transfer.sent)

    def callback_failed(self, error: Exception) -> None:
        """An error in one callback must not stop other transfers."""
        self._loop.call_exception_handler({"message": "a fetch callback failed", "exception": error})

    # The steps of a job.

    def _looked_up(self, job: FetchJob, transfer: Transfer, answer: Answer) -> None:
        # The handle may belong to another job by now.
        if self._active.get(job.id) is transfer and transfer.job is job:
            self._resolved(transfer, answer)

    def _resolved(self, transfer: Transfer, answer: Answer) -> None:
        job = transfer.job
        if job.proxy_pool is not None:
            self._through_proxy(transfer, answer)
            return
        if answer.fault is not None:
            self._fail(transfer, answer.fault, answer.detail)
            return
        allowed = tuple(address for address in answer.addresses if self._allowed(address))
        if not allowed:
            self._fail(transfer, Fault.FORBIDDEN_ADDRESS, f"{answer.addresses[0]} is not a public address")
            return
        free = tuple(a for a in allowed if self._busy.get(a, 0) < self._settings.per_address)
        if not free:
            self._fail(transfer, Fault.ADDRESS_BUSY, f"{self._settings.per_address} requests in flight to {allowed[0]}")
            return
        if self._limited(free[0]):
            self._reserve(transfer, free[0])
        self._begin(transfer, free, None)

    def _by_rule(self, transfer: Transfer, rule: tuple[str, int]) -> None:
        """To the address of --resolve; through a proxy, by a tunnel."""
        pool = transfer.job.proxy_pool
        proxy = None if pool is None else self._picked(transfer, pool)
        if pool is None or proxy is not None:
            self._begin(transfer, (rule[0],), rule[1], proxy)

    def _by_name(self, transfer: Transfer) -> None:
        """The proxy resolves the name: only names that are private by definition can be refused here."""
        host = transfer.target.host
        if is_private_name(host) and not self._private:
            self._fail(transfer, Fault.FORBIDDEN_ADDRESS, f"{host} is a name of private networks")
        elif (proxy := self._picked(transfer, transfer.job.proxy_pool or "")) is not None:
            self._begin(transfer, (), None, proxy)

    def _picked(self, transfer: Transfer, pool: str) -> str | None:
        """A proxy of the pool; None if all of them pause: the transfer has failed then."""
        proxy = self._proxies.pick(pool, boot_clock())
        if proxy is None:
            self._fail(transfer, Fault.PROXY, f"no proxy of pool {pool!r} works")
        return proxy

    def _through_proxy(self, transfer: Transfer, answer: Answer) -> None:
        """Most proxies resolve the name themselves: we can refuse addresses that we see, but not pin them.

        A name that we cannot resolve cannot be checked. Proxies that take an address get ours.
        """
        pool = transfer.job.proxy_pool or ""
        if answer.fault is not None:
            self._fail(transfer, answer.fault, answer.detail)
            return
        forbidden = [address for address in answer.addresses if not self._allowed(address)]
        if forbidden:
            self._fail(transfer, Fault.FORBIDDEN_ADDRESS, f"{forbidden[0]} is not a public address")
            return
        proxy = self._picked(transfer, pool)
        if proxy is not None:
            self._begin(transfer, answer.addresses if proxy.startswith(_GIVEN_ADDRESSES) else (), None, proxy)

    def _begin(
        self, transfer: Transfer, addresses: tuple[str, ...], mapped_port: int | None, proxy: str | None = None
    ) -> None:
        job = transfer.job
        left_s = job.deadline - boot_clock()
        if left_s < _MIN_VALIDITY_S:
            self._fail(transfer, Fault.SLOT_EXPIRED, "less than 1 s of the slot is left")
            return
        if self._multi.busy:
            raise RuntimeError("start() was called from a `started` callback")
        if self._malformed and transfer.origin in self._malformed and proxy is None and job.body is None:
            transfer.go_direct(addresses)
            port = transfer.target.port if mapped_port is None else mapped_port
            work = self._exchange(job, transfer, addresses[0], port, min(job.timeout_s, left_s))
            self._raw_tasks[job.id] = self._loop.create_task(work)
            return
        try:
            transfer.use_fresh_connection(self._multi.hung_up(transfer.origin))
            transfer.prepare(addresses, mapped_port, proxy, min(job.timeout_s, left_s))
            self._multi.add(transfer.curl)
            transfer.running = True
        except (pycurl.error, UnicodeError) as error:
            self._fail(transfer, Fault.FORBIDDEN_ADDRESS, str(error))

    async def _exchange(self, job: FetchJob, transfer: Transfer, address: str, port: int, total_s: float) -> None:
        """The request without libcurl. A task that was canceled has no transfer any more."""
        problem = await self._raw.exchange(transfer, address, port, total_s)
        del self._raw_tasks[job.id]
        fault, detail = (None, "") if problem is None else problem
        self._end(transfer, transfer.outcome(0, detail, transfer.fault or fault))

    def _finished(self, curl: Any, code: int, message: str) -> None:
        transfer: Transfer = curl.transfer
        self._remove(transfer, close=False)
        if is_bad_line(code, message):
            # The next request to this origin is read without libcurl.
            if len(self._malformed) >= _MAX_MALFORMED:
                del self._malformed[next(iter(self._malformed))]
            self._malformed[transfer.origin] = None
        outcome = transfer.outcome(code, message)
        if transfer.proxy is not None:
            self._note_proxy(transfer.job.proxy_pool or "", transfer.proxy, outcome)
        self._end(transfer, outcome)

    def _note_proxy(self, pool: str, proxy: str, outcome: Outcome) -> None:
        if outcome.fault is Fault.PROXY:
            self._proxies.failed(pool, proxy, outcome.ended)
        elif outcome.status:
            self._proxies.worked(pool, proxy)

    def _end(self, transfer: Transfer, outcome: Outcome) -> None:
        job, done = transfer.job, transfer.done
        del self._active[job.id]
        if job.documents is not None and outcome.fault is not None:
            job.documents.budget.free(job.fence)
        self._unreserve(transfer)
        transfer.clear()
        if len(self._pool) < _MAX_POOLED:
            self._pool.append(transfer)
        else:
            transfer.curl.close()
        try:
            done(job.id, outcome)
        except Exception as error:
            self.callback_failed(error)

    def _remove(self, transfer: Transfer, close: bool) -> None:
        if close:
            transfer.curl.setopt(pycurl.FORBID_REUSE, 1)
        self._multi.remove(transfer.curl)
        if close:
            transfer.curl.setopt(pycurl.FORBID_REUSE, 0)

    def _fail(self, transfer: Transfer, fault: Fault, detail: str) -> None:
        """Ends a job before anything was sent: later on the loop, so that `start` returns before `done` is called."""
        self._loop.call_soon(self._end_failed, transfer.job, transfer, fault, detail)

    def _end_failed(self, job: FetchJob, transfer: Transfer, fault: Fault, detail: str) -> None:
        if self._active.get(job.id) is transfer and transfer.job is job:
            self._end(transfer, transfer.outcome(0, detail, fault))

    def _refuse(self, job: FetchJob, done: Done, fault: Fault, detail: str) -> None:
        outcome = Outcome(url=job.url, fault=fault, detail=detail, ended=boot_clock())
        self._loop.call_soon(done, job.id, outcome)

    # Addresses.

    def _allowed(self, address: str) -> bool:
        return address_allowed(address, self._private)

    def _limited(self, address: str) -> bool:
        """Addresses that the operator set are not counted: they serve many hosts on purpose."""
        return address not in self._ruled and not is_listed(address, self._private)

    def _reserve(self, transfer: Transfer, address: str) -> None:
        transfer.reserved = address
        self._busy[address] = self._busy.get(address, 0) + 1

    def _unreserve(self, transfer: Transfer) -> None:
        address, transfer.reserved = transfer.reserved, None
        if address is not None:
            left = self._busy[address] - 1
            if left:
                self._busy[address] = left
            else:
                del self._busy[address]

    def _new_transfer(self) -> Transfer:
        settings = self._settings
        return Transfer(self, settings.full_user_agent, self._ca_file, settings.connect_timeout_s)


def _resolve_future(future: asyncio.Future[None], _answer: Answer) -> None:
    if not future.done():
        future.set_result(None)
