"""Whether the service lives, whether it can work, and what it counts."""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
from collections.abc import Callable
from urllib.parse import urlsplit

from curtsy import __version__
from curtsy.core import metrics
from curtsy.core.errors import CurtsyError
from curtsy.core.observe import log
from curtsy.web import metrics_endpoint
from curtsy.web.backend_thread import BackendThread
from curtsy.web.models.health import Alive, Ready
from curtsy.web.routing import Call, Media, Stream, endpoint

#: each part has this long to answer
_PART_S = 1.0
_PORTS = {"redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671, "sentinel": 26379}
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_askers = concurrent.futures.ThreadPoolExecutor(12, thread_name_prefix="readyz")


@endpoint("GET", "/healthz", scope=None, answers={200: Alive}, tags=("health",))
def healthz(call: Call) -> Alive:
    """Whether the process lives. It asks no other part."""
    return Alive(version=__version__)


@endpoint("GET", "/readyz", scope=None, answers={200: Ready, 503: Ready}, tags=("health",))
def readyz(call: Call) -> tuple[int, Ready]:
    """Whether the store, the frontier and the broker answer, each within a second."""
    asked = {
        "store": _askers.submit(_ask_store, call.bridge),
        "frontier": _askers.submit(_ask_frontier, call.bridge),
        "broker": _askers.submit(_ask_broker, call.bridge),
    }
    concurrent.futures.wait(asked.values(), _PART_S)
    parts = {name: _said(future) for name, future in asked.items()}
    ready = all(said == "ok" for said in parts.values())
    return 200 if ready else 503, Ready(ready=ready, parts=parts)


def _said(future: concurrent.futures.Future[None]) -> str:
    """For people; what went wrong in detail stands in the log: anybody may ask this."""
    if not future.done():
        future.cancel()
        return "does not answer within 1 s"
    error = future.exception()
    if error is None:
        return "ok"
    log("not_ready", level="warning", error=str(error))
    return "does not answer"


def _ask_store(bridge: BackendThread) -> None:
    with bridge.store.read() as tx:
        tx.exec_driver_sql("SELECT 1")


def _ask_frontier(bridge: BackendThread) -> None:
    services = bridge.services

    async def ping() -> None:
        for shard in services.frontier.shards:
            await shard.facts()

    bridge.wait(asyncio.wait_for(ping(), _PART_S), _PART_S + 1)


def _ask_broker(bridge: BackendThread) -> None:
    """Another server than the frontier's is asked for a connection; what it speaks is Celery's business."""
    url = bridge.settings.broker_url
    if url is None:
        return _ask_frontier(bridge)
    parts = urlsplit(url.partition(";")[0])
    kind = parts.scheme.partition("+")[0]
    with socket.create_connection((parts.hostname or "localhost", parts.port or _PORTS.get(kind, 0)), _PART_S):
        return None


@endpoint(
    "GET", "/metrics", scope="read", answers={200: Media(type="text/plain", description="Prometheus")}, tags=("health",)
)
def prometheus(call: Call) -> Stream:
    """Counts of the whole fleet for Prometheus. Gauges of a part that is away are left out."""
    fields: dict[str, float] = {}
    for part in (_of_fleet, _of_frontier, _of_store):
        _try(part, call.bridge, fields)
    return Stream(chunks=[metrics.render(fields).encode()], media_type=_PROMETHEUS)


def _try(
    part: Callable[[BackendThread, dict[str, float]], None], bridge: BackendThread, fields: dict[str, float]
) -> None:
    try:
        part(bridge, fields)
    except CurtsyError as error:
        log("metrics_incomplete", level="warning", error=str(error))


def _of_fleet(bridge: BackendThread, fields: dict[str, float]) -> None:
    bridge.publish()
    fields |= bridge.wait(bridge.fleet.metrics(), 5.0)
    bridge.wait(metrics_endpoint.of_fleet(bridge.fleet, fields), 5.0)


def _of_frontier(bridge: BackendThread, fields: dict[str, float]) -> None:
    bridge.wait(metrics_endpoint.of_frontier(bridge.services.frontier, fields), 5.0)


def _of_store(bridge: BackendThread, fields: dict[str, float]) -> None:
    metrics_endpoint.of_store(bridge.store, fields)
