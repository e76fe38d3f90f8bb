"""The plain Celery commands, Flower, and the convenient form of both parts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from fleet_folder import FleetFolder
from postgres_server import PgServer
from waiting import until

from curtsy.tinyweb import TinyWeb

NewFleet = Callable[..., FleetFolder]


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=4, pages=10, page_kb=4, faults=False) as started:
        yield started


def test_plain_celery_commands_find_settings_and_server_by_themselves(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    fleet.config.rename(fleet.path / "curtsy.toml")
    fleet.config = fleet.path / "curtsy.toml"
    celery = str(Path(sys.executable).with_name("celery"))
    fleet.start_program("worker", celery, "-A", "curtsy.celery_app", "worker", "-Q", "fetch.batch", "-c", "1")
    fleet.start_program("beat", celery, "-A", "curtsy.celery_app", "beat")
    crawl = fleet.submit(web.seeds, delay_s=0.05)
    assert fleet.until_ended(crawl).pages == 40


def test_a_part_that_ends_by_itself_is_reported(tmp_path: Path) -> None:
    code = (
        "import sys; from curtsy.cli.child_processes import keep; from curtsy.core.settings import Settings; "
        "sys.exit(keep([[sys.executable, '-c', '']], Settings(), None))"
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (4, "curtsy: the process exited unexpectedly.\n")


def test_flower_shows_workers_queues_and_tasks(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    fleet.worker()
    fleet.start_part("flower", "celery", "-A", "curtsy.celery_app", "flower", "--address=127.0.0.1", f"--port={port}",
                     FLOWER_UNAUTHENTICATED_API="true")  # fmt: skip

    def ask(path: str) -> Any:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/{path}", timeout=10) as answer:
            return json.load(answer)

    def listens() -> bool:
        try:
            return bool(ask("workers?refresh=1"))
        except OSError:
            return False

    until(listens, 60, every_s=0.2)
    fleet.beat()
    crawl = fleet.submit(web.seeds, delay_s=0.05)
    fleet.until_ended(crawl)
    (worker,) = ask("workers?refresh=1").items()
    assert worker[0] == "w1@test"
    assert {queue["name"] for queue in worker[1]["active_queues"]} >= {"fetch.high", "fetch.batch", "fetch.slow"}
    assert {"curtsy.shift", "curtsy.stage"} <= set(worker[1]["registered"])
    assert {queue["name"] for queue in ask("queues/length")["active_queues"]} >= {"fetch.batch", "default"}
    until(lambda: any(task["state"] == "SUCCESS" for task in ask("tasks").values()))
    assert {task["name"] for task in ask("tasks").values()} == {"curtsy.shift"}


def test_curtsy_worker_keeps_a_process_for_lane_high_and_ends_with_all_its_parts(
    new_fleet: NewFleet, web: TinyWeb
) -> None:
    fleet = new_fleet(web)
    words = ("--config", str(fleet.config), "--data-dir", str(fleet.data))
    worker = fleet.start_part("worker", "curtsy.cli", "worker", "--concurrency", "1", "--name", "w", *words)
    fleet.start_part("beat", "curtsy.cli", "beat", *words)
    until(lambda: len(fleet.ask(lambda f: f.workers())) == 2)
    main, high = fleet.ask(lambda f: f.workers())
    assert (high.queues, high.processes) == (("fetch.high",), 1) if "-high@" in high.name else (main.queues, 1)
    crawl = fleet.submit(web.seeds, delay_s=0.05)
    assert fleet.until_ended(crawl).pages == 40
    family = psutil.Process(worker.pid).children(recursive=True)
    assert fleet.stop("worker") == 0
    assert fleet.stop("beat") == 0
    assert not [process for process in family if process.is_running()]


def test_parts_end_with_the_command_that_was_killed(new_fleet: NewFleet, web: TinyWeb) -> None:
    fleet = new_fleet(web)
    words = ("--config", str(fleet.config), "--data-dir", str(fleet.data))
    worker = fleet.start_part("worker", "curtsy.cli", "worker", "--concurrency", "1", "--no-high", *words)
    until(lambda: len(fleet.ask(lambda f: f.workers())) == 1)
    family = psutil.Process(worker.pid).children(recursive=True)
    os.kill(worker.pid, signal.SIGKILL)
    worker.wait()
    until(lambda: not any(process.is_running() for process in family))


def test_a_beat_that_waits_for_its_database_ends_with_the_command_that_was_killed(
    new_fleet: NewFleet, postgres: PgServer
) -> None:
    fleet = new_fleet(on="postgresql")
    words = ("--config", str(fleet.config), "--data-dir", str(fleet.data))
    beat = fleet.start_part("beat", "curtsy.cli", "beat", *words)
    fleet.submit(["http://no.such.host.test/"])
    until(lambda: fleet.broker("LLEN", "fetch.batch") == 1)
    family = psutil.Process(beat.pid).children(recursive=True)
    postgres.kill9()
    try:
        fleet.command("FLUSHALL")
        until(lambda: "recovery_waits" in fleet.said("beat"))
        os.kill(beat.pid, signal.SIGKILL)
        beat.wait()
        until(lambda: not any(process.is_running() for process in family))
    finally:
        postgres.start()
