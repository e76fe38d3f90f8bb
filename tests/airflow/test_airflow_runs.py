"""DAG runs through a real scheduler, executor and triggerer, with `curtsy up` as the control plane."""

from __future__ import annotations

import time
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from airflow_plane import Plane
from airflow_stack import Airflow

from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import judge

if find_spec("airflow") is None:
    pytest.skip("Airflow has an environment of its own: make test-airflow", allow_module_level=True)

pytestmark = pytest.mark.timeout(400)

CRAWLED, SHARED = "org-0000.tinyweb.test", [f"org-{n:04d}.tinyweb.test" for n in range(5, 10)]
DELAY_S = 3.0


def test_a_crawl_holds_no_worker_and_survives_the_triggerers_death(airflow: Airflow, plane: Plane) -> None:
    dag = "curtsy_example"
    airflow.trigger(dag, seeds=[f"http://{CRAWLED}/", "http://error-500.tinyweb.test/"], max_pages=100)
    airflow.until(lambda: airflow.state(dag, "crawl") == "deferred")
    id = airflow.xcom(dag, "crawl", "curtsy_crawl_url").rpartition("/")[2]

    # While it crawls, the task is in no worker and takes no place in its pool.
    first = watched(airflow, plane, id, more_pages=5)
    airflow.kill("triggerer")
    plane.server.pause(id)
    before = airflow.followers()
    airflow.begin("triggerer", "triggerer", "--skip-serve-logs")
    airflow.until(lambda: airflow.followers() not in (before, [None]))
    plane.server.resume(id)
    second = watched(airflow, plane, id, more_pages=2)
    assert set(first + second) == {(0, "deferred")}, Counter(first + second)

    airflow.until_run(dag)
    result = airflow.xcom(dag, "crawl")
    status = plane.server.crawl(id)
    assert (result["crawl_id"], result["state"]) == (id, "finished")
    assert result["pages"] == status["pages"] > 15
    assert (result["dead_letters"], result["counts"]["failed"]) == (1, {"server_error": 1})
    assert result["exports"]["pages.jsonl"] == f"{plane.url}/crawls/{id}/export/pages.jsonl"
    assert len(plane.crawls(CRAWLED)) == 1, "nothing was submitted twice"
    # crawl -> process -> replay -> wait again -> process
    assert sum(airflow.xcom(dag, "process").values()) == result["pages"]
    assert airflow.xcom(dag, "replayed")["crawl_id"] == id
    assert airflow.state(dag, "process_again") == "success"
    replayed = list(plane.server.each(plane.server.list_failures, id, replayed=True))
    assert len(replayed) == 2, "the dead letter, and the one that came of trying again"
    link = airflow.ask("GET", f"/api/v2/dags/{dag}/dagRuns/one/taskInstances/crawl/links")["extra_links"]
    assert link == {"Crawl in Curtsy": f"{plane.url}/crawls/{id}"}


def watched(airflow: Airflow, plane: Plane, id: str, more_pages: int) -> list[tuple[int, str | None]]:
    """(worker slots held by anybody, the task's state), sampled while the crawl fetches so many pages."""
    goal = plane.server.crawl(id)["pages"] + more_pages
    samples: list[tuple[int, str | None]] = []

    def fetched() -> bool:
        samples.append((airflow.occupied(), airflow.state("curtsy_example", "crawl")))
        status = plane.server.crawl(id)
        assert status["state"] == "running", status
        return status["pages"] >= goal

    airflow.until(fetched)
    return samples


def test_twenty_runs_share_five_hosts_politely(airflow: Airflow, plane: Plane, web: TinyWeb) -> None:
    crawl = plane.server.submit(seeds=[f"http://{host}/" for host in SHARED], max_pages=10, delay_s=DELAY_S)
    for n in range(20):
        airflow.trigger("own_requests", f"run-{n}", url=f"http://{SHARED[n // 4]}/")
    most = 0

    def ended() -> bool:
        nonlocal most
        states = Counter(airflow.states("own_requests").values())
        most = max(most, states["deferred"])
        return states["success"] + states["failed"] == 20

    airflow.until(ended, 240)
    assert airflow.events("own_requests", "state mismatch") == []
    assert set(airflow.states("own_requests").values()) == {"success"}, airflow.said()
    assert airflow.tries("own_requests") == {1}
    assert len(airflow.events("own_requests", "deferred")) >= 3, "some had to wait, and did so in the triggerer"
    assert most > 0
    plane.server.wait(crawl["id"], 60)
    lines = [line for line in web.requests() if line.host.partition(":")[0] in SHARED]
    asked = Counter(line.path for line in lines)
    assert asked["/"] >= 20
    assert len(lines) >= 30, "of the tasks and of the crawl"
    verdict = judge(lines, DELAY_S)
    assert len(verdict.hosts) == 5
    assert verdict.ok, verdict.summary()


