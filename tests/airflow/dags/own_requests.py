"""DAGs of the tests: tasks that fetch by themselves, and a crawl that somebody ends."""

from __future__ import annotations

import http.client
import os

from airflow.sdk import Asset, dag, task

from curtsy.airflow import CurtsyCrawlOperator, current_slot, polite_slot

CRAWLED = Asset("crawled", uri="curtsy://tests/crawled")


def ask(url: str) -> int:
    """One request to the tiny web, on a connection of its own."""
    host = url.split("/")[2]
    connection = http.client.HTTPConnection("127.0.0.1", int(os.environ["TINYWEB_PORT"]), timeout=10)
    try:
        connection.request("GET", "/" + url.split("/", 3)[3], headers={"Host": host})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


@dag(dag_id="own_requests", schedule=None, max_active_runs=50, params={"url": ""})
def own_requests() -> None:
    # Without retries: a try that fails, for whatever reason, fails the test.
    @polite_slot(delay_s=3.0, patience_s=0.5, retries=0)
    def fetch(url: str) -> int:
        slot = current_slot()
        slot.check()
        status = ask(url)
        slot.report_response(status, url=url)
        return status

    fetch("{{ params.url }}")


@dag(dag_id="ended_by_hand", schedule=None, params={"seed": "", "max_pages": 100})
def ended_by_hand() -> None:
    CurtsyCrawlOperator(
        task_id="crawl", seeds="{{ params.seed }}", max_pages="{{ params.max_pages }}", delay_s=0.5, retries=0
    )


@dag(dag_id="on_a_worker", schedule=None, params={"seed": "", "out": ""})
def on_a_worker() -> None:
    CurtsyCrawlOperator(
        task_id="crawl", seeds="{{ params.seed }}", max_pages=3, deferrable=False, on_dead_letters="fail",
        export_to="{{ params.out }}", outlets=[CRAWLED],
    )  # fmt: skip


@dag(dag_id="after_a_crawl", schedule=[CRAWLED])
def after_a_crawl() -> None:
    @task
    def see(triggering_asset_events: object = None) -> list[dict[str, object]]:
        events = triggering_asset_events[CRAWLED]  # type: ignore[index]
        return [dict(event.extra) for event in events]

    see()


own_requests()
ended_by_hand()
on_a_worker()
after_a_crawl()
