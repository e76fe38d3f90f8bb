"""Pages that arrive as gzip: everything that reads them finds what it finds for the same pages without a coding."""

from __future__ import annotations

import gzip
import io
import json
import random
import re
import warnings
import zipfile
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from crawl_folder import CrawlFolder
from small_site import Asked, Say, SmallSite
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from curtsy.client.local import LocalBackend
from curtsy.export import streams
from curtsy.export.request import ExportRequest
from curtsy.store import crawls
from curtsy.store.engine import Store

with warnings.catch_warnings():
    # The package warns of its own old names while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator as FastIterator

AT = "http://a.small.test"
CODED = ("x-archive-orig-content-encoding", "x-archive-orig-content-length", "server")
OF_ONE_CRAWL = {"crawl", "fetched_at", "created", "segment", "offset", "length", "id"}
PATHS = ("/", "/one", "/two", "/copy", "/far", "/late-copy", "/noise")


def text_of(path: str) -> bytes:
    """`/copy` and `/late-copy` have the same body as `/one`; `/late-copy` is found in a later commit."""
    name = "/one" if path.endswith("copy") else path
    words = " ".join(random.Random(name).choices(["goose", "pond", "reed", "water", "feather"], k=3000))
    links = {"/": ("/one", "/two", "/copy", "/noise"), "/two": ("/far",), "/far": ("/late-copy",)}.get(name, ())
    anchors = "".join(f'<a href="{link}">{link}</a> ' for link in links)
    noise = random.Random(7).randbytes(60_000).hex() if name == "/noise" else ""
    return f"<!doctype html><title>Page {name}</title><h1>{name}</h1><p>{words}</p>{anchors}<!--{noise}-->".encode()


class Geese:
    """The site, with gzip or without."""

    def __init__(self, *, coded: bool) -> None:
        self._coded = coded
        self.site = SmallSite(dict.fromkeys(PATHS, self._page) | {"/gone": Say(b"no", 404)})

    def _page(self, asked: Asked) -> Say:
        tag = ("ETag", f'"{asked.path}"')
        if asked.headers.get("if-none-match") == tag[1]:
            return Say(b"", 304, (tag,))
        body = text_of(asked.path)
        headers = (("Content-Type", "text/html"), tag)
        if not self._coded:
            return Say(body, 200, headers)
        # /copy has the same body in other bytes.
        packed = gzip.compress(body, 1 if asked.path == "/copy" else 9, mtime=0)
        return Say(packed, 200, (*headers, ("Content-Encoding", "gzip")))


@pytest.fixture(scope="module", params=[1, 2], ids=["one crawl", "two crawls"])
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[CrawlFolder]]:
    """The same crawls of both sites: the second crawl finds that nothing has changed."""
    made = []
    for coded in (False, True):
        with Geese(coded=coded).site as site:
            folder = CrawlFolder(tmp_path_factory.mktemp("geese"), resolve=[site.resolve_rule])
            for _ in range(request.param):
                assert folder.crawl(f"{AT}/").pages == len(PATHS)
        made.append(folder)
    yield made
    for folder in made:
        folder.close()


def exported(folder: CrawlFolder, **given: Any) -> bytes:
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        crawl = crawls.get(tx, "last")
        return b"".join(streams.export(store, folder.settings(), crawl, ExportRequest(**given)).blocks)


def archived(folder: CrawlFolder) -> list[tuple[str, str, dict[str, str], list[tuple[str, str]], bytes]]:
    """(type, URL, WARC headers that are not of one crawl, HTTP headers, body) of every record, digests checked."""
    data, found = exported(folder, format="warc"), []
    counts = [len(list(FastIterator(io.BytesIO(data), verify_digests=checked))) for checked in (False, True)]
    assert counts[0] == counts[1]
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        body = record.content_stream().read()
        names = ("WARC-Payload-Digest", "WARC-Profile", "WARC-Refers-To-Target-URI", "Content-Type")
        fields = {name: record.rec_headers.get_header(name) for name in names}
        http = [] if record.http_headers is None else record.http_headers.headers
        kept = [(name, value) for name, value in http if name.lower() not in CODED and name != "Date"]
        found.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI"), fields, kept, body))
    return sorted(found[1:], key=lambda one: one[:2])


def test_most_bodies_are_stored_as_they_arrived(folders: list[CrawlFolder]) -> None:
    """The copies have none, and the noise saves nothing."""
    for folder, number in zip(folders, (0, 4), strict=True):
        files = list(folder.settings().segments_dir.iterdir())
        said = b"".join(gzip.decompress(path.read_bytes()) for path in files)
        assert said.count(b"\r\nContent-Encoding: gzip\r\n") == said.count(b"X-Decoded-Payload-Digest") == number
        assert Checker(SimpleNamespace(inputs=[str(path) for path in files], verbose=False)).process_all() == 0
    assert folders[1].rows("SELECT count(*) FROM pages WHERE same_as IS NOT NULL AND crawl = 1") == [(2,)]


def test_the_archive_is_the_same(folders: list[CrawlFolder]) -> None:
    plain, coded = (archived(folder) for folder in folders)
    assert {one[0] for one in plain} == {"response", "revisit"}
    assert {one[1] for one in plain} == {f"{AT}{path}" for path in PATHS}
    assert coded == plain
    bodies = {url: body for kind, url, _, _, body in coded if kind == "response"}
    assert bodies == {url: text_of(url.removeprefix(AT)) for url in bodies}


@pytest.mark.parametrize(
    "given",
    [
        {"format": "jsonl", "content": ("text", "markdown", "html")},
        {"format": "markdown", "full_page": True},
        {"what": "records", "format": "jsonl"},
    ],
)
def test_exports_are_the_same(folders: list[CrawlFolder], given: dict[str, Any]) -> None:
    if given.get("what") == "records":
        for folder in folders:
            folder.run("extract", "--schema", "page")
    plain, coded = (comparable(exported(folder, **given)) for folder in folders)
    assert len(plain) == len(PATHS)
    assert coded == plain


def comparable(data: bytes) -> list[Any]:
    """Lines or files, without what is of one crawl only."""
    if data.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(data)) as folder:
            return sorted(
                re.sub(rb"(fetched_at|segment|crawl): .*", b"", folder.read(name)) for name in folder.namelist()
            )
    lines = [json.loads(line) for line in data.splitlines()]
    assert all(line.keys() & OF_ONE_CRAWL for line in lines)
    return sorted(
        json.dumps({name: line[name] for name in line.keys() - OF_ONE_CRAWL}, sort_keys=True) for line in lines
    )


def test_details_and_content_are_the_same(folders: list[CrawlFolder]) -> None:
    shown = []
    for folder in folders:
        client = LocalBackend(folder.settings())
        pages = {page["url"]: client.content(page) for page in client.pages("last", 100)}
        assert pages == {f"{AT}{path}": text_of(path) for path in PATHS}
        shown.append([client.page_details(f"{AT}{path}", None, ("text", "links"))["text"] for path in PATHS])
    assert shown[0] == shown[1]


def test_what_did_not_change_keeps_its_body(folders: list[CrawlFolder]) -> None:
    for folder in folders:
        ((crawl,),) = folder.rows("SELECT max(n) FROM crawls")
        unchanged = folder.rows("SELECT count(*) FROM pages WHERE crawl = ? AND unchanged", crawl)
        assert unchanged == [(0 if crawl == 1 else len(PATHS),)]
