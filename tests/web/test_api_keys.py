"""Who may ask what: a matrix over every declared endpoint."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from curtsy.store import keys
from curtsy.store.engine import Store
from curtsy.web import auth
from curtsy.web.routing import ENDPOINTS, Endpoint

GUARDED = [one for one in ENDPOINTS if one.scope is not None]
NAMES = [f"{one.method} {one.path}" for one in GUARDED]
LATER = 4_000_000_000_000


def path_of(one: Endpoint) -> str:
    return re.sub(r"{\w+}", "last", one.path)


def ask(client: FlaskClient, one: Endpoint, key: str | None = None, **options: Any) -> Any:
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    headers |= options.pop("headers", {})
    return client.open(path_of(one), method=one.method, headers=headers, **options)


def made(store: Store, *scopes: str, expires_ms: int | None = LATER) -> str:
    secret, key = auth.new_key("test", scopes, int(time.time() * 1000), expires_ms)
    store.run(keys.create, key)
    return secret


@pytest.fixture
def outside(apps: Callable[..., Flask]) -> FlaskClient:
    """Of a server that listens on all addresses."""
    return apps(host="0.0.0.0").test_client()


def store_of(client: FlaskClient) -> Store:
    store: Store = client.application.extensions["curtsy"].store
    return store


def test_every_endpoint_without_a_scope_is_meant_to_have_none() -> None:
    assert {one.path for one in ENDPOINTS if one.scope is None} == {"/healthz", "/readyz", "/openapi.json", "/docs"}


def test_what_changes_something_needs_more_than_read() -> None:
    assert [one.path for one in GUARDED if one.method != "GET" and one.scope == "read"] == []


def test_without_a_valid_key_every_endpoint_answers_401(outside: FlaskClient) -> None:
    store = store_of(outside)
    expired = made(store, "admin", expires_ms=1)
    revoked = made(store, "admin")
    store.run(keys.revoke, revoked.split("_")[1], 1)
    right = made(store, "admin")
    wrong = right[:-1] + ("A" if right[-1] != "A" else "B")
    for one in GUARDED:
        for key in (None, "nonsense", "curtsy_0123456789ab_" + "A" * 43, expired, revoked, wrong):
            answer = ask(outside, one, key)
            assert answer.status_code == 401, (one.path, key)
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert answer.get_json()["type"] == "urn:curtsy:problem:key-needed"


def test_a_key_does_what_its_scopes_allow_and_no_more(outside: FlaskClient) -> None:
    store = store_of(outside)
    by_scope = {scope: made(store, scope) for scope in auth.SCOPES}
    for one in GUARDED:
        for scope, key in by_scope.items():
            answer = ask(outside, one, key)
            if one.scope in auth.IMPLIED[scope]:
                assert answer.status_code not in (401, 403, 500), (one.path, scope, answer.text)
            else:
                assert answer.status_code == 403, (one.path, scope)
                assert answer.get_json()["type"] == "urn:curtsy:problem:scope-missing"


def test_probes_answer_anybody(outside: FlaskClient) -> None:
    assert outside.get("/healthz", environ_overrides={"REMOTE_ADDR": "203.0.113.7"}).status_code == 200


@pytest.mark.parametrize(
    "sent",
    [
        {"environ_overrides": {"REMOTE_ADDR": "203.0.113.7"}},
        {"environ_overrides": {"REMOTE_ADDR": "::ffff:203.0.113.7"}},
        {"headers": {"X-Forwarded-For": "203.0.113.7"}},
        {"headers": {"Forwarded": "for=203.0.113.7"}},
        {"headers": {"Via": "1.1 proxy"}},
    ],
    ids=str,
)
def test_without_a_key_only_this_machine_is_served(client: FlaskClient, sent: dict[str, Any]) -> None:
    for one in GUARDED:
        assert ask(client, one, **sent).status_code == 401, one.path


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "rebound.example"},
        {"Host": "localhost.rebound.example:8080"},
        {"Host": ""},
        {"Host": "localhost@rebound.example"},
        {"Origin": "https://page.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:9999"},
        {"Sec-Fetch-Site": "cross-site"},
    ],
    ids=str,
)
def test_a_web_page_in_a_browser_here_is_not_served(client: FlaskClient, headers: dict[str, str]) -> None:
    for one in GUARDED:
        assert ask(client, one, headers=headers).status_code == 403, one.path


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "localhost"},
        {"Host": "127.0.0.1:8080"},
        {"Host": "[::1]:8080"},
        {"Host": "localhost:8080", "Origin": "http://localhost:8080", "Sec-Fetch-Site": "same-origin"},
    ],
    ids=str,
)
def test_the_machine_itself_is_served_without_a_key(client: FlaskClient, headers: dict[str, str]) -> None:
    assert client.get("/v1/crawls", headers=headers).status_code == 200


def test_a_name_that_the_settings_list_is_served(apps: Callable[..., Flask]) -> None:
    client = apps(api_hosts=("crawler.internal",)).test_client()
    assert client.get("/v1/crawls", headers={"Host": "crawler.internal:80"}).status_code == 200


def test_a_wrong_key_is_refused_also_on_this_machine(client: FlaskClient) -> None:
    assert client.get("/v1/crawls", headers={"Authorization": "Basic abc"}).status_code == 401


def test_a_key_counts_nowhere_but_in_its_header(outside: FlaskClient) -> None:
    """What stands in an address is written down by proxies and browsers."""
    key = made(store_of(outside), "admin")
    for one in GUARDED:
        for name in ("key", "api_key", "access_token", "token", "authorization"):
            assert ask(outside, one, query_string={name: key}).status_code == 401, (one.path, name)
        for headers in ({"X-Api-Key": key}, {"Cookie": f"key={key}"}, {"Authorization": key}):
            assert ask(outside, one, headers=headers).status_code == 401, (one.path, headers)


def test_a_key_works_whatever_host_or_proxy_it_comes_through(client: FlaskClient) -> None:
    """A browser sends no key by itself: whoever has one may come under any name."""
    headers = {"Host": "rebound.example", "X-Forwarded-For": "203.0.113.7", "Origin": "https://page.example"}
    key = made(store_of(client), "read")
    assert client.get("/v1/crawls", headers={**headers, "Authorization": f"Bearer {key}"}).status_code == 200
    assert "Access-Control-Allow-Origin" not in client.get("/v1/crawls").headers


def test_secrets_are_compared_in_constant_time(outside: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether or not there is a key of that id."""
    compared: list[tuple[str, str]] = []
    real = auth.hmac.compare_digest

    def noted(a: str, b: str) -> bool:
        compared.append((a, b))
        return real(a, b)

    monkeypatch.setattr(auth.hmac, "compare_digest", noted)
    right = made(store_of(outside), "read")
    unknown = "curtsy_0123456789ab_" + "A" * 43
    for key in (right, right[:-1] + ("A" if right[-1] != "A" else "B"), unknown):
        outside.get("/v1/crawls", headers={"Authorization": f"Bearer {key}"})
    assert [len(a) == len(b) == 64 for a, b in compared] == [True] * 3


