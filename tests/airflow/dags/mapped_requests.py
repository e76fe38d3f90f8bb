"""A DAG with many mapped tasks on few hosts, which notes how long each of them waits on a worker."""

from __future__ import annotations

import http.client
import os
import time
from pathlib import Path
from typing import Any

from airflow.sdk import dag, get_current_context, task

from curtsy.airflow import current_slot, polite_slot
from curtsy.airflow.held_slot import HeldSlot, SlotThread

_take = SlotThread.take


def _timed(self: SlotThread, *given: Any) -> HeldSlot | None:
    began = time.monotonic()
    held = _take(self, *given)
    with Path(os.environ["CURTSY_NOTES"]).open("a") as notes:
        notes.write(f"{time.monotonic() - began:.6f} {'slot' if held is not None else 'none'}\n")
    return held


SlotThread.take = _timed  # type: ignore[method-assign,assignment]


@dag(dag_id="mapped_requests", schedule=None, max_active_tasks=1000, params={"urls": []})
def mapped_requests() -> None:
    @task
    def urls() -> list[str]:
        return list(get_current_context()["params"]["urls"])

    # With the default patience, and without retries: a try that fails, for whatever reason, fails the test.
    @polite_slot(delay_s=8.0, retries=0)
    def fetch(url: str) -> int:
        slot = current_slot()
        slot.check()
        connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["TINYWEB_PORT"]), timeout=10)
        connection.request("GET", "/", headers={"Host": url.split("/")[2]})
        status = connection.getresponse().status
        connection.close()
        slot.report_response(status, url=url)
        return status

    fetch.expand(url=urls())


mapped_requests()
