"""`curtsy up`: all parts on one machine, started again when they die, and none left behind however it ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from crawl_folder import CrawlFolder
from waiting import until

from curtsy.client.http import Client
from curtsy.core.errors import Unavailable
from curtsy.fleet.supervisor import FIRST_S, LONGEST_S, STABLE_S, pause_after
from curtsy.services.valkey import EmbeddedValkey
from curtsy.tinyweb import TinyWeb

#: what stands in the command line of each part
PARTS = {"worker": "worker@%h", "high": "high@%h", "beat": "beat", "api": "serve"}
#: requests of the host that never answers hang for so long
PATIENT = {"fetch_timeout_s": 20, "slot_s": 30, "url_lease_s": 30}


class Running:
    """One `curtsy up` and its folder."""

    def __init__(self, folder: CrawlFolder, *options: str) -> None:
        self.folder = folder
        words = ["up", "--port", "0", "--workers", "1", "--processes", "1", "--json", *options]
        self.log = folder.path / "up.log"
        with self.log.open("wb") as said:
            self.process = subprocess.Popen(
                [*command(folder), *words], cwd=folder.path, stdout=subprocess.PIPE, stderr=said, start_new_session=True
            )
        self.told = json.loads(self._document())
        self.client = Client(self.told["api"])

    def _document(self) -> str:
        assert self.process.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            line = self.process.stdout.readline().decode()
            assert line, f"it ended with {self.process.wait()}: {self.log.read_text()}"
            lines.append(line)
        return "".join(lines)

    def pid(self, part: str) -> int | None:
        """Of the child that is this part just now."""
        if part == "valkey":
            running = EmbeddedValkey.running(self.folder.data)
            return running.pid if running is not None else None
        for child in psutil.Process(self.process.pid).children():
            with suppress(psutil.Error):
                if PARTS[part] in child.cmdline():
                    return child.pid
        return None

    def logged(self, action: str, part: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.log.read_text().splitlines() if line.startswith("{")]
        return [line for line in lines if line["event"] == action and line["name"] == part]

    def family(self) -> list[psutil.Process]:
        """Every process of this folder, wherever it stands in the tree, but this one."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = " ".join(process.cmdline()) + process.environ().get("CURTSY_DATA_DIR", "")
                if str(self.folder.data) in words and process.pid != os.getpid() and alive(process):
                    found.append(process)
        return found

    def until_gone(self, within_s: float = 30.0) -> None:
        """The watcher of the private server ends a moment after it."""
        deadline = time.monotonic() + within_s
        while left := self.family():
            assert time.monotonic() < deadline, [" ".join(process.cmdline()) for process in left]
            time.sleep(0.02)

    def state(self, crawl: str) -> str:
        try:
            return str(self.client.get(f"/v1/crawls/{crawl}")["state"])
        except Unavailable:
            return "unknown"

    def pages(self, crawl: str) -> int:
        try:
            return int(self.client.get(f"/v1/crawls/{crawl}")["counts"]["pages"])
        except Unavailable:
            return 0

    def press(self) -> None:
        """Ctrl-C on the terminal where it runs: its whole session hears it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        for process in self.family():
            with suppress(psutil.Error):
                process.kill()


def command(folder: CrawlFolder) -> list[str]:
    """`curtsy` with the folder's settings, words to follow."""
    given = ["--config", str(folder.config), "--data-dir", str(folder.data)]
    return [sys.executable, "-c", f"import sys; from curtsy.cli import main; sys.argv += {given}; main()"]


def alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=8, pages=40, page_kb=4, faults=("hang-all",)) as started:
        yield started


@pytest.fixture
def up(tmp_path: Path, web: TinyWeb) -> Iterator[Callable[..., Running]]:
    """up(*options, **settings) -> Running"""
    started: list[Running] = []

    def start(*options: str, **changes: Any) -> Running:
        folder = CrawlFolder(tmp_path, web, **{"log_format": "json", **changes})
        started.append(Running(folder, *options))
        return started[-1]

    yield start
    for running in started:
        running.close()
        running.folder.close()


def orgs(web: TinyWeb) -> list[str]:
    return [seed for seed in web.seeds if "hang" not in seed]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.mark.alone
