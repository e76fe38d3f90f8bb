"""Crawls with a real Chromium over hosts that are filled by scripts: what they find, and how politely."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from crawl_folder import CrawlFolder, finish
from small_site import Asked, Say, SmallSite
from waiting import until
from warcio.archiveiterator import ArchiveIterator

from curtsy.content.needs_browser import SURE, is_probe
from curtsy.control.stored_audit import judged
from curtsy.core.errors import NoBrowser
from curtsy.core.settings import Settings
from curtsy.crawl import run
from curtsy.fetch import browser
from curtsy.fetch.chromium import find
from curtsy.rules.urls import fingerprint
from curtsy.store import hosts
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb, accesslog
from curtsy.tinyweb.facts import org_host, truth

DELAY_S = 0.3
SCRIPT, FETCHED, PROSE = org_host(4), org_host(9), org_host(1)
#: the server writes an end when the last byte has gone, the browser's gate sees it a moment later
SLACK_US = 10_000
SHORT_VISITS = {"render_timeout_s": 9, "render_slot_s": 11, "render_concurrency": 2}


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=10, pages=10, faults=False, log=tmp_path / "access.log") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, web: TinyWeb) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, web, **SHORT_VISITS, latency_factor=0)
    yield made
    made.close()


def is_loaded(path: str) -> bool:
    return path == "/app.js" or path.startswith("/data/")


def check_server_log(path: Path, delay_s: float) -> dict[str, list[accesslog.Line]]:
    """One request at a time on every host; the delay runs from the end of what a visit loaded."""
    by_host: dict[str, list[accesslog.Line]] = {}
    for line in sorted(accesslog.read(path), key=lambda line: line.start_us):
        by_host.setdefault(line.host, []).append(line)
    for lines in by_host.values():
        for before, after in pairwise(lines):
            assert after.start_us >= before.end_us - SLACK_US, f"{before} overlaps {after}"
            if not is_loaded(after.path):
                assert after.start_us >= before.start_us + delay_s * 1_000_000, f"{after} came too soon after {before}"
        assert not any(line.path.startswith("/internal/") for line in lines)
        assert lines[0].path == "/robots.txt"
    return by_host


def test_auto_renders_what_says_nothing_and_takes_the_rest_as_it_is(folder: CrawlFolder, web: TinyWeb) -> None:
    seeds = [f"http://{host}/" for host in (SCRIPT, PROSE)]
    counts = folder.crawl(*seeds, delay_s=DELAY_S, render="auto")
    assert counts.failed == {}
    pages = folder.pages()
    for host in (SCRIPT, PROSE):
        assert {f"http://{host}{path}" for path in ("/", "/about", "/contact", "/news")} <= pages
    kinds = dict(folder.rows("SELECT host, kind FROM urls WHERE state = 'done' AND reason = '' GROUP BY host, kind"))
    assert kinds == {SCRIPT: "b", PROSE: "p"}, "each host in its own way, and in no other"
    learnt = {host: rest for host, *rest in folder.rows("SELECT host, render_needed, render_plain FROM hosts")}
    assert learnt[SCRIPT][0] >= 8
    assert learnt[SCRIPT][1] == 0
    assert learnt[PROSE][0] == 0
    plain = folder.rows("SELECT count(*) FROM requests WHERE host = ? AND kind = 'p'", SCRIPT)[0][0]
    visits = folder.rows("SELECT count(*) FROM requests WHERE host = ? AND kind = 'b'", SCRIPT)[0][0]
    assert plain < visits, "after enough pages the others go to the browser directly"
    check_server_log(folder.path / "access.log", DELAY_S)
    with Store.open(folder.settings().effective_store_url) as store:
        verdict = judged(store, "curtsy")
    assert verdict.polite, verdict.findings
    assert verdict.visits == visits == len([url for url in pages if SCRIPT in url])


def test_always_visits_every_page_and_stores_what_the_browser_showed(tmp_path: Path, web: TinyWeb) -> None:
    folder = CrawlFolder(tmp_path, web, **SHORT_VISITS, render_screenshots=True)
    try:
        words = ("crawl", f"http://{FETCHED}/", "--render", "always", "--delay", str(DELAY_S), "--max-pages", "3")
        done = folder.run(*words, "--out", str(tmp_path / "pages.warc.gz"))
        assert done["pages"] == 3
        verdict = folder.run("audit")
        assert (verdict["visits"], verdict["third_party"]) == (3, 0)
        assert verdict["subresources"] >= 3
        assert not folder.rows("SELECT 1 FROM requests WHERE kind = 'p'"), "no page was asked for plainly"
        assert {row[0] for row in folder.rows("SELECT kind FROM requests")} == {"r", "s", "b", "subresource"}
        segment = next((folder.data / "segments").glob("*.warc.gz"))
        with segment.open("rb") as file:
            records = [(r.rec_type, r.rec_headers, r.content_stream().read()) for r in ArchiveIterator(file)]
        bodies = [body for kind, _, body in records if kind == "response"]
        assert any(truth(FETCHED).name.encode() in body for body in bodies), "what the script drew is in the body"
        pictures = [(head, body) for kind, head, body in records if kind == "resource"]
        assert len(pictures) == 3
        assert all(head["WARC-Target-URI"].startswith("urn:view:http://") for head, _ in pictures)
        assert all(body.startswith(b"\x89PNG") for _, body in pictures)
        facts = [body for kind, _, body in records if kind == "metadata"]
        assert all(b"rendered-by: " in fact for fact in facts)
        assert folder.rows("SELECT count(*) FROM pages WHERE etag IS NULL")[0][0] == 3
    finally:
        folder.close()


def test_a_killed_process_loses_nothing_and_leaves_no_browser(folder: CrawlFolder, web: TinyWeb) -> None:
    words = ("crawl", f"http://{SCRIPT}/", "--render", "always", "--delay", str(DELAY_S), "--max-pages", "5")
    crawl = folder.start(*words, "--json")
    until(lambda: folder.has_pages(2))
    children = psutil.Process(crawl.pid).children(recursive=True)
    crawl.send_signal(signal.SIGKILL)
    crawl.communicate()
    browsers = [child for child in children if "chrom" in " ".join(_words(child))]
    until(lambda: not any(child.is_running() for child in browsers))
    done = finish(folder.start("crawl", "--resume", "last", "--json"))
    assert (done["state"], done["pages"]) == ("finished", 5)
    assert len(folder.pages()) == 5
    check_server_log(folder.path / "access.log", DELAY_S)
    with Store.open(folder.settings().effective_store_url) as store:
        assert judged(store, "curtsy").polite


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_ctrl_c_ends_visits_and_the_crawl_continues_later(folder: CrawlFolder, web: TinyWeb) -> None:
    words = ("crawl", f"http://{SCRIPT}/", "--render", "always", "--delay", str(DELAY_S), "--max-pages", "4")
    crawl = folder.start(*words, "--json")
    until(lambda: folder.has_pages(2))
    crawl.send_signal(signal.SIGINT)
    left = finish(crawl, code=3)
    assert left["state"] == "interrupted"
    ((waiting,),) = folder.rows("SELECT count(*) FROM urls WHERE state = 'open' AND kind = 'b'")
    assert waiting > 0
    assert left["pending_render"] == folder.run("status")["pending_render"] == waiting
    done = finish(folder.start("crawl", "--resume", "last", "--json"))
    assert (done["state"], done["pages"]) == ("finished", 4)
    check_server_log(folder.path / "access.log", DELAY_S)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_to_the_whole_group_ends_a_crawl_quietly(folder: CrawlFolder, web: TinyWeb, sign: int) -> None:
    """As on a terminal: the browser's driver gets it too, and ends before us."""
    crawl = folder.start("crawl", f"http://{SCRIPT}/", "--render", "always", "--delay", str(DELAY_S), "--json")
    until(lambda: folder.has_pages(2))
    os.killpg(crawl.pid, sign)
    _, said = crawl.communicate(timeout=60)
    assert "Traceback" not in said
    assert "never retrieved" not in said
    assert "Connection closed" not in said


