"""A small model of everything around the frontier (store, workers, sites) that checks the invariants of the design.

The model's store holds rows (crawl, host, seq) and hosts' times. Its workers hold leases and send requests. What the
frontier does is real; every state it reaches is compared with what must hold.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, takewhile
from typing import Any

from frontier_servers import Cluster, Server, World

from curtsy.core.clock import boot
from curtsy.core.model import Crawl, CrawlState, Entry, HostState, Kind, Lane, Lease, RobotsState
from curtsy.core.outcome import HostEffect
from curtsy.frontier.entry import decode
from curtsy.frontier.messages import ReapedLease, ReapedSlot, Release, Rules, Scan, Settled, counter_of, epoch_of


@dataclass(slots=True)
class Row:
    """A row of `urls`."""

    crawl: int
    host: str
    seq: int
    entry: Entry
    retry_ms: int = 0
    state: str = "open"
    fence: int = 0
    settled: int = 0

    @property
    def render(self) -> bool:
        return self.entry.kind is Kind.BROWSER


@dataclass(slots=True)
class Flight:
    """A lease in a worker's hands; its request lives from start to end, or until its slot's validity ends."""

    lease: Lease
    worker: int
    expires_ms: int
    start_ms: int | None = None
    end_ms: int | None = None
    slot_back: bool = False
    #: the URLs that use the slot after this one
    followers: list[Lease] = field(default_factory=list)

    @property
    def slot_ms(self) -> int:
        return Model.RENDER_SLOT_MS if self.lease.lane is Lane.RENDER else Model.SLOT_MS

    @property
    def visit(self) -> bool:
        """A browser's: its delay counts from its end."""
        return self.lease.entry.kind is Kind.BROWSER


@dataclass(slots=True)
class Sent:
    """A request as a site sees it."""

    start_ms: int
    #: the delay to the next one counts from here: the start, or the end of a transfer broken off
    base_ms: int


@dataclass(slots=True)
class Site:
    last: Sent | None = None
    started_ms: int = 0
    #: slots taken by this model that no release or expiry has ended, by fence
    out: dict[int, Flight] = field(default_factory=dict)
    blocked_ms: int = 0
    persisted_next_ms: int = 0
    #: the crawl that had the last turn, and the crawls that could have had it instead
    turn: int | None = None
    rivals: set[int] = field(default_factory=set)


LANES = (Lane.HIGH, Lane.BATCH, Lane.SLOW)
RENDER = (Lane.RENDER,)
_DUMP = """
local P, hosts, crawls = ARGV[1], cjson.decode(ARGV[2]), cjson.decode(ARGV[3])
local call, out = redis.call, { host = {}, ring = {}, bring = {}, crawl = {}, starved = {}, due = {} }
out.listed = {}
for _, h in ipairs(hosts) do
  out.host[h] = call('HGETALL', P .. 'host:' .. h)
  for i = 1, #out.host[h], 2 do
    -- `rn` stands with other numbers in one field
    if out.host[h][i] == 'v' then
      local v = cmsgpack.unpack(out.host[h][i + 1])
      out.host[h][i], out.host[h][i + 1] = 'rn', v[14] .. ' ' .. v[18]
    end
  end
  out.ring[h] = call('LRANGE', P .. 'ring:' .. h, 0, -1)
  out.bring[h] = call('LRANGE', P .. 'bring:' .. h, 0, -1)
  for _, c in ipairs(crawls) do
    for _, q in ipairs({ c, c .. 'b' }) do
      out.listed[q .. ' ' .. h] = call('LRANGE', P .. 'q:' .. h .. ':' .. q, 0, -1)
    end
  end
end
for _, c in ipairs(crawls) do
  out.crawl[tostring(c)] = call('HGETALL', P .. 'crawl:' .. c)
  out.starved[tostring(c)] = call('SMEMBERS', P .. 'starved:' .. c)
end
for _, lane in ipairs({ 'high', 'batch', 'slow', 'solo', 'render', 'render:solo' }) do
  out.due[lane] = call('ZRANGE', P .. 'due:' .. lane, 0, -1)
end
out.ld, out.play = call('HGETALL', P .. 'ld'), call('HGETALL', P .. 'play')
out.delayed, out.scans = call('ZRANGE', P .. 'delayed', 0, -1), call('ZRANGE', P .. 'scans', 0, -1)
return cjson.encode(out)
"""


