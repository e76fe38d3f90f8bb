"""Commands that look at what was crawled, over a real store and real segments."""

from __future__ import annotations

import builtins
import csv
import errno
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from curtsy.cli import main
from curtsy.core.model import Crawl, CrawlState, Failure, Kind, NewUrl, Page, Request, RobotsState
from curtsy.export import pages as export
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, failures, hosts, pages, queues, requests, urls
from curtsy.store.engine import Store
from curtsy.store.segments import Segments
from curtsy.store.urls import Settle
from curtsy.store.warc import WarcItem

HTML = b"<html><head><title>Hello</title></head><body><h1>Hello</h1><p>A page about <b>geese</b>.</p></body></html>"
ID = "01930000-0000-7000-8000-000000000001"
T0 = 1_730_000_000_000
#: a user who owns nothing
NOBODY = 65534


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> Result:
        monkeypatch.setattr(sys, "argv", ["curtsy", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Result(ended.value.code, printed.out, printed.err)

    return call


@pytest.fixture
def crawled(tmp_path: Path) -> Path:
    """A finished crawl: two pages, one dead letter, one URL that robots.txt forbids, one on a dead host."""
    folder = tmp_path / ".curtsy"
    segments = Segments(folder / "segments")
    with Store.open(f"sqlite:///{folder}/curtsy.sqlite") as store, store.begin() as tx:
        crawl = crawls.create(tx, Crawl(id=ID, request_id="r", members=frozenset({"a.test"}), created_ms=T0))
        n = crawl.n
        paths = [
            "https://a.test/",
            "https://a.test/two?x=ü",
            "https://a.test/bad",
            "https://a.test/private",
            "https://dead.test/",
        ]
        found = [NewUrl(crawl=n, fp=fingerprint(url), url=url, host=url.split("/")[2]) for url in paths]
        queues.open_queues(tx, [(n, "a.test", "batch", 4), (n, "dead.test", "batch", 1)])
        urls.insert(tx, found, T0)
        states = [("done", ""), ("done", ""), ("failed", "timeout"), ("skipped", "robots")]
        settled = [
            Settle(n, new.fp, 10 + i, *state, attempts=1)
            for i, (new, state) in enumerate(zip(found, states, strict=False))
        ]
        urls.settle(tx, settled, T0 + 5000)
        queues.mark_dead(tx, n, "dead.test", "host_unreachable")
        crawls.add_counts(
            tx, {(n, "open", ""): 5, (n, "done", ""): 2, (n, "failed", "timeout"): 1, (n, "skipped", "robots"): 1}
        )
        crawls.add_pages(tx, {n: 2})
        for i, new in enumerate(found[:2]):
            body = HTML + b"<!-- %d -->" % i
            digest = hashlib.sha256(body).hexdigest()
            headers = [("Content-Type", "text/html")]
            item = WarcItem(url=new.url, fetched_ms=T0, status=200, headers=headers, body=body, sha256=digest)
            page = Page(
                id="", crawl=n, fp=new.fp, fence=10 + i, url=new.url, host=new.host, status=200, fetched_ms=T0 + i,
                depth=i, content_type="text/html", title="Hello", sha256=digest, size=len(body),
                body=segments.append([item])[0],
            )  # fmt: skip
            pages.insert(tx, [page])
        failures.insert(
            tx,
            [
                Failure(
                    id="f1",
                    crawl=n,
                    fp=found[2].fp,
                    url=found[2].url,
                    host="a.test",
                    cause="timeout",
                    fence=12,
                    at_ms=T0,
                )
            ],
        )
        hosts.upsert_robots(
            tx,
            [RobotsState(origin="https://a.test", host="a.test", fetched_ms=T0 - 1, expires_ms=T0 * 2, status=200,
                         body=b"User-agent: *\nDisallow: /private\n")],
        )  # fmt: skip
        requests.insert(tx, [_request(i, found[i].url) for i in range(3)])
        crawls.set_state(tx, n, CrawlState.FINISHED, None, T0 + 6000)
    segments.close()
    return folder


def _request(i: int, url: str, at_ms: int | None = None) -> Request:
    start_ms = T0 + i * 1000 if at_ms is None else at_ms
    return Request(
        fence=10 + i, crawl=1, host="a.test", url=url, start_ms=start_ms, end_ms=start_ms + 50, kind=Kind.PAGE,
        status=200, delay_ms=1000,
    )  # fmt: skip


def test_status_gives_the_stable_fields(run: Run, crawled: Path) -> None:
    result = run("status", "--json")
    assert result.code == 0
    fields = {
        "id": ID,
        "state": "finished",
        "pages": 2,
        "done": 2,
        "skipped": {"robots": 1},
        "failed": {"timeout": 1, "host_unreachable": 1},
        "failed_stages": {},
        "pending": 0,
        "pending_render": 0,
        "elapsed_s": 6.0,
    }
    assert result.document is not None
    assert result.document.items() >= fields.items()
    assert run("status", ID[:8], "--json").document["id"] == ID
    assert [crawl["id"] for crawl in run("status", "--all", "--json").document["crawls"]] == [ID]
    assert "dead letters" in run("status").out
    table = run("status", "--all").out
    assert ID in table
    assert "dead letters" in table


def test_an_unknown_crawl_is_a_usage_error_that_says_what_to_do(run: Run, crawled: Path) -> None:
    result = run("status", "nonsense")
    assert result.code == 2
    assert "curtsy status" in result.err
    assert result.out == ""


def test_a_folder_without_a_crawl_is_a_usage_error(run: Run) -> None:
    result = run("status")
    assert result.code == 2
    assert "curtsy crawl" in result.err


def test_every_line_of_jsonl_has_the_promised_fields(run: Run, crawled: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in run("export").out.splitlines()]
    assert [line["url"] for line in lines] == ["https://a.test/", "https://a.test/two?x=ü"]
    for line in lines:
        assert {"url", "status", "fetched_at", "content_type", "title", "sha256", "depth", "segment"} <= set(line)
    name, offset, length = lines[1]["segment"].split(":")
    stored = (crawled / "segments" / name).read_bytes()[int(offset) :][: int(length)]
    assert HTML in gzip.decompress(stored)
    assert lines[0]["fetched_at"] == "2024-10-27T03:33:20.000+00:00"


def test_csv_and_parquet_have_the_same_rows(run: Run, crawled: Path, tmp_path: Path) -> None:
    from pyarrow import parquet

    lines = [json.loads(line) for line in run("export").out.splitlines()]
    assert run("export", "--out", "t.csv").code == 0
    assert run("export", "--out", "t.parquet").code == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "t.csv").read_text("utf-8"))))
    assert [row["url"] for row in rows] == [line["url"] for line in lines]
    assert [row["sha256"] for row in rows] == [line["sha256"] for line in lines]
    found = parquet.read_table(tmp_path / "t.parquet").to_pylist()
    assert [row | {"fetched_at": row["fetched_at"].isoformat(timespec="milliseconds")} for row in found] == lines


