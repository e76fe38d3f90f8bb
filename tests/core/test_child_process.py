import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from curtsy.core.child_process import ChildProcess

ECHO = """
import os, sys, time
for line in sys.stdin.buffer:
    word = line.decode().strip()
    if word == "hang":
        time.sleep(600)
    if word == "die":
        os.abort()
    answer = os.environ.get(word[1:], "unset") if word.startswith("$") else f"{word} {os.getpid()}"
    print(answer, flush=True)
"""


def line(taken: IO[bytes]) -> bytes | None:
    return taken.readline().strip() or None


@pytest.fixture
def echo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildProcess]:
    (tmp_path / "curtsy_test_echo.py").write_text(ECHO)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("CURTSY_API_TOKEN", "secret")
    monkeypatch.setenv("CURTSY_READER", "tree")
    child = ChildProcess("curtsy_test_echo", grace_s=5, environment=("CURTSY_READER",), quiet=True)
    yield child
    child.end()


def ask(child: ChildProcess, word: str, wait_s: float = 60) -> bytes | None:
    return child.ask(word.encode() + b"\n", b"", wait_s, line)


def test_one_process_answers_until_it_is_ended(echo: ChildProcess) -> None:
    assert echo.id is None
    assert ask(echo, "one") == b"one %d" % echo.start()
    first = echo.id
    assert ask(echo, "two") == b"two %d" % (first or 0)
    assert echo.answers == 2
    assert echo.end() == 0
    assert ask(echo, "three") not in (None, b"three %d" % (first or 0))
    assert echo.answers == 1


def test_it_gets_only_the_named_variables(echo: ChildProcess) -> None:
    assert ask(echo, "$CURTSY_READER") == b"tree"
    assert ask(echo, "$CURTSY_API_TOKEN") == b"unset"


def test_a_process_that_dies_gives_no_answer_and_its_status(echo: ChildProcess) -> None:
    assert ask(echo, "die") is None
    assert not echo.is_late
    assert echo.end() == -signal.SIGABRT
    assert ask(echo, "again") is not None


def test_a_process_that_died_between_requests_is_replaced(echo: ChildProcess) -> None:
    dead = echo.start()
    os.kill(dead, signal.SIGKILL)
    os.waitid(os.P_PID, dead, os.WEXITED | os.WNOWAIT)
    assert ask(echo, "one") is not None
    assert echo.id != dead


def test_a_request_that_takes_too_long_is_ended(echo: ChildProcess) -> None:
    assert ask(echo, "hang", wait_s=0.1) is None
    assert echo.is_late
    assert echo.end() == -signal.SIGKILL


def test_another_thread_can_end_a_request(echo: ChildProcess) -> None:
    echo.start()
    answers = []
    asking = threading.Thread(target=lambda: answers.append(ask(echo, "hang")))
    asking.start()
    echo.kill()
    asking.join(60)
    assert answers == [None]
    assert not echo.is_late


def test_after_a_fork_the_child_leaves_the_process_alone(echo: ChildProcess) -> None:
    process = echo.start()
    pid = os.fork()
    if pid == 0:
        echo.kill()
        os._exit(0 if echo.end() is None else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert ask(echo, "one") == b"one %d" % process
