"""Exports as others read them, exports that go on, and exports to an object store."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import obstore
import pytest
from crawl_folder import CrawlFolder, finish
from object_store import object_store, use
from obstore.store import from_url
from postgres_server import start_postgres
from pyarrow import parquet
from small_site import Say, SmallSite, linking
from stored_pages import StoredPages
from warcio.archiveiterator import ArchiveIterator

from curtsy.cli import main
from curtsy.core.errors import Damaged, UsageError
from curtsy.core.model import Crawl, Page
from curtsy.core.record import Record
from curtsy.export import page_increments, record_increments, tables, targets
from curtsy.export import pages as export
from curtsy.export import records as record_export
from curtsy.export.page_rows import PageRows, pages_of
from curtsy.export.request import ExportRequest
from curtsy.export.tables import Format
from curtsy.export.targets import LocalFolder, target_of
from curtsy.store import pages, records
from curtsy.store.engine import Store
from curtsy.store.warc import warc_date

with warnings.catch_warnings():
    # The package warns of its own old names while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator as FastIterator

OUTPUT = Path(__file__).parents[2] / "docs" / "reference" / "output.md"
KINDS = {"number": "double", "text": "string", "integer": "int", "boolean": "bool", "time": "timestamp"}


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredPages]:
    found = StoredPages(tmp_path / "data")
    yield found
    found.close()


def rows_of(stored: StoredPages, *content: str) -> PageRows:
    return PageRows(stored.store, stored.segments, stored.crawl, content)


def write(stored: StoredPages, out: str | Path, chosen: Format) -> int:
    return export.export(rows_of(stored), target_of(str(out)), chosen)


def add(stored: StoredPages, out: str | Path, chosen: Format = Format.PARQUET, **given: Any) -> int:
    target = target_of(str(out))
    page_increments.check_target(target, chosen)
    return page_increments.add(rows_of(stored), target, chosen, **given)


def untimed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of Parquet with times as JSON Lines have them."""
    return [row | {"fetched_at": row["fetched_at"].isoformat(timespec="milliseconds")} for row in rows]


def urls_in(path: Path, chosen: Format) -> list[str]:
    """As the usual reader of that format finds them."""
    if chosen is Format.JSONL:
        return [json.loads(line)["url"] for line in path.read_text().splitlines()]
    if chosen is Format.CSV:
        with path.open(newline="") as file:
            return [row["url"] for row in csv.DictReader(file)]
    if chosen is Format.PARQUET:
        return [str(url) for url in parquet.read_table(path)["url"].to_pylist()]
    if chosen is Format.WARC:
        with path.open("rb") as file:
            records = [record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(file)]
        return [str(uri) for uri in records if uri]
    return [json.loads(re.findall(r"^url: (.*)$", path.read_text(), re.MULTILINE)[0])]


