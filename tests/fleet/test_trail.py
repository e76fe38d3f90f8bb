"""What a fleet writes: with JSON logs every line is JSON; events of a crawl name the crawl and its request."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import CrawlFolder
from waiting import until, wait_for

from curtsy.client.http import Client
from curtsy.tinyweb import TinyWeb

#: a rubric that writes, warns and fails, as a user's function may
NOISY = """
import sys, warnings

def score(**given):
    print("score prints")
    print("score complains", file=sys.stderr)
    warnings.warn("score warns", UserWarning)
    raise ValueError("no score")
"""


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=3, pages=5, page_kb=2, faults=False) as started:
        yield started


class Up:
    """`curtsy up` whose standard output and standard error are one file."""

    def __init__(self, folder: CrawlFolder, *words: str) -> None:
        self.folder, self.log = folder, folder.path / "up.log"
        given = ["--config", str(folder.config), "--data-dir", str(folder.data)]
        with self.log.open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "curtsy", "up", "--port", "0", "--workers", "1", "--processes", "1", *given,
                 *words],
                cwd=folder.path, stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def events(self, action: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["event"] == action]

    def api(self) -> str:
        def ready() -> str | None:
            assert self.process.poll() is None, self.log.read_text()
            told = [line["message"] for line in self.events("message") if line["message"].startswith("Ready.")]
            return told[0].split("API: ")[1].split("/ ")[0] if told else None

        return wait_for(ready)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


@pytest.fixture(scope="module")
def ran(web: TinyWeb, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[list[dict[str, Any]], str, str]]:
    """Everything that a fleet wrote while it did a crawl with failures: its lines, the crawl, the request."""
    path = tmp_path_factory.mktemp("trail")
    (path / "noisy.py").write_text(NOISY)
    folder = CrawlFolder(
        path, web, log_level="info", log_format="json", api_rubrics=["noisy:score"], stage_attempts=2,
        allow_private=["127.0.0.0/8"], webhook_secret="a secret of some length",
    )  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(path))
        up = Up(folder)
    try:
        client = Client(up.api())
        body = {
            "seeds": [*web.seeds, "http://127.0.0.1:1/"],
            "delay_s": 0.02,
            "schema": "page",
            "rubric": "noisy:score",
        }
        body |= {"webhook": "http://127.0.0.1:1/"}
        headers = {"X-Request-Id": "trail-1", "Content-Type": "application/json"}
        crawl = client.read(*client.exchange("POST", "/v1/crawls", json.dumps(body).encode(), headers))["id"]
        until(lambda: bool(up.events("crawl_joined")))
        client.read(*client.exchange("POST", f"/v1/crawls/{crawl}/pause", b"", {"X-Request-Id": "trail-2"}))
        client.read(*client.exchange("POST", f"/v1/crawls/{crawl}/resume", b"", {"X-Request-Id": "trail-3"}))
        until(lambda: bool(up.events("webhook_failed")), 60)
        os.kill(up.process.pid, signal.SIGINT)
        up.process.wait(60)
        yield up.lines(), crawl, "trail-1"
    finally:
        up.close()
        folder.close()


EVENTS = ("crawl_created", "crawl_started", "crawl_joined", "crawl_paused", "crawl_resumed", "host_dead",
          "stage_failed", "crawl_finished", "webhook_failed")  # fmt: skip


@pytest.mark.parametrize("event", EVENTS)
def test_an_event_names_the_crawl_and_the_request_that_created_it(
    ran: tuple[list[dict[str, Any]], str, str], event: str
) -> None:
    lines, crawl, request = ran
    found = [line for line in lines if line["event"] == event]
    assert found
    assert {(line["crawl"], line["request_id"]) for line in found} == {(crawl, request)}


def test_no_event_about_the_crawl_lacks_the_ids(ran: tuple[list[dict[str, Any]], str, str]) -> None:
    # Whether there is a crawl_extracting depends on what ends last: the fetches or the stages.
    lines, crawl, request = ran
    about = [line for line in lines if line["event"].startswith("crawl_")]
    assert {(line["crawl"], line["request_id"]) for line in about} == {(crawl, request)}


def test_a_change_of_a_crawl_also_names_its_own_request(ran: tuple[list[dict[str, Any]], str, str]) -> None:
    lines, *_ = ran
    by = {line["event"]: line.get("by_request_id") for line in lines if line["event"].startswith("crawl_")}
    assert (by["crawl_created"], by["crawl_paused"], by["crawl_resumed"]) == (None, "trail-2", "trail-3")


def test_what_libraries_and_functions_write_is_json_too(ran: tuple[list[dict[str, Any]], str, str]) -> None:
    lines, *_ = ran  # each line was read as JSON
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    written = {(line["stream"], line["message"]) for line in lines if line["event"] == "output"}
    assert {("stdout", "score prints"), ("stderr", "score complains")} <= written
    assert any("score warns" in line["message"] for line in lines if line.get("logger") == "py.warnings")


def said(folder: Path, *words: str, **variables: str) -> tuple[int, list[dict[str, Any]]]:
    """A command that cannot start: its exit code, and every line that it wrote."""
    given = os.environ | {"CURTSY_LOG_FORMAT": "json"} | variables
    done = subprocess.run(
        [sys.executable, "-m", *words], cwd=folder, env=given, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("command", ["serve", "beat", "worker", "up"])
def test_errors_of_the_settings_are_json_lines(tmp_path: Path, command: str) -> None:
    code, lines = said(tmp_path, "curtsy", command, CURTSY_DELAY_S="never")
    assert code == 2
    assert "CURTSY_DELAY_S" in lines[-1]["message"]


def test_a_traceback_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(
        "import logging, threading\nfrom curtsy.core import log_capture\nlog_capture.install()\n"
        "thread = threading.Thread(target=lambda: 1 / 0)\nthread.start()\nthread.join()\n"
        "try:\n    1 / 0\nexcept ZeroDivisionError:\n    logging.getLogger('x').exception('it %s', 'failed')\n"
        "{}['missing']\n"
    )
    code, (thread, logged, uncaught) = said(tmp_path, "raises")
    assert code == 1
    assert (thread["event"], uncaught["event"], logged["message"]) == ("uncaught", "uncaught", "it failed")
    for line in (thread, logged, uncaught):
        assert line["trace"].startswith("Traceback")


@pytest.mark.parametrize(("command", "word"), [("worker", "ready"), ("beat", "Starting")])
def test_celery_started_by_its_own_command_writes_json(tmp_path: Path, command: str, word: str) -> None:
    folder = CrawlFolder(tmp_path, log_format="json")
    log = tmp_path / "celery.log"
    given = os.environ | {"CURTSY_CONFIG": str(folder.config), "CURTSY_DATA_DIR": str(folder.data)}
    words = [sys.executable, "-m", "celery", "-A", "curtsy.celery_app", command, "-l", "info"]
    with log.open("wb") as out:
        process = subprocess.Popen(words, cwd=tmp_path, env=given, stdout=out, stderr=out, start_new_session=True)
    try:
        until(lambda: word in log.read_text(), 60)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        folder.close()
    assert all(json.loads(line)["event"] for line in log.read_text().splitlines())
