"""Triggers: they wait in the triggerer while the task holds no worker."""

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

#: three times a scheduler loop, as measured on a busy machine
_LOOP_S = 3.0
#: retries of a cancellation end after this long
_CANCEL_S = 600.0
#: cancellations in progress; an event loop keeps no references to its tasks
_cancellations: set[asyncio.Task[None]] = set()


def settle_s() -> float:
    """The minimum time between the start of a trigger and its event.

    A deferred task is queued again under the same key. If the scheduler learns only then that the first start has
    ended, it assumes that the second one was killed ("state mismatch"). It learns that within one loop, unless the
    process of the task closed its sockets just before its end: its supervisor then sleeps `min_heartbeat_interval`.
    """
    return float(conf.getfloat("workers", "min_heartbeat_interval", fallback=5.0)) + _LOOP_S


async def still_deferred(task: Any) -> bool:
    """Whether the task of a trigger is still deferred, with this trigger or a later one.

    Otherwise it failed, succeeded, or was cleared and will start on a worker.
    """
    if task is None:
        return False
    states = await asyncio.to_thread(
        RuntimeTaskInstance.get_task_states,
        dag_id=task.dag_id, map_index=task.map_index, task_ids=[task.task_id], run_ids=[task.run_id],
    )  # fmt: skip
    # The query is for one task; a mapped one has another name in the answer.
    return "deferred" in (states or {}).get(task.run_id, {}).values()


class CurtsyCrawlTrigger(BaseTrigger):
    """Fires when a crawl has ended. Its arguments are its whole state: another triggerer can take it over.

    `until`: Unix time of the timeout. `cancel_on_kill`: the crawl is canceled when a person marks the deferred task as
    failed or succeeded, or clears it; not when a triggerer stops, dies or hands over.
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
        # Only the fields that the task needs: the event is stored in Airflow's database.
        yield TriggerEvent({name: status.get(name) for name in ("id", "state", "reason", "ended", "counts")})

    async def on_kill(self) -> None:
        """Called when a person changes the task's state, not when the triggerer or the crawl ends.

        Airflow also calls it in a triggerer that was suspended until another one took the trigger over. The task
        is still deferred then, so the crawl continues.
        """
        if self.cancel_on_kill:
            # Airflow 3.3.2 cancels an unfinished on_kill again at every check, so the work runs in a separate task.
            task = asyncio.create_task(self._cancel_crawl())
            _cancellations.add(task)
            task.add_done_callback(_cancellations.discard)
            await asyncio.shield(task)

    async def _cancel_crawl(self) -> None:
        try:
            if await still_deferred(self.task_instance):
                self.log.warning("Another triggerer follows crawl %s now. The crawl continues.", self.crawl_id)
                return
            async with asyncio.timeout(_CANCEL_S), await self._follower() as follower:
                await follower.cancel(self.crawl_id)
            self.log.info("Crawl %s was canceled with its task.", self.crawl_id)
        except Exception as error:
            self.log.warning("Crawl %s was not canceled with its task: %r", self.crawl_id, error)

    async def _follower(self) -> Follower:
        place = await CurtsyHook(self.curtsy_conn_id).aplace()
        return Follower(place.url, place.key, self.log.warning)

    def _left_s(self) -> float | None:
        return None if self.until is None else self.until - time.time()


class CurtsyHostSlotTrigger(BaseTrigger):
    """Fires when a slot of a host is likely to be free. The task takes the slot itself (see host_waiters.py)."""

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
        # Imports the frontier, which triggers of crawls do not need.
        from curtsy.airflow.host_waiters import waiters_of

        await asyncio.sleep(settle_s())
        settings = (await CurtsyHook(self.curtsy_conn_id).aplace()).settings()
        delay_s = settings.delay_s if self.delay_s is None else self.delay_s
        async with waiters_of(settings) as waiters:
            await waiters.wait(self.host, delay_s)
        yield TriggerEvent({"host": self.host})
