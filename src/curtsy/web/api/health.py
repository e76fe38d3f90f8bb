"""Liveness, readiness and metrics."""

from __future__ import annotations

import asyncio
import concurrent.futures
import socket
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from curtsy import __version__
from curtsy.core import metrics
from curtsy.core.errors import CurtsyError
from curtsy.core.observe import log
from curtsy.fleet.coordination import beat_problem
from curtsy.store.objects import ObjectSegments
from curtsy.web import metrics_endpoint
from curtsy.web.backend_thread import BackendThread
from curtsy.web.models.health import Alive, Ready
from curtsy.web.routing import Call, Media, Stream, endpoint

#: time limit for each service
_PROBE_S = 1.0
_PORTS = {"redis": 6379, "rediss": 6379, "amqp": 5672, "amqps": 5671, "sentinel": 26379}
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_probes = concurrent.futures.ThreadPoolExecutor(12, thread_name_prefix="readyz")


@endpoint("GET", "/healthz", scope=None)
def healthz(call: Call) -> Alive:
    """Whether the process is alive. It contacts no other service."""
    return Alive(version=__version__)


@endpoint("GET", "/readyz", scope=None, answers={200: Ready, 503: Ready})
def readyz(call: Call) -> tuple[int, Ready]:
    """Whether the store, the frontier, the broker and the object store answer, each within a second.

    `beat` says whether a dispatcher runs. Without one, crawls are accepted and wait, so the server stays ready.
    """
    probes = {
        "store": _probes.submit(_probe_store, call.backend),
        "frontier": _probes.submit(_probe_frontier, call.backend),
        "broker": _probes.submit(_probe_broker, call.backend),
    }
    if call.settings.segments_url is not None:
        probes["segments"] = _probes.submit(_probe_segments, call.settings.segments_url)
    beat = _probes.submit(_probe_beat, call.backend)
    waited_for: list[concurrent.futures.Future[Any]] = [*probes.values(), beat]
    concurrent.futures.wait(waited_for, _PROBE_S)
    parts = {name: _result(future) for name, future in probes.items()}
    ready = all(result == "ok" for result in parts.values())
    return 200 if ready else 503, Ready(ready=ready, parts=parts | {"beat": _beat_result(beat)})


def _beat_result(future: concurrent.futures.Future[str]) -> str:
    if future.done() and future.exception() is None:
        return future.result()
    future.cancel()
    return "unknown: the frontier does not answer"


def _result(future: concurrent.futures.Future[None]) -> str:
    """A short text; the log has the details, because this endpoint needs no key."""
    if not future.done():
        future.cancel()
        return "does not answer within 1 s"
    error = future.exception()
    if error is None:
        return "ok"
    log("not_ready", level="warning", error=str(error))
    return "does not answer"


def _probe_store(backend: BackendThread) -> None:
    with backend.store.read() as tx:
        tx.exec_driver_sql("SELECT 1")


def _probe_frontier(backend: BackendThread) -> None:
    services = backend.services

    async def ping() -> None:
        for shard in services.frontier.shards:
            await shard.facts()

    backend.wait(asyncio.wait_for(ping(), _PROBE_S), _PROBE_S + 1)


def _probe_beat(backend: BackendThread) -> str:
    return beat_problem(backend.wait(backend.fleet.beat_age_s(), _PROBE_S)) or "ok"


@cache
def _segments(url: str) -> ObjectSegments:
    """Without retries: the next probe is one."""
    return ObjectSegments(url, retry_config={"max_retries": 0}, client_options={"timeout": f"{_PROBE_S:g}s"})


def _probe_segments(url: str) -> None:
    _segments(url).check()


def _probe_broker(backend: BackendThread) -> None:
    """Opens a connection only: Celery owns the protocol. Without `broker_url` the frontier's server is the broker."""
    url = backend.settings.broker_url
    if url is None:
        return _probe_frontier(backend)
    parts = urlsplit(url.partition(";")[0])
    kind = parts.scheme.partition("+")[0]
    with socket.create_connection((parts.hostname or "localhost", parts.port or _PORTS.get(kind, 0)), _PROBE_S):
        return None


@endpoint("GET", "/metrics", scope="read", answers={200: Media(type="text/plain", description="Prometheus")})
def prometheus(call: Call) -> Stream:
    """Metrics of the whole fleet for Prometheus, without the gauges of unavailable services."""
    fields: dict[str, float] = {}
    for part in (_of_fleet, _of_frontier, _of_store):
        _try(part, call.backend, fields)
    return Stream(chunks=[metrics.render(fields).encode()], media_type=_PROMETHEUS)


def _try(
    part: Callable[[BackendThread, dict[str, float]], None], backend: BackendThread, fields: dict[str, float]
) -> None:
    try:
        part(backend, fields)
    except CurtsyError as error:
        log("metrics_incomplete", level="warning", error=str(error))


def _of_fleet(backend: BackendThread, fields: dict[str, float]) -> None:
    backend.publish()
    fields |= backend.wait(backend.fleet.metrics(), 5.0)
    backend.wait(metrics_endpoint.of_fleet(backend.fleet, fields), 5.0)


def _of_frontier(backend: BackendThread, fields: dict[str, float]) -> None:
    backend.wait(metrics_endpoint.of_frontier(backend.services.frontier, fields), 5.0)


def _of_store(backend: BackendThread, fields: dict[str, float]) -> None:
    metrics_endpoint.of_store(backend.store, fields)
