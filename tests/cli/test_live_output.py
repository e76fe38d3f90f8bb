"""`crawl --out`: written while the crawl runs, valid however the process ends, continued without doubles."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder
from pyarrow import parquet
from stored_pages import StoredPages
from waiting import until
from warcio.archiveiterator import ArchiveIterator

from curtsy.cli import main
from curtsy.cli.live_output import following
from curtsy.core.errors import UsageError
from curtsy.export import live_files
from curtsy.export.live import LiveOutput
from curtsy.export.live_files import Reservation
from curtsy.export.live_notes import notes_of
from curtsy.export.live_whole import WholeOutput
from curtsy.export.page_rows import PageRows
from curtsy.export.tables import Format
from curtsy.store import pages
from curtsy.tinyweb import TinyWeb

SEED = "http://org-0000.tinyweb.test/"
NAMES = ("pages.jsonl", "pages.csv", "pages.warc.gz", "pages.parquet")
#: of the site
PAGES = 12


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=1, pages=PAGES, faults=False) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, web: TinyWeb) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, web, delay_s=0.25)
    yield made
    made.close()


def urls_in(path: Path) -> list[str]:
    """As a strict reader of the format finds them."""
    if path.suffix == ".jsonl":
        assert path.read_bytes().endswith(b"\n")
        return [json.loads(line)["url"] for line in path.read_text().splitlines()]
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [row["url"] for row in csv.DictReader(file, strict=True)]
    if path.suffix == ".parquet":
        return [str(url) for url in parquet.read_table(path)["url"].to_pylist()]
    with path.open("rb") as file:
        found = [record.rec_headers.get_header("WARC-Target-URI") for record in ArchiveIterator(file)]
    return [str(url) for url in found if url]


def committed(folder: CrawlFolder) -> list[str]:
    return sorted(url for (url,) in folder.rows("SELECT url FROM pages"))


@pytest.mark.parametrize("name", NAMES)
def test_an_interrupted_crawl_leaves_all_its_pages_and_a_resumed_one_the_rest(folder: CrawlFolder, name: str) -> None:
    out = folder.path / name
    stops = signal.SIGTERM if name == "pages.jsonl" else signal.SIGINT
    process = folder.start("crawl", SEED, "--out", name)
    until(lambda: folder.has_pages(3))
    process.send_signal(stops)
    said, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert f"The pages so far are in {name}" in said
    assert sorted(urls_in(out)) == committed(folder)
    assert len(committed(folder)) < PAGES
    again = folder.start("crawl", "--resume", "last")
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert f"Continuing {out}" in err
    assert sorted(urls_in(out)) == committed(folder)
    assert len(committed(folder)) == PAGES
    assert not list((folder.data / "outputs").iterdir())
    assert [path.name for path in folder.path.glob("*pages*")] == [name]


@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_crawl_repairs_what_a_killed_one_left(folder: CrawlFolder, name: str) -> None:
    out = folder.path / name
    process = folder.start("crawl", SEED, "--out", name, "--processes", "2")
    until(lambda: folder.has_pages(4) and out.exists() and out.stat().st_size > 1000)
    process.kill()
    process.communicate(timeout=60)
    assert urls_in(out), "pages were written before the crawl ended"
    assert set(urls_in(out)) <= set(committed(folder))
    if name != "pages.parquet":
        with out.open("ab") as file:  # as a kill in the middle of a write leaves it
            file.write(b'{"url": "http://torn')
    again = folder.start("crawl", "--resume", "last", "--out", name)
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert sorted(urls_in(out)) == committed(folder)
    assert len(committed(folder)) == PAGES


def test_a_second_crawl_cannot_write_to_the_same_file(folder: CrawlFolder) -> None:
    process = folder.start("crawl", SEED, "--out", "pages.jsonl")
    until(lambda: (folder.path / "pages.jsonl").exists() and folder.has_pages(1))
    refused = subprocess.run(
        [sys.executable, "-m", "curtsy.cli", "crawl", SEED, "--out", "pages.jsonl", "--config", str(folder.config),
         "--data-dir", "other"], cwd=folder.path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (refused.returncode, "Another crawl is writing to pages.jsonl" in refused.stderr) == (2, True)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)


@pytest.mark.parametrize(
    ("out", "option", "why"),
    [
        ("s.csv", "--from", "is the file with the seeds"),
        ("link.csv", "--from", "is the file with the seeds"),
        ("s.csv", "--config", "is the settings file"),
        ("data/segments/new.csv", "--from", "is in the folder with the stored pages"),
    ],
)
def test_an_output_that_would_replace_an_input_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], out: str, option: str, why: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s.csv").write_text("# http://127.0.0.1:9/\n")
    Path("link.csv").symlink_to("s.csv")
    given = ["curtsy", "crawl", option, "s.csv", "--out", out, "--data-dir", "data"]
    monkeypatch.setattr(sys, "argv", given if option == "--from" else [*given, "http://127.0.0.1:9/"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert (ended.value.code, why in " ".join(capsys.readouterr().err.split())) == (2, True)
    assert Path("s.csv").read_text() == "# http://127.0.0.1:9/\n"


def test_a_pipe_needs_a_reader(folder: CrawlFolder) -> None:
    pipe = folder.path / "pipe.jsonl"
    os.mkfifo(pipe)
    refused = folder.start("crawl", SEED, "--out", "pipe.jsonl")
    _, err = refused.communicate(timeout=60)
    assert (refused.returncode, "pipe.jsonl has no reader" in err) == (2, True), err
    with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)) as reader:  # the rows fit into the pipe
        done = folder.start("crawl", SEED, "--out", "pipe.jsonl")
        _, err = done.communicate(timeout=60)
        assert done.returncode == 0, err
        assert sorted(json.loads(line)["url"] for line in reader) == committed(folder)


def test_a_disk_that_is_full_does_not_end_the_crawl(folder: CrawlFolder) -> None:
    (folder.path / "full.jsonl").symlink_to("/dev/full")
    done = folder.start("crawl", SEED, "--out", "full.jsonl")
    _, err = done.communicate(timeout=60)
    assert done.returncode == 4
    assert "No space left on device: 'full.jsonl'" in err
    assert len(committed(folder)) == PAGES


def test_of_commands_that_start_together_only_the_one_that_writes_makes_a_crawl(folder: CrawlFolder) -> None:
    together = [folder.start("crawl", SEED, "--out", "pages.jsonl") for _ in range(3)]
    said = [process.communicate(timeout=60)[1] for process in together]
    codes = [process.returncode for process in together]
    assert set(codes) <= {0, 2}, said
    assert codes.count(0) == len(folder.rows("SELECT n FROM crawls")) >= 1
    assert sum("Another crawl is writing to pages.jsonl" in one for one in said) == codes.count(2)
    assert len(urls_in(folder.path / "pages.jsonl")) == PAGES


# Without a crawl


@pytest.mark.parametrize("name", [*NAMES, "folder"])
def test_an_output_is_locked_before_its_crawl_exists(stored: StoredPages, tmp_path: Path, name: str) -> None:
    out = tmp_path / name
    with following(stored.settings, out):
        with pytest.raises(UsageError, match="Another crawl is writing"), following(stored.settings, out):
            pass
        assert os.listdir(tmp_path).count(name) == (name != "pages.parquet")
    assert not [one for one in os.listdir(tmp_path) if name in one], "nothing was written"


def test_what_a_refused_crawl_would_have_replaced_stays(stored: StoredPages, tmp_path: Path) -> None:
    out = tmp_path / "pages.jsonl"
    for content in ("", "before\n"):
        out.write_text(content)
        with following(stored.settings, out):
            pass
        assert out.read_text() == content


def test_the_lock_is_that_of_the_file_with_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process before may remove or rename its file between our opening and our locking of it."""
    out = tmp_path / "pages.jsonl"
    out.touch()
    locked: list[int] = []

    def lock_late(fd: int, path: Path) -> None:
        if not locked:
            path.unlink()
        locked.append(fd)

    monkeypatch.setattr(live_files, "lock", lock_late)
    fd, is_new = live_files.open_locked(out, Format.JSONL)
    assert (len(locked), is_new, os.path.samestat(os.fstat(fd), out.stat())) == (2, True, True)
    os.close(fd)


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredPages]:
    found = StoredPages(tmp_path / "data")
    yield found
    found.close()


