"""An example DAG: crawl -> process -> replay the dead letters -> process their pages.

Copy it into your DAG folder. It needs the connection `curtsy_default` (docs/how-to/airflow.md). Run it with your
own seeds:

    airflow dags trigger curtsy_example --conf '{"seeds": ["https://example.com/"]}'
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.sdk import Asset, Param, dag, task

from curtsy.airflow import CurtsyCrawlOperator, CurtsyCrawlSensor, CurtsyHook

#: DAGs with `schedule=[PAGES]` start when a crawl has finished; the event has its id and its number of pages
PAGES = Asset("curtsy_example_pages", uri="curtsy://example/pages")


@dag(
    dag_id="curtsy_example",
    schedule=None,
    params={
        "seeds": Param(["https://example.com/"], type="array"),
        "max_pages": Param(100, type="integer"),
    },
    render_template_as_native_obj=True,
    tags=["curtsy"],
)
def example() -> None:
    # Submits the crawl, and leaves its worker until the crawl has ended.
    crawl = CurtsyCrawlOperator(
        task_id="crawl",
        seeds="{{ params.seeds }}",
        max_pages="{{ params.max_pages }}",
        on_dead_letters="warn",
        crawl_timeout=timedelta(hours=6),
        outlets=[PAGES],
        retries=2,
    )

    @task
    def process(crawled: dict[str, Any]) -> dict[str, int]:
        """Pages by status, read page by page from the API."""
        server = CurtsyHook().get_conn()
        found: dict[str, int] = {}
        for page in server.each(server.list_pages, crawled["crawl_id"]):
            found[str(page["status"])] = found.get(str(page["status"]), 0) + 1
        return found

    @task.short_circuit
    def replay(crawled: dict[str, Any]) -> bool:
        """Replay dead letters whose cause may be temporary; False: there were none."""
        server = CurtsyHook().get_conn()
        tried = [
            server.replay_failures(crawl=crawled["crawl_id"], cause=cause)
            for cause in ("timeout", "connect_failed", "server_error")
        ]
        return any(one["dead_letters"] for one in tried)

    again = CurtsyCrawlSensor(task_id="replayed", crawl_id="{{ ti.xcom_pull('crawl')['crawl_id'] }}")
    processed = process(crawl.output)
    processed >> replay(crawl.output) >> again >> process.override(task_id="process_again")(again.output)


example()
