"""Redirects and errors: their responses are stored and exported as WARC records, and are not pages anywhere else."""

from __future__ import annotations

import gzip
import io
import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import pytest
from crawl_folder import CrawlFolder, finish
from small_site import Say, SmallSite, linking
from waiting import until

from curtsy.cli import main
from curtsy.control import retention
from curtsy.core import clock
from curtsy.core.errors import UsageError
from curtsy.export import page_increments, streams
from curtsy.export.page_rows import PageRows, segments_of
from curtsy.export.request import ExportRequest
from curtsy.export.tables import Format
from curtsy.store import crawls
from curtsy.store.engine import Store
from curtsy.web.factory import create_app

with warnings.catch_warnings():
    # The package warns of its own old names while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator as FastIterator
    from fastwarc.warc import is_http

AT = "http://a.small.test"
LIMIT = 64 * 1024
HTML = ("Content-Type", "text/html")
OTHERS = [
    (f"{AT}/big", 404), (f"{AT}/broken", 500), (f"{AT}/broken", 500), (f"{AT}/gone", 404), (f"{AT}/moved", 301),
    (f"{AT}/refused", 403),
]  # fmt: skip


@pytest.fixture
def site() -> Iterator[SmallSite]:
    found = {
        "/": linking("/moved", "/gone", "/refused", "/broken", "/big", "/hidden"),
        "/moved": Say(b"over there", 301, (("Location", "/target"), HTML)),
        "/target": linking(title="Target"),
        "/gone": Say(b"<title>No</title>was here", 404),
        "/refused": Say(b"<p>keep out <script>alert(1)</script></p>", 403),
        "/broken": Say(b"oops", 500),
        "/big": Say(b"x" * 200_000, 404),
        "/hidden": Say(b"not for archives", 404, (HTML, ("X-Robots-Tag", "noindex"))),
    }
    with SmallSite(found) as made:
        yield made


@pytest.fixture
def folder(tmp_path: Path, site: SmallSite) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, resolve=[site.resolve_rule], max_attempts=2)
    yield made
    made.close()


def answers(data: bytes) -> list[tuple[str, int]]:
    """(URL, status) of every response, as FastWARC reads it; it reads no record whose digest differs."""
    counts = [len(list(FastIterator(io.BytesIO(data), verify_digests=checked))) for checked in (False, True)]
    assert counts[0] == counts[1] > 0
    found = FastIterator(io.BytesIO(data), parse_http=True, verify_digests=True)
    return sorted((one.headers["WARC-Target-URI"], one.http_headers.status_code) for one in found if one.http_headers)


def exported(folder: CrawlFolder, format: str) -> bytes:
    """As `GET /v1/crawls/{id}/export` sends it."""
    with Store.open(folder.settings().effective_store_url) as store, store.read() as tx:
        crawl = crawls.get(tx, "last")
        return b"".join(streams.export(store, folder.settings(), crawl, ExportRequest(format=format)).blocks)


def test_an_archive_has_every_response_and_nothing_else_counts_them(folder: CrawlFolder) -> None:
    counts = folder.crawl(f"{AT}/")
    pages = {f"{AT}/", f"{AT}/target"}
    assert folder.pages() == pages
    assert (counts.pages, counts.failed) == (2, {"refused": 1, "server_error": 1})
    assert answers(exported(folder, "warc")) == sorted([*OTHERS, *((url, 200) for url in pages)])
    assert {json.loads(line)["url"] for line in exported(folder, "jsonl").splitlines()} == pages
    out = folder.path / "t.warc.gz"
    assert folder.run("export", "--out", str(out))["pages"] == 2
    assert len(answers(out.read_bytes())) == 8
    assert b"not for archives" not in b"".join(
        gzip.decompress(path.read_bytes()) for path in folder.settings().segments_dir.iterdir()
    )


def test_a_crawl_without_pages_has_an_archive(folder: CrawlFolder, capsys: pytest.CaptureFixture[str]) -> None:
    folder.crawl(f"{AT}/gone", f"{AT}/refused")
    expected = [(f"{AT}/gone", 404), (f"{AT}/refused", 403)]
    assert answers(exported(folder, "warc")) == expected
    out = folder.path / "t.warc.gz"
    given = ["curtsy", "export", "--out", str(out), "--data-dir", str(folder.data)]
    with patch.object(sys, "argv", given), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    assert f"0 pages and 2 other responses written to {out}" in capsys.readouterr().err
    assert answers(out.read_bytes()) == expected
    with pytest.raises(UsageError, match="has no pages"):
        exported(folder, "jsonl")


def test_a_crawl_without_any_response_has_no_archive(folder: CrawlFolder) -> None:
    folder.crawl(f"{AT}/hidden")
    with pytest.raises(UsageError, match="has no pages"):
        exported(folder, "warc")


def test_a_long_error_is_cut_and_says_so(folder: CrawlFolder) -> None:
    folder.crawl(f"{AT}/big", max_depth=0)
    found = list(FastIterator(io.BytesIO(exported_responses(folder)), parse_http=True, verify_digests=True))
    (big,) = [one for one in found if one.headers.get("WARC-Target-URI") == f"{AT}/big"]
    assert big.headers["WARC-Truncated"] == "length"
    assert (big.http_headers["Content-Length"], big.http_headers["X-Archive-Orig-Content-Length"]) == (
        str(LIMIT), "200000",
    )  # fmt: skip
    assert big.reader.read() == b"x" * LIMIT


