"""Answers that are no success: RFC 9457 documents with a request_id, whatever went wrong."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask import Flask
from flask.testing import FlaskClient

from curtsy.core import observe
from curtsy.core.errors import StoreUnavailable
from curtsy.store import crawls
from curtsy.web import limits
from curtsy.web.problems import Problem
from curtsy.web.routing import ENDPOINTS


@pytest.fixture
def store_url(tmp_path: Any) -> str:
    """Nothing here depends on the database."""
    return f"sqlite:///{tmp_path / 'curtsy.sqlite'}"


@pytest.fixture
def logged(capfd: pytest.CaptureFixture[str]) -> Iterator[Callable[[], str]]:
    """What is logged during the test; a logger that is there already writes to an older standard error."""
    observe._logger.cache_clear()
    yield lambda: capfd.readouterr().err
    observe._logger.cache_clear()


def problem_of(answer: Any, status: int, name: str) -> dict[str, Any]:
    assert (answer.status_code, answer.content_type) == (status, "application/problem+json")
    document: dict[str, Any] = answer.get_json()
    assert document["type"] == f"urn:curtsy:problem:{name}"
    assert document["status"] == status
    assert document["title"]
    assert document["detail"]
    assert document["request_id"] == answer.headers["X-Request-Id"]
    return document


def test_an_unknown_route_is_a_problem(client: FlaskClient) -> None:
    problem_of(client.get("/v1/nothing"), 404, "no-such-route")


def test_another_method_is_a_problem_that_says_which_are_possible(client: FlaskClient) -> None:
    answer = client.delete("/healthz")
    problem_of(answer, 405, "method-not-allowed")
    assert answer.headers["Allow"] == "GET, HEAD"


@pytest.mark.parametrize("id", ["nothing", "0", "a" * 36, "%00", "..", "last", "x" * 500])
def test_an_unknown_crawl_is_a_problem(client: FlaskClient, id: str) -> None:
    problem_of(client.get(f"/v1/crawls/{id}"), 404, "no-such-crawl")


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data", ""])
def test_bodies_that_a_web_page_can_post_are_refused(client: FlaskClient, kind: str) -> None:
    problem_of(client.post("/v1/crawls", data=b"{}", content_type=kind), 415, "unsupported-media-type")


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data"])
def test_a_form_is_refused_also_where_no_body_is_expected(client: FlaskClient, kind: str) -> None:
    for one in ENDPOINTS:
        if one.method != "GET":
            path = one.path.replace("{id}", "last").replace("{host}", "a.test")
            answer = client.open(path, method=one.method, data=b"a=b", content_type=kind)
            problem_of(answer, 415, "unsupported-media-type")


def test_a_body_over_the_limit_is_refused(apps: Callable[..., Flask]) -> None:
    client = apps(api_body_mb=0.001).test_client()
    problem_of(client.post("/v1/crawls", json={"seeds": ["https://a.test/" + "x" * 2000]}), 413, "body-too-large")


@pytest.mark.parametrize(
    "wish",
    [
        {"allow_private": ["10.0.0.0/8"]},
        {"resolve": ["*=127.0.0.1:80"]},
        {"out": "/tmp/x"},
        {"schema": "os:system"},
        {"proxy_pool": "none"},
        {"proxy": "http://proxy.test/"},
        {"render": "always"},
        {"lane": "fast"},
        {"max_pages": 0},
        {"max_pages": "5"},
        {"delay_s": -1},
        {"include": ["("]},
        {"include": ["x" * 1001]},
    ],
    ids=str,
)
def test_a_crawl_names_nothing_beyond_what_the_settings_list(client: FlaskClient, wish: dict[str, Any]) -> None:
    problem_of(client.post("/v1/crawls", json={"seeds": ["https://a.test/"], **wish}), 422, "invalid-request")


def test_what_is_wrong_is_named_by_its_field_without_its_value(client: FlaskClient) -> None:
    answer = client.post("/v1/crawls", json={"seeds": ["https://a.test/"], "max_pages": "hunter2"})
    document = problem_of(answer, 422, "invalid-request")
    assert document["errors"][0]["where"] == "body.max_pages"
    assert "hunter2" not in answer.text


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'{"seeds": []}', b'{"seeds": 5}', b"\xff"])
def test_a_body_that_is_no_crawl_is_refused(client: FlaskClient, body: bytes) -> None:
    problem_of(client.post("/v1/crawls", data=body, content_type="application/json"), 422, "invalid-request")


@pytest.mark.parametrize("cursor", ["x", "W10", "WyJhIl0", "WzEuNV0", "%F0", "WzEsMl0", "WzFd" * 100])
def test_a_cursor_of_another_list_is_refused(client: FlaskClient, cursor: str) -> None:
    problem_of(client.get(f"/v1/crawls?cursor={cursor}"), 422, "invalid-cursor")


def test_a_bundle_of_a_crawl_without_pages_is_a_problem(client: FlaskClient) -> None:
    id = client.post("/v1/crawls", json={"seeds": ["https://a.test/"]}).get_json()["id"]
    said = problem_of(client.get(f"/v1/crawls/{id}/bundle"), 422, "invalid-request")
    assert "has no pages" in said["detail"]


@pytest.mark.parametrize("id", ["9" * 26, f"{'9' * 20}-{'0' * 32}", f"{2**63}-{'0' * 32}", "-" + "9" * 26])
def test_a_page_id_with_a_number_that_is_too_large_is_a_problem(client: FlaskClient, id: str) -> None:
    said = problem_of(client.get("/v1/show", query_string={"url": id}), 422, "invalid-request")
    assert "is not a page id" in said["detail"]


def cursor_of(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


LISTS = [one.path for one in ENDPOINTS if one.query is not None and "cursor" in one.query.model_fields]


@pytest.mark.parametrize("path", LISTS)
def test_no_changed_cursor_is_an_error_of_ours(client: FlaskClient, path: str) -> None:
    id = client.post("/v1/crawls", json={"seeds": ["https://a.test/"]}).get_json()["id"]
    schedule = {"name": id, "cron": "@daily", "seeds": ["https://a.test/"]}
    assert client.post("/v1/schedules", json=schedule).status_code == 201
    bad: list[list[object]] = [[10**40] * n for n in range(1, 5)]
    bad += [["\x00"], ["\ud800"], ["\ud800", 1], ["x", 10**40], ["\x00", 1], [True], [None], [1e300], [[1]]]
    bad += [["\ud800", 1, "x", 1], ["x", 2**63, "x", 1], ["x", 1, "\x00", 1], ["x", 1, "x", -(2**64)]]
    cursors = [cursor_of(json.dumps(one)) for one in bad] + [cursor_of("[" * 1400), cursor_of("[" + "9" * 1400 + "]")]
    # There is nothing to compare with: that is told first.
    name = "invalid-request" if path.endswith("/changes") else "invalid-cursor"
    for cursor in cursors:
        problem_of(client.get(f"{path.replace('{id}', id)}?cursor={cursor}"), 422, name)


def test_every_list_has_a_largest_page(client: FlaskClient) -> None:
    for path in LISTS:
        for limit in ("1001", "0", "-1", "9" * 5000, "1e3", "nan"):
            problem_of(client.get(f"{path.replace('{id}', 'last')}?limit={limit}"), 422, "invalid-request")


@pytest.mark.parametrize("line", [b"[" * 200_000, b"9" * 200_000, b'{"url":' * 100_000, b"\xff", b'"\\ud800"', b"NaN"])
def test_a_line_that_is_no_seed_is_refused_whatever_it_is(client: FlaskClient, line: bytes) -> None:
    answer = client.post("/v1/crawls", data=b"{}\n" + line, content_type="application/x-ndjson")
    problem_of(answer, 422, "refused-seeds")


@pytest.mark.parametrize(
    "body",
    [
        b'{"seeds":' + b"[" * 200_000,
        b'{"seeds":["https://a.test/"],"max_pages":' + b"9" * 100_000 + b"}",
        b'{"seeds":["https://a.test/"],"max_pages":1e999}',
        b'{"seeds":["https://a.test/"],"delay_s":NaN}',
        b'{"seeds":["https://a.test/"],"' + b"x" * 100_000 + b'":1}',
        b'{"seeds":["https://a.test/"]' + b"".join(b',"%d":1' % i for i in range(100_000)) + b"}",
        b'{"seeds":[1' + b",1" * 1_000_000 + b"]}",
    ],
    ids=["deep", "long number", "infinite", "not a number", "long name", "many names", "many mistakes"],
)
def test_a_body_made_to_hurt_is_refused(client: FlaskClient, body: bytes) -> None:
    answer = client.post("/v1/crawls", data=body, content_type="application/json")
    problem_of(answer, 422, "invalid-request")
    assert len(answer.data) < 5_000, "what was sent is not sent back"


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "GZIP", "identity, gzip"])
def test_a_compressed_body_is_refused_everywhere(client: FlaskClient, coding: str) -> None:
    for one in ENDPOINTS:
        if one.method != "GET":
            path = one.path.replace("{id}", "last").replace("{host}", "a.test")
            answer = client.open(
                path, method=one.method, data=b"\x1f\x8b", content_type="application/json",
                headers={"Content-Encoding": coding},
            )  # fmt: skip
            problem_of(answer, 415, "unsupported-media-type")


@pytest.mark.parametrize("query", ["limit=0", "limit=1001", "limit=x", "state=none", "nothing=1", "limit=1&limit=2"])
def test_a_query_that_does_not_fit_is_refused(client: FlaskClient, query: str) -> None:
    problem_of(client.get(f"/v1/crawls?{query}"), 422, "invalid-request")


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("since=yesterday", "query.since: this should be a time: 30m"),
        ("crawl=nope", "query.crawl: this should be the id"),
    ],
)
def test_the_expected_value_is_named_in_words(client: FlaskClient, query: str, said: str) -> None:
    assert said in problem_of(client.get(f"/v1/failures?{query}"), 422, "invalid-request")["detail"]


def test_the_callers_request_id_is_taken_over(client: FlaskClient) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": "mine-1"}).headers["X-Request-Id"] == "mine-1"
    document = problem_of(client.get("/nothing", headers={"X-Request-Id": "mine-2"}), 404, "no-such-route")
    assert document["request_id"] == "mine-2"


@pytest.mark.parametrize("given", ["", "a b", "x" * 129, "ä", "a\tb", "a\x1b[31mb", "a\x00b", "a\x7fb", "a\x85b"])
def test_a_request_id_that_cannot_be_one_is_replaced(client: FlaskClient, given: str) -> None:
    assert client.get("/healthz", headers={"X-Request-Id": given}).headers["X-Request-Id"] not in ("", given)


def test_an_error_of_ours_tells_nothing_but_its_request_id(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch, logged: Callable[[], str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the inside")

    monkeypatch.setattr(crawls, "list_all", broken)
    answer = client.get("/v1/crawls", headers={"X-Request-Id": "find-me"})
    problem_of(answer, 500, "internal-error")
    assert "inside" not in answer.text
    assert "find-me" in (said := logged())
    assert "the inside" in said


def test_an_undeclared_problem_is_an_error_of_ours(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def teapot(*_: object, **__: object) -> None:
        raise Problem(418, "teapot", "short and stout")

    monkeypatch.setattr(crawls, "list_all", teapot)
    problem_of(client.get("/v1/crawls"), 500, "internal-error")


def test_a_store_that_is_unavailable_is_503_with_retry_after(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("postgresql://user:hunter2@inside/ does not answer")

    monkeypatch.setattr(crawls, "list_all", away)
    answer = client.get("/v1/crawls")
    problem_of(answer, 503, "unavailable")
    assert int(answer.headers["Retry-After"]) > 0
    assert "inside" not in answer.text


def test_a_client_over_the_rate_limit_learns_when_to_retry(apps: Callable[..., Flask]) -> None:
    client = apps(api_rate=0.5, api_burst=3).test_client()
    answers = [client.get("/v1/crawls") for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    problem_of(answers[3], 429, "too-many-requests")
    assert 1 <= int(answers[3].headers["Retry-After"]) <= 2
    assert client.get("/healthz").status_code == 200


def test_a_bucket_fills_again_with_time() -> None:
    limit = limits.RateLimit(rate=2, burst=1)
    limit.take("a", 0.0)
    with pytest.raises(Problem):
        limit.take("a", 0.4)
    limit.take("b", 0.4)
    limit.take("a", 0.5)


def test_every_answer_forbids_what_a_browser_might_make_of_it(client: FlaskClient) -> None:
    for path in ("/healthz", "/docs", "/openapi.json", "/v1/crawls", "/nothing"):
        headers = client.get(path).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "script-src" not in headers["Content-Security-Policy"]


def test_the_page_for_people_needs_nothing_from_elsewhere(client: FlaskClient) -> None:
    page = client.get("/docs").text
    assert "<script" not in page
    assert "src=" not in page
    assert "http://" not in page
    assert "https://" not in page.replace("https://example.com/", "")
    assert "/v1/crawls/{id}/pause" in page


def test_a_secret_is_logged_nowhere(client: FlaskClient, logged: Callable[[], str]) -> None:
    secret = "curtsy_0123456789ab_" + "s" * 43
    assert client.get("/v1/crawls", headers={"Authorization": f"Bearer {secret}"}).status_code == 401
    said = logged()
    assert "0123456789ab" in said
    assert "s" * 43 not in said
