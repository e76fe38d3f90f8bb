"""Hosts that do not answer: a crawl does not wait long for one that never did, and says what is wrong with it."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder
from dns_server import dns_serving
from small_site import Asked, Say, SmallSite, linking
from waiting import until

#: the default patience of an hour, with quick attempts
PATIENT = {"host_patience_s": 3600, "allow_private": ["127.0.0.0/8"]}


@pytest.fixture
def refused() -> Iterator[str]:
    """A URL whose port refuses connections: it is bound, and nothing listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"


def test_a_host_that_never_answered_is_given_up_soon(tmp_path: Path, refused: str) -> None:
    folder = CrawlFolder(tmp_path, **PATIENT, new_host_patience_s=4)
    counts = folder.crawl(refused)
    assert counts.failed == {"robots_unreachable": 1}
    (letter,) = folder.run("failures", "list")["failures"]
    host = refused.removeprefix("http://").rstrip("/")
    assert f"its host {host} does not answer: " in letter["detail"]
    assert "connect" in letter["detail"]
    folder.close()


def test_a_host_that_answers_with_an_error_status_keeps_its_patience(tmp_path: Path) -> None:
    calls = threading.Semaphore(0)

    def robots(_: Asked) -> Say:
        calls.release()
        return Say(b"Later.", 503)

    with SmallSite({"/robots.txt": robots, "/": linking()}) as site:
        folder = CrawlFolder(tmp_path, **PATIENT, new_host_patience_s=0.1, resolve=[site.resolve_rule])
        crawl = folder.start("crawl", "http://a.small.test/")
        # With the patience of a host that never answered, it would be dead after the second request.
        assert all(calls.acquire(timeout=30) for _ in range(4))
        crawl.terminate()
        assert crawl.wait(30) == 3
        folder.close()


def test_a_host_that_answered_before_keeps_its_patience(tmp_path: Path) -> None:
    with SmallSite({"/": linking()}) as site:
        patience = {**PATIENT, "new_host_patience_s": 0.1, "max_attempts": 1000}
        folder = CrawlFolder(tmp_path, **patience, resolve=[site.resolve_rule])
        folder.crawl("http://a.small.test/")
    crawl = folder.start("crawl", "http://a.small.test/")
    until(lambda: folder.rows("SELECT 1 FROM urls WHERE crawl = 2 AND attempts >= 4") != [])
    assert folder.rows("SELECT state FROM queues WHERE crawl = 2") == [("open",)]
    crawl.terminate()
    assert crawl.wait(30) == 3
    folder.close()


def test_urls_of_a_dead_host_name_the_url_whose_request_failed_last(tmp_path: Path) -> None:
    def closed(_: Asked) -> Say:
        raise ConnectionAbortedError("the connection ends without an answer")

    with SmallSite({"/": linking("/bad", "/other"), "/bad": closed, "/other": closed}) as site:
        patience = {**PATIENT, "host_patience_s": 1, "max_attempts": 30}
        folder = CrawlFolder(tmp_path, **patience, resolve=[site.resolve_rule])
        counts = folder.crawl("http://a.small.test/")
    assert counts.failed == {"host_unreachable": 2}
    (detail,) = {letter["detail"] for letter in folder.run("failures", "list")["failures"]}
    last = r"the last request, for http://a\.small\.test/(bad|other), failed: .+"
    assert re.fullmatch(rf"its host a\.small\.test does not answer: {last}", detail)
    folder.close()


def test_giving_up_ends_what_a_crawl_waits_for(tmp_path: Path, refused: str) -> None:
    with SmallSite({"/": linking()}) as site:
        folder = CrawlFolder(tmp_path, **PATIENT, new_host_patience_s=3600, resolve=[site.resolve_rule])
        found = folder.run("crawl", "http://a.small.test/", refused, "--give-up", code=1)
    assert (found["pages"], found["failed"]) == (1, {"robots_unreachable": 1})
    folder.close()


def test_a_key_gives_up_what_a_crawl_waits_for(tmp_path: Path, refused: str) -> None:
    with SmallSite({"/": linking()}) as site:
        # With pauses this long, the crawl says what it waits for.
        pauses = {"backoff_s": 10, "backoff_cap_s": 10, "new_host_patience_s": 3600}
        folder = CrawlFolder(tmp_path, **PATIENT, **pauses, resolve=[site.resolve_rule])
        shown, said, code = _press_g(folder, "http://a.small.test/", refused, "--out", "pages")
    host = refused.removeprefix("http://").rstrip("/")
    assert re.search(rf"{host} +\S+, next try in \d+ s", shown)
    assert re.search(r"Waiting for 1 host that does not answer, until 20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\.", shown)
    assert "Press g to give up hosts that do not answer" in shown
    assert code == 1
    assert "pages         1 in " in said
    assert "dead letters  robots_unreachable 1" in said
    assert len(list((tmp_path / "pages").rglob("*.md"))) == 1, "everything else is finished"
    folder.close()


def _press_g(folder: CrawlFolder, *words: str) -> tuple[str, str, int]:
    """Press the key when the view offers it and says until when the crawl waits: what the terminal and standard output
    show, and the exit code."""
    ours, theirs = pty.openpty()
    # setsid makes the terminal the controlling one of a new session, as a shell does.
    command = ["setsid", "--ctty", sys.executable, "-m", "curtsy.cli", "crawl", *words, "--config", str(folder.config)]
    crawl = subprocess.Popen(command, cwd=folder.path, stdin=theirs, stderr=theirs, stdout=subprocess.PIPE)
    os.close(theirs)
    shown = b""
    while b"Press g" not in shown or b", until 20" not in shown:
        shown += os.read(ours, 65536)
    os.write(ours, b"g")
    drain = threading.Thread(target=_drain, args=(ours,), daemon=True)
    drain.start()
    said = crawl.communicate(timeout=60)[0].decode()
    os.close(ours)
    return re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "", shown.decode()), said, crawl.returncode


def _drain(terminal: int) -> None:
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:
        pass


def test_a_crawl_without_a_page_exits_with_1_and_says_why(tmp_path: Path) -> None:
    robots = Say(b"User-agent: *\nDisallow: /\n")
    with SmallSite({"/robots.txt": robots, "/": linking()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        crawl = folder.start("crawl", "http://a.small.test/")
        said, _ = crawl.communicate(timeout=60)
        folder.close()
    assert crawl.returncode == 1
    assert "No page was fetched. http://a.small.test/: robots.txt disallows it by the line 'Disallow: /'." in said


def test_a_name_that_does_not_exist_is_given_up_soon(tmp_path: Path) -> None:
    """As a typo: `curtsy crawl example`. The resolver is on this machine."""

    async def crawled() -> tuple[int, str]:
        async with dns_serving({}) as dns:
            folder = CrawlFolder(tmp_path, **PATIENT, dns_servers=[dns.address])
            crawl = folder.start("crawl", "no-such-name")
            said, _ = await asyncio.to_thread(crawl.communicate, timeout=50)
            folder.close()
        return crawl.returncode, said

    code, said = asyncio.run(crawled())
    assert code == 1
    assert (
        "No page was fetched. https://no-such-name/: no_such_host (its host no-such-name does not answer: DNS: " in said
    )
