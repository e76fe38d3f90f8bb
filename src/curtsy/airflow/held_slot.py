"""A host slot for a task: the process that sends takes it, and releases it when the task's work is done.

Tasks are synchronous, and the frontier is asynchronous: it runs on a separate thread.
"""

from __future__ import annotations

import asyncio
import signal
import threading
import warnings
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, Self, TypeVar

from curtsy.core.clock import boot
from curtsy.core.loop_thread import LoopThread
from curtsy.core.settings import Settings
from curtsy.crawl.external_slots import ExternalSlot, ExternalSlots, Report, SlotExpired, open_external_slots

T = TypeVar("T")
#: time limit for opening the store and the frontier, and for releasing a slot
_PATIENCE_S = 60.0
#: a slot with less time left is not used
_WORTH_S = 1.0


class HeldSlot:
    """A host slot that a task holds."""

    def __init__(self, slot: ExternalSlot) -> None:
        self._slot = slot
        self.started = boot()
        self._url, self._status, self._headers = "", 0, ()  # type: tuple[str, int, tuple[tuple[str, str], ...]]

    @property
    def host(self) -> str:
        return self._slot.host

    @property
    def left_s(self) -> float:
        """Seconds until the slot expires: use it as the timeout of the request."""
        return self._slot.left_s

    def check(self) -> None:
        """Raises SlotExpired if the slot has expired. Call it before each request."""
        self._slot.check()

    def report_response(
        self, status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), url: str = ""
    ) -> None:
        """Report the response: a 429 or 503 with Retry-After then applies to all clients of the frontier."""
        lines = headers.items() if isinstance(headers, Mapping) else headers
        self._status, self._url = status, url
        self._headers = tuple((str(name).lower(), str(value)) for name, value in lines)

    def told(self, status: int, headers: Mapping[str, str] | Iterable[tuple[str, str]] = (), url: str = "") -> None:
        """Deprecated name of `report_response`."""
        warnings.warn("HeldSlot.told is now called report_response", DeprecationWarning, stacklevel=2)
        self.report_response(status, headers, url)

    def report(self) -> Report:
        return Report(
            slot=self._slot, started=self.started, ended=boot(), url=self._url, status=self._status,
            headers=self._headers,
        )  # fmt: skip


class SlotThread:
    """Takes and releases slots for a task. `with SlotThread(settings) as thread: held = thread.take(host)`"""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._thread = LoopThread("curtsy-slots")
        self._opened: Future[ExternalSlots] = Future()
        self._leave: asyncio.Event | None = None
        self._keeping: Future[None] | None = None

    def __enter__(self) -> Self:
        self._keeping = self._thread.submit(self._keep())
        try:
            self._opened.result(_PATIENCE_S)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._leave is not None and self._keeping is not None:
            self._thread.call(self._leave.set)
            self._keeping.result(_PATIENCE_S)
        self._thread.stop(_PATIENCE_S)

    async def _keep(self) -> None:
        self._leave = asyncio.Event()
        try:
            async with open_external_slots(self.settings) as slots:
                self._opened.set_result(slots)
                await self._leave.wait()
        except BaseException as error:
            if self._opened.done():
                raise
            self._opened.set_exception(error)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._thread.wait(work)

    def take(self, host: str, delay_s: float | None = None, within_s: float | None = None) -> HeldSlot | None:
        """A slot of the host; None if none is free within that time. With 0 it tries once and does not wait."""
        slots = self._opened.result()

        async def taken() -> ExternalSlot | None:
            slot, _ = await slots.try_take(host, delay_s)
            if slot is not None or within_s == 0:
                return slot
            try:
                async with asyncio.timeout(within_s):
                    return await slots.take(host, delay_s)
            except TimeoutError:
                return None

        while (slot := self._do(taken())) is not None and slot.left_s < _WORTH_S:
            self.give_back(HeldSlot(slot))  # this process was suspended meanwhile
        return None if slot is None else HeldSlot(slot)

    def give_back(self, held: HeldSlot) -> None:
        self._do(self._opened.result().give_back([held.report()]))

    @contextmanager
    def holding(self, held: HeldSlot) -> Iterator[HeldSlot]:
        """Releases the slot at the end. Code that still runs when the slot expires is aborted with SlotExpired."""
        try:
            with self._alarm(held):
                yield held
        finally:
            self.give_back(held)

    @contextmanager
    def _alarm(self, held: HeldSlot) -> Iterator[None]:
        """Only the main thread can be interrupted; other threads must call `check()`."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        main = threading.main_thread().ident or 0

        def check(*_: object) -> None:
            held.check()

        before = signal.signal(signal.SIGVTALRM, check)
        cancel = self._later(held.left_s, lambda: signal.pthread_kill(main, signal.SIGVTALRM))
        try:
            yield
        finally:
            cancel()
            signal.signal(signal.SIGVTALRM, before)

    def _later(self, seconds: float, call: Callable[[], object]) -> Callable[[], None]:
        """Schedule a call on the loop; the returned function cancels it and waits until it is cancelled."""

        async def schedule() -> asyncio.TimerHandle:
            return asyncio.get_running_loop().call_later(max(0.0, seconds) + 0.005, call)

        handle = self._do(schedule())

        async def cancel() -> None:
            handle.cancel()

        return lambda: self._do(cancel())


__all__ = ["HeldSlot", "SlotExpired", "SlotThread"]
