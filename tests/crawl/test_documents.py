"""Documents are pages: their links are followed, their facts stored, and a file that cannot be read is kept."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import CrawlFolder
from small_site import Asked, Say, SmallSite, linking

from curtsy.core.document_facts import DocumentFacts
from curtsy.core.model import Page
from curtsy.store import pages
from curtsy.store.engine import Store
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import read_page

AT = "http://a.small.test"
NOTE = b"Our report: http://a.small.test/report.csv and http://a.small.test/more\n"


Make = Callable[..., CrawlFolder]


def say(content_type: str, body: bytes, *headers: tuple[str, str]) -> Say:
    return Say(body, headers=(("Content-Type", content_type), *headers))


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Make]:
    made: list[CrawlFolder] = []

    def folder_of(site: SmallSite, **changes: Any) -> CrawlFolder:
        made.append(CrawlFolder(tmp_path, resolve=[site.resolve_rule], **changes))
        return made[0]

    yield folder_of
    for one in made:
        one.close()


def stored(folder: CrawlFolder, crawl: int = 1) -> dict[str, Page]:
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        return {page.url.removeprefix(AT): page for page in pages.chunk(tx, crawl)[0]}


def body_of(folder: CrawlFolder, page: Page) -> bytes:
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        record = read_page(tx, open_segments(folder.settings().segments_dir, 1), page)
    assert record is not None
    return record.body


def test_links_in_documents_are_followed_and_their_facts_are_stored(folder: Make) -> None:
    found = {
        "/": linking("/note.txt", "/raw", "/secret.txt"),
        "/note.txt": say("text/plain; charset=utf-8", NOTE),
        "/report.csv": say("text/csv", b"name,site\nplum,http://a.small.test/from-csv\n"),
        "/more": linking(),
        "/from-csv": linking(),
        "/raw": say("application/octet-stream", b"x", ("Content-Disposition", "attachment; filename=r.csv")),
        "/secret.txt": say("text/plain", b"http://a.small.test/unseen", ("X-Robots-Tag", "noindex, nofollow")),
    }
    with SmallSite(found) as site:
        here = folder(site)
        counts = here.crawl(f"{AT}/")
    ends = {url.removeprefix(AT): end for url, end in here.ends().items()}
    assert {url for url, end in ends.items() if end == "done"} >= {"/note.txt", "/report.csv", "/more"}
    assert ends["/secret.txt"] == "skipped noindex"
    assert "/unseen" not in ends
    assert counts.failed == {}
    kept = stored(here)
    assert kept["/note.txt"].document == DocumentFacts(kind="text", pages=1)
    assert kept["/report.csv"].document == DocumentFacts(kind="csv", pages=1)
    assert kept["/"].document is None
    assert body_of(here, kept["/note.txt"]) == NOTE


def test_a_document_that_cannot_be_read_is_stored_with_its_problem(folder: Make) -> None:
    scanned, late = b"\n \n", b"a,b\n" + b"1,2\n" * 2_000_000
    found = {
        "/": linking("/scanned.txt", "/late.csv"),
        "/scanned.txt": say("text/plain", scanned),
        "/late.csv": say("text/csv", late),
    }
    with SmallSite(found) as site:
        here = folder(site, document_timeout_s=0.5, fetch_timeout_s=2)
        counts = here.crawl(f"{AT}/")
    assert (counts.pages, counts.failed) == (3, {})
    kept = stored(here)
    assert [kept[path].document.problem for path in ("/scanned.txt", "/late.csv")] == ["no_text", "timeout"]  # type: ignore[union-attr]
    assert kept["/late.csv"].truncated
    assert body_of(here, kept["/late.csv"]) == late
    explained = here.run("explain", f"{AT}/late.csv")
    assert (explained["state"], explained["document"]["problem"]) == ("done", "timeout")
    assert "'timeout': reading it took too long. Its body is stored." in explained["why"][0]


def test_what_is_refused_has_a_reason(folder: Make) -> None:
    found = {
        "/": linking("/large.txt", "/a.pdf", "/b.docx"),
        "/large.txt": say("text/plain", b"x" * 200_001),
        "/a.pdf": say("application/pdf", b"%PDF-1.4"),
        "/b.docx": say("application/vnd.openxmlformats-officedocument.wordprocessingml.document", b"PK"),
    }
    with SmallSite(found) as site:
        here = folder(site, max_document_mb=0.2, document_types=["text", "pdf"])
        here.crawl(f"{AT}/")
    assert here.ends()[f"{AT}/large.txt"] == "skipped document_too_large"
    assert here.ends()[f"{AT}/b.docx"] == "done document_type"
    assert "larger than max_document_mb" in here.run("explain", f"{AT}/large.txt")["why"][0]
    assert "not in document_types" in here.run("explain", f"{AT}/b.docx")["why"][0]


def test_an_unchanged_document_is_read_again_for_its_links(folder: Make) -> None:
    def note(asked: Asked) -> Say:
        if asked.headers.get("if-none-match") == '"1"':
            return Say(status=304, headers=(("ETag", '"1"'),))
        return say("text/plain", NOTE, ("ETag", '"1"'))

    with SmallSite({"/note.txt": note, "/report.csv": say("text/csv", b"a,b\n1,2\n"), "/more": linking()}) as site:
        here = folder(site)
        here.crawl(f"{AT}/note.txt")
        here.crawl(f"{AT}/note.txt")
    again = stored(here, 2)
    assert set(again) == {"/note.txt", "/report.csv", "/more"}
    assert again["/note.txt"].unchanged
    assert again["/note.txt"].document == DocumentFacts(kind="text", pages=1)


def test_many_documents_at_once_stay_within_their_memory(folder: Make) -> None:
    paths = [f"/{n}.txt" for n in range(12)]
    body = b"word " * 100_000
    hosts = [f"http://h{n}.small.test/" for n in range(12)]
    pages_ = {path: say("text/plain", body + path.encode()) for path in paths} | {
        "/": lambda asked: linking(f"/{asked.host.partition('.')[0][1:]}.txt")
    }
    with SmallSite(pages_) as site:
        here = folder(site, max_document_mb=1, document_memory_mb=1.2)
        counts = here.crawl(*hosts)
    assert (counts.pages, counts.failed) == (24, {})
    faults = dict(here.rows("SELECT fault, count(*) FROM requests WHERE fault IS NOT NULL GROUP BY fault"))
    # The site may refuse connections; what had no room is tried again and counts as no attempt.
    assert set(faults) <= {"no_room", "connect_failed"}, faults


def test_a_run_that_ends_while_a_document_is_read_fetches_it_again(folder: Make) -> None:
    late = b"a,b\n" + b"1,2\n" * 2_500_000
    with SmallSite({"/late.csv": say("text/csv", late)}) as site:
        here = folder(site, document_timeout_s=600, drain_s=0.2, fetch_timeout_s=2)
        crawl = here.start("crawl", f"{AT}/late.csv", "--delay", "0.02", "--json")
        while not [one for one in site.asked if one.path == "/late.csv"]:
            crawl.poll()
        crawl.send_signal(signal.SIGTERM)
        assert crawl.wait(60) == 3
        assert here.rows("SELECT state, reason, attempts, crashes FROM urls") == [("open", "cancelled", 0, 0)]
        counts = here.resume()
    assert (counts.pages, counts.failed, len(site.paths())) == (1, {}, 2)
