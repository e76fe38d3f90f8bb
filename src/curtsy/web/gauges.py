"""What /metrics says beside the sums of the fleet: numbers that are read when somebody asks."""

from __future__ import annotations

from curtsy import metrics
from curtsy.fleet import Fleet
from curtsy.frontier.frontier import Frontier
from curtsy.model import CrawlState, Lane
from curtsy.store import crawls
from curtsy.store.engine import Store

_LANES = (Lane.HIGH, Lane.BATCH, Lane.SLOW)


async def of_frontier(frontier: Frontier, fields: dict[str, float]) -> None:
    """Queues in play, hosts due and slots out, over all shards."""
    depth, due = dict.fromkeys(_LANES, 0), dict.fromkeys(_LANES, 0)
    under_way = 0
    for shard in frontier.shards:
        seconds, micros = await shard.command("TIME")
        now_ms = int(seconds) * 1000 + int(micros) // 1000
        for lane in _LANES:
            depth[lane] += int(await shard.command("HGET", "%play", lane.value) or 0)
            due[lane] += int(await shard.command("ZCOUNT", f"%due:{lane.value}", "-inf", now_ms))
        under_way += int(await shard.command("ZCARD", "%slots"))
    for lane in _LANES:
        metrics.gauge(fields, "curtsy_queue_depth", depth[lane], lane=lane.value)
        metrics.gauge(fields, "curtsy_due_hosts", due[lane], lane=lane.value)
    metrics.gauge(fields, "curtsy_in_flight", under_way, lane="all")


async def of_fleet(fleet: Fleet, fields: dict[str, float]) -> None:
    metrics.gauge(fields, "curtsy_seats", sum(worker.seats for worker in await fleet.workers()))
    running = [await fleet.running(lane.value) for lane in _LANES]
    metrics.gauge(fields, "curtsy_running_shifts", sum(running))


def of_store(store: Store, fields: dict[str, float]) -> None:
    with store.read() as tx:
        states = [state for state, _ in crawls.states(tx).values()]
    metrics.gauge(fields, "curtsy_running_crawls", states.count(CrawlState.RUNNING))
