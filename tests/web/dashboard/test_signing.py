"""Beyond loopback: nobody gets in without a key, and nobody stays in whose key is gone."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from accessible import faults
from playwright.sync_api import Page, expect
from werkzeug.serving import make_server

from curtsy.core.settings_loading import load
from curtsy.store import keys
from curtsy.store.engine import Store
from curtsy.web import auth
from curtsy.web.backend_thread import BackendThread
from curtsy.web.factory import create_app


class Guarded:
    """An application that believes to listen on all addresses."""

    def __init__(self, folder: Path) -> None:
        self.settings = load(data_dir=folder / "data", api_rate=10_000, api_burst=100_000)
        app = create_app(self.settings, host="0.0.0.0")
        self.bridge: BackendThread = app.extensions["curtsy"]
        self._server = make_server("127.0.0.1", 0, app, threaded=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def key(self, *scopes: str) -> tuple[str, str]:
        """(the key, its id)"""
        text, stored = auth.new_key("a person", scopes, int(time.time() * 1000), None)
        self.store.run(keys.create, stored)
        return text, stored.id

    @property
    def store(self) -> Store:
        return self.bridge.store

    def close(self) -> None:
        self.bridge.events.close()  # streams end, or their threads would be waited for
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
        self.bridge.close()


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    running = Guarded(tmp_path_factory.mktemp("guarded"))
    yield running
    running.close()


def test_everybody_can_sign_in(page: Page, guarded: Guarded) -> None:
    page.goto(f"{guarded.url}/")
    found = faults(page, "sign-in")
    page.get_by_label("API key").fill("curtsy_nobody")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_be_visible()
    assert found + faults(page, "sign-in, refused") == []


def sign_in(page: Page, key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_without_a_key_every_page_leads_to_the_door(page: Page, guarded: Guarded) -> None:
    for path in ("/", "/crawls", "/failures", "/keys", "/hosts/a.test", "/new"):
        page.goto(guarded.url + path)
        expect(page.locator("h1")).to_have_text("Sign in")
    for path in ("/overview/part", "/overview/events", "/crawls/last/part"):
        assert page.request.get(guarded.url + path, headers={"Accept": "*/*"}).status == 401


def test_a_wrong_key_is_refused_and_a_right_one_leads_where_one_wanted_to_go(page: Page, guarded: Guarded) -> None:
    text, _ = guarded.key("write")
    page.goto(f"{guarded.url}/schedules")
    sign_in(page, "curtsy_000000000000_" + "x" * 43)
    expect(page.get_by_role("alert")).to_contain_text("This key is unknown")
    sign_in(page, text)
    expect(page.locator("h1")).to_have_text("Schedules")
    (cookie,) = page.context.cookies()
    assert cookie["httpOnly"]
    assert cookie["sameSite"] == "Strict"
    assert 0 < cookie["expires"] - time.time() <= 12 * 3600
    assert text.rpartition("_")[2] not in cookie["value"]
    assert page.evaluate("document.cookie") == ""
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("h1")).to_have_text("Sign in")
    page.goto(f"{guarded.url}/schedules")
    expect(page.locator("h1")).to_have_text("Sign in")


def test_a_key_that_was_revoked_ends_its_sessions(page: Page, guarded: Guarded) -> None:
    text, id = guarded.key("read")
    page.goto(guarded.url)
    sign_in(page, text)
    expect(page.locator("h1")).to_have_text("Overview")
    guarded.store.run(keys.revoke, id, int(time.time() * 1000))
    page.reload()
    expect(page.locator("h1")).to_have_text("Sign in")


def test_a_key_that_may_only_read_can_change_nothing(page: Page, guarded: Guarded) -> None:
    text, _ = guarded.key("read")
    page.goto(guarded.url)
    sign_in(page, text)
    expect(page.get_by_role("link", name="New crawl")).to_have_count(0)
    page.goto(f"{guarded.url}/keys")
    expect(page.locator("h1")).to_have_text("Not allowed")
    page.goto(f"{guarded.url}/new")
    expect(page.locator("h1")).to_have_text("Not allowed")


def test_a_new_key_is_shown_once(page: Page, guarded: Guarded) -> None:
    text, _ = guarded.key("admin")
    page.goto(f"{guarded.url}/keys")
    sign_in(page, text)
    page.get_by_label("Name").fill("<b>Robot</b>")
    page.get_by_role("button", name="Create the key").click()
    made = page.locator(".secret").inner_text()
    assert auth.Gate(guarded.bridge, "0.0.0.0").of_key(made).scopes == ("read",)
    page.reload()  # makes no other one
    expect(page.locator("tbody tr", has_text="<b>Robot</b>")).to_have_count(1)
    assert made not in page.content()


def test_signing_in_never_redirects_to_another_site(page: Page, guarded: Guarded) -> None:
    text, _ = guarded.key("read")
    for elsewhere in ("//evil.test/", "https://evil.test/", "/\\evil.test", "javascript:alert(1)"):
        page.context.clear_cookies()
        page.goto(f"{guarded.url}/sign-in?next={elsewhere}")
        sign_in(page, text)
        expect(page.locator("h1")).to_have_text("Overview")
        assert page.url == f"{guarded.url}/"
