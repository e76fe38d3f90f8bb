"""A helper of `crawl --processes N` ends within a limited time when its parent is gone, whatever it is doing then."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
import redis
from crawl_folder import CrawlFolder
from waiting import until

from curtsy.cli.worker import COMMIT_S, LEAVE_S, NAME
from curtsy.services.valkey import find_server
from curtsy.tinyweb import TinyWeb

DRAIN_S = 1.0
HOSTS = 4
#: a busy machine takes its time to run what is due
LIMIT_S = DRAIN_S + COMMIT_S + LEAVE_S + 4


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=HOSTS, pages=200, faults=["hang"], log=tmp_path / "access.log") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, web: TinyWeb) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, web, drain_s=DRAIN_S)
    yield made
    made.close()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A frontier's server that is nobody's own: if it dies, nobody starts it again."""
    socket = tmp_path / "own.sock"
    program = find_server()
    assert program is not None
    options = ["--port", "0", "--unixsocket", str(socket), "--save", "", "--maxmemory-policy", "noeviction"]
    process = subprocess.Popen([program, *options], cwd=tmp_path, stdout=subprocess.DEVNULL)
    until(socket.exists)
    yield process, f"unix://{socket}"
    process.kill()
    process.wait()


def start(folder: CrawlFolder, web: TinyWeb) -> tuple[subprocess.Popen[str], int]:
    """The crawl and its helper, as soon as there is one."""
    parent = folder.start("crawl", *web.seeds, "--delay", "0.05", "--processes", "2", "--json")
    until(lambda: bool(helpers_of(parent.pid)))
    return parent, helpers_of(parent.pid)[0]


def helpers_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children")
    found = [int(child) for child in children.read_text().split()] if children.exists() else []
    return [child for child in found if lives(child)]


def lives(pid: int) -> bool:
    """It has its name, and is not a process that has ended and that nobody has asked about."""
    try:
        name, _, state = Path(f"/proc/{pid}/stat").read_text().partition("(")[2].rpartition(")")
    except OSError:
        return False
    return name == NAME and not state.startswith(" Z")


def is_connected(helper: int) -> bool:
    """It has come as far as to open the database."""
    try:
        return any("curtsy.sqlite" in os.readlink(fd) for fd in Path(f"/proc/{helper}/fd").iterdir())
    except OSError:
        return False


def alone(folder: CrawlFolder, web: TinyWeb, parent: subprocess.Popen[str], helper: int) -> None:
    """The parent stands still, the helper crawls: it has asked for more than the parent may have had under way."""
    until(lambda: folder.has_pages(20) and is_connected(helper))
    with locked(folder):  # a parent that is stopped while it writes would keep the helper from writing
        parent.send_signal(signal.SIGSTOP)
    asked = len(web.requests())
    until(lambda: len(web.requests()) > asked + HOSTS)


def says(process: subprocess.Popen[str], *words: str) -> None:
    """Waits for one of these words in its log, or its helper's."""
    assert process.stderr is not None
    descriptor = process.stderr.fileno()
    os.set_blocking(descriptor, False)
    said = b""

    def heard() -> bool:
        nonlocal said
        try:
            said += os.read(descriptor, 65536)
        except BlockingIOError:
            pass
        return any(word.encode() in said for word in words)

    until(heard)


def ends(helper: int, parent: subprocess.Popen[str]) -> None:
    """The parent is killed: the helper ends in time."""
    assert lives(helper)
    parent.kill()
    try:
        until(lambda: not lives(helper), within_s=LIMIT_S)
    except AssertionError:
        os.kill(helper, signal.SIGKILL)
        raise


def test_while_it_starts(folder: CrawlFolder, web: TinyWeb) -> None:
    parent, helper = start(folder, web)
    ends(helper, parent)


def test_while_it_crawls(folder: CrawlFolder, web: TinyWeb) -> None:
    parent, helper = start(folder, web)
    alone(folder, web, parent, helper)
    ends(helper, parent)


def test_while_it_drains(folder: CrawlFolder, web: TinyWeb) -> None:
    parent, helper = start(folder, web)
    until(lambda: folder.has_pages(20) and is_connected(helper))
    parent.send_signal(signal.SIGINT)
    says(parent, "Stopping")
    ends(helper, parent)


def test_after_it_stood_still_itself(folder: CrawlFolder, web: TinyWeb) -> None:
    parent, helper = start(folder, web)
    alone(folder, web, parent, helper)
    os.kill(helper, signal.SIGSTOP)
    parent.kill()
    parent.wait()
    os.kill(helper, signal.SIGCONT)
    ends(helper, parent)


@pytest.mark.parametrize("trouble", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
@pytest.mark.parametrize("begun", [True, False], ids=["crawling", "starting"])
def test_while_the_frontier_is_unavailable(
    tmp_path: Path, web: TinyWeb, server: tuple[subprocess.Popen[bytes], str], trouble: signal.Signals, begun: bool
) -> None:
    process, url = server
    folder = CrawlFolder(tmp_path, web, drain_s=DRAIN_S, frontier_url=url)
    try:
        parent, helper = start(folder, web)
        if begun:
            alone(folder, web, parent, helper)
        process.send_signal(trouble)
        says(parent, "frontier_unavailable", "frontier_lost", "frontier_not_opened", "part_unavailable")
        ends(helper, parent)
    finally:
        folder.close()


def test_while_the_frontier_is_another_and_its_store_is_locked(
    tmp_path: Path, web: TinyWeb, server: tuple[subprocess.Popen[bytes], str]
) -> None:
    folder = CrawlFolder(tmp_path, web, drain_s=DRAIN_S, frontier_url=server[1])
    try:
        parent, helper = start(folder, web)
        with closing(redis.Redis.from_url(server[1])) as client:
            # Both have leased something: a process that is still starting waits for the store, and loses no frontier.
            until(lambda: folder.has_pages(20) and is_connected(helper) and len(client.keys("*owner:*")) == 2)
            with locked(folder):
                parent.send_signal(signal.SIGSTOP)
                client.flushall()
                says(parent, "frontier_lost")
                ends(helper, parent)
    finally:
        folder.close()


def test_while_it_starts_and_the_store_is_locked(folder: CrawlFolder, web: TinyWeb) -> None:
    parent, helper = start(folder, web)
    with locked(folder):
        ends(helper, parent)


def test_while_it_crawls_and_the_store_is_locked(folder: CrawlFolder, web: TinyWeb) -> None:
    parent, helper = start(folder, web)
    alone(folder, web, parent, helper)
    parent.send_signal(signal.SIGCONT)
    with locked(folder):
        asked = len(web.requests())
        until(lambda: len(web.requests()) > asked + HOSTS)
        ends(helper, parent)


@contextmanager
def locked(folder: CrawlFolder) -> Iterator[None]:
    """Nobody can write to its database."""
    with closing(sqlite3.connect(folder.data / "curtsy.sqlite", isolation_level=None, timeout=10)) as db:
        db.execute("BEGIN EXCLUSIVE")
        yield


def test_a_helper_without_a_task_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "curtsy.cli", "crawl-worker"]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
