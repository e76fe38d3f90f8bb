"""The Celery app: `celery -A curtsy.celery_app worker|beat|flower`. Settings come from CURTSY_* and curtsy.toml.

Queues: fetch.high, fetch.batch, fetch.slow (shifts), render (shifts with a browser), inference (extraction), default
(the other stages). Workers that are bound to shards serve queues of their own, `fetch.batch.0-7`. Messages carry ids,
never bodies. A shift is acknowledged when it starts: leases guard its work. A stage or a render shift is acknowledged
when it ends; a render shift that is delivered twice finds its ticket used and returns. No message has a countdown:
delayed work waits in the frontier or in the store.
"""

from __future__ import annotations

import asyncio
import json
import logging
import mmap
import os
import signal
import threading
import time
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from billiard import active_children
from billiard import pool as processes
from celery import Celery, signals
from celery.apps import worker as celery_worker
from celery.apps.beat import Beat
from celery.worker import state
from kombu import Exchange, Queue  # type: ignore[attr-defined]

from curtsy.core import log_capture, observe, settings_loading, tracing
from curtsy.core.clock import boot
from curtsy.core.errors import FrontierUnavailable, SettingsError
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.fleet import broker, fork_safety, heartbeats
from curtsy.fleet.coordination import HEARTBEAT_S, Fleet, Worker, bound_to, celery_queue
from curtsy.services import backends, crawl_lock
from curtsy.services.valkey import EmbeddedValkey

QUEUES = ("fetch.high", "fetch.batch", "fetch.slow", "render", "inference", "default")
#: which queue carries out which stage
STAGE_QUEUES = {"extract": "inference"}
# An exiting child waits, by default for 30 s, until its parent has recorded its result. A parent that exits at the same
# time never does. Nothing depends on it: a stage that is delivered twice finds nothing to do. In tenths of a second:
processes.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 20
#: how long an idle worker may take to exit after SIGTERM
IDLE_S = 10.0
#: ... and after its children were killed
FORCED_S = 3.0
#: the worker has stopped its children and closed its connection
_leaving = threading.Event()
#: created before the fork, so the children share it: SIGTERM reaches the parent only
_flag = mmap.mmap(-1, 1)


@cache
def the_settings() -> Settings:
    """The settings, loaded on first use."""
    notes: list[str] = []
    found = settings_loading.load_with_notes(notes.append)
    observe.configure(found.log_level, found.log_format)
    if found.log_format == "json":
        log_capture.install()
        signals.setup_logging.connect(_set_up_logging)
        celery_worker.safe_say = _say_safely
    for note in notes:
        log("setting_deprecated", level="warning", message=note)
    return found


@cache
def _embedded() -> EmbeddedValkey:
    """This process's share, and that of its children, in the folder's embedded server."""
    return EmbeddedValkey.enter(the_settings().data_dir)


def leave_folder() -> None:
    """Give back the share in the embedded server. The last process writes the clean mark and stops the server."""
    if the_settings().frontier_url is not None:
        return

    async def close() -> None:
        built = backends.build(the_settings())
        _embedded().abandon()
        await built.close()

    try:
        asyncio.run(close())
    except Exception as error:
        log("folder_not_left", level="warning", error=repr(error))


def _leave(**_: Any) -> None:
    _leaving.set()
    leave_folder()


def frontier_url() -> str:
    return the_settings().frontier_url or _embedded().url


def broker_url() -> str:
    """The setting `broker_url`, or database 0 of the frontier's server."""
    found = the_settings().broker_url
    if found is not None:
        return found
    url = frontier_url()
    scheme = url.partition("://")[0]
    if scheme == "unix":
        return f"redis+socket://{urlsplit(url).path}"
    if scheme in ("redis", "rediss"):
        return urlunsplit(urlsplit(url)._replace(path="/0"))
    raise SettingsError(
        f"frontier_url names {scheme}:// servers, which cannot carry Celery's messages: set broker_url to a "
        "single Redis or Valkey, or to RabbitMQ."
    )


def _route(name: str, args: Any, _kwargs: Any, _options: Any, **_: Any) -> dict[str, str] | None:
    if name in ("curtsy.shift", "curtsy.render"):
        return {"queue": celery_queue(args[0])}
    if name == "curtsy.stage":
        return {"queue": STAGE_QUEUES.get(args[0], "default")}
    return None


def _queue(name: str) -> Any:
    exchange = Exchange(name)  # type: ignore[no-untyped-call]
    return Queue(name, exchange, routing_key=name)  # type: ignore[no-untyped-call]


def _transport_options() -> dict[str, Any]:
    """For Redis and Valkey. A task that did not end is delivered again after the visibility timeout."""
    return {
        "visibility_timeout": the_settings().visibility_timeout_s,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
    }


def _configuration() -> dict[str, Any]:
    given = the_settings()
    url = broker_url()
    redis = url.partition(":")[0] in ("redis", "rediss", "redis+socket")
    return {
        "broker_url": url,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_transport_options": _transport_options() if redis else {},
        "imports": ("curtsy.fleet.tasks",),
        "beat_scheduler": "curtsy.fleet.beat:Scheduler",
        "task_default_queue": "default",
        "task_queues": tuple(map(_queue, QUEUES)),
        "task_routes": (_route,),
        "task_serializer": "json",
        "result_serializer": "json",
        "event_serializer": "json",
        "accept_content": ["json"],
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_soft_time_limit": given.task_soft_limit_s,
        "task_time_limit": given.task_hard_limit_s,
        "task_send_sent_event": True,
        "worker_send_task_events": True,
        "worker_consumer": "curtsy.fleet.broker:Consumer",
        "worker_prefetch_multiplier": 1,
        # Messages stay in the queue, where any idle process can take them. A busy worker would hold a prefetched one.
        "worker_disable_prefetch": redis,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_concurrency": given.worker_processes,
        # Our log lines are complete; Celery would wrap them.
        "worker_redirect_stdouts": False,
    }


