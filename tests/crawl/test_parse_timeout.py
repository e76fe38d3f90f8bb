"""A page whose reading takes too long is a dead letter with its body; the crawl, and whoever ends it, do not wait."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import uvloop
from crawl_folder import CrawlFolder, finish
from small_site import Asked, Say, SmallSite, linking

from curtsy.content import reading
from curtsy.core.shutdown import StopFlag
from curtsy.grounding import page_evidence
from curtsy.records import stages
from curtsy.services import backends
from curtsy.services.reader_process import heavy_page_reader
from curtsy.store import pages
from curtsy.store.engine import Store
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import read_page

#: more than ten thousand tags, and minutes of lexbor's time: every <option> looks through those before it. The scanner
#: leaves pages with a template to lexbor
HEAVY = b"<!doctype html><title>Heavy</title><template></template><a href=/after>x</a><select>" + b"<option>" * 120_000
SLOW = b"<!doctype html><title>Slow</title><a href=/after>x</a>"


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURTSY_SLOW_PAGE", "/slow")


@pytest.fixture
def site() -> Iterator[SmallSite]:
    found = {
        "/": linking("/slow-python", "/slow-re", "/heavy", "/large", "/plain"),
        "/slow-python": Say(SLOW),
        "/slow-re": Say(SLOW),
        "/heavy": Say(HEAVY),
        "/large": Say(b"<title>Large</title>" + b"<p>word " * 90_000 + b"<a href=/last>x</a>"),
        "/plain": linking("/end"),
        "/end": linking(),
        "/last": linking(),
        "/after": linking(),
    }
    with SmallSite(found) as made:
        yield made


def folder_of(path: Path, site: SmallSite) -> CrawlFolder:
    return CrawlFolder(path, resolve=[site.resolve_rule], parse_timeout_s=0.5)


@pytest.mark.usefixtures("slow")
def test_pages_that_take_too_long_are_dead_letters_with_their_bodies(tmp_path: Path, site: SmallSite) -> None:
    folder = folder_of(tmp_path, site)
    try:
        crawl = folder.start("crawl", "http://a.small.test/", "http://b.small.test/plain", "--delay", "0.02", "--json")
        _, err = crawl.communicate(timeout=120)
        assert crawl.returncode == 1, err  # there are dead letters
    finally:
        folder.close()
    at = "http://a.small.test"
    ends = folder.ends()
    late = {f"{at}/slow-python", f"{at}/slow-re", f"{at}/heavy"}
    assert {url for url, end in ends.items() if end == "failed parse_timeout"} == late
    assert {f"{at}/end", f"{at}/last", "http://b.small.test/end"} <= {url for url, end in ends.items() if end == "done"}
    assert f"{at}/after" not in ends
    assert all(f"{url}" in err for url in late)
    assert "parse_timeout" in err
    # What could not be read is stored, counts as no page, and has its dead letter.
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        segments = open_segments(folder.settings().segments_dir, 1)
        stored = {page.url: read_page(tx, segments, page) for page in pages.chunk(tx, 1)[0]}
    assert stored[f"{at}/heavy"].body == HEAVY  # type: ignore[union-attr]
    assert stored[f"{at}/slow-re"].body == SLOW  # type: ignore[union-attr]
    assert folder.counts().pages == len(stored) - len(late)
    assert folder.counts().failed == {"parse_timeout": 3}
    explained = folder.run("explain", f"{at}/heavy")
    assert explained["reason"] == "parse_timeout"
    assert "parse_timeout_s" in explained["why"][0]
    assert explained["page"] in explained["why"][0]


def test_a_dead_letter_is_replayed_like_any_other(
    tmp_path: Path, site: SmallSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = folder_of(tmp_path, site)
    try:
        with monkeypatch.context() as faulty:
            faulty.setenv("CURTSY_SLOW_PAGE", "/slow")
            only = folder.start("crawl", "http://a.small.test/slow-python", "--delay", "0.02", "--json")
            finish(only, code=1)
        assert folder.rows("SELECT title FROM pages") == [(None,)]
        assert folder.run("failures", "replay", "--cause", "parse_timeout")["dead_letters"] == 1
        finish(folder.start("crawl", "--resume", "last", "--json"))
    finally:
        folder.close()
    assert folder.ends() == {"http://a.small.test/slow-python": "done", "http://a.small.test/after": "done"}
    # The same body: its row is written anew and refers to where it stands.
    assert sorted(folder.rows("SELECT title, same_as FROM pages")) == [("Page", None), ("Slow", None)]
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        segments = open_segments(folder.settings().segments_dir, 1)
        bodies = [read_page(tx, segments, page) for page in pages.chunk(tx, 1)[0]]
    assert SLOW in [record.body for record in bodies if record is not None]


@pytest.mark.usefixtures("slow")
def test_a_crawl_that_reads_slow_pages_ends_when_it_is_asked_to(tmp_path: Path) -> None:
    many = {f"/slow-{kind}{n}": Say(SLOW) for n in range(40) for kind in ("python", "re")}
    asked: list[str] = []

    def first(one: Asked) -> Say:
        asked.append(one.path)
        return linking(*many)

    with SmallSite({"/": first, **many}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], parse_timeout_s=1, drain_s=1)
        try:
            crawl = folder.start("crawl", "http://a.small.test/", "--delay", "0.02", "--json")
            assert crawl.stderr is not None
            assert any("parse_timeout" in line for line in crawl.stderr)
            crawl.send_signal(signal.SIGTERM)
            assert crawl.wait(60) == 3
        finally:
            folder.close()
    assert folder.counts().pending > 0


def test_a_page_that_is_heavy_and_ordinary_is_read(site: SmallSite, tmp_path: Path) -> None:
    folder = folder_of(tmp_path, site)
    try:
        counts = folder.crawl("http://a.small.test/large")
    finally:
        folder.close()
    assert (counts.pages, counts.failed) == (2, {})
    assert ("Large", 0) in folder.rows("SELECT title, truncated FROM pages")


async def all_stages(folder: CrawlFolder) -> None:
    built = backends.build(folder.settings())
    await built.open()
    try:
        await stages.run_all(built, 1, StopFlag())
    finally:
        await built.close()


def test_a_stage_that_reads_too_long_is_a_dead_letter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*_: object) -> list[dict[str, object]]:
        while True:
            time.monotonic()

    with SmallSite({"/": linking("/x"), "/x": linking()}) as site:
        folder = folder_of(tmp_path, site)
        monkeypatch.setattr(page_evidence, "headings", endless)
        try:
            counts = folder.crawl("http://a.small.test/", schema="page")
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(all_stages(folder))
        finally:
            folder.close()
    assert (counts.pages, counts.pending, folder.counts().failed_stages) == (2, 0, {"extract": 2})
    assert set(folder.rows("SELECT stage, cause FROM failures")) == {("extract", "parse_timeout")}


def test_the_process_beside_is_ended_by_the_kernel_and_started_again() -> None:
    began = time.monotonic()
    with pytest.raises(reading.ParseTimeout):
        heavy_page_reader.read(0.2, HEAVY, "text/html", "http://a.small.test/", "curtsy", False)
    assert time.monotonic() - began < 60  # seconds on a busy machine, not lexbor's minutes
    again = heavy_page_reader.read(5.0, SLOW, "text/html", "http://a.small.test/", "curtsy", False)
    assert (again.title, again.links) == ("Slow", ["/after"])
    child = heavy_page_reader._child
    pid = child.start()
    child.kill()
    assert heavy_page_reader.read(5.0, SLOW, "text/html", "http://a.small.test/", "curtsy", False).title == "Slow"
    assert child.id not in (None, pid)
    heavy_page_reader.close()
