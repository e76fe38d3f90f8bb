"""The servers around a crawl that can be broken: a Valkey of our own, the cable to it, databases, a small disk."""

from __future__ import annotations

import os
import random
import resource
import shutil
import socket
import sqlite3
import subprocess
import threading
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

import redis

from curtsy.services.valkey import find_server
from tests.support.postgres_server import PgServer

START_S = 20.0


class Valkey:
    """A frontier server that is not the crawl's own: it can be killed, and come back empty or from a snapshot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.socket = folder / "v.sock"
        #: 0: the socket alone
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir()

    def start(self) -> None:
        program = find_server()
        assert program is not None
        words = ["--port", str(self.port), "--unixsocket", str(self.socket), "--save", "", "--dir", str(self.folder)]
        words += ["--enable-debug-command", "local"]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([program, *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        end = time.monotonic() + START_S
        while not self._answers():
            assert time.monotonic() < end, f"{program} did not start"
            time.sleep(0.01)

    @property
    def pids(self) -> list[int]:
        return [self._process.pid] if self._process is not None else []

    def _answers(self) -> bool:
        try:
            with closing(self.client()) as client:
                return bool(client.ping())
        except redis.RedisError:
            return False

    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.socket))

    def kill9(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def snapshot(self) -> None:
        with closing(self.client()) as client:
            client.save()

    def forget_snapshot(self) -> None:
        (self.folder / "dump.rdb").unlink(missing_ok=True)


class Cable:
    """Stands between the crawl and its Valkey, and can be cut: at once, or so that a reply is lost under way."""

    family: int = socket.AF_UNIX

    def __init__(self, path: Any, target: Any) -> None:
        self.path, self._target = path, target
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._lock = threading.Lock()
        self._swallow = False
        #: nobody gets a new connection either
        self.down = False
        self._flows = threading.Event()
        self._flows.set()
        self._listener = socket.socket(self.family)
        self._listener.bind(path if isinstance(path, tuple) else str(path))
        self._listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Every connection breaks now; how many there were."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            for end in pair:
                _shut(end)
        return len(pairs)

    def swallow(self, wait_s: float = 2.0) -> int:
        """The next request is carried out, its reply is lost, then every connection breaks."""
        self._swallow = True
        end = time.monotonic() + wait_s
        while self._swallow and time.monotonic() < end:
            time.sleep(0.001)
        self._swallow = False
        return self.cut()

    def stand_still(self) -> None:
        """Nothing gets through, and nobody is told, until `go_on`: then whatever was under way arrives late."""
        self._flows.clear()

    def go_on(self) -> None:
        self._flows.set()

    def close(self) -> None:
        self.go_on()
        _shut(self._listener)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            if self.down:
                near.close()
                continue
            far = socket.socket(self.family)
            try:
                far.connect(self._target if isinstance(self._target, tuple) else str(self._target))
            except OSError:
                near.close()
                far.close()
                continue
            if self.family == socket.AF_INET:
                for end in (near, far):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._lock:
                self._pairs.add((near, far))
            threading.Thread(target=self._carry, args=(near, far, False), daemon=True).start()
            threading.Thread(target=self._carry, args=(far, near, True), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, replies: bool) -> None:
        try:
            while data := source.recv(65536):
                if replies and self._swallow:
                    self._swallow = False
                    break
                self._flows.wait()
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            _shut(end)


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


class Database(Protocol):
    """The store of one round, seen without the product's code."""

    url: str

    def rows(self, query: str) -> list[tuple[Any, ...]]: ...

    def hurt(self, rng: random.Random) -> str:
        """Away for some seconds; what was done to it."""

    @property
    def pid(self) -> int | None:
        """Of its server; None: it has none."""

    def refuse(self, seconds: float) -> str:
        """Takes no changes for so long; what was done to it."""

    def end_connection(self, rng: random.Random) -> None:
        """One of the crawl's, chosen by chance."""

    def drop(self) -> None:
        """A clean round needs it no more."""


