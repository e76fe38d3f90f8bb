"""Schedules, records and changes over HTTP, and the commands that speak to them."""

from __future__ import annotations

import io
import json
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from typing import Any
from unittest.mock import patch

import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.serving import make_server

from curtsy.cli import main
from curtsy.control import schedules as scheduling
from curtsy.core.model import Crawl, CrawlState, Page
from curtsy.core.record import Record
from curtsy.store import crawls, pages, records, schedules
from curtsy.store.engine import Store

NEWS: dict[str, Any] = {"name": "news", "cron": "0 6 * * *", "zone": "Europe/Berlin", "seeds": ["https://a.test/"]}


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


@pytest.fixture
def served(app: Flask) -> Iterator[str]:
    """The application on a real socket."""
    server = make_server("127.0.0.1", 0, app, threaded=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def command(served: str, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs a command against the API; its JSON document."""
    monkeypatch.setenv("CURTSY_API_URL", served)

    def run(*words: str, code: int = 0) -> Any:
        said = io.StringIO()
        argv = patch.object(sys, "argv", ["curtsy", *words, "--json"])
        with argv, redirect_stdout(said), pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code, said.getvalue()
        return json.loads(said.getvalue()) if code == 0 else None

    return run


def test_a_schedule_is_made_shown_paused_resumed_and_removed(client: FlaskClient) -> None:
    wish = {"max_pages": 5, "schema": "page", "webhook": "https://hook.test/", "webhook_secret": "0123456789abcdef"}
    answer = client.post("/v1/schedules", json={**NEWS, "crawl": wish, "keep": 3})
    assert answer.status_code == 201
    made = answer.get_json()
    assert (made["name"], made["enabled"], made["overlap"], made["keep"]) == ("news", True, "skip", 3)
    assert (made["crawl"]["max_pages"], made["crawl"]["schema"]) == (5, "page")
    assert "0123456789abcdef" not in answer.get_data(as_text=True)
    assert made["next"].endswith("00:00Z")
    for id in ("news", made["id"], made["id"][:8]):
        assert client.get(f"/v1/schedules/{id}").get_json() == made
    assert client.get("/v1/schedules").get_json() == {"items": [made], "next": None}
    assert client.post("/v1/schedules/news/pause").get_json()["next"] is None
    assert client.post("/v1/schedules/news/resume").get_json() == made
    assert client.get("/v1/schedules/news/runs").get_json() == {"items": [], "next": None}
    assert client.delete("/v1/schedules/news").status_code == 204
    for asked in (client.get, client.delete):
        gone = asked("/v1/schedules/news")
        assert (gone.status_code, gone.get_json()["type"]) == (404, "urn:curtsy:problem:no-such-schedule")


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"cron": "whenever"}, "not a cron expression"),
        ({"zone": "Mars/Olympus"}, "no time zone"),
        ({"seeds": []}, "seeds"),
        ({"seeds": ["http://127.0.0.1/"]}, "cannot be crawled"),
        ({"seeds": ["ftp://a.test/"]}, "cannot be crawled"),
        ({"name": "a\0b"}, "printable"),
        ({"keep": 0}, "keep"),
        ({"overlap": "both"}, "overlap"),
        ({"crawl": {"schema": "recipe"}}, "no such schema"),
        ({"crawl": {"allow_private": ["10.0.0.0/8"]}}, "no such field"),
        ({"crawl": {"webhook": "https://hook.test/"}}, "needs a secret"),
        (
            {"crawl": {"webhook": "javascript:alert(1)", "webhook_secret": "0123456789abcdef"}},
            "not an http or https URL",
        ),
        ({"crawl": {"webhook_secret": "short"}}, "webhook_secret"),
        ({"colour": "red"}, "no such field"),
    ],
)
def test_what_cannot_be_is_refused(client: FlaskClient, changed: dict[str, Any], where: str) -> None:
    answer = client.post("/v1/schedules", json={**NEWS, **changed})
    assert answer.status_code == 422
    assert where in answer.get_data(as_text=True)
    assert client.get("/v1/schedules").get_json()["items"] == []


def test_a_name_is_given_once(client: FlaskClient) -> None:
    assert client.post("/v1/schedules", json=NEWS).status_code == 201
    again = client.post("/v1/schedules", json=NEWS)
    assert (again.status_code, again.get_json()["type"]) == (409, "urn:curtsy:problem:name-taken")


def test_lists_come_in_pages(client: FlaskClient, store: Store) -> None:
    for i in range(5):
        client.post("/v1/schedules", json={**NEWS, "name": f"s{i}"})
    found: list[str] = []
    cursor = None
    while True:
        query = {"limit": "2"} | ({"cursor": cursor} if cursor else {})
        page = client.get("/v1/schedules", query_string=query).get_json()
        found += [one["name"] for one in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert found == [f"s{i}" for i in range(5)]
    with store.begin() as tx:
        n = schedules.get(tx, "s0").n
        for i in range(3):
            schedules.plan(tx, n, 1000 * i, "skipped", f"c{i}", "still going", 1)
    first = client.get("/v1/schedules/s0/runs?limit=2").get_json()
    rest = client.get("/v1/schedules/s0/runs", query_string={"limit": 2, "cursor": first["next"]}).get_json()
    assert [run["planned"] for run in first["items"] + rest["items"]] == [
        f"1970-01-01T00:00:0{second}Z" for second in (2, 1, 0)
    ]
    assert rest["next"] is None


@pytest.mark.parametrize("id", ["%00", "x%00y", "..", "%F0%9F%98%80", "a" * 300])
def test_any_id_is_found_or_not(client: FlaskClient, id: str) -> None:
    assert client.get(f"/v1/schedules/{id}").status_code == 404


def crawled(store: Store, id: str, bodies: dict[str, int], schedule: int | None = None) -> int:
    with store.begin() as tx:
        crawl = crawls.create(
            tx, Crawl(id=id, request_id="r", state=CrawlState.FINISHED, schema="page", schedule=schedule)
        )
        rows = [
            Page(
                id="", crawl=crawl.n, fp=name.encode().ljust(16), url=f"https://a.test/{name}", host="a.test",
                status=200, fetched_ms=1000, depth=0, sha256=f"{body:064x}",
            )
            for name, body in bodies.items()
        ]  # fmt: skip
        pages.insert(tx, rows)
        made = [
            Record(
                crawl=crawl.n, subject=page.fp.hex(), schema="page", schema_hash="h", url=page.url, data={"title": "T"},
                scores={"words": 3}, low_confidence=page.url.endswith("a"), created_ms=1000,
            )
            for page in rows
        ]  # fmt: skip
        for record in made:
            records.add(tx, record)
        return crawl.n


def test_records_of_a_crawl_come_in_pages(client: FlaskClient, store: Store) -> None:
    crawled(store, "018f0000-01", {"a": 1, "b": 2, "c": 3})
    first = client.get("/v1/crawls/018f0000-01/records?limit=2").get_json()
    rest = client.get("/v1/crawls/last/records", query_string={"limit": 2, "cursor": first["next"]}).get_json()
    assert [one["url"] for one in first["items"] + rest["items"]] == [f"https://a.test/{name}" for name in "abc"]
    assert rest["next"] is None
    assert (first["items"][0]["schema"], first["items"][0]["data"]) == ("page", {"title": "T"})
    doubtful = client.get("/v1/crawls/last/records?low_confidence=true").get_json()["items"]
    assert [one["url"] for one in doubtful] == ["https://a.test/a"]
    assert client.get("/v1/crawls/unknown/records").status_code == 404


def test_changes_of_a_crawl_come_in_pages_with_their_counts(client: FlaskClient, store: Store) -> None:
    crawled(store, "018f-aa", {"a": 1, "b": 2, "c": 3})
    crawled(store, "018f-bb", {"a": 1, "b": 9, "d": 4})
    path = "/v1/crawls/018f-bb/changes"
    first = client.get(f"{path}?against=018f-aa&limit=3").get_json()
    assert first["counts"] == {"new": 1, "changed": 1, "unchanged": 1, "gone": 1, "moved": 0, "unread": 0}
    rest = client.get(path, query_string={"against": "018f-aa", "limit": 3, "cursor": first["next"]}).get_json()
    assert rest["counts"] is None
    kinds = {one["url"][-1]: one["kind"] for one in first["items"] + rest["items"]}
    assert kinds == {"a": "unchanged", "b": "changed", "d": "new", "c": "gone"}
    assert client.get(f"{path}?against=018f-aa&kind=new").get_json()["items"][0]["url"] == "https://a.test/d"
    previous = client.get(path).get_json()
    assert previous["counts"] == first["counts"], "the previous crawl of the same seeds"
    assert client.get(f"{path}?against=0000").status_code == 404
    assert client.get(f"{path}?against=018f-aa&cursor=WyJub3doZXJlIiwxXQ").status_code == 422


def test_commands_do_the_same_over_the_api(command: Callable[..., Any], store: Store) -> None:
    made = command("schedules", "add", "news", "@daily", "https://a.test/", "--max-pages", "5", "--overlap", "queue")
    assert (made["name"], made["crawl"]["max_pages"], made["overlap"]) == ("news", 5, "queue")
    assert [one["name"] for one in command("schedules", "list")["schedules"]] == ["news"]
    assert not command("schedules", "pause", "news")["enabled"]
    assert command("schedules", "resume", "news")["enabled"]
    with store.read() as tx:
        schedule = schedules.get(tx, "news")
    first = crawled(store, "018f-aa", {"a": 1, "b": 2}, schedule.n)
    second = crawled(store, "018f-bb", {"a": 1, "b": 3}, schedule.n)
    with store.begin() as tx:
        for planned_ms, n, id in ((1000, first, "018f-aa"), (2000, second, "018f-bb")):
            schedules.plan(tx, schedule.n, planned_ms, "planned", id, "", 1)
            (run,) = schedules.waiting(tx, "planned")
            schedules.set_run(tx, run, "started", "planned", crawl=n)
    assert [run["crawl"] for run in command("schedules", "runs", "news")["runs"]] == ["018f-bb", "018f-aa"]
    found = command("changes", "018f-bb", "--kind", "changed")
    assert (found["against"], [one["url"] for one in found["items"]]) == ("018f-aa", ["https://a.test/b"])
    assert [one["url"] for one in command("records", "018f-bb", "--low-confidence")["records"]] == ["https://a.test/a"]
    assert command("schedules", "remove", "news")["name"] == "news"
    command("schedules", "remove", "news", code=2)
    assert scheduling.shown(schedule)["seeds"] == ["https://a.test/"]