def test_whoever_ends_the_task_ends_the_crawl_and_a_cleared_task_begins_another(airflow: Airflow, plane: Plane) -> None:
    dag, host = "ended_by_hand", "org-0001.tinyweb.test"
    airflow.trigger(dag, seed=f"http://{host}/")
    airflow.until(lambda: airflow.state(dag, "crawl") == "deferred")
    first = airflow.xcom(dag, "crawl", "curtsy_crawl_url").rpartition("/")[2]
    plane.server.pause(first)  # so that it does not end by itself meanwhile
    airflow.until(lambda: airflow.follows(plane.port))  # what ends before its trigger runs, nobody is told of
    path = f"/api/v2/dags/{dag}/dagRuns/one/taskInstances/crawl"
    airflow.ask("PATCH", path, {"new_state": "failed"})
    airflow.until(lambda: plane.server.crawl(first)["state"] == "cancelled")

    cleared: dict[str, Any] = {"dry_run": False, "task_ids": ["crawl"], "dag_run_id": "one", "only_failed": False}
    airflow.ask("POST", f"/api/v2/dags/{dag}/clearTaskInstances", cleared)
    airflow.until(lambda: airflow.state(dag, "crawl") == "success", 120)
    result = airflow.xcom(dag, "crawl")
    assert result["crawl_id"] != first
    assert result["state"] == "finished"


def test_a_triggerer_that_stood_still_does_not_end_what_another_one_follows(airflow: Airflow, plane: Plane) -> None:
    dag, run = "ended_by_hand", "taken-over"
    airflow.trigger(dag, run, seed="http://org-0003.tinyweb.test/")
    airflow.until(lambda: airflow.state(dag, "crawl", run) == "deferred")
    id = airflow.xcom(dag, "crawl", "curtsy_crawl_url", run=run).rpartition("/")[2]
    plane.server.pause(id)
    airflow.until(lambda: airflow.follows(plane.port))
    before = airflow.followers()
    airflow.stand_still("triggerer")
    airflow.begin("second triggerer", "triggerer", "--skip-serve-logs")
    airflow.until(lambda: airflow.followers() not in (before, [None]))
    airflow.go_on("triggerer")
    airflow.until(lambda: f"Another triggerer follows crawl {id}" in airflow.told(dag, run))
    airflow.kill("triggerer")
    airflow.parts["triggerer"] = airflow.parts.pop("second triggerer")

    assert plane.server.crawl(id)["state"] == "paused"
    plane.server.resume(id)
    airflow.until(lambda: airflow.state(dag, "crawl", run) == "success")
    assert airflow.xcom(dag, "crawl", run=run)["crawl_id"] == id


def test_a_crawl_on_a_worker_exports_and_wakes_who_waits_for_it(airflow: Airflow, plane: Plane, tmp_path: Path) -> None:
    out = tmp_path / "pages.jsonl"
    airflow.trigger("on_a_worker", seed="http://org-0002.tinyweb.test/", out=str(out))
    airflow.until_run("on_a_worker")
    result = airflow.xcom("on_a_worker", "crawl")
    assert result["exported_to"] == [str(out)]
    assert len(out.read_text().splitlines()) == result["pages"] == 3
    airflow.until_run("after_a_crawl")
    (run,) = (run for run, task, _ in airflow.states("after_a_crawl") if task == "see")
    events = airflow.xcom("after_a_crawl", "see", run=run.replace("+", "%2B"))
    assert events == [{"crawl_id": result["crawl_id"], "pages": 3, "url": result["url"]}]


def test_the_connection_type_has_a_form_and_a_test(airflow: Airflow, plane: Plane) -> None:
    told = airflow.ask("GET", "/ui/connections/hook_meta")
    (curtsy,) = (one for one in told if one["connection_type"] == "curtsy")
    assert curtsy["hook_name"] == "Curtsy"
    assert {"dashboard_url", "frontier_url", "store_url", "data_dir"} <= set(curtsy["extra_fields"])
    assert curtsy["standard_fields"]["password"]["title"] == "API key"
    body = {"connection_id": "tried", "conn_type": "curtsy", "host": plane.url}
    assert airflow.ask("POST", "/api/v2/connections/test", body)["status"] is True
    began = time.monotonic()
    refused = airflow.ask("POST", "/api/v2/connections/test", {**body, "host": "http://127.0.0.1:1"})
    assert refused["status"] is False
    assert "does not respond" in refused["message"]
    assert time.monotonic() - began < 30
