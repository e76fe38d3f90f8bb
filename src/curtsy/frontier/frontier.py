"""The frontier's verbs over its shards. What each promises is in docs/architecture.md; how, in lua/*.lua."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xxhash import xxh32_intdigest

from curtsy.errors import SettingsError
from curtsy.frontier.clock import boot
from curtsy.frontier.entry import decode, encode, short_origin
from curtsy.frontier.shard import Shard
from curtsy.model import Crawl, Entry, HostEffect, HostState, Lane, Lease, RobotsState
from curtsy.settings import Settings

US = "\x1f"
#: bytes of Valkey memory per fingerprint in a full bucket, keys counted: measured 8.2 (Valkey 9) to 9.0 (Redis 7)
SEEN_BYTES = 10
_LANES = {lane.value: lane for lane in Lane} | {"solo": Lane.BATCH}


def fence_of(epoch: int, counter: int) -> int:
    """23 bits of epoch, 40 of counter: grows over every loss of Valkey."""
    return epoch << 40 | counter


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A slot on its way back. Times are the worker's boot clock."""

    lease: Lease
    #: None: nothing was sent
    started: float | None
    ended: float
    broken_off: bool = False
    effect: HostEffect | None = None
    #: the URL goes back to the head of its list (nothing was learnt of it)
    url_back: bool = False
    #: the slot stays out, only the times are taken: a robots entry keeps it until its rules are committed
    hold: bool = False
    #: the host is not offered again before this long
    wait_ms: int = 0

    def _mode(self, current: bool) -> str:
        if not current:
            return "k"
        return "h" if self.hold else "b" if self.url_back else "k"

    def text(self, now: float, epoch: int | None) -> str:
        e = self.effect
        current = self.lease.fence >> 40 == epoch
        slot = self.lease.fence & 0xFFFFFFFFFF if current else f"0@{self.lease.host}"
        started = "-" if self.started is None else int((now - self.started) * 1000)
        adaptive = "-" if e is None or e.adaptive_ms is None else e.adaptive_ms
        failures, slow = ("-", "-") if e is None else (e.failures, int(e.slow))
        return (
            f"{slot} {self._mode(current)} {started} "
            f"{max(0, int((now - self.ended) * 1000))} {int(self.broken_off)} {0 if e is None else e.block_ms} "
            f"{adaptive} {failures} {slow} {self.wait_ms}"
        )


@dataclass(frozen=True, slots=True)
class Times:
    """When a request began and ended, and when its host may next be asked, by the server's clock."""

    start_ms: int
    end_ms: int
    next_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """A queue whose rows must be read from the store, by whoever was handed this."""

    shard: int
    host: str
    crawl: int
    token: str
    #: rows behind this seq; None: a rescan from the start
    cursor: int | None
    head: int


