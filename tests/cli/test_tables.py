"""Tables on a terminal of 80 columns, and the end of the progress bar."""

from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import stored
from rich.console import Console

from curtsy.cli import progress
from curtsy.cli.table_layout import fitted, middle
from curtsy.core.model import Counts, HostState, WaitingHost
from curtsy.core.settings_loading import load
from curtsy.store import hosts
from curtsy.store.engine import Store

URL = "https://www.example.test/a/very/long/path/that/does/not/fit/on/one/line/of/a/terminal/page.html"


def test_urls_are_shortened_in_the_middle() -> None:
    assert middle(URL, 30) == f"{URL[:14]}...{URL[-13:]}"
    assert len(middle(URL, 30)) == 30
    assert middle("short", 30) == "short"


def test_a_table_fits_and_ids_stay_whole() -> None:
    id = "01a1e590-0c94-7b0a-9b90-9c51dd2d0a26"
    columns = ["crawl", "url", "stage", "detail", "lane", "ended"]
    names, rows = fitted(columns, [[id, URL, "", "x" * 50, "batch", "2026-11-16T18:13:07Z"]], 80)
    assert "stage" not in names, "it is empty"
    assert rows[0][0] == id
    assert sum(map(len, rows[0])) + 3 * len(rows[0]) - 1 <= 80
    assert rows[0][1].startswith("https://")
    assert rows[0][1].endswith("page.html")
    everything = fitted(columns, [[id, URL, "", "x" * 50, "batch", "t"]], 500)
    assert everything == (["crawl", "url", "detail", "lane", "ended"], [[id, URL, "x" * 50, "batch", "t"]])
    assert fitted(["a", "b"], [], 80) == (["a", "b"], [])


ID, AT = "01a1e590-0c94-7b0a-9b90-9c51dd2d0a26", "2026-11-16T18:13:07Z"


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ({"crawl": ID, "state": "finished", "lane": "batch", "pages": "120", "dead letters": "3", "created": AT},
         ["crawl", "state", "pages", "created"]),
        ({"crawl": ID, "state": "interrupted", "lane": "batch", "pages": "120", "dead letters": "3", "created": AT},
         ["crawl", "state", "pages", "dead letters"]),
        ({"planned": AT, "state": "ended", "crawl": ID, "outcome": "finished", "pages": "120", "ended": AT},
         ["planned", "state", "crawl", "pages"]),
        ({"fetched_at": AT, "status": "200", "size": "12345", "sha256": "0123456789ab", "crawl": ID},
         ["fetched_at", "status", "size", "crawl"]),
        ({"id": "0123456789", "name": "x" * 40, "scopes": "read,write", "created": AT, "expires": AT, "used": AT},
         ["id", "name", "created", "expires"]),
    ],
)  # fmt: skip
def test_what_fits_is_shown_and_what_matters_more_comes_first(row: dict[str, str], kept: list[str]) -> None:
    names, rows = fitted(list(row), [list(row.values())], 80)
    assert names == kept
    assert sum(map(len, rows[0])) + 3 * len(rows[0]) - 1 <= 80


def test_the_table_of_hosts_fits_and_cuts_no_time(tmp_path: Path) -> None:
    settings = load(data_dir=tmp_path / ".curtsy")
    named = "a-very-long-host-name-of-a-university-department.example.test"
    with Store.open(settings.effective_store_url) as store:
        state = HostState(host=named, blocked_until_ms=1_900_000_000_000, robots_delay_ms=2500, failures=3)
        store.run(hosts.upsert, [state])
    head, _, row = [line for line in on_terminal(tmp_path, "hosts", "list") if line][:3]
    assert head.split() == ["host", "robots", "delay", "failures", "blocked", "until"]
    assert row.split()[1:] == ["2.5", "3", "2030-03-17T17:46:40Z"]
    assert any(named in line for line in on_terminal(tmp_path, "hosts", "list", "--wide"))


@pytest.mark.parametrize("words", [("failures", "list"), ("status", "--all")])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, words: tuple[str, ...]) -> None:
    settings = load(data_dir=tmp_path / ".curtsy")
    with Store.open(settings.effective_store_url) as store:
        crawl = stored.crawl(store)
        stored.add_failures(store, crawl, [(URL, "timeout"), (f"{URL}?x=1", "refused")])
    lines = on_terminal(tmp_path, *words)
    assert max(map(len, lines)) <= 80, lines
    if words[0] == "failures":
        assert sum("page.html" in line for line in lines) == 2, "one line each"
        assert any(URL in line for line in on_terminal(tmp_path, *words, "--wide"))
    else:
        assert any(crawl.id in line for line in lines)


