"""One host without a delay: as many requests at once as are allowed, runs of URLs, and what ends a run."""

from __future__ import annotations

import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder, finish
from small_site import Asked, Say, SmallSite, linking
from waiting import until

URL = "http://one.small.test/"
LINKS = [f"/{n}" for n in range(150)]


@dataclass(slots=True)
class Watch:
    """How many pages were being answered at once, and when each was requested."""

    under_way: int = 0
    most: int = 0
    starts: dict[str, float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def page(self, asked: Asked) -> Say:
        with self._lock:
            self.starts[asked.path] = time.monotonic()
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        time.sleep(0.002)
        with self._lock:
            self.under_way -= 1
        return linking()


def folder_of(path: Path, site: SmallSite) -> CrawlFolder:
    return CrawlFolder(path, resolve=[site.resolve_rule])


@pytest.mark.parametrize("per_host", [1, 4, 16])
def test_a_host_without_a_delay_has_so_many_requests_at_once_and_no_more(tmp_path: Path, per_host: int) -> None:
    watch = Watch()
    with SmallSite({"/": linking(*LINKS), **dict.fromkeys(LINKS, watch.page)}) as site:
        folder = folder_of(tmp_path, site)
        told = folder.run("crawl", URL, "--delay", "0", "--per-host", str(per_host))
        assert Counter(site.paths()) == Counter(["/", *LINKS]), "each once"
    assert told["pages"] == 1 + len(LINKS)
    assert watch.most <= per_host
    assert watch.most > 1 or per_host == 1
    # By the log's own times: the requests of a run follow each other.
    rows = folder.rows("SELECT start_ms, end_ms, delay_ms, per_host FROM requests ORDER BY start_ms")
    assert len(rows) == 2 + len(LINKS)
    assert max(sum(begun <= at < ended for begun, ended, *_ in rows) for at, *_ in rows) <= per_host
    assert {(delay, most) for _, _, delay, most in rows} == {(0, per_host)}
    verdict = folder.run("audit")
    assert (verdict["overlaps"], verdict["early"], verdict["presumed"]) == (0, 0, 0)


def test_a_host_that_asks_for_a_pause_gets_nothing_more_of_the_run(tmp_path: Path) -> None:
    watch = Watch()
    asked_at: list[float] = []

    def slow_down(asked: Asked) -> Say:
        if asked_at:
            return watch.page(asked)
        asked_at.append(time.monotonic())
        return Say(b"", 429, (("Retry-After", "2"),))

    pages = {"/": linking(*LINKS), **dict.fromkeys(LINKS, watch.page)} | {"/20": slow_down}
    with SmallSite(pages) as site:
        folder = folder_of(tmp_path, site)
        told = folder.run("crawl", URL, "--delay", "0")
    assert told["pages"] == 1 + len(LINKS)
    after = sorted(at - asked_at[0] for at in watch.starts.values() if at > asked_at[0])
    assert len(after) > 100
    assert after[0] >= 1.95, "Retry-After was 2 s"
    assert watch.most == 1


def test_forbidden_urls_of_a_run_are_skipped_and_the_others_requested(tmp_path: Path) -> None:
    watch = Watch()
    rules = Say(b"User-agent: *\nDisallow: /*7\n", headers=(("Content-Type", "text/plain"),))
    with SmallSite({"/": linking(*LINKS), "/robots.txt": rules, **dict.fromkeys(LINKS, watch.page)}) as site:
        folder = folder_of(tmp_path, site)
        folder.crawl(URL, delay_s=0.0)
        allowed = [link for link in LINKS if "7" not in link]
        assert Counter(site.paths()) == Counter(["/", *allowed])
    assert watch.most == 1
    assert set(folder.ends().values()) == {"done", "skipped robots"}


@pytest.mark.parametrize("per_host", [1, 4])
def test_max_pages_is_exact_with_runs(tmp_path: Path, per_host: int) -> None:
    with SmallSite({"/": linking(*LINKS), **dict.fromkeys(LINKS, linking())}) as site:
        folder = folder_of(tmp_path, site)
        folder.crawl(URL, delay_s=0.0, per_host=per_host, max_pages=37)
        assert len(site.paths()) == 37
    assert len(folder.pages()) == 37


def test_a_pause_ends_runs(tmp_path: Path) -> None:
    """Pages take as long as a run may: its next URL would be requested at once."""
    watch = Watch()

    def page(asked: Asked) -> Say:
        said = watch.page(asked)
        time.sleep(0.02)
        return said

    with SmallSite({"/": linking(*LINKS), **dict.fromkeys(LINKS, page)}) as site:
        folder = folder_of(tmp_path, site)
        crawl = folder.start("crawl", URL, "--delay", "0", "--json")
        until(lambda: len(watch.starts) > 10)
        assert folder.run("pause")["state"] == "paused"
        paused = time.monotonic()
        assert finish(crawl, code=3)["state"] == "paused"
        assert max(watch.starts.values()) < paused + 2
        left = len(LINKS) - len(watch.starts)
        assert left > 0
        told = folder.run("crawl", "--resume", "last")
        assert Counter(site.paths()) == Counter(["/", *LINKS]), "each once"
    assert (told["state"], told["pages"]) == ("finished", 1 + len(LINKS))
