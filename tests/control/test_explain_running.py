"""`explain` while a crawl is running: the frontier is asked, and nothing is started for it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import CrawlFolder, finish
from small_site import Answer, Asked, Say, SmallSite, linking
from waiting import until

from curtsy.services.valkey import EmbeddedValkey

LINKS = [f"/{n}" for n in range(6)]
HOST = "http://one.small.test"


def _again_later(_: Asked) -> Say:
    return Say(b"Not now.", 503, (("Retry-After", "600"),))


@pytest.fixture
def site() -> Iterator[SmallSite]:
    pages: dict[str, Answer] = {"/": linking(*LINKS), **{link: linking() for link in LINKS}}
    with SmallSite(pages) as running:
        yield running


def asked(folder: CrawlFolder, url: str) -> Any:
    return folder.run("explain", url)


def test_a_url_that_waits_is_found_in_its_queue(tmp_path: Path, site: SmallSite) -> None:
    folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
    try:
        # The seed and robots.txt are asked; what they link to waits for the next turn of the host.
        process = folder.start("crawl", f"{HOST}/", "--delay", "5", "--json")
        until(lambda: folder.has_pages(1))
        until(lambda: (asked(folder, f"{HOST}/5")["frontier"] or {}).get("queued_behind") == 5)
        told = asked(folder, f"{HOST}/5")
        frontier = told["frontier"]
        assert (frontier["loaded"], frontier["listed"], frontier["leased_since"]) == (True, 6, None)
        assert frontier["host_delay_s"] == 5
        assert frontier["host_due"] is not None
        assert any("5 other URLs of its queue precede it" in sentence for sentence in told["why"])
        assert asked(folder, "one.small.test")["frontier"]["host_delay_s"] == 5
        assert asked(folder, f"{HOST}/")["frontier"] is None, "it is done"
        process.send_signal(signal.SIGINT)
        finish(process, code=3)
        assert asked(folder, f"{HOST}/5")["frontier"] is None
        assert EmbeddedValkey.running(folder.data) is None
    finally:
        folder.close()


def test_a_blocked_host_and_a_delayed_url_are_reported(tmp_path: Path) -> None:
    with SmallSite({"/": linking("/busy", "/other"), "/busy": _again_later, "/other": linking()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            folder.start("crawl", f"{HOST}/", "--delay", "0.1", "--json")
            until(lambda: bool(site.paths()) and site.paths()[-1] == "/busy")
            until(lambda: (asked(folder, f"{HOST}/busy")["frontier"] or {}).get("delayed_until") is not None)
            told = asked(folder, f"{HOST}/other")
            assert told["frontier"]["host_blocked_until"] is not None
            assert told["frontier"]["queued_behind"] == 0
            assert any("blocks its host for another" in sentence for sentence in told["why"])
        finally:
            folder.close()


def test_a_frontier_that_is_unavailable_is_no_error(tmp_path: Path, site: SmallSite) -> None:
    folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], delay_s=5)
    try:
        process = folder.start("crawl", f"{HOST}/", "--json")
        until(lambda: folder.has_pages(1))
        process.send_signal(signal.SIGINT)
        finish(process, code=3)
        folder.config.write_text(folder.config.read_text() + 'frontier_url = "redis://127.0.0.1:1/0"\n')
        told = asked(folder, f"{HOST}/5")
        assert (told["frontier"], told["state"]) == (None, "open")
    finally:
        folder.close()
