"""Workers of a fleet: what they do, and drain."""

from __future__ import annotations

from dataclasses import replace

from curtsy.fleet.coordination import Worker
from curtsy.web.models.workers import WorkerInfo, Workers, worker_of
from curtsy.web.problems import Problem
from curtsy.web.routing import Call, endpoint


@endpoint("GET", "/v1/workers", scope="read")
def list_workers(call: Call) -> Workers:
    """List the workers that live: what each does, its memory, and when it started."""
    return Workers(items=[worker_of(one) for one in call.wait(call.backend.fleet.workers())])


@endpoint("POST", "/v1/workers/{name}/drain", scope="admin")
def drain_worker(call: Call, name: str) -> WorkerInfo:
    """Drain a worker: it finishes what it does, and takes no new shift or stage until it is resumed.

    It obeys within 2 s, with its next heartbeat. A worker that restarts under the same name stays drained.
    """
    return _set(call, name, True)


@endpoint("POST", "/v1/workers/{name}/resume", scope="admin")
def resume_worker(call: Call, name: str) -> WorkerInfo:
    """Let a drained worker take tasks again."""
    return _set(call, name, False)


def _set(call: Call, name: str, drained: bool) -> WorkerInfo:
    fleet = call.backend.fleet
    found: Worker | None = next((one for one in call.wait(fleet.workers()) if one.name == name), None)
    if found is None:
        raise Problem(404, "no-such-worker", "There is no worker with this name. GET /v1/workers lists them.")
    call.wait(fleet.drain(name, drained))
    return worker_of(replace(found, drained=drained))
