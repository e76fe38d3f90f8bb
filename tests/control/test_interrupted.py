"""A crawl is `interrupted` if it has begun and no process works on it: one rule for commands, API and dashboard."""

from __future__ import annotations

from pathlib import Path

import pytest
import stored
from crawl_folder import CrawlFolder
from waiting import until

from curtsy.control import crawls as control
from curtsy.core.model import Crawl, CrawlState
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.services import crawl_lock
from curtsy.store import crawls
from curtsy.store.engine import Store
from curtsy.web.factory import create_app

HOST = {"Host": "127.0.0.1:8080"}


@pytest.mark.parametrize(
    ("state", "reason", "begun", "attended", "shown"),
    [
        ("running", None, True, False, "interrupted"),
        ("extracting", None, True, False, "interrupted"),
        ("running", None, True, True, "running"),
        ("running", None, False, False, "running"),  # it waits for its first process
        ("running", "interrupted", False, False, "interrupted"),
        ("paused", None, True, False, "paused"),
        ("finished", None, True, False, "finished"),
    ],
)
def test_the_state_that_people_see(state: str, reason: str | None, begun: bool, attended: bool, shown: str) -> None:
    crawl = Crawl(id="c", request_id="r", state=CrawlState(state), reason=reason)
    assert control.shown_state(crawl, begun, attended) == shown


def test_the_lock_tells_whether_a_process_crawls(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path)
    assert not control.attended(settings)
    with crawl_lock.holding(tmp_path):
        assert control.attended(settings)
        with crawl_lock.holding(tmp_path):
            assert control.attended(settings)
        assert control.attended(settings)
    assert not control.attended(settings)
    assert control.attended(Settings(frontier_url="redis://a.test", data_dir=tmp_path)), "a fleet may continue it"


def test_the_dashboard_says_that_no_process_works_on_a_crawl(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path)
    app = create_app(settings)
    client = app.test_client()
    store: Store = app.extensions["curtsy"].store
    made, waiting = stored.crawl(store, CrawlState.RUNNING), stored.crawl(store, CrawlState.RUNNING)
    store.run(crawls.add_counts, {(made.n, "open", ""): 2, (made.n, "done", ""): 1})
    try:
        assert client.get(f"/v1/crawls/{made.id}").get_json()["state"] == "interrupted"
        listed = {one["id"]: one["state"] for one in client.get("/v1/crawls").get_json()["items"]}
        assert listed == {made.id: "interrupted", waiting.id: "running"}
        for state, id in (("interrupted", made.id), ("running", waiting.id)):
            found = client.get(f"/v1/crawls?state={state}").get_json()["items"]
            assert [one["id"] for one in found] == [id]
        for path in ("/", "/crawls", f"/crawls/{made.id}"):
            assert ">interrupted</span>" in client.get(path, headers=HOST).text, path
        with crawl_lock.holding(tmp_path):
            assert client.get(f"/v1/crawls/{made.id}").get_json()["state"] == "running"
    finally:
        app.extensions["curtsy"].close()


def test_a_command_that_crawls_holds_the_lock_until_it_is_killed(tmp_path: Path) -> None:
    folder = CrawlFolder(tmp_path)
    try:
        process = folder.start("crawl", "http://127.0.0.1:9/", "--allow-private", "127.0.0.0/8")
        until(lambda: crawl_lock.is_held(folder.data) or process.poll() is not None)
        assert crawl_lock.is_held(folder.data)
        process.kill()
        process.communicate()
        until(lambda: not crawl_lock.is_held(folder.data))
    finally:
        folder.close()
