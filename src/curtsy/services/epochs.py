"""Which epoch of the frontier is current, and how a lost frontier is rebuilt from the store.

The store assigns epochs. A frontier server that was flushed, restarted or replaced holds no valid one: one process
takes the store's lock, begins a new epoch, and puts hosts and their times back; queues fill by rescan. Then follows a
quiet period, in which requests that the store does not know can end. It is omitted only after a clean shutdown.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from curtsy.core import clock
from curtsy.core.clock import boot
from curtsy.core.errors import EpochLost, FrontierUnavailable, SettingsError, StoreUnavailable
from curtsy.core.failpoints import point
from curtsy.core.model import HostState, Lane, Request, RobotsState
from curtsy.core.observe import count, log
from curtsy.core.outcome import Fault
from curtsy.core.threads import in_thread
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import PushReply, Scan, fence_of
from curtsy.frontier.shard import CONFIRMED_S, Shard
from curtsy.rules import robots_policy
from curtsy.store import crawls, hosts, meta, queues, requests, urls
from curtsy.store.engine import Store, read

_BATCH = 1000
#: with Sentinel or a cluster, a process may lease for this long under an epoch that is no longer current
_DOUBT_MS = int(CONFIRMED_S * 1000)
_NEVER_MS = 1 << 62
#: the event loop keeps only weak references to tasks
_tasks: set[asyncio.Task[None]] = set()


async def open_epoch(frontier: Frontier, store: Store) -> list[Scan]:
    """Uses the current epoch of every shard, or rebuilds. Returns the scans that fill the queues."""
    await frontier.check_policy()
    begun = False
    for shard in frontier.shards:
        if not await _use_current_epoch(shard, store):
            begun = await _begin(frontier, shard, store) or begun
    return await restore(frontier, store) if begun else []


async def _use_current_epoch(shard: Shard, store: Store) -> bool:
    # First the store: the reply of the server then includes every lease that the store knows.
    newest = await read(store, _newest_fence, shard.number)
    facts = await shard.facts()
    before = boot()
    ruling = await read(store, _ruling, shard.number)
    if not facts.valid or facts.number is None or facts.number != ruling or facts.number == shard.lost_epoch:
        return False
    if newest > fence_of(facts.number, facts.counter):
        # A request in the store has a newer lease than the server: an old snapshot was loaded into the running server.
        log("old_snapshot", level="warning", shard=shard.number, epoch=facts.number)
        return False
    # This process may lease under the epoch from now on: a clean mark of a killed process is no longer true.
    await in_thread(store.run, meta.clear, f"clean:{shard.number}")
    shard.use_epoch(facts.number, facts.run_id, confirmed=before)
    return True


async def confirm(frontier: Frontier, store: Store) -> None:
    """Checks that our epochs are still current: a server that was replaced may still answer some clients.

    If another epoch is current, this process sends nothing more to that server: every call raises EpochLost.
    """
    if not frontier.servers.moves:
        return
    before = boot()
    ruling = await read(store, _all_ruling, len(frontier.shards))
    for shard, epoch in zip(frontier.shards, ruling, strict=True):
        if shard.epoch == epoch:
            shard.confirm(before)
        elif shard.epoch is not None:
            log("epoch_replaced", level="warning", shard=shard.number, epoch=shard.epoch, rules=epoch)
            shard.drop_epoch()


def _all_ruling(tx: Any, shards: int) -> list[int | None]:
    return [_ruling(tx, shard) for shard in range(shards)]


def _ruling(tx: Any, shard: int) -> int | None:
    found = meta.get(tx, f"epoch:{shard}")
    return None if found is None else int(found)


def _newest_fence(tx: Any, shard: int) -> int:
    ruling = _ruling(tx, shard)
    return 0 if ruling is None else requests.newest_fence(tx, fence_of(ruling, 0), fence_of(ruling + 1, 0))


async def _begin(frontier: Frontier, shard: Shard, store: Store) -> bool:
    """A new epoch: one process begins it, the others wait for its lock and use its epoch (False)."""
    lock = store.lock("rebuild", wait_s=120)
    await in_thread(lock.__enter__)
    try:
        if await _use_current_epoch(shard, store):
            return False
        facts = await shard.facts()
        own_slot_ms = int(frontier.settings.slot_s * 1000)
        doubt_ms = _DOUBT_MS if frontier.servers.moves else 0
        epoch, quiet_ms = await in_thread(
            store.run, _next_epoch, shard.number, own_slot_ms, doubt_ms, facts.number or 0
        )
        point("rebuild.epoch")
        try:
            await shard.begin_epoch(epoch, facts.run_id, quiet_ms / 1000, over=facts.number)
        except Exception as error:
            raise FrontierUnavailable(f"The frontier could not be rebuilt: {error}") from error
        point("rebuild.begun")
        # The lock ends with its connection to the store. If this process was suspended since the number was assigned,
        # another process may have begun a newer epoch: the server then refuses ours, unless it was flushed again. Ours
        # may have no quiet period while requests of the newer one are in flight: so we lease only under the number that
        # is current in the store now. A process that gets a number after this check begins with a quiet period.
        before = boot()
        if await read(store, _ruling, shard.number) != epoch:
            raise FrontierUnavailable(f"Another process rebuilt the frontier while epoch {epoch} was being begun.")
        shard.use_epoch(epoch, facts.run_id, confirmed=before)
        if quiet_ms:
            log("frontier_rebuilt", level="warning", shard=shard.number, epoch=epoch, quiet_s=quiet_ms / 1000)
        count("rebuilds")
        return True
    finally:
        await in_thread(lock.__exit__, None, None, None)


def _next_epoch(tx: Any, shard: int, own_slot_ms: int, doubt_ms: int, used: int) -> tuple[int, int]:
    """A new number and its quiet period: 0 after a clean shutdown. The clean mark is removed before any lease.

    Otherwise requests may be in flight for the longest slot that any process of the last epoch used, and such slots may
    be granted for `doubt_ms` more. A number that the server has from another store (`used`) is skipped.
    """
    before = meta.get(tx, f"epoch:{shard}")
    mark = meta.get(tx, f"clean:{shard}")
    clean = before is None or mark == before
    meta.clear(tx, f"clean:{shard}")
    if (behind := used - meta.current_epoch(tx)) > 0:
        meta.add(tx, "epoch", behind)
    epoch = meta.next_epoch(tx)
    meta.put(tx, f"epoch:{shard}", str(epoch))
    if clean:
        return epoch, 0
    quiet_ms = max(own_slot_ms, int(meta.get(tx, "slot_ms") or 0)) + doubt_ms
    _note_gap(tx, epoch, clock.now_ms(), quiet_ms)
    return epoch, quiet_ms


def prepare_store(tx: Any, unit: str, shards: int, slot_ms: int) -> str:
    """Records what all processes of a deployment must agree on. A change ends every epoch. Returns the store's name."""
    name = meta.get(tx, "store_id")
    if name is None:
        name = os.urandom(4).hex()
        meta.put(tx, "store_id", name)
    note_slot(tx, slot_ms)
    old_unit, old_shards = meta.get(tx, "politeness_unit"), int(meta.get(tx, "shards") or shards)
    if old_unit not in (None, unit) and crawls.states(tx):
        raise SettingsError(
            f"politeness_unit is {old_unit} for the unfinished crawls of this store and cannot change to {unit}. "
            f"Finish or cancel them first (`curtsy status --all`), or set politeness_unit to {old_unit}."
        )
    meta.put(tx, "politeness_unit", unit)
    meta.put(tx, "shards", str(shards))
    if old_unit not in (None, unit) or old_shards != shards:
        # The marks before the counter, as in `_next_epoch`: two processes must not wait for each other.
        for shard in range(max(shards, old_shards)):
            meta.clear(tx, f"clean:{shard}")
        for shard in range(max(shards, old_shards)):
            meta.put(tx, f"epoch:{shard}", str(meta.next_epoch(tx)))
    return name


