"""`show`, `export` and `bundle` with --api do the same as in the local folder; exports are streamed."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import pytest
import stored
from served import Served, serving
from waiting import until

from curtsy import api
from curtsy.cli import main
from curtsy.client.http import Client
from curtsy.core.errors import Damaged, UsageError
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.export import streams
from curtsy.export.request import ExportRequest
from curtsy.export.zipped import unzipped, zipped
from curtsy.records import plan
from curtsy.store import records
from curtsy.store.engine import Store

SCHEMA = {
    "title": "shop",
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"type": "string"}}},
}
URL = "https://a.test/"
PAGES = [
    (URL, b"<title>Tea</title><h1>Tea house</h1><p>Open <a href='/b'>daily</a>."),
    ("https://b.test/", b"<h1>Two</h1><p>A second page."),
]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("exports")


@pytest.fixture(scope="module")
def settings(folder: Path) -> Settings:
    return load(data_dir=folder / "data")


@pytest.fixture(scope="module")
def crawl(settings: Settings) -> Crawl:
    with Store.open(settings.effective_store_url) as store:
        segments = stored.folder_of(settings)
        made = stored.crawl(store, **plan.crawl_fields(SCHEMA))
        page, _ = stored.add_pages(store, segments, made, PAGES, content_type="text/html", title="=Tea")
        segments.close()
        quote = {"page": page.id, "url": page.url, "source": "text", "locator": "", "start": 0, "end": 3,
                 "sha256": hashlib.sha256(b"Tea").hexdigest(), "quote": "Tea"}  # fmt: skip
        field = {"path": "/name", "value": "Tea", "rung": "selector", "verdict": "supported", "evidence": [quote]}
        given = {"crawl": made.n, "schema": "shop", "schema_hash": made.schema_hash, "url": URL}
        data = {"name": "Tea", "tags": ["a", "b"]}
        store.run(records.add, Record(**given, subject=page.fp.hex(), data=data, fields=(field,)))
        held = Record(**given, subject=page.fp.hex(), ordinal=1, data={"name": "secret"}, status="held")
        store.run(records.add, held)
    return made


@pytest.fixture(scope="module")
def server(folder: Path, settings: Settings, crawl: Crawl) -> Iterator[Served]:
    before = os.environ.get("TMPDIR")
    (folder / "temporary").mkdir()
    os.environ["TMPDIR"] = str(folder / "temporary")
    try:
        with serving(folder, settings.effective_store_url, processes=1) as served:
            yield served
    finally:
        os.environ.pop("TMPDIR") if before is None else os.environ.update(TMPDIR=before)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["curtsy", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capfdbinary.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out.decode(), said.err.decode()

    return call


EXPORTS = [
    ("pages.jsonl", ()),
    ("pages.csv", ("--csv-safe",)),
    ("pages.parquet", ("--with", "text,markdown")),
    ("pages.warc.gz", ()),
    ("markdown", ()),
    ("full", ("--format", "markdown", "--full-page")),
    ("by-host", ("--partition-by", "host", "--format", "csv")),
    ("by-date", ("--partition-by", "date")),
    ("records.jsonl", ("--what", "records")),
    ("records.parquet", ("--what", "records")),
    ("orgs.csv", ("--records",)),
    ("orgs.parquet", ("--records", "--lists", "json")),
    ("folder", ("--records",)),
    ("orgs.xlsx", ("--records",)),
    ("urls.csv", ("--urls",)),
    ("urls.jsonl", ("--urls",)),
]


@pytest.mark.parametrize(("out", "options"), EXPORTS, ids=[out for out, _ in EXPORTS])
def test_every_export_is_the_same_over_the_api(
    run: Run, server: Served, folder: Path, tmp_path: Path, out: str, options: tuple[str, ...]
) -> None:
    for place, where in (("here", ("--data-dir", str(folder / "data"))), ("there", ("--api", server.url))):
        (tmp_path / place).mkdir()
        code, said, err = run("export", "last", "--out", f"{place}/{out}", *options, *where)
        assert (code, said) == (0, ""), err
        assert f"written to {place}/{out}" in err
    here, there = (files_of(tmp_path / place) for place in ("here", "there"))
    assert here.keys() == there.keys()
    assert len(here) > 0
    if out.endswith((".xlsx", ".warc.gz")):  # they contain the time of their making, or their own name
        assert [len(data) > 100 for data in there.values()] == [True]
        assert [abs(len(data) - len(here[name])) < 30 for name, data in there.items()] == [True]
    else:
        assert here == there


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_database_and_standard_output_work_over_the_api(run: Run, server: Served, tmp_path: Path) -> None:
    assert run("export", "last", "--records", "--out", "shop.sqlite", "--api", server.url)[0] == 0
    with sqlite3.connect(tmp_path / "shop.sqlite") as db:
        assert db.execute("SELECT name FROM records").fetchall() == [("Tea",)]
        assert db.execute("SELECT quote FROM evidence").fetchall() == [("Tea",)]
    assert run("export", "last", "--records", "--out", "shop.duckdb", "--api", server.url)[0] == 0
    with duckdb.connect(tmp_path / "shop.duckdb", read_only=True) as opened:
        assert opened.execute("SELECT name FROM records").fetchall() == [("Tea",)]
    code, out, _ = run("export", "last", "--api", server.url)
    assert (code, [json.loads(line)["url"] for line in out.splitlines()]) == (0, [url for url, _ in PAGES])
    assert (
        run("export", "last", "--records", "--format", "csv", "--api", server.url)[1].splitlines()[1].startswith("1,")
    )


def test_show_is_the_same_over_the_api(run: Run, server: Served, folder: Path) -> None:
    here, there = ("--data-dir", str(folder / "data")), ("--api", server.url)
    parts = ("--body", "--headers", "--text", "--markdown", "--links", "--records", "--history", "--json")
    for words in ((), *((part,) for part in parts)):
        local = run("show", URL, *words, *here)
        assert local[0] == 0
        assert run("show", URL, *words, *there) == local, words
    missing = run("show", "https://none.test/", *there)
    assert missing[0] == 2
    assert "No page of https://none.test/ is stored" in missing[2]


def test_a_bundle_is_the_same_over_the_api(run: Run, server: Served, tmp_path: Path) -> None:
    for out in ("bundle", "bundle.zip"):
        code, said, _ = run("bundle", "last", "--out", out, "--json", "--api", server.url)
        assert code == 0
        assert {"report.html", "records.csv", "SHA256SUMS"} <= set(json.loads(said)["files"])
    unpacked = files_of(tmp_path / "bundle")
    sums = dict(reversed(line.split("  ")) for line in unpacked["SHA256SUMS"].decode().splitlines())
    assert sums == {name: hashlib.sha256(unpacked[name]).hexdigest() for name in sums}
    with zipfile.ZipFile(tmp_path / "bundle.zip") as package:
        assert sorted(package.namelist()) == sorted(unpacked.keys() - {".curtsy-export"})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"what": "urls", "format": "warc"}, "urls cannot be written as warc"),
        ({"format": "csv", "content": "text"}, "`content` works with pages as jsonl or parquet only"),
        ({"format": "jsonl", "csv_safe": "true"}, "`csv_safe` works with CSV only"),
        ({"what": "tables", "partition_by": "host"}, "`partition_by` works with pages only"),
        ({"what": "nothing"}, "query.what"),
    ],
)
def test_a_wrong_request_says_what_to_change(server: Served, query: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        list(Client(server.url).blocks("/v1/crawls/last/export", **query))


def test_an_incremental_export_is_refused_over_the_api(run: Run, server: Served) -> None:
    code, _, err = run("export", "last", "--incremental", "--out", "parts", "--api", server.url)
    assert code == 2
    assert "--incremental does not work with --api" in err


def test_held_records_are_in_no_export_and_no_page(server: Served) -> None:
    client = Client(server.url)
    assert len(client.get("/v1/show", url=URL, parts="records")["records"]) == 1
    for what in ("records", "tables", "evidence"):
        sent = b"".join(client.blocks("/v1/crawls/last/export", what=what, format="jsonl"))
        assert sent
        assert b"secret" not in sent


def test_the_typed_client_returns_an_export_in_blocks(server: Served) -> None:
    blocks = api.connect(server.url).export_crawl("last", what="urls", format="jsonl")
    assert [json.loads(line)["state"] for line in b"".join(blocks).splitlines()] == ["done", "done"]


def test_a_client_that_goes_away_leaves_nothing_behind(
    server: Served, settings: Settings, folder: Path, tmp_path: Path
) -> None:
    """The file of a database is made in a temporary folder. It is too long for the buffers of a connection."""
    with Store.open(settings.effective_store_url) as store:
        many = stored.crawl(store)
        segments = stored.folder_of(settings)
        found = [(f"https://c.test/{n}/{'x' * 1500}", f"{n}".encode()) for n in range(6000)]
        stored.add_pages(store, segments, many, found)
        segments.close()
    temporary = folder / "temporary"
    (child,) = server.children()
    for query in ("what=urls&format=sqlite", "format=warc"):
        connection = server.connect()
        connection.sendall(f"GET /v1/crawls/{many.id}/export?{query} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 200")
        connection.close()
        until(lambda: not any(temporary.glob("curtsy-*")))
        until(lambda: not any(".warc" in file.path for file in child.open_files()))
    assert server.client.get("/healthz") is not None


def test_an_export_is_never_whole_in_memory(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path / "data")
    with Store.open(settings.effective_store_url) as store:
        segments = stored.folder_of(settings)
        made = stored.crawl(store)
        stored.add_pages(store, segments, made, [(f"{URL}{n}", os.urandom(100_000)) for n in range(60)])
        segments.close()
        for wanted in (ExportRequest(format="warc"), ExportRequest(format="markdown", full_page=True)):
            sizes = [len(block) for block in streams.export(store, settings, made, wanted).blocks]
            assert max(sizes, default=0) < 1_000_000
        assert sum(sizes) > 0


def test_a_zip_file_cannot_write_outside_of_its_folder() -> None:
    for name in ("../evil", "/etc/evil", "a/../../evil", "a\\..\\evil"):
        with pytest.raises(Damaged, match="leads out of the folder"), unzipped(zipped([(name, [b"x"])])):
            pass
    with pytest.raises(Damaged, match="cannot be read"), unzipped([b"not a zip file"]):
        pass
