"""What people type: seeds, times, and what the progress line tells them."""

from __future__ import annotations

import io
import sys
import uuid
from pathlib import Path

import pytest

from curtsy.cli import main, progress, seeds, show
from curtsy.cli.progress import sentence
from curtsy.core.errors import UsageError
from curtsy.core.model import MOST_RENDER, Counts, new_id
from curtsy.core.times import since_ms
from curtsy.crawl.idle_time import describe_wait

NOW_S = 1_730_000_000.0


def test_seeds_come_from_arguments_then_from_the_file(tmp_path: Path) -> None:
    file = tmp_path / "seeds.txt"
    file.write_text("\ufeffb.test/x\n\n# a comment\n  HTTP://C.test:80/a/../b#part  \n", "utf-8")
    assert list(seeds.read(["https://a.test"], file)) == ["https://a.test/", "https://b.test/x", "http://c.test/b"]


def test_seeds_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("a.test\nb.test\n"))
    assert list(seeds.read([], Path("-"))) == ["https://a.test/", "https://b.test/"]


@pytest.mark.parametrize("bad", ["ftp://a.test/", "https://", "mailto://x", "https://a b/"])
def test_a_bad_seed_is_named_with_its_place(bad: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="argument 2"):
        list(seeds.read(["https://a.test", bad], None))
    (tmp_path / "s").write_text(f"a.test\n{bad}\n")
    with pytest.raises(UsageError, match="line 2"):
        list(seeds.read([], tmp_path / "s"))


def test_a_bad_seed_is_named_without_its_password(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("someone:hunter2@a b\n")
    for given, file in ((["https://someone:hunter2@a b/"], None), ([], tmp_path / "s")):
        with pytest.raises(UsageError) as told:
            list(seeds.read(given, file))
        assert "***@a b" in str(told.value)
        assert "hunter2" not in str(told.value)


def test_a_missing_file_of_seeds_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        list(seeds.read([], tmp_path / "none"))


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        (None, 0),
        ("30m", 1_729_998_200_000),
        ("1.5h", 1_729_994_600_000),
        ("7d", 1_729_395_200_000),
        ("2024-10-27", 1_729_987_200_000),
        ("2024-10-27T03:33:20", 1_730_000_000_000),
        ("2024-10-27T05:33:20+02:00", 1_730_000_000_000),
    ],
)
def test_times_are_read_as_people_write_them(text: str | None, ms: int) -> None:
    assert since_ms(text, NOW_S) == ms


@pytest.mark.parametrize("text", ["", "h", "soon", "12", "1.2.3h", "-5m"])
def test_what_is_no_time_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError):
        since_ms(text, NOW_S)


def test_ids_are_uuids_of_version_7_and_grow() -> None:
    first, second = uuid.UUID(new_id()), uuid.UUID(new_id())
    assert (first.version, first.variant) == (7, uuid.RFC_4122)
    assert first.int >> 80 <= second.int >> 80
    assert first != second


def test_the_rate_looks_back_a_few_seconds_only() -> None:
    rate = progress.Rate()
    assert rate.add(0, 0) is None
    assert rate.add(10, 100) == 10
    for second in range(11, 40):
        last = rate.add(second, 100)
    assert last == 0


def test_the_progress_line_names_what_there_is() -> None:
    counts = Counts(pages=1200, pending=3, skipped={"robots": 2}, failed={"timeout": 1})
    assert progress.sentence(counts, 12.34) == "1,200 pages, 12.3/s, 3 pending, 2 skipped, 1 dead letter"
    assert progress.sentence(Counts(), None) == "0 pages, 0 pending"
    waiting = Counts(pages=1, pending=30, pending_render=20)
    assert progress.sentence(waiting, None) == "1 page, 30 pending (20 for a browser)"


def test_pages_that_wait_for_a_browser_are_shown_next_to_the_pending_ones() -> None:
    assert show.pending(1200, 0) == "1,200"
    assert show.pending(1200, 1100) == "1,200, 1,100 of them wait for a browser"
    assert show.pending(50_000, MOST_RENDER) == "50,000, 10,000 or more of them wait for a browser"


def test_what_is_waited_for_is_said_in_a_few_words() -> None:
    troubled = {"a": ("dns_failed", 112.5), "b": ("timeout", 130.0), "c": ("timeout", 99.0)}
    assert describe_wait(troubled, 0, 100.0) == (
        "waiting for 2 hosts that do not answer: a (dns_failed), b (timeout); next try in 13 s"
    )
    assert describe_wait({"a": ("dns_failed", 112.0)}, 0, 100.0).startswith(
        "waiting for 1 host that does not answer: a"
    )
    many = {f"h{n}": ("timeout", 110.0 + n) for n in range(5)}
    assert "h2 (timeout), ...; next try in 10 s" in describe_wait(many, 0, 100.0)
    assert describe_wait({}, 39.2, 100.0) == "waiting: the next host is due in 40 s"
    assert describe_wait({}, 0.2, 100.0) == ""
    assert sentence(Counts(pages=1, pending=2, waiting="waiting: x"), None) == "1 page, 2 pending, waiting: x"


def test_lines_in_a_log_are_seconds_apart(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.Lines() as lines:
        for pages in range(100):
            lines.update(Counts(pages=pages))
    printed = capsys.readouterr()
    assert printed.err == "0 pages, 0 pending\n"
    assert printed.out == ""


def test_words_of_others_fit_into_a_cell_and_command_no_terminal() -> None:
    assert show.one_line("a\x1b[31m\r\n\tb\u202ec") == "a [31m b c"
    assert show.one_line("x" * 120) == "x" * 120
    assert show.one_line("x" * 121) == "x" * 117 + "..."
    assert show.one_line("") is show.one_line(None) is None


def test_reasons_are_listed_by_number() -> None:
    assert show.reasons({"a": 1, "robots": 1200, "b": 1}) == "robots 1,200, a 1, b 1"
    assert show.reasons({}) == "none"


@pytest.mark.parametrize(
    "words",
    [
        ("crawl", "http://a.test/", "--delay", "inf"),
        ("crawl", "http://a.test/", "--delay", "nan"),
        ("crawl", "http://a.test/", "--max-pages", "9" * 30),
        ("crawl", "http://a.test/", "--out", "/proc/pages.jsonl"),
        ("crawl", "http://a.test/", "--proxy", "nowhere"),
        ("hosts", "delay", "a.test", "1e12"),
        ("hosts", "block", "*.a.test"),
        ("failures", "list", "--limit", "9" * 30),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["curtsy", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert not (tmp_path / ".curtsy").exists()
