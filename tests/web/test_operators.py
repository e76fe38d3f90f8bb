"""What operators look at: all attempts of a dead letter, and what workers do."""

from __future__ import annotations

import re
from contextlib import closing
from typing import Any

import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient

from curtsy.core.model import Failure, Request
from curtsy.core.settings import Settings
from curtsy.fleet.coordination import Activity, Worker
from curtsy.rules.urls import fingerprint
from curtsy.store import failures, requests
from curtsy.store.engine import Store

HOST = {"Host": "127.0.0.1:8080"}
URL = "https://a.test/x"


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


def sent(crawl: int, fence: int, at_ms: int, status: int, **fields: Any) -> Request:
    given = {"host": "a.test", "url": URL, "end_ms": at_ms + 250, "kind": "p", **fields}
    return Request(fence=fence, crawl=crawl, start_ms=at_ms, status=status, **given)


def test_a_dead_letter_has_all_its_attempts_and_the_stored_response(
    client: FlaskClient, store: Store, settings: Settings
) -> None:
    crawl, other = stored.crawl(store), stored.crawl(store)
    with closing(stored.folder_of(settings)) as segments:
        (page,) = stored.add_pages(store, segments, crawl, [(URL, b"<title>slow</title>")])
    rows = [
        sent(crawl.n, 7, 2_000, 503), sent(crawl.n, 8, 9_000, 0, fault="timeout"), sent(other.n, 9, 9_500, 200),
        sent(crawl.n, 10, 20_000, 0, nature="presumed"), sent(crawl.n, 11, 21_000, 200, url="https://a.test/other"),
    ]  # fmt: skip
    store.run(requests.insert, rows)
    letter = Failure(
        id="01letter", crawl=crawl.n, fp=fingerprint(URL), url=URL, host="a.test", cause="parse_timeout", fence=10,
        at_ms=22_000,
    )  # fmt: skip
    store.run(failures.insert, [letter])
    found = client.get("/v1/failures/01letter").get_json()
    assert [(one["status"], one["fault"], one["presumed"]) for one in found["requests"]] == [
        (503, None, False), (0, "timeout", False), (0, None, True),
    ]  # fmt: skip
    assert found["requests"][0]["duration_s"] == 0.25
    assert found["page"] == page.id
    shown = client.get("/failures/01letter", headers=HOST).text
    assert f"/pages/{page.id}/content" in shown
    assert "3 requests" in shown
    for id in ("none", "%00", "x" * 200):
        assert client.get(f"/v1/failures/{id}").status_code == 404


def test_a_worker_is_shown_and_drained(app: Flask, client: FlaskClient) -> None:
    backend = app.extensions["curtsy"]
    doing = (Activity(task="shift <b>batch", since_ms=1_790_000_000_000),)
    me = Worker(
        name="w1@a.test", queues=("fetch.batch",), processes=2, started_ms=1_790_000_000_000, memory_mb=321,
        activities=doing,
    )  # fmt: skip
    backend.wait(backend.fleet.heartbeat(me))
    (found,) = client.get("/v1/workers").get_json()["items"]
    assert (found["memory_mb"], found["drained"], found["doing"][0]["task"]) == (321, False, "shift <b>batch")
    assert found["started"] == found["doing"][0]["since"] == "2026-09-21T14:13:20Z"
    page = client.get("/workers", headers=HOST).text
    assert "shift &lt;b&gt;batch" in page
    csrf = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert csrf
    path = "/workers/w1%40a.test"
    assert client.post(f"{path}/drain", data={"csrf": csrf[1]}, headers=HOST).status_code == 303
    assert backend.wait(backend.fleet.is_drained("w1@a.test"))
    assert client.post("/v1/workers/w1@a.test/resume").get_json()["drained"] is False
    assert not backend.wait(backend.fleet.is_drained("w1@a.test"))
    assert client.post("/v1/workers/none/drain").status_code == 404
    assert [one["path"] for one in client.get("/v1/audit").get_json()["items"]][1:3] == [
        "/v1/workers/w1@a.test/resume", "/workers/w1@a.test/drain",
    ]  # fmt: skip
