"""Which epoch rules the frontier, and how a lost frontier is rebuilt from the store.

The store allots epochs. A frontier server that was flushed, restarted or replaced holds no valid one: one process takes
the store's lock, begins a new epoch, and puts hosts and their times back; queues fill by rescan. Then a quiet time, in
which requests that the store does not know of can end; only a clean shutdown needs none.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

from curtsy.core import clock
from curtsy.core.clock import boot
from curtsy.core.errors import EpochLost, FrontierUnavailable, SettingsError
from curtsy.core.failpoints import point
from curtsy.core.model import HostState, Lane, Request, RobotsState
from curtsy.core.observe import count, log
from curtsy.core.outcome import Fault
from curtsy.core.threads import in_thread
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import PushReply, Scan
from curtsy.frontier.shard import CONFIRMED_S, Shard
from curtsy.rules import robots_policy
from curtsy.store import crawls, hosts, meta, queues, requests, urls
from curtsy.store.engine import Store, read

_BATCH = 1000
#: where servers take over from each other, a process may lease for so long under an epoch that rules no more
_DOUBT_MS = int(CONFIRMED_S * 1000)
_NEVER_MS = 1 << 62
#: the loop itself keeps no hold of its tasks
_tasks: set[asyncio.Task[None]] = set()


async def open_epoch(frontier: Frontier, store: Store) -> list[Scan]:
    """Adopts the ruling epoch of every shard, or rebuilds. Answers the scans that fill the queues."""
    await frontier.check_policy()
    begun = False
    for shard in frontier.shards:
        if not await _adopt(shard, store):
            begun = await _begin(frontier, shard, store) or begun
    return await restore(frontier, store) if begun else []


async def _adopt(shard: Shard, store: Store) -> bool:
    facts = await shard.facts()
    before = boot()
    ruling = await read(store, _ruling, shard.number)
    if not facts.valid or facts.number is None or facts.number != ruling or facts.number == shard.spoilt:
        return False
    # Whoever adopts an epoch may lease under it: a mark that a killed process left is not true any more.
    await in_thread(store.run, meta.clear, f"clean:{shard.number}")
    shard.adopt(facts.number, facts.run_id, confirmed=before)
    return True


async def confirm(frontier: Frontier, store: Store) -> None:
    """Sees whether our epochs still rule: a server that was replaced may go on answering whoever it can reach.

    Where another one does, nothing more is asked of that server; whoever tries finds the frontier lost.
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
            shard.disown()


def _all_ruling(tx: Any, shards: int) -> list[int | None]:
    return [_ruling(tx, shard) for shard in range(shards)]


def _ruling(tx: Any, shard: int) -> int | None:
    found = meta.get(tx, f"epoch:{shard}")
    return None if found is None else int(found)


async def _begin(frontier: Frontier, shard: Shard, store: Store) -> bool:
    """A new epoch: one process begins it, the others wait for its lock and adopt it (False)."""
    lock = store.lock("rebuild", wait_s=120)
    await in_thread(lock.__enter__)
    try:
        if await _adopt(shard, store):
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
        # The lock ends with its connection to the store. If we stood still since the number was allotted, somebody else
        # may have begun a newer epoch: the server refuses ours then, unless it was emptied once more. Ours may be one
        # that needs no quiet time, and requests of the newer one may be under way: only the number that the store calls
        # the ruling one now is leased under. Whoever is allotted one after this look begins it with a quiet time.
        before = boot()
        if await read(store, _ruling, shard.number) != epoch:
            raise FrontierUnavailable(f"Another process rebuilt the frontier while epoch {epoch} was being begun.")
        shard.adopt(epoch, facts.run_id, confirmed=before)
        if quiet_ms:
            log("frontier_rebuilt", level="warning", shard=shard.number, epoch=epoch, quiet_s=quiet_ms / 1000)
        count("rebuilds")
        return True
    finally:
        await in_thread(lock.__exit__, None, None, None)


