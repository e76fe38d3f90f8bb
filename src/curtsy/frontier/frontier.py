"""The operations of the frontier over its shards. docs/frontier.md has the guarantees, lua/*.lua the scripts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from xxhash import xxh32_intdigest

from curtsy.core.clock import boot
from curtsy.core.errors import EpochLost, FrontierUnavailable, SettingsError
from curtsy.core.model import Crawl, Entry, HostState, Kind, Lane, Lease, RobotsState
from curtsy.core.settings import Settings
from curtsy.frontier import messages
from curtsy.frontier.entry import encode, short_origin
from curtsy.frontier.messages import (
    US,
    LeaseReply,
    PushReply,
    ReapedLease,
    ReapedSlot,
    Release,
    Room,
    RoomReply,
    Rules,
    Scan,
    Settled,
    SettleReply,
    SlotReply,
    counter_of,
    epoch_of,
    fence_of,
)
from curtsy.frontier.servers import Servers, default_shards
from curtsy.frontier.shard import Shard

#: bytes of Valkey memory per fingerprint in a full bucket, keys counted: measured 8.2 (Valkey 9) to 9.0 (Redis 7)
SEEN_BYTES = 10
#: a host that is not due for this long makes room for a queue that waits in the store
_FAR_MS = 300_000
#: queues that make room at a time
_PARKED = 100
#: how long one process loads the waiting queues of a lane before another may
_ROOM_MS = 5_000
#: redirected robots.txt files are never refused for lack of room: the rules of loaded hosts wait for them
_NO_CAP = 1 << 40


class Frontier:
    """All operations. Batches are split by shard; each call touches one hash slot of a Redis cluster."""

    def __init__(self, url: str, settings: Settings, owner: str, *, bound: Iterable[int] = ()) -> None:
        """`bound`: lease only from these shards; if empty, from settings.bind_shards, else from all."""
        self.settings = settings
        self.owner = owner
        self.servers = Servers(url)
        count = settings.shards or default_shards(url)
        self.shards = [Shard(i, self.servers) for i in range(count)]
        self._bound = frozenset(range(count))
        self.bind(bound or settings.bind_shards)
        self._turn = -1
        self._slot_ms = int(settings.slot_s * 1000)
        #: a browser's visit takes longer than a request
        self._visit_s = settings.render_slot_s - settings.slot_margin_s
        self._slots_ms = {Lane.RENDER: int(settings.render_slot_s * 1000)}
        self._lease_ms = int(settings.url_lease_s * 1000)
        self._in_play = -(-settings.queues_in_play // count)
        self._seen_cap = max(1000, settings.seen_cap_mb * 1_000_000 // SEEN_BYTES // count)

    def bind(self, shards: Iterable[int]) -> None:
        """Leases only hosts of these shards from now on; of all shards if empty."""
        count = len(self.shards)
        bound = frozenset(shards) or frozenset(range(count))
        if max(bound) >= count:
            raise SettingsError(f"Invalid shard {max(bound)}: the frontier has the shards 0 to {count - 1}.")
        self._bound = bound

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
        """Refuses servers that evict keys, standbys too: they would lose politeness state silently."""
        for node, policy in (await self.shards[0].policies()).items():
            if policy not in ("noeviction", "unknown"):
                raise SettingsError(
                    f"The frontier server {node.where} evicts keys (maxmemory-policy {policy}). Set it to noeviction: "
                    "CONFIG SET maxmemory-policy noeviction."
                )

    # Leasing

    async def lease(
        self, wants: Sequence[tuple[Lane, int]], releases: Sequence[Release] = (), *,
        started: Sequence[tuple[int, float]] = (), solo: bool = False, urls_per_slot: int = 1,
        most_urls: int = 1 << 20,
    ) -> LeaseReply:  # fmt: skip
        """Returns the slots in `releases`, then leases up to the wanted number of slots per lane. `started`: (fence,
        boot time).

        `urls_per_slot`: a slot of a host without a delay may be leased for this many URLs, which follow one another.
        `most_urls`: for all slots together, about as many; each gets one.
        """
        reply = LeaseReply()
        missing = dict(wants)
        # Each call starts with another shard, so that no shard is always last.
        self._turn += 1
        for i in range(len(self.shards)):
            shard = self.shards[(self._turn + i) % len(self.shards)]
            mine = [r for r in releases if r.lease.shard == shard.number]
            told = [s for s in started if epoch_of(s[0]) == shard.epoch]
            wanted = missing if shard.number in self._bound and shard.may_lease else dict.fromkeys(missing, 0)
            if not (mine or told or i == 0 or any(wanted.values())):
                continue
            before = boot()
            args: list[str | int] = [self.owner, self._lease_ms, int(solo), len(mine)]
            args += [r.text(before, shard.epoch) for r in mine]
            args.append(len(told))
            args += [f"{counter_of(fence)} {max(0, int((before - at) * 1000))}" for fence, at in told]
            args.append(len(wanted))
            for lane, n in wanted.items():
                args += [lane.value, n, self._slots_ms.get(lane, self._slot_ms)]
            had = len(reply.leases)
            args += [shard.halts, urls_per_slot, max(0, most_urls - had)]
            try:
                raw = await shard.call("lease", *args)
            except (EpochLost, FrontierUnavailable) as error:
                if not had:
                    raise
                # Leases of other shards are kept: dropped ones would count as lost with their worker.
                reply.trouble = error
                break
            self._read_lease_reply(shard, raw, mine, before, reply)
            for lease in reply.leases[had:]:
                if lease.follows:
                    continue
                missing = dict.fromkeys(missing, 0) if solo else missing | {lease.lane: missing[lease.lane] - 1}
        return reply

    def _read_lease_reply(
        self, shard: Shard, raw: list[Any], mine: Sequence[Release], before: float, reply: LeaseReply
    ) -> None:
        reply.now_ms = int(raw[0])
        reply.asked.add(shard.number)
        messages.read_times(raw[1], mine, reply.times, boot() - before)
        valid_until = before + self.settings.slot_validity_s
        epoch = shard.epoch or 0
        for item in raw[2]:
            lease = messages.lease_of(item.decode(), shard.number, epoch, valid_until, before, reply.now_ms)
            if lease.lane is Lane.RENDER:
                lease = replace(lease, valid_until=before + self._visit_s)
            reply.leases.append(lease)
        reply.scans += messages.scans_of(raw[3], shard.number)
        if raw[4]:
            due = int(raw[4])
            reply.next_ms = due if reply.next_ms is None else min(reply.next_ms, due)
        reply.suspects += raw[5]
        reply.render_suspects += raw[8]
        reply.urls_per_slot = max(reply.urls_per_slot, raw[9])
        halts = int(raw[6])
        reply.has_halts |= halts > shard.halts
        shard.note_halts(halts)
        reply.halted.update(int(c) for c in raw[7])

    async def renew_leases(self, leases: Iterable[Lease]) -> set[int]:
        """Renews the URL leases of this process. Returns the fences that it no longer holds."""
        lost: set[int] = set()
        held = list(leases)
        trouble: Exception | None = None
        for shard in self.shards:
            ids = [counter_of(lease.fence) for lease in held if epoch_of(lease.fence) == shard.epoch]
            try:
                raw = await shard.call("beat", self.owner, self._lease_ms, *ids)
            except (EpochLost, FrontierUnavailable) as error:
                # The leases of other shards are renewed all the same.
                trouble = trouble or error
                continue
            lost.update(fence_of(shard.epoch or 0, int(i)) for i in raw[1])
            lost.update(
                lease.fence for lease in held if lease.shard == shard.number and epoch_of(lease.fence) != shard.epoch
            )
        if trouble is not None:
            raise trouble
        return lost

    async def report_crashes(self, fences: Iterable[int]) -> int:
        """The process that held these leases crashed by itself. Returns how many of them were still leased."""
        stood, held = 0, list(fences)
        for shard in self.shards:
            if ids := [counter_of(fence) for fence in held if epoch_of(fence) == shard.epoch]:
                stood += (await shard.call("blame", *ids))[1]
        return stood

    async def slot(self, host: str, delay_s: float = 0) -> SlotReply:
        """A slot for an external client, or how long it must wait; -1: send the host first (`set_hosts`)."""
        shard = self.shard_of(host)
        if not shard.may_lease:
            return SlotReply(None, 1000)
        raw = await shard.call("slot", host, self._slot_ms, int(delay_s * 1000))
        fence = fence_of(shard.epoch or 0, int(raw[1])) if raw[1] else None
        return SlotReply(fence, int(raw[2]), int(raw[3]), int(raw[4]))

    # After a commit

    async def settle(
        self, settled: Sequence[Settled], *, rules: Sequence[Rules] = (), releases: Sequence[Release] = ()
    ) -> SettleReply:
        """Ends the leases of a committed group; stores robots rules and returns slots in the same call.

        Leases of an earlier epoch are ignored.
        """
        reply = SettleReply()
        for shard in self.shards:
            my_rules = [r for r in rules if self.shard_of(r.host) is shard]
            mine = [r for r in releases if r.lease.shard == shard.number]
            ended = [s for s in settled if epoch_of(s.lease.fence) == shard.epoch]
            if not (my_rules or mine or ended):
                continue
            now = boot()
            args: list[str | int] = [len(my_rules)]
            args += [messages.rules_text(r) for r in my_rules]
            args.append(len(mine))
            args += [r.text(now, shard.epoch) for r in mine]
            args.append(len(ended))
            args += [messages.settled_text(s) for s in ended]
            raw = await shard.call("settle", *args)
            reply.now_ms = int(raw[0])
            messages.read_times(raw[1], mine, reply.times, boot() - now)
            reply.scans += messages.scans_of(raw[2], shard.number)
            reply.idle.update(int(c) for c in raw[3])
        return reply

    async def push(self, rows: Iterable[tuple[int, str, int, Entry]], *, front: bool = False) -> PushReply:
        """Appends rows (crawl, host, seq, entry) that the store accepted to the lists of their queues, in order of seq.

        `front`: inserts them at the head of the list instead.
        """
        queues: dict[tuple[str, int | str], list[str]] = {}
        for crawl, host, seq, entry in rows:
            queue = crawl if entry.kind is not Kind.BROWSER else messages.queue_name(crawl, True)
            queues.setdefault((host, queue), []).append(f"{seq}{US}{encode(entry, host)}")
        reply = PushReply()
        for shard in self.shards:
            mine = [(key, texts) for key, texts in queues.items() if self.shard_of(key[0]) is shard]
            for some in messages.in_groups(mine, 5000):
                args: list[str | int] = [_NO_CAP if front else self._in_play, int(front), len(some)]
                for (host, queue), texts in some:
                    args += [host, queue, len(texts), *texts]
                messages.read_push(await shard.call("push", *args), shard.number, reply)
        return reply

    async def put_back(self, queues: Sequence[tuple[int, str]], render: Sequence[tuple[int, str]] = ()) -> PushReply:
        """Puts queues (crawl, host) that are open in the store into the due set again; `render`: queues of pages that
        wait for a browser.
        """
        reply = PushReply()
        for shard in self.shards:
            mine: list[tuple[str, int | str]] = [(h, crawl) for crawl, h in queues if self.shard_of(h) is shard]
            mine += [(h, messages.queue_name(crawl, True)) for crawl, h in render if self.shard_of(h) is shard]
            for at in range(0, len(mine), 1000):
                some = mine[at : at + 1000]
                flat = [word for pair in some for word in pair]
                raw = await shard.call("put_back", self._in_play, len(some), *flat)
                messages.read_push(raw, shard.number, reply)
        return reply

    # Queues that wait in the store

    async def waits(self, lanes: Iterable[Lane]) -> None:
        """Record that queues of these lanes wait in the store."""
        if words := [lane.value for lane in lanes]:
            for shard in self.shards:
                await shard.call("waits", *words)

    async def room(self) -> RoomReply:
        """Where waiting queues may be loaded, claimed for this process; and the queues that made room."""
        reply = RoomReply()
        for shard in self.shards:
            raw = await shard.call("room", self._in_play, _FAR_MS, _PARKED, _ROOM_MS)
            messages.read_room(raw, shard.number, reply)
        return reply

    async def lane_loaded(self, room: Room, *, none_wait: bool, pause_ms: int) -> None:
        """The claimed room is filled. `none_wait`: the store has no more queues; else look again after the pause."""
        await self.shards[room.shard].call("lane_loaded", room.lane.value, room.mark, int(none_wait), pause_ms)

    async def set_hosts(
        self, hosts: Sequence[HostState], robots: Sequence[RobotsState] = (), *, again: bool = False, lift: bool = False
    ) -> None:
        """Sends the facts of hosts from the store; without them a host is not leased. `lift`: also shortens blocks."""
        rules: dict[str, list[str]] = {}
        for r in robots:
            known = rules.setdefault(r.host, [])
            known += [short_origin(r.origin, r.host), f"{r.expires_ms}:{r.fetched_ms}"]
        for shard in self.shards:
            mine = [h for h in hosts if self.shard_of(h.host) is shard]
            for at in range(0, len(mine), 1000):
                some = mine[at : at + 1000]
                texts = [messages.host_text(h, rules.get(h.host, [])) for h in some]
                await shard.call("introduce", 2 if lift else int(again), len(some), *texts)

    async def make_retries_due(self, host: str) -> int:
        """Makes the retries of a host due with its next slots instead of later. Returns how many."""
        shard = self.shard_of(host)
        seconds, micros = await shard.command("TIME")
        now_ms, hastened = int(seconds) * 1000 + int(micros) // 1000, 0
        async for member, _ in shard.delayed(f"{host}{US}"):
            # XX: a retry that was leased meanwhile is not added again.
            hastened += await shard.command("ZADD", "%delayed", "XX", "CH", now_ms, member)
        return hastened

    async def set_crawl(self, crawl: Crawl, *, keep_budget: bool = False) -> None:
        """Introduces a crawl, or updates its state, options and budget."""
        delay_s = self.settings.delay_s if crawl.delay_s is None else crawl.delay_s
        left = -1 if crawl.max_pages is None else max(0, crawl.max_pages - crawl.pages)
        state = "running" if crawl.state in ("running", "loading") else crawl.state.value
        for shard, share in zip(self.shards, await self._shares(crawl.n, left), strict=True):
            await shard.call(
                "crawl_set", crawl.n, state, crawl.lane.value, int(delay_s * 1000),
                crawl.per_host or self.settings.per_host, share, crawl.version, int(keep_budget),
            )  # fmt: skip

    async def _shares(self, crawl: int, left: int) -> list[int]:
        """Splits a budget over the shards in which the crawl has queues, or over all while it has none. Each call
        splits what is left again, so that no page of it stays on a shard that cannot use it.
        """
        if left < 0 or len(self.shards) == 1:
            return [left] * len(self.shards)
        loaded = [shard.number for shard in self.shards if (await shard.call("idle", crawl))[1] > 0]
        loaded = loaded or [shard.number for shard in self.shards]
        each, over = divmod(left, len(loaded))
        shares = dict.fromkeys(loaded, each) | dict.fromkeys(loaded[:over], each + 1)
        return [shares.get(shard.number, 0) for shard in self.shards]

    async def drop(self, queues: Sequence[tuple[int, str]]) -> None:
        """Removes queues (crawl, host): the crawl is paused or has ended, or the host is dead for it."""
        for shard in self.shards:
            mine = [(host, crawl) for crawl, host in queues if self.shard_of(host) is shard]
            for at in range(0, len(mine), 1000):
                flat = [word for pair in mine[at : at + 1000] for word in pair]
                await shard.call("drop", len(flat) // 2, *flat)

    async def forget(self, crawl: int) -> None:
        """Removes the filter and counters of an ended crawl."""
        for shard in self.shards:
            while (await shard.call("forget", crawl, 256))[1]:
                pass

    # Scans

    async def fill(
        self, scan: Scan, rows: Sequence[tuple[int, int | None, Entry]], *, more: bool
    ) -> tuple[str, list[Scan]]:
        """Fills a scanned queue with rows (seq, retry_ms, entry). Returns 'ok', 'stale' or 'empty' (close it)."""
        texts = [f"{retry or 0}{US}{encode(entry, scan.host)}" for _, retry, entry in rows]
        cursor = rows[-1][0] if rows else (scan.cursor or 0)
        raw = await self.shards[scan.shard].call(
            "fill", scan.host, scan.queue, scan.token, int(scan.cursor is None), int(more), cursor, len(texts), *texts
        )
        return raw[1].decode(), messages.scans_of(raw[2], scan.shard)

    async def leave(self, scan: Scan) -> tuple[bool, bool, list[Scan]]:
        """Removes an empty queue. Returns (it left the due set, its crawl is idle, scans)."""
        raw = await self.shards[scan.shard].call("leave", scan.host, scan.queue, scan.token)
        return raw[1] == 1, raw[2] == 1, messages.scans_of(raw[3], scan.shard)

    # The reaper

    async def reap(self, limit: int = 200) -> tuple[list[Scan], int | None]:
        """Takes back expired slots and leases; `reaped` lists them for the store. Returns scans and the next expiry."""
        scans: list[Scan] = []
        soonest: int | None = None
        for shard in self.shards:
            raw = await shard.call("reap", limit)
            scans += messages.scans_of(raw[2], shard.number)
            if raw[3]:
                soonest = int(raw[3]) if soonest is None else min(soonest, int(raw[3]))
        return scans, soonest

    async def reaped(self, limit: int = 500) -> list[ReapedSlot | ReapedLease]:
        return [
            messages.reaped_of(item, shard.number, shard.epoch or 0)
            for shard in self.shards
            for item in await shard.reaped(limit)
        ]

    async def forget_reaped(self, items: Sequence[ReapedSlot | ReapedLease]) -> None:
        """Remove entries that the store has recorded."""
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
        """Adds fingerprints of stored rows to the filter."""
        shard = self.shards[crawl % len(self.shards)]
        for at in range(0, len(shorts), 4000):
            await shard.call("see", self._seen_cap, crawl, *shorts[at : at + 4000])

    # Watching

    async def idle(self, crawl: int) -> bool:
        """Whether nothing of the crawl is listed, delayed or leased, or its budget is spent and nothing is in
        flight.
        """
        for shard in self.shards:
            _, pairs, busy, left = await shard.call("idle", crawl)
            if busy > 0 or (pairs > 0 and left != 0):
                return False
        return True
