"""Processes of `crawl --processes N` start before there is a crawl for them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from curtsy.cli import helpers as under_test
from curtsy.cli.helpers import Helpers
from curtsy.core.settings import Settings

#: starts helpers in a process with one thread, and prints what `script` prints
ALONE = """
import asyncio, os, sys
from pathlib import Path
from curtsy.cli.helpers import Helpers
from curtsy.core.observe import counters
from curtsy.core.settings import Settings
counters["of the parent"] = 1
helpers = Helpers(Settings(data_dir=Path(sys.argv[1])))
print("not flushed yet", end=" ")
helpers.start(2)
pids = [helper.pid for helper in helpers._helpers]
"""


def alone(script: str, folder: Path, before: str = "") -> str:
    command = [sys.executable, "-c", before + ALONE + script, str(folder / "data")]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("threads", [1, 2])
def test_a_process_that_gets_no_crawl_ends_when_its_parent_sends_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int
) -> None:
    monkeypatch.setattr(under_test, "_has_one_thread", lambda: threads == 1)
    helpers = Helpers(Settings(data_dir=tmp_path / "data"))
    helpers.start(2)
    asyncio.run(helpers.wait(30))
    assert not helpers.counted
    assert not (tmp_path / "data").exists(), "they opened nothing"


def test_a_process_with_one_thread_is_copied(tmp_path: Path) -> None:
    script = """
own = Path("/proc/self/cmdline").read_bytes()
print(*[Path(f"/proc/{pid}/cmdline").read_bytes() == own for pid in pids])
asyncio.run(helpers.wait(30))
print(dict(helpers.counted))
"""
    assert alone(script, tmp_path) == "not flushed yet True True\n{}\n", "the copies write nothing of the parent"


def test_a_copy_keeps_no_lock_of_its_parent(tmp_path: Path) -> None:
    before = """
import fcntl, os, sys, time
held = os.open(sys.argv[1] + ".lock", os.O_CREAT | os.O_RDWR)
fcntl.flock(held, fcntl.LOCK_EX)
"""
    script = """
until = time.monotonic() + 30
while any(Path(f"/proc/{pid}/comm").read_text() != "crawl-worker\\n" for pid in pids):
    assert time.monotonic() < until
    time.sleep(0.01)
os.close(held)
fcntl.flock(os.open(sys.argv[1] + ".lock", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)
print("free")
asyncio.run(helpers.wait(30))
"""
    assert alone(script, tmp_path, before).endswith("free\n")


def test_what_the_parent_does_at_its_end_is_not_done_by_a_copy(tmp_path: Path) -> None:
    before = """
import atexit, os, sys
atexit.register(lambda: os.write(os.open(sys.argv[1] + ".ended", os.O_CREAT | os.O_APPEND | os.O_WRONLY), b"once "))
"""
    alone("asyncio.run(helpers.wait(30))", tmp_path, before)
    assert (tmp_path / "data.ended").read_text() == "once "


def test_a_process_with_threads_is_not_copied(tmp_path: Path) -> None:
    script = """
import threading
over = threading.Event()
threading.Thread(target=over.wait).start()
helpers.start(1)
command = Path(f"/proc/{helpers._helpers[2].pid}/cmdline")
while not (words := command.read_bytes()):
    pass  # it does not run the program yet
print(b"crawl-worker" in words)
asyncio.run(helpers.wait(30))
over.set()
"""
    assert alone(script, tmp_path) == "not flushed yet True\n"


def test_each_copy_ends_when_its_own_input_closes(tmp_path: Path) -> None:
    """A later copy keeps nothing of an earlier one open."""
    script = """
first, second = helpers._helpers
first.close_input()
os.waitpid(first.pid, 0)
os.kill(second.pid, 0)
second.close_input()
os.waitpid(second.pid, 0)
print("both have ended")
"""
    assert alone(script, tmp_path) == "not flushed yet both have ended\n"


def test_one_that_does_not_end_in_time_is_killed(tmp_path: Path) -> None:
    script = """
import signal
for pid in pids:
    os.kill(pid, signal.SIGSTOP)
asyncio.run(helpers.wait(0.1))
print(dict(helpers.counted))
"""
    assert alone(script, tmp_path) == "not flushed yet {}\n"


def test_counters_are_read_only_of_one_that_ended_well() -> None:
    for code, counted in ((0, {"commits": 3}), (70, {})):
        from_, output = os.pipe()
        to = os.open(os.devnull, os.O_WRONLY)
        os.write(output, json.dumps({"commits": 3}).encode())
        os.close(output)
        pid = os.posix_spawn("/bin/sh", ["sh", "-c", f"exit {code}"], {})
        helper = under_test.Helper(pid, to, from_)
        helper.close_input()
        assert helper.result(30) == counted
