"""The two ends that people hold: every call of the API, and what takes several."""

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

#: states from which nothing comes any more
ENDED = ("finished", "cancelled", "deleting")
#: how soon a crawl that is waited for is looked at again, at first and later
_FIRST_S = 0.1
_POLL_S = 2.0
#: an answer is waited for at least so long, however little time is left
_ANSWER_S = 1.0


class _Waiting:
    """When a crawl that is waited for is looked at again, and when that has lasted long enough."""

    def __init__(self, timeout_s: float | None) -> None:
        self._timeout_s = timeout_s
        self._end = math.inf if timeout_s is None else time.monotonic() + timeout_s
        self._next_s = _FIRST_S

    def asking(self, server: AskedT) -> AskedT:
        """One that does not wait for an answer much longer than there is time."""
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
    """A control plane: `server.submit(seeds=[...])`, `server.crawl(id)`, ..."""

    def submit_many(self, seeds: Iterable[str], *, idempotency_key: str | None = None, **wishes: Any) -> str:
        """A crawl with very many seeds, sent as NDJSON; the id. An upload that breaks off goes on where it broke."""
        given = {name: value for name, value in wishes.items() if value is not None}
        return self._client.submit(given, seeds, idempotency_key)

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
        """Looks at a crawl until it has ended, every 2 s at last. Raises `Unavailable` if it has not by `timeout_s`."""
        waiting = _Waiting(timeout_s)
        while True:
            status = waiting.asking(self).crawl(id)
            if status["state"] in ENDED:
                return status
            time.sleep(waiting.pause_s(status))


class AsyncServer(AsyncCalls):
    """The same, to be awaited."""

    async def submit_many(self, seeds: Iterable[str], *, idempotency_key: str | None = None, **wishes: Any) -> str:
        """As of `Server`."""
        given = {name: value for name, value in wishes.items() if value is not None}
        return await asyncio.to_thread(self._client.submit, given, seeds, idempotency_key)

    async def each(self, call: Callable[..., Awaitable[Any]], *args: str, **query: Any) -> AsyncIterator[Any]:
        """As of `Server`: `async for page in server.each(server.list_pages, id)`."""
        cursor: str | None = None
        while True:
            page = await call(*args, **query, cursor=cursor)
            for item in page["items"]:
                yield item
            cursor = page["next"]
            if cursor is None:
                return

    async def wait(self, id: str, timeout_s: float | None = None) -> types.CrawlStatus:
        """As of `Server`."""
        waiting = _Waiting(timeout_s)
        while True:
            status = await waiting.asking(self).crawl(id)
            if status["state"] in ENDED:
                return status
            await asyncio.sleep(waiting.pause_s(status))
