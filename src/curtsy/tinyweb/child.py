"""The tiny web as a child process, for tests and for the demo."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from curtsy.tinyweb import accesslog
from curtsy.tinyweb.facts import DOMAIN

STOP_S = 10.0


class TinyWeb:
    """A running tiny web: `with TinyWeb.start(hosts=20) as web: ...`. It ends with the process that started it."""

    def __init__(self, process: subprocess.Popen[str], port: int, hosts: list[str], seeds: list[str], log: Path | None):
        self.port = port
        #: names of all organizations and fault hosts
        self.hosts = hosts
        self.seeds = seeds
        self.log = log
        self._process = process

    @classmethod
    def start(
        cls,
        hosts: int = 20,
        pages: int = 30,
        faults: bool | Iterable[str] = True,
        log: Path | str | None = None,
        port: int = 0,
        seed: int = 1,
        page_kb: float | None = None,
        links: int | None = None,
        slow: int = 0,
    ) -> TinyWeb:
        """Start the server and wait until it listens."""
        chosen = ("all" if faults else "none") if isinstance(faults, bool) else ",".join(faults) or "none"
        command = [sys.executable, "-m", "curtsy.tinyweb", "--with-parent", "--json", "--port", str(port)]
        command += ["--hosts", str(hosts), "--pages", str(pages), "--seed", str(seed), "--faults", chosen]
        command += ["--slow", str(slow)]
        command += ["--access-log", str(log)] if log else []
        command += ["--page-kb", str(page_kb)] if page_kb is not None else []
        command += ["--links", str(links)] if links is not None else []
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            _end(process)
            raise RuntimeError(f"The tiny web did not start (exit {process.returncode}): {' '.join(command)}")
        ready = json.loads(line)
        return cls(process, ready["port"], ready["hosts"], ready["seeds"], Path(log) if log else None)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def resolve_rule(self) -> str:
        return f"*.{DOMAIN}=127.0.0.1:{self.port}"

    def requests(self) -> list[accesslog.Line]:
        """Return all requests that have ended, by start."""
        if self.log is None:
            raise RuntimeError("This tiny web has no log. Start it with log=PATH.")
        if self._process.poll() is None:
            self._flush()
        return sorted(accesslog.read(self.log), key=lambda line: line.start_us)

    def stop(self) -> None:
        if self._process.poll() is None:
            self._process.terminate()
        _end(self._process)

    def kill(self) -> None:
        """Kill it without flushing the log."""
        self._process.kill()
        _end(self._process)

    def _flush(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=STOP_S) as control:
            control.sendall(f"GET /flush HTTP/1.1\r\nHost: control.{DOMAIN}\r\nConnection: close\r\n\r\n".encode())
            while control.recv(4096):
                pass

    def __enter__(self) -> TinyWeb:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _end(process: subprocess.Popen[str]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