def note_slot(tx: Any, slot_ms: int) -> None:
    """Records the longest slot that processes of this store use: after a loss, requests may last that long."""
    if slot_ms > int(meta.get(tx, "slot_ms") or 0):
        meta.put(tx, "slot_ms", str(slot_ms))


def _note_gap(tx: Any, epoch: int, now_ms: int, quiet_ms: int) -> None:
    requests.insert(
        tx,
        [
            Request(
                fence=epoch << 40, crawl=None, host="", url="", start_ms=now_ms, end_ms=now_ms + quiet_ms, kind="",
                status=0, nature="gap",
            )
        ],
    )  # fmt: skip


async def restore(frontier: Frontier, store: Store) -> list[Scan]:
    """Puts running crawls and their open queues back into the frontier, and hosts with the times in the store."""
    for crawl in await read(store, crawls.running):
        await frontier.set_crawl(crawl)
    scans = await put_open_back(frontier, store)
    for shard in frontier.shards:
        task = asyncio.get_running_loop().create_task(_unlink_older(shard))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
    return scans


async def _unlink_older(shard: Shard) -> None:
    try:
        await shard.unlink_older()
    except Exception as error:
        log("unlink_older_failed", level="debug", error=str(error))


async def put_open_back(frontier: Frontier, store: Store, crawl: int | None = None) -> list[Scan]:
    """Puts open queues of one crawl, or of every running one, back into the due set, unless they wait for room."""
    scans: list[Scan] = []
    after = (0, "")
    while found := await read(store, queues.open_of, crawl, after, _BATCH, True):
        after = (found[-1].crawl, found[-1].host)
        scans += await put_back(frontier, store, [(q.crawl, q.host) for q in found])
    # Queues that wait for room are announced again: a lost frontier or a dead process may have forgotten them.
    await frontier.waits((Lane.HIGH, Lane.BATCH, Lane.SLOW))
    return scans