def test_all_parts_run_a_crawl_and_end_with_one_ctrl_c(up: Callable[..., Running], web: TinyWeb) -> None:
    running = up("--flower", str(free_port()))
    assert running.told["submit"].startswith(f"curtsy submit --api {running.told['api']} ")
    crawl = running.client.submit({"delay_s": 0.02}, orgs(web))
    until(lambda: running.state(crawl) == "finished", 60)
    assert running.pages(crawl) == 320
    second = subprocess.run([*command(running.folder), "up"], capture_output=True, text=True, timeout=60, check=False)
    assert (second.returncode, second.stdout, second.stderr.count("\n")) == (2, "", 1)
    assert f"(process {running.process.pid})" in second.stderr
    until(lambda: _answers(f"{running.told['flower']}healthcheck"))
    assert len(running.family()) >= 1 + 2 * 3 + 1 + 1 + 1  # up, parents with a child each, beat, Flower, Valkey
    began = time.monotonic()
    running.press()
    assert running.process.wait(30) == 0
    assert time.monotonic() - began < 8 + 6
    running.until_gone()
    assert not any(running.logged("part_died", part) for part in PARTS)
    assert running.folder.rows("SELECT count(*) FROM meta WHERE key LIKE 'clean:%'") == [(1,)]
    assert running.folder.run("audit")["overlaps"] == 0


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@pytest.mark.slow
def test_a_killed_part_restarts_and_the_crawl_continues(up: Callable[..., Running], web: TinyWeb) -> None:
    running = up()
    crawl = running.client.submit({"delay_s": 0.2}, orgs(web))
    for part in ("worker", "beat", "api", "high", "valkey"):
        had = running.pages(crawl)
        until(lambda had=had: running.pages(crawl) > had)  # it goes on since the last kill
        before = running.pid(part)
        assert before is not None
        os.kill(before, signal.SIGKILL)
        until(lambda part=part: bool(running.logged("part_restarted", part)))
        (died,) = running.logged("part_died", part)
        if part != "valkey":
            assert died["code"] == -signal.SIGKILL
            assert died["pause_s"] == FIRST_S
        assert running.pid(part) not in (None, before)
    until(lambda: running.state(crawl) == "finished", 200)
    assert running.pages(crawl) == 320
    high = running.client.submit({"delay_s": 0.02, "lane": "high", "max_pages": 20}, orgs(web)[:1])
    until(lambda: running.state(high) == "finished")
    running.press()
    assert running.process.wait(90) == 0
    running.until_gone()
    judged = running.folder.run("audit")
    assert (judged["overlaps"], judged["early"], judged["robots_violations"]) == (0, 0, 0)
    rows = running.folder.rows("SELECT count(*), count(DISTINCT url) FROM pages WHERE crawl = 1")
    assert rows == [(320, 320)]


def test_nothing_is_left_when_it_is_killed(up: Callable[..., Running], web: TinyWeb) -> None:
    running = up()
    crawl = running.client.submit({"delay_s": 0.2}, orgs(web))
    until(lambda: running.pages(crawl) > 10, 60)
    os.kill(running.process.pid, signal.SIGKILL)
    running.process.wait()
    running.until_gone(15)
    assert running.folder.rows("SELECT state FROM crawls") == [("running",)]


@pytest.mark.alone
def test_a_second_ctrl_c_ends_all_at_once(up: Callable[..., Running], web: TinyWeb) -> None:
    running = up(**PATIENT)
    (seed,) = [seed for seed in web.seeds if "hang" in seed]
    running.client.submit({"delay_s": 0.2}, [seed])
    until(lambda: running.client.get("/v1/explain", url=seed)["frontier"]["leased_since"] is not None, 60)
    running.press()
    until(lambda: running.pid("beat") is None)
    began = time.monotonic()
    running.press()
    assert running.process.wait(30) == 0
    assert time.monotonic() - began < 3
    running.until_gone()


def test_a_server_that_is_named_is_used_and_left_running(
    up: Callable[..., Running], web: TinyWeb, tmp_path: Path
) -> None:
    with EmbeddedValkey.enter(tmp_path / "elsewhere") as server:
        running = up(frontier_url=server.url)
        assert EmbeddedValkey.running(running.folder.data) is None
        crawl = running.client.submit({"delay_s": 0.02, "max_pages": 20}, orgs(web))
        until(lambda: running.state(crawl) == "finished", 60)
        os.kill(running.process.pid, signal.SIGTERM)
        assert running.process.wait(30) == 0
        running.until_gone()
        assert server.answers()


def test_a_part_that_cannot_run_is_reported_before_anything_is_started(tmp_path: Path) -> None:
    folder = CrawlFolder(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        ended = subprocess.run([*command(folder), "up", "--port", port], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "Choose another --port" in ended.stderr


@pytest.mark.parametrize(
    ("before_s", "ran_s", "pause_s"),
    [
        (None, 0, FIRST_S),
        (None, STABLE_S, FIRST_S),
        (FIRST_S, 0, 2 * FIRST_S),
        (4.0, STABLE_S - 1, 8.0),
        (4.0, STABLE_S, FIRST_S),
        (LONGEST_S, 1, LONGEST_S),
    ],
)
def test_pauses_grow_until_a_part_has_run_well(before_s: float | None, ran_s: float, pause_s: float) -> None:
    assert pause_after(before_s, ran_s) == pause_s