@dataclass(slots=True, kw_only=True)
class LeaseReply:
    now_ms: int = 0
    #: by fence; absent where nothing was sent
    times: dict[int, Times] = field(default_factory=dict)
    leases: list[Lease] = field(default_factory=list)
    scans: list[Scan] = field(default_factory=list)
    #: when the next host or retry is due, if known
    next_ms: int | None = None
    #: hosts whose head is a suspect wait for a process with nothing in flight
    suspects: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """A lease whose commit is durable."""

    lease: Lease
    #: None: settled for good; else tried again then, as `entry`
    retry_ms: int | None = None
    entry: Entry | None = None
    #: it counts against max_pages
    used: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Robots rules that became known, or are being followed through a redirect."""

    host: str
    origin: str
    until_ms: int
    fetched_ms: int
    delay_ms: int | None = None
    pending: bool = False


@dataclass(slots=True, kw_only=True)
class SettleReply:
    now_ms: int = 0
    times: dict[int, Times] = field(default_factory=dict)
    scans: list[Scan] = field(default_factory=list)
    #: crawls with nothing left on the bench: their completion is to be checked
    idle: set[int] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class PushReply:
    hosts: set[str] = field(default_factory=set)
    crawls: set[int] = field(default_factory=set)
    scans: list[Scan] = field(default_factory=list)
    #: queues that wait in the store because enough are in play
    waiting: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReapedSlot:
    shard: int
    fence: int
    host: str
    leased_ms: int
    expiry_ms: int
    delay_ms: int
    per_host: int
    crawl: int | None
    raw: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ReapedLease:
    shard: int
    fence: int
    host: str
    crawl: int
    #: as it stands in the list again, with the crash counted
    entry: Entry
    delay_ms: int
    per_host: int
    #: None: nothing is known to have been sent
    times: tuple[int, int] | None
    condemned: bool
    solo: bool
    own_robots: bool
    raw: bytes


class Frontier:
    """All verbs. Batches are split by shard; each call touches one slot of a cluster."""

    def __init__(self, url: str, settings: Settings, owner: str) -> None:
        self.settings = settings
        self.owner = owner
        self.shards = [Shard(i, url) for i in range(settings.shards)]
        self._slot_ms = int(settings.slot_s * 1000)
        self._lease_ms = int(settings.url_lease_s * 1000)
        self._seen_cap = max(1000, settings.seen_cap_mb * 1_000_000 // SEEN_BYTES // settings.shards)

    @property
    def calls(self) -> int:
        return sum(shard.calls for shard in self.shards)

    def shard_of(self, host: str) -> Shard:
        if len(self.shards) == 1:
            return self.shards[0]
        return self.shards[xxh32_intdigest(host.encode()) % len(self.shards)]

    async def close(self) -> None:
        for shard in self.shards:
            await shard.close()

    async def check_policy(self) -> None:
        """An evicting server would lose politeness state silently: refused."""
        for shard in self.shards:
            policy = await shard.policy()
            if policy not in ("noeviction", "unknown"):
                raise SettingsError(
                    f"The frontier server evicts keys (maxmemory-policy {policy}). Set it to noeviction: "
                    "CONFIG SET maxmemory-policy noeviction."
                )

    # Leasing

    async def lease(
        self, wants: Sequence[tuple[Lane, int]], releases: Sequence[Release] = (), *,
        started: Sequence[tuple[int, float]] = (), solo: bool = False,
    ) -> LeaseReply:  # fmt: skip
        """Gives `releases` back, then leases up to the wanted number per lane. `started`: (fence, boot time)."""
        reply = LeaseReply()
        for shard in self.shards:
            mine = [r for r in releases if r.lease.shard == shard.number]
            told = [s for s in started if s[0] >> 40 == shard.epoch]
            before = boot()
            args: list[str | int] = [self.owner, self._lease_ms, int(solo), len(mine)]
            args += [r.text(before, shard.epoch) for r in mine]
            args.append(len(told))
            args += [f"{fence & 0xFFFFFFFFFF} {int((before - at) * 1000)}" for fence, at in told]
            args.append(len(wants))
            for lane, n in wants:
                args += [lane.value, max(0, n - len(reply.leases)) if solo else n, self._slot_ms]
            raw = await shard.call("lease", *args)
            self._read_lease_reply(shard, raw, mine, before, reply)
        return reply

    def _read_lease_reply(
        self, shard: Shard, raw: list[Any], mine: Sequence[Release], before: float, reply: LeaseReply
    ) -> None:
        reply.now_ms = int(raw[0])
        _read_times(raw[1], mine, reply.times)
        valid_until = before + self.settings.slot_validity_s
        epoch = shard.epoch or 0
        for item in raw[2]:
            reply.leases.append(_lease_of(item.decode(), shard.number, epoch, valid_until))
        reply.scans += _scans_of(raw[3], shard.number)
        if raw[4]:
            due = int(raw[4])
            reply.next_ms = due if reply.next_ms is None else min(reply.next_ms, due)
        reply.suspects += raw[5]

    async def beat(self, leases: Iterable[Lease]) -> set[int]:
        """Renews the URL leases of this process; answers the fences that are no longer ours."""
        lost: set[int] = set()
        held = list(leases)
        for shard in self.shards:
            ids = [lease.fence & 0xFFFFFFFFFF for lease in held if lease.fence >> 40 == shard.epoch]
            raw = await shard.call("beat", self.owner, self._lease_ms, *ids)
            lost.update(fence_of(shard.epoch or 0, int(i)) for i in raw[1])
            lost.update(
                lease.fence for lease in held if lease.shard == shard.number and lease.fence >> 40 != shard.epoch
            )
        return lost

    async def slot(self, host: str, delay_s: float = 0) -> tuple[int | None, int]:
        """A guest's turn: (fence, 0), or (None, ms to wait); (None, -1): introduce the host first."""
        shard = self.shard_of(host)
        raw = await shard.call("slot", host, self._slot_ms, int(delay_s * 1000))
        return (fence_of(shard.epoch or 0, int(raw[1])), 0) if raw[1] else (None, int(raw[2]))

    # What a commit made durable

    async def settle(
        self, settled: Sequence[Settled], *, rules: Sequence[Rules] = (), releases: Sequence[Release] = ()
    ) -> SettleReply:
        reply = SettleReply()
        for shard in self.shards:
            my_rules = [r for r in rules if self.shard_of(r.host) is shard]
            mine = [r for r in releases if r.lease.shard == shard.number]
            ended = [s for s in settled if s.lease.fence >> 40 == shard.epoch]
            if not (my_rules or mine or ended):
                continue
            now = boot()
            args: list[str | int] = [len(my_rules)]
            args += [_rules_text(r) for r in my_rules]
            args.append(len(mine))
            args += [r.text(now, shard.epoch) for r in mine]
            args.append(len(ended))
            args += [_settled_text(s) for s in ended]
            raw = await shard.call("settle", *args)
            reply.now_ms = int(raw[0])
            _read_times(raw[1], mine, reply.times)
            reply.scans += _scans_of(raw[2], shard.number)
            reply.idle.update(int(c) for c in raw[3])
        return reply

    async def push(self, rows: Iterable[tuple[int, str, int, Entry]], *, front: bool = False) -> PushReply:
        """Lists rows (crawl, host, seq, entry) that the store accepted, in order of seq within a queue."""
        queues: dict[tuple[str, int], list[str]] = {}
        for crawl, host, seq, entry in rows:
            queues.setdefault((host, crawl), []).append(f"{seq}{US}{encode(entry, host)}")
        reply = PushReply()
        for shard in self.shards:
            mine = [(key, texts) for key, texts in queues.items() if self.shard_of(key[0]) is shard]
            for some in _in_groups(mine, 5000):
                args: list[str | int] = [self.settings.queues_in_play, int(front), len(some)]
                for (host, crawl), texts in some:
                    args += [host, crawl, len(texts), *texts]
                _read_push(await shard.call("push", *args), shard.number, reply)
        return reply

    async def put_back(self, queues: Sequence[tuple[int, str]]) -> PushReply:
        """Queues (crawl, host) that the store says are open stand on the bench again."""
        reply = PushReply()
        for shard in self.shards:
            mine = [(host, crawl) for crawl, host in queues if self.shard_of(host) is shard]
            for at in range(0, len(mine), 1000):
                some = mine[at : at + 1000]
                flat = [word for pair in some for word in pair]
                raw = await shard.call("put_back", self.settings.queues_in_play, len(some), *flat)
                _read_push(raw, shard.number, reply)
        return reply

    async def introduce(
        self, hosts: Sequence[HostState], robots: Sequence[RobotsState] = (), *, again: bool = False
    ) -> None:
        """Facts of hosts from the store; a host is asked only after this."""
        rules: dict[str, list[str]] = {}
        for r in robots:
            known = rules.setdefault(r.host, [])
            known += [short_origin(r.origin, r.host), f"{r.expires_ms}:{r.fetched_ms}"]
        for shard in self.shards:
            mine = [h for h in hosts if self.shard_of(h.host) is shard]
            for at in range(0, len(mine), 1000):
                some = mine[at : at + 1000]
                texts = [_host_text(h, rules.get(h.host, [])) for h in some]
                await shard.call("introduce", int(again), len(some), *texts)

    async def set_crawl(self, crawl: Crawl, *, keep_budget: bool = False) -> None:
        """Introduces a crawl, or tells that its state, wishes or budget changed."""
        delay_s = self.settings.delay_s if crawl.delay_s is None else crawl.delay_s
        left = -1 if crawl.max_pages is None else max(0, crawl.max_pages - crawl.pages)
        state = "running" if crawl.state in ("running", "loading") else crawl.state.value
        for shard in self.shards:
            # A budget is split over the shards; what is left is split again when it is set again.
            share = left if left < 0 else left // len(self.shards) + (shard.number < left % len(self.shards))
            await shard.call(
                "crawl_set", crawl.n, state, crawl.lane.value, int(delay_s * 1000),
                crawl.per_host or self.settings.per_host, "" if keep_budget else share, crawl.version,
            )  # fmt: skip

    async def drop(self, queues: Sequence[tuple[int, str]]) -> None:
        """Queues (crawl, host) leave at once: paused, ended, or the host is dead for the crawl."""
        for shard in self.shards:
            mine = [(host, crawl) for crawl, host in queues if self.shard_of(host) is shard]
            for at in range(0, len(mine), 1000):
                flat = [word for pair in mine[at : at + 1000] for word in pair]
                await shard.call("drop", len(flat) // 2, *flat)

    async def forget(self, crawl: int) -> None:
        """An ended crawl's filter and numbers go."""
        for shard in self.shards:
            while (await shard.call("forget", crawl, 256))[1]:
                pass

    # Scans

    async def fill(
        self, scan: Scan, rows: Sequence[tuple[int, int | None, Entry]], *, more: bool
    ) -> tuple[str, list[Scan]]:
        """Answers a scan with rows (seq, retry_ms, entry): 'ok', 'stale', or 'empty' (close it in the store, leave)."""
        texts = [f"{retry or 0}{US}{encode(entry, scan.host)}" for _, retry, entry in rows]
        cursor = rows[-1][0] if rows else (scan.cursor or 0)
        raw = await self.shards[scan.shard].call(
            "fill", scan.host, scan.crawl, scan.token, int(scan.cursor is None), int(more), cursor, len(texts), *texts
        )
        return raw[1].decode(), _scans_of(raw[2], scan.shard)

    async def leave(self, scan: Scan) -> tuple[bool, bool, list[Scan]]:
        """(the queue left the bench, its crawl is idle, scans)."""
        raw = await self.shards[scan.shard].call("leave", scan.host, scan.crawl, scan.token)
        return raw[1] == 1, raw[2] == 1, _scans_of(raw[3], scan.shard)

    # The reaper

    async def reap(self, limit: int = 200) -> tuple[list[Scan], int | None]:
        """Takes back what expired; what the store must learn is then in `reaped`. Answers scans and the next expiry."""
        scans: list[Scan] = []
        soonest: int | None = None
        for shard in self.shards:
            raw = await shard.call("reap", limit)
            scans += _scans_of(raw[2], shard.number)
            if raw[3]:
                soonest = int(raw[3]) if soonest is None else min(soonest, int(raw[3]))
        return scans, soonest

    async def reaped(self, limit: int = 500) -> list[ReapedSlot | ReapedLease]:
        return [
            _reaped_of(item, shard.number, shard.epoch or 0)
            for shard in self.shards
            for item in await shard.reaped(limit)
        ]

    async def forget_reaped(self, items: Sequence[ReapedSlot | ReapedLease]) -> None:
        """The store has learnt of them."""
        for shard in self.shards:
            if mine := [item.raw for item in items if item.shard == shard.number]:
                await shard.forget_reaped(mine)

    # The filter

    async def unseen(self, crawl: int, shorts: Sequence[int]) -> list[int]:
        """Positions of the fingerprints that may be new. Read only."""
        shard = self.shards[crawl % len(self.shards)]
        fresh: list[int] = []
        for at in range(0, len(shorts), 4000):
            raw = await shard.call("seen", crawl, *shorts[at : at + 4000])
            fresh += [at + i for i in raw[1]]
        return fresh

    async def see(self, crawl: int, shorts: Sequence[int]) -> None:
        """Fingerprints that the store holds enter the filter."""
        shard = self.shards[crawl % len(self.shards)]
        for at in range(0, len(shorts), 4000):
            await shard.call("see", self._seen_cap, crawl, *shorts[at : at + 4000])

    # Watching

    async def idle(self, crawl: int) -> bool:
        """Nothing of the crawl is listed, delayed or leased, or its budget is spent and nothing is under way."""
        for shard in self.shards:
            facts = await shard.hash(f"crawl:{crawl}")
            if int(facts.get("busy", 0)) > 0:
                return False
            if int(facts.get("pairs", 0)) > 0 and facts.get("left") != "0":
                return False
        return True


def _lease_of(text: str, shard: int, epoch: int, valid_until: float) -> Lease:
    counter, host, crawl, version, delay, per_host, robots, solo, _own, lane, failures, adaptive, entry = text.split(US, 12)
    return Lease(
        fence=epoch << 40 | int(counter),
        shard=shard,
        host=host,
        crawl=int(crawl),
        crawl_version=int(version),
        lane=_LANES[lane],
        entry=decode(entry, host),
        delay_ms=int(delay),
        per_host=int(per_host),
        robots_ms=int(robots),
        valid_until=valid_until,
        solo=solo == "1",
        failures=int(failures),
        adaptive_ms=int(adaptive),
    )


def _read_times(raw: list[bytes], releases: Sequence[Release], into: dict[int, Times]) -> None:
    for release, text in zip(releases, raw, strict=True):
        if text != b"-":
            start, end, due = text.split()
            into[release.lease.fence] = Times(int(start), int(end), int(due))


def _scans_of(raw: list[bytes], shard: int) -> list[Scan]:
    scans = []
    for item in raw:
        host, crawl, token, cursor, head = item.decode().split(US)
        after = None if cursor == "-" else int(cursor)
        scans.append(Scan(shard=shard, host=host, crawl=int(crawl), token=token, cursor=after, head=int(head)))
    return scans


def _read_push(raw: list[Any], shard: int, into: PushReply) -> None:
    into.hosts.update(name.decode() for name in raw[1])
    into.crawls.update(int(c) for c in raw[2])
    into.scans += _scans_of(raw[3], shard)
    into.waiting += raw[4]


def _in_groups(
    queues: list[tuple[tuple[str, int], list[str]]], rows: int
) -> Iterable[list[tuple[tuple[str, int], list[str]]]]:
    """Groups of whole queues (a queue longer than a group is cut) of about `rows` rows."""
    group: list[tuple[tuple[str, int], list[str]]] = []
    size = 0
    for key, texts in queues:
        for at in range(0, len(texts), rows):
            part = texts[at : at + rows]
            if group and size + len(part) > rows:
                yield group
                group, size = [], 0
            group.append((key, part))
            size += len(part)
    if group:
        yield group


def _rules_text(r: Rules) -> str:
    until = f"p{r.until_ms}" if r.pending else str(r.until_ms)
    delay = "-" if r.delay_ms is None else str(r.delay_ms)
    return US.join((r.host, short_origin(r.origin, r.host), until, str(r.fetched_ms), delay))


def _settled_text(s: Settled) -> str:
    counter = s.lease.fence & 0xFFFFFFFFFF
    if s.retry_ms is None or s.entry is None:
        return f"{counter}{US}d{US}{int(s.used)}{US}0{US}"
    return f"{counter}{US}r{US}{int(s.used)}{US}{s.retry_ms}{US}{encode(s.entry, s.lease.host)}"


def _host_text(h: HostState, rules: Sequence[str]) -> str:
    def or_dash(value: int | None) -> str:
        return "-" if value is None else str(value)

    return US.join(
        (
            h.host, str(h.next_ms), str(h.blocked_until_ms), or_dash(h.operator_delay_ms), or_dash(h.operator_per_host),
            or_dash(h.robots_delay_ms), or_dash(h.adaptive_ms), str(h.failures), str(int(h.slow)), *rules,
        )
    )  # fmt: skip


def _reaped_of(raw: bytes, shard: int, epoch: int) -> ReapedSlot | ReapedLease:
    kind, counter, *rest = raw.decode().split(US)
    fence = epoch << 40 | int(counter)
    if kind == "slot":
        host, leased, expiry, delay, per_host, crawl = rest
        return ReapedSlot(
            shard=shard, fence=fence, host=host, leased_ms=int(leased), expiry_ms=int(expiry), delay_ms=int(delay),
            per_host=int(per_host), crawl=None if crawl == "-" else int(crawl), raw=raw,
        )  # fmt: skip
    started, ended, condemned, own_robots, solo, host, crawl, delay, per_host, entry = rest
    return ReapedLease(
        shard=shard, fence=fence, host=host, crawl=int(crawl), entry=decode(entry, host), delay_ms=int(delay),
        per_host=int(per_host), times=None if started == "-" else (int(started), int(ended)),
        condemned=condemned == "1", solo=solo == "1", own_robots=own_robots == "1", raw=raw,
    )  # fmt: skip