class Sqlite:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.url = f"sqlite:///{path}"

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        if not self._path.exists():
            return []
        with closing(sqlite3.connect(f"file:{self._path}?mode=ro", uri=True, timeout=30)) as connection:
            try:
                return connection.execute(query).fetchall()
            except sqlite3.OperationalError as error:
                if "no such table" in str(error):
                    return []
                raise

    pid = None

    def hurt(self, rng: random.Random) -> str:
        return self.refuse(rng.uniform(1.5, 5.0))

    def end_connection(self, rng: random.Random) -> None:
        """It has none: a short lock instead."""
        self.refuse(rng.uniform(0.0, 0.3))

    def refuse(self, seconds: float) -> str:
        if not self._path.exists():
            return "missing"
        with closing(sqlite3.connect(self._path, isolation_level=None, timeout=20)) as connection:
            connection.execute("BEGIN EXCLUSIVE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")
        return f"locked {seconds:.1f} s"

    def drop(self) -> None:
        pass  # it goes with its folder


_END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'DATABASE_NAME'"
_END_ONE = f"{_END_ALL} ORDER BY random() LIMIT 1"


class Postgres:
    def __init__(self, server: PgServer, name: str) -> None:
        self._server, self._name = server, name
        self.url = server.create_database(name)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as connection:
            try:
                return connection.execute(query.encode()).fetchall()
            except psycopg.errors.UndefinedTable:
                return []

    @property
    def pid(self) -> int | None:
        return self._server.pid

    def refuse(self, seconds: float) -> str:
        self._order(f'ALTER DATABASE "{self._name}" SET default_transaction_read_only = on', _END_ALL)
        time.sleep(seconds)
        # Sessions of that time stay read-only: the crawl must leave them by itself.
        self._order(f'ALTER DATABASE "{self._name}" RESET default_transaction_read_only')
        return f"read-only {seconds:.1f} s"

    def end_connection(self, rng: random.Random) -> None:
        self._order(f"SELECT setseed({rng.uniform(-1, 1)})", _END_ONE)

    def _order(self, *orders: str) -> None:
        import psycopg

        with psycopg.connect(self._server.url, autocommit=True) as connection:
            for order in orders:
                connection.execute(order.replace("DATABASE_NAME", self._name).encode())

    def hurt(self, rng: random.Random) -> str:
        if rng.random() < 0.5:
            self._server.restart()
            return "restarted"
        self._server.kill9()
        time.sleep(rng.uniform(0.0, 2.5))
        self._server.start()
        return "killed"

    def drop(self) -> None:
        import psycopg

        with psycopg.connect(self._server.url, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{self._name}" WITH (FORCE)'.encode())


class Disk(Protocol):
    """The disk of the segments."""

    def fill(self, pids: Sequence[int]) -> None: ...

    def free(self, pids: Sequence[int]) -> None: ...

    def close(self) -> None: ...


class SmallDisk:
    """A tmpfs of a few megabytes, filled by ballast. Needs root."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(folder)], check=True, capture_output=True)

    def fill(self, pids: Sequence[int]) -> None:
        with (self._folder / "ballast").open("wb", buffering=0) as ballast:
            try:
                while ballast.write(bytes(4096)):
                    pass
            except OSError:
                pass

    def free(self, pids: Sequence[int]) -> None:
        (self._folder / "ballast").unlink(missing_ok=True)

    def close(self) -> None:
        """Keeps what was written, for whoever looks into a failed round."""
        kept = self._folder.with_name("segments-kept")
        shutil.copytree(self._folder, kept)
        subprocess.run(["umount", "--lazy", str(self._folder)], check=False)
        self._folder.rmdir()
        kept.rename(self._folder)


class SmallFiles:
    """Without root: no file of the crawl may grow beyond what the segments have now."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fill(self, pids: Sequence[int]) -> None:
        sizes = [path.stat().st_size for path in self._folder.glob("*.warc.gz")] if self._folder.exists() else []
        self._limit(pids, max(sizes, default=0) + 2000)

    def free(self, pids: Sequence[int]) -> None:
        self._limit(pids, resource.RLIM_INFINITY)

    def close(self) -> None:
        pass

    @staticmethod
    def _limit(pids: Sequence[int], size: int) -> None:
        for pid in pids:
            try:
                _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, hard))
            except (ProcessLookupError, PermissionError):
                pass  # it has ended


def small_disk(folder: Path, *, mounted: bool) -> Disk:
    if mounted and os.geteuid() == 0:
        try:
            return SmallDisk(folder)
        except (OSError, subprocess.CalledProcessError):
            folder.rmdir()  # a container that may not mount
    return SmallFiles(folder)
