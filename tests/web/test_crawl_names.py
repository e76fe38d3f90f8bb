"""Crawls have a name, tags and an owner: given with the crawl, changed later, and searched by."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

import pytest
import stored
from flask import Flask
from flask.testing import FlaskClient

from curtsy.cli import main
from curtsy.store import crawls, keys, schedules
from curtsy.store.engine import Store
from curtsy.web import auth

HOST = {"Host": "127.0.0.1:8080"}
SEEDS = {"seeds": ["https://a.test/"]}


@pytest.fixture
def store(app: Flask) -> Store:
    found: Store = app.extensions["curtsy"].store
    return found


def listed(client: FlaskClient, **query: str) -> list[str]:
    """The names of the crawls that a query finds, newest first."""
    answer = client.get("/v1/crawls", query_string=query)
    assert answer.status_code == 200, answer.text
    return [one["name"] or "-" for one in answer.json["items"]]  # type: ignore[index]


def token(client: FlaskClient, path: str) -> str:
    found = re.search(r'name="csrf" value="([0-9a-f]{64})"', client.get(path, headers=HOST).text)
    assert found
    return found[1]


def test_crawls_are_found_by_name_tag_owner_id_and_host(client: FlaskClient, store: Store) -> None:
    secret, key = auth.new_key("Ann", ["write"], int(time.time() * 1000), None)
    store.run(keys.create, key)
    first = client.post("/v1/crawls", json={**SEEDS, "name": "Mills 50%", "tags": ["esg", "q3/2026", "esg"]}).json
    client.post("/v1/crawls", json={"seeds": ["https://b.test/"], "name": "Ports", "tags": ["esg-old"]})
    client.post("/v1/crawls", json=SEEDS, headers={"Authorization": f"Bearer {secret}"})

    assert listed(client) == ["-", "Ports", "Mills 50%"]
    assert listed(client, q="MILLS") == ["Mills 50%"]
    assert listed(client, q="50%") == ["Mills 50%"]
    assert listed(client, q="5_%") == []  # nothing in it has a meaning to LIKE
    assert listed(client, q="esg") == ["Ports", "Mills 50%"]
    assert listed(client, q="b.test") == ["Ports"]
    assert listed(client, q=first["id"]) == ["Mills 50%"]  # type: ignore[index]
    assert listed(client, tag="esg") == ["Mills 50%"]  # the whole tag
    assert listed(client, tag="q3/2026") == ["Mills 50%"]
    assert listed(client, owner=key.id) == ["-"]
    assert listed(client, tag="esg", q="ports") == []
    found = client.get(f"/v1/crawls/{first['id']}").json  # type: ignore[index]
    assert (found["name"], found["tags"], found["owner"]) == ("Mills 50%", ["esg", "q3/2026"], None)  # type: ignore[index]


@pytest.mark.parametrize(
    "wrong",
    [{"name": ""}, {"name": "x" * 201}, {"name": "a\nb"}, {"tags": ["Big"]}, {"tags": ["a b"]}, {"tags": ['"']}],
)
def test_a_name_is_one_line_and_a_tag_is_a_word(client: FlaskClient, wrong: dict[str, Any]) -> None:
    client.post("/v1/crawls", json=SEEDS)
    assert client.post("/v1/crawls", json={**SEEDS, **wrong}).status_code == 422
    assert client.patch("/v1/crawls/last", json=wrong).status_code == 422


def test_name_and_tags_are_changed_one_by_one(client: FlaskClient) -> None:
    client.post("/v1/crawls", json={**SEEDS, "name": "Mills", "tags": ["a"]})
    assert client.patch("/v1/crawls/last", json={"tags": ["b", "a"]}).json["tags"] == ["a", "b"]  # type: ignore[index]
    found = client.patch("/v1/crawls/last", json={"name": None}).json
    assert (found["name"], found["tags"]) == (None, ["a", "b"])  # type: ignore[index]
    assert client.patch("/v1/crawls/last", json={"state": "finished"}).status_code == 422


def test_runs_are_named_after_their_schedule_and_grouped_under_it(client: FlaskClient, store: Store) -> None:
    client.post("/v1/schedules", json={"name": "news <b>", "cron": "@daily", **SEEDS})
    with store.read() as tx:
        n = schedules.list_all(tx)[0].n
    for name in ("first", "second"):
        stored.crawl(store, schedule=n, name=name)
    client.post("/v1/crawls", json={**SEEDS, "name": "single"})
    assert listed(client) == ["single", "second", "first"]
    assert listed(client, runs="newest") == ["single", "second"]
    assert listed(client, schedule="news <b>") == ["second", "first"]
    assert client.get("/v1/crawls?schedule=none").status_code == 404
    page = client.get("/crawls", headers=HOST).text
    assert ">second</bdi>" in page
    assert ">first</bdi>" not in page
    assert ">2 runs</a>" in page
    assert "news &lt;b&gt;" in page
    assert ">first</bdi>" in client.get("/crawls?schedule=news+%3Cb%3E", headers=HOST).text
    with store.read() as tx:
        assert {one.schedule for one in crawls.list_all(tx)} == {n, None}


def test_a_crawl_is_renamed_cloned_and_deleted_in_the_dashboard(client: FlaskClient) -> None:
    given = {**SEEDS, "name": "Mills", "tags": ["esg"], "max_pages": 7, "scope": "domain", "include": ["/en/"]}
    id = client.post("/v1/crawls", json=given).json["id"]  # type: ignore[index]
    form = {"csrf": token(client, f"/crawls/{id}/edit"), "name": "<script>x</script>", "tags": "b  a"}
    assert client.post(f"/crawls/{id}/edit", data=form, headers=HOST).status_code == 303
    page = client.get(f"/crawls/{id}", headers=HOST).text
    assert "&lt;script&gt;x&lt;/script&gt;" in page
    assert "<script>x" not in page
    wrong = client.post(f"/crawls/{id}/edit", data={**form, "tags": "Big"}, headers=HOST)
    assert (wrong.status_code, 'value="Big"' in wrong.text) == (422, True)

    copy = client.get(f"/new?clone={id}", headers=HOST).text
    for part in ("https://a.test/</textarea>", 'value="7"', "/en/</textarea>", 'value="a b"', "(copy)"):
        assert part in copy, part
    assert 'value="domain" checked' in copy

    shown = client.get(f"/crawls/{id}/delete", headers=HOST).text
    assert (id in shown, "https://a.test/" in shown) == (True, True)
    assert client.post(f"/crawls/{id}/delete", data={"csrf": form["csrf"]}, headers=HOST).status_code == 303
    assert client.get(f"/v1/crawls/{id}").json["state"] == "deleting"  # type: ignore[index]
    entries = client.get("/v1/audit").json["items"]  # type: ignore[index]
    changes = {(one["method"], one["path"], one["crawl"]) for one in entries}
    assert {("POST", f"/crawls/{id}/edit", id), ("POST", f"/crawls/{id}/delete", id)} <= changes


def test_a_reader_cannot_rename_and_a_writer_cannot_delete(
    apps: Callable[..., Flask], client: FlaskClient, store: Store
) -> None:
    guarded = apps(host="0.0.0.0")
    id = client.post("/v1/crawls", json=SEEDS).json["id"]  # type: ignore[index]
    for scope, path, allowed in (("read", "edit", False), ("write", "edit", True), ("write", "delete", False)):
        secret, key = auth.new_key(scope, [scope], int(time.time() * 1000), None)
        store.run(keys.create, key)
        browser = guarded.test_client()
        sign = {"csrf": token(browser, "/sign-in"), "key": secret}
        assert browser.post("/sign-in", data=sign, headers=HOST).status_code == 303
        assert (browser.get(f"/crawls/{id}/{path}", headers=HOST).status_code == 200) is allowed, (scope, path)


def test_a_command_names_a_crawl_and_finds_it(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> str:
        monkeypatch.setattr("sys.argv", ["curtsy", *words])
        with pytest.raises(SystemExit):
            main()
        return capsys.readouterr().out

    run("submit", "https://a.test/", "--name", "Mills", "--tag", "esg", "--tag", "q3")
    run("submit", "https://b.test/", "--name", "Ports")
    assert "Mills #esg #q3" in run("status", "--search", "mill")
    assert "Ports" not in run("status", "--tag", "esg")
    assert "name          Ports" in run("status")
    assert '"name": "Mills"' in run("status", "--tag", "q3", "--json")