def urls_under(folder: Path, chosen: Format) -> list[str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return [url for path in files for url in urls_in(path, chosen)]


# As others read them


def test_duckdb_and_pyarrow_read_the_same_rows(stored: StoredPages, tmp_path: Path) -> None:
    made = stored.add(7)
    for name in ("t.parquet", "t.jsonl", "t.csv"):
        assert write(stored, tmp_path / name, export.format_of(Path(name), None)) == 7
    with duckdb.connect() as db:
        reads = {
            name: db.execute(
                f"SELECT url, status, depth, size, unchanged FROM '{tmp_path / name}' ORDER BY depth"
            ).fetchall()
            for name in ("t.parquet", "t.jsonl", "t.csv")
        }
    expected = [(page.url, 200, page.depth, page.size, False) for page in sorted(made, key=lambda page: page.depth)]
    assert reads == dict.fromkeys(reads, expected)
    rows = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert untimed(rows) == [json.loads(line) for line in (tmp_path / "t.jsonl").read_text().splitlines()]


def test_parquet_has_real_times_columns_that_are_never_null_and_the_crawl(stored: StoredPages, tmp_path: Path) -> None:
    stored.add(2)
    write(stored, tmp_path / "t.parquet", Format.PARQUET)
    schema = parquet.read_schema(tmp_path / "t.parquet")
    assert str(schema.field("fetched_at").type) == "timestamp[ms, tz=UTC]"
    never = {name for name in schema.names if not schema.field(name).nullable}
    text = OUTPUT.read_text("utf-8").partition("## Exports: lines and tables")[2].partition("are never null")[0]
    assert never == set(re.findall(r"`(\w+)`", text.rpartition("`bool`.")[2]))
    with duckdb.connect() as db:
        found = db.execute(f"SELECT crawl, year(fetched_at) FROM '{tmp_path}/t.parquet'").fetchall()
    assert found == [(stored.crawl.id, 2024)] * 2


@pytest.mark.parametrize("name", ["t.jsonl", "t.parquet"])
def test_pages_come_with_their_content_on_request(stored: StoredPages, tmp_path: Path, name: str) -> None:
    stored.add(3)
    rows = rows_of(stored, "text", "markdown", "html")
    assert export.export(rows, tmp_path / name, export.format_of(Path(name), None)) == 3
    with duckdb.connect() as db:
        found = db.execute(f"SELECT text, markdown, html FROM '{tmp_path / name}' ORDER BY depth LIMIT 1").fetchone()
    assert found is not None
    text, markdown, html = found
    assert ("Menu 0" in text, "geese" in text) == (True, True)
    assert "**geese**" in markdown
    assert "Menu 0" not in markdown
    assert html.startswith("<html><title>Page 0</title>")


def test_row_groups_are_bounded_by_their_text(
    stored: StoredPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten thousand pages with their HTML would be some GB of memory."""
    stored.add(9)
    monkeypatch.setattr(tables, "GROUP_CHARS", 800)
    export.export(rows_of(stored, "html"), tmp_path / "t.parquet", Format.PARQUET)
    assert parquet.read_metadata(tmp_path / "t.parquet").num_row_groups >= 3


@pytest.mark.parametrize("chosen", [Format.JSONL, Format.CSV, Format.PARQUET])
def test_a_partitioned_export_has_a_file_for_each_host_or_date(
    stored: StoredPages, tmp_path: Path, chosen: Format
) -> None:
    made = [
        replace(page, host=f"h{i % 2}.test:80", fetched_ms=page.fetched_ms + i * 43_200_000)
        for i, page in enumerate(stored.make(5))
    ]
    stored.store.run(pages.insert, made)
    read = {"jsonl": "read_json", "csv": "read_csv", "parquet": "read_parquet"}[chosen]
    for by, parts in (("host", ["h0.test%3A80", "h1.test%3A80"]), ("date", ["2024-10-27", "2024-10-28", "2024-10-29"])):
        out = tmp_path / by
        assert export.export(rows_of(stored), out, chosen, by=by) == 5
        assert export.export(rows_of(stored), out, chosen, by=by) == 5, "an export replaces its folder"
        files = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
        assert files == [".curtsy-export", *(f"{by}={value}/pages.{chosen}" for value in parts)]
        with duckdb.connect() as db:
            query = f"SELECT {by}::TEXT, url FROM {read}('{out}/*/*.{chosen}', hive_partitioning = true) ORDER BY url"
            found = db.execute(query).fetchall()
        values = [page.host if by == "host" else export_date(page) for page in made]
        assert found == [(value, page.url) for value, page in zip(values, made, strict=True)]


def export_date(page: Page) -> str:
    return str(tables.iso(page.fetched_ms))[:10]


def test_the_documented_columns_are_those_of_the_parquet_file(stored: StoredPages, tmp_path: Path) -> None:
    stored.add()
    write(stored, tmp_path / "t.parquet", Format.PARQUET)
    schema = parquet.read_schema(tmp_path / "t.parquet")
    text = OUTPUT.read_text("utf-8").partition("## Exports: lines and tables")[2].partition("\n## ")[0]
    documented: dict[str, str] = {}
    for names, kind in re.findall(r"^\| (`[^|]+`) \| (\w+) \|", text, re.MULTILINE):
        documented |= dict.fromkeys(re.findall(r"`(\w+)`", names), kind)
    assert list(documented) == schema.names
    for name, kind in documented.items():
        assert str(schema.field(name).type).startswith(KINDS[kind]), name


def test_warcio_check_passes(stored: StoredPages, tmp_path: Path) -> None:
    stored.add(5)
    assert write(stored, tmp_path / "t.warc.gz", Format.WARC) == 5
    program = Path(sys.executable).with_name("warcio")
    done = subprocess.run([program, "check", "-v", tmp_path / "t.warc.gz"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("digest pass") >= 5


def test_fastwarc_confirms_the_digest_of_every_record(stored: StoredPages, tmp_path: Path) -> None:
    stored.add(5)
    write(stored, tmp_path / "t.warc.gz", Format.WARC)
    read = {}
    for checked in (False, True):
        with (tmp_path / "t.warc.gz").open("rb") as file:
            kinds = [record.record_type for record in FastIterator(file, verify_digests=checked)]
        read[checked] = kinds
    assert len(read[True]) == 6
    assert read[True] == read[False]


def test_an_export_tells_how_many_pages_it_has_read(stored: StoredPages, tmp_path: Path) -> None:
    stored.add(3)
    read: list[int] = []
    rows = PageRows(stored.store, stored.segments, stored.crawl, progress=read.append)
    assert export.export(rows, tmp_path / "markdown", Format.MARKDOWN) == 3
    assert read == [1, 2, 3]


def test_an_unchanged_page_has_a_revisit_with_the_date_of_this_crawl(stored: StoredPages, tmp_path: Path) -> None:
    (page,) = stored.add(1)
    later_ms = page.fetched_ms + 86_400_000
    again = replace(page, unchanged=True, fetched_ms=later_ms)
    rows = PageRows(stored.store, stored.segments, stored.crawl)
    data = b"".join(export.blocks_of(rows, [again], Format.WARC, tables.Tally(), "t.warc.gz"))
    found = [(record.rec_type, dict(record.rec_headers.headers)) for record in ArchiveIterator(io.BytesIO(data))]
    assert [kind for kind, _ in found] == ["warcinfo", "response", "revisit"]
    first, second = found[1][1], found[2][1]
    assert first["WARC-Date"] == warc_date(page.fetched_ms)
    assert second["WARC-Date"] == warc_date(later_ms)
    assert (second["WARC-Refers-To-Target-URI"], second["WARC-Refers-To-Date"]) == (page.url, first["WARC-Date"])
    assert second["WARC-Payload-Digest"] == first["WARC-Payload-Digest"]
    assert len(list(FastIterator(io.BytesIO(data), verify_digests=True))) == 3


@pytest.mark.parametrize("chosen", [Format.JSONL, Format.CSV, Format.PARQUET])
def test_memory_does_not_grow_with_the_crawl(chosen: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "GROUP", 1000)
    monkeypatch.setattr(tables, "BLOCK", 64_000)
    page = Page(id="1-00", crawl=1, fp=b"\0" * 16, url="", host="a.test", status=200, fetched_ms=0, depth=1)
    rows = PageRows(None, None, Crawl(id="c", request_id="r"))  # type: ignore[arg-type]

    def peak(n: int) -> tuple[int, int]:
        found = (replace(page, url=f"https://a.test/{i}" + "x" * 200, title=f"{i * 7919}" * 20) for i in range(n))
        tracemalloc.start()
        blocks = export.blocks_of(rows, found, chosen, tables.Tally(), "t")
        size = sum(map(len, blocks))
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size, highest

    few, many = peak(3_000), peak(12_000)
    assert many[0] > 3.5 * few[0]
    assert many[1] < 1.5 * few[1]


# Exports that go on


@pytest.mark.parametrize("chosen", list(Format))
def test_each_page_is_exported_once(stored: StoredPages, tmp_path: Path, chosen: Format) -> None:
    out = tmp_path / "out"
    first = [page.url for page in stored.add(5)]
    assert add(stored, out, chosen) == 5
    assert add(stored, out, chosen) == 0
    more = [page.url for page in stored.add(3)]
    assert add(stored, out, chosen) == 3
    assert sorted(urls_under(out, chosen)) == sorted(first + more)
    assert not list(out.glob(".*.parquet*"))


def test_a_large_export_is_written_in_parts(stored: StoredPages, tmp_path: Path) -> None:
    stored.add(10)
    assert add(stored, tmp_path / "out", part=4) == 10
    assert sorted(parquet.read_metadata(path).num_rows for path in (tmp_path / "out").glob("*.parquet")) == [2, 4, 4]
    with duckdb.connect() as db:
        found = db.execute(f"SELECT count(*), count(DISTINCT id) FROM '{tmp_path}/out/*.parquet'").fetchone()
    assert found == (10, 10)


def test_a_part_without_its_note_counts(stored: StoredPages, tmp_path: Path) -> None:
    """As a process that was killed between the two leaves it."""
    stored.add(3)
    add(stored, tmp_path / "out")
    (tmp_path / "out" / page_increments.STATE).unlink()
    assert add(stored, tmp_path / "out") == 0
    (fresh,) = stored.add(1)
    assert add(stored, tmp_path / "out") == 1
    assert urls_under(tmp_path / "out", Format.PARQUET).count(fresh.url) == 1
    assert len(urls_under(tmp_path / "out", Format.PARQUET)) == 4


def test_a_killed_export_leaves_each_page_once(stored: StoredPages, tmp_path: Path) -> None:
    made = stored.add(160)
    out = tmp_path / "out"
    script = f"""
from pathlib import Path
from curtsy.export import page_increments, page_rows, pages as export
from curtsy.core.settings_loading import load
from curtsy.store import crawls
from curtsy.store.engine import Store
settings = load(data_dir=Path({str(stored.settings.data_dir)!r}))
with Store.open(settings.effective_store_url) as store:
    with store.read() as tx:
        crawl = crawls.get(tx, "last")
    rows = page_rows.PageRows(store, page_rows.segments_of(settings), crawl)
    page_increments.add(rows, Path({str(out)!r}), export.Format.JSONL, part=4)
"""
    for parts in (4, 16):
        process = subprocess.Popen([sys.executable, "-c", script])
        while len(list(out.glob("*.jsonl"))) < parts:
            assert process.poll() is None, "it was not killed in time"
            time.sleep(0.001)
        process.kill()
        process.wait()
    assert len(list(out.glob("*.jsonl"))) < 40
    add(stored, out, Format.JSONL)
    assert sorted(urls_under(out, Format.JSONL)) == sorted(page.url for page in made)


def test_parts_may_be_taken_away(stored: StoredPages, tmp_path: Path) -> None:
    stored.add(3)
    add(stored, tmp_path / "out")
    for path in (tmp_path / "out").glob("*.parquet"):
        path.unlink()
    assert add(stored, tmp_path / "out") == 0
    stored.add(1)
    assert add(stored, tmp_path / "out") == 1


def test_an_interrupted_export_continues_where_it_was(stored: StoredPages, tmp_path: Path) -> None:
    made = stored.add(4)
    body = made[2].body
    assert body is not None
    segment = stored.settings.segments_dir / body.segment
    whole = segment.read_bytes()
    segment.write_bytes(whole[: body.offset] + b"\0" * body.length + whole[body.offset + body.length :])
    with pytest.raises(Damaged):
        add(stored, tmp_path / "out", Format.WARC, part=1)
    assert urls_under(tmp_path / "out", Format.WARC) == [page.url for page in made[:2]]
    segment.write_bytes(whole)
    assert add(stored, tmp_path / "out", Format.WARC, part=1) == 2
    assert urls_under(tmp_path / "out", Format.WARC) == [page.url for page in made]


def test_several_crawls_may_share_a_folder(stored: StoredPages, tmp_path: Path) -> None:
    stored.add(2)
    add(stored, tmp_path / "out")
    other = StoredPages(tmp_path / "other")
    other.crawl = replace(other.crawl, id="01930000-0000-7000-8000-000000000002")
    other.add(3)
    assert add(other, tmp_path / "out") == 3
    assert add(stored, tmp_path / "out") == 0
    assert len(urls_under(tmp_path / "out", Format.PARQUET)) == 5
    other.close()


def test_two_exports_do_not_write_to_one_folder_at_once(stored: StoredPages, tmp_path: Path) -> None:
    stored.add()
    with LocalFolder(tmp_path / "out").hold(), pytest.raises(UsageError, match="Another export"):
        add(stored, tmp_path / "out")
    assert add(stored, tmp_path / "out") == 1


def test_a_number_that_may_be_given_again_is_reported(stored: StoredPages, tmp_path: Path) -> None:
    made = stored.add(2)
    add(stored, tmp_path / "out")
    with stored.store.begin() as tx:
        tx.exec_driver_sql("DELETE FROM pages WHERE fp = ?", (made[1].fp,))
    stored.add(1)  # SQLite gives it the number of the deleted one
    with pytest.raises(UsageError, match="has been deleted"):
        add(stored, tmp_path / "out")


@pytest.mark.parametrize("out", ["x.parquet", "s3://bucket/x.jsonl"])
def test_an_increment_needs_a_folder(stored: StoredPages, out: str) -> None:
    with pytest.raises(UsageError, match="folder"):
        add(stored, out)


def test_a_folder_keeps_its_format(stored: StoredPages, tmp_path: Path) -> None:
    stored.add()
    add(stored, tmp_path / "out", Format.CSV)
    with pytest.raises(UsageError, match="as csv"):
        add(stored, tmp_path / "out", Format.PARQUET)
    (tmp_path / "md").mkdir()
    (tmp_path / "md" / targets.MARK).touch()
    with pytest.raises(UsageError, match="complete export"):
        add(stored, tmp_path / "md", Format.MARKDOWN)


def test_whoever_is_committing_is_waited_for(tmp_path: Path) -> None:
    """On PostgreSQL a page may have a lower number than one that is committed already."""
    with start_postgres(tmp_path / "pg") as server:
        stored = StoredPages(tmp_path / "data", server.create_database("export"))
        early, late = (replace(page, body=None) for page in stored.make(2))  # two commits do not share a segment
        done: list[int] = []
        with stored.store.begin() as tx:
            pages.insert(tx, [early])
            stored.store.run(pages.insert, [late])
            other = threading.Thread(target=lambda: done.append(add(stored, tmp_path / "out", Format.JSONL)))
            other.start()
            _until_somebody_waits(stored)
            assert not done
        other.join(30)
        assert done == [2]
        assert urls_under(tmp_path / "out", Format.JSONL) == [early.url, late.url]
        stored.close()


def _until_somebody_waits(stored: StoredPages) -> None:
    query = "SELECT count(*) FROM pg_locks WHERE NOT granted AND mode = 'ShareLock'"
    for _ in range(3000):
        with stored.store.read() as tx:
            if tx.exec_driver_sql(query).scalar():
                return
        threading.Event().wait(0.01)
    raise AssertionError("nobody waited")


# Records


@pytest.fixture
def recorded(stored: StoredPages) -> StoredPages:
    """A record in each state, the published one with a value that is withheld."""
    made = stored.add(4)
    for page, status in zip(made, ("published", "held", "rejected", "superseded"), strict=True):
        record = Record(
            crawl=stored.crawl.n, subject=page.fp.hex(), schema="bird", schema_hash="h", status=status, url=page.url,
            data={"name": f"{status} goose"}, withheld=({"path": "/age", "value": "a secret"},), created_ms=1000,
            fields=({"path": "/name", "value": "x", "rung": "selector", "verdict": "supported", "evidence": []},),
        )  # fmt: skip
        stored.store.run(records.add, record)
    return stored


@pytest.mark.parametrize("name", ["r.jsonl", "r.csv", "r.parquet"])
def test_only_published_records_are_exported(recorded: StoredPages, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    chosen = export.format_of(out, None)
    ExportRequest(what="records", format=chosen).check()
    written = tables.Tally()
    targets.write_whole(out, record_export.blocks_of(recorded.store, recorded.crawl, chosen, written))
    assert written.n == 1
    with duckdb.connect() as db:
        found = db.execute(f"SELECT \"schema\", version, data::JSON->>'name', url FROM '{out}'").fetchall()
    (url,) = (page.url for page in pages_of(recorded.store, recorded.crawl.n, 0, 1))
    assert found == [("bird", 1, "published goose", url)]
    assert b"secret" not in out.read_bytes()
    if chosen is Format.PARQUET:
        rows = parquet.read_table(out).to_pylist()
        assert list(rows[0]) == list(record_export.COLUMNS)
        assert json.loads(rows[0]["fields"])[0]["path"] == "/name"
        assert (rows[0]["created"], rows[0]["reviewed"]) == ("1970-01-01T00:00:01.000+00:00", None)


def test_the_documented_columns_are_those_of_records() -> None:
    text = OUTPUT.read_text("utf-8").partition("## Exports: records")[2].partition("\n## ")[0]
    documented: dict[str, str] = {}
    for names, kind in re.findall(r"^\| (`[^|]+`) \| (\w+) \|", text, re.MULTILINE):
        documented |= dict.fromkeys(re.findall(r"`(\w+)`", names), kind)
    assert {name: KINDS.get(kind, "string") for name, kind in documented.items()} == {
        name: kind.rstrip("3264") for name, kind in record_export.COLUMNS.items()
    }


@pytest.mark.parametrize(
    "words",
    [
        ("--what", "records", "--out", "folder"),
        ("--what", "records", "--out", "x.warc.gz"),
        ("--what", "records", "--out", "x.csv", "--incremental"),
        ("--what", "records", "--out", "folder", "--incremental"),
        ("--what", "everything"),
    ],
)
def test_records_have_no_other_forms(
    recorded: StoredPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["curtsy", "export", "--data-dir", str(recorded.settings.data_dir), *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


def names_in(out: Path) -> list[str]:
    found = [json.loads(line) for path in sorted(out.glob("*.jsonl")) for line in path.read_text().splitlines()]
    return [row["data"]["name"] for row in found]


def decide(stored: StoredPages, name: str, status: str) -> None:
    """As a person does."""
    with stored.store.begin() as tx:
        (found,) = (one for one in records.chunk(tx, stored.crawl.n, statuses=())[0] if one.data["name"] == name)
        records.decided(tx, replace(found, status=status, reviewed_ms=2000))


def test_records_continue_with_what_was_published_since(recorded: StoredPages, tmp_path: Path) -> None:
    out, crawl = tmp_path / "out", replace(recorded.crawl, schema_hash="h")

    def more() -> int:
        return record_increments.add(recorded.store, crawl, out, Format.JSONL)

    assert (more(), more()) == (1, 0)
    decide(recorded, "held goose", "published")
    assert (more(), more()) == (1, 0)
    decide(recorded, "rejected goose", "published")
    (page,) = recorded.add(1)
    fresh = Record(
        crawl=crawl.n, subject=page.fp.hex(), schema="bird", schema_hash="h", url=page.url, data={"name": "new goose"}
    )
    recorded.store.run(records.add, fresh)
    assert (more(), more()) == (2, 0)
    expected = ["published goose", "held goose", "rejected goose", "new goose"]
    assert sorted(names_in(out)) == sorted(expected)
    with pytest.raises(UsageError, match="contains records"):
        add(recorded, out, Format.JSONL)


class _Cut(Exception):
    """The process is killed here."""


@pytest.mark.parametrize("at", [1, 2, 3])
def test_records_are_exported_once_wherever_it_is_cut(
    recorded: StoredPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
) -> None:
    """Between the steps: the next state, the part, the state."""
    out, crawl = tmp_path / "out", replace(recorded.crawl, schema_hash="h")
    record_increments.add(recorded.store, crawl, out, Format.JSONL)
    decide(recorded, "held goose", "published")
    whole = LocalFolder.write

    def write(folder: LocalFolder, name: str, blocks: Any) -> None:
        if name == page_increments.RECORDS and at == 3:
            raise _Cut
        if name == record_increments.NEXT and at == 1:
            raise _Cut
        whole(folder, name, _cut_at_end(blocks) if at == 2 and name.endswith(".jsonl") else blocks)

    monkeypatch.setattr(LocalFolder, "write", write)
    with pytest.raises(_Cut):
        record_increments.add(recorded.store, crawl, out, Format.JSONL)
    monkeypatch.undo()
    record_increments.add(recorded.store, crawl, out, Format.JSONL)
    assert sorted(names_in(out)) == ["held goose", "published goose"]


def _cut_at_end(blocks: Any) -> Iterator[bytes]:
    yield from blocks
    raise _Cut


# To an object store


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with object_store() as address:
        yield address


@pytest.fixture
def s3(server: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    client = use(server, monkeypatch)
    client.create_bucket(Bucket="exports")
    yield client
    for entry in client.list_objects_v2(Bucket="exports").get("Contents", ()):
        client.delete_object(Bucket="exports", Key=entry["Key"])
    client.delete_bucket(Bucket="exports")
    client.close()


def fetched(tmp_path: Path) -> Path:
    """The bucket as a folder."""
    folder = tmp_path / "fetched"
    store = from_url("s3://exports")
    for part in obstore.list(store):
        for entry in part:
            path = folder / entry["path"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(bytes(obstore.get(store, entry["path"]).bytes()))
    return folder


@pytest.mark.parametrize(("name", "chosen"), [(f"deep/t{ending}", chosen) for ending, chosen in export.ENDINGS.items()])
def test_a_file_goes_to_the_object_store(
    stored: StoredPages, s3: Any, tmp_path: Path, name: str, chosen: Format
) -> None:
    made = stored.add(4)
    target = target_of(f"s3://exports/{name}")
    assert export.format_of(target, None) is chosen
    export.check_target(target, chosen)
    assert write(stored, f"s3://exports/{name}", chosen) == 4
    assert urls_in(fetched(tmp_path) / name, chosen) == [page.url for page in made]


def test_a_folder_of_markdown_is_replaced_in_the_object_store(stored: StoredPages, s3: Any, tmp_path: Path) -> None:
    made = stored.add(2)
    s3.put_object(Bucket="exports", Key="other/file.txt", Body=b"not ours")
    with pytest.raises(UsageError, match="is not an export"):
        export.check_target(target_of("s3://exports/other"), Format.MARKDOWN)
    for _ in range(2):
        export.check_target(target_of("s3://exports/md"), Format.MARKDOWN)
        assert write(stored, "s3://exports/md", Format.MARKDOWN) == 2
    assert sorted(urls_under(fetched(tmp_path) / "md", Format.MARKDOWN)) == sorted(page.url for page in made)
    assert (fetched(tmp_path) / "other" / "file.txt").read_bytes() == b"not ours"


def test_a_crawl_may_export_there_when_it_ends(s3: Any, tmp_path: Path) -> None:
    with SmallSite({"/": linking("/a", "/b"), "/a": linking(), "/b": linking()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            out = "s3://exports/crawl.jsonl"
            finish(folder.start("crawl", "http://a.small.test/", "--delay", "0.01", "--out", out, "--json"))
        finally:
            folder.close()
    assert len(urls_in(fetched(tmp_path) / "crawl.jsonl", Format.JSONL)) == 3


def test_increments_go_to_the_object_store(stored: StoredPages, s3: Any, tmp_path: Path) -> None:
    stored.add(3)
    assert add(stored, "s3://exports/parts") == 3
    assert add(stored, "s3://exports/parts/") == 0
    stored.add(2)
    s3.delete_object(Bucket="exports", Key=f"parts/{page_increments.STATE}")
    assert add(stored, "s3://exports/parts") == 2
    assert len(set(urls_under(fetched(tmp_path) / "parts", Format.PARQUET))) == 5


def test_large_objects_are_sent_in_parts_while_they_are_made(s3: Any, tmp_path: Path) -> None:
    target = target_of("s3://exports/large.bin")
    assert target is not None
    blocks = [bytes([i]) * 1_000_000 for i in range(40)]
    target.put(iter(blocks))  # type: ignore[union-attr]
    assert (fetched(tmp_path) / "large.bin").read_bytes() == b"".join(blocks)
    assert s3.head_object(Bucket="exports", Key="large.bin")["ETag"].strip('"').endswith("-3")


def test_an_interrupted_upload_leaves_nothing(s3: Any) -> None:
    def blocks() -> Iterator[bytes]:
        yield from (b"x" * 1_000_000 for _ in range(40))
        raise Damaged("a segment cannot be read")

    with pytest.raises(Damaged):
        target_of("s3://exports/half.bin").put(blocks())  # type: ignore[union-attr]
    assert "Contents" not in s3.list_objects_v2(Bucket="exports")
    assert "Uploads" not in s3.list_multipart_uploads(Bucket="exports")


def test_a_document_is_exported_with_its_facts_and_as_markdown(tmp_path: Path) -> None:
    table = b"name,price\nplum,1\n"
    found = {
        "/": linking("/list.csv", "/empty.txt"),
        "/list.csv": Say(table, headers=(("Content-Type", "text/csv"),)),
        "/empty.txt": Say(b" \n", headers=(("Content-Type", "text/plain"),)),
    }
    with SmallSite(found) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            folder.crawl("http://a.small.test/")
            for name in ("pages.jsonl", "pages.parquet", "pages.csv", "md"):
                folder.run("export", "last", "--out", str(tmp_path / name))
        finally:
            folder.close()
    lines = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    facts = {line["url"].rpartition("/")[2]: (line["document"], line["problem"]) for line in lines}
    assert facts == {"": (None, None), "list.csv": ("csv", None), "empty.txt": ("text", "no_text")}
    assert untimed(parquet.read_table(tmp_path / "pages.parquet").to_pylist()) == lines
    assert "document,problem,document_pages" in (tmp_path / "pages.csv").read_text().splitlines()[0]
    written = {path.name: path.read_text() for path in (tmp_path / "md").rglob("*.md")}
    (csv_text,) = (text for name, text in written.items() if name.startswith("list.csv"))
    assert "| plum | 1 |" in csv_text
    assert 'document: "csv"' in csv_text
    assert any('problem: "no_text"' in text for text in written.values())


@pytest.mark.parametrize("full_page", [False, True])
def test_markdown_is_the_main_content_or_the_full_page(stored: StoredPages, tmp_path: Path, full_page: bool) -> None:
    stored.add(2)
    whole, parts = target_of(str(tmp_path / "whole")), target_of(str(tmp_path / "parts"))
    export.export(rows_of(stored), whole, Format.MARKDOWN, full_page=full_page)
    page_increments.add(rows_of(stored), parts, Format.MARKDOWN, full_page=full_page)
    texts = [file.read_text("utf-8") for file in sorted(tmp_path.glob("*/a.test/*.md"))]
    assert len(texts) == 4
    assert all("**geese**" in text and ("Menu" in text) == full_page for text in texts)


def test_only_a_revisit_needs_a_transaction_of_its_own(
    stored: StoredPages, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored.add(5)
    read, opened = Store.read, 0

    def counted(store: Store) -> Any:
        nonlocal opened
        opened += 1
        return read(store)

    monkeypatch.setattr(Store, "read", counted)
    assert write(stored, tmp_path / "markdown", Format.MARKDOWN) == 5
    assert opened == 2  # the pages, and that there are no more
