"""Arguments and replies of the frontier's scripts: values in Python, short texts in Lua."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from curtsy.core.model import Entry, HostState, Lane, Lease, hot_value
from curtsy.core.outcome import HostEffect
from curtsy.frontier.entry import decode, encode, short_origin

US = "\x1f"
_COUNTER = (1 << 40) - 1
_LANES = {lane.value: lane for lane in Lane} | {"solo": Lane.BATCH, "render:solo": Lane.RENDER}


def fence_of(epoch: int, counter: int) -> int:
    """23 bits of epoch, 40 of counter: increases, also after a loss of Valkey."""
    return epoch << 40 | counter


def epoch_of(fence: int) -> int:
    return fence >> 40


def counter_of(fence: int) -> int:
    return fence & _COUNTER


def queue_name(crawl: int, render: bool) -> int | str:
    """A crawl has two queues on a host: pages that wait for a browser, and everything else."""
    return f"{crawl}b" if render else crawl


def _queue_of(name: str) -> tuple[int, bool]:
    return (int(name[:-1]), True) if name[-1] == "b" else (int(name), False)


@hot_value()
class Release:
    """A slot that a worker returns. Times are the worker's boot clock."""

    lease: Lease
    #: None: nothing was sent
    started: float | None
    ended: float
    broken_off: bool = False
    effect: HostEffect | None = None
    #: the URL returns to the head of its list: its request has no result
    url_back: bool = False
    #: the slot stays taken, only its times are used: a robots entry keeps it until its rules are committed
    hold: bool = False
    #: the host is not leased again for this long
    wait_ms: int = 0
    #: the fence of the next URL of its run, which gets the slot; 0: the slot is returned
    successor: int = 0

    def _mode(self, current: bool) -> str:
        if not current:
            return "k"
        return "h" if self.hold else "b" if self.url_back else "k"

    def text(self, now: float, epoch: int | None) -> str:
        """As release.lua reads it. A slot of an earlier epoch has number 0: only its times and effects are used."""
        e = self.effect
        current = epoch_of(self.lease.fence) == epoch
        slot = counter_of(self.lease.fence) if current else 0
        started = "-" if self.started is None else max(0, int((now - self.started) * 1000))
        adaptive = "-" if e is None or e.adaptive_ms is None else e.adaptive_ms
        failures, slow = ("-", "-") if e is None else (e.failures, int(e.slow))
        return (
            f"{slot} {self.lease.host} {self._mode(current)} {started} "
            f"{max(0, int((now - self.ended) * 1000))} {int(self.broken_off)} {0 if e is None else e.block_ms} "
            f"{adaptive} {failures} {slow} {self.wait_ms} {self.successor & _COUNTER if current else 0}"
        )


#: in a slower call, the request may have needed this time to reach the server
_SLOW_CALL_S = 0.02


@hot_value(kw_only=False)
class Times:
    """When a request began and ended, and the earliest next request to its host, by the server's clock."""

    start_ms: int
    end_ms: int
    next_ms: int


class SlotReply(NamedTuple):
    """The reply to an external client that asks for a slot."""

    #: None: not now
    fence: int | None
    #: -1: send the host first (`Frontier.set_hosts`)
    wait_ms: int = 0
    #: in force for this slot
    delay_ms: int = 0
    per_host: int = 1


@hot_value()
class Scan:
    """A queue whose rows the receiving process must read from the store."""

    shard: int
    host: str
    crawl: int
    token: str
    #: rows behind this seq; None: a rescan from the start
    cursor: int | None
    head: int
    #: the queue of the pages that wait for a browser
    render: bool = False

    @property
    def queue(self) -> int | str:
        return queue_name(self.crawl, self.render)


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
    #: the same for pages that wait for a browser
    render_suspects: int = 0
    #: for how many URLs a slot was leased at most
    urls_per_slot: int = 1
    #: shards that answered; not all if one failed after others had granted leases
    asked: set[int] = field(default_factory=set)
    trouble: Exception | None = None
    #: crawls that were paused or have ended since the last reply
    halted: set[int] = field(default_factory=set)
    #: there were some; those that have ended may be forgotten already, and are not in `halted`
    has_halts: bool = False


@hot_value()
class Settled:
    """A lease whose commit is durable."""

    lease: Lease
    #: None: settled finally; else the time of the next attempt, as `entry`
    retry_ms: int | None = None
    entry: Entry | None = None
    #: it counts against max_pages
    used: bool = False


@hot_value()
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
    #: crawls without queues in the due set: they may be finished
    idle: set[int] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class PushReply:
    now_ms: int = 0
    hosts: set[str] = field(default_factory=set)
    crawls: set[int] = field(default_factory=set)
    scans: list[Scan] = field(default_factory=list)
    #: queues (crawl, host) that must wait in the store because enough are loaded
    waiting: list[tuple[int, str]] = field(default_factory=list)


@hot_value(kw_only=False)
class Room:
    """Queues of a lane wait in the store; this number of them may be loaded into this shard."""

    shard: int
    lane: Lane
    room: int
    #: passed back to identify the read of the store
    mark: str


@dataclass(slots=True, kw_only=True)
class RoomReply:
    now_ms: int = 0
    rooms: list[Room] = field(default_factory=list)
    #: (crawl, host, not before) of queues that made room
    parked: list[tuple[int, str, int]] = field(default_factory=list)


@hot_value()
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


@hot_value()
class ReapedLease:
    shard: int
    fence: int
    host: str
    crawl: int
    #: as it is listed again, with a crash counted
    entry: Entry
    delay_ms: int
    per_host: int
    #: None: nothing is known to have been sent
    times: tuple[int, int] | None
    #: its process crashed by itself; else it was killed, or could not reach a server in time
    crashed: bool
    #: the second crash while nothing else was in flight
    condemned: bool
    solo: bool
    own_robots: bool
    raw: bytes


