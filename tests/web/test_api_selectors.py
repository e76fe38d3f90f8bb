"""Learned selectors over HTTP and in the dashboard: listed, shown, forgotten, downloaded."""

from __future__ import annotations

import io
import json
import re
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient
from served import serving

from curtsy.cli import main
from curtsy.core.settings import Settings
from curtsy.rules.urls import fingerprint
from curtsy.store import keys, templates
from curtsy.store.engine import Store
from curtsy.store.template_rows import Kind, NewSelector, Outcome, Reading
from curtsy.web import auth

HERE = {"Host": "127.0.0.1:8080"}
URL = "http://goods.test/lamps/1"
PLACES = (
    NewSelector("/weight", {"path": "main > p.weight", "label": "weight", "after": " kg"}, 3, 30, 29),
    NewSelector("/maker", {"path": "main > span", "at": 1, "of": 3}, 4, 30, 30),
)


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


@pytest.fixture
def template(store: Store, settings: Settings) -> int:
    crawl = stored.crawl(store)
    segments = stored.folder_of(settings)
    stored.add_pages(store, segments, crawl, [(URL, b"<p>x")])
    segments.close()
    kind = Kind("h", "Thing", "goods.test", "/lamps/*", "k", ["k"])
    n = store.run(templates.find_or_create, kind, lambda rows: None, 1)
    assert n is not None
    store.run(templates.note_read, n, Reading(crawl.n, fingerprint(URL).hex(), {"x": []}, (), 2), Outcome())
    store.run(templates.learn, n, 0, PLACES, 9, 3)
    return n


def get(client: FlaskClient, path: str, **query: str) -> Any:
    return client.get(path, headers=HERE, query_string=query).json


def test_selectors_are_listed_shown_and_forgotten(client: FlaskClient, template: int) -> None:
    first = get(client, "/v1/selectors", limit="1")
    (one,) = first["items"]
    assert (one["field"], one["css"], one["label"], one["after"], one["found"]) == (
        "/weight", "main > p.weight", "weight", " kg", 29,
    )  # fmt: skip
    (other,) = get(client, "/v1/selectors", limit="1", cursor=first["next"])["items"]
    assert (other["field"], other["position"], other["of"], other["selector"]) == (
        "/maker", 2, 3, "main > span [2 of 3]",
    )  # fmt: skip
    assert get(client, f"/v1/selectors/{one['id']}")["taught_by"] == [URL]
    done = client.post(f"/v1/selectors/{one['id']}/forget", headers=HERE).json
    assert (done["state"], done["why"]) == ("retired", "forgotten")
    assert [it["field"] for it in get(client, "/v1/selectors")["items"]] == ["/maker"]
    assert [it["field"] for it in get(client, "/v1/selectors", state="retired")["items"]] == ["/weight"]
    assert len(get(client, "/v1/selectors", state="all", host="goods.test", schema="Thing")["items"]) == 2
    assert get(client, "/v1/selectors", host="other.test")["items"] == []


@pytest.mark.parametrize("id", ["999", "0", "x", "9" * 30])
def test_an_unknown_selector_is_not_found(client: FlaskClient, template: int, id: str) -> None:
    assert get(client, f"/v1/selectors/{id}")["type"] == "urn:curtsy:problem:no-such-selector"
    assert client.post(f"/v1/selectors/{id}/forget", headers=HERE).status_code == 404


def test_a_key_that_only_reads_forgets_nothing(client: FlaskClient, store: Store, template: int) -> None:
    secret, made = auth.new_key("test", ("read",), int(time.time() * 1000), 4_000_000_000_000)
    store.run(keys.create, made)
    headers = HERE | {"Authorization": f"Bearer {secret}"}
    (one, _) = client.get("/v1/selectors", headers=headers).json["items"]
    refused = client.post(f"/v1/selectors/{one['id']}/forget", headers=headers)
    assert (refused.status_code, refused.json["type"]) == (403, "urn:curtsy:problem:scope-missing")


def test_the_dashboard_lists_shows_forgets_and_downloads(client: FlaskClient, template: int) -> None:
    page = client.get("/selectors", headers=HERE).text
    assert "main &gt; p.weight" in page
    assert "goods.test/lamps/*" in page
    number = re.search(r'href="/selectors/(\d+)"', page)
    assert number is not None
    shown = client.get(f"/selectors/{number[1]}", headers=HERE).text
    assert "found on 29 of 30 stored pages" in shown
    assert URL in shown
    file = client.get("/selectors/page-objects.py", headers=HERE)
    assert "attachment" in file.headers["Content-Disposition"]
    assert "class GoodsTestLampsPage" in file.text
    token = re.search(r'name="csrf" value="([^"]+)"', shown)
    assert token is not None
    done = client.post(f"/selectors/{number[1]}/forget", data={"csrf": token[1]}, headers=HERE)
    assert done.status_code == 303
    assert "forgotten" in client.get("/selectors?state=all", headers=HERE).text


def test_the_commands_work_over_http(tmp_path: Path, store_url: str, template: int) -> None:
    with serving(tmp_path / "server", store_url, processes=1) as served:

        def run(*words: str) -> Any:
            said = io.StringIO()
            given = ["curtsy", "selectors", *words, "--api", served.url, "--json"]
            with patch.object(sys, "argv", given), redirect_stdout(said), pytest.raises(SystemExit):
                main()
            return json.loads(said.getvalue())

        (one, other) = run("list")["selectors"]
        assert run("show", one["id"])["taught_by"] == [URL]
        assert run("forget", other["id"])["state"] == "retired"
        assert [it["id"] for it in run("list")["selectors"]] == [one["id"]]
        assert len(run("list", "--all")["selectors"]) == 2
