"""What waits in the triggerer while a task holds no worker."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any

from airflow.configuration import conf
from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance
from airflow.triggers.base import BaseTrigger, TriggerEvent

from curtsy.airflow.crawl_events import Follower
from curtsy.airflow.hook import DEFAULT, CurtsyHook

#: a scheduler's loop, three times over, as it was seen on a busy machine
_LOOP_S = 3.0
#: a control plane that is away is asked again for this long
_INSIST_S = 600.0
#: what ends a crawl; a loop alone does not keep its tasks
_aside: set[asyncio.Task[None]] = set()


def settle_s() -> float:
    """How long after its trigger began an event comes at the earliest.

    Whoever waits is queued again under the same key, and the scheduler believes that this second start was killed from
    outside ("state mismatch") if it hears only then that the first one has ended. It hears it within a loop, unless the
    task's process closed its sockets a moment before it ended: its supervisor then sleeps `min_heartbeat_interval`.
    """
    return float(conf.getfloat("workers", "min_heartbeat_interval", fallback=5.0)) + _LOOP_S


async def still_deferred(task: Any) -> bool:
    """Whether Airflow says that a trigger's task waits, by this trigger or a later one.

    A task that nobody waits with any more is failed, successful, or cleared and on its way to a worker.
    """
    if task is None:
        return False
    states = await asyncio.to_thread(
        RuntimeTaskInstance.get_task_states,
        dag_id=task.dag_id, map_index=task.map_index, task_ids=[task.task_id], run_ids=[task.run_id],
    )  # fmt: skip
    # One task was asked for; a mapped one is listed by another name.
    return "deferred" in (states or {}).get(task.run_id, {}).values()


class CurtsyCrawlTrigger(BaseTrigger):
    """Fires when a crawl has ended. It is all in its arguments: a triggerer that takes it over goes on waiting.

    `until`: Unix time after which it fires all the same. `cancel_on_kill`: whoever marks the waiting task failed or
    succeeded, or clears it, cancels the crawl; a triggerer that stops, dies or hands over does not.
    """

    def __init__(
        self, *, crawl_id: str, curtsy_conn_id: str = DEFAULT, poll_s: float = 10.0, until: float | None = None,
        cancel_on_kill: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.crawl_id, self.curtsy_conn_id, self.poll_s, self.until = crawl_id, curtsy_conn_id, poll_s, until
        self.cancel_on_kill = cancel_on_kill

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "curtsy.airflow.trigger.CurtsyCrawlTrigger", {
            "crawl_id": self.crawl_id,
            "curtsy_conn_id": self.curtsy_conn_id,
            "poll_s": self.poll_s,
            "until": self.until,
            "cancel_on_kill": self.cancel_on_kill,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        settled = asyncio.create_task(asyncio.sleep(settle_s()))
        async with await self._follower() as follower:
            status = await follower.until_ended(self.crawl_id, self.poll_s, self._left_s)
        await settled
        # Of a status only what the task needs: an event is stored in Airflow's database.
        yield TriggerEvent({name: status.get(name) for name in ("id", "state", "reason", "ended", "counts")})

    async def on_kill(self) -> None:
        """Called for what people do to the task, never when the triggerer ends or the crawl has.

        Airflow also calls it in a triggerer that stood still for so long that another one took the trigger over: the
        task still waits then, and so the crawl goes on.
        """
        if self.cancel_on_kill:
            # By its code Airflow 3.3.2 breaks off again, at every look, what has not ended yet: so it is done aside.
            aside = asyncio.create_task(self._end_the_crawl())
            _aside.add(aside)
            aside.add_done_callback(_aside.discard)
            await asyncio.shield(aside)

    async def _end_the_crawl(self) -> None:
        try:
            if await still_deferred(self.task_instance):
                self.log.warning("Another triggerer follows crawl %s now: it goes on.", self.crawl_id)
                return
            async with asyncio.timeout(_INSIST_S), await self._follower() as follower:
                await follower.cancel(self.crawl_id)
            self.log.info("Crawl %s was cancelled with its task.", self.crawl_id)
        except Exception as error:
            self.log.warning("Crawl %s was not cancelled with its task: %r", self.crawl_id, error)

    async def _follower(self) -> Follower:
        place = await CurtsyHook(self.curtsy_conn_id).aplace()
        return Follower(place.url, place.key, self.log.warning)

    def _left_s(self) -> float | None:
        return None if self.until is None else self.until - time.time()


class CurtsyHostSlotTrigger(BaseTrigger):
    """Fires when a host's turn is likely to be had. It holds nothing: the task takes the turn (see lines.py)."""

    def __init__(self, *, host: str, curtsy_conn_id: str = DEFAULT, delay_s: float | None = None) -> None:
        super().__init__()
        self.host, self.curtsy_conn_id, self.delay_s = host, curtsy_conn_id, delay_s

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return "curtsy.airflow.trigger.CurtsyHostSlotTrigger", {
            "host": self.host,
            "curtsy_conn_id": self.curtsy_conn_id,
            "delay_s": self.delay_s,
        }

    async def run(self) -> AsyncIterator[TriggerEvent]:
        from curtsy.airflow.host_waiters import lines_of

        await asyncio.sleep(settle_s())
        settings = (await CurtsyHook(self.curtsy_conn_id).aplace()).settings()
        delay_s = settings.delay_s if self.delay_s is None else self.delay_s
        async with lines_of(settings) as lines:
            await lines.wait(self.host, delay_s)
        yield TriggerEvent({"host": self.host})
