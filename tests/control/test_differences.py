"""A crawl without a schedule is compared with the previous one of its seeds: texts and values."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import stored

from curtsy.cli import main
from curtsy.core.record import Record
from curtsy.core.settings_loading import load
from curtsy.store import crawls, records
from curtsy.store.engine import Store

URL = "https://a.test/"


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    """Ids of two crawls of one seed; between them, one of another."""
    settings = load(data_dir=tmp_path / ".curtsy")
    with Store.open(settings.effective_store_url) as store:
        segments = stored.folder_of(settings)
        ids = []
        for seed, price in ((URL, 10), ("https://b.test/", 99), (URL, 12)):
            crawl = stored.crawl(store, schema="shop", schema_hash="0")
            body = f"<!doctype html><h1>Tea</h1><p>Price: {price} euros</p><p>Open daily</p>".encode()
            (page,) = stored.add_pages(store, segments, crawl, [(seed, body)])
            data = {"price": price, "open": True, "tags": ["a"]}
            record = Record(crawl=crawl.n, subject=page.fp.hex(), schema="shop", schema_hash="0", url=seed, data=data)
            store.run(records.add, record)
            ids.append(crawl.id)
        segments.close()
    return ids[0], ids[2]


def test_texts_and_values_that_changed_are_shown(
    two: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["curtsy", "changes"])
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert "\nvalues     1\n" in said
    assert f"crawl      {two[1]}\nagainst    {two[0]}\n" in said, "not with the crawl of another seed"
    assert f"\n{URL}\n  - Price: 10 euros\n  + Price: 12 euros\n" in said
    assert "Open daily" not in said
    assert said.endswith(f"url\tfield\tbefore\tnow\n{URL}\t/price\t10\t12\n")


def test_a_changed_page_is_listed_before_many_unchanged_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = load(data_dir=tmp_path / ".curtsy")
    with Store.open(settings.effective_store_url) as store:
        segments = stored.folder_of(settings)
        for text in (b"<p>Old", b"<p>New"):
            same = [(f"{URL}{n}", b"<p>%d" % n) for n in range(5)]
            stored.add_pages(store, segments, stored.crawl(store), [*same, (URL, text), (f"{URL}also", text)])
        segments.close()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["curtsy", "changes", "--limit", "1", "--against", "1"])
    with Store.open(settings.effective_store_url) as store, store.read() as tx:
        sys.argv[-1] = crawls.by_n(tx, 1).id
    with pytest.raises(SystemExit):
        main()
    said = capsys.readouterr()
    assert f"kind\turl\twhy\nchanged\t{URL}\t\n" in said.out
    assert said.err == "Only 1 of 2 pages is listed; --limit N lists more.\n"
