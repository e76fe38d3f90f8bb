"""Figures of the frontier alone: rates of its verbs, memory per URL, and how soon it is back after a loss."""

from __future__ import annotations

import asyncio
import random
import re
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.measure import RunFailed
from bench.plan import Plan
from bench.report import Bar, Section, number
from bench.site import path_of
from curtsy.core.model import Crawl, CrawlState, Entry, HostState, Lane, Lease, RobotsState
from curtsy.core.settings import Settings
from curtsy.frontier.connection import field_of
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import Release, Settled
from curtsy.services.valkey import EmbeddedValkey

MB = 1_000_000
BATCH = 64
#: a commit of 50 pages with 40 links
LINKS = 2000
REPEATED = 0.97
CRAWL = Crawl(n=1, id="bench", request_id="bench", state=CrawlState.RUNNING, delay_s=0)
Row = tuple[int, str, int, Entry]


@dataclass(slots=True)
class Bench:
    """A fresh frontier on a server of its own."""

    frontier: Frontier
    now_ms: int

    async def memory(self) -> int:
        """Bytes that the server has allocated, its base (some 1 MB) included."""
        return int(field_of(await self.frontier.shards[0].command("INFO", "memory"), "used_memory"))

    async def server_us(self) -> float:
        """Time that the server has spent in scripts."""
        stats = await self.frontier.shards[0].command("INFO", "commandstats")
        return sum(map(float, re.findall(rb"^cmdstat_eval(?:sha)?:.*\busec=(\d+)", stats, re.MULTILINE)))

    async def list_rows(self, rows: Sequence[Row]) -> None:
        """Pushes as a commit does, and introduces hosts that are new, with robots rules that allow everything."""
        reply = await self.frontier.push(rows)
        if reply.hosts:
            known = sorted(reply.hosts)
            hosts = [HostState(host=host) for host in known]
            robots = [_rules(host, self.now_ms) for host in known]
            await self.frontier.set_hosts(hosts, robots)


def _rules(host: str, now_ms: int) -> RobotsState:
    return RobotsState(
        origin=f"https://{host}", host=host, fetched_ms=now_ms, expires_ms=now_ms + 86_400_000, status=404
    )


@asynccontextmanager
async def fresh(embedded: EmbeddedValkey) -> AsyncIterator[Bench]:
    """An empty server, a new epoch, one crawl without delay."""
    frontier = Frontier(embedded.url, Settings.model_validate({"delay_s": 0}), "bench")
    shard = frontier.shards[0]
    # Valkey frees a flushed database in the background by default: memory of the figure before would be subtracted.
    await shard.command("FLUSHALL", "SYNC")
    await shard.command("CONFIG", "RESETSTAT")
    facts = await shard.facts()
    now_ms = await shard.begin_epoch(1, facts.run_id, 0, over=facts.number)
    shard.use_epoch(1, facts.run_id)
    await frontier.set_crawl(CRAWL)
    try:
        yield Bench(frontier=frontier, now_ms=now_ms)
    finally:
        await frontier.close()


def _host(number: int) -> str:
    return f"org-{number:06d}.bench.test"


def _rows(hosts: int, first: int, last: int) -> Iterator[list[Row]]:
    """Rows of pages first to last of every host, some thousand at a time."""
    some: list[Row] = []
    for host in range(hosts):
        name = _host(host)
        some += [
            (1, name, host * 10_000 + page + 1, Entry(url=f"https://{name}{path_of(page)}", depth=2))
            for page in range(first, last)
        ]
        if len(some) >= 4000:
            yield some
            some = []
    if some:
        yield some


async def leasing(bench: Bench, hosts: int, seconds: float) -> tuple[float, float]:
    """Leases per second as a process sees them, and microseconds of the server for each: lease, release and settle."""
    for rows in _rows(hosts, 0, 200):
        await bench.list_rows(rows)
    held: list[Lease] = []
    unsettled: list[Lease] = []
    taken, begun, server_us = 0, time.monotonic(), await bench.server_us()
    while (now := time.monotonic()) - begun < seconds:
        boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        releases = [Release(lease=lease, started=boot, ended=boot) for lease in held]
        unsettled += held
        held = (await bench.frontier.lease([(Lane.BATCH, BATCH)], releases)).leases
        taken += len(held)
        if len(unsettled) >= 200:
            await bench.frontier.settle([Settled(lease=lease) for lease in unsettled])
            unsettled = []
    return taken / (now - begun), (await bench.server_us() - server_us) / max(taken, 1)