@dataclass(slots=True)
class State:
    """Everything in the frontier at one moment, read in one step."""

    host: dict[str, dict[str, str]]
    ring: dict[str, list[str]]
    #: of pages that wait for a browser
    bring: dict[str, list[str]]
    #: (queue, host) -> entries
    listed: dict[tuple[str, str], list[str]]
    #: its numbers in each shard
    crawl: dict[int, list[dict[str, str]]]
    starved: dict[int, list[str]]
    due: dict[str, list[str]]
    play: dict[str, int]
    scans: set[str]
    #: (queue, host) -> URLs leased or delayed
    under_way: dict[tuple[str, str], int]
    #: pages of each crawl that are leased: what they spend of the budget is not in `left`
    granted: dict[int, int]
    #: every page that is listed, delayed or leased, as often as it is
    pages: list[tuple[int, str]]

    @classmethod
    def read(cls, world: World, hosts: list[str], crawls: list[int]) -> State:
        shards = world.frontier.shards
        raws = [
            json.loads(world.do("EVAL", _DUMP, 0, "%", json.dumps(hosts), json.dumps(crawls), shard=shard.number))
            for shard in shards
        ]
        home = {name: raws[world.frontier.shard_of(name).number] for name in hosts}
        under_way: dict[tuple[str, str], int] = defaultdict(int)
        leased = [lease.split("\x1f") for raw in raws for key, lease in _flat(raw["ld"]).items() if key[0].isdigit()]
        delayed = [member.split("\x1f") for raw in raws for member in raw["delayed"]]
        pages = []
        for name, queue, *_, entry in (*leased, *delayed):
            under_way[(queue, name)] += 1
            pages.append((_crawl_of(queue), decode(entry, name).url))
        granted: dict[int, int] = defaultdict(int)
        for _, queue, *_, entry in leased:
            granted[_crawl_of(queue)] += entry.startswith(("p", "b"))
        queues = [queue for n in crawls for queue in (str(n), f"{n}b")]
        listed = {(queue, h): list(home[h]["listed"][f"{queue} {h}"]) for queue in queues for h in hosts}
        for (queue, name), texts in listed.items():
            pages += [(_crawl_of(queue), decode(entry, name).url) for entry in texts]
            wanted = "b" if queue.endswith("b") else "prs"
            assert all(entry[0] in wanted for entry in texts), f"{queue} on {name}: a page of the other queue"
        return cls(
            host={name: _flat(home[name]["host"][name]) for name in hosts},
            ring={name: list(home[name]["ring"][name]) for name in hosts},
            bring={name: list(home[name]["bring"][name]) for name in hosts},
            listed=listed,
            crawl={n: [_flat(raw["crawl"][str(n)]) for raw in raws] for n in crawls},
            starved={n: [name for raw in raws for name in raw["starved"][str(n)]] for n in crawls},
            due={lane: [name for raw in raws for name in raw["due"][lane]] for lane in raws[0]["due"]},
            play=_sum([_flat(raw["play"]) for raw in raws]),
            scans={member for raw in raws for member in raw["scans"]},
            under_way=under_way,
            granted=granted,
            pages=[page for page in pages if not page[1].endswith("/robots.txt")],
        )


def _crawl_of(queue: str) -> int:
    return int(queue.removesuffix("b"))


def _sum(counts: list[dict[str, str]]) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for some in counts:
        for key, value in some.items():
            total[key] += int(value)
    return total


def _flat(words: Any) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2], strict=True)) if words else {}


