"""`curtsy crawl` as a process that is killed and resumed."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import psutil
import redis

from curtsy.cli import UNAVAILABLE, worker
from curtsy.services.valkey import EmbeddedValkey
from tests.chaos import browsers
from tests.chaos.parts import Cable, Database, Disk, Valkey

#: a process that gives up within this time was not running its crawl yet
STARTING_S = 4.0


class Gave(Exception):
    """The crawl gave up by itself, or did not end."""


class Crawler:
    """One crawl over several lives of its process."""

    def __init__(
        self, folder: Path, database: Database, disk: Disk | None, valkey: Valkey | None, cable: Cable | None, *,
        seeds: list[str], resolve: str, processes: int, fault: str | None, fault_life: int, render: bool = False,
    ) -> None:  # fmt: skip
        self.folder, self.database, self.disk, self.valkey, self.cable = folder, database, disk, valkey, cable
        self.data = folder / "data"
        self.lives = 0
        #: starts that ended at once because a part was down
        self.refused = 0
        #: the injected stop was reached; until then every life from `fault_life` on has it
        self.fault_hit = False
        #: pages that say nothing without their scripts are shown in a browser
        self.render = render
        self._seeds, self._resolve, self._processes = seeds, resolve, processes
        self._fault, self._fault_life = fault, fault_life
        self._process: subprocess.Popen[bytes] | None = None
        self._killed = False
        #: how old it became
        self._age_s: float | None = None

    # Its lives

    def start(self) -> None:
        """The first life gets the seeds; so does a later one whose forerunner died before its crawl was written."""
        self.lives += 1
        known = self.database.rows("SELECT id FROM crawls")
        what = ["--resume", "last"] if known else [*self._seeds, *(["--render", "auto"] if self.render else [])]
        words = ["crawl", *what, "--processes", str(self._processes), "--resolve", self._resolve, "--json"]
        env = self._env()
        if self._fault and self.lives >= self._fault_life and not self.fault_hit:
            env["CURTSY_FAULT"] = self._fault
        self._killed = False
        self._process = self._run(words, env)
        self._age_s = None
        threading.Thread(target=self._note_age, args=(self._process,), daemon=True).start()

    def _note_age(self, process: subprocess.Popen[bytes]) -> None:
        began = time.monotonic()
        process.wait()
        if process is self._process:
            self._age_s = time.monotonic() - began

    def _env(self) -> dict[str, str]:
        env = {**os.environ, "CURTSY_STORE_URL": self.database.url, "CURTSY_DATA_DIR": str(self.data)}
        env |= browsers.env(self.folder) if self.render else {}
        socket = self.cable.path if self.cable else (self.valkey.socket if self.valkey else None)
        return env | ({"CURTSY_FRONTIER_URL": f"unix://{socket}"} if socket else {})

    def _run(self, words: list[str], env: dict[str, str]) -> subprocess.Popen[bytes]:
        with (self.folder / "crawl.log").open("ab") as log:
            log.write(f"--- life {self.lives} at {time.time():.3f}: {env.get('CURTSY_FAULT', '')}\n".encode())
            log.flush()
            return subprocess.Popen(
                [sys.executable, "-m", "curtsy.cli", *words, "--config", "chaos.toml"],
                cwd=self.folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Another command over the same data."""
        return subprocess.run(
            [sys.executable, "-m", "curtsy.cli", *words, "--config", "chaos.toml"],
            cwd=self.folder, env=self._env(), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            check=False,
        )  # fmt: skip

    @property
    def finished(self) -> bool:
        return any(state == "finished" for (state,) in self.database.rows("SELECT state FROM crawls"))

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def keep_alive(self) -> bool:
        """Resumes it if it was killed; False if it has ended by itself."""
        if self.alive:
            return True
        assert self._process is not None
        code = self._process.returncode
        if code == -signal.SIGKILL:
            self.fault_hit = self.fault_hit or not self._killed
            self.start()
            return True
        if code == UNAVAILABLE and self._was_starting:
            # Whoever starts while a part is down is told so, and starts again.
            self.refused += 1
            self.start()
            return True
        if not self.finished:
            raise Gave(f"the crawl gave up with exit code {code}; see {self.folder / 'crawl.log'}")
        return False

    @property
    def _was_starting(self) -> bool:
        """It ended young, or, on a busy machine, at any age before its crawl was written."""
        states = self.database.rows("SELECT state FROM crawls")
        return not states or ((self._age_s or 0.0) < STARTING_S and not self.finished)

    def pause(self, seconds: float) -> None:
        """Waits, or less if the process ends."""
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass

    # What is done to it

    def pids(self) -> list[int]:
        if not self.alive:
            return []
        assert self._process is not None
        try:
            family = psutil.Process(self._process.pid).children(recursive=True)
            helpers = [child.pid for child in family if child.name() == worker.NAME]
        except psutil.Error:
            helpers = []
        return [self._process.pid, *helpers]

    def some(self, rng: random.Random) -> list[int]:
        """All of its processes, or one of them."""
        pids = self.pids()
        return pids if len(pids) < 2 or rng.random() < 0.4 else [rng.choice(pids)]

    def signal(self, pids: list[int], number: signal.Signals) -> None:
        for pid in pids:
            try:
                self._killed = self._killed or (number is signal.SIGKILL and pid == self._pid)
                os.kill(pid, number)
            except ProcessLookupError:
                pass

    @property
    def _pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def frontier(self) -> redis.Redis | None:
        """A client of whichever server the crawl uses; None if it does not answer."""
        if self.valkey is not None:
            return self.valkey.client()
        running = EmbeddedValkey.running(self.data)
        return redis.Redis.from_url(running.url) if running else None

    def embedded_pid(self) -> int | None:
        running = EmbeddedValkey.running(self.data)
        return running.pid if running else None

    def close(self) -> None:
        """Nothing of it is left running."""
        for pid in self.pids():
            self.signal([pid], signal.SIGCONT)
            self.signal([pid], signal.SIGKILL)
        if self._process is not None:
            self._process.wait()
        if self.render:
            browsers.end_all(self.folder)
        if self.valkey is None and (pid := self.embedded_pid()):
            os.kill(pid, signal.SIGKILL)

    def flush(self) -> bool:
        client = self.frontier()
        if client is None:
            return False
        with closing(client):
            try:
                client.flushall()
            except redis.RedisError:
                return False
        return True
