"""A small fleet for tests: workers and Beat as real processes over one folder, crawls submitted from here."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import psutil
from crawl_folder import CrawlFolder
from waiting import until

from curtsy.control import submit
from curtsy.control.audit import Verdict
from curtsy.control.stored_audit import judged
from curtsy.core.model import Counts, Crawl, CrawlState
from curtsy.fleet.coordination import Fleet
from curtsy.frontier.fleet_commands import Plain
from curtsy.services import backends
from curtsy.services.backends import Services
from curtsy.services.valkey import EmbeddedValkey
from curtsy.store import crawls
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb

T = TypeVar("T")
ENDED = (CrawlState.FINISHED, CrawlState.CANCELLED)


class FleetFolder(CrawlFolder):
    """The folder's private Valkey is broker and frontier; SQLite unless `store_url` is given. `close` ends all."""

    def __init__(self, path: Path, web: TinyWeb | None = None, **changes: Any) -> None:
        super().__init__(path, web, **{"log_level": "info", "log_format": "json", **changes})
        self.parts: dict[str, subprocess.Popen[bytes]] = {}
        self._embedded = None if "frontier_url" in changes else EmbeddedValkey.enter(self.data)
        self._store: Store | None = None

    # Parts

    def start_part(self, name: str, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        """Any module as a process of the fleet; what it says goes to <name>.log."""
        given = {"CURTSY_CONFIG": str(self.config), "CURTSY_DATA_DIR": str(self.data), **variables}
        return self.start_program(name, sys.executable, "-m", *words, **given)

    def start_program(self, name: str, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        with (self.path / f"{name}.log").open("ab") as said:
            process = subprocess.Popen(
                words, cwd=self.path, env={**os.environ, **variables}, stdout=said, stderr=said, start_new_session=True
            )
        self.parts[name] = process
        return process

    def worker(self, name: str = "w1", queues: str = "fetch.high,fetch.batch,fetch.slow,inference,default",
               seats: int = 2, **variables: str) -> subprocess.Popen[bytes]:  # fmt: skip
        words = ("worker", "-n", f"{name}@test", "-Q", queues, "-c", str(seats))
        started = self.start_part(name, "celery", "-A", "curtsy.celery_app", *words, **variables)
        until(lambda: self.has_seats(name) or self._died(name))
        return started

    def beat(self, name: str = "beat", **variables: str) -> subprocess.Popen[bytes]:
        return self.start_part(name, "celery", "-A", "curtsy.celery_app", "beat", **variables)

    def has_seats(self, name: str) -> bool:
        return f"{name}@test" in {worker.name for worker in self.ask(lambda fleet: fleet.workers())}

    def _died(self, name: str) -> bool:
        assert self.parts[name].poll() is None, self.said(name)
        return False

    def said(self, name: str) -> str:
        return (self.path / f"{name}.log").read_text("utf-8", "replace")

    def children(self, name: str) -> list[int]:
        return [child.pid for child in psutil.Process(self.parts[name].pid).children()]

    def stop(self, name: str, timeout_s: float = 60) -> int:
        """Gently, as a supervisor would; its exit code."""
        process = self.parts.pop(name)
        process.send_signal(signal.SIGTERM)
        return process.wait(timeout_s)

    def kill(self, name: str) -> None:
        """The part and all its children, without a word."""
        process = self.parts.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        for name in list(self.parts):
            try:
                self.kill(name)
            except ProcessLookupError:
                pass
        self.forget_store()
        self.let_go()
        super().close()

    def forget_store(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def let_go(self) -> None:
        """This process does not keep the private server running any more."""
        if self._embedded is not None:
            self._embedded.abandon()

    # Work

    def submit(self, seeds: Iterable[str], delay_s: float = 0.05, **fields: Any) -> Crawl:
        crawl = Crawl(
            id=str(uuid4()), request_id=fields.pop("request_id", "test"), created_ms=int(time.time() * 1000),
            delay_s=delay_s, **fields,
        )  # fmt: skip
        return self.do(lambda parts: submit.submit(parts, crawl, seeds))

    def do(self, work: Callable[[Services], Awaitable[T]]) -> T:
        """With the parts that any process of the fleet has."""

        async def run() -> T:
            built = backends.build(self.settings())
            try:
                await built.open()
                return await work(built)
            finally:
                await built.close()

        return asyncio.run(run())

    def ask(self, question: Callable[[Fleet], Awaitable[T]]) -> T:
        async def run() -> T:
            fleet = Fleet(self.frontier_url, self.settings())
            try:
                return await question(fleet)
            finally:
                await fleet.close()

        return asyncio.run(run())

    def broker(self, *words: str | int | float) -> Any:
        """A plain command on the database of the embedded broker."""
        return self.command(*words, url=self.frontier_url.partition("?")[0])

    def command(self, *words: str | int | float, url: str | None = None) -> Any:
        """A plain command on the frontier's database."""

        async def run() -> Any:
            plain = Plain(url or self.frontier_url)
            try:
                return await plain.command(*words)
            finally:
                await plain.close()

        return asyncio.run(run())

    @property
    def frontier_url(self) -> str:
        return self._embedded.url if self._embedded is not None else str(self.settings().frontier_url)

    # What became of it

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = Store.open(self.settings().effective_store_url)
        return self._store

    def crawl_now(self, crawl: Crawl) -> Crawl:
        with self.store.read() as tx:
            return crawls.by_n(tx, crawl.n)

    def counts_of(self, crawl: Crawl) -> Counts:
        with self.store.read() as tx:
            return crawls.counts(tx, crawl.n)

    def until_ended(self, crawl: Crawl, timeout_s: float = 90) -> Counts:
        """Waits for the crawl's end; a part that died meanwhile is told with its last words."""

        def ended() -> bool:
            for name, process in self.parts.items():
                assert process.poll() is None, f"{name} ended with {process.returncode}: {self.said(name)[-3000:]}"
            return self.crawl_now(crawl).state in ENDED

        until(ended, timeout_s, every_s=0.05)
        return self.counts_of(crawl)

    def until_pages(self, crawl: Crawl, n: int, timeout_s: float = 60) -> None:
        until(lambda: self.counts_of(crawl).pages >= n, timeout_s)

    def metrics(self) -> dict[str, float]:
        return self.ask(lambda fleet: fleet.metrics())

    def seat_time(self) -> tuple[float, float]:
        """(seconds of shifts, seconds of them spent waiting), of all lanes."""
        found = self.metrics()
        return tuple(  # type: ignore[return-value]
            sum(value for key, value in found.items() if key.startswith(f"curtsy_shift_{what}seconds_total"))
            for what in ("", "waiting_")
        )

    def verdict(self) -> Verdict:
        return judged(self.store, "curtsy")
