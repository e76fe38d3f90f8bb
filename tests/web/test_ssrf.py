"""What a crawl may name over HTTP: no private place, and nothing that the settings do not list.

Names are judged when they are asked: tests/fetch/test_ssrf_crawl.py.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient
from private_places import FORMS

SECRET = "0123456789abcdef"
NDJSON = "application/x-ndjson"


@pytest.fixture
def store_url(tmp_path: Any) -> str:
    """Nothing here depends on the database."""
    return f"sqlite:///{tmp_path / 'curtsy.sqlite'}"


def crawl(client: FlaskClient, seed: str, **wish: Any) -> Any:
    return client.post("/v1/crawls", json={"seeds": [seed], **wish})


def upload(client: FlaskClient, seed: str, **wish: Any) -> Any:
    return client.post("/v1/crawls", data=f"{json.dumps(wish)}\n{json.dumps(seed)}\n", content_type=NDJSON)


def schedule(client: FlaskClient, seed: str, **wish: Any) -> Any:
    return client.post("/v1/schedules", json={"name": "n", "cron": "@daily", "seeds": [seed], "crawl": wish})


#: how a crawl is asked for, and where the problem says a field of it stands
WAYS = {"JSON": (crawl, "body"), "NDJSON": (upload, "line 1"), "a schedule": (schedule, "body.crawl")}


def nothing_stored(client: FlaskClient) -> bool:
    return all(client.get(path).get_json()["items"] == [] for path in ("/v1/crawls", "/v1/schedules"))


def test_a_private_address_is_refused_however_it_is_written(client: FlaskClient) -> None:
    for form, host in FORMS.items():
        for way, (ask, _) in WAYS.items():
            for scheme, port in (("http", ""), ("https", ":8443")):
                answer = ask(client, f"{scheme}://user:pass@{host}{port}/")
                assert answer.status_code == 422, (form, way)
                assert answer.get_json()["type"] == "urn:curtsy:problem:refused-seeds", (form, way)
                assert "pass" not in answer.text
    assert nothing_stored(client)


def test_a_webhook_at_a_private_address_is_refused_however_it_is_written(client: FlaskClient) -> None:
    for form, host in FORMS.items():
        for way, (ask, _) in WAYS.items():
            answer = ask(client, "https://a.test/", webhook=f"http://{host}:8080/", webhook_secret=SECRET)
            assert answer.status_code == 422, (form, way)
            assert "not public" in answer.get_json()["detail"], (form, way)
    assert nothing_stored(client)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://a.test/", "ftp://a.test/", "dict://a.test/", "//a.test"]
)
def test_other_schemes_are_refused(client: FlaskClient, url: str) -> None:
    for ask, _ in WAYS.values():
        assert ask(client, url).status_code == 422
        assert ask(client, "https://a.test/", webhook=url, webhook_secret=SECRET).status_code == 422
    assert nothing_stored(client)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("resolve", ["*=127.0.0.1:80"]),
        ("allow_private", ["127.0.0.0/8"]),
        ("dns_servers", ["127.0.0.1"]),
        ("proxies", {"mine": ["http://127.0.0.1:1"]}),
        ("proxy", "http://127.0.0.1:1"),
        ("out", "/tmp/x"),
        ("data_dir", "/tmp/x"),
        ("segments_url", "s3://x"),
        ("headers", {"Cookie": "a=b"}),
        ("hosts", {"a.test": {"headers": {"A": "b"}}}),
        ("renderer", "os:system"),
        ("extractor", "os:system"),
        ("user_agent", "somebody else"),
        ("webhook_old_secret", SECRET),
    ],
)
def test_a_field_that_is_not_offered_is_refused_by_its_name(
    client: FlaskClient, way: str, field: str, value: Any
) -> None:
    ask, where = WAYS[way]
    answer = ask(client, "https://a.test/", **{field: value})
    assert answer.status_code == 422
    assert answer.get_json()["errors"] == [{"where": f"{where}.{field}", "message": "there is no such field"}]
    assert nothing_stored(client)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", "os:system"),
        ("schema", "other"),
        ("schema", "/etc/passwd"),
        ("proxy_pool", "none"),
        ("proxy_pool", "http://127.0.0.1:1"),
    ],
)
def test_schemas_and_proxy_pools_are_those_that_the_settings_list(
    apps: Callable[..., Flask], way: str, field: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from curtsy.grounding import page_schema

    monkeypatch.setitem(page_schema.extractors, "other", page_schema.extractors["page"])  # known, and not offered
    client = apps(proxies={"pool": ("http://127.0.0.1:3128",)}).test_client()
    ask, where = WAYS[way]
    answer = ask(client, "https://a.test/", **{field: value})
    assert answer.status_code == 422
    assert [mistake["where"] for mistake in answer.get_json()["errors"]] == [f"{where}.{field}"]
    assert nothing_stored(client)
    assert ask(client, "https://a.test/", schema="page", proxy_pool="pool").status_code in (201, 202)


def test_a_server_may_offer_other_schemas_or_none(apps: Callable[..., Flask], monkeypatch: pytest.MonkeyPatch) -> None:
    from curtsy.grounding import page_schema

    monkeypatch.setitem(page_schema.extractors, "other", page_schema.extractors["page"])
    client = apps(api_schemas=("other",)).test_client()
    assert crawl(client, "https://a.test/", schema="other").status_code == 202
    assert crawl(client, "https://a.test/", schema="page").status_code == 422


def test_users_and_passwords_in_urls_are_left_out_and_never_repeated(client: FlaskClient) -> None:
    made = crawl(client, "https://user:hunter2@a.test/x")
    assert made.status_code == 202
    explained = client.get("/v1/explain?url=https://user:hunter2@a.test/x")
    assert explained.get_json()["url"] == "https://a.test/x"
    answers = [
        made,
        explained,
        client.get("/v1/explain?url=ftp://user:hunter2@a.test/x"),
        client.get("/v1/explain?host=user:hunter2@*"),
        crawl(client, "ftp://user:hunter2@a.test/"),
        crawl(client, "user:hunter2/@a.test"),
        upload(client, "ftp://user:hunter2@a.test/"),
        schedule(client, "ftp://user:hunter2@a.test/"),
        crawl(client, "https://a.test/", webhook="ftp://user:hunter2@a.test/", webhook_secret=SECRET),
        crawl(client, "https://a.test/", webhook="https://user:hunter2@a.test/", webhook_secret=SECRET),
    ]
    assert [answer.status_code for answer in answers[2:]] == [422] * 8
    assert not [answer.text for answer in answers if "hunter2" in answer.text]
    assert client.get("/v1/crawls/last").get_json()["counts"]["pending"] == 1
