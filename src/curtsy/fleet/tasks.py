"""The Celery tasks, a few lines each. The work is in worker_process.py, crawl/shift.py and records/stages.py."""

from __future__ import annotations

from typing import Any

from celery import signals
from celery.exceptions import SoftTimeLimitExceeded

from curtsy.core import observe, tracing
from curtsy.core.failpoints import point
from curtsy.core.model import Lane
from curtsy.core.observe import log
from curtsy.core.threads import in_thread
from curtsy.fleet.celery_app import app, ending, frontier_url, the_settings
from curtsy.fleet.coordination import celery_queue, lane_of
from curtsy.fleet.worker_process import WorkerProcess
from curtsy.records import stages

#: one retry; after that the caller handles the error
_TRIES = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}
_process: WorkerProcess | None = None


def worker_process() -> WorkerProcess:
    """The object of this process: created by the first task after the fork, closed when the process exits."""
    global _process
    if _process is None:
        found = the_settings()
        observe.configure(found.log_level, found.log_format)
        _process = WorkerProcess(found, ending, frontier_url())
    return _process


def _leave(**_: Any) -> None:
    if _process is not None:
        _process.close()
    tracing.end()


signals.worker_process_shutdown.connect(_leave)


@app.task(name="curtsy.shift", acks_late=False)  # type: ignore[untyped-decorator]
def shift(queue: str, ticket: str, shards: str | None = None) -> None:
    """Crawl whatever is due in a lane."""
    try:
        worker_process().work_shift(queue, ticket, shards)
    except SoftTimeLimitExceeded:
        log("shift_over_soft_limit", level="error", queue=queue)


@app.task(name="curtsy.render", acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def render(queue: str, ticket: str, shards: str | None = None) -> None:
    """Crawl pages that wait for a browser."""
    shift(queue, ticket, shards)


@app.task(name="curtsy.stage", acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def stage(kind: str, n: int) -> None:
    """Run one stage of one outbox row, then send the stages that follow."""
    if left := send_stages(worker_process().run(lambda parts: stages.run(parts, kind, n))):
        worker_process().run(lambda parts: in_thread(stages.take_back, parts.store, left))
    point("stage.sent")


def send_stages(sendings: list[stages.StageMessage]) -> list[stages.StageMessage]:
    """Send stages; returns those that could not be sent. After the first failure the rest is not tried."""
    for place, sending in enumerate(sendings):
        headers = {"request_id": sending.request_id} if sending.request_id else None
        try:
            stage.apply_async((sending.kind, sending.n), headers=headers, retry=True, retry_policy=_TRIES)
        except stage.OperationalError as error:
            log("stages_not_sent", level="warning", n=len(sendings) - place, error=str(error))
            return sendings[place:]
    return []


def send_shift(queue: str, ticket: str, shards: str | None) -> None:
    if lane_of(queue) is not Lane.RENDER:
        shift.apply_async((queue, ticket, shards), retry=True, retry_policy=_TRIES)
        return
    given = the_settings()
    soft_s, hard_s = (limit + given.longer_render_s for limit in (given.task_soft_limit_s, given.task_hard_limit_s))
    render.apply_async(
        (queue, ticket, shards), retry=True, retry_policy=_TRIES, soft_time_limit=soft_s, time_limit=hard_s
    )


def depth(queue: str) -> int:
    """The number of messages in a queue of shifts; 0 if the queue does not exist yet."""
    with app.pool.acquire(block=True) as connection:

        def ask(channel: Any) -> int:
            try:
                return int(channel.queue_declare(celery_queue(queue), passive=True).message_count)
            except connection.channel_errors:
                return 0

        # The connection may have died with the broker: one retry over a new one.
        count: int = connection.autoretry(ask, connection.default_channel, **_TRIES)()[0]
        return count
