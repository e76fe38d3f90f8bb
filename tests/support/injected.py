"""Errors of the drivers, raised once at every place where a crawl calls a part."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy.exc import OperationalError

from curtsy.frontier.shard import Shard
from curtsy.store.engine import Store
from curtsy.store.segments import Segments

_OWN = ("contextlib.py", "injected.py", "threads.py")


class Injector:
    """Where it is armed, the first call at each site fails. Sites are named by script, command or function."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch = monkeypatch
        self._lock = threading.Lock()
        self.armed = False
        self.hit: set[str] = set()

    def _fails(self, site: str) -> bool:
        with self._lock:
            if not self.armed or site in self.hit:
                return False
            self.hit.add(site)
            return True

    def frontier(self, error: Callable[[], Exception]) -> None:
        """Scripts and plain commands of the frontier."""
        run, command = Shard._eval, Shard.command

        async def eval_(shard: Shard, redis: Any, name: str, args: Any) -> list[Any]:
            if self._fails(f"script {name}"):
                raise error()
            return await run(shard, redis, name, args)

        async def command_(shard: Shard, *words: Any) -> Any:
            if self._fails(f"command {words[0]}"):
                async with shard._link.exchange():
                    raise error()
            return await command(shard, *words)

        self._patch.setattr(Shard, "_eval", eval_)
        self._patch.setattr(Shard, "command", command_)

    def store(self, error: Callable[[], BaseException]) -> None:
        """Transactions that read or write."""
        injector = self
        made = Store.__init__

        class Engine:
            def __init__(self, engine: Any) -> None:
                self._engine = engine

            def __getattr__(self, name: str) -> Any:
                return getattr(self._engine, name)

            def connect(self) -> Any:
                if injector._fails(_function()):
                    raise OperationalError("", {}, error())
                return self._engine.connect()

        def init(store: Store, engine: Any, folder: Any) -> None:
            made(store, Engine(engine), folder)  # type: ignore[arg-type]

        self._patch.setattr(Store, "__init__", init)

    def segments(self, error: Callable[[], OSError]) -> None:
        write = Segments._write

        def write_(segments: Segments, file: int, data: bytes) -> None:
            if self._fails("segment"):
                raise error()
            write(segments, file, data)

        self._patch.setattr(Segments, "_write", write_)


def _function() -> str:
    """The function that runs in the transaction, or the one that opened it."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.endswith("store/engine.py"):
            if "fn" in frame.f_locals:
                fn = frame.f_locals["fn"]
                return f"transaction {getattr(fn, '__qualname__', type(fn).__name__)}"
        elif not name.endswith(_OWN):
            return f"transaction of {frame.f_code.co_qualname}"
        frame = frame.f_back
    return "transaction"


def every_subclass(root: type[BaseException]) -> list[type[Any]]:
    found: dict[type[Any], None] = {root: None}
    for one in root.__subclasses__():
        found.update(dict.fromkeys(every_subclass(one)))
    return list(found)