def test_an_error_over_the_size_limit_has_its_beginning(tmp_path: Path, site: SmallSite) -> None:
    folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], max_body_mb=0.1)
    counts = folder.crawl(f"{AT}/big")
    assert (counts.pages, counts.failed, folder.ends()) == (0, {}, {f"{AT}/big": "done gone"})
    big = next(iter(FastIterator(io.BytesIO(exported(folder, "warc")), parse_http=True, func_filter=is_http)))
    assert big.headers["WARC-Truncated"] == "length"
    assert big.http_headers["X-Archive-Orig-Content-Length"] == "200000"
    body = big.reader.read()
    assert body
    assert body == b"x" * int(big.http_headers["Content-Length"])


def exported_responses(folder: CrawlFolder) -> bytes:
    """The parts of an incremental export, one after the other."""
    out = folder.path / "parts"
    with Store.open(folder.settings().effective_store_url) as store:
        with store.read() as tx:
            crawl = crawls.get(tx, "last")
        page_increments.add(PageRows(store, segments_of(folder.settings()), crawl), out, Format.WARC)
    return b"".join(path.read_bytes() for path in sorted(out.glob("*.warc.gz")))


def test_an_incremental_archive_gets_each_response_once(folder: CrawlFolder) -> None:
    folder.crawl(f"{AT}/")
    expected = sorted([*OTHERS, (f"{AT}/", 200), (f"{AT}/target", 200)])
    assert answers(exported_responses(folder)) == expected
    assert answers(exported_responses(folder)) == expected


def test_the_archive_of_a_running_crawl_gets_each_response_once(folder: CrawlFolder) -> None:
    out = folder.path / "live.warc.gz"
    finish(folder.start("crawl", f"{AT}/", "--delay", "0.02", "--out", str(out), "--json"), code=1)
    expected = sorted([*OTHERS, (f"{AT}/", 200), (f"{AT}/target", 200)])
    assert answers(out.read_bytes()) == expected


def test_the_response_of_a_dead_letter_is_shown_everywhere(folder: CrawlFolder) -> None:
    folder.crawl(f"{AT}/")
    explained = folder.run("explain", f"{AT}/refused")
    assert any(f"curtsy show {explained['response']} --headers" in line for line in explained["why"])
    shown = folder.run("show", f"{AT}/refused")
    assert (shown["status"], shown["is_page"], shown["id"]) == (403, False, explained["response"])
    assert "keep out" in shown["text"]
    assert ["Content-Type", "text/html"] in shown["headers"]
    moved = folder.run("show", f"{AT}/moved")
    assert (moved["status"], ["Location", "/target"] in moved["headers"]) == (301, True)
    assert folder.run("show", f"{AT}/target")["is_page"] is True
    app = create_app(folder.settings(), host="127.0.0.1")
    try:
        client = app.test_client()
        letters = {one["url"]: one["id"] for one in client.get("/v1/failures").get_json()["items"]}
        broken = client.get(f"/v1/failures/{letters[f'{AT}/broken']}").get_json()
        assert len({one["response"] for one in broken["requests"]} - {None}) == 2
        assert broken["response"] == broken["requests"][-1]["response"]
        body = client.get(f"/v1/responses/{broken['response']}/content")
        assert (body.status_code, body.data) == (200, b"oops")
        assert "attachment" in body.headers["Content-Disposition"]
        assert client.get("/v1/responses/ffff/content").status_code == 404
        refused = client.get(f"/failures/{letters[f'{AT}/refused']}").text
        assert f'href="/responses/{shown["id"]}"' in refused
        page = client.get(f"/responses/{shown['id']}").text
        assert "keep out" in page
        assert "<script>alert" not in page
        assert client.get(f"/responses/{shown['id']}/content").data == b"<p>keep out <script>alert(1)</script></p>"
        assert client.get("/responses/ffff").status_code == 404
    finally:
        app.extensions["curtsy"].close()


def test_a_kill_loses_no_response_of_a_settled_url(tmp_path: Path) -> None:
    missing = [f"/{n}" for n in range(80)]
    with SmallSite({"/": linking(*missing)}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], commit_s=0.1)
        try:
            crawl = folder.start("crawl", f"{AT}/", "--delay", "0.05", "--json")
            until(lambda: folder.has_pages(1) and folder.rows("SELECT count(*) FROM responses")[0][0] > 10)
            crawl.kill()
            crawl.communicate()
            finish(folder.start("crawl", "--resume", "last", "--json"))
        finally:
            folder.close()
        assert set(folder.ends().values()) == {"done", "done gone"}
        assert answers(exported(folder, "warc")) == sorted(
            [(f"{AT}/", 200), *((f"{AT}{path}", 404) for path in missing)]
        )


def test_responses_are_deleted_with_their_crawl(folder: CrawlFolder) -> None:
    folder.crawl(f"{AT}/")
    ((other,),) = folder.rows("SELECT count(*) FROM responses")
    assert other == len(OTHERS)
    folder.run("delete", "--crawl", "last", "--yes")
    assert folder.rows("SELECT count(*) FROM responses") == [(0,)]
    assert not any(folder.settings().segments_dir.glob("*.warc.gz"))


def test_old_responses_are_deleted_with_old_pages(folder: CrawlFolder) -> None:
    folder.crawl(f"{AT}/")
    settings = folder.settings(retain_pages_days=1)
    with Store.open(settings.effective_store_url) as store:
        store.run(lambda tx: tx.exec_driver_sql("UPDATE responses SET fetched_ms = 1 WHERE status <> 403"))
        retention.sweep(SimpleNamespace(store=store, settings=settings), clock.now_ms())  # type: ignore[arg-type]
    assert folder.rows("SELECT status FROM responses") == [(403,)]
    assert folder.pages() == {f"{AT}/", f"{AT}/target"}
    told = b"".join(gzip.decompress(path.read_bytes()) for path in folder.settings().segments_dir.iterdir())
    assert (b"was here" in told, b"keep out" in told) == (False, True)
