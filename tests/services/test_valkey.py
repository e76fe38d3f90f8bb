"""The embedded server with real processes that enter, leave and die."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import until

from curtsy.core.errors import FrontierUnavailable
from curtsy.services import valkey
from curtsy.services.valkey import EmbeddedValkey

#: enters, says which server it sees, waits for a line, leaves, says whether it was the last
USER = """
import sys
from pathlib import Path
from curtsy.services.valkey import EmbeddedValkey
share = EmbeddedValkey.enter(Path(sys.argv[1]), grace_s=float(sys.argv[2]))
print(share.pid, flush=True)
sys.stdin.readline()
print(share.leave(lambda: print("clean", share.answers(), flush=True)), flush=True)
"""


class User:
    def __init__(self, folder: Path, grace_s: float = 60) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", USER, str(folder), str(grace_s)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def leave(self) -> list[str]:
        out, _ = self.process.communicate("\n", timeout=30)
        return out.split("\n")[:-1]

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate(timeout=30)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    if (left := EmbeddedValkey.running(tmp_path / "data")) and (pid := left.pid):
        os.kill(pid, signal.SIGKILL)


def gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def test_the_first_one_in_starts_the_server_and_the_last_one_out_stops_it(folder: Path) -> None:
    first, second = EmbeddedValkey.enter(folder), EmbeddedValkey.enter(folder)
    pid = first.pid
    assert pid is not None
    assert pid == second.pid
    called: list[bool] = []
    assert not first.leave(lambda: called.append(True))
    assert second.leave(lambda: called.append(second.answers()))
    assert called == [True]
    until(lambda: gone(pid))
    assert sorted(path.name for path in folder.iterdir()) == ["valkey.alive", "valkey.lock", "valkey.log"]


def test_the_server_keeps_nothing_on_disk_and_opens_no_port(folder: Path) -> None:
    with EmbeddedValkey.enter(folder) as share:
        answers = valkey._ask(share.socket, b"CONFIG GET *\r\n")
        values = answers.split(b"\r\n")

        def value(name: bytes) -> bytes:
            return values[values.index(name) + 2]

        assert value(b"port") == b"0"
        assert value(b"save") == b""
        assert value(b"appendonly") == b"no"
        assert value(b"maxmemory-policy") == b"noeviction"
        assert share.socket.stat().st_mode & 0o077 == 0


def test_a_folder_that_it_makes_is_its_owners_alone(folder: Path) -> None:
    before = os.umask(0o022)
    try:
        with EmbeddedValkey.enter(folder):
            assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


def test_many_processes_at_once_share_one_server_and_exactly_one_stops_it(folder: Path) -> None:
    for _ in range(3):
        users = [User(folder) for _ in range(6)]
        pids = {user.line() for user in users}
        assert len(pids) == 1
        for user in users:
            assert user.process.stdin is not None
            user.process.stdin.write("\n")
            user.process.stdin.flush()
        last = [line for user in users for line in user.leave()]
        assert last.count("True") == 1
        assert last.count("clean True") == 1
        assert last.count("False") == 5
        until(lambda pids=pids: all(gone(int(pid)) for pid in pids))  # type: ignore[misc]


def test_processes_that_come_while_the_last_one_stops_the_server_get_a_fresh_one(folder: Path) -> None:
    leaving = User(folder)
    old = leaving.line()
    assert leaving.process.stdin is not None
    leaving.process.stdin.write("\n")
    leaving.process.stdin.flush()
    coming = [User(folder) for _ in range(3)]
    seen = {user.line() for user in coming}
    assert len(seen) == 1
    assert all(pid.isdigit() for pid in seen)
    leaving.leave()
    for user in coming:
        user.leave()
    until(lambda: gone(int(old)) and all(gone(int(pid)) for pid in seen))


def test_the_server_outlives_a_killed_user_and_serves_the_next(folder: Path) -> None:
    user = User(folder)
    pid = user.line()
    user.kill()
    with EmbeddedValkey.enter(folder) as share:
        assert str(share.pid) == pid


def test_a_server_that_lost_its_users_ends_by_itself(folder: Path) -> None:
    user = User(folder, grace_s=0.3)
    pid = int(user.line())
    user.kill()
    until(lambda: gone(pid))
    assert EmbeddedValkey.running(folder) is None
    until(lambda: not (folder / "valkey.sock").exists())


def test_a_server_in_use_does_not_end_by_itself(folder: Path) -> None:
    user = User(folder, grace_s=0.2)
    pid = user.line()
    with EmbeddedValkey.enter(folder) as share:
        user.kill()
        time.sleep(0.5)  # longer than the grace: only time can show that nothing happens
        assert str(share.pid) == pid


def test_a_killed_server_is_started_again_while_a_stopped_process_holds_its_share(folder: Path) -> None:
    stopped = User(folder)
    pid = int(stopped.line())
    stopped.process.send_signal(signal.SIGSTOP)
    try:
        share = EmbeddedValkey.enter(folder)
        os.kill(pid, signal.SIGKILL)
        until(lambda: not share.answers())
        assert share.ensure()
        assert share.pid not in (None, pid)
        assert not share.ensure()
        assert not share.leave()
    finally:
        stopped.process.send_signal(signal.SIGCONT)
    assert stopped.leave()[-1] == "True"


def test_a_server_that_is_only_slow_is_waited_for_and_never_doubled(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(valkey, "START_TIMEOUT_S", 0.1)
    with EmbeddedValkey.enter(folder) as share:
        pid = share.pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        try:
            with pytest.raises(FrontierUnavailable, match="does not answer"):
                EmbeddedValkey.enter(folder)
        finally:
            os.kill(pid, signal.SIGCONT)
        assert share.pid == pid


def test_ctrl_c_does_not_reach_the_server(folder: Path) -> None:
    user = User(folder)
    pid = int(user.line())
    assert os.getsid(pid) != os.getsid(user.process.pid)
    user.leave()


def test_a_folder_too_deep_for_a_socket_gets_a_short_one_that_others_find(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 80) / ("y" * 80)
    with EmbeddedValkey.enter(deep) as share, EmbeddedValkey.enter(deep) as other:
        assert len(os.fsencode(share.socket)) <= valkey.MAX_SOCKET_PATH
        assert other.pid == share.pid
        short = share.socket.parent
    assert not short.exists()


def test_a_socket_left_by_a_dead_server_is_no_obstacle(folder: Path) -> None:
    with EmbeddedValkey.enter(folder) as share:
        pid = share.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: gone(pid))
        assert share.socket.exists()
        assert share.ensure()


def test_a_server_that_cannot_start_says_what_it_said(folder: Path) -> None:
    with pytest.raises(FrontierUnavailable, match="did not start"):
        EmbeddedValkey.enter(folder, server=shutil.which("false"))


@pytest.mark.skipif(shutil.which("redis-server") is None, reason="redis-server is not installed")
def test_redis_serves_as_well(folder: Path) -> None:
    with EmbeddedValkey.enter(folder, server=shutil.which("redis-server")) as share:
        assert share.answers()