async def adding(bench: Bench, links: int) -> tuple[float, float]:
    """New links per second: asked, listed, put into the filter. Then links per second that are mostly repeats."""
    rng = random.Random(11)
    begun = time.monotonic()
    known: list[int] = []
    for rows in _rows(links // 100, 0, 100):
        shorts = [rng.getrandbits(63) for _ in rows]
        fresh = await bench.frontier.unseen(1, shorts)
        await bench.list_rows([rows[position] for position in fresh])
        await bench.frontier.see(1, [shorts[position] for position in fresh])
        known += shorts
    new_per_s = len(known) / (time.monotonic() - begun)
    asked, begun = 0, time.monotonic()
    while asked < links:
        batch = [rng.choice(known) if rng.random() < REPEATED else rng.getrandbits(63) for _ in range(LINKS)]
        fresh = await bench.frontier.unseen(1, batch)
        await bench.frontier.see(1, [batch[position] for position in fresh])
        asked += LINKS
    return new_per_s, asked / (time.monotonic() - begun)


async def see_many(bench: Bench, urls: int) -> float:
    """Bytes per fingerprint in the filter."""
    rng = random.Random(5)
    before = await bench.memory()
    for _ in range(0, urls, 1000):
        await bench.frontier.see(1, [rng.getrandbits(63) for _ in range(1000)])
    held = int(await bench.frontier.shards[0].command("HGET", "%seen", "total"))
    if held != urls:
        raise RunFailed(f"The filter holds {held:,} of {urls:,} fingerprints: its bytes per URL would be wrong.")
    return (await bench.memory() - before) / urls


async def listed_bytes(bench: Bench, hosts: int) -> float:
    """Bytes per listed URL, over what a host with one URL takes."""
    for rows in _rows(hosts, 0, 1):
        await bench.list_rows(rows)
    before = await bench.memory()
    for rows in _rows(hosts, 1, 501):
        await bench.list_rows(rows)
    listed = [int(await bench.frontier.shards[0].command("LLEN", f"%q:{_host(host)}:1")) for host in range(hosts)]
    if sum(listed) != hosts * 501:
        raise RunFailed(f"{sum(listed):,} of {hosts * 501:,} URLs are listed: the bytes per URL would be wrong.")
    return (await bench.memory() - before) / (hosts * 500)


async def whole(bench: Bench, urls: int, hosts: int) -> float:
    """MB of a crawl with so many pending URLs: filter, hosts, and the heads of their queues."""
    for rows in _rows(hosts, 0, urls // hosts):
        await bench.list_rows(rows)
    await see_many(bench, urls)
    return await bench.memory() / MB


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    leases_per_s: float
    lease_server_us: float
    new_links_per_s: float
    repeated_links_per_s: float
    seen_bytes: float
    listed_bytes: float
    few_hosts_mb: float
    many_hosts_mb: float


async def measure(embedded: EmbeddedValkey, plan: Plan, say: Callable[[str], None]) -> Figures:
    few, many = hosts_of(plan)
    async with fresh(embedded) as bench:
        leases_per_s, lease_server_us = await leasing(bench, 1000, 3.0)
    say(f"  {leases_per_s:,.0f} leases/s")
    async with fresh(embedded) as bench:
        new_per_s, repeated_per_s = await adding(bench, min(plan.urls, 200_000))
    say(f"  {new_per_s:,.0f} new links/s, {repeated_per_s:,.0f} mostly repeated links/s")
    async with fresh(embedded) as bench:
        seen = await see_many(bench, plan.urls)
    async with fresh(embedded) as bench:
        listed = await listed_bytes(bench, min(few, 200))
    async with fresh(embedded) as bench:
        few_mb = await whole(bench, plan.urls, few)
    say(f"  {few:,} hosts: {few_mb:.0f} MB")
    async with fresh(embedded) as bench:
        many_mb = await whole(bench, plan.urls, many)
    say(f"  {many:,} hosts: {many_mb:.0f} MB")
    return Figures(
        leases_per_s=leases_per_s,
        lease_server_us=lease_server_us,
        new_links_per_s=new_per_s,
        repeated_links_per_s=repeated_per_s,
        seen_bytes=seen,
        listed_bytes=listed,
        few_hosts_mb=few_mb,
        many_hosts_mb=many_mb,
    )


def hosts_of(plan: Plan) -> tuple[int, int]:
    """1,000 hosts and 100,000 hosts for a million URLs."""
    return max(10, plan.urls // 1000), plan.urls // 10


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    from curtsy.cli.doctor import memory_bound

    with tempfile.TemporaryDirectory(prefix="curtsy-bench-") as folder, EmbeddedValkey.enter(Path(folder)) as embedded:
        f = asyncio.run(measure(embedded, plan, say))
    bound = memory_bound(Settings.model_validate({"delay_s": 0}))
    few, many = hosts_of(plan)
    rows = (
        (f"leases per second, batches of {BATCH}, released and settled", number(f.leases_per_s)),
        ("the server's time for one of them", f"{f.lease_server_us:.1f} us"),
        ("new links per second: asked, listed, remembered", number(f.new_links_per_s)),
        (f"links per second of which {REPEATED:.0%} are repeats", number(f.repeated_links_per_s)),
        (f"bytes per seen URL at {plan.urls:,}", number(f.seen_bytes)),
        ("bytes per listed URL", number(f.listed_bytes)),
        (f"memory with {plan.urls:,} pending URLs on {few:,} hosts", f"{f.few_hosts_mb:.0f} MB"),
        (f"memory with {plan.urls:,} pending URLs on {many:,} hosts", f"{f.many_hosts_mb:.0f} MB; `doctor`: {bound}"),
    )
    bars = (
        Bar(what="bytes per seen URL", value=f.seen_bytes, limit=16),
        Bar(what="bytes per listed URL", value=f.listed_bytes, limit=60),
        Bar(
            what=f"memory for {plan.urls:,} pending URLs on {few:,} hosts", value=f.few_hosts_mb, limit=100, unit=" MB"
        ),
    )
    text = (
        "One client uses the embedded Valkey. The delay is 0, which gives the longest lists. Paths have about 24 "
        "characters. The in-process filter is off."
    )
    return [Section(title="Frontier", text=text, head=("figure", "measured"), rows=rows, bars=bars)]
