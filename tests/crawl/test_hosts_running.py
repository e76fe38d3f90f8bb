"""What the operator says about hosts is heeded by a crawl that is running, within seconds: both more care and less."""

from __future__ import annotations

import itertools
from datetime import datetime
from pathlib import Path
from typing import Any

from crawl_folder import CrawlFolder, finish
from small_site import Answer, Asked, Say, SmallSite, linking
from waiting import until

LINKS = [f"/{n}" for n in range(12)]
ONE, TWO = "one.small.test", "two.small.test"
#: far beyond what any test waits for
LONG_S = 600


def in_force(folder: CrawlFolder, host: str) -> Any:
    return (folder.run("explain", host)["frontier"] or {}).get("host_delay_s")


def wait_s(folder: CrawlFolder, host: str) -> float:
    """How long the frontier lets the host alone from now on; 0 while a request is under way."""
    said = folder.run("explain", host)["frontier"] or {}
    due, at = said.get("host_due"), said.get("at")
    return (datetime.fromisoformat(due) - datetime.fromisoformat(at)).total_seconds() if due else 0.0


def test_a_delay_is_raised_and_taken_back(tmp_path: Path) -> None:
    with SmallSite({"/": linking(*LINKS), **{link: linking() for link in LINKS}}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            process = folder.start("crawl", f"http://{ONE}/", "--delay", "0.2", "--json")
            until(lambda: folder.has_pages(2))
            folder.run("hosts", "delay", ONE, str(LONG_S))
            assert in_force(folder, ONE) == LONG_S
            until(lambda: wait_s(folder, ONE) > LONG_S / 2)
            seen = len(site.asked)
            folder.run("hosts", "delay", ONE)
            assert in_force(folder, ONE) == 0.2
            until(lambda: len(site.asked) > seen)
            assert finish(process)["pages"] == 13
        finally:
            folder.close()


def test_a_wait_that_the_host_asked_for_is_lifted(tmp_path: Path) -> None:
    times = itertools.count()

    def busy(_: Asked) -> Say:
        return linking() if next(times) else Say(b"Not now.", 503, (("Retry-After", str(LONG_S)),))

    pages: dict[str, Answer] = {"/": linking("/busy", "/other"), "/busy": busy, "/other": linking()}
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            process = folder.start("crawl", f"http://{ONE}/", "--delay", "0.2", "--json")
            until(lambda: any(state["blocked_until_ms"] for state in _hosts(folder)))
            until(lambda: (folder.run("explain", f"http://{ONE}/busy")["frontier"] or {}).get("delayed_until"))
            assert "/other" not in site.paths()
            told = folder.run("hosts", "unblock", ONE)
            assert told["blocked_until_ms"] == 0
            until(lambda: "/other" in site.paths())
            until(lambda: site.paths().count("/busy") == 2)
            assert finish(process)["pages"] == 3
            verdict = folder.run("audit")
            assert (verdict["overlaps"], verdict["early"]) == (0, 0)
        finally:
            folder.close()


def _hosts(folder: CrawlFolder) -> list[Any]:
    if not folder.has_pages(1):
        return []
    return list(folder.run("hosts", "list")["hosts"])


def test_a_wait_is_lifted_while_no_crawl_is_running(tmp_path: Path) -> None:
    times = itertools.count()

    def busy(_: Asked) -> Say:
        return linking() if next(times) else Say(b"Not now.", 503, (("Retry-After", str(LONG_S)),))

    with SmallSite({"/": linking("/busy"), "/busy": busy}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            process = folder.start("crawl", f"http://{ONE}/", "--delay", "0.2", "--json")
            until(lambda: any(state["blocked_until_ms"] for state in _hosts(folder)))
            process.terminate()
            finish(process, code=3)
            folder.run("hosts", "unblock", ONE)
            again = folder.run("crawl", "--resume", "last")
            assert (again["state"], again["pages"]) == ("finished", 2)
        finally:
            folder.close()


def test_a_host_that_is_allowed_again_is_asked(tmp_path: Path) -> None:
    """Its links on pages that are fetched from then on are taken up."""
    links = [f"/{n}" for n in range(500)]  # there is always one left
    pages: dict[str, Answer] = {"/": linking(*links)}
    pages |= {link: linking(f"http://{TWO}/of{link[1:]}") for link in links}
    pages |= {f"/of{link[1:]}": linking() for link in links}
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            process = folder.start("crawl", f"http://{ONE}/", "--delay", "0.5", "--scope", "any", "--json")
            until(lambda: folder.has_pages(1))
            folder.run("hosts", "block", TWO)
            asked = len(site.asked)
            until(lambda: len(site.asked) >= asked + 2)
            before = sum(one.host == TWO for one in site.asked)
            folder.run("hosts", "unblock", TWO)
            until(lambda: sum(one.host == TWO for one in site.asked) > before + 1)
            folder.run("cancel", "last")
            assert finish(process)["state"] == "cancelled"
        finally:
            folder.close()