def _next_epoch(tx: Any, shard: int, own_slot_ms: int, doubt_ms: int, used: int) -> tuple[int, int]:
    """A new number, and the quiet time it begins with: none after a clean end. The mark is gone before any lease.

    Otherwise requests may be under way for the longest slot that any process of the last epoch used, and such slots may
    be given out for `doubt_ms` more. A number that the server has seen (`used`) under another store is not given again.
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
    """What all processes of a deployment must agree on; a change of it ends every epoch. Answers the store's name."""
    name = meta.get(tx, "store_id")
    if name is None:
        name = os.urandom(4).hex()
        meta.put(tx, "store_id", name)
    note_slot(tx, slot_ms)
    old_unit, old_shards = meta.get(tx, "politeness_unit"), int(meta.get(tx, "shards") or shards)
    if old_unit not in (None, unit) and crawls.states(tx):
        raise SettingsError(
            f"politeness_unit is {old_unit} for the crawls that are not finished here: their hosts are named by it. "
            f"Finish or cancel them first (`curtsy status --all`), or leave the setting at {old_unit}."
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
    """Processes of this store use slots of this length: what is under way at a loss of it may last so long."""
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
    """Running crawls and their open queues stand in the frontier again, hosts with the times the store remembers."""
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
    """Open queues of one crawl, or of every running one, go back on the bench, but for those that wait in the store."""
    scans: list[Scan] = []
    after = (0, "")
    while found := await read(store, queues.open_of, crawl, after, _BATCH, True):
        after = (found[-1].crawl, found[-1].host)
        scans += await put_back(frontier, store, [(q.crawl, q.host) for q in found])
    # Those that wait are somebody's task again, should a lost frontier or a dead process have forgotten them.
    await frontier.waits((Lane.HIGH, Lane.BATCH, Lane.SLOW))
    return scans


async def put_back(frontier: Frontier, store: Store, pairs: list[tuple[int, str]]) -> list[Scan]:
    """Queues (crawl, host) go back on the bench; hosts and crawls that the frontier lacks are introduced."""
    plain, render = await read(store, urls.kinds_open, pairs)
    reply = await frontier.put_back(plain, render)
    if reply.crawls:
        await introduce_crawls(frontier, store, reply.crawls)
        again = await frontier.put_back(
            [p for p in plain if p[0] in reply.crawls], [p for p in render if p[0] in reply.crawls]
        )
        reply.hosts |= again.hosts
        reply.scans += again.scans
        reply.waiting += again.waiting
    await introduce(frontier, store, reply)
    return reply.scans


async def introduce(frontier: Frontier, store: Store, reply: PushReply) -> None:
    """What a reply asks for: hosts to introduce, and a place in the store for queues that must wait."""
    if reply.hosts:
        await introduce_hosts(frontier, store, reply.hosts)
    if reply.waiting:
        rows = [(crawl, host, reply.now_ms) for crawl, host in reply.waiting]
        await frontier.waits(Lane(lane) for lane in await in_thread(store.run, queues.wait, rows))


async def introduce_hosts(
    frontier: Frontier, store: Store, names: set[str], *, again: bool = False, lift: bool = False
) -> None:
    """What the store and the operator's settings know of these hosts; a host it has never met has no history."""
    known, rules = await read(store, _host_facts, names)
    states = [with_rule(frontier, known.get(name) or HostState(host=name)) for name in sorted(names)]
    await frontier.introduce(states, rules, again=again, lift=lift)


async def lift_resolved(frontier: Frontier, store: Store) -> None:
    """Hosts that are left alone because their names were not found, and that --resolve gives an address now, may be
    asked: nothing was sent to them meanwhile."""
    rules = [rule.partition("=")[0].lower() for rule in frontier.settings.resolve]
    if not rules:
        return
    found = [host for host in await read(store, _nameless) if any(fnmatchcase(_name(host), rule) for rule in rules)]
    for host in found:
        await in_thread(store.run, _lift, host)
    if found:
        await introduce_hosts(frontier, store, set(found), again=True, lift=True)
    for host in found:
        await frontier.hasten(host)


def _nameless(tx: Any) -> list[str]:
    found = queues.faults(tx)
    dns = {host: since_ms for host, (fault, since_ms) in found.items() if fault in (Fault.DNS_NONE, Fault.DNS_FAIL)}
    return [host for host, since_ms in sorted(dns.items()) if not requests.any_since(tx, host, since_ms)]


def _lift(tx: Any, host: str) -> None:
    hosts.lift(tx, host, _NEVER_MS)  # the delay after an earlier request stays
    queues.recovered(tx, [host])
    urls.hasten(tx, host, clock.now_ms())


def _name(host: str) -> str:
    return host.rpartition(":")[0] if host.rpartition(":")[2].isdigit() else host


def with_rule(frontier: Frontier, state: HostState) -> HostState:
    """The host's rule in the settings, unless the operator said otherwise since."""
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
    """Only rules that were asked for: what was not, because of settings or the operator, is decided again."""
    found = hosts.robots_of_hosts(tx, names)
    rules = [
        RobotsState(origin=origin, host=host, fetched_ms=fetched, expires_ms=expires, status=0, verdict=verdict)
        for host, listed in found.items()
        for origin, fetched, expires, verdict in listed
        if robots_policy.is_known(verdict)
    ]
    return hosts.get_many(tx, names), rules


async def introduce_crawls(frontier: Frontier, store: Store, numbers: set[int]) -> None:
    for n in sorted(numbers):
        await frontier.set_crawl(await read(store, crawls.by_n, n))


async def write_clean(frontier: Frontier, store: Store) -> bool:
    """The last process leaves: host times still in the future go to the store, then the mark. False if not clean."""
    for shard in frontier.shards:
        try:
            if not await _adopt(shard, store):
                return False
            # What only the frontier knows would vanish with it, and nothing would say so.
            known = await shard.command("ZCARD", "%slots"), await shard.command("ZCARD", "%leases")
            if any(known) or await shard.command("LLEN", "%reaped"):
                return False
            rows = await shard.future_times()
        except (EpochLost, FrontierUnavailable):
            return False
        await in_thread(store.run, _mark_clean, shard.number, shard.epoch, rows)
    return True


def _mark_clean(tx: Any, shard: int, epoch: int, rows: list[tuple[str, int, int]]) -> None:
    hosts.raise_times(tx, rows)
    meta.put(tx, f"clean:{shard}", str(epoch))
