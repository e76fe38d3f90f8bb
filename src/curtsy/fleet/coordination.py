"""What the parts of a fleet share through the frontier's server: tickets, running shifts, workers, metrics.

Advisory state; it may be lost at any time. After a flush the next heartbeat and the next tick write it again. At worst
one shift too many is sent, or one a second late. A ticket is permission to start one shift. All keys share a hash tag:

    {fleet}:tickets:<queue>  ZSET  ticket -> ms until which its shift may start; a later one returns at once
    {fleet}:shifts:<queue>   ZSET  ticket -> ms until which its shift counts as running, renewed while it runs
    {fleet}:workers          HASH  worker -> JSON { queues, processes, shards, until_ms, ... }, by heartbeat
    {fleet}:drained          SET   workers that take no more tasks, until they are resumed
    {fleet}:metrics          HASH  field -> sum over all processes
    {fleet}:claim:<work>     STRING with a life: some process does this work in this period
    {fleet}:beat             1, written by every tick of Beat; its remaining time to live shows when the last tick was

Times are the server's. A queue is a lane (`batch`, `render`), or that of workers bound to shards (`batch.0-7`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from curtsy.core import metrics
from curtsy.core.errors import SettingsError
from curtsy.core.model import Lane
from curtsy.core.settings import Settings
from curtsy.frontier.fleet_commands import Plain

#: a shift that was not renewed for this long does not count as running: its process died
RUNNING_S = 5.0
RENEW_S = 1.0
#: a worker counts as gone this long after its last heartbeat
HEARTBEAT_LIFE_S = 8.0
HEARTBEAT_S = 2.0
#: Beat's mark expires after this long
BEAT_LIFE_S = 3600.0
#: without a tick for this long, Beat does not run
BEAT_LATE_S = 10.0
#: the most shifts sent to one queue at a time
_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """A task that a worker runs."""

    #: `shift batch`, `stage extract 12`
    task: str
    since_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """A worker as its last heartbeat described it."""

    name: str
    #: names of Celery queues, `fetch.batch`
    queues: tuple[str, ...]
    #: child processes: tasks that run at the same time
    processes: int
    #: `0-7` if it is bound to shards
    shards: str | None = None
    until_ms: int = 0
    #: by the worker's clock; None: an older version of the program
    started_ms: int | None = None
    #: resident memory of all its processes
    memory_mb: int | None = None
    activities: tuple[Activity, ...] = ()
    #: it finishes what runs and takes nothing new
    drained: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """What one tick may send to one queue, and why not more."""

    tickets: tuple[str, ...]
    processes: int
    running: int
    outstanding: int


class Fleet:
    """One client, made for one loop."""

    def __init__(self, url: str, settings: Settings) -> None:
        self._plain = Plain(url)
        self._settings = settings

    async def close(self) -> None:
        await self._plain.close()

    # Tickets and shifts

    async def issue(self, queue: str, due: int) -> Issued:
        """Tickets for as many shifts as `due` hosts need and processes can run, less running and outstanding ones."""
        names = [os.urandom(8).hex() for _ in range(min(_AT_ONCE, due))]
        s, lane = self._settings, lane_of(queue)
        limit = {Lane.SLOW: s.slow_concurrency, Lane.RENDER: s.render_concurrency}.get(lane, s.concurrency)
        keys = [_tickets(queue), _shifts(queue), "{fleet}:workers"]
        life_ms = int(self._settings.ticket_s * 1000)
        raw = await self._plain.script("fleet_issue", keys, celery_queue(queue), due, limit, life_ms, *names)
        issued, processes, running, outstanding = map(int, raw)
        return Issued(tickets=tuple(names[:issued]), processes=processes, running=running, outstanding=outstanding)

    async def withdraw(self, queue: str, ticket: str) -> None:
        """Take back a ticket whose message could not be sent."""
        await self._plain.command("ZREM", _tickets(queue), ticket)

    async def begin(self, queue: str, ticket: str) -> bool:
        """Count the shift as running; False if its ticket has expired."""
        return await self._begin(queue, ticket, 0)

    async def renew(self, queue: str, ticket: str) -> None:
        await self._begin(queue, ticket, 1)

    async def _begin(self, queue: str, ticket: str, again: int) -> bool:
        keys = [_tickets(queue), _shifts(queue)]
        return bool(await self._plain.script("fleet_begin", keys, ticket, int(RUNNING_S * 1000), again))

    async def end(self, queue: str, ticket: str) -> None:
        await self._plain.command("ZREM", _shifts(queue), ticket)

    async def running(self, queue: str) -> int:
        return await self._alive(_shifts(queue))

    async def outstanding(self, queue: str) -> int:
        return await self._alive(_tickets(queue))

    async def _alive(self, key: str) -> int:
        return int(await self._plain.command("ZCOUNT", key, f"({await self._now_ms()}", "+inf"))

    async def _now_ms(self) -> int:
        seconds, micros = await self._plain.command("TIME")
        return int(seconds) * 1000 + int(micros) // 1000

    # Workers

    async def heartbeat(self, worker: Worker) -> None:
        facts = {"queues": list(worker.queues), "processes": worker.processes, "shards": worker.shards or ""}
        facts |= {"started_ms": worker.started_ms, "memory_mb": worker.memory_mb, "drained": worker.drained}
        said = json.dumps(facts | {"activities": [[one.task, one.since_ms or 0] for one in worker.activities]})
        await self._plain.script(
            "fleet_heartbeat", ["{fleet}:workers"], worker.name, said, int(HEARTBEAT_LIFE_S * 1000)
        )

    async def leave(self, name: str) -> None:
        """The worker stops and takes no more shifts."""
        await self._plain.command("HDEL", "{fleet}:workers", name)

    async def workers(self) -> list[Worker]:
        """Workers whose last heartbeat has not expired."""
        now_ms = await self._now_ms()
        raw = _pairs(await self._plain.command("HGETALL", "{fleet}:workers"))
        found = [_worker(name, json.loads(said)) for name, said in raw.items()]
        return sorted((w for w in found if w.until_ms > now_ms), key=lambda w: w.name)

    async def drain(self, name: str, drained: bool) -> None:
        """Tell a worker to take no more tasks, or to take them again; it reads this with its next heartbeat."""
        await self._plain.command("SADD" if drained else "SREM", _DRAINED, name)

    async def is_drained(self, name: str) -> bool:
        return bool(await self._plain.command("SISMEMBER", _DRAINED, name))

    # Beat

    async def mark_beat(self) -> None:
        """A dispatcher has run now."""
        await self._plain.command("SET", _BEAT, "1", "PX", int(BEAT_LIFE_S * 1000))

    async def beat_age_s(self) -> float | None:
        """Seconds since a dispatcher ran; None: not in the last hour."""
        left_ms = int(await self._plain.command("PTTL", _BEAT))
        return None if left_ms < 0 else max(0.0, BEAT_LIFE_S - left_ms / 1000)

    # Metrics

    async def publish(self, deltas: dict[str, float]) -> None:
        if deltas:
            await self._plain.add("{fleet}:metrics", deltas)

    async def hand_over(self) -> None:
        """Add what this process counted since the last call."""
        deltas = metrics.drain()
        try:
            await self.publish(deltas)
        except BaseException:
            metrics.restore(deltas)
            raise

    async def claim(self, work: str, for_s: float) -> bool:
        """Whether this process does `work` now: one of all does it in each period."""
        return (
            await self._plain.command("SET", f"{{fleet}}:claim:{work}", "1", "NX", "PX", int(for_s * 1000)) is not None
        )

    async def metrics(self) -> dict[str, float]:
        raw = _pairs(await self._plain.command("HGETALL", "{fleet}:metrics"))
        return {name: float(value) for name, value in raw.items()}


def beat_problem(age_s: float | None) -> str | None:
    """A message about what is wrong with Beat; None while it runs."""
    if age_s is None:
        return "Beat (curtsy beat) has not run in the last hour"
    return f"Beat (curtsy beat) has not run for {age_s:.0f} s" if age_s > BEAT_LATE_S else None


_BEAT = "{fleet}:beat"
_DRAINED = "{fleet}:drained"


def _tickets(queue: str) -> str:
    return f"{{fleet}}:tickets:{queue}"


def _shifts(queue: str) -> str:
    return f"{{fleet}}:shifts:{queue}"


def _pairs(raw: list[bytes]) -> dict[str, str]:
    """The reply to HGETALL."""
    return {key.decode(): value.decode() for key, value in zip(raw[::2], raw[1::2], strict=True)}


def _worker(name: str, said: dict[str, Any]) -> Worker:
    # An empty list comes back from Lua as an empty table.
    queues = tuple(said["queues"]) if said["queues"] else ()
    return Worker(
        name=name,
        queues=queues,
        processes=said["processes"],
        shards=said["shards"] or None,
        until_ms=int(said["until_ms"]),
        started_ms=_number(said.get("started_ms")),
        memory_mb=_number(said.get("memory_mb")),
        activities=tuple(Activity(task=str(task), since_ms=int(since) or None) for task, since in _listed(said)),
        drained=bool(said.get("drained")),
    )


def _number(value: Any) -> int | None:
    """None comes back from Lua as it was; a number as a float."""
    return None if value is None else int(value)


def _listed(said: dict[str, Any]) -> list[list[Any]]:
    return list(said.get("activities") or ())


# Queues and shards


def lane_of(queue: str) -> Lane:
    return Lane(queue.partition(".")[0])


def queue_of(lane: Lane | str, shards: str | None) -> str:
    return f"{lane}.{shards}" if shards else str(lane)


def celery_queue(queue: str) -> str:
    """Celery's name for a queue of shifts: `fetch.batch`, `fetch.batch.0-7`, `render`."""
    return queue if lane_of(queue) is Lane.RENDER else f"fetch.{queue}"


def bound_to(name: str) -> str | None:
    """The shards in Celery's name for a queue, if there are any."""
    return name.removeprefix("fetch.").partition(".")[2] or None


def shards_of(text: str, shards: int) -> frozenset[int]:
    """`0-3,8` -> the numbers. They must be shards of this deployment."""
    found: set[int] = set()
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise SettingsError(f"Invalid --shards {text!r}. Write numbers and ranges: 0-3 or 0-3,8.")
        found.update(range(int(first), int(last if dash else first) + 1))
    if not found or max(found) >= shards:
        raise SettingsError(f"--shards {text}: there are {shards} shards, numbered from 0 (setting `shards`).")
    return frozenset(found)


def shards_text(numbers: Iterable[int]) -> str:
    """{0, 1, 2, 5} -> `0-2,5`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and parts[-1][1] == number - 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{first}-{last}" if last > first else str(first) for first, last in parts)
