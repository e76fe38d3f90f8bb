"""What a worker tells the fleet about itself, and how it stops taking tasks when it is drained.

Runs in the parent process of a Celery worker, in a thread beside its event loop.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from billiard import active_children
from celery.worker import state

from curtsy.core.observe import log
from curtsy.fleet.coordination import Activity

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
#: arguments of a task that a heartbeat repeats: the queue of a shift, kind and number of a stage
_MOST_ARGUMENTS = 2


def activities() -> tuple[Activity, ...]:
    """The tasks that run now, oldest first."""
    found = []
    for request in tuple(state.active_requests):
        said = request.info()
        # A shift is (queue, ticket, shards), a stage (kind, number): the ticket says nothing to people.
        arguments = [str(one) for one in tuple(said.get("args") or ())[:_MOST_ARGUMENTS]]
        name = str(said["name"]).removeprefix("curtsy.")
        shown = arguments[:1] if name in ("shift", "render") else arguments
        began = said.get("time_start")
        found.append(Activity(task=" ".join([name, *shown])[:200], since_ms=int(began * 1000) if began else None))
    return tuple(sorted(found, key=lambda one: one.since_ms or 0))


def memory_mb() -> int:
    """Resident memory of this process and its children; pages that they share count for each."""
    pids = [os.getpid(), *(child.pid for child in active_children())]
    return round(sum(map(_resident, pids)) / 1e6)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * _PAGE_BYTES
    except (OSError, IndexError, ValueError):  # it has exited, or this is not Linux
        return 0


class Intake:
    """The queues of one worker. Drained, it finishes what runs and takes nothing from them."""

    def __init__(self, consumer: Any, queues: Iterable[str]) -> None:
        self._consumer = consumer
        self.queues = tuple(queues)
        self.drained = False

    def set(self, drained: bool) -> None:
        """Called from another thread: the consumer itself changes its queues, in its own loop."""
        if drained == self.drained:
            return
        self.drained = drained
        change: Callable[[str], None] = self._cancel if drained else self._consumer.add_task_queue
        for queue in self.queues:
            self._consumer.call_soon(change, queue)
        log("worker_drained" if drained else "worker_resumed", level="warning", queues=list(self.queues))

    def _cancel(self, queue: str) -> None:
        self._consumer.cancel_task_queue(queue)
