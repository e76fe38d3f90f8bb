"""Workers of a fleet."""

from __future__ import annotations

from pydantic import BaseModel, Field

from curtsy.fleet.coordination import HEARTBEAT_LIFE_S, Worker
from curtsy.web.models.fields import Time


class ActivityInfo(BaseModel):
    """A task that a worker runs."""

    task: str = Field(description="`shift batch` fetches pages of the lane batch; `stage extract 12` makes records.")
    since: Time | None


class WorkerInfo(BaseModel):
    """A worker as its last heartbeat described it."""

    name: str
    queues: list[str] = Field(description="Queues that it takes tasks from; none while it is drained.")
    processes: int
    shards: str | None = Field(description="Shards of the frontier that it is bound to; null: all.")
    drained: bool = Field(description="It finishes what runs and takes nothing new.")
    memory_mb: int | None = Field(description="Resident memory of all its processes.")
    started: Time | None
    heartbeat: Time
    doing: list[ActivityInfo]


class Workers(BaseModel):
    """The workers that live."""

    items: list[WorkerInfo]


def worker_of(worker: Worker) -> WorkerInfo:
    doing = [ActivityInfo(task=one.task, since=one.since_ms) for one in worker.activities]
    return WorkerInfo.model_validate({
        "name": worker.name, "queues": worker.queues, "processes": worker.processes, "shards": worker.shards,
        "drained": worker.drained, "memory_mb": worker.memory_mb, "started": worker.started_ms,
        "heartbeat": worker.until_ms - int(HEARTBEAT_LIFE_S * 1000), "doing": doing,
    })  # fmt: skip
