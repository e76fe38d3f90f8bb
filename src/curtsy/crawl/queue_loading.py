"""Loads queues that wait in the store into the frontier as others leave, in the order of their next time.

At most `queues_in_play` pairs (crawl, host) of a lane are loaded, so the frontier's memory is bounded however large the
crawl is. A queue that the frontier refuses waits in the store with the time of the refusal. While any queue waits, a
host that is blocked for minutes makes room, and its queue waits until the block ends. A process that finds
room loads the queues with the earliest times. Several processes may do this at once and may stop anywhere: a queue that
is loaded twice is in the due set once, and the sweep once a minute finds queues that were missed.
"""

from __future__ import annotations

from curtsy.core.model import Lane
from curtsy.core.threads import in_thread
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import Room, Scan
from curtsy.services.epochs import put_back
from curtsy.store import queues
from curtsy.store.engine import Store, read

_BATCH = 1000
#: batches read at a time: with several shards, the first queues may all belong to a full one
_BATCHES = 20
#: the longest pause before the next check
_PAUSE_MS = 60_000


async def load(frontier: Frontier, store: Store) -> tuple[list[Scan], bool]:
    """Loads as many queues as there is room for. Returns the scans to carry out, and whether queues still wait."""
    reply = await frontier.room()
    if reply.parked:
        await in_thread(store.run, queues.wait, reply.parked)
    scans: list[Scan] = []
    crowded = bool(reply.parked)
    for lane in {room.lane for room in reply.rooms}:
        rooms = [room for room in reply.rooms if room.lane is lane]
        found, pause_ms = await _load_lane(frontier, store, lane, rooms, reply.now_ms)
        scans += found
        crowded |= pause_ms is not None
        for room in rooms:
            await frontier.lane_loaded(room, none_wait=pause_ms is None, pause_ms=pause_ms or 0)
    return scans, crowded


async def _load_lane(
    frontier: Frontier, store: Store, lane: Lane, rooms: list[Room], now_ms: int
) -> tuple[list[Scan], int | None]:
    """Returns the scans, and after how many ms to check again; None: no queue waits."""
    left = {room.shard: room.room for room in rooms}
    scans: list[Scan] = []
    passed = False
    after = (0, 0, "")
    for _ in range(_BATCHES):
        found = await read(store, queues.waiting, lane.value, after, _BATCH)
        if not found:
            return scans, 0 if passed else None
        after = (found[-1].next_ms, found[-1].crawl, found[-1].host)
        chosen: list[tuple[int, str]] = []
        for q in found:
            if q.next_ms > now_ms:
                break
            shard = frontier.shard_of(q.host).number
            if left.get(shard, 0) > 0:
                left[shard] -= 1
                chosen.append((q.crawl, q.host))
            else:
                passed = True
        # In this order: a queue that is refused after all waits again.
        await in_thread(store.run, queues.loaded, chosen)
        scans += await put_back(frontier, store, chosen)
        if found[-1].next_ms > now_ms:
            later = next(q.next_ms for q in found if q.next_ms > now_ms)
            return scans, 0 if passed else min(_PAUSE_MS, later - now_ms)
        if not any(left.values()):
            break
    return scans, 0
