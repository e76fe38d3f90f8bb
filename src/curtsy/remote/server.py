"""The two ends that people hold: every call of the API, and what takes several."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from typing import Any

from curtsy.errors import Unavailable
from curtsy.remote import types
from curtsy.remote.calls import AsyncCalls, Calls

#: states from which nothing comes any more
ENDED = ("finished", "cancelled", "deleting")
#: where events cannot be had, the server is asked this often
_POLL_S = 2.0


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
        """Waits until a crawl has ended, by its events; asks now and then where those cannot be had."""
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            status = self.crawl(id)
            if status["state"] in ENDED:
                return status
            if end is not None and time.monotonic() > end:
                raise Unavailable(f"Crawl {status['id']} is still {status['state']} after {timeout_s:g} s.")
            self._follow(status["id"], end)

    def _follow(self, id: str, end: float | None) -> None:
        try:
            for event in self.events(id):
                late = end is not None and time.monotonic() > end
                if late or event.data.get("state") in ENDED:
                    return
        except Unavailable:
            time.sleep(_POLL_S if end is None else max(0.0, min(_POLL_S, end - time.monotonic())))


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
        end = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            status = await self.crawl(id)
            if status["state"] in ENDED:
                return status
            if end is not None and time.monotonic() > end:
                raise Unavailable(f"Crawl {status['id']} is still {status['state']} after {timeout_s:g} s.")
            await asyncio.sleep(_POLL_S if end is None else max(0.0, min(_POLL_S, end - time.monotonic())))
