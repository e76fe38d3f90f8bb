"""The tasks: a few lines each. What they do is in seat.py, shift.py and stages.py."""

from __future__ import annotations

from typing import Any

from celery import signals
from celery.exceptions import SoftTimeLimitExceeded

from curtsy.core import observe
from curtsy.core.failpoints import point
from curtsy.core.model import Lane
from curtsy.core.observe import log
from curtsy.core.threads import in_thread
from curtsy.fleet.celery_app import app, ending, frontier_url, the_settings
from curtsy.fleet.coordination import celery_queue, lane_of
from curtsy.fleet.worker_process import WorkerProcess
from curtsy.records import stages

#: a message that cannot be sent is the caller's to send again
_TRIES = {"max_retries": 1, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.2}
_seat: WorkerProcess | None = None


def seat() -> WorkerProcess:
    """Of this process: made by the first task after the fork, kept until it ends."""
    global _seat
    if _seat is None:
        found = the_settings()
        observe.configure(found.log_level, found.log_format)
        _seat = WorkerProcess(found, ending, frontier_url())
    return _seat


def _leave(**_: Any) -> None:
    if _seat is not None:
        _seat.close()


signals.worker_process_shutdown.connect(_leave)


@app.task(name="curtsy.shift", acks_late=False)  # type: ignore[untyped-decorator]
def shift(queue: str, ticket: str, shards: str | None = None) -> None:
    """Crawls whatever is due in a lane, then gives the seat back."""
    try:
        seat().work_shift(queue, ticket, shards)
    except SoftTimeLimitExceeded:
        log("shift_over_soft_limit", level="error", queue=queue)


@app.task(name="curtsy.render", acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def render(queue: str, ticket: str, shards: str | None = None) -> None:
    """The same with a browser, for pages that wait for one."""
    shift(queue, ticket, shards)


@app.task(name="curtsy.stage", acks_late=True, reject_on_worker_lost=True)  # type: ignore[untyped-decorator]
def stage(kind: str, n: int) -> None:
    """One stage of one row of the outbox; then the next ones are sent."""
    if left := send_stages(seat().run(lambda parts: stages.run(parts, kind, n))):
        seat().run(lambda parts: in_thread(stages.take_back, parts.store, left))
    point("stage.sent")


def send_stages(sendings: list[stages.StageMessage]) -> list[stages.StageMessage]:
    """Those that could not be sent: the broker is away, and the rest is not tried."""
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
    """Messages that wait in a queue of shifts; 0 where it does not exist yet."""
    with app.pool.acquire(block=True) as connection:

        def ask(channel: Any) -> int:
            try:
                return int(channel.queue_declare(celery_queue(queue), passive=True).message_count)
            except connection.channel_errors:
                return 0

        # The connection may have died with the broker: once more over a new one, then the caller is told.
        count: int = connection.autoretry(ask, connection.default_channel, **_TRIES)()[0]
        return count
