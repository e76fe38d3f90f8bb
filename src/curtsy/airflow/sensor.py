"""Waits for an existing crawl, created by another task, a schedule or a person."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from airflow.sdk import BaseSensorOperator, PokeReturnValue
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, AirflowSkipException

from curtsy.airflow.crawl_events import TIMED_OUT
from curtsy.airflow.deferring import default_deferrable, renamed
from curtsy.airflow.hook import DEFAULT, CurtsyHook
from curtsy.airflow.links import XCOM_KEY, CurtsyCrawlLink
from curtsy.airflow.trigger import CurtsyCrawlTrigger
from curtsy.client.server import ENDED
from curtsy.core.errors import Unavailable, UnknownCrawl


class CurtsyCrawlSensor(BaseSensorOperator):
    """Succeeds when the crawl has finished, with its counts by XCom; fails if it was canceled or deleted.

    `crawl_id` is an id, its beginning, or `last`. The sensor never cancels the crawl.
    """

    template_fields: Sequence[str] = ("crawl_id", "curtsy_conn_id")
    operator_extra_links = (CurtsyCrawlLink(),)
    ui_color = "#e8f0e4"

    def __init__(
        self, *, crawl_id: str, curtsy_conn_id: str = DEFAULT, poll_interval: float = 10.0, poll_s: float | None = None,
        deferrable: bool | None = None, **kwargs: Any,
    ) -> None:  # fmt: skip
        super().__init__(**kwargs)
        self.crawl_id, self.curtsy_conn_id = crawl_id, curtsy_conn_id
        self.poll_interval = renamed("poll_s", "poll_interval", poll_s, poll_interval)
        self.deferrable = default_deferrable() if deferrable is None else deferrable
        self.crawl_url: str | None = None

    def execute(self, context: Any) -> Any:
        if not self.deferrable:
            return super().execute(context)
        poked = self.poke(context)  # an ended crawl needs no trigger
        if poked.is_done:
            return poked.xcom_value
        self.defer(
            trigger=CurtsyCrawlTrigger(
                crawl_id=self.crawl_id, curtsy_conn_id=self.curtsy_conn_id, poll_s=self.poll_interval,
                until=time.time() + self.timeout, cancel_on_kill=False,
            ),
            method_name="execute_complete",
        )  # fmt: skip
        raise AssertionError("deferred")

    def execute_complete(self, context: Any, event: dict[str, Any]) -> dict[str, Any]:
        if event["state"] == TIMED_OUT:
            message = f"Crawl {self.crawl_id} has not ended after {self.timeout:g} s."
            raise AirflowSkipException(message) if self.soft_fail else AirflowSensorTimeout(message)
        return self._ended(context, event)

    def poke(self, context: Any) -> PokeReturnValue:
        try:
            status = CurtsyHook(self.curtsy_conn_id).get_conn().crawl(self.crawl_id)
        except UnknownCrawl as error:
            raise AirflowFailException(str(error)) from error
        except Unavailable as error:
            self.log.warning("%s", error)
            return PokeReturnValue(is_done=False)
        self.crawl_id = status["id"]  # `last` must not change later
        self._link(context)
        if status["state"] not in ENDED:
            return PokeReturnValue(is_done=False)
        return PokeReturnValue(is_done=True, xcom_value=self._ended(context, status))

    def _ended(self, context: Any, status: Mapping[str, Any]) -> dict[str, Any]:
        self._link(context)
        if status["state"] != "finished":
            raise AirflowFailException(f"Crawl {self.crawl_id} is {status['state']}: {status.get('reason') or ''}")
        counts = dict(status["counts"])
        failed = sum(counts["failed"].values())
        return {"crawl_id": status["id"], "pages": counts["pages"], "dead_letters": failed, "counts": counts}

    def _link(self, context: Any) -> None:
        self.crawl_url = CurtsyHook(self.curtsy_conn_id).place().crawl_url(self.crawl_id)
        context["ti"].xcom_push(key=XCOM_KEY, value=self.crawl_url)
