"""Tables on a terminal of 80 columns, and the end of the progress bar."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest
import stored

from curtsy.cli import progress
from curtsy.cli.table_layout import fitted, middle
from curtsy.core.model import Counts
from curtsy.core.settings_loading import load
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
    assert sum(map(len, rows[0])) + 3 * len(rows[0]) <= 80
    assert rows[0][1].startswith("https://")
    assert rows[0][1].endswith("page.html")
    everything = fitted(columns, [[id, URL, "", "x" * 50, "batch", "t"]], 500)
    assert everything == (["crawl", "url", "detail", "lane", "ended"], [[id, URL, "x" * 50, "batch", "t"]])
    assert fitted(["a", "b"], [], 80) == (["a", "b"], [])


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
    bar = progress.Bar(most=50)
    bar.update(Counts(pages=10, done=12, pending=4000))
    task = bar._bar.tasks[0]
    assert (task.completed, task.total) == (10, 50)


@pytest.mark.parametrize(("pages", "says"), [(1, "1 page, 0 pending, 1 dead letter"), (2, "2 pages, 0 pending")])
def test_one_is_singular(pages: int, says: str) -> None:
    failed = {"timeout": 1} if pages == 1 else {}
    assert progress.sentence(Counts(pages=pages, failed=failed), None) == says