class Model:
    SLOT_MS = 30_000
    VALID_MS = 27_000
    #: of a browser's visit
    RENDER_SLOT_MS = 70_000

    def __init__(self, server: Server | Cluster, *, shards: int = 1) -> None:
        self.world = World(server, shards=shards)
        self.rows: dict[tuple[int, str, int], Row] = {}
        self.by_url: dict[tuple[int, str], Row] = {}
        self.crawls: dict[int, Crawl] = {}
        self.sites: dict[str, Site] = defaultdict(Site)
        self.rules: dict[tuple[str, str], tuple[int, int]] = {}
        self.in_flight: list[Flight] = []
        #: of workers that vanished: their sites may still be answering until their slots end
        self.ghosts: list[Flight] = []
        #: fetched, not committed yet
        self.waiting: list[Flight] = []
        self.scans: list[Scan] = []
        #: rows of commits whose process has not pushed them yet
        self.unpushed: list[list[tuple[int, str, int, Entry]]] = []
        self.seq = 0
        #: by shard
        self.quiet_ms: dict[int, int] = defaultdict(int)
        #: by how much the frontier's budget of a crawl is larger than what the store has left: results whose settling
        #: it was never told of, and leases that were out when the budget was set
        self.excess: dict[int, int] = defaultdict(int)
        #: pages (crawl, url) that wait for a browser without the frontier having been told: until their lease is lost
        #: they may stand in both queues, and are asked once more at worst
        self.torn: set[tuple[int, str]] = set()
        #: fences whose worker crashed by itself
        self.blamed: set[int] = set()

    # The store

    def now(self) -> int:
        return self.world.now()

    def open_rows(self, crawl: int, host: str, render: bool) -> list[Row]:
        found = [r for r in self.rows.values() if (r.crawl, r.host, r.state, r.render) == (crawl, host, "open", render)]
        return sorted(found, key=lambda r: r.seq)

    def open_queues(self, render: bool | None = None) -> list[tuple[int, str]]:
        """Those with open rows; `render`: rows that wait for a browser, or that do not."""
        running = {n for n, c in self.crawls.items() if c.state is CrawlState.RUNNING}
        rows = [r for r in self.rows.values() if r.state == "open" and r.crawl in running]
        return sorted({(r.crawl, r.host) for r in rows if render is None or r.render is render})

    def know_robots(self, host: str) -> None:
        for scheme in ("http", "https"):
            self.rules[(host, f"{scheme}://{host}")] = (self.now() + 86_400_000, 1)

    # What happens

    def new_crawl(self, n: int, lane: Lane, delay_s: float, per_host: int, max_pages: int | None) -> None:
        crawl = Crawl(
            n=n, id=str(n), request_id="r", state=CrawlState.RUNNING, lane=lane, delay_s=delay_s, per_host=per_host,
            max_pages=max_pages,
        )  # fmt: skip
        self.crawls[n] = crawl
        self.set_budget(n)

    def set_budget(self, n: int) -> None:
        """The frontier is told anew what is left, as the store has it."""
        self.excess[n] = self.state().granted[n]
        self.world.run(self.world.frontier.set_crawl(self.crawls[n]))

    def add(self, crawl: int, host: str, count: int, scheme: str, push: str, kind: Kind = Kind.PAGE) -> None:
        """A commit inserted rows; it pushes them now, later, or never, if its process died in between."""
        rows = []
        _ = self.sites[host]
        for _ in range(count):
            self.seq += 1
            entry = Entry(url=f"{scheme}://{host}/{crawl}-{self.seq}", kind=kind)
            row = Row(crawl, host, self.seq, entry)
            self.rows[(crawl, host, self.seq)] = row
            self.by_url[(crawl, entry.url)] = row
            rows.append((crawl, host, self.seq, entry))
        if push == "now":
            self.push(rows)
        elif push == "later":
            self.unpushed.append(rows)

    def push(self, rows: list[tuple[int, str, int, Entry]]) -> None:
        self._pushed(self.world.run(self.world.frontier.push(rows)))

    def _pushed(self, reply: Any) -> None:
        assert not reply.crawls, "a running crawl is unknown"
        self.scans += reply.scans
        if reply.hosts:
            self.introduce(sorted(reply.hosts))

    def introduce(self, names: list[str]) -> None:
        states = [
            HostState(
                host=name,
                next_ms=self.sites[name].persisted_next_ms,
                blocked_until_ms=self.sites[name].blocked_ms,
            )
            for name in names
        ]
        rules = [
            RobotsState(origin=origin, host=host, fetched_ms=fetched, expires_ms=until, status=200)
            for (host, origin), (until, fetched) in self.rules.items()
            if host in names
        ]
        self.world.run(self.world.frontier.set_hosts(states, rules))

    def put_back(self) -> None:
        self._pushed(self.world.run(self.world.frontier.put_back(self.open_queues(False), self.open_queues(True))))

    def lease(self, worker: int, n: int, lanes: tuple[Lane, ...] = LANES, solo: bool = False, run: int = 1) -> None:
        before = self.now()
        seen = self.state()
        ready = {name: self._ready(seen, name) for name in self.sites}
        reply = self.world.run(self.world.frontier.lease([(lane, n) for lane in lanes], solo=solo, urls_per_slot=run))
        self.scans += reply.scans
        assert len([one for one in reply.leases if not one.follows]) <= (1 if solo else n * len(lanes))
        for lease in reply.leases:
            if lease.follows:
                self._follows(lease, before, run)
                continue
            # The shards were asked one after another: each has its own moment.
            expires_ms = int(self.world.do("ZSCORE", "%slots", counter_of(lease.fence), shard=lease.shard))
            slot_ms = Flight(lease, worker, expires_ms).slot_ms
            self._granted(lease, worker, before, expires_ms - slot_ms, ready[lease.host])

    def _follows(self, lease: Lease, before: int, run: int) -> None:
        """A further URL of a run: only where no delay, no other crawl and no robots.txt comes first."""
        flight = next(f for f in self.in_flight if lease.follows in (f.lease.fence, *(x.fence for x in f.followers)))
        first = flight.lease
        assert (lease.host, lease.crawl, lease.delay_ms) == (first.host, first.crawl, 0)
        assert lease.robots_ms == first.robots_ms, "rules of another origin"
        assert lease.entry.kind is Kind.PAGE
        assert lease.entry.crashes < 2, "a suspect in a run"
        assert not lease.solo
        assert lease.follows == [first, *flight.followers][-1].fence, "the order of the run"
        self._check_rules(lease, before)
        flight.followers.append(lease)
        assert len(flight.followers) < run

    def _ready(self, seen: State, name: str) -> dict[int, int]:
        """Crawls that share the host, all of one lane, and how many of their first pages nothing keeps waiting."""
        ring = [int(c) for c in seen.ring[name]]
        if seen.bring[name]:
            return {}
        if len(ring) < 2 or len({self.crawls[n].lane for n in ring}) > 1:
            return {}
        found = {}
        for n in ring:
            # A budget may be spent on other hosts in the same call.
            free = all(numbers["left"] == "-1" for numbers in seen.crawl[n])
            if free and self.crawls[n].state is CrawlState.RUNNING:
                found[n] = len(list(takewhile(partial(self._is_ready, name), seen.listed[(str(n), name)])))
        return {n: count for n, count in found.items() if count}

    def _is_ready(self, name: str, entry: str) -> bool:
        scheme = "http" if " http:/" in entry else "https"
        return "," not in entry and self.rules.get((name, f"{scheme}://{name}"), (0, 0))[0] > self.now() + 1000

    def _granted(self, lease: Lease, worker: int, before: int, now: int, ready: dict[int, int]) -> None:
        site = self.sites[lease.host]
        flight = Flight(lease, worker, 0)
        flight.expires_ms = now + flight.slot_ms
        asked_for_browser = lease.entry.kind is Kind.BROWSER
        assert asked_for_browser == (lease.lane is Lane.RENDER) or lease.entry.kind is Kind.ROBOTS, "the wrong lane"
        site.out[lease.fence] = flight
        assert len(site.out) <= lease.per_host, f"{lease.host}: {len(site.out)} slots out, per_host {lease.per_host}"
        crawl = self.crawls[lease.crawl]
        assert crawl.state is CrawlState.RUNNING, "a paused crawl was leased"
        assert lease.delay_ms >= (crawl.delay_s or 0) * 1000
        assert now >= site.blocked_ms, "a blocked host was leased"
        quiet_ms = self.quiet_ms[lease.shard]
        assert now >= quiet_ms + (lease.delay_ms if quiet_ms else 0), "leased in the quiet period"
        self._check_gap(lease, now)
        if lease.entry.kind is not Kind.ROBOTS:
            self._check_rules(lease, before)
        passed_over = (site.rivals & ready.keys()) - {lease.crawl}
        assert lease.crawl != site.turn or not passed_over, f"{lease.host}: crawl {lease.crawl} had two turns running"
        site.turn, site.rivals = lease.crawl, set(ready)
        # The same call may grant further slots of the host.
        ready[lease.crawl] = ready.get(lease.crawl, 0) - 1
        if ready[lease.crawl] <= 0:
            del ready[lease.crawl]
        self.in_flight.append(flight)

    def _check_rules(self, lease: Lease, before: int) -> None:
        origin = lease.entry.url.split("/", 3)
        until = self.rules.get((lease.host, f"{origin[0]}//{origin[2]}"), (0, 0))[0]
        assert until > before, "a page was leased before its robots rules were known"

    def _check_gap(self, lease: Lease, now: int) -> None:
        last = self.sites[lease.host].last
        if last is not None:
            early = last.base_ms + lease.delay_ms - now
            assert early <= 0, f"{lease.host}: {early} ms early"

    def start(self, flight: Flight, *, report: bool) -> None:
        """Bytes leave now; the worker's own check: never on a slot that is no longer valid."""
        now = self.now()
        if flight.start_ms is not None or now > flight.expires_ms - (self.SLOT_MS - self.VALID_MS):
            return
        site = self.sites[flight.lease.host]
        if flight.lease.per_host == 1:
            self._check_gap(flight.lease, now)
        else:
            # The end of one that was broken off may have come after this turn was given out: starts are what counts.
            early = site.started_ms + flight.lease.delay_ms - now
            assert early <= 0, f"{flight.lease.host}: started {early} ms early"
        living = [f for f in self.all_requests(flight.lease.host) if f.end_ms is None and now < f.expires_ms]
        assert len(living) < flight.lease.per_host, f"{flight.lease.host}: overlap"
        flight.start_ms = site.started_ms = now
        if site.last is None or now > site.last.base_ms:
            site.last = Sent(now, now)
        if report and flight.lease.per_host > 1 and not flight.visit:
            told = [(flight.lease.fence, boot() - (self.now() - now) / 1000)]
            reply = self.world.run(self.world.frontier.lease([(Lane.BATCH, 0)], started=told))
            self.scans += reply.scans

    def all_requests(self, host: str) -> list[Flight]:
        return [f for f in (*self.in_flight, *self.ghosts) if f.lease.host == host and f.start_ms is not None]

    def run_on(self, flight: Flight, n: int) -> None:
        """Up to `n` further URLs of the run are requested without a word to the frontier, which learns of them in one
        call. Where the host or the crawl must stop, nothing is requested."""
        releases: list[Release] = []
        flights: list[Flight] = []
        while flight.followers and len(flights) < n and self._may_go_on(flight):
            self.start(flight, report=False)
            if flight.start_ms is None:
                break
            successor = flight.followers[0]
            now, ago = self.now(), boot()
            flight.end_ms = now
            started = ago - (now - flight.start_ms) / 1000
            releases.append(Release(lease=flight.lease, started=started, ended=ago, successor=successor.fence))
            flights.append(flight)
            flight = self._pass(flight, successor)
        if releases:
            reply = self.world.run(self.world.frontier.lease([(Lane.BATCH, 0)], releases))
            self.scans += reply.scans
            times = [reply.times[f.lease.fence] for f in flights]
            for one, two in pairwise(times):
                assert one.end_ms <= two.start_ms, "requests of a run overlap in the log"
            self.waiting += flights

    def _may_go_on(self, flight: Flight) -> bool:
        lease = flight.lease
        blocked = self.sites[lease.host].blocked_ms > self.now()
        return not blocked and self.crawls[lease.crawl].state is CrawlState.RUNNING

    def _pass(self, flight: Flight, successor: Lease) -> Flight:
        """The slot passes to the next URL of its run, with its expiry."""
        site = self.sites[successor.host]
        flight.slot_back = True
        following = Flight(successor, flight.worker, flight.expires_ms, followers=flight.followers[1:])
        flight.followers = []
        if site.out.pop(flight.lease.fence, None) is not None:
            site.out[successor.fence] = following
        self.in_flight[self.in_flight.index(flight)] = following
        return following

    def end(self, flight: Flight, *, broken: bool, effect: HostEffect | None, url_back: bool, wait_ms: int) -> None:
        """The response ended (or nothing was sent): the slot goes back, the result waits for its commit. The rest of
        its run goes back with it."""
        now = self.now()
        if flight.start_ms is not None:
            flight.end_ms = now
        site = self.sites[flight.lease.host]
        lease = flight.lease
        ago = boot()
        release = Release(
            lease=lease,
            started=None if flight.start_ms is None else ago - (now - flight.start_ms) / 1000,
            ended=ago,
            broken_off=(broken or flight.visit) and flight.start_ms is not None,
            effect=effect,
            url_back=url_back and lease.entry.kind is not Kind.ROBOTS,
            wait_ms=wait_ms,
        )
        self.in_flight.remove(flight)
        if lease.entry.kind is Kind.ROBOTS:
            self._commit_robots(flight, release)
            return
        rest = [Release(lease=one, started=None, ended=ago, url_back=True) for one in reversed(flight.followers)]
        reply = self.world.run(self.world.frontier.lease([(Lane.BATCH, 0)], [*rest, release]))
        self.scans += reply.scans
        self._slot_back(flight, reply.times.get(lease.fence), release, reply.now_ms)
        assert site.last is None or flight.start_ms is None or reply.times[lease.fence].next_ms >= flight.start_ms
        if not release.url_back:
            self.waiting.append(flight)

    def _slot_back(self, flight: Flight, times: Any, release: Release, now_ms: int) -> None:
        site = self.sites[flight.lease.host]
        site.out.pop(flight.lease.fence, None)
        flight.slot_back = True
        if release.effect is not None and release.effect.block_ms:
            site.blocked_ms = max(site.blocked_ms, now_ms + release.effect.block_ms)
        if times is not None and release.broken_off and flight.end_ms is not None:
            base = flight.end_ms
            if site.last is None or base > site.last.base_ms:
                site.last = Sent(flight.start_ms or base, base)
        if times is not None:
            site.persisted_next_ms = max(site.persisted_next_ms, times.next_ms)

    def _commit_robots(self, flight: Flight, release: Release) -> None:
        lease, now = flight.lease, self.now()
        origin = lease.entry.url.removesuffix("/robots.txt")
        until = now + 3_600_000
        if flight.start_ms is not None:
            self.rules[(lease.host, origin)] = (until, now)
            rules = [Rules(host=lease.host, origin=origin, until_ms=until, fetched_ms=now)]
        else:
            release, rules = replace(release, url_back=True), []
        settled = [] if release.url_back else [Settled(lease=lease)]
        reply = self.world.run(self.world.frontier.settle(settled, rules=rules, releases=[release]))
        self.scans += reply.scans
        self._slot_back(flight, reply.times.get(lease.fence), release, reply.now_ms)

    def commit(self, flight: Flight, *, retry_ms: int | None, tell: bool, other: bool = False) -> None:
        """The store's fence rule decides; `tell` is False where the process died before it told the frontier.
        `other`: the page turned out to need a browser after all, or not."""
        self.waiting.remove(flight)
        lease = flight.lease
        row = self.by_url[(lease.crawl, lease.entry.url)]
        settled = Settled(lease=lease)
        known = epoch_of(lease.fence) == self.world.frontier.shards[lease.shard].epoch
        if row.state == "open" and row.fence < lease.fence:
            row.fence = lease.fence
            if other:
                kind = Kind.PAGE if flight.visit else Kind.BROWSER
                row.retry_ms, row.entry = 0, replace(lease.entry, kind=kind)
                settled = replace(settled, retry_ms=self.now(), entry=row.entry)
                if not tell:
                    self.torn.add((lease.crawl, lease.entry.url))
            elif retry_ms is None:
                settled = replace(settled, used=True)
                self._count_page(row, told=tell and known)
            else:
                row.retry_ms = self.now() + retry_ms
                row.entry = replace(lease.entry, attempts=lease.entry.attempts + 1)
                settled = replace(settled, retry_ms=row.retry_ms, entry=row.entry)
        if tell:
            if settled.used and not known:
                self.set_budget(lease.crawl)
            reply = self.world.run(self.world.frontier.settle([settled]))
            self.scans += reply.scans

    def _count_page(self, row: Row, *, told: bool) -> None:
        """The store's count is exact: what is over it is skipped, but has spent what was granted for it."""
        row.settled += 1
        assert row.settled == 1, "settled twice"
        crawl = self.crawls[row.crawl]
        if crawl.max_pages is not None and crawl.pages >= crawl.max_pages:
            row.state = "skipped"
            self.excess[row.crawl] -= told
        else:
            row.state = "done"
            self.crawls[row.crawl] = replace(crawl, pages=crawl.pages + 1)
            self.excess[row.crawl] += not told

    def crash(self, worker: int, *, by_itself: bool) -> None:
        """The worker and everything it held vanish; its requests may live on until their slots end. If it was not
        killed from outside, another process of its machine reports what it had in flight."""
        if by_itself:
            self.blamed |= (fences := {f.lease.fence for f in self.in_flight if f.worker == worker})
            self.world.run(self.world.frontier.report_crashes(sorted(fences)))
        self.ghosts += [f for f in self.in_flight if f.worker == worker]
        self.in_flight = [f for f in self.in_flight if f.worker != worker]
        self.waiting = [f for f in self.waiting if f.worker != worker]

    def heartbeat(self, worker: int) -> None:
        held = [one for f in (*self.in_flight, *self.waiting) if f.worker == worker for one in (f.lease, *f.followers)]
        self.world.run(self.world.frontier.renew_leases(held))

    def scan(self, scan: Scan) -> None:
        """Carries a scan out as the commit's side does: reads the store, fills, closes and leaves where it is empty."""
        rows = [r for r in self.open_rows(scan.crawl, scan.host, scan.render) if r.seq > (scan.cursor or 0)]
        part, more = rows[: scan.head], len(rows) > scan.head
        texts = [(r.seq, r.retry_ms or None, r.entry) for r in part]
        answer, scans = self.world.run(self.world.frontier.fill(scan, texts, more=more))
        self.scans += scans
        if answer == "empty":
            _, _, scans = self.world.run(self.world.frontier.leave(scan))
            self.scans += scans

    def reap(self) -> None:
        scans, _ = self.world.run(self.world.frontier.reap())
        self.scans += scans
        items = self.world.run(self.world.frontier.reaped())
        for item in items:
            if isinstance(item, ReapedSlot):
                self._reaped_slot(item)
            else:
                self._reaped_lease(item)
        self.world.run(self.world.frontier.forget_reaped(items))

    def _reaped_slot(self, item: ReapedSlot) -> None:
        site = self.sites[item.host]
        flight = site.out.pop(item.fence)
        assert item.expiry_ms == flight.expires_ms
        if site.last is None or item.expiry_ms > site.last.base_ms:
            site.last = Sent(item.leased_ms, item.expiry_ms)
        site.persisted_next_ms = max(site.persisted_next_ms, item.expiry_ms + item.delay_ms)

    def _reaped_lease(self, item: ReapedLease) -> None:
        if item.own_robots:
            return
        row = self.by_url[(item.crawl, item.entry.url)]
        blamed = item.fence in self.blamed
        self.blamed.discard(item.fence)
        assert item.crashed == blamed, "only a crash of its own process counts against a URL"
        assert not item.condemned or (item.solo and item.entry.solo_crashes >= 2)
        if row.state == "open" and row.fence < item.fence:
            if not item.condemned:
                row.fence = item.fence
            row.entry = replace(row.entry, crashes=item.entry.crashes, solo_crashes=item.entry.solo_crashes)
        if item.condemned:
            if row.state == "open" and row.fence < item.fence:
                row.state, row.fence, row.settled = "dead", item.fence, row.settled + 1
            lease = _lease_of(item)
            self.scans += self.world.run(self.world.frontier.settle([Settled(lease=lease)])).scans

    def _forget_turns(self) -> None:
        for site in self.sites.values():
            site.turn = None

    def pause(self, n: int) -> None:
        self._forget_turns()
        crawl = replace(self.crawls[n], state=CrawlState.PAUSED)
        self.crawls[n] = crawl
        self.world.run(self.world.frontier.set_crawl(crawl, keep_budget=True))
        self.world.run(
            self.world.frontier.drop(sorted({(r.crawl, r.host) for r in self.rows.values() if r.crawl == n}))
        )

    def resume(self, n: int) -> None:
        self._forget_turns()
        crawl = replace(self.crawls[n], state=CrawlState.RUNNING)
        self.crawls[n] = crawl
        self.world.run(self.world.frontier.set_crawl(crawl, keep_budget=True))
        self.put_back()

    def lose(self, *, flush: bool) -> None:
        """Valkey is lost; what was under way is known to nobody. One process rebuilds, with a quiet period."""
        if flush:
            for shard in self.world.frontier.shards:
                self.world.do("FLUSHALL", shard=shard.number)
        self.world.rebuild(quiet_s=self.RENDER_SLOT_MS / 1000)
        for shard in self.world.frontier.shards:
            self.quiet_ms[shard.number] = int(self.world.do("HGET", shard.epoch_key, "quiet", shard=shard.number))
        self.scans = []
        for site in self.sites.values():
            # Requests under way live on in `in_flight` and `ghosts` until their slots would have ended.
            site.out.clear()
            site.turn = None
        for n in self.crawls:
            self.set_budget(n)
        self.put_back()

    def advance(self, seconds: float) -> None:
        self.world.advance(seconds)

    # What must hold in every state

    def state(self) -> State:
        return State.read(self.world, sorted(self.sites), sorted(self.crawls))

    def check(self) -> None:
        seen = self.state()
        plain = [name for lane, due in seen.due.items() for name in due if not lane.startswith("render")]
        browsers = [*seen.due["render"], *seen.due["render:solo"]]
        for standing in (plain, browsers):
            assert len(standing) == len(set(standing)), "a host stands in two due sets"
        once = [page for page in seen.pages if page not in self.torn]
        assert len(once) == len(set(once)), "a page stands here twice"
        self._check_counts(seen)
        self._check_reachable(seen, set(plain), set(browsers))

    def _check_counts(self, seen: State) -> None:
        pairs: dict[int, int] = defaultdict(int)
        play: dict[str, int] = defaultdict(int)
        for name in self.sites:
            self._check_host(name, seen)
            for key, value in seen.host[name].items():
                if key.startswith("q:"):
                    pairs[_crawl_of(key[2:])] += 1
                    # Both queues of a crawl on a host count as one in play.
                    play[value] += not (key.endswith("b") and key[:-1] in seen.host[name])
                    if key.endswith("b"):
                        play["render"] += 1
        for n in self.crawls:
            numbers = _sum([{k: v for k, v in part.items() if k in ("busy", "pairs")} for part in seen.crawl[n]])
            under_way = sum(count for (queue, _), count in seen.under_way.items() if _crawl_of(queue) == n)
            assert numbers["busy"] == under_way, f"crawl {n}: busy"
            assert numbers["pairs"] == pairs[n], f"crawl {n}: pairs"
            self._check_budget(n, seen)
        assert {lane: count for lane, count in seen.play.items() if count} == dict(play)

    def _check_budget(self, n: int, seen: State) -> None:
        """Over all shards: what is left and what is granted are what the store has left, to the page."""
        shares = [int(numbers["left"]) for numbers in seen.crawl[n]]
        crawl = self.crawls[n]
        if crawl.max_pages is None:
            assert set(shares) == {-1}, f"crawl {n}: a budget that nobody set"
            return
        assert min(shares) >= 0, f"crawl {n}: more granted than was left"
        known = crawl.max_pages - crawl.pages + self.excess[n]
        assert sum(shares) + seen.granted[n] == known, f"crawl {n}: {shares} + {seen.granted[n]} granted, not {known}"

    def _check_host(self, name: str, seen: State) -> None:
        fields = seen.host[name]
        ring, bring = seen.ring[name], seen.bring[name]
        assert sorted(ring + bring) == sorted(f[2:] for f in fields if f.startswith("q:")), f"{name}: rings"
        assert all(queue.endswith("b") for queue in bring)
        assert fields.get("rn", "0 0") == f"{len(ring)} {len(bring)}"
        assert int(fields.get("out", 0)) == len(self.sites[name].out), f"{name}: slots out"
        for queue in [queue for n in self.crawls for queue in (str(n), f"{n}b")]:
            assert int(fields.get(f"x:{queue}", 0)) == seen.under_way[(queue, name)], f"{name}: x of {queue}"

    def _check_reachable(self, seen: State, plain: set[str], browsers: set[str]) -> None:
        """A queue on the bench with open rows is listed, delayed, leased, being scanned, or about to be served."""
        for render in (False, True):
            for crawl, name in self.open_queues(render):
                self._check_queue(
                    seen, crawl, name, browsers if render else plain, f"{crawl}b" if render else str(crawl)
                )

    def _check_queue(self, seen: State, crawl: int, name: str, due: set[str], queue: str) -> None:
        fields = seen.host[name]
        if f"q:{queue}" not in fields:
            return  # found by put_back
        listed = bool(seen.listed[(queue, name)])
        scanning = f"{name}\x1f{queue}" in seen.scans
        assert seen.under_way[(queue, name)] or scanning or listed or name in due, f"{queue} on {name} is stuck"
        if listed:
            starved = name in seen.starved[crawl]
            assert name in due or int(fields.get("out", 0)) > 0 or starved, f"{queue} on {name} is never served"

    # The end

    def drain(self) -> None:
        """Whatever happened: from here on everything ends: budgets to the page, then every row."""
        for n, crawl in self.crawls.items():
            if crawl.state is CrawlState.PAUSED:
                self.resume(n)
        for flight in [*self.in_flight]:
            self.end(flight, broken=False, effect=None, url_back=False, wait_ms=0)
        for flight in [*self.waiting]:
            self.commit(flight, retry_ms=None, tell=True)
        self._work_off(self._spent)
        for n in self.crawls:
            self.crawls[n] = replace(self.crawls[n], max_pages=None)
            self.set_budget(n)
        self._work_off(lambda: not self.open_queues())
        stuck = [r for r in self.rows.values() if r.state == "open"]
        assert not stuck, f"never settled: {stuck}"
        assert all(r.settled == 1 for r in self.rows.values())

    def _spent(self) -> bool:
        """Every crawl with a budget has its pages, or no open row; looks as the check for completion does."""
        wanting = {n for n, _ in self.open_queues() if self.crawls[n].max_pages is not None}
        wanting = {n for n in wanting if self.crawls[n].pages < (self.crawls[n].max_pages or 0)}
        for n in wanting:
            if self.world.run(self.world.frontier.idle(n)):
                # What a shard has left of the budget may be what another lacks.
                self.set_budget(n)
        return not wanting

    def _work_off(self, ended: Callable[[], bool]) -> None:
        for _ in range(400):
            while self.scans:
                self.scan(self.scans.pop(0))
            if ended():
                return
            self.put_back()
            for lanes in (LANES, RENDER):
                self.lease(1, 64, lanes, run=4)
            if not self.in_flight:
                self.lease(1, 1, solo=True)
            if not self.in_flight:
                self.lease(1, 1, RENDER, solo=True)
            for flight in [*self.in_flight]:
                self.run_on(flight, 4)
            for flight in [*self.in_flight]:
                self.start(flight, report=True)
                self.end(flight, broken=False, effect=None, url_back=False, wait_ms=0)
            for flight in [*self.waiting]:
                self.commit(flight, retry_ms=None, tell=True)
            self.check()
            self.advance(21)
            self.reap()
        assert ended(), "it does not come to an end"

    def close(self) -> None:
        self.world.close()


def _lease_of(item: ReapedLease) -> Lease:
    return Lease(
        fence=item.fence, shard=item.shard, host=item.host, crawl=item.crawl, crawl_version=0, lane=Lane.BATCH,
        entry=item.entry, delay_ms=item.delay_ms, per_host=item.per_host, robots_ms=0, valid_until=0,
    )  # fmt: skip
