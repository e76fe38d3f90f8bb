"""A data folder with crawls in it, for tests: commands as processes, crawls in this process, and what they left."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import closing, redirect_stdout
from pathlib import Path
from typing import Any
from unittest.mock import patch
from uuid import uuid4

import pytest
import uvloop

from curtsy.cli import main
from curtsy.control import submit
from curtsy.core import settings_loading
from curtsy.core.model import Counts, Crawl
from curtsy.core.settings import Settings
from curtsy.crawl import run as crawling
from curtsy.services import backends
from curtsy.services.valkey import EmbeddedValkey
from curtsy.store import crawls
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb

#: everything short: a killed process holds a host for seconds
SHORT: dict[str, Any] = {
    "fetch_timeout_s": 2,
    "connect_timeout_s": 1,
    "start_slack_s": 1,
    "slot_margin_s": 0.5,
    "slot_s": 4,
    "url_lease_s": 4,
    "heartbeat_s": 1,
    "host_patience_s": 3,
    "backoff_s": 0.2,
    "backoff_cap_s": 1,
    "latency_factor": 0,
}


class CrawlFolder:
    """One test's folder. `close` ends whatever a test left running in it."""

    def __init__(self, path: Path, web: TinyWeb | None = None, **changes: Any) -> None:
        self.path = path
        self.data = path / ".curtsy"
        given = {**SHORT, **({"resolve": [web.resolve_rule]} if web is not None else {}), **changes}
        self.config = path / "test.toml"
        self.config.write_text("".join(f"{name} = {_toml(value)}\n" for name, value in given.items()))
        self._started: list[subprocess.Popen[str]] = []

    # Commands

    def start(self, *words: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "curtsy.cli", *words, "--config", str(self.config)]
        process = subprocess.Popen(
            command, cwd=self.path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._started.append(process)
        return process

    def run(self, *words: str, code: int = 0) -> Any:
        """The JSON document of a command, once it has ended with that code. Those that only look run in here."""
        if words[0] == "crawl":
            return finish(self.start(*words, "--json"), code)
        given = ["curtsy", *words, "--config", str(self.config), "--data-dir", str(self.data), "--json"]
        said = io.StringIO()
        with patch.object(sys, "argv", given), redirect_stdout(said), pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == code, said.getvalue()
        return json.loads(said.getvalue())

    def close(self) -> None:
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if (left := EmbeddedValkey.running(self.data)) and (pid := left.pid):
            os.kill(pid, signal.SIGKILL)

    # Crawls in this process

    def settings(self, **overrides: Any) -> Settings:
        return settings_loading.load(self.config, data_dir=self.data, **overrides)

    def crawl(self, *seeds: str, delay_s: float = 0.02, **fields: Any) -> Counts:
        """Crawl to the end, in this process."""
        crawl = Crawl(id=str(uuid4()), request_id="test", created_ms=int(time.time() * 1000), delay_s=delay_s, **fields)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._crawl(crawl, seeds))

    def resume(self, which: str = "last") -> Counts:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(self._crawl(which, ()))

    async def _crawl(self, what: Crawl | str, seeds: Iterable[str]) -> Counts:
        built = backends.build(self.settings())
        try:
            await built.open()
            if isinstance(what, str):
                crawl = await submit.resume_crawl(built, what)
            else:
                crawl = await submit.submit(built, what, seeds)
            # More than a minute: what a failed step left out is found by the sweep, once a minute.
            return await asyncio.wait_for(crawling.run(built, crawl.n), 150)
        finally:
            await built.close()

    # What they left

    def rows(self, query: str, *values: Any) -> list[Any]:
        with closing(sqlite3.connect(f"file:{self.data / 'curtsy.sqlite'}?mode=ro", uri=True)) as db:
            db.execute("PRAGMA busy_timeout = 5000")
            return db.execute(query, values).fetchall()

    def ends(self, crawl: int | None = None) -> dict[str, str]:
        """URL -> "state" or "state reason", open URLs of dead hosts by their host's reason; of the newest crawl."""
        if crawl is None:
            crawl = self.rows("SELECT max(n) FROM crawls")[0][0]
        dead = dict(self.rows("SELECT host, reason FROM queues WHERE state = 'dead' AND crawl = ?", crawl))
        found = {}
        for url, host, state, reason in self.rows("SELECT url, host, state, reason FROM urls WHERE crawl = ?", crawl):
            state, reason = ("failed", dead[host]) if state == "open" and host in dead else (state, reason)
            found[url] = f"{state} {reason}".strip()
        return found

    def pages(self, crawl: int | None = None) -> set[str]:
        if crawl is None:
            crawl = self.rows("SELECT max(n) FROM crawls")[0][0]
        return {url for (url,) in self.rows("SELECT url FROM pages WHERE crawl = ?", crawl)}

    def counts(self, which: str = "last") -> Counts:
        with Store.open(self.settings().effective_store_url) as store, store.read() as tx:
            return crawls.counts(tx, crawls.get(tx, which).n)

    def has_pages(self, n: int) -> bool:
        """Whether some crawl here has so many pages by now; also before the store is there."""
        try:
            return int(self.rows("SELECT count(*) FROM pages")[0][0]) >= n
        except sqlite3.OperationalError:
            return False


def finish(process: subprocess.Popen[str], code: int = 0, timeout_s: float = 240) -> Any:
    out, err = process.communicate(timeout=timeout_s)
    assert process.returncode == code, f"exit {process.returncode}: {err}\n{out}"
    return json.loads(out)


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value)
