"""Schedules are edited and run now; every run says what came of it: over HTTP, in the dashboard and by command."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient

from curtsy.control import schedules as scheduling
from curtsy.core.errors import UsageError, WrongState
from curtsy.core.model import CrawlState, Failure, Schedule
from curtsy.core.settings import Settings
from curtsy.services import backends
from curtsy.store import crawls, failures, schedules
from curtsy.store.engine import Store

HOST = {"Host": "127.0.0.1:8080"}
NEWS: dict[str, Any] = {"name": "news", "cron": "0 6 * * *", "seeds": ["https://a.test/"]}
HOOK = {"webhook": "https://hook.test/", "webhook_secret": "s" * 20}
NOW_MS = 1_790_000_000_000


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


@pytest.fixture
def news(store: Store, settings: Settings) -> Schedule:
    return scheduling.add(store, settings, **NEWS, crawl={"max_pages": 5, **HOOK}, now_ms=NOW_MS)


def test_what_is_not_changed_stays(store: Store, settings: Settings, news: Schedule) -> None:
    done = scheduling.edit(store, settings, "news", {"keep": 3, "crawl": {"max_pages": 9, "webhook": HOOK["webhook"]}})
    assert (done.keep, done.cron, done.next_ms, done.seeds) == (3, news.cron, news.next_ms, news.seeds)
    assert (done.crawl["max_pages"], done.crawl["webhook_secret"]) == (9, HOOK["webhook_secret"])
    done = scheduling.edit(store, settings, news.id, {"cron": "0 7 * * *", "name": "later"}, NOW_MS)
    assert done.next_ms == (news.next_ms or 0) + 3600_000
    with pytest.raises(UsageError, match="needs a secret"):
        scheduling.edit(store, settings, "later", {"crawl": {"webhook": "https://other.test/"}})
    scheduling.add(store, settings, **{**NEWS, "name": "other"})
    for wrong in ({"name": "other"}, {"cron": "x"}, {"seeds": []}, {"overlap": "both"}, {"crawl": {"scope": "x"}}):
        with pytest.raises(UsageError):
            scheduling.edit(store, settings, "later", wrong)
    with store.read() as tx:
        assert schedules.get(tx, "later") == done


def test_a_run_of_now_is_made_by_beat_and_never_twice_at_once(store: Store, settings: Settings, news: Schedule) -> None:
    run = scheduling.run_now(store, "news", NOW_MS + 5)
    assert (run.state, run.planned_ms) == ("planned", NOW_MS + 5)
    with pytest.raises(WrongState, match="has not ended"):
        scheduling.run_now(store, "news", NOW_MS + 6)

    async def fire() -> list[str]:
        built = backends.build(settings)
        try:
            await built.open()
            return await scheduling.fire(built, NOW_MS + 10)
        finally:
            await built.close()

    assert asyncio.run(fire()) == [run.crawl_id]
    with store.read() as tx:
        (outcome,) = scheduling.outcomes(tx, news.n)
        assert schedules.get(tx, "news").next_ms == news.next_ms, "the planned times stay"
    assert outcome.crawl is not None
    assert (outcome.run.state, outcome.crawl.name, outcome.crawl.state.value) == ("started", "news", "running")
    scheduling.edit(store, settings, "news", {"overlap": "queue"})
    assert scheduling.run_now(store, "news", NOW_MS + 20).state == "queued"
    with pytest.raises(WrongState, match="already waiting"):
        scheduling.run_now(store, "news", NOW_MS + 21)
    scheduling.pause(store, "news")
    with pytest.raises(WrongState, match="is paused"):
        scheduling.run_now(store, "news", NOW_MS + 30)


def test_a_run_says_what_came_of_its_crawl(client: FlaskClient, store: Store, news: Schedule) -> None:
    made = stored.crawl(store, CrawlState.RUNNING, schedule=news.n)
    run = scheduling.run_now(store, "news", NOW_MS)
    store.run(schedules.set_run, run, "started", "planned", crawl=made.n)
    store.run(crawls.add_pages, {made.n: 7})
    store.run(crawls.add_counts, {(made.n, "open", ""): 9, (made.n, "done", ""): 7, (made.n, "failed", "timeout"): 2})
    letter = Failure(id="l", crawl=made.n, fp=b"x" * 16, url="https://a.test/", host="a.test", stage="extract")
    store.run(failures.insert, [letter])
    store.run(crawls.set_state, made.n, CrawlState.CANCELLED, "cancelled", NOW_MS + 9000)
    (shown,) = client.get("/v1/schedules/news/runs").get_json()["items"]
    assert (shown["outcome"], shown["reason"], shown["pages"]) == ("cancelled", "cancelled", 7)
    assert shown["dead_letters"] == 3
    assert shown["ended"] == "2026-09-21T14:13:29Z"
    page = client.get("/schedules/news", headers=HOST).text
    assert f"/crawls/{run.crawl_id}/failures" in page


def test_a_schedule_is_edited_and_run_in_the_dashboard(client: FlaskClient) -> None:
    client.post("/v1/schedules", json={**NEWS, "name": "<b>news", "crawl": {"scope": "domain", "max_pages": 5}})
    id = client.get("/v1/schedules").get_json()["items"][0]["id"]
    page = client.get(f"/schedules/{id}/edit", headers=HOST).text
    csrf = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert csrf
    assert "<b>news" not in page
    form = {"csrf": csrf[1], **NEWS, "seeds": "https://a.test/\nhttps://b.test/", "zone": "UTC", "overlap": "skip"}
    form |= {"max_pages": "8", "tags": "daily"}
    assert client.post(f"/schedules/{id}/edit", data=form, headers=HOST).status_code == 303
    found = client.get("/v1/schedules/news").get_json()
    assert (len(found["seeds"]), found["crawl"]["max_pages"], found["crawl"]["scope"]) == (2, 8, "domain")
    assert found["crawl"]["tags"] == ["daily"]
    for wrong in ({"cron": "x"}, {"seeds": "http://127.0.0.1/"}, {"max_pages": "many"}, {"keep": "0"}):
        answer = client.post(f"/schedules/{id}/edit", data={**form, **wrong}, headers=HOST)
        assert (answer.status_code, 'role="alert"' in answer.text) == (422, True), wrong
    assert client.post(f"/schedules/{id}/run", data={"csrf": csrf[1]}, headers=HOST).status_code == 303
    assert client.get("/v1/schedules/news/runs").get_json()["items"][0]["note"] == "started by hand"
    assert client.post("/v1/schedules/news/run").status_code == 409


def test_an_edit_obeys_the_rules_of_the_api(client: FlaskClient) -> None:
    client.post("/v1/schedules", json=NEWS)
    for wrong in ({"crawl": {"schema": "os:system"}}, {"seeds": ["http://10.0.0.1/"]}, {"cron": ""}, {"out": "/x"}):
        assert client.patch("/v1/schedules/news", json=wrong).status_code == 422, wrong
    client.post("/v1/schedules", json={**NEWS, "name": "other"})
    assert client.patch("/v1/schedules/news", json={"name": "other"}).status_code == 409