def on_terminal(folder: Path, *words: str) -> list[str]:
    """What a terminal of 80 columns gets."""
    master, slave = pty.openpty()
    command = [sys.executable, "-m", "curtsy.cli", *words]
    env = {**os.environ, "COLUMNS": "80", "TERM": "dumb"}
    done = subprocess.Popen(command, cwd=folder, stdout=slave, stderr=subprocess.DEVNULL, env=env)
    os.close(slave)
    said = b""
    while True:
        try:
            block = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not block:
            break
        said += block
    os.close(master)
    assert done.wait() == 0
    return [line.rstrip() for line in said.decode().splitlines()]


def test_the_bar_ends_at_max_pages() -> None:
    bar = progress.LiveView(most=50)
    bar.update(Counts(pages=10, done=12, pending=4000))
    task = bar._bar.tasks[0]
    assert (task.completed, task.total) == (10, 50)


def drawn(draw: Callable[[progress.LiveView], None]) -> list[str]:
    """What the view shows on a terminal of 80 columns; its control sequences are left out."""
    out = io.StringIO()
    with progress.LiveView(console=Console(file=out, force_terminal=True, width=80, color_system=None)) as view:
        draw(view)
        text = re.sub(r"\x1b\[[0-9?;]*[A-Za-z]", "", out.getvalue())
    return [line.rstrip() for line in text.splitlines()]


def test_the_live_view_says_what_is_going_on() -> None:
    hosts = tuple(
        WaitingHost(f"host-{n}.with-a-very-long-name.example-of-it.test", "dns_failed", n, 60_000 * n) for n in range(7)
    )
    counts = Counts(
        pages=1200, done=1300, pending=30, skipped={"robots": 2}, failed={"timeout": 2, "http_404": 12},
        active_hosts=3, waiting_hosts=hosts, waiting="waiting for 7 hosts that do not answer: host-0; next try in 1 s",
    )  # fmt: skip
    bar, *lines = drawn(lambda view: view.update(counts))
    assert "1316/1346" in bar
    assert lines == [
        "fetched  1,200 pages, 30 pending, 2 skipped",
        "hosts    3 active, 7 waiting",
        *(f"           host-{n}.with-a-ver...ample-of-it.test dns_failed, next try in {n} s" for n in range(5)),
        "           and 2 more",
        "errors   http_404 12, timeout 2",
        "Waiting for 7 hosts that do not answer, until 1970-01-01T00:06:00Z.",
        "Press g to give up hosts that do not answer, Ctrl-C to stop and resume later.",
    ]
    assert max(map(len, lines)) <= 80


def test_the_live_view_offers_to_give_up_hosts_only_if_some_do_not_answer() -> None:
    lines = drawn(lambda view: view.update(Counts(pending=2, waiting="waiting: the next host is due in 9 s")))
    assert lines[-2:] == ["Waiting: the next host is due in 9 s.", "Press Ctrl-C to stop and resume later."]


def test_the_live_view_shows_records_while_they_are_made(capsys: pytest.CaptureFixture[str]) -> None:
    made = progress.Made({"published": 120, "held": 40}, 25)
    bar, line = drawn(lambda view: view.records(made))
    assert "160/185" in bar
    assert line == "records  120 published, 40 held, 25 to do"
    with progress.Lines() as lines:
        lines.records(made)
        lines.records(made)
    assert capsys.readouterr().err == "records 120 published, 40 held, 25 to do\n", "lines in a log are seconds apart"


def test_a_name_cannot_write_markup_or_commands_into_the_view() -> None:
    hosts = (WaitingHost("[red]x[/red]", "status 503", 1),)
    lines = drawn(lambda view: view.update(Counts(waiting_hosts=hosts)))
    assert any("[red]x[/red]" in line for line in lines)


def test_a_log_says_how_to_end_a_wait(capsys: pytest.CaptureFixture[str]) -> None:
    waits = Counts(waiting="waiting for 1 host", waiting_hosts=(WaitingHost("a.test", "timeout", 9),))
    with progress.Lines() as lines:
        lines.update(waits)
    assert "--give-up" in capsys.readouterr().err


@pytest.mark.parametrize(("pages", "says"), [(1, "1 page, 0 pending, 1 dead letter"), (2, "2 pages, 0 pending")])
def test_one_is_singular(pages: int, says: str) -> None:
    failed = {"timeout": 1} if pages == 1 else {}
    assert progress.sentence(Counts(pages=pages, failed=failed), None) == says
