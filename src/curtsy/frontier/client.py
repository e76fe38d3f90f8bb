"""A client of one Valkey or Redis server. It sends nothing twice, and its connections are checked when they open.

hiredis packs the commands and reads the replies, in version 2 of the protocol: None, an int, bytes, or a list of them.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import hiredis

from curtsy.core.model import hot_value

#: one argument of a command, or its name
Word = str | int | float | bytes
Words = tuple[Word, ...]

_CERT_REQS = {"none": ssl.CERT_NONE, "optional": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
#: options of TLS in a URL -> their values, where they are words
_VALUES: dict[str, dict[str, Any]] = {"ssl_cert_reqs": _CERT_REQS, "ssl_check_hostname": _BOOLS}
_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", *_VALUES)
_OPTIONS = frozenset({"db", "username", "password", *_TLS_OPTIONS})


class ServerError(Exception):
    """The server refused a command. The text begins with a code in capital letters."""

    @property
    def code(self) -> str:
        return str(self).partition(" ")[0]


@hot_value()
class Address:
    """What a URL says of one server."""

    host: str
    port: int
    #: of a socket on this machine; None: host and port
    path: str | None
    user: str | None
    password: str | None
    database: int
    #: the options of TLS; None: no TLS
    tls: dict[str, str] | None

    @classmethod
    def of(cls, url: str) -> Address:
        """Raises ValueError for a URL that names no server, or has unknown options."""
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query))
        if unknown := sorted(options.keys() - _OPTIONS):
            raise ValueError(f"there is no option {unknown[0]!r}. Use: {', '.join(sorted(_OPTIONS))}")
        for name, values in _VALUES.items():
            if options.get(name, next(iter(values))).lower() not in values:
                raise ValueError(f"{name} is {options[name]!r}. Use: {', '.join(values)}")
        is_local = parts.scheme == "unix"
        path = unquote(parts.path)
        return cls(
            host=unquote(parts.hostname or "localhost"),
            port=parts.port or 6379,
            path=path if is_local else None,
            user=unquote(parts.username or "") or options.get("username"),
            password=unquote(parts.password or "") or options.get("password"),
            database=int(options.get("db", "" if is_local else path.strip("/")) or 0),
            tls={name: options[name] for name in _TLS_OPTIONS if name in options} if parts.scheme == "rediss" else None,
        )

    @property
    def where(self) -> str:
        return self.path or f"{self.host}:{self.port}"

    def context(self) -> ssl.SSLContext | None:
        """Reads the certificates; None without TLS."""
        if self.tls is None:
            return None
        context = ssl.create_default_context(cafile=self.tls.get("ssl_ca_certs"))
        verify = _CERT_REQS[self.tls.get("ssl_cert_reqs", "required").lower()]
        context.check_hostname = verify != ssl.CERT_NONE and _BOOLS[self.tls.get("ssl_check_hostname", "true").lower()]
        context.verify_mode = verify
        if (certificate := self.tls.get("ssl_certfile")) is not None:
            context.load_cert_chain(certificate, self.tls.get("ssl_keyfile"))
        return context


class Connection(asyncio.Protocol):
    """One connection. It carries one exchange at a time: commands that are sent together, and their replies."""

    def __init__(self) -> None:
        self._reader = hiredis.Reader(protocolError=ConnectionError, replyError=ServerError)
        self._transport: Any = None
        self._replies: list[Any] = []
        self._expected = 0
        self._answered: asyncio.Future[list[Any]] | None = None
        #: why the connection ended
        self._reason: Exception = ConnectionError("the server closed the connection")
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(cls, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            if address.path is not None:
                _, connection = await loop.create_unix_connection(cls, address.path)
            else:
                _, connection = await loop.create_connection(cls, address.host, address.port, ssl=address.context())
        except OSError as error:
            raise ConnectionError(f"no connection to {address.where}: {error}") from error
        try:
            await connection._log_in(address)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _log_in(self, address: Address) -> None:
        words: list[Words] = []
        if address.password is not None:
            words.append(("AUTH", *([address.user] if address.user else []), address.password))
        if address.database:
            words.append(("SELECT", address.database))
        if words:
            await self.exchange(words)

    @property
    def is_open(self) -> bool:
        return not (self._ended.done() or self._transport.is_closing())

    async def exchange(self, commands: Sequence[Words]) -> list[Any]:
        """The replies to these commands. Raises the first error among them, after the last reply."""
        if not self.is_open:
            raise self._reason
        self._replies, self._expected = [], len(commands)
        self._answered = asyncio.get_running_loop().create_future()
        # The stub of hiredis allows tuples of one word only.
        self._transport.write(b"".join([hiredis.pack_command(words) for words in commands]))  # type: ignore[arg-type]
        try:
            replies = await self._answered
        except BaseException:
            self.abort()  # replies that still arrive must not be taken for those of another exchange
            raise
        for reply in replies:
            if isinstance(reply, ServerError):
                raise reply
        return replies

    def abort(self) -> None:
        self._transport.abort()

    async def close(self) -> None:
        self.abort()
        await self._ended

    # Called by the event loop

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport
        found = transport.get_extra_info("socket")
        if found.family != socket.AF_UNIX:
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def data_received(self, data: bytes) -> None:
        self._reader.feed(data)
        try:
            while len(self._replies) < self._expected and (reply := self._reader.gets()) is not False:
                self._replies.append(reply)
        except ConnectionError as error:
            self._fail(error)
            self.abort()
            return
        if self._answered is not None and not self._answered.done() and len(self._replies) == self._expected:
            self._answered.set_result(self._replies)

    def connection_lost(self, exc: Exception | None) -> None:
        said = self._reader.gets()
        # A server that accepts no more clients sends an error before the first command.
        self._fail(exc if isinstance(exc, OSError) else said if isinstance(said, ServerError) else self._reason)
        self._ended.set_result(None)

    def _fail(self, reason: Exception) -> None:
        self._reason = reason
        if self._answered is not None and not self._answered.done():
            self._answered.set_exception(reason)


class Client:
    """A pool of connections to one server. Every exchange has a connection of its own, so it waits for no other one."""

    def __init__(self, url: str, greet: Callable[[Connection], Awaitable[object]] | None = None) -> None:
        """`greet` is called with every new connection, and may refuse it."""
        self._address = Address.of(url)
        self._greet = greet
        self._open: set[Connection] = set()
        self._idle: list[Connection] = []

    async def command(self, *words: Word) -> Any:
        return (await self.commands([words]))[0]

    async def commands(self, commands: Sequence[Words]) -> list[Any]:
        """Sends them together. Raises the first error among the replies; the other commands were carried out."""
        if not commands:
            return []
        connection = await self._connection()
        try:
            return await connection.exchange(commands)
        finally:
            self._give_back(connection)

    async def disconnect(self) -> None:
        """Closes all connections, also those that are in use."""
        connections, self._open, self._idle = self._open, set(), []
        for connection in connections:
            await connection.close()

    async def _connection(self) -> Connection:
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            self._open.discard(connection)
        connection = await Connection.open(self._address)
        self._open.add(connection)
        try:
            if self._greet is not None:
                await self._greet(connection)
        except BaseException:
            self._open.discard(connection)
            connection.abort()
            raise
        return connection

    def _give_back(self, connection: Connection) -> None:
        if connection in self._open and connection.is_open:
            self._idle.append(connection)
        else:
            self._open.discard(connection)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.disconnect()