async def put_back(frontier: Frontier, store: Store, pairs: list[tuple[int, str]]) -> list[Scan]:
    """Puts queues (crawl, host) back into the due set. Sends hosts and crawls that the frontier lacks."""
    plain, render = await read(store, urls.kinds_open, pairs)
    reply = await frontier.put_back(plain, render)
    if reply.crawls:
        await send_crawls(frontier, store, reply.crawls)
        again = await frontier.put_back(
            [p for p in plain if p[0] in reply.crawls], [p for p in render if p[0] in reply.crawls]
        )
        reply.hosts |= again.hosts
        reply.scans += again.scans
        reply.waiting += again.waiting
    await handle_push_reply(frontier, store, reply)
    return reply.scans


async def handle_push_reply(frontier: Frontier, store: Store, reply: PushReply) -> None:
    """Does what a reply asks for: sends hosts, and lets queues without room wait in the store."""
    if reply.hosts:
        await send_hosts(frontier, store, reply.hosts)
    if reply.waiting:
        rows = [(crawl, host, reply.now_ms) for crawl, host in reply.waiting]
        await frontier.waits(Lane(lane) for lane in await in_thread(store.run, queues.wait, rows))


async def send_hosts(
    frontier: Frontier, store: Store, names: set[str], *, again: bool = False, lift: bool = False
) -> None:
    """Sends the store's facts and the settings of these hosts. An unknown host has no history."""
    known, rules = await read(store, _host_facts, names)
    states = [with_rule(frontier, known.get(name) or HostState(host=name)) for name in sorted(names)]
    await frontier.set_hosts(states, rules, again=again, lift=lift)


async def lift_resolved(frontier: Frontier, store: Store) -> None:
    """Unblocks hosts whose names were not found and that --resolve now gives an address: nothing was sent to them."""
    rules = [rule.partition("=")[0].lower() for rule in frontier.settings.resolve]
    if not rules:
        return
    found = [host for host in await read(store, _nameless) if any(fnmatchcase(_name(host), rule) for rule in rules)]
    for host in found:
        await in_thread(store.run, _lift, host)
    if found:
        await send_hosts(frontier, store, set(found), again=True, lift=True)
    for host in found:
        await frontier.make_retries_due(host)


def _nameless(tx: Any) -> list[str]:
    found = queues.faults(tx)
    dns = {host: since_ms for host, (fault, since_ms) in found.items() if fault in (Fault.DNS_NONE, Fault.DNS_FAIL)}
    return [host for host, since_ms in sorted(dns.items()) if not requests.any_since(tx, host, since_ms)]


def _lift(tx: Any, host: str) -> None:
    hosts.lift(tx, host, _NEVER_MS)  # the delay after an earlier request stays
    queues.mark(tx, answered={host})
    urls.clear_retry_delays(tx, host, clock.now_ms())


def _name(host: str) -> str:
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host


def with_rule(frontier: Frontier, state: HostState) -> HostState:
    """The state with the host's rule of the settings, unless the operator set another value since."""
    rule = frontier.settings.hosts.get(state.host)
    if rule is None:
        return state
    delay_ms = None if rule.delay_s is None else int(rule.delay_s * 1000)
    return replace(
        state,
        operator_delay_ms=delay_ms if state.operator_delay_ms is None else state.operator_delay_ms,
        operator_per_host=rule.per_host if state.operator_per_host is None else state.operator_per_host,
    )


def _host_facts(tx: Any, names: set[str]) -> tuple[dict[str, HostState], list[RobotsState]]:
    """Only rules that were fetched: verdicts from settings or the operator are decided again."""
    found = hosts.robots_of_hosts(tx, names)
    rules = [
        RobotsState(origin=origin, host=host, fetched_ms=fetched, expires_ms=expires, status=0, verdict=verdict)
        for host, listed in found.items()
        for origin, fetched, expires, verdict in listed
        if robots_policy.is_known(verdict)
    ]
    return hosts.get_many(tx, names), rules


async def send_crawls(frontier: Frontier, store: Store, numbers: set[int]) -> None:
    for n in sorted(numbers):
        await frontier.set_crawl(await read(store, crawls.by_n, n))


async def write_clean(frontier: Frontier, store: Store) -> bool:
    """Called by the last process: writes host times in the future to the store, then the mark. False if not clean."""
    for shard in frontier.shards:
        try:
            if not await _use_current_epoch(shard, store):
                return False
            # The frontier has requests that the store has not recorded: this shutdown is not clean.
            known = await shard.command("ZCARD", "%slots"), await shard.command("ZCARD", "%leases")
            if any(known) or await shard.command("LLEN", "%reaped"):
                return False
            rows = await shard.future_times()
            await in_thread(store.run, _mark_clean, shard.number, shard.epoch, rows)
        except (EpochLost, FrontierUnavailable, StoreUnavailable) as error:
            # The only effect: the next start waits for a quiet period.
            log("no_clean_end", level="info", error=str(error))
            return False
    return True


def _mark_clean(tx: Any, shard: int, epoch: int, rows: list[tuple[str, int, int]]) -> None:
    hosts.advance_times(tx, rows)
    meta.put(tx, f"clean:{shard}", str(epoch))
