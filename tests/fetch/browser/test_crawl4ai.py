"""Crawl4AI shows pages in the same browser, behind the same gate; it has an environment of its own (Makefile)."""

from __future__ import annotations

import gzip
import socket
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from crawl_folder import CrawlFolder
from fleet_folder import FleetFolder
from hostile import port_of, reached, write
from private_places import Listener
from rendered import Stage, browser_pids, staged
from small_site import SmallSite
from waiting import until

from curtsy.core.outcome import Fault
from curtsy.tinyweb import TinyWeb, truth

DELAY_S = 0.3
#: the server writes an end when the last byte has gone, the gate sees it a moment later
SLACK_US = 10_000

pytestmark = pytest.mark.skipif(
    find_spec("crawl4ai") is None, reason="Crawl4AI has an environment of its own: make test-crawl4ai"
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with (
        TinyWeb.start(hosts=10, pages=12) as web,
        SmallSite({}) as site,
        staged(
            site=site,
            renderer="crawl4ai",
            data_dir=tmp_path_factory.mktemp("data"),
            resolve=(site.resolve_rule, f"*.tinyweb.test=127.0.0.1:{web.port}"),
        ) as one,
    ):
        yield one


@pytest.mark.parametrize("number", [4, 9])
def test_it_shows_what_only_scripts_say(stage: Stage, number: int) -> None:
    org = truth(f"org-{number:04d}.tinyweb.test")
    place = next(place for place in org.where("mission") if place.source == "text")
    outcome = stage.show(f"http://{org.host}{place.path}")
    assert (outcome.status, outcome.fault) == (200, None)
    assert place.quote in outcome.body.decode()
    assert [one.kind for one in outcome.subresources] == ([] if number == 4 else ["script", "fetch"])


def test_a_hostile_page_reaches_no_private_place(stage: Stage, forbidden: Listener, datagrams: socket.socket) -> None:
    write(stage.pages, datagrams.getsockname()[1], f"//127.0.0.1:{port_of(forbidden)}")
    outcome = stage.show("http://a.small.test/hostile")
    assert (outcome.fault, b" done" in outcome.body) == (None, True)
    assert "/hostile/leads-there" in stage.site.paths()
    assert {one.host for one in outcome.subresources} == {"a.small.test"}
    assert forbidden.connections == 0
    assert not reached(datagrams)


def test_nothing_goes_from_one_visit_to_the_next(stage: Stage) -> None:
    html = b"<p>x<script>document.body.append('was [' + document.cookie + localStorage.getItem('a') + ']');" \
           b"document.cookie = 'a=1'; localStorage.setItem('a', 1)</script>"  # fmt: skip
    for _ in range(2):
        outcome = stage.show("http://a.small.test/keeps", html)
        assert b"was [null]" in outcome.body
    assert [one.headers["user-agent"] for one in stage.site.asked] == [stage.fetcher._settings.full_user_agent]


def test_limits_hold(stage: Stage) -> None:
    big = stage.show(
        "http://a.small.test/b", b"<p><script>document.body.append('x'.repeat(3e5))</script>", max_bytes=10**5
    )
    assert big.fault is Fault.TOO_LARGE
    hung = stage.show("http://a.small.test/h", b"<p><script>while (true);</script>", timeout_s=5)
    assert (hung.status, hung.fault) == (200, Fault.BROWSER)
    assert stage.show("http://a.small.test/p", b"<p>well").body.count(b"well") == 1


def test_its_files_are_kept_in_the_data_folder(stage: Stage) -> None:
    stage.show("http://a.small.test/p", b"<p>well")
    assert (stage.fetcher._settings.data_dir / "crawl4ai").is_dir()
    assert not (Path.cwd() / ".crawl4ai").exists()


def test_it_leaves_no_process(tmp_path: Path) -> None:
    with staged(renderer="crawl4ai", data_dir=tmp_path) as stage:
        stage.show("http://a.small.test/p", b"<p>x")
        engine = stage.engine
        assert engine is not None
        pids = engine.chromium.pids
        assert len(pids) > 3
    assert not set(pids) & set(browser_pids())


SCRIPTED = ["org-0004.tinyweb.test", "org-0009.tinyweb.test"]
SEEDS = [f"http://{host}/" for host in SCRIPTED]
VISITS = {"renderer": "crawl4ai", "render_timeout_s": 20, "render_slot_s": 25, "render_concurrency": 2}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=10, pages=10, faults=False, log=tmp_path / "access.log") as started:
        yield started


def test_a_crawl_with_it_is_as_polite_as_without(tmp_path: Path, web: TinyWeb) -> None:
    folder = CrawlFolder(tmp_path, web, **VISITS)
    try:
        done = folder.run("crawl", *SEEDS, "--render", "always", "--delay", str(DELAY_S), "--max-pages", "6")
        assert (done["state"], done["pages"]) == ("finished", 6)
        assert folder.run("audit")["visits"] == 6
    finally:
        folder.close()
    check_stored(folder, 6)
    check_polite(web)


def test_workers_of_a_fleet_show_pages_with_it(tmp_path: Path, web: TinyWeb) -> None:
    fleet = FleetFolder(tmp_path, web, **VISITS)
    try:
        fleet.worker("plain", "fetch.batch,fetch.slow", seats=1)
        fleet.worker("render", "render", seats=1)
        fleet.beat()
        crawl = fleet.submit(SEEDS, delay_s=DELAY_S, render="always", max_pages=6)
        counts = fleet.until_ended(crawl)
        assert (counts.pages, counts.failed) == (6, {})
        assert fleet.verdict().polite
        family = psutil.Process(fleet.parts["render"].pid).children(recursive=True)
        assert any("chrom" in process.name() for process in family)
        assert fleet.stop("render") == 0
        until(lambda: not any(process.is_running() for process in family))
    finally:
        fleet.close()
    check_stored(fleet, 6)
    check_polite(web)


def check_stored(folder: CrawlFolder, pages: int) -> None:
    segments = (folder.data / "segments").glob("*.warc.gz")
    stored = b"".join(gzip.decompress(segment.read_bytes()) for segment in segments)
    assert stored.count(b", crawl4ai\r\n") == pages


def check_polite(web: TinyWeb) -> None:
    for host in SCRIPTED:
        own = [line for line in web.requests() if line.host == host]
        assert own[0].path == "/robots.txt"
        assert not [line for line in own if line.path.startswith("/internal/")]
        for before, after in pairwise(own):
            assert after.start_us >= before.end_us - SLACK_US, f"{before} overlaps {after}"
            if after.path != "/app.js" and not after.path.startswith("/data/"):
                assert after.start_us >= before.start_us + DELAY_S * 1_000_000, f"{after} came too soon after {before}"
