"""A server that says exactly the bytes it is told to, and remembers what it saw."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

from curtsy.core.outcome import Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.http import FetchJob, HttpFetcher, boot_clock

Handler = Callable[["Connection"], Awaitable[None]]


class Connection:
    """One client's connection."""

    def __init__(self, server: RawServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter):
        self._server = server
        self.reader = reader
        self.writer = writer

    async def request(self) -> bytes:
        """The next request's head; EOFError when the client has closed."""
        try:
            head = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError) as error:
            raise EOFError from error
        self._server.requests.append(head)
        self._server.asked.set()
        return head

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def closed_by_client(self) -> None:
        """Wait until the client closes; note when."""
        with suppress(ConnectionError):
            while await self.reader.read(65536):
                pass
        self._server.closed_at.append(boot_clock())
        self._server.closed.set()


class RawServer:
    def __init__(self, handler: Handler):
        self._handler = handler
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed_at: list[float] = []
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            await self._handler(Connection(self, reader, writer))
        except (EOFError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(handler: Handler, address: str = "127.0.0.1", ssl: object = None) -> AsyncIterator[RawServer]:
    raw = RawServer(handler)
    server = await asyncio.start_server(raw.handle, address, 0, ssl=ssl, limit=2**20, backlog=1000)  # type: ignore[arg-type]
    raw.port = server.sockets[0].getsockname()[1]
    try:
        yield raw
    finally:
        server.close()


@asynccontextmanager
async def fetching(**settings: object) -> AsyncIterator[HttpFetcher]:
    fetcher = HttpFetcher(Settings(**settings), asyncio.get_running_loop())  # type: ignore[arg-type]
    try:
        yield fetcher
    finally:
        await fetcher.close()


def answering(*responses: bytes, then_close: bool = True) -> Handler:
    """Say the responses, one per request."""

    async def handler(connection: Connection) -> None:
        for response in responses:
            await connection.request()
            await connection.say(response)
        if not then_close:
            await connection.closed_by_client()

    return handler


_ids = iter(range(1, 1_000_000))


def job(url: str, **changes: object) -> FetchJob:
    fields: dict[str, object] = {
        "id": next(_ids),
        "deadline": boot_clock() + 20,
        "timeout_s": 10.0,
        "max_bytes": 100_000,
        **changes,
    }
    return FetchJob(url=url, **fields)  # type: ignore[arg-type]


def begin(fetcher: HttpFetcher, wanted: FetchJob) -> asyncio.Future[Outcome]:
    """Start a job; the future fails if `done` is called twice."""
    future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    fetcher.start(wanted, lambda _, outcome: future.set_result(outcome))
    return future


async def fetch(fetcher: HttpFetcher, url: str, **changes: object) -> Outcome:
    async with asyncio.timeout(15):
        return await begin(fetcher, job(url, **changes))