def lease_of(text: str, shard: int, epoch: int, valid_until: float, asked_at: float, granted_ms: int) -> Lease:
    words = text.split(US, 13)
    counter, follows, host, crawl, version, delay, per_host, robots, solo, _own, lane, failures, adaptive, entry = words
    return Lease(
        fence=fence_of(epoch, int(counter)),
        shard=shard,
        host=host,
        crawl=int(crawl) if crawl[-1] != "b" else int(crawl[:-1]),
        crawl_version=int(version),
        lane=_LANES[lane],
        entry=decode(entry, host),
        delay_ms=int(delay),
        per_host=int(per_host),
        robots_ms=int(robots),
        valid_until=valid_until,
        asked_at=asked_at,
        granted_ms=granted_ms,
        solo=solo == "1",
        failures=int(failures),
        adaptive_ms=int(adaptive),
        follows=fence_of(epoch, int(follows)) if follows != "0" else 0,
    )


def read_times(raw: list[bytes], releases: Sequence[Release], into: dict[int, Times], took_s: float) -> None:
    """`took_s`: how long the call took."""
    for release, text in zip(releases, raw, strict=True):
        if text != b"-":
            start, end, due = map(int, text.split())
            # The server keeps the requests of a run in order: their times are not changed.
            late = _underway_ms(release, start) if took_s > _SLOW_CALL_S and not release.lease.follows else 0
            late = min(late, int(took_s * 1000))
            into[release.lease.fence] = Times(start - late, end - late, due)


def _underway_ms(release: Release, start_ms: int) -> int:
    """By how much the server overestimates when a request began, if its release took long to arrive.

    The server counts back from the arrival, so that the host's delay is long enough; the request log needs the true
    time.
    """
    lease = release.lease
    if release.started is None or not lease.granted_ms:
        return 0
    return max(0, start_ms - lease.granted_ms - int((release.started - lease.asked_at) * 1000) - 1)


def scans_of(raw: list[bytes], shard: int) -> list[Scan]:
    scans = []
    for item in raw:
        host, queue, token, cursor, head = item.decode().split(US)
        after = None if cursor == "-" else int(cursor)
        crawl, render = _queue_of(queue)
        scans.append(
            Scan(shard=shard, host=host, crawl=crawl, render=render, token=token, cursor=after, head=int(head))
        )
    return scans


def read_push(raw: list[Any], shard: int, into: PushReply) -> None:
    into.now_ms = int(raw[0])
    into.hosts.update(name.decode() for name in raw[1])
    into.crawls.update(int(c) for c in raw[2])
    into.scans += scans_of(raw[3], shard)
    for item in raw[4]:
        crawl, host = item.decode().split(" ", 1)
        into.waiting.append((int(crawl), host))


def read_room(raw: list[Any], shard: int, into: RoomReply) -> None:
    into.now_ms = int(raw[0])
    for item in raw[1]:
        lane, room, mark = item.decode().split(" ")
        into.rooms.append(Room(shard, Lane(lane), int(room), mark))
    for item in raw[2]:
        crawl, until, host = item.decode().split(" ", 2)
        into.parked.append((int(crawl), host, int(until)))


def in_groups(
    queues: list[tuple[tuple[str, int | str], list[str]]], rows: int
) -> Iterable[list[tuple[tuple[str, int | str], list[str]]]]:
    """Groups of whole queues (a queue longer than a group is cut) of about `rows` rows."""
    group: list[tuple[tuple[str, int | str], list[str]]] = []
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


def rules_text(r: Rules) -> str:
    until = f"p{r.until_ms}" if r.pending else str(r.until_ms)
    delay = "-" if r.delay_ms is None else str(r.delay_ms)
    return US.join((r.host, short_origin(r.origin, r.host), until, str(r.fetched_ms), delay))


def settled_text(s: Settled) -> str:
    counter = s.lease.fence & _COUNTER
    if s.retry_ms is None or s.entry is None:
        return f"{counter}{US}d{US}{int(s.used)}{US}0{US}"
    return f"{counter}{US}r{US}{int(s.used)}{US}{s.retry_ms}{US}{encode(s.entry, s.lease.host)}"


def host_text(h: HostState, rules: Sequence[str]) -> str:
    def or_dash(value: int | None) -> str:
        return "-" if value is None else str(value)

    return US.join(
        (
            h.host, str(h.next_ms), str(h.blocked_until_ms), or_dash(h.operator_delay_ms), or_dash(h.operator_per_host),
            or_dash(h.robots_delay_ms), or_dash(h.adaptive_ms), str(h.failures), str(int(h.slow)), *rules,
        )
    )  # fmt: skip


def reaped_of(raw: bytes, shard: int, epoch: int) -> ReapedSlot | ReapedLease:
    kind, counter, *rest = raw.decode().split(US)
    fence = fence_of(epoch, int(counter))
    if kind == "slot":
        host, leased, expiry, delay, per_host, crawl = rest
        return ReapedSlot(
            shard=shard, fence=fence, host=host, leased_ms=int(leased), expiry_ms=int(expiry), delay_ms=int(delay),
            per_host=int(per_host), crawl=None if crawl == "-" else int(crawl), raw=raw,
        )  # fmt: skip
    started, ended, crash, own_robots, solo, host, crawl, delay, per_host, entry = rest
    return ReapedLease(
        shard=shard, fence=fence, host=host, crawl=int(crawl), entry=decode(entry, host), delay_ms=int(delay),
        per_host=int(per_host), times=None if started == "-" else (int(started), int(ended)),
        crashed=crash != "0", condemned=crash == "2", solo=solo == "1", own_robots=own_robots == "1", raw=raw,
    )  # fmt: skip
