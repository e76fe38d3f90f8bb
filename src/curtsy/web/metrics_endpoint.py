"""The gauges of /metrics, read at each request; the fleet's counters are added to them."""

from __future__ import annotations

from curtsy.core import clock, metrics
from curtsy.core.model import CrawlState
from curtsy.fleet.coordination import BEAT_LIFE_S, Fleet
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.watch import LANES, look
from curtsy.store import crawls, dashboard_queries, llm_cache, outbox
from curtsy.store.engine import Store

#: crawls whose use of a language model is shown: every crawl and field is a time series
_MODEL_CRAWLS = 20


async def of_frontier(frontier: Frontier, fields: dict[str, float]) -> None:
    """Active queues, due hosts and requests in flight, over all shards."""
    view = await look(frontier, detail=True)
    for lane in LANES:
        metrics.gauge(fields, "curtsy_queue_depth", view.in_play.get(lane, 0), lane=lane.value)
        metrics.gauge(fields, "curtsy_due_hosts", view.hosts(lane), lane=lane.value)
        metrics.gauge(fields, "curtsy_in_flight", view.in_flight.get(lane, 0), lane=lane.value)


async def of_fleet(fleet: Fleet, fields: dict[str, float]) -> None:
    metrics.gauge(fields, "curtsy_worker_processes", sum(worker.processes for worker in await fleet.workers()))
    age_s = await fleet.beat_age_s()
    metrics.gauge(fields, "curtsy_beat_age_seconds", BEAT_LIFE_S if age_s is None else age_s)
    running = [await fleet.running(lane.value) for lane in LANES]
    metrics.gauge(fields, "curtsy_running_shifts", sum(running))


def of_store(store: Store, fields: dict[str, float]) -> None:
    with store.read() as tx:
        states = [state for state, _ in crawls.states(tx).values()]
        dead = dashboard_queries.dead_letters(tx)
        backlog = outbox.backlog(tx)
        known = [(crawls.by_n(tx, n).id, llm_cache.by_field(tx, n)) for n in llm_cache.newest_crawls(tx, _MODEL_CRAWLS)]
    metrics.gauge(fields, "curtsy_running_crawls", states.count(CrawlState.RUNNING))
    for cause, n in dead.items():
        metrics.gauge(fields, "curtsy_dead_letters", n, cause=cause)
    now_ms = clock.now_ms()
    for kind in outbox.KINDS:
        rows, due_ms = backlog.get(kind, (0, now_ms))
        metrics.gauge(fields, "curtsy_outbox_rows", rows, kind=kind)
        metrics.gauge(fields, "curtsy_outbox_age_seconds", max(0, now_ms - due_ms) / 1000, kind=kind)
    for crawl, used in known:
        for one in used:
            _of_model(fields, one, {"crawl": crawl, "schema": one.schema, "field": one.field})


def _of_model(fields: dict[str, float], used: llm_cache.FieldUsage, labels: dict[str, str]) -> None:
    """Sums of the store: they are as durable as the records."""
    metrics.gauge(fields, "curtsy_llm_calls_total", used.calls, **labels)
    metrics.gauge(fields, "curtsy_llm_tokens_total", used.prompt_tokens, kind="prompt", **labels)
    metrics.gauge(fields, "curtsy_llm_tokens_total", used.completion_tokens, kind="completion", **labels)
    metrics.gauge(fields, "curtsy_llm_cost_total", used.cost, **labels)
