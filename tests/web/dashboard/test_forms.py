"""Forms do something only for the session they were made for; sessions and notes cannot be made up."""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from flask import Flask
from flask.testing import FlaskClient

from curtsy.core.settings_loading import load
from curtsy.store import keys, meta
from curtsy.web import auth
from curtsy.web.dashboard import seeds
from curtsy.web.dashboard.sessions import COOKIE
from curtsy.web.dashboard.site import VIEWS
from curtsy.web.factory import create_app

HOST = {"Host": "127.0.0.1:8080"}


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Flask]:
    made = create_app(load(data_dir=tmp_path / "data"))
    yield made
    made.extensions["curtsy"].close()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    return app.test_client()


def token(client: FlaskClient) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', client.get("/keys", headers=HOST).text)
    assert found
    return found[1]


FORMS = [re.sub(r"<\w+>", "x", view.rule) for view in VIEWS if view.method == "POST"]


@pytest.mark.parametrize("path", FORMS)
def test_no_form_is_heeded_without_the_token_of_its_session(app: Flask, client: FlaskClient, path: str) -> None:
    other = token(app.test_client())
    own = token(client)
    assert own != other
    for given in ({}, {"csrf": ""}, {"csrf": other}, {"csrf": own[:-1]}, {"csrf": "ü"}):
        assert client.post(path, data=given, headers=HOST).status_code == 403
    assert app.test_client().post(path, data={"csrf": own}, headers=HOST).status_code == 403


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.test"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Host": "evil.test"},
        {"X-Forwarded-For": "10.0.0.1"},
    ],
)
def test_forms_of_other_websites_are_refused(client: FlaskClient, headers: dict[str, str]) -> None:
    data = {"csrf": token(client), "name": "x", "scope": "admin"}
    assert client.post("/keys", data=data, headers=HOST | headers).status_code in (401, 403)
    assert "No keys yet" in client.get("/keys", headers=HOST).text


def test_a_form_with_its_token_is_heeded(client: FlaskClient) -> None:
    data = {"csrf": token(client), "name": "x", "scope": "read"}
    answer = client.post("/keys", data=data, headers=HOST | {"Origin": "http://127.0.0.1:8080"})
    assert answer.status_code == 200
    assert "curtsy_" in answer.text


def test_a_session_cannot_be_made_up(app: Flask, client: FlaskClient) -> None:
    made = create_app(app.extensions["curtsy"].settings, app.extensions["curtsy"], host="0.0.0.0")
    guarded = made.test_client()
    token(client)
    cookie = client.get_cookie(COOKIE, domain="127.0.0.1")
    assert cookie is not None
    own = cookie.value
    for value in (own, own.replace("-", "0" * 12, 1), own[:-1] + "0", "", "x" * 2000, own + ".", "ü"):
        guarded.set_cookie(COOKIE, value, domain="127.0.0.1")
        answer = guarded.get("/keys", headers=HOST | {"Accept": "text/html"})
        assert answer.status_code == 303, value
        assert answer.headers["Location"].startswith("/sign-in")


def test_nor_by_the_secret_of_the_deployment_alone(app: Flask) -> None:
    bridge = app.extensions["curtsy"]
    made = create_app(bridge.settings, bridge, host="0.0.0.0").test_client()
    key, stored = auth.new_key("a person", ["admin"], int(time.time() * 1000), None)
    bridge.store.run(keys.create, stored)
    page = made.get("/sign-in", headers=HOST).text
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', page)
    assert found
    made.post("/sign-in", data={"csrf": found[1], "key": key}, headers=HOST)
    assert made.get("/keys", headers=HOST).status_code == 200
    with bridge.store.read() as tx:
        secret = bytes.fromhex(meta.get(tx, "session_secret") or "")
    value = f"{stored.id}.{'0' * 32}.{int(time.time()) + 3600}"
    for more in ("", " "):
        mark = hmac.new(secret, f"session {value}{more}".encode(), hashlib.sha256).hexdigest()
        made.set_cookie(COOKIE, f"{value}.{mark}", domain="127.0.0.1")
        assert made.get("/keys", headers=HOST).status_code == 401


def test_a_note_cannot_be_made_up(app: Flask, client: FlaskClient) -> None:
    answer = client.get("/schedules?note=WW91IGFyZSBoYWNrZWQ.0123456789abcdef0123456789abcdef", headers=HOST)
    assert answer.status_code == 200
    assert "hacked" not in answer.text
    assert 'class="note"' not in answer.text


