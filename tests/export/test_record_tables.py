"""Records as flat tables with their evidence, as spreadsheets, databases and the examples of the docs read them."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import orgs
import pytest
import stored
from pyarrow import parquet

from curtsy.cli import main
from curtsy.core.model import Crawl
from curtsy.core.record import Record
from curtsy.core.settings_loading import load
from curtsy.export import flat, tables, xlsx
from curtsy.grounding import schema as schemas
from curtsy.records import plan
from curtsy.store import records
from curtsy.store.engine import Store
from curtsy.store.segment_places import open_segments

ROOT = Path(__file__).parents[2]
SCHEMA = {
    "title": "shop",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "record": {"type": "string"},
        "founded": {"type": ["integer", "null"]},
        "address": {"type": "object", "properties": {"city": {"type": "string"}, "lat": {"type": "number"}}},
        "open": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "offers": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "what": {"type": "string"},
                    "price": {"type": "object", "properties": {"amount": {"type": "number"}}},
                    "sizes": {"type": "array", "items": {"type": "integer"}},
                },
            },
        },
    },
}
DATA: dict[str, Any] = {
    "name": '=HYPERLINK("http://x") "Zoë"\nsecond line\x0b',
    "record": "a value",
    "founded": 10**30,
    "address": {"city": "Graz", "lat": 47.07},
    "open": True,
    "tags": ["a", "b"],
    "offers": [{"what": "tea", "price": {"amount": 2.5}, "sizes": [1, 2]}, {"what": "bun"}],
}
QUOTE = {
    "page": "1-" + "0" * 32, "url": "https://a.test/", "source": "text", "locator": "", "sha256": "00", "start": 3,
    "end": 7, "quote": "Graz", "part": {"kind": "page", "number": 2, "label": ""},
}  # fmt: skip
FIELDS = (
    {"path": "/address/city", "value": "Graz", "rung": "selector", "verdict": "supported", "evidence": [QUOTE, QUOTE]},
    {"path": "/tags/1", "value": "b", "rung": "llm", "verdict": "judged", "evidence": []},
)
Export = Callable[..., tuple[int, str, str]]


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Export:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["curtsy", "export", "last", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err

    return call


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(load(data_dir=tmp_path / ".curtsy").effective_store_url) as opened:
        yield opened


def record_of(crawl: Crawl, data: dict[str, Any], **fields: Any) -> Record:
    return Record(
        crawl=crawl.n, subject="0" * 32, schema="shop", schema_hash=crawl.schema_hash or "", url="https://a.test/",
        data=data, created_ms=stored.BEGUN_MS, **fields,
    )  # fmt: skip


@pytest.fixture
def shop(store: Store) -> Crawl:
    """A crawl with one published and one held record."""
    crawl = stored.crawl(store, **plan.crawl_fields(SCHEMA))
    published = record_of(crawl, DATA, fields=FIELDS, confidence={"share": 0.5}, scores={"total": 61.5})
    store.run(records.add, published)
    store.run(records.add, record_of(crawl, {"name": "held"}, ordinal=1, status="held"))
    return crawl


def test_values_are_columns_and_lists_are_tables(export: Export, shop: Crawl, tmp_path: Path) -> None:
    code, out, err = export("--records", "--out", "shop.csv")
    assert (code, out) == (0, "")
    names = ["shop.csv", "shop.evidence.csv", "shop.records_offers.csv", "shop.records_tags.csv"]
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == names
    written, held = err.splitlines()
    assert written == "1 record written to shop.csv, shop.records_tags.csv, shop.records_offers.csv, shop.evidence.csv"
    assert held.startswith("1 record needs a review and is not included: ")
    (row,) = read_csv(tmp_path / "shop.csv")
    assert row["record_url"] == "https://a.test/"
    assert (row["record_confidence"], row["record_score"]) == ("0.5", "61.5")
    assert row["record_created"] == "2023-11-14T22:13:20.000+00:00"
    assert (row["name"], row["address.city"], row["address.lat"]) == (DATA["name"], "Graz", "47.07")
    assert row["record_"] == "a value", "a value with the name of our own column keeps its column"
    assert "tags" not in row
    tags = read_csv(tmp_path / "shop.records_tags.csv")
    assert [(one["record"], one["item"], one["value"]) for one in tags] == [("1", "0", "a"), ("1", "1", "b")]
    offers = read_csv(tmp_path / "shop.records_offers.csv")
    assert [(one["what"], one["price.amount"], one["sizes"]) for one in offers] == [
        ("tea", "2.5", "[1,2]"),
        ("bun", "", ""),
    ]


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_evidence_has_a_row_for_each_quote(export: Export, shop: Crawl, tmp_path: Path) -> None:
    assert export("--records", "--out", "out", "--format", "jsonl")[0] == 0
    rows = [json.loads(line) for line in (tmp_path / "out" / "evidence.jsonl").read_text().splitlines()]
    assert len(rows) == 3
    first = {"field": "address.city", "value": "Graz", "quote": "Graz", "url": "https://a.test/", "document_page": 2}
    assert rows[0].items() >= (first | {"part": "page 2", "verdict": "supported", "found_by": "selector"}).items()
    assert rows[2].items() >= {"field": "tags[1]", "value": "b", "verdict": "judged", "quote": None}.items()
    assert all(list(row) == list(flat.EVIDENCE) for row in rows)


def test_lists_can_be_json(export: Export, shop: Crawl, tmp_path: Path) -> None:
    assert export("--records", "--lists", "json", "--out", "t.jsonl")[0] == 0
    row = json.loads((tmp_path / "t.jsonl").read_text())
    assert (row["tags"], row["offers"]) == (DATA["tags"], DATA["offers"])
    assert export("--records", "--lists", "json", "--out", "t.parquet")[0] == 0
    assert parquet.read_table(tmp_path / "t.parquet")["tags"].to_pylist() == ['["a","b"]']
    assert not list(tmp_path.glob("t.records_*"))


def test_parquet_has_types_real_times_and_columns_that_are_never_null(
    export: Export, shop: Crawl, tmp_path: Path
) -> None:
    assert export("--records", "--out", "t.parquet")[0] == 0
    schema = parquet.read_schema(tmp_path / "t.parquet")
    assert str(schema.field("record_created").type) == "timestamp[ms, tz=UTC]"
    assert not schema.field("record").nullable
    assert [str(schema.field(name).type) for name in ("founded", "address.lat", "open")] == ["int64", "double", "bool"]
    (row,) = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert row["founded"] is None, "10**30 is not a number of 64 bits"
    assert row["record_created"].isoformat() == "2023-11-14T22:13:20+00:00"


def test_a_workbook_holds_text_as_text(export: Export, shop: Crawl, tmp_path: Path) -> None:
    assert export("--records", "--out", "t.xlsx")[0] == 0
    book = openpyxl.load_workbook(tmp_path / "t.xlsx")
    assert book.sheetnames == ["records", "records_tags", "records_offers", "evidence"]
    head, values = book["records"].iter_rows()
    row = dict(zip((cell.value for cell in head), values, strict=True))
    assert row["name"].value == '=HYPERLINK("http://x") "Zoë"\nsecond line\ufffd'
    assert row["name"].data_type == "s", "not a formula"
    assert (row["address.lat"].value, row["open"].value) == (47.07, True)
    assert row["founded"].value == str(10**30), "Excel would round it"


def test_a_sheet_that_is_full_continues_in_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "MOST_ROWS", 4)
    name = "a name of more than thirty-one characters: [x]"
    found = [
        tables.Table(
            name, {"n": "int32!", "text": "string"}, lambda: ({"n": n, "text": "y" * 40_000} for n in range(7))
        ),
        tables.Table(name, {"n": "int32!"}, lambda: iter(())),
    ]
    written = tables.Tally()
    (tmp_path / "t.xlsx").write_bytes(b"".join(xlsx.workbook(found, written)))
    book = openpyxl.load_workbook(tmp_path / "t.xlsx")
    assert written.n == 7
    rows = [[row[0] for row in sheet.iter_rows(values_only=True)] for sheet in book.worksheets]
    assert rows == [["n", 0, 1, 2], ["n", 3, 4, 5], ["n", 6], ["n"]]
    assert len(set(book.sheetnames)) == 4
    assert all(len(title) <= 31 for title in book.sheetnames)
    assert book.worksheets[0]["B2"].value == "y" * (32_767 - 3) + "..."


def test_databases_hold_every_table(export: Export, shop: Crawl, tmp_path: Path) -> None:
    question = 'SELECT r.name, "address.city", t.value FROM records r JOIN records_tags t USING (record) ORDER BY item'
    expected = [(DATA["name"], "Graz", "a"), (DATA["name"], "Graz", "b")]
    assert export("--records", "--out", "t.sqlite")[0] == 0
    with closing(sqlite3.connect(tmp_path / "t.sqlite")) as db:
        assert db.execute(question).fetchall() == expected
        assert db.execute("SELECT count(*) FROM evidence").fetchone() == (3,)
    assert export("--records", "--out", "t.duckdb")[0] == 0
    with duckdb.connect(tmp_path / "t.duckdb") as found:
        assert found.execute(question).fetchall() == expected
        assert found.execute("SELECT year(record_created), offers_.sizes->>0 FROM records JOIN records_offers offers_ "
                             "USING (record) WHERE item = 0").fetchone() == (2023, "1")  # fmt: skip


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--records", "--out", "t.warc.gz"), "implies no format"),
        (("--records", "--format", "markdown"), "Tables cannot be written as 'markdown'"),
        (("--records", "--format", "xlsx"), "cannot be written to standard output"),
        (("--records", "--out", "t.csv", "--format", "xlsx"), "implies csv"),
        (("--records", "--out", "folder", "--format", "xlsx"), "is a folder"),
        (("--records", "--lists", "xml"), "Use rows or json"),
        (("--records", "--incremental", "--out", "x"), "--incremental does not work with --records"),
        (("--lists", "json"), "--lists belongs to --records"),
    ],
)
def test_what_cannot_be_written_is_refused(export: Export, shop: Crawl, words: tuple[str, ...], says: str) -> None:
    code, _, err = export(*words)
    assert (code, says in err) == (2, True), err


def test_an_export_without_records_says_why(export: Export, store: Store, tmp_path: Path) -> None:
    stored.crawl(store)
    code, _, err = export("--records", "--out", "t.csv")
    assert (code, "has no schema" in err, "curtsy extract --crawl" in err) == (2, True, True)
    crawl = stored.crawl(store, **plan.crawl_fields(SCHEMA))
    assert "has no records" in export("--records", "--out", "t.csv")[2]
    store.run(records.add, record_of(crawl, {"name": "x"}, status="held"))
    code, _, err = export("--records", "--out", "t.csv")
    assert (code, "1 need a decision" in err, "curtsy review list" in err) == (2, True, True)
    assert not list(tmp_path.glob("t*.csv"))


def test_names_that_differ_only_in_case_stay_apart() -> None:
    schema = schemas.inline({"type": "object", "properties": {"a": {"type": "string"}, "A": {"type": "string"}}})
    assert [column.name for column in flat.layout_of(schema).columns] == ["a", "A_"]


def test_the_examples_of_the_documentation_work(export: Export, store: Store, tmp_path: Path) -> None:
    """DuckDB and pandas, on records that were really made from pages."""
    segments = open_segments(tmp_path / ".curtsy" / "segments", 10**9)
    crawl = orgs.make(store, segments, orgs.bodies([1, 6]))
    orgs.run_all(orgs.parts_of(store, segments), crawl)
    segments.close()
    assert export("--records", "--out", "orgs.parquet")[0] == 0
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "how-to" / "tables.md").read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    found: dict[str, Any] = {}
    for block in blocks:
        exec(block, found)
    with store.read() as tx:
        made, _ = records.chunk(tx, crawl.n)
    years = sorted((one.data["name"], one.data["founded_year"]) for one in made if one.data.get("founded_year"))
    assert [(name, year) for name, year, _, _ in found["orgs"]] == years
    assert years
    assert all(str(year) in quote for _, year, quote, _ in found["orgs"])
    emails = sorted(one.data["contact"]["email"] for one in made if one.data.get("contact", {}).get("email"))
    assert sorted(found["checked"]["value"]) == emails
    assert emails
