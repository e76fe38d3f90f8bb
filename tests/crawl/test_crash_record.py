"""A URL is suspected of a crash of its process, and for nothing else: kills from outside leave no trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder
from frontier_servers import Server

from curtsy.crawl import crash_record
from curtsy.services.valkey import find_server
from curtsy.tinyweb import TinyWeb

BEGIN = """
import ctypes, os, signal, sys
from pathlib import Path
from curtsy.crawl import crash_record
crash_record.keep(Path(sys.argv[1]))
record = crash_record.current()
for fence in (5, 6, 7):
    record.begin(fence)
record.end(6)
"""
LOST = "os.kill(os.getpid(), signal.SIGKILL)"
CRASH = "ctypes.string_at(0)"


def dies(folder: Path, how: str) -> list[tuple[int, ...]]:
    """What the record of a process says that ended like this."""
    subprocess.run([sys.executable, "-c", BEGIN + how, str(folder)], check=False, timeout=60)
    with crash_record.deaths(folder) as found:
        suspects = [death.suspects for death in found]
    with crash_record.deaths(folder) as again:
        assert again == []
    return suspects


def test_a_crash_blames_what_was_in_flight(tmp_path: Path) -> None:
    assert [set(one) for one in dies(tmp_path, CRASH)] == [{5, 7}]
    assert [set(one) for one in dies(tmp_path, "os.abort()")] == [{5, 7}]


def test_a_crash_blames_the_page_that_was_being_read(tmp_path: Path) -> None:
    assert dies(tmp_path, f"record.begin_reading(9); {CRASH}") == [(9,)]
    assert [set(one) for one in dies(tmp_path, f"record.begin_reading(9); record.end_reading()\n{CRASH}")] == [{5, 7}]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_kill_from_outside_blames_no_url(tmp_path: Path, number: signal.Signals) -> None:
    how = f"signal.signal({number:d}, signal.SIG_DFL); " if number is not signal.SIGKILL else ""
    assert dies(tmp_path, f"{how}\nrecord.begin_reading(9); os.kill(os.getpid(), {number:d})") == [()]


def test_a_process_that_ends_as_it_should_leaves_nothing(tmp_path: Path) -> None:
    assert dies(tmp_path, "crash_record.end()") == []


def test_the_record_of_a_living_process_is_left_alone(tmp_path: Path) -> None:
    waits = "print('ready', flush=True); sys.stdin.read()"
    living = subprocess.Popen(
        [sys.executable, "-c", BEGIN + waits, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with living:
        assert living.stdout is not None
        assert living.stdout.readline() == b"ready\n"
        with crash_record.deaths(tmp_path) as found:
            assert found == []
        assert len(list(tmp_path.iterdir())) == 1
        living.kill()


def test_more_requests_than_a_record_has_room_for_are_not_noted(tmp_path: Path) -> None:
    many = "for fence in range(100, 9000): record.begin(fence)\nfor fence in range(100, 9000): record.end(fence)\n"
    assert [set(one) for one in dies(tmp_path, many + CRASH)] == [{5, 7}]


# Whole crawls, over several lives of their process

DRIVER = """
import os, signal, ctypes, sys
from pathlib import Path
from crawl_folder import CrawlFolder
from curtsy.crawl import results
folder = CrawlFolder.__new__(CrawlFolder)
folder.path = Path(sys.argv[1]); folder.data = folder.path / ".curtsy"; folder.config = folder.path / "test.toml"
of_url = results.of_url
def deadly(lease, *args):
    if lease.entry.url.endswith(sys.argv[2]) and not Path(sys.argv[3]).exists():
        DIES
    return of_url(lease, *args)
results.of_url = deadly
if Path(sys.argv[1], ".curtsy", "begun").exists():
    folder.resume()
else:
    folder.data.mkdir(exist_ok=True)
    Path(sys.argv[1], ".curtsy", "begun").touch()
    folder.crawl(*sys.argv[4:])
"""


@pytest.fixture
def server() -> Iterator[Server]:
    """Outlives the crawl's processes: it remembers their leases."""
    program = find_server()
    assert program is not None
    server = Server(program)
    server.start()
    yield server
    server.remove()


def lives(path: Path, web: TinyWeb, bad: str, dies: str, most: int, quiet: Path) -> int:
    """Starts the crawl again and again until it ends; how many processes it took. From then on nothing dies."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    for life in range(1, most + 1):
        if life == most:
            quiet.touch()
        command = [sys.executable, "-c", DRIVER.replace("DIES", dies), str(path), bad, str(quiet), *web.seeds]
        if subprocess.run(command, check=False, timeout=120, env=environment).returncode == 0:
            return life
    return most


def test_only_a_url_that_crashes_its_process_repeatedly_becomes_a_dead_letter(tmp_path: Path, server: Server) -> None:
    with TinyWeb.start(hosts=2, pages=4, faults=(), log=tmp_path / "access.log") as web:
        folder = CrawlFolder(tmp_path, web, frontier_url=server.url)
        bad = web.seeds[0].rstrip("/").rpartition("/")[2] + "/"
        died = lives(tmp_path, web, bad, CRASH, 8, tmp_path / "quiet")
    assert died == 5, "twice beside others, twice alone"
    ends = folder.ends()
    assert [url for url, end in ends.items() if end == "failed kills_worker"] == [web.seeds[0]]
    assert {end for url, end in ends.items() if url != web.seeds[0]} <= {"done", "done sitemap", "skipped robots"}


def test_kills_from_outside_make_no_dead_letters(tmp_path: Path, server: Server) -> None:
    with TinyWeb.start(hosts=2, pages=4, faults=(), log=tmp_path / "access.log") as web:
        folder = CrawlFolder(tmp_path, web, frontier_url=server.url)
        bad = web.seeds[0].rstrip("/").rpartition("/")[2] + "/"
        lives(tmp_path, web, bad, LOST, 6, tmp_path / "quiet")
    assert not [url for url, end in folder.ends().items() if end.startswith("failed")]
    assert folder.rows("SELECT count(*) FROM urls WHERE crashes > 0") == [(0,)]
