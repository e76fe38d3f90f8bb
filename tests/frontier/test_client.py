"""The client of a server: what it sends, what it makes of replies, and what it does when an exchange ends badly."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from frontier_servers import Server

from curtsy.frontier.client import Address, Client, Connection, ServerError
from curtsy.services.valkey import find_server

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    program = find_server()
    assert program is not None
    started = Server(program)
    started.start()
    yield started
    started.remove()


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a path that is short enough for a socket."""
    folder = Path(tempfile.mkdtemp(prefix="curtsy-client-"))
    yield folder
    shutil.rmtree(folder)


async def against(folder: Path, answer: Answer, scene: Callable[[Client], Awaitable[None]]) -> None:
    """Runs a scene with a client of a server that behaves as `answer` says."""

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    listening = await asyncio.start_unix_server(served, folder / "s")
    async with listening, Client(f"unix://{folder}/s") as client:
        await scene(client)


async def until_one_waits(client: Client) -> None:
    while True:
        if b"blocked_clients:1" in await client.command("INFO", "clients"):
            return
        await asyncio.sleep(0)


def test_words_arrive_as_they_were_sent(server: Server) -> None:
    async def scene() -> None:
        async with Client(server.url) as client:
            assert await client.command("RPUSH", "list", "ü", b"\xff\x00", 7, -1.5, "", "x" * 1_000_000) == 6
            found = await client.command("LRANGE", "list", 0, -1)
            assert found == ["ü".encode(), b"\xff\x00", b"7", b"-1.5", b"", b"x" * 1_000_000]
            assert await client.command("GET", "missing") is None

    asyncio.run(scene())


def test_commands_that_are_sent_together_are_all_carried_out_if_one_is_refused(server: Server) -> None:
    async def scene() -> None:
        async with Client(server.url) as client:
            await client.command("SET", "text", "x")
            with pytest.raises(ServerError, match="WRONGTYPE") as error:
                await client.commands([("SET", "one", 1), ("LPUSH", "text", 1), ("SET", "two", 2)])
            assert error.value.code == "WRONGTYPE"
            assert await client.commands([("GET", "one"), ("GET", "two")]) == [b"1", b"2"]
            assert await client.commands([]) == []

    asyncio.run(scene())


def test_exchanges_at_the_same_time_do_not_wait_for_each_other(server: Server) -> None:
    async def scene() -> None:
        async with Client(server.url) as client:
            waiting = asyncio.create_task(client.command("BLPOP", "wake", 0))
            await until_one_waits(client)
            await client.command("LPUSH", "wake", "now")
            assert await waiting == [b"wake", b"now"]

    asyncio.run(scene())


def test_a_late_reply_is_not_taken_for_that_of_the_next_command(server: Server) -> None:
    async def scene() -> None:
        async with Client(server.url) as client:
            ours = await client.command("CLIENT", "ID")
            waiting = asyncio.create_task(client.command("BLPOP", "late", 0))
            async with Client(server.url) as other:
                await until_one_waits(other)
                waiting.cancel()
                await asyncio.gather(waiting, return_exceptions=True)
                await other.command("RPUSH", "late", "reply")
            assert await client.command("ECHO", "mine") == b"mine"
            assert await client.command("CLIENT", "ID") != ours

    asyncio.run(scene())


def test_closing_the_connections_ends_exchanges_that_wait(server: Server) -> None:
    async def scene() -> None:
        async with Client(server.url) as client:
            waiting = asyncio.create_task(client.command("BLPOP", "never", 0))
            await until_one_waits(client)
            await client.disconnect()
            with pytest.raises(ConnectionError):
                await waiting
            assert await client.command("PING") == b"PONG"

    asyncio.run(scene())


