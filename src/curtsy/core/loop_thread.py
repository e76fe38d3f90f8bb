"""An event loop in a daemon thread, for synchronous callers of asyncio code."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from curtsy.core.errors import Unavailable

T = TypeVar("T")
Main = Callable[[], Coroutine[Any, Any, None]]


class LoopThread:
    """Runs `main` on its own loop, or waits for work until `stop`. It starts with `start` or the first `submit`.

    Tasks that still run when `main` ends or `stop` is called are canceled. `on_end` gets the error, if any.
    """

    def __init__(
        self,
        name: str,
        main: Main | None = None,
        *,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
        on_end: Callable[[BaseException | None], None] | None = None,
    ) -> None:
        self._main, self._loop_factory, self._on_end = main, loop_factory, on_end
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._started = self._stopped = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._live, name=name, daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        with self._lock:
            if not self._started:
                self._started = True
                self._thread.start()
        self._ready.wait()

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> Future[T]:
        """Schedules a coroutine from any thread."""
        if not self._stopped:
            self.start()
        with self._lock:
            if self._stopped or self._loop is None:
                coroutine.close()
                raise Unavailable("The process is ending.")
            return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def wait(self, coroutine: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """The result of a coroutine; after `timeout_s` it is canceled and TimeoutError is raised."""
        future = self.submit(coroutine)
        try:
            return future.result(timeout_s)
        except TimeoutError:
            future.cancel()
            raise

    def call(self, function: Callable[[], object]) -> None:
        """Calls a function on the loop, if it runs."""
        with self._lock:
            if self._loop is not None:
                self._loop.call_soon_threadsafe(function)

    def stop(self, timeout_s: float) -> None:
        """Ends a thread without `main`; waits for the thread in any case."""
        with self._lock:
            self._stopped = True
            if self._loop is not None and self._stopping is not None:
                self._loop.call_soon_threadsafe(self._stopping.set)
        if self._started:
            self._thread.join(timeout_s)

    def _live(self) -> None:
        error: BaseException | None = None
        try:
            with asyncio.Runner(loop_factory=self._loop_factory) as runner:
                try:
                    runner.run(self._run())
                finally:
                    with self._lock:
                        self._loop, self._stopped = None, True
        except BaseException as raised:  # raised again where the result is awaited
            error = raised
        self._ready.set()
        if self._on_end is not None:
            self._on_end(error)

    async def _run(self) -> None:
        self._stopping = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._ready.set()
        if self._main is not None:
            await self._main()
        else:
            await self._stopping.wait()