class _Beat(Beat):  # type: ignore[misc]
    """Beat without its banner if the log is JSON."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs | ({"quiet": True} if _is_json() else {}))


broker.install()
app = Celery("curtsy")
app.Beat = app.subclass_with_self(_Beat)
app.add_defaults(_configuration)


def ending() -> bool:
    """Whether the worker was asked to stop; also true in its children."""
    return _flag[0] == 1


# JSON logs: every line of Celery too


def _is_json() -> bool:
    return the_settings().log_format == "json"


def _drop_banner(instance: Any, **_: Any) -> None:
    instance.quiet = instance.quiet or _is_json()


def _set_up_logging(loglevel: int | str | None = None, **_: Any) -> None:
    """Celery sets up nothing itself if this signal has a receiver, so it is connected only for JSON."""
    log_capture.install(logging.getLevelName(loglevel) if isinstance(loglevel, str) else loglevel)


def _say_safely(message: str, *_: Any) -> None:
    """What a signal handler says: written at once, because the handler may have interrupted a log line."""
    now = datetime.now(UTC).isoformat().replace("+00:00", "Z")
    line = {"message": message.strip(), "event": "message", "level": "info", "timestamp": now}
    os.write(2, f"{json.dumps(line)}\n".encode())


# request_id: from the sender, through the message's headers, into every log line of the task


def _send_request_id(headers: dict[str, Any], **_: Any) -> None:
    headers.setdefault("request_id", observe.request_id.get() or str(uuid4()))


def _take_request_id(task: Any, **_: Any) -> None:
    observe.request_id.set(task.request.get("request_id") or task.request.id)
    if tracing.active is not None:
        tracing.active.task_begins(task.name)


def _drop_request_id(**_: Any) -> None:
    observe.request_id.set(None)
    if tracing.active is not None:
        tracing.active.task_ends()


def _begin_tracing(**_: Any) -> None:
    tracing.begin(the_settings(), "worker")


# The parent


def _on_shutting_down(**_: Any) -> None:
    _flag[0] = 1
    threading.Thread(target=_force_exit, name="end", daemon=True).start()


def _force_exit() -> None:
    """Exit even if Celery waits forever for a child or broker that died at the wrong moment.

    Running tasks may finish within their hard time limit. Reserved tasks that did not start are delivered again.
    """
    end, idle_since = boot() + the_settings().task_hard_limit_s, None
    while not _leaving.wait(0.5):
        if state.active_requests:
            idle_since = None
        idle_since = idle_since or boot()
        if boot() > min(end, idle_since + IDLE_S):
            log("worker_ended_by_force", level="warning", running=len(state.active_requests))
            for child in active_children():
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGKILL)
            if not _leaving.wait(FORCED_S):  # a parent that waited for its children exits now
                leave_folder()
                os._exit(0)


def _start_heartbeats(sender: Any, **_: Any) -> None:
    """Heartbeats tell Beat how many processes there are."""
    queues = tuple(sender.app.amqp.queues.consume_from)
    shards = next(filter(None, map(bound_to, queues)), None)
    me = Worker(
        name=sender.hostname, queues=queues, processes=sender.pool.num_processes, shards=shards,
        started_ms=int(time.time() * 1000),
    )  # fmt: skip
    if the_settings().frontier_url is None:
        crawl_lock.hold(the_settings().data_dir)
    intake = heartbeats.Intake(sender, queues)
    fork_safety.run_in_thread(lambda: _heartbeats(me, intake), "heartbeats")


async def _heartbeats(me: Worker, intake: heartbeats.Intake) -> None:
    fleet = Fleet(frontier_url(), the_settings())
    while not ending():
        try:
            intake.set(await fleet.is_drained(me.name))
            # Beat sends no shifts on account of a worker that takes none.
            queues = () if intake.drained else me.queues
            await fleet.heartbeat(
                replace(
                    me, queues=queues, drained=intake.drained, memory_mb=heartbeats.memory_mb(),
                    activities=heartbeats.activities(),
                )
            )  # fmt: skip
        except FrontierUnavailable as error:
            log("heartbeat_failed", level="warning", error=str(error))
        exit_with_parent()
        await asyncio.sleep(HEARTBEAT_S)
    try:
        await fleet.leave(me.name)
    except FrontierUnavailable as error:
        log("heartbeat_failed", level="warning", error=str(error))


def exit_with_parent() -> None:
    """Exit if the `curtsy` process that started this one is gone, even if it was killed."""
    parent = os.environ.get("CURTSY_PARENT_PID") or os.environ.get("CURTSY_KEEPER")  # the second is the old name
    if parent and os.getppid() != int(parent):
        os.kill(os.getpid(), signal.SIGTERM)


signals.celeryd_init.connect(_drop_banner)
signals.before_task_publish.connect(_send_request_id)
signals.task_prerun.connect(_take_request_id)
signals.task_postrun.connect(_drop_request_id)
signals.worker_process_init.connect(_begin_tracing)
signals.worker_shutting_down.connect(_on_shutting_down)
signals.worker_shutdown.connect(_leave)
signals.worker_ready.connect(_start_heartbeats)
