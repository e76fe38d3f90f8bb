"""The audit log: changes over the API and the dashboard, and refused requests."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from flask import Flask
from flask.testing import FlaskClient

from curtsy.control import retention
from curtsy.store import audit_log, keys
from curtsy.store.engine import Store
from curtsy.web import auth

SEED = {"seeds": ["https://a.test/"]}


@pytest.fixture
def outside(apps: Callable[..., Flask]) -> FlaskClient:
    """Of a server behind a proxy."""
    return apps(host="0.0.0.0", api_proxies=("127.0.0.1",)).test_client()


def store_of(client: FlaskClient) -> Store:
    store: Store = client.application.extensions["curtsy"].store
    return store


def made(client: FlaskClient, *scopes: str) -> tuple[str, dict[str, str]]:
    """(id of a key, headers with it from some client)"""
    secret, key = auth.new_key("test", scopes, int(time.time() * 1000), None)
    store_of(client).run(keys.create, key)
    return key.id, {"Authorization": f"Bearer {secret}", "X-Forwarded-For": "203.0.113.9", "X-Request-Id": "mine"}


def test_a_change_is_written_with_key_address_request_and_crawl(outside: FlaskClient) -> None:
    id, headers = made(outside, "admin")
    crawl = outside.post("/v1/crawls", json=SEED, headers=headers).get_json()["id"]
    assert outside.post(f"/v1/crawls/{crawl}/pause", headers=headers).status_code == 200
    assert outside.get(f"/v1/crawls/{crawl}", headers=headers).status_code == 200
    assert outside.post("/v1/hosts/a.test/block", json={"seconds": 9}, headers=headers).status_code == 200
    found = outside.get("/v1/audit", headers=headers).get_json()["items"]
    assert [(one["method"], one["path"], one["status"], one["crawl"]) for one in found] == [
        ("POST", "/v1/hosts/a.test/block", 200, None),
        ("POST", f"/v1/crawls/{crawl}/pause", 200, crawl),
        ("POST", "/v1/crawls", 202, crawl),
    ]
    assert {(one["key_id"], one["address"], one["request_id"]) for one in found} == {(id, "203.0.113.9", "mine")}
    about = outside.get("/v1/audit", query_string={"crawl": crawl, "key": id, "limit": 1}, headers=headers).get_json()
    assert about["items"] == found[1:2]
    more = outside.get("/v1/audit", query_string={"crawl": crawl, "cursor": about["next"]}, headers=headers)
    assert more.get_json()["items"] == found[2:]


def test_refused_keys_are_written_with_their_address_but_not_without_end(outside: FlaskClient) -> None:
    wrong = {"Authorization": "Bearer curtsy_000000000000_" + "x" * 43, "X-Forwarded-For": "203.0.113.66"}
    for _ in range(50):
        assert outside.get("/v1/crawls", headers=wrong).status_code == 401
    _, reading = made(outside, "read")
    assert outside.post("/v1/crawls", json=SEED, headers=reading).status_code == 403
    with store_of(outside).read() as tx:
        found = audit_log.chunk(tx, 100)
    refused = [entry for entry in found if entry.address == "203.0.113.66"]
    assert 1 <= len(refused) <= 21
    assert (refused[0].status, refused[0].key_id, refused[0].path) == (401, None, "/v1/crawls")
    assert (found[0].status, found[0].address) == (403, "203.0.113.9")
    assert outside.get("/v1/audit", headers=reading).status_code == 403


def test_the_dashboard_shows_it_and_writes_to_it(client: FlaskClient) -> None:
    id = client.post("/v1/crawls", json=SEED).get_json()["id"]
    page = client.get("/audit").text
    assert "POST /v1/crawls" in page
    assert f"/crawls/{id}" in page
    assert client.get("/audit?key=000000000000").text.count("Nothing was changed") == 1


def test_old_entries_are_deleted(client: FlaskClient) -> None:
    client.post("/v1/crawls", json=SEED)
    store = store_of(client)
    services = client.application.extensions["curtsy"].services
    now_ms = int(time.time() * 1000)
    retention.sweep(services, now_ms)
    with store.read() as tx:
        assert len(audit_log.chunk(tx, 10)) == 1
    retention.sweep(services, now_ms + 366 * 86_400_000)
    with store.read() as tx:
        assert audit_log.chunk(tx, 10) == []