def test_a_key_is_stored_as_a_digest_and_its_use_noted(outside: FlaskClient) -> None:
    store = store_of(outside)
    secret = made(store, "read")
    assert outside.get("/v1/crawls", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    with store.read() as tx:
        (found,) = keys.list_all(tx)
    assert secret.split("_")[2] not in repr(found)
    assert found.used_ms is not None
    assert time.time() * 1000 - found.used_ms < 60_000
    assert outside.get("/v1/crawls", headers={"Authorization": f"Bearer {secret}"}).status_code == 200
    with store.read() as tx:
        assert keys.list_all(tx)[0].used_ms == found.used_ms, "not written with every request"
    store.run(keys.revoke, found.id, 1)
    assert outside.get("/v1/crawls", headers={"Authorization": f"Bearer {secret}"}).status_code == 401


def test_whoever_tries_keys_is_slowed_down(apps: Callable[..., Flask]) -> None:
    client = apps(host="0.0.0.0", api_rate=0.001, api_burst=5).test_client()
    tried = [client.get("/v1/crawls", headers={"Authorization": "Bearer x"}).status_code for _ in range(7)]
    assert tried == [401] * 5 + [429] * 2


TOO_FAST = [{"delay_s": 0}, {"delay_s": 0.9}, {"per_host": 2}]


@pytest.mark.parametrize("options", TOO_FAST, ids=str)
def test_the_operators_politeness_is_a_limit_for_keys_without_fast(
    apps: Callable[..., Flask], options: dict[str, float]
) -> None:
    client = apps(host="0.0.0.0", delay_s=1.0, per_host=1).test_client()
    store = store_of(client)
    polite = {"delay_s": 1.0, "per_host": 1}
    crawl = {"seeds": ["https://a.test/"]}
    for scopes, status in (("write",), 403), (("fast",), 202), (("admin",), 202):
        headers = {"Authorization": f"Bearer {made(store, *scopes)}"}
        answer = client.post("/v1/crawls", json=crawl | options, headers=headers)
        assert answer.status_code == status, answer.text
        lines = f'{json.dumps(options)}\n"https://b.test/"'
        typed = headers | {"Content-Type": "application/x-ndjson"}
        assert client.post("/v1/crawls", data=lines, headers=typed).status_code == status
        assert client.post("/v1/crawls", json=crawl | polite, headers=headers).status_code == 202
        schedule = {"name": f"{scopes[0]} {options}", "cron": "0 * * * *", "seeds": ["https://a.test/"]}
        made_one = client.post("/v1/schedules", json=schedule | {"crawl": options}, headers=headers)
        assert made_one.status_code == (403 if status == 403 else 201), made_one.text
        if status == 403:
            assert "needs the scope fast" in answer.json["detail"]


def test_this_machine_may_crawl_faster_than_the_settings(apps: Callable[..., Flask]) -> None:
    client = apps(delay_s=1.0).test_client()
    assert client.post("/v1/crawls", json={"seeds": ["https://a.test/"], "delay_s": 0}).status_code == 202
