"""`curtsy up` as the control plane of the tests."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from curtsy.client.server import Server
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.tinyweb import TinyWeb

#: what tasks that take turns must know too
SHARED = {"latency_factor": 0, "delay_s": 0.4}


def with_parent() -> None:
    """In a new process: it is told to end when its parent is gone, however that went."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


class Plane:
    """One folder with everything in it; `close` ends all."""

    def __init__(self, path: Path, web: TinyWeb) -> None:
        path.mkdir(parents=True)
        self.path, self.data = path, path / "data"
        config = path / "curtsy.toml"
        given: dict[str, Any] = {"resolve": [web.resolve_rule], "max_attempts": 1, "log_format": "json", **SHARED}
        config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in given.items()))
        words = ["up", "--port", "0", "--workers", "1", "--processes", "1", "--json"]
        words += ["--config", str(config), "--data-dir", str(self.data)]
        with (path / "up.log").open("wb") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "curtsy", *words], cwd=path, stdout=subprocess.PIPE, stderr=said,
                start_new_session=True, preexec_fn=with_parent,  # noqa: PLW1509
            )  # fmt: skip
        self._url: str | None = None

    @property
    def url(self) -> str:
        if self._url is None:
            self._url = str(json.loads(self._document())["api"])
        return self._url

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def _document(self) -> str:
        assert self.process.stdout is not None
        lines: list[str] = []
        while not lines or lines[-1] != "}\n":
            line = self.process.stdout.readline().decode()
            assert line, f"it ended with {self.process.wait()}: {(self.path / 'up.log').read_text()}"
            lines.append(line)
        return "".join(lines)

    @property
    def server(self) -> Server:
        return Server(self.url)

    @property
    def connection(self) -> dict[str, Any]:
        """As Airflow is told."""
        return {"host": self.url, "extra": {"data_dir": str(self.data), "settings": SHARED}}

    def settings(self) -> Settings:
        return load(None, None, data_dir=self.data, **SHARED)

    def crawls(self, host: str) -> list[str]:
        """Those that have pages of this host, whatever became of them."""
        found = [one["id"] for one in self.server.each(self.server.list_crawls)]
        return [id for id in found if any(self.server.each(self.server.list_pages, id, host=host))]

    def close(self) -> None:
        if self.process.poll() is None:
            for _ in range(2):  # told twice, it does not wait for requests under way
                os.kill(self.process.pid, signal.SIGINT)
                try:
                    self.process.wait(1)
                    break
                except subprocess.TimeoutExpired:
                    continue
            else:
                self.process.kill()
        self.process.communicate()
