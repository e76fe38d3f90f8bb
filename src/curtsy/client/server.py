"""The clients for scripts: every call of the API, and methods that combine several calls."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from copy import copy
from typing import Any, TypeVar

from curtsy.client import types
from curtsy.client.calls import AsyncCalls, Calls
from curtsy.client.transport import Asked
from curtsy.core.errors import Unavailable

AskedT = TypeVar("AskedT", bound=Asked)

#: states of a crawl that has ended
ENDED = ("finished", "cancelled", "deleting")
#: seconds between two requests while waiting for a crawl, at first and later
_FIRST_S = 0.1
_POLL_S = 2.0
#: minimum timeout of a request, however little time is left
_ANSWER_S = 1.0


class _Waiting:
    """The times of requests while waiting for a crawl, and the end of the wait."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._next_s = _FIRST_S

    def asking(self, server: AskedT) -> AskedT:
        """A client whose timeout fits the remaining time."""
        made = copy(server)
        made._client = server._client.within(max(_ANSWER_S, self._end - time.monotonic()))
        return made

    def pause_s(self, status: types.CrawlStatus) -> float:
        left_s = self._end - time.monotonic()
        if left_s <= 0:
            raise Unavailable(f"Crawl {status['id']} is still {status['state']} after {self._timeout_s:g} s.")
        pause_s, self._next_s = min(left_s, self._next_s), min(_POLL_S, 2 * self._next_s)
        return pause_s


class Server(Calls):
    """A Curtsy API: `server.submit(seeds=[...])`, `server.crawl(id)`, ..."""

    def submit_many(self, seeds: Iterable[str], *, idempotency_key: str | None = None, **options: Any) -> str:
        """Submit a crawl with very many seeds as NDJSON; its id. An interrupted upload continues where it stopped."""
        sent = {name: value for name, value in options.items() if value is not None}
        return self._client.submit(sent, seeds, idempotency_key)

    def each(self, call: Callable[..., Any], *args: str, **query: Any) -> Iterator[Any]:
        """Every item of a list, page by page: `server.each(server.list_pages, id, host="example.com")`."""
        cursor: str | None = None
        while True:
            page = call(*args, **query, cursor=cursor)
            yield from page["items"]
            cursor = page["next"]
            if cursor is None:
                return

    def wait(self, id: str, timeout_s: float | None = None) -> types.CrawlStatus:
        """Wait until a crawl has ended. Raises `Unavailable` after `timeout_s`."""
        waiting = _Waiting(timeout_s)
        while True:
            status = waiting.asking(self).crawl(id)
            if status["state"] in ENDED:
                return status
            time.sleep(waiting.pause_s(status))


class AsyncServer(AsyncCalls):
    """The same with async methods."""

    async def submit_many(self, seeds: Iterable[str], *, idempotency_key: str | None = None, **options: Any) -> str:
        """See `Server`."""
        sent = {name: value for name, value in options.items() if value is not None}
        return await asyncio.to_thread(self._client.submit, sent, seeds, idempotency_key)

    async def each(self, call: Callable[..., Awaitable[Any]], *args: str, **query: Any) -> AsyncIterator[Any]:
        """See `Server`: `async for page in server.each(server.list_pages, id)`."""
        cursor: str | None = None
        while True:
            page = await call(*args, **query, cursor=cursor)
            for item in page["items"]:
                yield item
            cursor = page["next"]
            if cursor is None:
                return

    async def wait(self, id: str, timeout_s: float | None = None) -> types.CrawlStatus:
        """See `Server`."""
        waiting = _Waiting(timeout_s)
        while True:
            status = await waiting.asking(self).crawl(id)
            if status["state"] in ENDED:
                return status
            await asyncio.sleep(waiting.pause_s(status))
