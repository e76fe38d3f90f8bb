"""A host's turn in the hands of a task: taken by the process that sends, given back when the task's work is done.

A task is synchronous; what keeps a turn is not. It runs on a thread of its own, beside the task.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from curtsy.core.clock import boot
from curtsy.core.loop_thread import LoopThread
from curtsy.core.settings import Settings
from curtsy.crawl.external_slots import Report, Turn, TurnOver, Turns, open_turns

T = TypeVar("T")
#: opening store and frontier, and giving a turn back, take no longer than this unless a part is away
_PATIENCE_S = 60.0
#: with less left of a turn, nothing is begun on it
_WORTH_S = 1.0


class HeldTurn:
    """A host's slot while a task holds it."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.started = boot()
        self._url, self._status, self._headers = "", 0, ()  # type: tuple[str, int, tuple[tuple[str, str], ...]]

    @property
    def host(self) -> str:
        return self._turn.host

    @property
    def left_s(self) -> float:
        """Seconds in which something may still be sent: a good timeout for the request."""
        return self._turn.left_s

    def check(self) -> None:
        """Raises TurnOver if the turn has expired. Call it before each request."""
        self._turn.check()

    def told(self, status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), url: str = "") -> None:
        """What the host answered: a 429 or 503 with its Retry-After then holds for everybody."""
        lines = headers.items() if isinstance(headers, Mapping) else headers
        self._status, self._url = status, url
        self._headers = tuple((str(name).lower(), str(value)) for name, value in lines)

    def report(self) -> Report:
        return Report(
            turn=self._turn, started=self.started, ended=boot(), url=self._url, status=self._status,
            headers=self._headers,
        )  # fmt: skip


class Desk:
    """Where a task takes turns. `with Desk(settings) as desk, desk.turn(host) as turn: ...`"""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._thread = LoopThread("curtsy-slots")
        self._opened: Future[Turns] = Future()
        self._leave: asyncio.Event | None = None
        self._keeping: Future[None] | None = None

    def __enter__(self) -> Self:
        self._keeping = self._thread.submit(self._keep())
        try:
            self._opened.result(_PATIENCE_S)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._leave is not None and self._keeping is not None:
            self._thread.call(self._leave.set)
            self._keeping.result(_PATIENCE_S)
        self._thread.stop(_PATIENCE_S)

    async def _keep(self) -> None:
        self._leave = asyncio.Event()
        try:
            async with open_turns(self.settings) as turns:
                self._opened.set_result(turns)
                await self._leave.wait()
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.wait(work)

    def take(self, host: str, delay_s: float | None = None, within_s: float | None = None) -> HeldTurn | None:
        """The host's turn; None if it could not be had within that time."""
        turns = self._opened.result()

        async def taken() -> Turn | None:
            try:
                async with asyncio.timeout(within_s):
                    return await turns.take(host, delay_s)
            except TimeoutError:
                return None

        while (turn := self._do(taken())) is not None and turn.left_s < _WORTH_S:
            self.give_back(HeldTurn(turn))  # this process stood still meanwhile
        return None if turn is None else HeldTurn(turn)

    def give_back(self, held: HeldTurn) -> None:
        self._do(self._opened.result().give_back([held.report()]))

    @contextmanager
    def holding(self, held: HeldTurn) -> Iterator[HeldTurn]:
        """Gives the turn back with the delay. What still runs when it expires is broken off with TurnOver."""
        try:
            with self._bell(held):
                yield held
        finally:
            self.give_back(held)

    @contextmanager
    def _bell(self, held: HeldTurn) -> Iterator[None]:
        """Only a process's main thread can be broken off: elsewhere `check()` must do."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        main = threading.main_thread().ident or 0

        def ring(*_: object) -> None:
            held.check()

        before = signal.signal(signal.SIGVTALRM, ring)
        bell = self._later(held.left_s, lambda: signal.pthread_kill(main, signal.SIGVTALRM))
        try:
            yield
        finally:
            bell()
            signal.signal(signal.SIGVTALRM, before)

    def _later(self, seconds: float, call: Callable[[], object]) -> Callable[[], None]:
        """Calls it in the loop's thread by then; what is returned calls that off, and has when it returns."""

        async def set_it() -> asyncio.TimerHandle:
            return asyncio.get_running_loop().call_later(max(0.0, seconds) + 0.005, call)

        handle = self._do(set_it())

        async def call_off() -> None:
            handle.cancel()

        return lambda: self._do(call_off())


__all__ = ["Desk", "HeldTurn", "TurnOver"]
