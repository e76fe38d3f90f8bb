"""A real Chromium over a real stack. Skipped only where there is no Chromium."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import ARGUMENTS, find
from playwright.sync_api import Browser, Page, sync_playwright
from small_site import SmallSite
from stack import AnyPath, Stack, Web, up

NEEDS_BROWSER = ("test_journeys", "test_every_page", "test_signing", "test_review")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if find() is None:
        for item in items:
            if item.path.parent == Path(__file__).parent and item.path.stem in NEEDS_BROWSER:
                item.add_marker(pytest.mark.skip(reason="there is no Chromium"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Of one file: while it runs, no other loop can run in this thread."""
    with sync_playwright() as play:
        launched = play.chromium.launch(executable_path=find(), args=ARGUMENTS)
        yield launched
        launched.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module")
def web() -> Web:
    return Web(pages=9)


@pytest.fixture(scope="module")
def stack(web: Web, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    with SmallSite(AnyPath(web.answer)) as site, up(tmp_path_factory.mktemp("stack"), site) as running:
        yield running
