"""Pages, dead letters, hosts and explanations over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient

from curtsy.core.model import CrawlState, HostState, RobotsState
from curtsy.core.settings import Settings
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, hosts, queues, urls
from curtsy.store.engine import Store

HTML = b"<!doctype html><script>alert(1)</script>"


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


def walk(client: FlaskClient, path: str, limit: int = 3) -> list[Any]:
    """Every item of a list, page by page."""
    found: list[Any] = []
    cursor = ""
    joint = "&" if "?" in path else "?"
    while True:
        answer = client.get(f"{path}{joint}limit={limit}{cursor}")
        assert answer.status_code == 200, answer.get_data(as_text=True)
        page = answer.get_json()
        found += page["items"]
        if page["next"] is None:
            return found
        cursor = f"&cursor={page['next']}"


def test_pages_are_listed_by_status_host_time_and_beginning(
    client: FlaskClient, store: Store, settings: Settings
) -> None:
    segments = stored.folder_of(settings)
    crawl = stored.crawl(store)
    of_a = [(f"https://a.test/{part}/{n}", b"a%d" % n) for n, part in enumerate(("x", "x", "y", "y", "x"))]
    stored.add_pages(store, segments, crawl, of_a)
    stored.add_pages(store, segments, crawl, [("https://b.test/gone", b"none")], status=404)
    at = f"/v1/crawls/{crawl.id}/pages"
    listed = [page["url"] for page in walk(client, at)]
    assert sorted(listed) == sorted([*(url for url, _ in of_a), "https://b.test/gone"])
    assert listed[-1] == "https://b.test/gone"
    assert [page["url"] for page in walk(client, f"{at}?host=b.test")] == ["https://b.test/gone"]
    assert [page["url"] for page in walk(client, f"{at}?status=404")] == ["https://b.test/gone"]
    assert len(walk(client, f"{at}?status=200&host=a.test")) == 5
    assert len(walk(client, f"{at}?url=https://A.test/x/", 1)) == 3
    assert len(walk(client, f"{at}?url=https://a.test/x/&status=404")) == 0
    assert [page["url"] for page in walk(client, f"{at}?since=2023-11-14T22:13:23Z", 1)] == [
        "https://a.test/y/3",
        "https://a.test/x/4",
    ]
    assert client.get(f"{at}?url=https://a").status_code == 422
    assert client.get(f"{at}?cursor=bm9uZQ").status_code == 422
    assert client.get("/v1/crawls/0123/pages").status_code == 404


def test_a_filter_looks_through_a_bounded_number_of_pages(
    client: FlaskClient, store: Store, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curtsy.store import listing

    monkeypatch.setattr(listing.pages_of, "__defaults__", (3,))
    crawl = stored.crawl(store)
    stored.add_pages(
        store,
        stored.folder_of(settings),
        crawl,
        [(f"https://a.test/{'z' if n == 7 else 'y'}/{n}", b"%d" % n) for n in range(10)],
    )
    first = client.get(f"/v1/crawls/{crawl.id}/pages?url=https://a.test/z/").get_json()
    assert first["items"] == []
    assert first["next"]
    assert [page["url"] for page in walk(client, f"/v1/crawls/{crawl.id}/pages?url=https://a.test/z/")] == [
        "https://a.test/z/7"
    ]


def test_a_body_is_an_attachment_that_no_browser_runs(client: FlaskClient, store: Store, settings: Settings) -> None:
    crawl = stored.crawl(store)
    first, second = stored.add_pages(
        store, stored.folder_of(settings), crawl, [("https://a.test/", HTML), ("https://a.test/again", HTML)]
    )
    told = client.get(f"/v1/pages/{second.id}").get_json()
    assert (told["crawl"], told["url"], told["same_as"]) == (crawl.id, second.url, first.id)
    for page in (first, second):
        answer = client.get(f"/v1/pages/{page.id}/content")
        assert answer.data == HTML
        assert answer.headers["Content-Disposition"] == f"attachment; filename={page.id}.html"
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Security-Policy"].startswith("sandbox")
    for unknown in ("none", f"{crawl.n}-{'0' * 32}", f"{'9' * 30}-{'0' * 32}"):
        assert client.get(f"/v1/pages/{unknown}").status_code == 404
        assert client.get(f"/v1/pages/{unknown}/content").status_code == 404


def test_dead_letters_are_listed_and_counted(client: FlaskClient, store: Store) -> None:
    one, two = stored.crawl(store), stored.crawl(store)
    stored.add_failures(store, one, [(f"https://a.test/{n}", "timeout") for n in range(5)])
    stored.add_failures(store, two, [("https://a.test/", "refused"), ("https://b.test/", "refused")], fence=20_000)
    _silent(store, two.n, "silent.test", 4)
    assert len(walk(client, "/v1/failures", 2)) == 11
    assert [one["cause"] for one in walk(client, "/v1/failures?host=silent.test", 1)] == ["host_unreachable"] * 4
    assert [one["url"] for one in walk(client, f"/v1/crawls/{one.id}/failures?since=2023-11-14T22:13:23Z")] == [
        "https://a.test/3",
        "https://a.test/4",
    ]
    assert {letter["crawl"] for letter in walk(client, f"/v1/failures?crawl={two.id}&cause=refused")} == {two.id}
    assert walk(client, "/v1/failures?stage=extract") == []
    groups = client.get("/v1/failures/groups?by=cause").get_json()["groups"]
    assert [(group["cause"], group["dead_letters"]) for group in groups] == [
        ("timeout", 5), ("host_unreachable", 4), ("refused", 2),
    ]  # fmt: skip
    assert groups[0]["host"] is None
    both = client.get("/v1/failures/groups?by=host,stage&cause=refused").get_json()["groups"]
    assert [(g["host"], g["stage"], g["dead_letters"]) for g in both] == [
        ("a.test", "fetch", 1),
        ("b.test", "fetch", 1),
    ]
    assert client.get("/v1/failures/groups?by=colour").status_code == 422


def _silent(store: Store, crawl: int, host: str, n: int) -> None:
    """Open URLs of a host that is dead for its crawl."""
    from curtsy.core.model import NewUrl

    def write(tx: Any) -> None:
        queues.open_queues(tx, [(crawl, host, "batch", n)])
        made = [f"https://{host}/{i}" for i in range(n)]
        urls.insert(tx, [NewUrl(crawl=crawl, fp=fingerprint(url), url=url, host=host) for url in made], 1)
        queues.mark_dead(tx, crawl, host, "host_unreachable")

    store.run(write)


def test_a_replay_puts_its_queues_on_the_bench_at_once(client: FlaskClient, store: Store, app: Flask) -> None:
    crawl = stored.crawl(store)
    stored.add_failures(store, crawl, [(f"https://a.test/{n}", "timeout") for n in range(3)])
    stored.add_failures(store, crawl, [("https://b.test/", "refused")], fence=20_000)
    wish = {"crawl": crawl.id, "cause": "timeout", "since": "2023-11-14", "limit": 2}
    dry = client.post("/v1/failures/replay", json=wish | {"dry_run": True}).get_json()
    assert dry == {"dead_letters": 2, "crawls": [crawl.id], "of_cancelled_crawls": 0, "dry_run": True}
    assert client.get(f"/v1/crawls/{crawl.id}").get_json()["state"] == "finished"
    assert client.post("/v1/failures/replay", json=wish).get_json()["dead_letters"] == 2
    assert client.get(f"/v1/crawls/{crawl.id}").get_json()["state"] == "interrupted"  # no process crawls here
    bridge = app.extensions["curtsy"]
    shard = bridge.services.frontier.shards[0]
    assert bridge.wait(shard.command("ZCARD", "%due:batch")) == 1
    assert [one["replayed"] for one in walk(client, "/v1/failures?replayed=true")].count(None) == 2
    # The rest, by the other name of its cause.
    assert client.post("/v1/failures/replay", json={"error": "refused"}).get_json()["dead_letters"] == 1
    assert client.post("/v1/failures/replay", json={"crawl": "0123"}).status_code == 404
    assert client.post("/v1/failures/replay", json={"since": "yesterday"}).status_code == 422
    assert client.post("/v1/failures/replay", json={"ids": []}).status_code == 422  # none chosen is not all


def test_a_replay_leaves_cancelled_crawls_alone(client: FlaskClient, store: Store) -> None:
    crawl = stored.crawl(store, CrawlState.CANCELLED)
    stored.add_failures(store, crawl, [("https://a.test/", "timeout")])
    done = client.post("/v1/failures/replay", json={}).get_json()
    assert (done["dead_letters"], done["of_cancelled_crawls"]) == (0, 1)


def test_a_host_says_when_it_may_be_asked_and_why(client: FlaskClient, store: Store) -> None:
    id = client.post("/v1/crawls", json={"seeds": ["https://a.test/"], "delay_s": 3}).get_json()["id"]
    rules = RobotsState(origin="https://a.test", host="a.test", fetched_ms=stored.BEGUN_MS, expires_ms=0, status=200)
    store.run(hosts.upsert, [HostState(host="a.test", robots_delay_ms=7000, failures=2)])
    store.run(hosts.upsert_robots, [rules])
    told = client.post("/v1/hosts/a.test/delay", json={"delay_s": 9.5, "per_host": 1}).get_json()
    assert told["delay"] == {
        "in_force_s": 9.5, "source": "operator", "operator_s": 9.5, "robots_s": 7.0, "adaptive_s": None,
    }  # fmt: skip
    assert (told["failures"], told["per_host"], told["under_way"]) == (2, 1, 0)
    assert told["robots"][0]["verdict"] == "rules"
    assert [queue["crawl"] for queue in told["queues"]] == [id]
    told = client.post("/v1/hosts/a.test/block", json={"seconds": 600}).get_json()
    assert told["blocked_until"]
    assert any("unblock" in sentence for sentence in told["why"])
    assert client.post("/v1/hosts/a.test/unblock").get_json()["blocked_until"] is None
    assert client.post("/v1/hosts/a.test/deny").get_json()["denied"]
    assert [one["host"] for one in walk(client, "/v1/hosts?notable=true")] == ["a.test"]
    assert not client.post("/v1/hosts/a.test/allow").get_json()["denied"]
    assert client.get("/v1/hosts/A.test").get_json()["delay"]["in_force_s"] == 9.5
    assert client.get("/v1/hosts/never.test").status_code == 404
    assert client.post("/v1/hosts/*.test/deny").status_code == 422
    assert client.post("/v1/hosts/a.test/block", json={"seconds": -1}).status_code == 422


def test_a_host_is_meant_without_the_port_that_urls_lose(client: FlaskClient) -> None:
    told = client.post("/v1/hosts/a.test:80/deny").get_json()
    assert (told["host"], told["denied"]) == ("a.test", True)
    assert client.post("/v1/hosts/a.test:443/delay", json={"delay_s": 9}).get_json()["host"] == "a.test"
    assert client.get("/v1/explain?host=a.test:80").get_json()["host"] == "a.test"
    assert [one["host"] for one in walk(client, "/v1/hosts")] == ["a.test"]


def test_unless_crawls_know_only_a_host_that_is_really_called_so(client: FlaskClient) -> None:
    client.post("/v1/crawls", json={"seeds": ["https://a.test:80/", "https://b.test:80/", "http://b.test:80/"]})
    assert client.post("/v1/hosts/a.test:80/deny").get_json()["host"] == "a.test:80"
    assert client.post("/v1/hosts/b.test:80/deny").get_json()["host"] == "b.test"


def test_explain_says_where_a_url_is(client: FlaskClient, store: Store) -> None:
    id = client.post("/v1/crawls", json={"seeds": [f"https://a.test/{n}" for n in range(4)]}).get_json()["id"]
    client.post("/v1/hosts/a.test/block", json={"seconds": 600})
    told = client.get(f"/v1/explain?url=https://a.test/2&crawl={id}").get_json()
    assert (told["crawl"], told["state"], told["dead_letter"]) == (id, "open", None)
    assert told["frontier"]["queued_behind"] == 2
    assert told["frontier"]["host_blocked_until"]
    assert any("2 other URLs of its queue precede it" in sentence for sentence in told["why"])
    of_host = client.get("/v1/explain?host=a.test").get_json()
    assert of_host["frontier"]["host_blocked_until"]
    assert of_host["queues"][0]["crawl"] == id
    assert client.get("/v1/explain?host=never.test").get_json()["why"] == ["No crawl has seen the host never.test."]
    for wrong in ("", "?url=https://a.test/&host=a.test", "?url=ftp://a.test/", "?url=nothing"):
        assert client.get(f"/v1/explain{wrong}").status_code == 422, wrong
    assert client.get("/v1/explain?url=https://a.test/&crawl=0123").status_code == 404


def test_explain_names_the_dead_letter(client: FlaskClient, store: Store) -> None:
    crawl = stored.crawl(store)
    (letter,) = stored.add_failures(store, crawl, [("https://a.test/", "timeout")])
    told = client.get("/v1/explain?url=https://a.test/").get_json()
    assert (told["state"], told["reason"], told["dead_letter"]) == ("failed", "timeout", letter.id)
    with store.read() as tx:
        assert crawls.ids(tx, [crawl.n]) == {crawl.n: crawl.id}


def test_pages_come_with_their_text_markdown_and_html(client: FlaskClient, store: Store, settings: Settings) -> None:
    body = b"<!doctype html><title>T</title><nav>Menu</nav><h1>Geese</h1><p>They <b>fly</b>.</p><script>x()</script>"
    crawl = stored.crawl(store)
    (page,) = stored.add_pages(store, stored.folder_of(settings), crawl, [("https://a.test/", body)])
    (plain,) = walk(client, f"/v1/crawls/{crawl.id}/pages")
    assert (plain["text"], plain["markdown"], plain["html"]) == (None, None, None)
    (item,) = walk(client, f"/v1/crawls/{crawl.id}/pages?content=markdown,html")
    assert (item["text"], "They **fly**." in item["markdown"], item["html"]) == (None, True, body.decode())
    assert client.get(f"/v1/crawls/{crawl.id}/pages?content=words").status_code == 422
    for name, kind, said in (("text", "text/plain", "They fly."), ("markdown", "text/markdown", "They **fly**.")):
        answer = client.get(f"/v1/pages/{page.id}/{name}")
        assert (answer.status_code, answer.content_type) == (200, f"{kind}; charset=utf-8")
        assert answer.headers["Content-Disposition"].startswith("attachment")
        assert said in answer.get_data(as_text=True)
    assert client.get("/v1/pages/1-" + "0" * 32 + "/text").status_code == 404


def test_a_list_with_content_is_short(client: FlaskClient, store: Store, settings: Settings) -> None:
    crawl = stored.crawl(store)
    found = [(f"https://a.test/{n}", b"<!doctype html><p>%d" % n) for n in range(25)]
    stored.add_pages(store, stored.folder_of(settings), crawl, found)
    answer = client.get(f"/v1/crawls/{crawl.id}/pages?content=text&limit=1000").get_json()
    assert len(answer["items"]) == 20
    assert sorted(
        one["text"].strip() for one in walk(client, f"/v1/crawls/{crawl.id}/pages?content=text", 7)
    ) == sorted(map(str, range(25)))