def opened(stored: StoredPages, out: Path, chosen: Format = Format.JSONL) -> LiveOutput:
    rows = PageRows(stored.store, stored.segments, stored.crawl)
    return LiveOutput(rows, out, chosen, stored.settings.data_dir)


def test_a_file_that_something_else_wrote_is_written_again(stored: StoredPages, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    first = opened(stored, out)
    stored.add(3)
    first.step()
    first.close(finished=False)
    assert [note.pages for note in notes_of(stored.settings.data_dir, stored.crawl.id)] == [3]
    other = tmp_path / "other"
    other.write_text("x" * 10_000)
    other.replace(out)
    stored.add(2)
    again = opened(stored, out)
    again.step()
    again.close(finished=True)
    assert len(urls_in(out)) == again.pages == 5
    assert notes_of(stored.settings.data_dir, stored.crawl.id) == []


def test_a_page_with_the_number_of_a_deleted_one_is_written(stored: StoredPages, tmp_path: Path) -> None:
    out = tmp_path / "t.jsonl"
    live = opened(stored, out)
    made = stored.add(3)
    live.step()
    with stored.store.begin() as tx:
        tx.exec_driver_sql("DELETE FROM pages WHERE fp = ?", (made[-1].fp,))
    (fresh,) = stored.make(4)[3:]
    stored.store.run(pages.insert, [fresh])
    live.step()
    live.close(finished=True)
    assert fresh.url in urls_in(out)
    assert sorted(urls_in(out)) == sorted([made[0].url, made[1].url, fresh.url])


def test_an_output_in_use_is_refused(stored: StoredPages, tmp_path: Path) -> None:
    for name, chosen in (("t.jsonl", Format.JSONL), ("t.parquet", Format.PARQUET)):
        live = opened(stored, tmp_path / name, chosen)
        with pytest.raises(UsageError, match="Another crawl is writing"):
            Reservation(tmp_path / name, chosen).close()
        live.close(finished=True)
        Reservation(tmp_path / name, chosen).close()


def test_an_output_that_cannot_grow_is_written_again_in_a_small_share_of_the_time(
    stored: StoredPages, tmp_path: Path
) -> None:
    now_s = [0.0]

    class Slow(WholeOutput):
        def write(self) -> int:
            now_s[0] += 10.0
            return super().write()

    out = tmp_path / "pages.parquet"
    whole = Slow(PageRows(stored.store, stored.segments, stored.crawl), out, Format.PARQUET, lambda: now_s[0])
    whole.refresh(0)
    assert not out.exists(), "there are no pages"
    stored.add(3)
    whole.refresh(3)
    stored.add(2)
    for later_s in (1, 100, 188):
        now_s[0] = 10 + later_s
        whole.refresh(5)
        assert len(urls_in(out)) == 3
    now_s[0] = 200.0
    whole.refresh(5)
    assert (len(urls_in(out)), now_s[0]) == (5, 210.0)
    now_s[0] = 10_000.0
    whole.refresh(5)
    assert now_s[0] == 10_000.0, "nothing is new"
