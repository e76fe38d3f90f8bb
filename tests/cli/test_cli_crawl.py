"""`curtsy crawl` as people run it: a process, a terminal's signals, a folder of data."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from waiting import until

from curtsy.cli import run_crawl
from curtsy.services.valkey import EmbeddedValkey
from curtsy.tinyweb import TinyWeb

HOSTS, PAGES = 4, 8
#: everything short: a killed process holds a host for seconds
SETTINGS = """
fetch_timeout_s = 2
connect_timeout_s = 1
start_slack_s = 1
slot_margin_s = 0.5
slot_s = 4
url_lease_s = 4
heartbeat_s = 1
host_patience_s = 2
backoff_s = 0.2
backoff_cap_s = 1
"""
FIELDS = {
    "id", "state", "pages", "done", "skipped", "failed", "failed_stages", "pending", "pending_render", "elapsed_s",
}  # fmt: skip


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=HOSTS, pages=PAGES, faults=False) as running:
        yield running


@pytest.fixture
def start(web: TinyWeb, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a command in this test's folder; whatever is left of it is ended afterwards."""
    started: list[subprocess.Popen[str]] = []
    (tmp_path / "fast.toml").write_text(SETTINGS)

    def begin(*words: str) -> subprocess.Popen[str]:
        options = ["--config", "fast.toml", *(["--resolve", web.resolve_rule] if words[0] == "crawl" else [])]
        process = subprocess.Popen(
            [sys.executable, "-m", "curtsy.cli", *words, *options],
            cwd=tmp_path,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
    if (left := EmbeddedValkey.running(tmp_path / ".curtsy")) and (pid := left.pid):
        os.kill(pid, signal.SIGKILL)


def finish(process: subprocess.Popen[str], code: int = 0) -> Any:
    """Its JSON document, once it has ended with that code."""
    out, err = process.communicate(timeout=120)
    assert process.returncode == code, err
    return json.loads(out)


def pages_so_far(start: Callable[..., subprocess.Popen[str]]) -> int:
    process = start("status", "--json")
    out, _ = process.communicate(timeout=60)
    return int(json.loads(out)["pages"]) if process.returncode == 0 else 0


def rows(folder: Path, query: str) -> list[Any]:
    """From the store as it stands; nothing while it is being made."""
    try:
        with closing(sqlite3.connect(f"file:{folder}/.curtsy/curtsy.sqlite?mode=ro", uri=True)) as db:
            return db.execute(query).fetchall()
    except sqlite3.OperationalError:
        return []


def test_a_crawl_fetches_every_page_and_says_so(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    seeds = [f"http://org-{n:04}.tinyweb.test/" for n in range(HOSTS)]
    (tmp_path / "seeds.txt").write_text("\n".join(seeds))
    told = finish(start("crawl", "--from", "seeds.txt", "--delay", "0.05", "--out", "pages.jsonl", "--json"))
    assert set(told) == FIELDS | {"counters"}
    assert (told["state"], told["pending"], told["failed"]) == ("finished", 0, {})
    assert told["pages"] >= HOSTS * PAGES
    lines = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert len(lines) == told["pages"]
    assert len({line["url"] for line in lines}) == len(lines)
    assert all(line["status"] == 200 and line["segment"] for line in lines)
    verdict = finish(start("audit", "--json"))
    assert (verdict["overlaps"], verdict["early"], verdict["robots_violations"]) == (0, 0, 0)
    assert (verdict["hosts"], verdict["unaccounted"]) == (HOSTS, 0)
    assert EmbeddedValkey.running(tmp_path / ".curtsy") is None


def test_max_pages_is_exact(start: Callable[..., subprocess.Popen[str]]) -> None:
    told = finish(start("crawl", "http://org-0000.tinyweb.test/", "--max-pages", "3", "--delay", "0", "--json"))
    assert (told["state"], told["pages"], told["pending"]) == ("finished", 3, 0)


def test_ctrl_c_once_drains_and_the_crawl_is_resumed(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("crawl", "http://org-0000.tinyweb.test/", "--delay", "2", "--json")
    until(lambda: pages_so_far(start) >= 1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    told = json.loads(out)
    assert told["state"] == "interrupted"
    assert told["pending"] > 0
    assert f"curtsy crawl --resume {told['id']} --config fast.toml\n" in err
    again = finish(start("crawl", "--resume", told["id"], "--delay", "0.1", "--json"))
    assert (again["state"], again["pending"]) == ("finished", 0)
    assert again["pages"] >= PAGES


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_request_to_end_drains(
    start: Callable[..., subprocess.Popen[str]], number: signal.Signals, tmp_path: Path
) -> None:
    process = start("crawl", "http://org-0001.tinyweb.test/", "--delay", "2", "--json")
    until(lambda: rows(tmp_path, "SELECT 1 FROM pages") != [])
    process.send_signal(number)
    assert finish(process, 3)["state"] == "interrupted"


def test_ctrl_c_raises_only_while_a_seed_is_awaited() -> None:
    def seeds() -> Iterator[str]:
        yield "http://a.test/"
        signal.raise_signal(signal.SIGINT)
        yield "http://b.test/"

    calls: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: calls.append(number))
    try:
        read = run_crawl.Interruptible(seeds())
        assert next(read) == "http://a.test/"
        signal.raise_signal(signal.SIGINT)
        assert calls == [signal.SIGINT], "the handler of the loop gets it"
        with pytest.raises(KeyboardInterrupt):
            next(read)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("seeds", [1, 10_001])
def test_ctrl_c_while_seeds_are_waited_for_leaves_no_crawl_that_runs(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path, seeds: int
) -> None:
    process = start("crawl", "--from", "-")
    assert process.stdin is not None
    process.stdin.write("".join(f"http://org-0000.tinyweb.test/{n}\n" for n in range(seeds)))
    process.stdin.flush()
    # Seeds are written when more than the next ones have come: with one alone, the frontier is all that was begun.
    begun = "SELECT 1 FROM meta WHERE key = 'epoch:0'" if seeds == 1 else "SELECT 1 FROM crawls WHERE state = 'loading'"
    until(lambda: bool(rows(tmp_path, begun)))
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    assert process.returncode == 3
    said = process.stderr.read() if process.stderr else ""
    assert said.endswith("Interrupted; no crawl was started.\n") if seeds == 1 else "The crawl was canceled" in said
    assert EmbeddedValkey.running(tmp_path / ".curtsy") is None
    states = json.loads(start("status", "--all", "--json").communicate(timeout=60)[0])["crawls"]
    assert [crawl["state"] for crawl in states] == ([] if seeds == 1 else ["cancelled"])


def test_ctrl_c_twice_stops_at_once_and_the_crawl_is_resumed(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("crawl", "http://org-0001.tinyweb.test/", "--delay", "2", "--json")
    until(lambda: pages_so_far(start) >= 1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 3
    assert finish(start("crawl", "--resume", "last", "--delay", "0.1", "--json"))["state"] == "finished"


def test_a_killed_crawl_is_resumed_and_stays_polite(start: Callable[..., subprocess.Popen[str]]) -> None:
    process = start("crawl", "http://org-0002.tinyweb.test/", "--delay", "2", "--json")
    until(lambda: pages_so_far(start) >= 1)
    process.kill()
    process.communicate()
    again = finish(start("crawl", "--resume", "last", "--delay", "0.1", "--json"))
    assert (again["state"], again["pending"]) == ("finished", 0)
    assert finish(start("audit", "--json"))["overlaps"] == 0


def test_two_crawls_in_one_folder_share_hosts_politely(start: Callable[..., subprocess.Popen[str]]) -> None:
    both = [start("crawl", "http://org-0003.tinyweb.test/", "--delay", "0.2", "--json") for _ in range(2)]
    told = [finish(process) for process in both]
    assert all(one["state"] == "finished" and one["pages"] >= PAGES for one in told)
    assert told[0]["id"] != told[1]["id"]
    verdict = finish(start("audit", "--json"))
    assert (verdict["overlaps"], verdict["early"], verdict["robots_violations"]) == (0, 0, 0)


def test_two_processes_share_one_crawl(start: Callable[..., subprocess.Popen[str]], web: TinyWeb) -> None:
    told = finish(start("crawl", *web.seeds, "--delay", "0.1", "--processes", "2", "--json"))
    assert (told["state"], told["pending"]) == ("finished", 0)
    assert told["pages"] >= HOSTS * PAGES
    assert finish(start("audit", "--json"))["overlaps"] == 0


def test_a_paused_crawl_ends_its_process_and_continues_when_resumed(
    start: Callable[..., subprocess.Popen[str]],
) -> None:
    process = start("crawl", "http://org-0000.tinyweb.test/", "--delay", "2", "--json")
    until(lambda: pages_so_far(start) >= 1)
    assert finish(start("pause", "--json"))["state"] == "paused"
    assert finish(process, code=3)["state"] == "paused"
    assert finish(start("crawl", "--resume", "last", "--delay", "0.1", "--json"))["state"] == "finished"


def test_dead_letters_make_the_exit_code_one(start: Callable[..., subprocess.Popen[str]], tmp_path: Path) -> None:
    # Port 9 of this machine: nobody listens there.
    told = finish(start("crawl", "http://nobody.invalid/", "--resolve", "*.invalid=127.0.0.1:9", "--json"), code=1)
    assert told["state"] == "finished"
    assert sum(told["failed"].values()) == 1
    shown = start("explain", "http://nobody.invalid/")
    assert "dead letter" in shown.communicate(timeout=60)[0]
