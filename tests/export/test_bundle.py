"""The bundle to hand over, opened in a real browser. Its pages are hostile."""

from __future__ import annotations

import csv
import hashlib
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import stored
from chromium import ARGUMENTS, find

from curtsy.cli import main
from curtsy.core.record import Record
from curtsy.core.settings_loading import load
from curtsy.records import plan
from curtsy.store import crawls, records
from curtsy.store.engine import Store
from curtsy.store.sources import Source

EVIL = "</script><img src=x onerror=\"document.title='hacked'\"><script>document.title='hacked'</script>"
SCHEMA = {
    "title": "shop",
    "type": "object",
    "properties": {"name": {"type": "string"}, "city": {"type": "string"},
                   "tags": {"type": "array", "items": {"type": "string"}}},
}  # fmt: skip
URL = "https://a.test/"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["curtsy", "bundle", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err

    return call


@pytest.fixture
def crawl(tmp_path: Path) -> str:
    """A crawl with two records: the text of one has signs of two UTF-16 units, the other is hostile and long."""
    settings = load(data_dir=tmp_path / ".curtsy")
    with Store.open(settings.effective_store_url) as store:
        segments = stored.folder_of(settings)
        made = stored.crawl(store, **plan.crawl_fields(SCHEMA))
        kept = {"settings": {"agent": "goose"}, "withheld": ["proxies"]}
        store.run(crawls.keep_settings, made.n, kept)
        found = stored.add_pages(
            store, segments, made, [(URL, b"<p>1"), (f"{URL}2", b"<p>2")], title=EVIL, content_type="text/html"
        )
        segments.close()
        store.run(_add, made, found[0], "Tea house", "Graz", "\U0001f375\U0001f375 Tea house in Graz. " + EVIL)
        store.run(_add, made, found[1], EVIL, "Wien", "x" * 120_000 + f" {EVIL} in Wien " + "y" * 120_000)
    return made.id


def _add(tx: Any, crawl: Any, page: Any, name: str, city: str, text: str) -> None:
    digest = hashlib.sha256(text.encode()).hexdigest()

    def field(path: str, value: str) -> dict[str, Any]:
        start = text.index(value)
        quote = {"page": page.id, "url": page.url, "source": "text", "locator": "", "sha256": digest, "start": start,
                 "end": start + len(value), "quote": value}  # fmt: skip
        return {"path": path, "value": value, "rung": "selector", "verdict": "supported", "evidence": [quote]}

    record = Record(
        crawl=crawl.n, subject=page.fp.hex(), schema="shop", schema_hash=crawl.schema_hash, url=page.url,
        data={"name": name, "city": city, "tags": ["a", EVIL]}, fields=(field("/name", name), field("/city", city)),
    )  # fmt: skip
    records.add(tx, record, [Source(page.fp.hex(), digest, "text", page.url, text)])


NAMES = [
    "README.txt", "SHA256SUMS", "audit.json", "evidence.csv", "pages.csv", "records.csv", "records_tags.csv",
    "report.html", "settings.json", "tables.xlsx", "urls.csv",
]  # fmt: skip


def test_a_bundle_has_everything_with_digests_and_without_secrets(run: Run, crawl: str, tmp_path: Path) -> None:
    code, _, err = run("--out", "out")
    assert code == 0, err
    assert "open out/report.html in a browser" in err
    files = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir() if path.name != ".curtsy-export"}
    assert sorted(files) == NAMES
    sums = dict(reversed(line.split("  ")) for line in files["SHA256SUMS"].decode().splitlines())
    assert sums == {name: hashlib.sha256(data).hexdigest() for name, data in files.items() if name != "SHA256SUMS"}
    settings = json.loads(files["settings.json"])
    assert (settings["crawl"], settings["withheld"]) == (crawl, ["proxies"])
    assert settings["settings"] == {"agent": "goose"}
    assert json.loads(files["audit.json"])["polite"] is True
    with (tmp_path / "out" / "records.csv").open(newline="") as file:
        assert [row["city"] for row in csv.DictReader(file)] == ["Graz", "Wien"]
    assert len(openpyxl.load_workbook(tmp_path / "out" / "tables.xlsx").sheetnames) == 5
    assert EVIL.encode() not in files["report.html"]
    assert run("--out", "out")[0] == 0, "a bundle replaces an earlier one"


def test_a_zip_file_has_the_same_files(run: Run, crawl: str, tmp_path: Path) -> None:
    code, out, _ = run(crawl[:20], "--out", "t.zip", "--json")
    assert code == 0
    with zipfile.ZipFile(tmp_path / "t.zip") as package:
        assert package.testzip() is None
        assert sorted(package.namelist()) == sorted(json.loads(out)["files"]) == NAMES


def test_what_cannot_be_written_is_refused(run: Run, crawl: str, tmp_path: Path) -> None:
    assert "Use --out NAME" in run()[2]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "x").touch()
    code, _, err = run("--out", "mine")
    assert (code, "is not an export" in err) == (2, True)


@pytest.mark.skipif(find() is None, reason="needs Chromium")
def test_the_report_works_in_a_browser_without_a_server(run: Run, crawl: str, tmp_path: Path) -> None:
    from playwright.sync_api import sync_playwright

    assert run("--out", "out")[0] == 0
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=find(), args=ARGUMENTS)
        page = browser.new_page()
        problems: list[str] = []
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("request", lambda asked: problems.append(asked.url) if not asked.url.startswith("file:") else None)
        page.goto((tmp_path / "out" / "report.html").as_uri())
        page.wait_for_selector("body[data-ready]")
        assert page.locator("tr.row").count() == 2
        assert page.locator("#count").inner_text() == "2 of 2 records"
        page.get_by_label("Filter city").fill("wien")
        assert page.locator("tr.row").count() == 1
        page.locator("tr.row").click()
        assert page.locator("mark").inner_text() == EVIL, "as text"
        page.get_by_label("Filter city").fill("")
        page.get_by_label("Filter all columns").fill("tea house")
        page.locator("tr.row").press("Enter")
        assert page.locator("mark").inner_text() == "Tea house"
        page.locator("button.quote", has_text="Graz").click()
        assert page.locator("mark").inner_text() == "Graz", "also after signs of two units"
        assert page.locator("#place a").get_attribute("href") == URL
        page.get_by_label("Verdict").select_option("judged")
        assert page.locator("tr.row").count() == 0
        assert page.title() == f"Records of crawl {crawl}", "nothing of a page ran"
        assert problems == []
        browser.close()


def test_a_crawl_without_records_has_a_report_of_its_pages(run: Run, tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path / ".curtsy")
    with Store.open(settings.effective_store_url) as store:
        segments = stored.folder_of(settings)
        stored.add_pages(store, segments, stored.crawl(store), [(URL, b"<p>1")], title=EVIL)
        segments.close()
    assert run("--out", "out")[0] == 0
    text = (tmp_path / "out" / "report.html").read_text()
    assert "Pages of crawl" in text
    assert "\\u003c/script\\u003e" in text
    assert not (tmp_path / "out" / "records.csv").exists()