def test_the_api_takes_neither_forms_nor_sessions(app: Flask, client: FlaskClient) -> None:
    data = {"csrf": token(client), "seeds": "https://example.com/"}
    assert client.post("/v1/crawls", data=data, headers=HOST).status_code == 415
    guarded = create_app(app.extensions["curtsy"].settings, app.extensions["curtsy"], host="0.0.0.0").test_client()
    cookie = client.get_cookie(COOKIE, domain="127.0.0.1")
    assert cookie is not None
    guarded.set_cookie(COOKIE, cookie.value, domain="127.0.0.1")
    assert guarded.get("/v1/crawls", headers=HOST).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/crawls/zzz",
        "/crawls/last",
        "/pages/nothing",
        "/hosts/%20",
        "/hosts/none.test",
        "/failures/%3Cscript%3E",
        "/failures?since=never",
        "/failures?crawl=zzz",
        "/crawls?cursor=AAAA",
        "/crawls?state=odd",
        "/schedules/none",
        "/static/../factory.py",
        "/static/none.js",
        "/explain?url=%00",
    ],
)
def test_what_cannot_be_shown_is_reported_on_a_page(client: FlaskClient, path: str) -> None:
    answer = client.get(path, headers=HOST)
    assert answer.status_code in (404, 422), answer.text
    assert "<script>" not in answer.text


NINES = "9" * 5000


@pytest.mark.parametrize(
    ("path", "given"),
    [
        *(("/new", {"seeds": "http://a.test/", "max_pages": text}) for text in ("inf", "nan", "1e400", NINES)),
        *(("/new", {"seeds": "http://a.test/", "per_host": text}) for text in ("inf", "-nan", NINES)),
        *(("/hosts/a.test/delay", {"delay_s": "1", "per_host": text}) for text in ("inf", "nan", "2.7", NINES)),
        *(("/hosts/a.test/delay", {"delay_s": text}) for text in ("nan", "x" * 100_000, "[" * 100_000)),
        *(("/keys", {"name": "x", "scope": "read", "days": text}) for text in (NINES, "inf", "0")),
    ],
)
def test_invalid_numbers_are_reported_and_not_worked_on(client: FlaskClient, path: str, given: dict[str, str]) -> None:
    answer = client.post(path, data=given | {"csrf": token(client)}, headers=HOST)
    assert answer.status_code in (400, 422)
    assert len(answer.data) < 200_000


REFUSED = ["http://127.0.0.1/", "htp://typo.example/", "example .com"]


@pytest.mark.parametrize("more", [{}, {"schedule_name": "news", "cron": "@daily"}])
def test_refused_seeds_are_named_and_nothing_is_made(client: FlaskClient, more: dict[str, str]) -> None:
    given = {"seeds": "\n".join([*REFUSED, "http://a.test/"]), "max_pages": "7", "csrf": token(client)} | more
    answer = client.post("/new", data=given, headers=HOST)
    assert answer.status_code == 422
    assert "Nothing was created: 3 seeds cannot be crawled" in answer.text
    for seed in REFUSED:
        assert f"<bdi>{seed}</bdi>" in answer.text
    assert "http://a.test/</textarea>" in answer.text  # the form comes back as it was filled in
    assert 'value="7"' in answer.text
    assert client.get("/v1/crawls", headers=HOST).get_json()["items"] == []
    assert client.get("/v1/schedules", headers=HOST).get_json()["items"] == []


def test_more_seeds_than_the_form_takes_are_refused_with_all_others(
    client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(seeds, "MOST", 3)
    file = (BytesIO(b"".join(b"http://a.test/%d\n" % n for n in range(5))), "seeds.txt")
    answer = client.post("/new", data={"file": file, "csrf": token(client)}, headers=HOST)
    assert answer.status_code == 422
    assert "this form accepts at most 3 seeds, and 2 lines exceed that" in answer.text
    assert "http://a.test/4</textarea>" in answer.text
    assert client.get("/v1/crawls", headers=HOST).get_json()["items"] == []


def test_a_time_without_the_name_of_a_schedule_begins_no_crawl(client: FlaskClient) -> None:
    given = {"seeds": "http://a.test/", "cron": "0 6 * * *", "csrf": token(client)}
    answer = client.post("/new", data=given, headers=HOST)
    assert (answer.status_code, "a schedule needs a name" in answer.text) == (422, True)
    assert 'value="0 6 * * *"' in answer.text
    assert client.get("/v1/crawls", headers=HOST).get_json()["items"] == []


@pytest.mark.parametrize("text", ["inf", "nan", "1e400", "1e300", NINES])
def test_the_words_about_pace_do_without_them(client: FlaskClient, text: str) -> None:
    given = {"seeds": "http://a.test/", "max_pages": text, "per_host": text, "delay_s": text, "csrf": token(client)}
    assert client.post("/new/check", data=given, headers=HOST).status_code == 200


def test_a_cause_is_taken_as_lists_show_it_and_nothing_to_replay_is_said(client: FlaskClient) -> None:
    answer = client.post("/failures/replay", data={"cause": "Connection lost", "csrf": token(client)}, headers=HOST)
    assert 'name="cause" value="connection_lost"' in answer.text
    assert "Nothing to replay" in answer.text
    answer = client.post("/failures/replay", data={"ids": "x", "csrf": token(client)}, headers=HOST)
    assert "Nothing to replay" in answer.text
    assert 'name="really"' not in answer.text
