"""A command whose standard output is a terminal of 80 columns."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path


class Run:
    """A process in a group of its own; `out` and `err` are what it has printed so far."""

    def __init__(self, words: Sequence[str], folder: Path, settings: Mapping[str, str]) -> None:
        self._master, slave = pty.openpty()
        self._said: list[bytes] = []
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (closed by `wait`)
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.process = subprocess.Popen(
            words, cwd=folder, env={**os.environ, "PATH": path, "COLUMNS": "80", "TERM": "dumb", **settings},
            stdin=subprocess.DEVNULL, stdout=slave, stderr=self._errors, start_new_session=True,
        )  # fmt: skip
        os.close(slave)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                block = os.read(self._master, 65536)
            except OSError:  # the other end is closed
                return
            if not block:
                return
            self._said.append(block)

    def wait(self, within_s: float | None = None) -> int:
        """Its exit code, once it has ended."""
        code = self.process.wait(within_s)
        self._reader.join()
        os.close(self._master)
        self._errors.seek(0)
        self.err = self._errors.read().decode()
        self._errors.close()
        return code

    def signal(self, number: int) -> None:
        os.killpg(self.process.pid, number)

    def end(self) -> None:
        """Kill what is left of it."""
        if self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.wait()

    @property
    def out(self) -> str:
        return "\n".join(line.rstrip() for line in b"".join(self._said).decode(errors="replace").splitlines())
