"""A second crawl of the same site: conditional requests, what did not change, and what a host remembers of us."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder
from small_site import Asked, Say, SmallSite, linking

from curtsy.tinyweb import TinyWeb

HOSTS = ("etag", "last-modified", "changing")
SEEDS = [f"http://{name}.tinyweb.test/" for name in HOSTS]


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=0, faults=HOSTS, log=tmp_path / "access.log") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, web: TinyWeb) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, web, max_attempts=2)
    yield made
    made.close()


def stored_bytes(folder: CrawlFolder) -> int:
    return sum(path.stat().st_size for path in (folder.data / "segments").rglob("*.warc.gz"))


def test_what_did_not_change_is_not_stored_again_and_its_links_are_still_followed(
    folder: CrawlFolder, web: TinyWeb
) -> None:
    folder.crawl(*SEEDS)
    first, before = folder.pages(), stored_bytes(folder)
    asked = len(web.requests())
    folder.crawl(*SEEDS)
    assert folder.pages() == first
    statuses = {line.host.partition(".")[0] + line.path: line.status for line in web.requests()[asked:]}
    assert {statuses[name] for name in ("etag/tagged", "etag/weak", "last-modified/dated")} == {304}
    assert statuses["changing/news"] == statuses["etag/"] == 200
    unchanged = {url for (url,) in folder.rows("SELECT url FROM pages WHERE crawl = 2 AND unchanged")}
    # Pages without a validator are asked for in full; their digest says that they are the same.
    assert unchanged == first - {"http://changing.tinyweb.test/news"}
    # One new body, the head of a new segment, and the redirects and errors of this crawl.
    ((others, bytes_),) = folder.rows("SELECT count(*), sum(body_length) FROM responses WHERE crawl = 2")
    assert stored_bytes(folder) - before < 3_000 + bytes_ + 800 * others
    assert others < 6
    assert {status for (status,) in folder.rows("SELECT status FROM pages WHERE crawl = 2")} == {200}
    lines = folder.start("export", "--format", "jsonl").communicate(timeout=30)[0].splitlines()
    assert len(lines) == len(first)
    assert all(json.loads(line)["segment"] for line in lines)


def home(asked: Asked) -> Say:
    """Leads to /leaf; 304 to whoever has it."""
    if asked.headers.get("if-none-match") == '"v1"':
        return Say(b"", 304, (("ETag", '"v1"'),))
    page = linking("/leaf")
    return Say(page.body, 200, (*page.headers, ("ETag", '"v1"')))


def test_links_of_a_page_that_answers_304_lead_on(tmp_path: Path) -> None:
    """The second crawl meets /leaf only through the stored body of the home page."""

    with SmallSite({"/": home, "/leaf": linking(title="Leaf")}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        folder.crawl("http://one.small.test/")
        folder.crawl("http://one.small.test/")
        assert folder.pages() == {"http://one.small.test/", "http://one.small.test/leaf"}
        assert site.paths() == ["/", "/leaf", "/", "/leaf"]
        assert "if-none-match" not in site.asked[1].headers
        titles = dict(folder.rows("SELECT url, title FROM pages WHERE crawl = 2"))
        assert titles["http://one.small.test/"] == "Page"


def test_a_page_that_answers_304_and_cannot_be_read_any_more_is_asked_for_again(tmp_path: Path) -> None:
    with SmallSite({"/": home, "/leaf": linking(title="Leaf")}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        folder.crawl("http://one.small.test/")
        for segment in (folder.data / "segments").iterdir():
            segment.unlink()
        folder.crawl("http://one.small.test/")
        assert folder.pages() == {"http://one.small.test/", "http://one.small.test/leaf"}
        assert site.paths() == ["/", "/leaf", "/", "/", "/leaf"]


def test_a_jar_is_kept_only_when_asked_for(tmp_path: Path) -> None:
    home = linking("/next")
    pages = {"/": Say(home.body, 200, (*home.headers, ("Set-Cookie", "seen=yes; Path=/"))), "/next": linking()}
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        folder.crawl("http://one.small.test/")
        folder.crawl("http://one.small.test/", cookies=True)
        sent = [(one.path, one.headers.get("cookie")) for one in site.asked if one.path != "/robots.txt"]
        assert sent == [("/", None), ("/next", None), ("/", None), ("/next", "seen=yes")]


def test_headers_of_a_host_go_to_that_host_and_not_into_the_segments(tmp_path: Path) -> None:
    with SmallSite({"/": linking()}) as site:
        rule = {"one.small.test": {"headers": {"Authorization": "Bearer secret-word"}}}
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], hosts=rule)
        folder.crawl("http://one.small.test/", "http://two.small.test/")
        sent = {one.host: one.headers.get("authorization") for one in site.asked if one.path == "/"}
        assert sent == {"one.small.test": "Bearer secret-word", "two.small.test": None}
        folder.start("export", "--format", "warc", "--out", "all.warc.gz").communicate(timeout=30)
        assert b"secret-word" not in gzip.decompress((tmp_path / "all.warc.gz").read_bytes())


@pytest.mark.parametrize(("tag", "kept", "found"), [("noindex", {"/leaf"}, True), ("nofollow", {"/"}, False)])
def test_what_a_304_says_of_robots_is_heeded(tmp_path: Path, tag: str, kept: set[str], found: bool) -> None:
    """The site thinks better of it after the first crawl; its page stays as it is."""
    said: list[tuple[str, str]] = []

    def home(asked: Asked) -> Say:
        if asked.headers.get("if-none-match") == '"v1"':
            return Say(b"", 304, (("ETag", '"v1"'), ("Content-Type", "text/plain"), *said))
        page = linking("/leaf")
        return Say(page.body, 200, (*page.headers, ("ETag", '"v1"'), *said))

    with SmallSite({"/": home, "/leaf": linking(title="Leaf")}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        folder.crawl("http://one.small.test/")
        said.append(("X-Robots-Tag", tag))
        folder.crawl("http://one.small.test/")
        assert [one.path for one in site.asked].count("/leaf") == 1 + found
    assert folder.pages() == {f"http://one.small.test{path}" for path in kept}
    assert (folder.ends()["http://one.small.test/"] == "skipped noindex") is (tag == "noindex")


def test_a_jar_lets_go_of_what_the_site_takes_back(tmp_path: Path) -> None:
    def setting(target: str, *lines: str) -> Say:
        page = linking(target)
        return Say(page.body, 200, (*page.headers, *(("Set-Cookie", line) for line in lines)))

    pages = {
        "/": setting("/go", "a=1; Path=/", "b=2", "s=3; Secure"),
        "/go": Say(b"", 302, (("Location", "/landed"), ("Set-Cookie", "r=9"))),
        "/landed": setting("/last", "b=; Max-Age=0", "a=; Path=/; Expires=Thu, 01 Jan 1970 00:00:00 GMT"),
        "/last": linking(),
    }
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        folder.crawl("http://one.small.test/", cookies=True)
        sent = [(one.path, one.headers.get("cookie")) for one in site.asked if one.path != "/robots.txt"]
    assert sent == [("/", None), ("/go", "a=1; b=2"), ("/landed", "a=1; b=2; r=9"), ("/last", "r=9")]
