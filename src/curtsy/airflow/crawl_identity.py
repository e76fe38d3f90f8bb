"""Which crawl belongs to a task: every try of a task uses the same crawl, and no crawl is created twice.

A task instance (dag, run, task, map index) numbers its crawls. The number increases when the last crawl was canceled,
was deleted, or belongs to a try that succeeded (the task was cleared to run again). The number is part of the
Idempotency-Key, so that a try finds the crawl of a predecessor that died before it saved the id. The id is saved in
Airflow's task state store, because the control plane remembers keys for 24 hours only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from curtsy.client.server import Server
from curtsy.client.types import CrawlStatus
from curtsy.core.errors import Unavailable, UnknownCrawl

#: in the task state store
NOTE = "curtsy_crawl"
#: states of a crawl without a result
LOST = ("cancelled", "deleting")
#: more seeds are sent as NDJSON
_MANY = 5_000
#: crawls of one key that may have been cancelled
_MOST = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Joined:
    status: CrawlStatus
    #: 1 for the task instance's first crawl
    number: int
    #: an earlier try created it
    before: bool


def key_of(ti: Any) -> str:
    """The key of a task instance, the same for every try."""
    named = "\0".join((ti.dag_id, ti.run_id, ti.task_id, str(ti.map_index)))
    return f"airflow-{hashlib.sha256(named.encode()).hexdigest()[:40]}"


def join(server: Server, context: Mapping[str, Any], seeds: Sequence[str], options: Mapping[str, Any]) -> Joined:
    """The crawl of the task: that of an earlier try, or a new one."""
    note = _note(context)
    first = int(note.get("number", 0)) or 1
    if note:
        status = _status(server, str(note["crawl"]))
        if status is not None and status["state"] not in LOST and not note.get("delivered"):
            return Joined(status=status, number=first, before=True)
        first += 1
    key = key_of(context["ti"])
    for number in range(first, first + _MOST):
        id = _submit(server, seeds, options, f"{key}-{number}")
        status = _status(server, id)
        if status is not None and status["state"] not in LOST:
            _write(context, id, number)
            return Joined(status=status, number=number, before=False)
    raise Unavailable(f"The last {_MOST} crawls of this task were canceled at once. Find out what cancels them.")


def delivered(context: Mapping[str, Any], id: str, number: int) -> None:
    """Mark the crawl as the task's result: if the task is cleared, the next try creates a new one."""
    _write(context, id, number, delivered=True)


def _submit(server: Server, seeds: Sequence[str], options: Mapping[str, Any], key: str) -> str:
    if len(seeds) > _MANY:
        return server.submit_many(seeds, idempotency_key=key, **options)
    return server.submit(seeds=list(seeds), idempotency_key=key, **options)["id"]


def _status(server: Server, id: str) -> CrawlStatus | None:
    try:
        return server.crawl(id)
    except UnknownCrawl:
        return None


def _note(context: Mapping[str, Any]) -> dict[str, Any]:
    store = context.get("task_state_store")
    found = store.get(NOTE) if store is not None else None
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _write(context: Mapping[str, Any], id: str, number: int, *, delivered: bool = False) -> None:
    store = context.get("task_state_store")
    if store is not None:
        store.set(NOTE, {"crawl": id, "number": number, "delivered": delivered})
