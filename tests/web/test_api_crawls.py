"""Crawls over HTTP: made, looked at, paused, resumed, cancelled, followed."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from waiting import wait_for

from curtsy.control import uploads
from curtsy.core.claims import Usage
from curtsy.core.errors import Unavailable
from curtsy.core.model import CrawlState
from curtsy.core.settings import Settings
from curtsy.extract.budget import Topic
from curtsy.records.crawl_model import StoredBudget
from curtsy.store import crawls, idempotency
from curtsy.store.engine import Store
from curtsy.web import events

NDJSON = "application/x-ndjson"
SEEDS = ["https://a.test/", "https://a.test/b", "https://b.test/"]


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


def post(client: FlaskClient, seeds: list[str], key: str | None = None, **wish: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post("/v1/crawls", json={"seeds": seeds, **wish}, headers=headers)


def upload(client: FlaskClient, body: bytes, key: str | None = None, **options: Any) -> Any:
    headers = {"Idempotency-Key": key} if key else {}
    return client.post("/v1/crawls", data=body, content_type=NDJSON, headers=headers, **options)


def lines(*seeds: Any, **wish: Any) -> bytes:
    return "\n".join(json.dumps(line) for line in (wish, *seeds)).encode()


def test_a_crawl_is_stored_and_listed_in_the_frontier(client: FlaskClient, app: Flask) -> None:
    answer = client.post(
        "/v1/crawls", json={"seeds": SEEDS, "lane": "high", "max_pages": 7}, headers={"X-Request-Id": "mine"}
    )
    assert answer.status_code == 202
    assert answer.get_json()["request_id"] == "mine"
    status = client.get(f"/v1/crawls/{answer.get_json()['id']}").get_json()
    assert (status["state"], status["lane"], status["request_id"]) == ("running", "high", "mine")
    assert status["counts"] == {
        "pages": 0, "done": 0, "pending": 3, "pending_render": 0, "skipped": {}, "failed": {},
        "failed_stages": {},
    }  # fmt: skip
    assert status["options"]["max_pages"] == 7
    assert status["estimated_end"] is None
    bridge = app.extensions["curtsy"]
    bridge.listing()[1]()
    depth = bridge.wait(bridge.services.frontier.shards[0].command("ZCARD", "%due:high"))
    assert depth == 2


def test_crawls_are_listed_newest_first_in_pages(client: FlaskClient) -> None:
    made = [post(client, [f"https://h{i}.test/"]).get_json()["id"] for i in range(5)]
    found: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"/v1/crawls?limit=2{cursor}").get_json()
        assert len(page["items"]) <= 2
        found += [one["id"] for one in page["items"]]
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert found == made[::-1]
    client.post(f"/v1/crawls/{made[2]}/cancel")
    assert [one["id"] for one in client.get("/v1/crawls?state=cancelled").get_json()["items"]] == [made[2]]


def test_pause_resume_and_cancel_hold_in_store_and_frontier(client: FlaskClient, app: Flask) -> None:
    id = post(client, SEEDS).get_json()["id"]
    bridge = app.extensions["curtsy"]

    def in_frontier() -> bytes:
        with bridge.store.read() as tx:
            n = crawls.get(tx, id).n
        state: bytes = bridge.wait(bridge.services.frontier.shards[0].command("HGET", f"%crawl:{n}", "st"))
        return state

    assert in_frontier() == b"running"
    for verb, state in (("pause", "paused"), ("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
        answer = client.post(f"/v1/crawls/{id}/{verb}")
        assert (answer.status_code, answer.get_json()["state"]) == (200, state)
        assert in_frontier() == state.encode()
    answer = client.post(f"/v1/crawls/{id}/resume")
    assert (answer.status_code, answer.get_json()["type"]) == (409, "urn:curtsy:problem:wrong-state")
    assert answer.get_json()["detail"].endswith("is cancelled. Only a crawl that is paused can be resumed.")
    assert client.get(f"/v1/crawls/{id}").get_json()["counts"]["skipped"] == {"cancelled": 3}


def test_a_frontier_that_was_flushed_is_rebuilt_by_the_next_request(client: FlaskClient, app: Flask) -> None:
    first = post(client, SEEDS).get_json()["id"]
    bridge = app.extensions["curtsy"]
    bridge.wait(bridge.services.frontier.shards[0].command("FLUSHALL"))
    assert client.post(f"/v1/crawls/{first}/pause").status_code == 200
    assert client.post(f"/v1/crawls/{first}/resume").status_code == 200
    assert post(client, ["https://c.test/"]).status_code == 202
    assert bridge.wait(bridge.services.frontier.shards[0].command("ZCARD", "%due:batch")) == 3


def test_seeds_that_cannot_be_crawled_are_named_and_nothing_is_stored(client: FlaskClient) -> None:
    hosts = ["127.0.0.1", "0x7f000001", "2130706433", "017700000001", "[::ffff:10.0.0.1]", "[64:ff9b::7f00:1]"]
    bad = ["ftp://a.test/", "nonsense", "http://169.254.169.254/", *(f"http://{host}/" for host in hosts)]
    answer = post(client, ["https://fine.test/", *bad])
    assert (answer.status_code, answer.get_json()["type"]) == (422, "urn:curtsy:problem:refused-seeds")
    assert [wrong["where"] for wrong in answer.get_json()["errors"]] == [f"body.seeds.{i}" for i in range(1, 10)]
    assert client.get("/v1/crawls").get_json()["items"] == []
    assert len(post(client, ["ftp://a.test/"] * 50).get_json()["errors"]) == 20


def test_pages_are_rendered_only_where_the_settings_list_the_renderer(apps: Callable[..., Flask]) -> None:
    refused = post(apps().test_client(), SEEDS, render="auto")
    assert (refused.status_code, refused.get_json()["errors"][0]["where"]) == (422, "body.render")
    client = apps(api_renderers=("playwright",)).test_client()
    made = post(client, SEEDS, render="auto")
    assert made.status_code == 202
    assert client.get(f"/v1/crawls/{made.get_json()['id']}").get_json()["options"]["render"] == "auto"
    assert post(client, SEEDS, render="sometimes").status_code == 422


def test_the_same_key_and_body_give_the_same_crawl(client: FlaskClient) -> None:
    first = post(client, SEEDS, "key-1")
    again = post(client, SEEDS, "key-1")
    assert first.get_json()["id"] == again.get_json()["id"]
    assert post(client, SEEDS, "key-2").get_json()["id"] != first.get_json()["id"]
    for other in (post(client, SEEDS[:2], "key-1"), post(client, SEEDS, "key-1", max_pages=1)):
        assert (other.status_code, other.get_json()["type"]) == (422, "urn:curtsy:problem:idempotency-key-reused")
    assert client.get(f"/v1/crawls/{first.get_json()['id']}").get_json()["counts"]["pending"] == 3


def test_a_key_of_a_refused_body_is_free_again(client: FlaskClient) -> None:
    assert post(client, ["nonsense"], "key").status_code == 422
    assert upload(client, lines("nonsense"), "key").status_code == 422
    assert post(client, SEEDS, "key").status_code == 202


@pytest.mark.parametrize("key", ["", "a b", "x" * 256])
def test_a_key_that_cannot_be_one_is_refused(client: FlaskClient, key: str) -> None:
    headers = {"Idempotency-Key": key}
    assert client.post("/v1/crawls", json={"seeds": SEEDS}, headers=headers).status_code == 422


def test_seeds_come_as_ndjson(client: FlaskClient) -> None:
    body = lines("https://a.test/", {"url": "https://b.test/"}, "https://b.test/ä", scope="domain", max_pages=5)
    answer = upload(client, body + b"\n")
    assert answer.status_code == 202
    status = client.get(f"/v1/crawls/{answer.get_json()['id']}").get_json()
    assert (status["state"], status["scope"], status["counts"]["pending"]) == ("running", "domain", 3)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (b"", "invalid-request"),
        (b"{}", "invalid-request"),
        (b"{}\n", "invalid-request"),
        (b'{"seeds": ["https://a.test/"]}\n"https://a.test/"', "invalid-request"),
        (b'"https://a.test/"\n', "invalid-request"),
        (b'{}\n"https://a.test/"\nnonsense', "refused-seeds"),
        (b'{}\n"https://a.test/"\n5', "refused-seeds"),
        (b'{}\n"https://a.test/"\n\n"https://b.test/"', "refused-seeds"),
        (b'{}\n{"url": "https://a.test/", "depth": 3}', "refused-seeds"),
        (b'{}\n"\xff"', "refused-seeds"),
        (b'{}\n"ftp://a.test/"', "refused-seeds"),
        (b'{"allow_private": ["10.0.0.0/8"]}\n"https://a.test/"', "invalid-request"),
    ],
)
def test_ndjson_that_is_no_crawl_is_refused(client: FlaskClient, body: bytes, name: str) -> None:
    answer = upload(client, body)
    assert (answer.status_code, answer.get_json()["type"]) == (422, f"urn:curtsy:problem:{name}")
    assert client.get("/v1/crawls").get_json()["items"] == []


class Breaking:
    """A body that breaks off."""

    def __init__(self, body: bytes) -> None:
        self._left = body

    def read(self, n: int = -1) -> bytes:
        if not self._left:
            raise ConnectionResetError("gone")
        found, self._left = self._left[:n], self._left[n:]
        return found

    readline = tell = seek = read


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from curtsy.web import ndjson

    monkeypatch.setattr(uploads, "PART", 4)
    monkeypatch.setattr(ndjson, "PART", 4)


def break_off(client: FlaskClient, body: bytes, key: str | None = None) -> Any:
    """Send a body that ends early, as a server does that knows where bodies end."""
    headers = {"Idempotency-Key": key} if key else {}
    environ = {"wsgi.input": Breaking(body), "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    return client.post("/v1/crawls", content_type=NDJSON, headers=headers, environ_overrides=environ)


MANY = [f"https://h{i % 3}.test/{i}" for i in range(18)]


@pytest.mark.usefixtures("small_parts")
def test_a_broken_upload_continues_under_the_same_key(client: FlaskClient, store: Store) -> None:
    body = lines(*MANY)
    answer = break_off(client, body[: len(body) * 2 // 3], "key")
    assert (answer.status_code, answer.get_json()["type"]) == (400, "urn:curtsy:problem:upload-broken")
    with store.read() as tx:
        (begun,) = crawls.list_all(tx)
        stored = crawls.counts(tx, begun.n).pending
    assert begun.state is CrawlState.LOADING
    assert 0 < stored < 18
    other = upload(client, lines(*MANY[1:]), "key")
    assert (other.status_code, other.get_json()["type"]) == (422, "urn:curtsy:problem:idempotency-key-reused")
    assert upload(client, lines(*MANY, max_pages=3), "key").status_code == 422
    again = upload(client, body, "key")
    assert (again.status_code, again.get_json()["id"]) == (202, begun.id)
    status = client.get(f"/v1/crawls/{begun.id}").get_json()
    assert (status["state"], status["counts"]["pending"]) == ("running", 18)
    assert upload(client, body, "key").get_json()["id"] == begun.id
    assert upload(client, lines(*MANY, "https://more.test/"), "key").status_code == 422
    assert upload(client, lines(*MANY[:-1]), "key").status_code == 422
    assert len(client.get("/v1/crawls").get_json()["items"]) == 1


@pytest.mark.usefixtures("small_parts")
def test_a_broken_upload_without_a_key_is_cancelled(client: FlaskClient) -> None:
    body = lines(*MANY)
    assert break_off(client, body[: len(body) * 2 // 3]).status_code == 400
    (found,) = client.get("/v1/crawls").get_json()["items"]
    assert (found["state"], found["reason"]) == ("cancelled", "upload_incomplete")


@pytest.mark.usefixtures("small_parts")
def test_a_bad_seed_far_down_ends_an_upload_without_a_key(client: FlaskClient) -> None:
    answer = upload(client, lines(*MANY, "nonsense"))
    assert answer.get_json()["errors"][0]["where"] == "line 20"
    (found,) = client.get("/v1/crawls").get_json()["items"]
    assert (found["state"], found["reason"]) == ("cancelled", "upload_incomplete")


@pytest.mark.usefixtures("small_parts")
def test_an_upload_that_was_given_up_does_not_continue(client: FlaskClient, store: Store) -> None:
    body = lines(*MANY)
    break_off(client, body[: len(body) * 2 // 3], "key")
    with store.read() as tx:
        (begun,) = crawls.list_all(tx)
    store.run(crawls.set_state, begun.n, CrawlState.CANCELLED, "upload_incomplete", 1)
    answer = upload(client, body, "key")
    assert (answer.status_code, answer.get_json()["type"]) == (409, "urn:curtsy:problem:wrong-state")


@pytest.mark.usefixtures("small_parts")
def test_while_one_request_sends_an_upload_another_must_wait(client: FlaskClient, store: Store) -> None:
    body = lines(*MANY)
    break_off(client, body[: len(body) * 2 // 3], "key")
    with store.read() as tx:
        (begun,) = crawls.list_all(tx)
    now_ms = int(time.time() * 1000)
    wishes = uploads.digest_of(b"{}")
    held = store.run(idempotency.take, "local", "key", crawl=begun.id, wishes=wishes, holder="another", now_ms=now_ms)
    assert held.holder == "another"
    answer = upload(client, body, "key")
    assert (answer.status_code, answer.get_json()["type"]) == (409, "urn:curtsy:problem:upload-under-way")
    assert int(answer.headers["Retry-After"]) > 0
    store.run(idempotency.release, "local", "key", "another")
    assert upload(client, body, "key").status_code == 202


def test_two_requests_with_one_key_make_one_crawl(app: Flask) -> None:
    answers: list[Any] = []

    def send() -> None:
        answers.append(post(app.test_client(), SEEDS, "key"))

    threads = [threading.Thread(target=send) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {answer.status_code for answer in answers} <= {202, 409}
    assert len({answer.get_json()["id"] for answer in answers if answer.status_code == 202}) == 1
    assert len(app.test_client().get("/v1/crawls").get_json()["items"]) == 1


def test_an_upload_over_the_limit_is_refused(apps: Callable[..., Flask]) -> None:
    client = apps(api_upload_mb=0.001).test_client()
    answer = upload(client, lines(*[f"https://a.test/{i}" for i in range(100)]))
    assert (answer.status_code, answer.get_json()["type"]) == (413, "urn:curtsy:problem:body-too-large")


def told(chunks: Iterator[bytes]) -> dict[str, Any]:
    """The next event of a stream."""
    while True:
        chunk = next(chunks).decode()
        if chunk.startswith("event:"):
            fields = dict(line.split(": ", 1) for line in chunk.strip().splitlines())
            return {"event": fields["event"], "id": fields["id"], "data": json.loads(fields["data"])}


def test_a_crawl_can_be_followed_until_its_end(client: FlaskClient, store: Store) -> None:
    id = post(client, SEEDS).get_json()["id"]
    answer = client.get(f"/v1/crawls/{id}/events", buffered=False)
    assert answer.content_type == "text/event-stream"
    chunks = iter(answer.response)
    first = told(chunks)
    assert (first["event"], first["data"]["state"], first["data"]["id"]) == ("state", "running", id)
    with store.read() as tx:
        n = crawls.get(tx, id).n
    store.run(crawls.add_counts, {(n, "skipped", "robots"): 1})
    second = told(chunks)
    # It has begun, and no process crawls here.
    assert (second["event"], second["data"]["state"]) == ("state", "interrupted")
    assert second["data"]["counts"]["skipped"] == {"robots": 1}
    store.run(crawls.add_counts, {(n, "skipped", "robots"): 1})
    third = told(chunks)
    assert (third["event"], third["data"]["counts"]["skipped"]) == ("progress", {"robots": 2})
    client.post(f"/v1/crawls/{id}/cancel")
    assert told(chunks)["data"]["state"] == "cancelled"
    assert list(chunks) == []
    answer.close()


def test_an_event_that_the_client_has_is_not_sent_again(client: FlaskClient) -> None:
    id = post(client, SEEDS).get_json()["id"]
    with client.get(f"/v1/crawls/{id}/events", buffered=False) as answer:
        first = told(iter(answer.response))
    headers = {"Last-Event-ID": first["id"]}
    with client.get(f"/v1/crawls/{id}/events", buffered=False, headers=headers) as answer:
        chunks = iter(answer.response)
        assert next(chunks).startswith(b"retry")
        client.post(f"/v1/crawls/{id}/pause")
        assert told(chunks)["data"]["state"] == "paused"


def test_over_the_limit_of_streams_clients_are_asked_to_poll(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "MOST_STREAMS", 2)
    id = post(client, SEEDS).get_json()["id"]
    open_ones = [client.get(f"/v1/crawls/{id}/events", buffered=False) for _ in range(2)]
    answer = client.get(f"/v1/crawls/{id}/events")
    assert (answer.status_code, answer.get_json()["type"]) == (503, "urn:curtsy:problem:too-many-streams")
    assert int(answer.headers["Retry-After"]) > 0
    open_ones[0].close()
    with client.head(f"/v1/crawls/{id}/events") as head:
        assert head.status_code == 200
    with client.get(f"/v1/crawls/{id}/events", buffered=False) as again:
        assert again.status_code == 200
    open_ones[1].close()


def test_a_stream_ends_after_its_time(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STREAM_S", 0.05)
    id = post(client, SEEDS).get_json()["id"]
    answer = client.get(f"/v1/crawls/{id}/events")
    assert answer.status_code == 200
    assert answer.data.startswith(b"retry: 2000\n\n")


def test_an_ending_process_reads_nothing_more(app: Flask, monkeypatch: pytest.MonkeyPatch) -> None:
    client, bridge = app.test_client(), app.extensions["curtsy"]
    id = post(client, SEEDS).get_json()["id"]
    looking, looked = threading.Event(), threading.Event()
    look = events.Events._query

    def slowly(self: events.Events, wanted: Any) -> Any:
        with bridge.store.read():
            looking.set()
            self.wait_closed(60)
            found = look(self, wanted)
        looked.set()
        return found

    monkeypatch.setattr(events.Events, "_query", slowly)
    with client.get(f"/v1/crawls/{id}/events", buffered=False):
        assert looking.wait(60)
        bridge.close()
    assert looked.is_set(), "the store is closed when its readers have read"
    with pytest.raises(Unavailable, match="shutting down"):
        _ = bridge.store


def test_readiness_names_the_part_that_is_unavailable(apps: Callable[..., Flask], client: FlaskClient) -> None:
    assert client.get("/readyz").get_json() == {
        "ready": True,
        "parts": {
            "store": "ok",
            "frontier": "ok",
            "broker": "ok",
            "beat": "Beat (curtsy beat) has not run in the last hour",
        },
    }
    away = apps(frontier_url="redis://127.0.0.1:1/0").test_client()
    answer = away.get("/readyz")
    assert answer.status_code == 503
    parts = answer.get_json()["parts"]
    assert parts["store"] == "ok"
    assert parts["frontier"].startswith("does not answer")
    assert away.get("/healthz").status_code == 200


def test_a_broker_that_is_unavailable_makes_it_not_ready(apps: Callable[..., Flask]) -> None:
    away = apps(broker_url="amqp://user:hunter2@127.0.0.1:1//").test_client()

    def parts() -> dict[str, str]:
        answer = away.get("/readyz")
        assert answer.status_code == 503
        return dict(answer.get_json()["parts"])

    # Beside other tests the first connection to the frontier may take longer than the check waits.
    wait_for(lambda: parts()["frontier"] == "ok" or None)
    assert parts() | {"beat": ""} == {"store": "ok", "frontier": "ok", "broker": "does not answer", "beat": ""}


def test_readiness_covers_the_object_store(apps: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_REGION", "here")
    monkeypatch.setenv("AWS_ALLOW_HTTP", "true")
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        monkeypatch.setenv("AWS_ENDPOINT", f"http://127.0.0.1:{probe.getsockname()[1]}")
    answer = apps(segments_url="s3://gone/x").test_client().get("/readyz")
    assert answer.status_code == 503
    assert answer.get_json()["parts"]["segments"].startswith("does not answer")


def test_an_object_store_that_answers_is_ready(apps: Callable[..., Flask], tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    answer = apps(segments_url=f"file://{tmp_path}/objects").test_client().get("/readyz")
    assert (answer.status_code, answer.get_json()["parts"]["segments"]) == (200, "ok")


def test_without_beat_explain_and_the_dashboard_say_so(client: FlaskClient) -> None:
    id = post(client, SEEDS).get_json()["id"]
    missing = "No work starts: Beat (curtsy beat) has not run in the last hour"
    for query in ({"url": SEEDS[0]}, {"host": "a.test"}):
        why = client.get("/v1/explain", query_string=query).get_json()["why"]
        assert f"{missing}. Start it with: curtsy beat" in why
    for path in ("/", "/workers"):
        assert missing in client.get(path).text
    fields = client.get("/metrics").text
    assert "curtsy_beat_age_seconds 3600" in fields
    assert client.get(f"/v1/crawls/{id}").get_json()["urls_per_s"] == 0


def test_without_a_frontier_crawls_are_stored_all_the_same(apps: Callable[..., Flask]) -> None:
    client = apps(frontier_url="redis://127.0.0.1:1/0").test_client()
    id = post(client, SEEDS).get_json()["id"]
    assert client.post(f"/v1/crawls/{id}/pause").get_json()["state"] == "paused"


def test_metrics_are_those_of_the_fleet(client: FlaskClient) -> None:
    id = post(client, SEEDS).get_json()["id"]
    client.get(f"/v1/crawls/{id}")
    text = client.get("/metrics").text
    assert "# TYPE curtsy_api_seconds histogram" in text
    assert 'curtsy_api_seconds_count{route="/v1/crawls/<id>",status="200"}' in text
    assert 'curtsy_queue_depth{lane="batch"} 2' in text
    assert "curtsy_running_crawls 1" in text


def test_the_use_of_a_model_is_shown_by_crawl_schema_and_field(store: Store, client: FlaskClient) -> None:
    id = post(client, SEEDS, schema="organization").get_json()["id"]
    assert client.get(f"/v1/crawls/{id}").get_json()["llm"] is None
    budget = StoredBudget(store, 1, Settings())
    used = Usage(calls=1, prompt_tokens=900, completion_tokens=100, cost=0.02)
    budget.settle(Usage(), used, Topic("organization", ("/name", "/contact/email")))
    budget.settle(Usage(), used, Topic("organization", ("/name",)))
    budget.settle(Usage(), Usage(cached=1), Topic("organization", ("/name",)))
    known = client.get(f"/v1/crawls/{id}").get_json()["llm"]
    assert (known["calls"], known["cached"], known["prompt_tokens"], known["cost"]) == (2, 1, 1800, 0.04)
    assert known["fields"] == [
        {"schema": "organization", "field": "/name", "calls": 2, "cached": 1, "prompt_tokens": 1350.0,
         "completion_tokens": 150.0, "cost": 0.03},
        {"schema": "organization", "field": "/contact/email", "calls": 1, "cached": 0, "prompt_tokens": 450.0,
         "completion_tokens": 50.0, "cost": 0.01},
    ]  # fmt: skip
    shown = client.get(f"/crawls/{id}").text
    assert "Language model" in shown
    assert "/contact/email" in shown
    text = client.get("/metrics").text
    labels = f'crawl="{id}",field="/name"'
    assert f'curtsy_llm_calls_total{{{labels},schema="organization"}} 2' in text
    assert f'curtsy_llm_tokens_total{{{labels},kind="prompt",schema="organization"}} 1350' in text
    assert f'curtsy_llm_cost_total{{{labels},schema="organization"}} 0.03' in text


def test_pages_that_wait_for_a_browser_are_reported(apps: Callable[..., Flask]) -> None:
    """By the crawl's counts, on its page, and by the queues of lane render."""
    app = apps(api_renderers=("playwright",))
    client = app.test_client()
    post(client, ["https://c.test/"])
    id = post(client, SEEDS, render="always").get_json()["id"]
    counts = client.get(f"/v1/crawls/{id}").get_json()["counts"]
    assert (counts["pending"], counts["pending_render"]) == (3, 3)
    assert "3 wait for a browser" in client.get(f"/crawls/{id}").text
    app.extensions["curtsy"].listing()[1]()
    text = client.get("/metrics").text
    assert 'curtsy_queue_depth{lane="render"} 2' in text
    assert 'curtsy_queue_depth{lane="batch"} 3' in text, "they are queues of their crawl's lane too"
    client.post(f"/v1/crawls/{id}/cancel")
    assert client.get(f"/v1/crawls/{id}").get_json()["counts"]["pending_render"] == 0
    assert 'curtsy_queue_depth{lane="render"} 0' in client.get("/metrics").text


def test_the_rate_is_that_of_the_last_minute(store: Store, client: FlaskClient) -> None:
    from curtsy.control import crawls as control
    from curtsy.core.model import Page
    from curtsy.rules.urls import fingerprint
    from curtsy.store import pages

    id = post(client, [f"https://a.test/{i}" for i in range(100)]).get_json()["id"]
    with store.read() as tx:
        crawl = replace(crawls.get(tx, id), started_ms=1)
    now_ms = 10_000_000
    rows = [
        Page(
            id="", crawl=crawl.n, fp=fingerprint(f"https://a.test/{i}"), url=f"https://a.test/{i}", host="a.test",
            status=200, fetched_ms=now_ms - i * 1000, depth=0,
        )
        for i in reversed(range(90))
    ]  # fmt: skip
    store.run(pages.insert, rows)
    with store.read() as tx:
        status = control.status_in(tx, crawl, now_ms)
    assert status.pages_per_s == pytest.approx(1.0, rel=0.05)
    assert status.ends_ms == pytest.approx(now_ms + 100_000, rel=0.05)
