"""A real `curtsy serve`, its processes, and plain sockets to it."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

import psutil
from waiting import wait_for

from curtsy.client.http import Client

T = TypeVar("T")


class Served:
    """One server with its child processes."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        self.process, self.port, self.log = process, port, log

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def client(self) -> Client:
        return Client(self.url)

    def children(self) -> list[psutil.Process]:
        """The processes that answer."""
        return psutil.Process(self.process.pid).children()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def said(self) -> str:
        return self.log.read_text("utf-8")

    def end(self, how: signal.Signals = signal.SIGTERM, wait_s: float = 40.0) -> int:
        if self.process.poll() is None:
            self.process.send_signal(how)
        return self.process.wait(wait_s)


@contextmanager
def serving(folder: Path, store_url: str, *options: str, processes: int = 2, **settings: object) -> Iterator[Served]:
    """`curtsy serve` on a free port, until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "serve.log"
    environment = os.environ | {"CURTSY_STORE_URL": store_url, "CURTSY_LOG_LEVEL": "info", "CURTSY_LOG_FORMAT": "json"}
    environment |= {f"CURTSY_{name.upper()}": str(value) for name, value in settings.items()}
    words = ["serve", "--port", "0", "--processes", str(processes), "--data-dir", str(folder / "data"), *options]
    with log.open("wb") as err:
        process = subprocess.Popen([sys.executable, "-m", "curtsy", *words], stderr=err, env=environment, cwd=folder)
    served = Served(process, _port(process, log), log)
    try:
        yield served
    finally:
        served.end()


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    def found() -> int | None:
        match = re.search(r"Serving on http://[^:]+:(\d+)/", log.read_text("utf-8"))
        assert match or process.poll() is None, log.read_text("utf-8")
        return int(match[1]) if match else None

    return wait_for(found)


def head_of(answer: IO[bytes]) -> tuple[int, dict[str, str]]:
    """Status and headers of an answer on a plain connection."""
    status = int(answer.readline().split()[1])
    headers: dict[str, str] = {}
    while line := answer.readline().strip():
        name, _, value = line.decode().partition(":")
        headers[name.lower()] = value.strip()
    return status, headers