def test_every_connection_is_greeted_once_and_not_used_if_it_is_refused(server: Server) -> None:
    greeted: list[Connection] = []

    async def greet(connection: Connection) -> None:
        greeted.append(connection)
        if len(greeted) == 2:
            raise LookupError

    async def scene() -> None:
        async with Client(server.url, greet) as client:
            await client.command("PING")
            await client.command("PING")
            assert len(greeted) == 1
            await client.disconnect()
            with pytest.raises(LookupError):
                await client.command("PING")
            await client.command("PING")
            assert len(greeted) == 3

    asyncio.run(scene())


def test_a_connection_that_the_server_closed_is_replaced(server: Server) -> None:
    async def scene() -> None:
        async with Client(server.url) as client, Client(server.url) as other:
            ours = await client.command("CLIENT", "ID")
            await other.command("CLIENT", "KILL", "ID", ours)
            await client._idle[0]._ended
            assert await client.command("CLIENT", "ID") != ours

    asyncio.run(scene())


def test_a_server_that_ends_the_connection_during_an_exchange_is_a_lost_connection(short: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"$5\r\nhal")

    async def scene(client: Client) -> None:
        with pytest.raises(ConnectionError):
            await client.command("GET", "key")

    asyncio.run(against(short, answer, scene))


def test_something_that_is_no_reply_is_a_lost_connection(short: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await reader.read()

    async def scene(client: Client) -> None:
        with pytest.raises(ConnectionError, match="Protocol error"):
            await client.command("GET", "key")

    asyncio.run(against(short, answer, scene))


def test_what_a_server_says_before_it_is_asked_is_the_reason(short: Path) -> None:
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"-ERR max number of clients reached\r\n")

    async def scene(client: Client) -> None:
        connection = await Connection.open(client._address)
        await connection._ended
        with pytest.raises(ServerError, match="max number of clients"):
            await connection.exchange([("PING",)])

    asyncio.run(against(short, answer, scene))


def test_the_database_of_the_url_is_selected_and_a_wrong_password_refused(server: Server) -> None:
    async def scene() -> None:
        async with Client(f"{server.url}?db=3") as client:
            await client.command("SET", "here", 1)
            assert b"db3:keys=1" in await client.command("INFO", "keyspace")
        async with Client(server.url.replace("unix://", "unix://me:wrong@")) as client:
            with pytest.raises(ServerError, match="WRONGPASS"):
                await client.command("PING")

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://one.test", ("one.test", 6379, None, None, None, 0)),
        ("redis://me:p%40ss@one.test:7000/2", ("one.test", 7000, None, "me", "p@ss", 2)),
        ("redis://:p%2Fw@[::1]:1/?db=4", ("::1", 1, None, None, "p/w", 4)),
        ("redis://one.test?username=me&password=p%40ss", ("one.test", 6379, None, "me", "p@ss", 0)),
        ("unix:///run/a%20b.sock?db=2", ("localhost", 6379, "/run/a b.sock", None, None, 2)),
        ("unix://:secret@/run/s", ("localhost", 6379, "/run/s", None, "secret", 0)),
    ],
)
def test_every_part_of_a_url_is_read(url: str, expected: tuple[object, ...]) -> None:
    found = Address.of(url)
    assert (found.host, found.port, found.path, found.user, found.password, found.database) == expected
    assert found.context() is None


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://one.test?protocol=3", "no option 'protocol'"),
        ("redis://one.test:port", "Port"),
        ("redis://one.test/crawl", "crawl"),
        ("rediss://one.test?ssl_cert_reqs=maybe", "ssl_cert_reqs"),
    ],
)
def test_a_url_that_cannot_be_followed_is_refused(url: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Address.of(url)


def test_tls_checks_names_and_certificates_unless_the_url_says_otherwise() -> None:
    strict, loose = (
        Address.of(f"rediss://one.test{more}").context() for more in ("", "?ssl_cert_reqs=none&ssl_check_hostname=no")
    )
    assert strict is not None
    assert loose is not None
    assert (strict.check_hostname, strict.verify_mode.name) == (True, "CERT_REQUIRED")
    assert (loose.check_hostname, loose.verify_mode.name) == (False, "CERT_NONE")