def test_rendered_pages_that_did_not_change_are_not_stored_again(tmp_path: Path) -> None:
    app = '<div id="root"></div><script>root.innerHTML = "{}: more than a few words.<a href=/n>n</a>"</script>'
    pages = {"/": Say(app.format("old").encode(), headers=(("Content-Type", "text/html"), ("ETag", '"v1"')))}
    pages["/n"] = Say(app.format("one").encode())
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], **SHORT_VISITS)
        try:
            folder.crawl("http://a.small.test/", delay_s=0, render="always")
            pages["/n"] = Say(app.format("two").encode())
            folder.crawl("http://a.small.test/", delay_s=0, render="always")
        finally:
            folder.close()
        assert not any("if-none-match" in one.headers for one in site.asked)
    found = folder.rows("SELECT crawl, url, unchanged, segment, body_offset FROM pages ORDER BY crawl, url")
    (_, _, *first), (_, _, *second), (_, _, *same), (_, _, *other) = found
    assert [first[0], second[0], same[0], other[0]] == [0, 0, 1, 0]
    assert same[1:] == first[1:]
    assert other[1:] != second[1:]


def test_relative_links_are_found_where_a_script_moved_the_page(tmp_path: Path) -> None:
    app = """<!doctype html><div id="root"></div><script>
      root.innerHTML = 'Words, more than a few, and <a href="next">more</a>';
      history.pushState({}, '', '/pushed/deep/')</script>"""
    with SmallSite({"/": Say(app.encode()), "/pushed/deep/next": Say(b"<p>there")}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], **SHORT_VISITS)
        try:
            folder.crawl("http://a.small.test/", delay_s=0, render="auto")
        finally:
            folder.close()
        assert "/next" not in site.paths()
    assert folder.pages() == {"http://a.small.test/", "http://a.small.test/pushed/deep/next"}


