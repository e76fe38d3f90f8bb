"""The same crawl with its rows in PostgreSQL, and with its bodies in an object store."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder, finish
from object_store import object_store, use
from postgres_server import start_postgres

from curtsy.export.page_rows import segments_of
from curtsy.store import crawls, pages
from curtsy.store.engine import Store
from curtsy.store.segments import read_page
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import judge

HOSTS, PAGES = 3, 8
FAULTS = ("duplicates", "redirect-host", "refused", "noindex")


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=HOSTS, pages=PAGES, faults=FAULTS, log=tmp_path / "access.log") as running:
        yield running


def lines_of(folder: CrawlFolder) -> list[dict[str, object]]:
    out, err = folder.start("export", "--format", "jsonl").communicate(timeout=60)
    assert not err
    return [json.loads(line) for line in out.splitlines()]


def bodies_are_whole(folder: CrawlFolder) -> int:
    """Read every body where it is stored; how many there are."""
    settings = folder.settings()
    segments = segments_of(settings)
    with Store.open(settings.effective_store_url) as store, store.read() as tx:
        found, _ = pages.chunk(tx, crawls.get(tx, "last").n)
        for page in found:
            record = read_page(tx, segments, page)
            assert record is not None
            assert hashlib.sha256(record.body).hexdigest() == page.sha256
    segments.close()
    return len(found)


def check(folder: CrawlFolder, web: TinyWeb, told: dict[str, object]) -> None:
    assert (told["state"], told["pending"]) == ("finished", 0)
    assert told["failed"] == {"refused": 3, "http_402": 1}
    lines = lines_of(folder)
    assert len(lines) == told["pages"] == bodies_are_whole(folder)
    assert sum(line["same_as"] is not None for line in lines) >= 4
    verdict = folder.run("audit")
    assert (verdict["overlaps"], verdict["early"], verdict["robots_violations"]) == (0, 0, 0)
    assert judge(web.requests(), 0.1).ok


def test_a_crawl_on_postgresql(tmp_path: Path, web: TinyWeb) -> None:
    with start_postgres(tmp_path / "pg") as server:
        folder = CrawlFolder(tmp_path, web, store_url=server.create_database("crawl"))
        # Two processes, so that their commits meet.
        process = folder.start("crawl", *web.seeds, "--delay", "0.1", "--processes", "2", "--json")
        check(folder, web, finish(process, code=1))
        folder.close()
    assert not (folder.data / "curtsy.sqlite").exists()


def test_a_crawl_into_an_object_store(tmp_path: Path, web: TinyWeb, monkeypatch: pytest.MonkeyPatch) -> None:
    with object_store() as address:
        client = use(address, monkeypatch)
        client.create_bucket(Bucket="crawl")
        folder = CrawlFolder(tmp_path, web, segments_url="s3://crawl/segments")
        told = folder.run("crawl", *web.seeds, "--delay", "0.1", code=1)
        check(folder, web, told)
        stored = {one["Key"] for one in client.list_objects_v2(Bucket="crawl")["Contents"]}
        assert {f"segments/{name}" for (name,) in folder.rows("SELECT name FROM segments")} == stored
        client.close()
        folder.close()
    assert not list(folder.data.rglob("*.warc.gz"))
