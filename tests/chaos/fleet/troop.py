"""A fleet as processes that are killed and started again: workers, Beats, the API, over one Valkey and one store."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import redis

from tests.chaos import browsers
from tests.chaos.parts import Cable, Database, Valkey

#: in the environment of every process of a round: whoever is left behind is found by it
MARK = "CHAOS_ROUND"
#: a part that died is started again after this long
AGAIN_S = 0.3
#: asked to end, all parts have this long
ENDING_S = 30.0
#: of the frontier; the broker's is 0
DATABASE = 2
QUEUES = ("fetch.high", "fetch.batch", "fetch.slow")
WORKERS = ("w1", "w2")
#: two processes for each worker, and one for lane high alone beside the first
SEATS = 5
#: in rounds with a browser: a worker of two processes, each with a browser of its own
RENDERER, RENDER_QUEUE, RENDER_SEATS = "r1", "render", 2


class TcpCable(Cable):
    """Between one worker and Valkey."""

    family = socket.AF_INET


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as found:
        return int(found.getsockname()[1])


class Part:
    """One command of the fleet over its lives."""

    def __init__(self, name: str, words: list[str], env: dict[str, str], folder: Path) -> None:
        self.name = name
        self.lives = 0
        self.wanted = False
        self._words, self._env, self._folder = words, env, folder
        self._process: subprocess.Popen[bytes] | None = None
        self._died_at: float | None = None

    def start(self) -> None:
        self.lives += 1
        self.wanted = True
        self._died_at = None
        with (self._folder / f"{self.name}.log").open("ab") as log:
            log.write(f"--- life {self.lives} at {time.time():.3f}\n".encode())
            log.flush()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "curtsy", *self._words, "--config", "chaos.toml"],
                cwd=self._folder, env=self._env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                start_new_session=True,
            )  # fmt: skip

    def supervise(self, now: float) -> None:
        if not self.wanted or self._process is None or self._process.poll() is None:
            return
        self._died_at = self._died_at or now
        if now - self._died_at >= AGAIN_S:
            self.start()

    def family(self) -> list[psutil.Process]:
        """The command, what it started, and their children, in this order."""
        if self._process is None or self._process.poll() is not None:
            return []
        try:
            first = psutil.Process(self._process.pid)
            return [first, *first.children(), *(two for one in first.children() for two in one.children())]
        except psutil.Error:
            return []

    def generation(self, n: int) -> list[int]:
        """0: the command, 1: Celery or a process of the API, 2: the children that crawl."""
        family = self.family()
        if not family:
            return []
        try:
            first = [child.pid for child in family[0].children()]
            deeper = [child.pid for pid in first for child in psutil.Process(pid).children()]
        except psutil.Error:
            return []
        return [[family[0].pid], first, deeper][n]

    def ask_to_end(self) -> None:
        self.wanted = False
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait(self, timeout_s: float) -> int | None:
        """Its exit code; None if it does not end."""
        try:
            return self._process.wait(max(0.1, timeout_s)) if self._process is not None else 0
        except subprocess.TimeoutExpired:
            return None


class Troop:
    """Everything of one round that runs. Parts that die are started again, as a supervisor would."""

    def __init__(self, folder: Path, database: Database, *, beats: int, port: int, render: bool = False) -> None:
        self.folder, self.database, self.render = folder, database, render
        self.seats = SEATS + (RENDER_SEATS if render else 0)
        self.queues = (*QUEUES, RENDER_QUEUE) if render else QUEUES
        self.data = folder / "data"
        self.api_port = port
        self.valkey = Valkey(folder / "valkey")
        self.valkey.port = free_port()
        self.valkey.start()
        target = ("127.0.0.1", self.valkey.port)
        self._workers = (*WORKERS, RENDERER) if render else WORKERS
        self.cables = {name: TcpCable(("127.0.0.1", free_port()), target) for name in self._workers}
        high = {"w1": "--high", "w2": "--no-high"}
        self.parts = {
            name: self._part(name, ["worker", "--name", name, "--concurrency", "2", high[name]], self.cables[name])
            for name in WORKERS
        }
        if render:
            words = ["worker", "--name", RENDERER, "--queues", RENDER_QUEUE, "--concurrency", str(RENDER_SEATS)]
            self.parts[RENDERER] = self._part(RENDERER, [*words, "--no-high"], self.cables[RENDERER])
        self.parts |= {f"beat{n}": self._part(f"beat{n}", ["beat"]) for n in range(1, beats + 1)}
        self.parts["api"] = self._part("api", ["serve", "--port", str(port), "--processes", "2", "--threads", "8"])
        #: how long all parts took when they were asked to end
        self.ending_s = 0.0
        self._ends = threading.Event()
        self._supervisor = threading.Thread(target=self._supervise, daemon=True)

    def _part(self, name: str, words: list[str], cable: Cable | None = None) -> Part:
        return Part(name, words, self.env(cable.path[1] if cable is not None else self.valkey.port), self.folder)

    def env(self, port: int) -> dict[str, str]:
        given = {"CURTSY_STORE_URL": self.database.url, "CURTSY_DATA_DIR": str(self.data), MARK: self.folder.name}
        given |= browsers.env(self.folder) if self.render else {}
        return {**os.environ, **given, "CURTSY_FRONTIER_URL": f"redis://127.0.0.1:{port}/{DATABASE}"}

    def start(self) -> None:
        for part in self.parts.values():
            part.start()
        self._supervisor.start()

    def _supervise(self) -> None:
        while not self._ends.wait(0.1):
            for part in self.parts.values():
                part.supervise(time.monotonic())

    def end(self) -> list[str]:
        """Asked to end, everybody does; what did not."""
        self._ends.set()
        self._supervisor.join()
        for part in self.parts.values():
            part.ask_to_end()
        began = time.monotonic()
        end = began + ENDING_S
        late = [part.name for part in self.parts.values() if part.wait(end - time.monotonic()) is None]
        self.ending_s = time.monotonic() - began
        wrong = [f"{name} did not end within {ENDING_S:g} s" for name in late]
        while (left := self.left()) and time.monotonic() < end:
            time.sleep(0.1)
        return wrong + [f"left behind: {pid} {command}" for pid, command in left]

    def left(self) -> list[tuple[int, str]]:
        """Processes of this round; browsers are given no environment of ours, and are known by their folder."""
        own = browsers.processes(self.folder) if self.render else {}
        found = [(pid, " ".join(words)[:150]) for pid, words in own.items()]
        for process in psutil.process_iter():
            try:
                if process.environ().get(MARK) == self.folder.name and process.status() != psutil.STATUS_ZOMBIE:
                    found.append((process.pid, " ".join(process.cmdline())[:150]))
            except psutil.Error:
                continue
        return found

    def close(self) -> None:
        """Whatever happened, nothing of it is left running."""
        self._ends.set()
        for cable in self.cables.values():
            cable.close()
        for _ in range(20):
            left = self.left()
            if not left:
                break
            send([pid for pid, _ in left], signal.SIGKILL)
            time.sleep(0.05)
        for part in self.parts.values():
            part.wanted = False
            part.wait(5)
        if self.render:
            browsers.end_all(self.folder)
        self.valkey.kill9()

    # What troubles ask

    @property
    def lives(self) -> int:
        return sum(part.lives - 1 for part in self.parts.values())

    def workers(self) -> list[Part]:
        return [self.parts[name] for name in self._workers]

    def beats(self) -> list[Part]:
        return [part for name, part in self.parts.items() if name.startswith("beat")]

    def queued(self) -> dict[str, int]:
        """Shifts that wait in the broker; nothing if it is away."""
        try:
            with closing(self.broker()) as client:
                return {queue: int(client.llen(queue)) for queue in self.queues}  # type: ignore[arg-type]
        except redis.RedisError:
            return dict.fromkeys(self.queues, 0)

    def running(self) -> int:
        """Shifts that run now, over all lanes; those of killed workers until they have run out."""
        try:
            with closing(self.broker(DATABASE)) as client:
                seconds, micros = client.time()  # type: ignore[misc]
                now_ms = int(seconds) * 1000 + int(micros) // 1000
                keys = [f"{{fleet}}:shifts:{queue.removeprefix('fetch.')}" for queue in self.queues]
                return sum(int(client.zcount(key, f"({now_ms}", "+inf")) for key in keys)  # type: ignore[arg-type]
        except redis.RedisError:
            return 0

    def shifts(self) -> tuple[int, int]:
        """How many have ended so far by the workers' logs, and how many of them came late."""
        said = [(self.folder / f"{name}.log").read_text("utf-8", "replace") for name in self._workers]
        lines = [line for text in said for line in text.splitlines() if '"shift_ended"' in line]
        return len(lines), sum('"late"' in line for line in lines)

    def errors(self) -> list[str]:
        """What the logs call an error."""
        logs = {name: (self.folder / f"{name}.log").read_text("utf-8", "replace") for name in self.parts}
        lines = [(name, line) for name, text in logs.items() for line in text.splitlines()]
        return [f"{name}: {line}" for name, line in lines if '"level": "error"' in line]

    def broker(self, database: int = 0) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.valkey.socket), db=database)

    def command(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command over the same data, past the cables."""
        return subprocess.run(
            [sys.executable, "-m", "curtsy", *words, "--config", "chaos.toml"],
            cwd=self.folder, env=self.env(self.valkey.port), stdin=subprocess.DEVNULL, capture_output=True, text=True,
            timeout=60, check=False,
        )  # fmt: skip


def send(pids: list[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass


def until(condition: Callable[[], Any], timeout_s: float) -> bool:
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.05)
    return False
