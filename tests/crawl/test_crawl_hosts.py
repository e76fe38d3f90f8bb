"""What a host sees: how many requests at once, how far apart, through which proxy, and after a lost frontier."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import IO

import pytest
from crawl_folder import CrawlFolder, finish
from small_site import Answer, Asked, Say, SmallSite, linking
from waiting import until

from curtsy.services.valkey import EmbeddedValkey
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import judge

#: the site's own scheduling on shared cores
TOLERANCE_S = 0.05


@dataclass(slots=True)
class Watched:
    """Pages that take a while, and how many of them were being answered at once."""

    takes_s: float
    starts: list[tuple[float, str]] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def page(self, *links: str) -> Answer:
        said = linking(*links)

        def answer(asked: Asked) -> Say:
            with self._lock:
                self.starts.append((time.monotonic(), asked.host))
                self.under_way += 1
                self.most = max(self.most, self.under_way)
            time.sleep(self.takes_s)
            with self._lock:
                self.under_way -= 1
            return said

        return answer

    def shortest_gap_s(self) -> float:
        times = sorted(at for at, _ in self.starts)
        return min(after - before for before, after in pairwise(times))


@pytest.fixture
def watched() -> Watched:
    return Watched(takes_s=0.35)


@dataclass(slots=True)
class Crowd:
    """Pages that are answered when as many are being asked for as may be, and a while later: for one more to come."""

    size: int
    stays_s: float
    starts: list[float] = field(default_factory=list)
    under_way: int = 0
    most: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _door: threading.Barrier = field(init=False)

    def __post_init__(self) -> None:
        self._door = threading.Barrier(self.size)

    def page(self, _: Asked) -> Say:
        with self._lock:
            self.starts.append(time.monotonic())
            self.under_way += 1
            self.most = max(self.most, self.under_way)
        self._door.wait(timeout=20)
        time.sleep(self.stays_s)
        with self._lock:
            self.under_way -= 1
        return linking()


DELAY_S = 0.1


def crowded(folder: Path, per_host: int) -> tuple[Crowd, CrawlFolder]:
    """A host that is asked by so many at once, in a process of its own: the site is not held up by the crawler."""
    crowd = Crowd(per_host, stays_s=2 * DELAY_S)
    links = [f"/{n}" for n in range(2 * per_host)]
    with SmallSite({"/": linking(*links), **dict.fromkeys(links, crowd.page)}) as site:
        crawls = CrawlFolder(folder, resolve=[site.resolve_rule], fetch_timeout_s=25, slot_s=30, url_lease_s=30)
        told = crawls.run("crawl", "http://one.small.test/", "--delay", str(DELAY_S), "--per-host", str(per_host))
        assert told["pages"] == 1 + len(links)
    return crowd, crawls


@pytest.mark.parametrize("per_host", range(1, 9))
def test_a_host_has_so_many_requests_at_once_and_no_more(tmp_path: Path, per_host: int) -> None:
    crowd, folder = crowded(tmp_path, per_host)
    assert crowd.most == per_host
    # By the log's own times without any tolerance: they are the ones that the turns were counted from.
    rows = folder.rows("SELECT start_ms, end_ms, delay_ms, per_host FROM requests ORDER BY start_ms")
    assert len(rows) == 2 + 2 * per_host
    assert all((delay, most) == (DELAY_S * 1000, per_host) for _, _, delay, most in rows)
    assert min(after[0] - before[0] for before, after in pairwise(rows)) >= DELAY_S * 1000
    assert max(sum(begun <= at < ended for begun, ended, *_ in rows) for at, *_ in rows) == per_host
    verdict = folder.run("audit")
    assert (verdict["overlaps"], verdict["early"]) == (0, 0)


@pytest.mark.alone
@pytest.mark.parametrize("per_host", [1, 8])
def test_so_many_requests_at_once_begin_a_delay_apart_by_the_servers_clock(tmp_path: Path, per_host: int) -> None:
    crowd, _ = crowded(tmp_path, per_host)
    assert min(after - before for before, after in pairwise(sorted(crowd.starts))) >= DELAY_S - TOLERANCE_S


def test_hosts_of_one_domain_are_one_where_the_domain_is_the_unit(tmp_path: Path, watched: Watched) -> None:
    with SmallSite({"/": watched.page("/a"), "/a": watched.page()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], politeness_unit="domain")
        folder.crawl("http://one.small.test/", "http://two.small.test/", delay_s=0.1)
        assert {one.host for one in site.asked if one.path == "/robots.txt"} == {"one.small.test", "two.small.test"}
    assert len(folder.pages()) == 4
    assert watched.most == 1
    assert watched.shortest_gap_s() >= 0.3 - TOLERANCE_S
    assert folder.rows("SELECT DISTINCT host FROM requests") == [("small.test",)]


def test_a_name_with_the_roots_dot_is_the_same_host(tmp_path: Path, watched: Watched) -> None:
    with SmallSite({"/": watched.page("/a"), "/a": watched.page()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        folder.crawl("http://one.small.test/", "http://one.small.test./", delay_s=0.1)
        assert {one.host for one in site.asked} >= {"one.small.test"}
    assert len(folder.pages()) == 4
    assert watched.most == 1
    assert watched.shortest_gap_s() >= 0.3 - TOLERANCE_S
    assert folder.rows("SELECT DISTINCT host FROM requests") == [("one.small.test",)]


def test_a_host_whose_name_was_not_found_says_so_and_is_asked_once_it_has_an_address(tmp_path: Path) -> None:
    url = "http://one.small.test/"
    # Nobody answers there: the host is left alone for 100 s at least.
    folder = CrawlFolder(tmp_path, dns_servers=["127.0.0.1"], backoff_s=200, backoff_cap_s=300, host_patience_s=3600)
    with SmallSite({"/": linking()}) as site:
        stuck = folder.start("crawl", url)
        assert stuck.stderr is not None
        until_said(stuck.stderr, "waiting for 1 host that does not answer: one.small.test (dns_failed); next try in ")
        why = folder.run("explain", url)
        assert why["fault"] == "dns_failed"
        assert any("has not answered since" in said for said in why["why"])
        assert [(h["host"], h["fault"]) for h in folder.run("hosts", "list")["hosts"]] == [
            ("one.small.test", "dns_failed")
        ]
        stuck.send_signal(signal.SIGINT)
        stuck.communicate(timeout=60)
        crawled = finish(folder.start("crawl", url, "--resolve", site.resolve_rule, "--json"), timeout_s=40)
        assert crawled["pages"] == 1
        assert folder.run("explain", url)["fault"] is None
    folder.close()


def until_said(stream: IO[str], words: str) -> None:
    assert any(words in line for line in stream), f"never said: {words}"


def test_an_origin_without_rules_does_not_keep_the_others_of_its_domain_waiting(tmp_path: Path) -> None:
    def robots(asked: Asked) -> Say:
        return Say(b"Oh dear.", 500) if asked.host.startswith("bad") else Say(b"", 404)

    links = [f"/{n}" for n in range(5)]
    pages: dict[str, Answer] = {"/robots.txt": robots, "/": linking(*links), **{link: linking() for link in links}}
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], politeness_unit="domain", host_patience_s=2)
        counts = folder.crawl("http://bad.small.test/", "http://good.small.test/")
        assert {one.host for one in site.asked if one.path != "/robots.txt"} == {"good.small.test"}
    assert (counts.pages, counts.pending) == (6, 0)
    assert counts.failed == {"host_unreachable": 1}


def test_rules_that_lie_on_a_host_that_fails_stay_unknown_until_patience_ends(tmp_path: Path) -> None:
    def robots(asked: Asked) -> Say:
        if asked.host.startswith("one"):
            return Say(b"", 302, (("Location", "http://two.small.test/robots.txt"),))
        return Say(b"Oh dear.", 500)

    with SmallSite({"/robots.txt": robots, "/": linking()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], host_patience_s=2)
        counts = folder.crawl("http://one.small.test/")
        assert site.paths() == []
    assert (counts.failed, counts.pending) == ({"robots_unreachable": 1}, 0)


def test_a_host_whose_rules_fail_once_is_crawled(tmp_path: Path) -> None:
    asked = 0

    def robots(_: Asked) -> Say:
        nonlocal asked
        asked += 1
        return Say(b"Oh dear.", 500) if asked == 1 else Say(b"User-agent: *\nDisallow: /x\n")

    links = [f"/{n}" for n in range(12)]
    pages: dict[str, Answer] = {
        "/robots.txt": robots,
        "/": linking("/x", *links),
        **{link: linking() for link in links},
    }
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], host_patience_s=1)
        counts = folder.crawl("http://one.small.test/", delay_s=0.2)
        assert "/x" not in site.paths()
    assert (counts.pages, counts.failed, counts.skipped) == (13, {}, {"robots": 1})


def test_requests_go_through_a_proxy_and_around_one_that_is_dead(tmp_path: Path) -> None:
    """A proxy is asked for whole URLs."""
    here = "http://93.184.216.34"
    pages: dict[str, Answer] = {f"{here}/": linking("/a"), f"{here}/a": linking()}
    with SmallSite({}) as gone:
        dead = f"http://127.0.0.1:{gone.port}"
    with SmallSite(pages) as proxy:
        folder = CrawlFolder(tmp_path, proxies={"default": [dead, f"http://127.0.0.1:{proxy.port}"]})
        counts = folder.crawl(f"{here}/", "http://10.0.0.1/")
        assert proxy.paths() == [f"{here}/robots.txt", f"{here}/", f"{here}/a"]
    assert folder.pages() == {f"{here}/", f"{here}/a"}
    # The guard holds behind a proxy too.
    assert counts.skipped == {"forbidden_address": 1}
    assert counts.failed == {}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=3, pages=8, faults=False, log=tmp_path / "access.log") as running:
        yield running


def test_a_lost_frontier_is_rebuilt_and_no_host_is_asked_in_the_quiet_time(tmp_path: Path, web: TinyWeb) -> None:
    folder = CrawlFolder(tmp_path, web, slot_s=2.5, fetch_timeout_s=0.9, connect_timeout_s=0.5, url_lease_s=3)
    process = folder.start("crawl", *web.seeds, "--delay", "0.2", "--json")
    until(lambda: folder.has_pages(6))
    server = EmbeddedValkey.running(folder.data)
    assert server is not None
    assert server.pid
    os.kill(server.pid, signal.SIGKILL)
    lost_us = time.time() * 1e6
    told = finish(process)
    folder.close()
    assert (told["state"], told["pending"], told["failed"]) == ("finished", 0, {})
    assert told["pages"] == len(folder.pages()) == 24
    after = [line.start_us for line in web.requests() if line.start_us > lost_us + 0.1e6]
    assert min(after) - lost_us >= (2.5 + 0.2) * 1e6 - 50_000
    assert judge(web.requests(), 0.2).ok
    verdict = folder.run("audit")
    assert (verdict["overlaps"], verdict["early"], verdict["robots_violations"], verdict["gaps"]) == (0, 0, 0, 1)
