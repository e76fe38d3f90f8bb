"""Deleting crawls and pages over HTTP, and what is not kept for ever."""

from __future__ import annotations

from dataclasses import replace

import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient
from waiting import until

from curtsy.control import retention
from curtsy.core.model import Request
from curtsy.core.settings import Settings
from curtsy.store import crawls, deletion, requests
from curtsy.store.engine import Store
from curtsy.store.sweep import DAY_S

DAY_MS = int(DAY_S * 1000)


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


def test_a_crawl_goes_with_its_pages(client: FlaskClient, store: Store, settings: Settings) -> None:
    segments = stored.folder_of(settings)
    gone, kept = stored.crawl(store), stored.crawl(store)
    for crawl in (gone, kept):
        stored.add_pages(store, segments, crawl, [("https://a.test/", b"body of %d" % crawl.n)])
    answer = client.delete(f"/v1/crawls/{gone.id}", headers={"X-Request-Id": "mine"})
    assert answer.status_code == 202
    assert answer.get_json()["request_id"] == "mine"
    until(lambda: client.get(f"/v1/crawls/{gone.id}").status_code == 404)
    assert len(client.get(f"/v1/crawls/{kept.id}/pages").get_json()["items"]) == 1
    assert client.delete(f"/v1/crawls/{gone.id}").status_code == 404


def test_a_running_crawl_ends_first_and_nothing_of_it_is_leased(client: FlaskClient, app: Flask, store: Store) -> None:
    id = client.post("/v1/crawls", json={"seeds": ["https://a.test/", "https://b.test/"]}).get_json()["id"]
    bridge = app.extensions["curtsy"]
    bridge.listing()[1]()
    noted = client.delete(f"/v1/crawls/{id}").get_json()["id"]
    status = client.get(f"/v1/crawls/{id}").get_json()
    assert (status["state"], status["reason"]) == ("deleting", "deleted")
    assert bridge.wait(bridge.services.frontier.shards[0].command("ZCARD", "%due:batch")) == 0
    assert client.delete(f"/v1/crawls/{id}").get_json()["id"] == noted
    assert client.post(f"/v1/crawls/{id}/resume").status_code == 409

    def is_empty() -> bool:
        with store.read() as tx:
            return tx.exec_driver_sql("SELECT count(*) FROM urls").scalar() == 0

    until(is_empty)
    # Its row stays for a minute, for whoever still holds it.
    (listed,) = client.get("/v1/deletions").get_json()["deletions"]
    assert (listed["id"], listed["what"], listed["crawl"]) == (noted, "crawl", id)
    with store.begin() as tx:
        tx.exec_driver_sql("UPDATE deletions SET before_ms = 1")
    until(lambda: retention.delete_some(store, bridge.settings))
    assert client.get(f"/v1/crawls/{id}").status_code == 404
    with store.read() as tx:
        assert crawls.by_n(tx, 1).state == "deleting"


def test_pages_of_a_url_or_a_host_go(client: FlaskClient, store: Store, settings: Settings) -> None:
    segments = stored.folder_of(settings)
    one, two = stored.crawl(store), stored.crawl(store)
    urls = ["https://a.test/", "https://a.test/b", "https://b.test/"]
    for crawl in (one, two):
        stored.add_pages(store, segments, crawl, [(url, f"{url} {crawl.n}".encode()) for url in urls])

    def left(crawl: str) -> set[str]:
        return {page["url"] for page in client.get(f"/v1/crawls/{crawl}/pages").get_json()["items"]}

    assert client.delete(f"/v1/pages?url=https://A.test/&crawl={one.id}").status_code == 202
    until(lambda: left(one.id) == set(urls[1:]))
    assert left(two.id) == set(urls)
    assert client.delete("/v1/pages?host=a.test").status_code == 202
    until(lambda: left(one.id) == left(two.id) == {urls[2]})
    until(lambda: client.get("/v1/deletions").get_json() == {"deletions": []})
    for wrong in ("", "?url=https://a.test/&host=a.test", "?url=nothing", "?host=*.test"):
        assert client.delete(f"/v1/pages{wrong}").status_code == 422, wrong
    assert client.delete("/v1/pages?host=a.test&crawl=0123").status_code == 404


def test_old_crawls_pages_and_requests_are_not_kept(app: Flask, store: Store, settings: Settings) -> None:
    bridge = app.extensions["curtsy"]
    segments = stored.folder_of(settings)
    old, young = stored.crawl(store, ended_ms=stored.BEGUN_MS), stored.crawl(store)
    for crawl in (old, young):
        stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", b"%d" % n) for n in range(3)])
    for n in range(4):
        row = Request(
            fence=n + 1, crawl=young.n, host="a.test", url="", start_ms=stored.BEGUN_MS + n * 40 * DAY_MS, end_ms=0,
            kind="p", status=200,
        )  # fmt: skip
        store.run(requests.insert, [row])

    def swept(**days: float) -> None:
        services = replace(bridge.services, settings=settings.model_copy(update=days))
        retention.sweep(services, stored.BEGUN_MS + 100 * DAY_MS)

    def count(table: str) -> int:
        with store.read() as tx:
            return int(tx.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar() or 0)

    swept()
    assert (count("crawls"), count("pages"), count("requests")) == (2, 6, 4)
    swept(retain_requests_days=50)
    assert (count("crawls"), count("pages"), count("requests")) == (2, 6, 2)
    swept(retain_crawls_days=99)
    assert (count("crawls"), count("pages")) == (1, 3)
    swept(retain_pages_days=100.5)
    assert count("pages") == 3
    swept(retain_pages_days=99.999985)  # between the second and the third page
    assert count("pages") == 1
    with store.read() as tx:
        assert not deletion.pending(tx)