def test_content_and_partitions_are_options_of_pages(run: Run, crawled: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in run("export", "--with", "text,html", "--with", "markdown").out.splitlines()]
    assert ["A page about geese." in line["text"] for line in lines] == [True, True]
    assert "**geese**" in lines[0]["markdown"]
    assert "<b>geese</b>" in lines[0]["html"]
    assert run("export", "--out", "by-host", "--partition-by", "host", "--format", "jsonl").code == 0
    assert (tmp_path / "by-host" / "host=a.test" / "pages.jsonl").exists()
    for words in (
        ("--with", "words"), ("--with", "text", "--out", "t.csv"), ("--partition-by", "size", "--out", "x"),
        ("--partition-by", "host"), ("--partition-by", "host", "--out", "x.parquet"),
        ("--partition-by", "host", "--out", "x", "--format", "warc"), ("--records", "--with", "text"),
        ("--partition-by", "host", "--out", "x", "--incremental"),
    ):  # fmt: skip
        assert run("export", *words).code == 2, words


def test_csv_for_spreadsheets_has_no_formulas(run: Run, crawled: Path, tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{crawled}/curtsy.sqlite") as store, store.begin() as tx:
        tx.exec_driver_sql("UPDATE pages SET title = '=1+1'")
    for options, title in (((), "=1+1"), (("--csv-safe",), "'=1+1")):
        assert run("export", "--out", "t.csv", *options).code == 0
        with (tmp_path / "t.csv").open() as file:
            assert {row["title"] for row in csv.DictReader(file)} == {title}
    assert run("export", "--csv-safe").code == 2


def test_the_full_page_is_an_option_of_markdown(run: Run, crawled: Path, tmp_path: Path) -> None:
    assert run("export", "--out", "pages", "--full-page").code == 0
    assert list((tmp_path / "pages").glob("*/*.md"))
    assert "--full-page works with Markdown only" in run("export", "--full-page").err


@pytest.mark.parametrize("words", [("status", "--json"), ("export",), ("hosts", "list")])
def test_a_reader_that_has_enough_is_no_error(crawled: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        command = [sys.executable, "-m", "curtsy.cli", *words]
        ended = subprocess.run(command, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (0, "")


def test_an_emptied_database_beside_segments_is_warned_of(crawled: Path, tmp_path: Path) -> None:
    def warned() -> bool:
        command = [sys.executable, "-m", "curtsy.cli", "status"]
        ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return "database_empty" in ended.stderr

    assert not warned()
    for file in crawled.glob("curtsy.sqlite*"):
        file.write_bytes(b"")
    assert warned()


def test_a_data_folder_that_is_a_file_is_reported(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for words in (("status",), ("crawl", "http://a.test/")):
        told = run(*words, "--data-dir", "file")
        assert (told.code, told.err) == (2, "curtsy: file is a file; --data-dir (data_dir) must name a folder.\n")


def test_warc_has_the_stored_records(run: Run, crawled: Path, tmp_path: Path) -> None:
    result = run("export", "--out", "t.warc.gz", "--json")
    assert result.document == {"id": ID, "format": "warc", "out": "t.warc.gz", "pages": 2}
    with (tmp_path / "t.warc.gz").open("rb") as file:
        records = [(record.rec_type, record.content_stream().read()) for record in ArchiveIterator(file)]
    assert [kind for kind, _ in records] == ["warcinfo", "response", "response"]
    assert HTML in records[1][1]


def test_markdown_is_a_folder_that_only_its_own_kind_replaces(run: Run, crawled: Path, tmp_path: Path) -> None:
    assert run("export", "--out", "md").code == 0
    assert run("export", "--out", "md").code == 0
    files = sorted((tmp_path / "md" / "a.test").iterdir())
    assert len(files) == 2
    text = files[0].read_text("utf-8")
    assert text.startswith('---\nurl: "https://a.test/')
    assert "# Hello" in text
    assert "geese" in text
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("years of work")
    refused = run("export", "--out", "mine")
    assert refused.code == 2
    assert (tmp_path / "mine" / "thesis.txt").exists()


def test_an_export_that_fails_leaves_nothing_behind(run: Run, crawled: Path, tmp_path: Path) -> None:
    for segment in (crawled / "segments").iterdir():
        segment.write_bytes(b"")
    before = set(tmp_path.iterdir())
    assert run("export", "--out", "t.warc.gz").code == 4
    assert run("export", "--out", "md").code == 4
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("out", ["/proc/nope/x.parquet", "/proc/nope/md"])
def test_a_place_that_takes_nothing_is_named_as_it_was_given(run: Run, out: str) -> None:
    refused = run("export", "--out", out)
    assert refused.code == 2
    assert f"{out} cannot be written: No such file or directory. Use another --out" in refused.err


def test_a_place_that_is_full_is_named(run: Run, crawled: Path) -> None:
    full = run("export", "--out", "/dev/full", "--format", "jsonl")
    assert full.code == 4
    assert "No space left on device: '/dev/full'" in full.err


def test_a_folder_that_is_full_is_named(
    run: Run, crawled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.open

    def full_disk(path: Any, *given: Any, **named: Any) -> Any:
        if str(path).endswith(".md"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, *given, **named)

    monkeypatch.setattr(builtins, "open", full_disk)
    out = tmp_path / "pages"
    full = run("export", "--out", str(out), "--format", "markdown")
    assert full.code == 4
    assert f"No space left on device: '{out}'" in full.err
    assert not [path for path in tmp_path.iterdir() if "pages" in path.name]


def test_an_empty_name_is_no_place(run: Run, crawled: Path) -> None:
    refused = run("export", "--out", "")
    assert refused.code == 2
    assert "--out is empty" in refused.err


def test_what_is_empty_is_not_deleted(run: Run, crawled: Path) -> None:
    for words in (("--crawl", ""), ("--url", "https://a.test/", "--crawl", ""), ("--host", "")):
        refused = run("delete", *words, "--yes")
        assert refused.code == 2
        assert "is empty" in refused.err
    assert run("status", "--json").document["pages"] == 2


def test_a_deletion_without_an_answer_or_of_no_url_says_only_that(
    run: Run, crawled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for input_ in (io.StringIO(""), None):
        monkeypatch.setattr(sys, "stdin", input_)
        silent = run("delete", "--host", "a.test")
        assert (silent.code, "Nothing was deleted: there was no answer. Use --yes" in silent.err) == (2, True)
        assert "no crawl was started" not in silent.err
    for words in (("--url", "foo"), ("--host", "*")):
        refused = run("delete", *words, "--yes")
        assert (refused.code, "is not a valid" in refused.err, "Deleting" in refused.err) == (2, True, False)
    assert run("status", "--json").document["pages"] == 2


@pytest.mark.parametrize(
    ("api", "key", "words", "said"),
    [
        ("http://127.0.0.1:99999", "", ("status",), "Invalid API address"),
        ("http://[::1", "", ("status",), "Invalid API address"),
        ("http://127.0.0.1:9", "a\nb", ("status",), "The API key has invalid characters"),
        ("http://127.0.0.1:9", "", ("status", ""), "is empty: give"),
        ("http://127.0.0.1:9", "", ("pause", ""), "is empty: give"),
    ],
)
def test_what_cannot_be_asked_of_an_api_is_reported_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, api: str, key: str, words: tuple[str, ...], said: str
) -> None:
    monkeypatch.setenv("CURTSY_API_KEY", key)
    refused = run(*words, "--api", api)
    assert refused.code == 2
    assert said in refused.err
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize("out", ["t.warc.gz", "md"])
def test_bytes_overwritten_in_a_segment_end_the_export_and_name_it(run: Run, crawled: Path, out: str) -> None:
    (segment,) = (crawled / "segments").iterdir()
    data = bytearray(segment.read_bytes())
    data[-200:-100] = bytes(100)
    segment.write_bytes(data)
    result = run("export", "--out", out)
    assert result.code == 4
    assert segment.name in result.err
    assert not Path(out).exists()


def test_a_pipe_is_written_into_and_stays_a_pipe(run: Run, crawled: Path, tmp_path: Path) -> None:
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    for out, format_ in ((pipe, "jsonl"), (link, "csv")):
        with ThreadPoolExecutor(1) as pool:
            reading = pool.submit(pipe.read_text)
            assert run("export", "--out", str(out), "--format", format_).code == 0
            assert "https://a.test/two" in reading.result()
    assert pipe.is_fifo()
    assert link.is_symlink()
    refused = run("export", "--out", str(pipe), "--format", "parquet")
    assert (refused.code, "needs a file" in refused.err) == (2, True)


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_followed(run: Run, crawled: Path, tmp_path: Path, there: bool) -> None:
    target, link = tmp_path / "elsewhere" / "target.jsonl", tmp_path / "link.jsonl"
    target.parent.mkdir()
    if there:
        target.write_text("old")
    link.symlink_to(target)
    assert run("export", "--out", str(link)).code == 0
    assert link.is_symlink()
    assert not target.is_symlink()
    assert len(target.read_text().splitlines()) == 2
    assert [path.name for path in target.parent.iterdir()] == ["target.jsonl"]


def test_a_link_to_a_folder_of_markdown_is_followed(run: Run, crawled: Path, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "md").symlink_to("real")
    for _ in range(2):
        assert run("export", "--out", "md").code == 0
    assert (tmp_path / "md").is_symlink()
    assert len(list((tmp_path / "real" / "a.test").iterdir())) == 2


def test_links_that_go_in_a_circle_are_reported(run: Run, crawled: Path, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").symlink_to("y.jsonl")
    (tmp_path / "y.jsonl").symlink_to("x.jsonl")
    assert run("export", "--out", "x.jsonl").code == 2


def test_missing_folders_are_made_only_by_the_export_itself(run: Run, crawled: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "deep" / "t.jsonl"
    export.check_target(out, export.Format.JSONL)
    assert not (tmp_path / "new").exists()
    assert run("export", "--out", str(out)).code == 0
    assert len(out.read_text().splitlines()) == 2
    (tmp_path / "file").touch()
    assert run("export", "--out", "file/below/t.jsonl").code == 2


@pytest.mark.parametrize(
    "words",
    [
        ("--format", "xml"),
        ("--out", "pages.xlsx"),
        ("--out", "a.jsonl", "--format", "csv"),
        ("--out", "a.csv", "--format", "markdown"),
        ("--format", "parquet"),
        ("--format", "markdown"),
        ("--json",),
    ],
)
def test_an_impossible_export_is_refused_before_it_begins(run: Run, crawled: Path, words: tuple[str, ...]) -> None:
    assert run("export", *words).code == 2


def test_the_audit_of_a_polite_log_passes(run: Run, crawled: Path) -> None:
    result = run("audit", "--json")
    assert result.code == 0
    assert result.document == {
        "requests": 3,
        "hosts": 1,
        "overlaps": 0,
        "early": 0,
        "robots_violations": 0,
        "presumed": 0,
        "unaccounted": 0,
        "gaps": 0,
        "min_gap_s": 1.0,
        "visits": 0,
        "subresources": 0,
        "third_party": 0,
        "third_hosts": 0,
        "external_requests": 0,
        "guests": 0,
    }
    assert run("audit").out.endswith("Polite.\n")


def test_the_audit_of_an_impolite_log_fails(run: Run, crawled: Path) -> None:
    with Store.open(f"sqlite:///{crawled}/curtsy.sqlite") as store, store.begin() as tx:
        requests.insert(tx, [_request(9, "https://a.test/private", T0 + 2020)])
    result = run("audit", "--json")
    assert result.code == 1
    assert [result.document[name] for name in ("overlaps", "early", "robots_violations")] == [1, 1, 1]
    assert "NOT polite" in run("audit").out
    assert run("audit", "--since", "2030-01-01", "--json").document["requests"] == 0
    assert run("audit", "--since", "yesterday").code == 2


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("https://a.test/", "It is done (decided at 2"),
        ("https://a.test/bad", "dead letter 'timeout'"),
        ("https://a.test/private", "Disallow: /private"),
        ("https://dead.test/", "host_unreachable"),
        ("https://elsewhere.test/", "the scope 'host' has only these hosts: a.test. --scope domain, --scope any"),
        ("https://a.test/never-linked", "no fetched page links to it"),
        ("a.test", "its queue is open"),
        ("nobody.test", "No crawl has seen"),
    ],
)
def test_explain_says_where_it_is(run: Run, crawled: Path, url: str, said: str) -> None:
    result = run("explain", url)
    assert result.code == 0
    assert said in result.out
    assert said in " ".join(run("explain", url, "--json").document["why"])


@pytest.mark.parametrize("host", ["a.test", "unheard-of.test"])
def test_explain_names_the_host(run: Run, crawled: Path, host: str) -> None:
    assert run("explain", host).out.splitlines()[0] == host


def test_explain_refuses_what_is_no_url(run: Run, crawled: Path) -> None:
    assert run("explain", "ftp://a.test/").code == 2


def test_dead_letters_are_listed_and_filtered(run: Run, crawled: Path) -> None:
    found = run("failures", "list", "--json").document["failures"]
    assert [(f["url"], f["cause"]) for f in found] == [
        ("https://a.test/bad", "timeout"),
        ("https://dead.test/", "host_unreachable"),
    ]
    assert len(run("failures", "list", "--cause", "timeout", "--json").document["failures"]) == 1
    assert len(run("failures", "list", "--host", "dead.test", "--json").document["failures"]) == 1
    assert len(run("failures", "list", "--host", "https://dead.test/x", "--json").document["failures"]) == 1
    assert run("failures", "list", "--host", "ftp://dead.test/").code == 2
    assert run("failures", "list", "--stage", "extract", "--json").document["failures"] == []
    assert "https://a.test/bad" in run("failures", "list", "--crawl", "last").out


def test_the_table_of_dead_letters_says_stage_and_detail(run: Run, crawled: Path) -> None:
    url = "https://a.test/"
    raised = Failure(
        id="f2", crawl=1, fp=fingerprint(url), url=url, host="a.test", stage="extract", cause="function_failed",
        detail="mine: ValueError: a\n\x1b[1mb", fence=10, at_ms=T0, ordinal=1,
    )  # fmt: skip
    with Store.open(f"sqlite:///{crawled}/curtsy.sqlite") as store, store.begin() as tx:
        failures.insert(tx, [raised])
    lines = [line.split("\t") for line in run("failures", "list").out.splitlines()]
    assert lines[0] == ["cause", "status", "attempts", "at", "url", "stage", "detail"]
    told = {line[0]: line[4:] for line in lines[1:]}
    assert told["timeout"] == ["https://a.test/bad", "", ""]
    assert told["function_failed"] == [url, "extract", "mine: ValueError: a [1mb"]


def test_a_dry_run_of_a_replay_changes_nothing(run: Run, crawled: Path) -> None:
    assert run("failures", "replay", "--dry-run", "--json").document["dead_letters"] == 2
    assert run("status", "--json").document["state"] == "finished"


def test_the_host_of_a_replay_may_be_given_as_a_url(run: Run, crawled: Path) -> None:
    words = ("failures", "replay", "--dry-run", "--json", "--host", "http://dead.test/")
    assert run(*words).document["dead_letters"] == 1


def test_a_replay_opens_dead_letters_again(run: Run, crawled: Path) -> None:
    replayed = run("failures", "replay", "--json").document
    assert replayed == {"dead_letters": 2, "crawls": [ID], "of_cancelled_crawls": 0, "dry_run": False}
    after = run("status", "--json").document
    assert (after["state"], after["failed"], after["pending"]) == ("interrupted", {}, 2)
    assert run("failures", "list", "--json").document["failures"] == []
    assert run("failures", "replay", "--json").document["dead_letters"] == 0


def test_a_replay_leaves_cancelled_crawls_alone(run: Run, crawled: Path) -> None:
    run("failures", "replay", "--cause", "host_unreachable")
    assert run("cancel").code == 0
    assert run("failures", "replay", "--json").document["of_cancelled_crawls"] == 1
    assert run("status", "--json").document["skipped"] == {"robots": 1, "cancelled": 1}


def test_pausing_resuming_and_cancelling_follow_the_states(run: Run, crawled: Path) -> None:
    assert run("pause").code == 2
    run("failures", "replay")
    assert run("pause", "--json").document["state"] == "paused"
    assert run("pause", "--json").document["state"] == "paused"
    assert run("resume", "--json").document["state"] == "running"
    assert run("cancel", "--json").document["state"] == "cancelled"
    refused = run("resume")
    assert refused.code == 2
    assert "cancelled" in refused.err


@pytest.mark.parametrize("number", ["9223372036854775808", "0", "-1", "x", "9" * 5000])
def test_what_is_no_number_of_a_record_is_reported(run: Run, crawled: Path, number: str) -> None:
    refused = run("review", "show", "--", number)
    assert refused.code == 2
    assert "RECORD" in refused.err
    assert "Traceback" not in refused.err
    assert run("review", "show", "9223372036854775807").code == 2


def test_the_operator_may_slow_and_block_a_host(run: Run, crawled: Path) -> None:
    assert (
        run("hosts", "delay", "https://a.test/x", "2.5", "--per-host", "1", "--json").document["operator_delay_ms"]
        == 2500
    )
    assert run("hosts", "block", "a.test:80", "--json").document["denied"]
    shown = run("hosts", "show", "a.test", "--json").document
    assert (shown["operator_delay_ms"], shown["denied"]) == (2500, True)
    assert run("hosts", "list", "--notable", "--json").document["hosts"][0]["host"] == "a.test"
    assert not run("hosts", "unblock", "a.test", "--json").document["denied"]
    assert run("hosts", "delay", "a.test", "--json").document["operator_delay_ms"] is None
    assert run("hosts", "show", "nobody.test").code == 2
    assert "a.test" in run("hosts", "list").out


@pytest.fixture
def read_only(crawled: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], None]]:
    """Call it, and the folder cannot be written any more by this process, root or not."""
    place = Path(tempfile.mkdtemp(prefix="curtsy-shut-"))
    data = place / ".curtsy"
    shutil.copytree(crawled, data)
    monkeypatch.chdir(place)
    folders = [place, data, data / "segments"]

    def shut() -> None:
        for folder in folders:
            folder.chmod(0o555)
        (data / "crawling.lock").touch()
        for file in (*data.glob("curtsy.sqlite*"), data / "crawling.lock"):
            file.chmod(0o444)
        if os.geteuid() == 0:
            os.seteuid(NOBODY)

    yield shut
    if os.getuid() == 0:
        os.seteuid(0)
    for folder in folders:
        folder.chmod(0o755)
    shutil.rmtree(place)


#: commands that change nothing
LOOKING = [
    ("status",), ("status", "--all"), ("audit",), ("export",), ("explain", "https://a.test/bad"), ("explain", "a.test"),
    ("failures", "list"), ("failures", "replay", "--dry-run"), ("hosts", "list"),
]  # fmt: skip


def test_commands_that_look_work_where_nothing_can_be_written(run: Run, read_only: Callable[[], None]) -> None:
    before = [run(*words) for words in LOOKING]
    out = Path("out")
    out.mkdir()
    out.chmod(0o777)
    run("export", "--out", str(out / "before.warc.gz"))
    read_only()
    assert [run(*words) for words in LOOKING] == before
    assert {result.code for result in before} == {0}
    assert run("export", "--out", str(out / "after.warc.gz")).code == 0
    assert (out / "after.warc.gz").stat().st_size > 0
    refused = run("failures", "replay")
    assert refused.code == 4
    assert "Fix its permissions" in refused.err


def test_a_store_that_somebody_has_open_can_be_looked_at(run: Run, read_only: Callable[[], None]) -> None:
    with Store.open("sqlite:///.curtsy/curtsy.sqlite") as store:
        store.run(crawls.set_state, 1, CrawlState.PAUSED, None, T0)
        assert run("status", "--json").document["state"] == "paused"
        assert Path(".curtsy/curtsy.sqlite-wal").stat().st_size > 0
        read_only()
        assert run("status", "--json").document["state"] == "paused"
        assert run("audit").code == 0


def test_what_was_not_closed_well_is_reported_where_nothing_can_be_written(
    run: Run, read_only: Callable[[], None], tmp_path: Path
) -> None:
    assert run("status").code == 0
    with Store.open("sqlite:///.curtsy/curtsy.sqlite") as store:
        store.run(crawls.set_state, 1, CrawlState.PAUSED, None, T0)
        shutil.copy(".curtsy/curtsy.sqlite-wal", tmp_path / "wal")
    shutil.copy(tmp_path / "wal", ".curtsy/curtsy.sqlite-wal")
    read_only()
    result = run("status")
    assert result.code == 4
    assert len(result.err.splitlines()) == 1
    assert "copy the folder" in result.err


def test_doctor_finds_everything_it_needs(run: Run, crawled: Path) -> None:
    result = run("doctor", "--json")
    assert result.code == 0
    assert result.document["ok"]
    bound = next(check for check in result.document["checks"] if check["what"] == "frontier memory")
    assert "at most" in bound["found"]
    assert not (crawled / "valkey.sock").exists()


def test_doctor_warns_of_a_folder_that_others_can_enter(run: Run, crawled: Path) -> None:
    crawled.chmod(0o755)
    result = run("doctor")
    assert result.code == 0
    assert "folder mode        0755" in result.out
    assert f"chmod 700 {crawled.resolve()}" in result.out
    crawled.chmod(0o700)
    assert "folder mode" not in run("doctor").out


@pytest.mark.parametrize("left", ["all but the last byte", "nothing"])
def test_doctor_names_a_segment_that_is_shorter_than_the_database_says(run: Run, crawled: Path, left: str) -> None:
    segment = next((crawled / "segments").glob("*.warc.gz"))
    whole = segment.read_bytes()
    if left == "nothing":
        segment.unlink()
    else:
        segment.write_bytes(whole[:-1])
    result = run("doctor")
    segment.write_bytes(whole)
    assert result.code == 4
    assert "FAIL segments" in result.out
    assert f"{segment.name} has {len(whole) - 1 if left != 'nothing' else 0:,} bytes" in result.out
    assert run("doctor").code == 0


def test_doctor_says_what_a_proxy_that_resolves_names_leaves_unchecked(
    run: Run, crawled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert crawled.exists()
    monkeypatch.setenv("CURTSY_PROXIES", '{"default": ["http://127.0.0.1:1"], "other": ["http://127.0.0.1:2"]}')
    monkeypatch.setenv("CURTSY_PROXY_DNS", "default")
    out = run("doctor").out
    assert "pool 'default', 1; they resolve names (proxy_dns)" in out
    assert "A name that resolves to a private address is not refused here." in out
    assert "pool 'other', 1; names are resolved and checked here" in out
    monkeypatch.setenv("CURTSY_PROXY_DNS", "nowhere")
    assert "which proxies does not have" in run("doctor").err


def test_doctor_says_how_to_mend_what_is_broken(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURTSY_FRONTIER_URL", "redis://127.0.0.1:1/0")
    result = run("doctor")
    assert result.code == 4
    assert "FAIL frontier" in result.out