def test_what_was_learnt_of_a_host_is_taken_back_by_pages_that_need_no_browser(tmp_path: Path) -> None:
    """Some pages are asked plainly all the same; if they say enough, so are the next ones."""
    prose = Say(f"<p>{'Words that anybody can read without running anything at all. ' * 10}</p>".encode())
    paths = [f"/{n}" for n in range(200)]
    probes = [path for path in paths if is_probe(fingerprint(f"http://a.small.test{path}"))][:2]
    others = [path for path in paths if not is_probe(fingerprint(f"http://a.small.test{path}"))][:6]
    order = [others[0], *probes, *others[1:]]
    with SmallSite(dict.fromkeys(order, prose)) as site:
        # No visit is given up because its browser took seconds to start.
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], render_timeout_s=50, render_slot_s=60)
        with Store.open(folder.settings().effective_store_url) as store:
            store.run(hosts.learn_rendering, {"a.small.test": (SURE, 0)})
        try:
            counts = folder.crawl(*(f"http://a.small.test{path}" for path in order), delay_s=0.05, render="auto")
        finally:
            folder.close()
    assert counts.pages == len(order)
    asked = folder.rows("SELECT url, kind FROM requests WHERE kind IN ('p', 'b')")
    assert {url.rpartition("/")[2] for url, kind in asked if kind == "b"} == {others[0][1:]}
    assert len(asked) == len(order), "each was asked once, in one way"
    assert folder.rows("SELECT render_needed, render_plain FROM hosts") == [(SURE, len(order) - 1)]


def test_a_page_that_robots_forbid_is_not_loaded_by_a_visit(tmp_path: Path) -> None:
    app = b'<!doctype html><div id="root"></div><script>fetch("/secret.json"); fetch("/open.json")</script>'

    def answer(asked: Asked) -> Say:
        return Say(b"{}", headers=(("Content-Type", "application/json"),))

    robots = Say(b"User-agent: *\nDisallow: /secret\n", headers=(("Content-Type", "text/plain"),))
    given = {"/": Say(app), "/robots.txt": robots, "/secret.json": answer, "/open.json": answer}
    with SmallSite(given) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], **SHORT_VISITS)
        try:
            counts = folder.crawl("http://a.small.test/", delay_s=0, render="always")
        finally:
            folder.close()
        assert counts.pages == 1
        asked = [one.path for one in site.asked]
    assert "/open.json" in asked
    assert "/secret.json" not in asked


def test_a_crawl_whose_browser_never_starts_says_so_and_continues_when_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "_PATIENCE_S", {"always": 0.5})
    monkeypatch.setattr(browser, "_PAUSE_S", 0.2)
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\necho 'no such library' >&2\nexit 1\n")
    program.chmod(0o755)
    with SmallSite({"/": Say(b"<p>well")}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], chromium=str(program), drain_s=1)
        try:
            with pytest.raises(NoBrowser, match=r"no such library\. Pages of crawl .* wait for it; nothing is lost"):
                folder.crawl("http://a.small.test/", delay_s=0, render="always")
            assert site.paths() == []
            assert folder.rows("SELECT 1 FROM meta WHERE key = 'clean:0'"), "every slot went back"
            program.write_text(f'#!/bin/sh\nexec {find(Settings())} "$@"\n')
            assert folder.resume().pages == 1
        finally:
            folder.close()
        assert site.paths() == ["/"]
