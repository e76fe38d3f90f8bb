"""The Celery app: `celery -A curtsy.celery_app worker|beat|flower`. Settings come from CURTSY_* and curtsy.toml.

Queues: fetch.high, fetch.batch, fetch.slow (shifts), render (shifts with a browser), inference (extraction), default
(the other stages). Workers that are bound to shards serve queues of their own, `fetch.batch.0-7`. Messages carry ids,
never bodies. A shift is acknowledged when it begins: its work is guarded by leases. A stage, and a shift of render, is
acknowledged when it has ended (such a shift that is handed out again finds its ticket used, and returns). Nothing is
ever sent with a countdown: whatever has to wait waits in the frontier or in the store.
"""

from __future__ import annotations

import asyncio
import mmap
import os
import signal
import threading
from contextlib import suppress
from functools import cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit
from uuid import uuid4

from billiard import active_children
from billiard import pool as processes
from celery import Celery, signals
from celery.worker import state
from kombu import Exchange, Queue  # type: ignore[attr-defined]

from curtsy.core import observe, settings_loading
from curtsy.core.clock import boot
from curtsy.core.errors import FrontierUnavailable, SettingsError
from curtsy.core.observe import log
from curtsy.core.settings import Settings
from curtsy.fleet import broker, fork_safety
from curtsy.fleet.coordination import SIT_S, Fleet, Worker, bound_to, celery_queue
from curtsy.services import backends
from curtsy.services.valkey import EmbeddedValkey

QUEUES = ("fetch.high", "fetch.batch", "fetch.slow", "render", "inference", "default")
#: which queue carries out which stage
STAGE_QUEUES = {"extract": "inference"}
# A child that ends waits until its parent has noted what it did, for 30 s unless told otherwise: a parent that ends at
# the same time may never do so. Nothing depends on it: a stage that is handed out again finds nothing to do. In tenths:
processes.GUARANTEE_MESSAGE_CONSUMPTION_RETRY_LIMIT = 20
#: a worker that was asked to end, and has nothing to do, has this long to do so by itself
IDLE_S = 10.0
#: ... and this long when its children were ended
FORCED_S = 3.0
#: the worker has ended its children, and its connection
_leaving = threading.Event()
#: shared with the children, because it is made before they are: SIGTERM reaches the parent only
_flag = mmap.mmap(-1, 1)


@cache
def the_settings() -> Settings:
    """Read when first needed."""
    found = settings_loading.load()
    observe.configure(found.log_level, found.log_format)
    return found


@cache
def _entered() -> EmbeddedValkey:
    """The share of this process (and its children) in the folder's private server."""
    return EmbeddedValkey.enter(the_settings().data_dir)


def leave_folder() -> None:
    """The last one out of the folder leaves a clean mark and stops the server."""
    if the_settings().frontier_url is not None:
        return

    async def close() -> None:
        built = backends.build(the_settings())
        _entered().abandon()
        await built.close()

    try:
        asyncio.run(close())
    except Exception as error:
        log("folder_not_left", level="warning", error=repr(error))


def _leave(**_: Any) -> None:
    _leaving.set()
    leave_folder()


def frontier_url() -> str:
    return the_settings().frontier_url or _entered().url


def broker_url() -> str:
    """As set; else the frontier's server, database 0."""
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
    """Of Redis and Valkey; messages of tasks that did not end are handed out again after the visibility timeout."""
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
        # A message stays where every free seat can take it; one reserved by a busy worker would wait for a shift's end.
        "worker_disable_prefetch": redis,
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_concurrency": given.worker_seats,
        # Lines of our log are whole as they are.
        "worker_redirect_stdouts": False,
    }


broker.install()
app = Celery("curtsy")
app.add_defaults(_configuration)


def ending() -> bool:
    """The worker was asked to end; children see it too."""
    return _flag[0] == 1


# request_id: from whoever sends, through the message's headers, into every log line of the task


def _send_request_id(headers: dict[str, Any], **_: Any) -> None:
    headers.setdefault("request_id", observe.request_id.get() or str(uuid4()))


def _take_request_id(task: Any, **_: Any) -> None:
    observe.request_id.set(task.request.get("request_id") or task.request.id)


def _drop_request_id(**_: Any) -> None:
    observe.request_id.set(None)


# The parent


def _raise_flag(**_: Any) -> None:
    _flag[0] = 1
    threading.Thread(target=_see_to_the_end, name="end", daemon=True).start()


def _see_to_the_end() -> None:
    """A parent whose child or broker went away at the wrong moment may wait for it for ever: then it ends all the same.

    Whatever is carried out is waited for, as long as a task may take. What was taken and not begun is handed out again.
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
            if not _leaving.wait(FORCED_S):  # that helps a parent which waits for its children
                leave_folder()
                os._exit(0)


def _sit(sender: Any, **_: Any) -> None:
    """Heartbeats tell Beat how many seats there are."""
    queues = tuple(sender.app.amqp.queues.consume_from)
    shards = next(filter(None, map(bound_to, queues)), None)
    me = Worker(name=sender.hostname, queues=queues, seats=sender.pool.num_processes, shards=shards)
    fork_safety.beside(lambda: _heartbeats(me), "heartbeats")


async def _heartbeats(me: Worker) -> None:
    fleet = Fleet(frontier_url(), the_settings())
    while not ending():
        try:
            await fleet.sit(me)
        except FrontierUnavailable as error:
            log("heartbeat_failed", level="warning", error=str(error))
        heed_keeper()
        await asyncio.sleep(SIT_S)
    try:
        await fleet.stand_up(me.name)
    except FrontierUnavailable as error:
        log("heartbeat_failed", level="warning", error=str(error))


def heed_keeper() -> None:
    """A part that `curtsy` started ends with it, also where that was killed."""
    keeper = os.environ.get("CURTSY_KEEPER")
    if keeper and os.getppid() != int(keeper):
        os.kill(os.getpid(), signal.SIGTERM)


signals.before_task_publish.connect(_send_request_id)
signals.task_prerun.connect(_take_request_id)
signals.task_postrun.connect(_drop_request_id)
signals.worker_shutting_down.connect(_raise_flag)
signals.worker_shutdown.connect(_leave)
signals.worker_ready.connect(_sit)
