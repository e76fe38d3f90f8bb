"""HttpFetcher against real sockets that say exactly what they are told."""

from __future__ import annotations

import asyncio
import gzip
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Awaitable, Callable
from typing import Any

import brotli
import pytest
import uvloop
from raw_server import Connection, RawServer, answering, begin, fetch, fetching, job, serving

from curtsy.core.outcome import Fault, Outcome
from curtsy.fetch.content_codings import decoder_for, zstd
from curtsy.fetch.http import HttpFetcher, boot_clock

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"
LOOPBACK = ("127.0.0.0/8",)
HTML = ("text/html", "text/")


def run(test: Callable[[], Awaitable[None]]) -> None:
    uvloop.run(test())  # type: ignore[arg-type]


def rule(server: RawServer) -> tuple[str, ...]:
    return (f"*.test=127.0.0.1:{server.port}",)


async def one(response: bytes, path: str = "/", **changes: Any) -> Outcome:
    """The outcome of one response followed by a close."""
    async with serving(answering(response)) as server, fetching(resolve=rule(server)) as fetcher:
        return await fetch(fetcher, f"http://a.test{path}", **changes)


def asked(response: bytes, **changes: Any) -> Outcome:
    return uvloop.run(one(response, **changes))


def coded(coding: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


# Whole pages.


@pytest.mark.parametrize("runner", [uvloop.run, asyncio.run])
def test_a_page_comes_with_status_headers_body_and_times(runner: Any) -> None:
    before = boot_clock()
    outcome = runner(one(PAGE, path="/x?y=1"))
    assert (outcome.status, outcome.body, outcome.fault) == (200, b"hello", None)
    assert outcome.headers == (("Content-Type", "text/html"), ("Content-Length", "5"))
    assert outcome.http_version == "HTTP/1.1"
    assert outcome.address == "127.0.0.1"
    assert before <= outcome.started <= outcome.ended <= boot_clock()
    assert outcome.request_head.startswith(b"GET /x?y=1 HTTP/1.1\r\nHost: a.test\r\nUser-Agent: Curtsy/")


def test_started_is_reported_before_the_server_sees_the_request() -> None:
    async def test() -> None:
        seen: list[tuple[int, float]] = []
        async with serving(answering(PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            wanted = job("http://a.test/")
            fetcher.start(wanted, lambda _, o: done.set_result(o), lambda i, at: seen.append((i, at)))
            assert fetcher.in_flight == 1
            outcome = await done
            assert fetcher.in_flight == 0
        assert [id for id, _ in seen] == [wanted.id]
        assert outcome.started is not None
        assert seen[0][1] <= outcome.started

    run(test)


def test_a_transfer_that_ends_while_it_is_sent_at_once_is_noticed() -> None:
    """`done` starts the next request and sends it before the loop continues. Its answer is
    there before libcurl looks for it."""
    early = threading.Event()
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(10_000)
            connection.sendall(PAGE)
            early.wait(20)
            connection.sendall(PAGE)
            early.clear()
            connection.recv(10_000)

    async def test() -> None:
        ended: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()

        def about_to_send(_id: int, _at: float) -> None:
            early.set()
            while early.is_set():
                time.sleep(0.01)
            time.sleep(0.05)

        async with fetching(resolve=(f"*.test=127.0.0.1:{listener.getsockname()[1]}",)) as fetcher:

            def start_next(_id: int, _outcome: Outcome) -> None:
                fetcher.start(job("http://a.test/2"), lambda _, outcome: ended.set_result(outcome), about_to_send)
                fetcher.send_now()

            fetcher.start(job("http://a.test/1"), start_next)
            assert (await asyncio.wait_for(ended, 5)).status == 200

    server = threading.Thread(target=serve, daemon=True)
    server.start()
    with listener:
        run(test)
        server.join(5)


def test_the_start_of_a_process_that_stood_still_before_it_sent_is_when_it_sent() -> None:
    async def test() -> None:
        still_until: list[float] = []

        def stand_still(_id: int, _at: float) -> None:
            time.sleep(0.1)
            still_until.append(boot_clock())

        async with serving(answering(PAGE, PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            for _ in range(2):  # over a new connection, then over the kept one
                done: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
                fetcher.start(job("http://a.test/"), lambda _, o, done=done: done.set_result(o), stand_still)  # type: ignore[misc]
                outcome = await done
                assert outcome.started is not None
                assert still_until.pop() <= outcome.started <= outcome.ended

    run(test)


def test_a_connection_is_kept_and_used_again() -> None:
    async def test() -> None:
        handler = answering(PAGE, PAGE, PAGE, then_close=False)
        async with serving(handler) as server, fetching(resolve=rule(server)) as fetcher:
            for _ in range(3):
                assert (await fetch(fetcher, "http://a.test/")).body == b"hello"
            assert server.connections == 1

    run(test)


def test_hosts_on_one_address_do_not_share_a_connection() -> None:
    async def test() -> None:
        handler = answering(PAGE, PAGE, then_close=False)
        async with serving(handler) as server, fetching(resolve=rule(server)) as fetcher:
            await fetch(fetcher, "http://a.test/")
            await fetch(fetcher, "http://b.test/")
            assert server.connections == 2

    run(test)


def test_the_request_is_what_the_warc_record_says() -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            outcome = await fetch(fetcher, "http://a.test:8080/p%20q?x=|{}", headers=(("If-None-Match", '"e"'),))
            assert server.requests == [outcome.request_head]

    run(test)


def test_credentials_are_sent_but_never_recorded() -> None:
    async def test() -> None:
        headers = (("Authorization", "Bearer s3cret"), ("Cookie", "id=s3cret"), ("X-Key", "s3cret"), ("X-Empty", ""))
        async with (
            serving(answering(PAGE, PAGE, then_close=False)) as server,
            fetching(resolve=rule(server)) as fetcher,
        ):
            outcome = await fetch(fetcher, "http://a.test/", headers=headers)
            await fetch(fetcher, "http://a.test/")
            assert server.requests[0].count(b"s3cret") == 3
            assert b"X-Empty:" in server.requests[0]
            assert b"s3cret" not in outcome.request_head
            assert b"s3cret" not in server.requests[1]

    run(test)


def test_a_header_with_a_line_break_is_left_out() -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            await fetch(fetcher, "http://a.test/", headers=(("X-A", "1\r\nX-B: 2"),))
            assert b"X-B" not in server.requests[0]

    run(test)


def test_the_environments_proxies_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert asked(PAGE).status == 200


def test_interim_responses_and_trailers_are_left_out() -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n"
    final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: T\r\n\r\n3\r\nabc\r\n0\r\nT: 1\r\n\r\n"
    outcome = asked(interim + final)
    assert (outcome.status, outcome.body) == (200, b"abc")
    assert [name for name, _ in outcome.headers] == ["Transfer-Encoding", "Trailer"]


def test_odd_header_lines_do_no_harm() -> None:
    head = b"HTTP/1.1 200 \xe4\r\nA: 1\r\n  2\r\n: nameless\r\nB : \xff\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n"
    outcome = asked(head + b"Content-Length: 2\r\n\r\nok")
    assert outcome.body == b"ok"
    assert outcome.header("a") == "1 2"
    assert outcome.header("b") == "\xff"
    assert outcome.header_all("set-cookie") == ["a", "b"]


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_a_status_without_body_does_not_wait_for_one(status: bytes) -> None:
    outcome = asked(b"HTTP/1.1 " + status + b"\r\nContent-Length: 100\r\n\r\n")
    assert (outcome.fault, outcome.body) == (None, b"")


def test_redirects_are_not_followed() -> None:
    outcome = asked(b"HTTP/1.1 302 Found\r\nLocation: /next\r\nContent-Length: 0\r\n\r\n")
    assert (outcome.status, outcome.header("location")) == (302, "/next")


@pytest.mark.parametrize(
    "url",
    [
        "http://a.test./dot",
        "http://a_b.test/",
        "http://xn--bcher-kva.test/%C3%BC",
        "http://a.test/%00",
        "http://a.test/q%2fz?%c3%BC=%aA",
        "http://a.test/'|^`{}",
        "http://a.test/a;b/.../c",
        "http://a.test/?" + "z" * 100_000,
    ],
)
def test_an_odd_url_is_asked_as_it_is(url: str) -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            assert (await fetch(fetcher, url)).status == 200
            path = url[url.index("/", 8) :]
            assert server.requests[0].startswith(f"GET {path} HTTP/1.1\r\n".encode())

    run(test)


def test_escapes_are_sent_as_they_are_written_one_request_after_the_other() -> None:
    async def test() -> None:
        paths = ["/q%2fz", "/q%2Fz", "/plain", "/q%2fz?x=%5b", "/"]
        handler = answering(*[PAGE] * len(paths), then_close=False)
        async with serving(handler) as server, fetching(resolve=rule(server)) as fetcher:
            for path in paths:
                assert (await fetch(fetcher, f"http://a.test{path}")).status == 200
            assert [head.split(b" ")[1].decode() for head in server.requests] == paths
            assert all(b"\r\nHost: a.test\r\n" in head for head in server.requests)

    run(test)


def test_an_ipv6_address_is_asked() -> None:
    async def test() -> None:
        try:
            async with serving(answering(PAGE), "::1") as server, fetching(allow_private=("::1/128",)) as fetcher:
                outcome = await fetch(fetcher, f"http://[::1]:{server.port}/")
        except OSError:
            pytest.skip("no IPv6 on this machine")
        assert (outcome.status, outcome.address) == (200, "::1")

    run(test)


# Codings and sizes.

TEXT = b"All work and no play makes a dull page. " * 100


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", gzip.compress(TEXT, mtime=0)),
        ("x-gzip", gzip.compress(TEXT, mtime=0)),
        ("GZIP", gzip.compress(TEXT, mtime=0)),
        ("gzip", gzip.compress(TEXT[:99]) + gzip.compress(TEXT[99:])),
        ("gzip", gzip.compress(TEXT, mtime=0) + b"\0\0\0"),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", zlib.compress(TEXT)[2:-4]),
        ("br", brotli.compress(TEXT)),
        ("zstd", zstd.compress(TEXT)),
        ("gzip, br", brotli.compress(gzip.compress(TEXT, mtime=0))),
        ("identity", TEXT),
        ("utf-8", TEXT),
    ],
)
def test_content_codings_are_undone(coding: str, body: bytes) -> None:
    outcome = asked(coded(coding, body))
    assert (outcome.fault, outcome.body) == (None, TEXT)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("gzip", b"this is no gzip"),
        ("gzip", gzip.compress(TEXT, mtime=0)[:-20]),
        ("gzip", gzip.compress(TEXT, mtime=0)[:-8] + b"\0" * 8),
        ("deflate", zlib.compress(TEXT)[:-10]),
        ("br", brotli.compress(TEXT)[:-5]),
        ("br", b"\xff" * 50),
        ("zstd", zstd.compress(TEXT)[:-5]),
        ("zstd", b"\xff" * 50),
        (", ".join(["gzip"] * 9), gzip.compress(TEXT, mtime=0)),
    ],
)
def test_a_broken_coding_is_never_taken_for_a_whole_page(coding: str, body: bytes) -> None:
    outcome = asked(coded(coding, body))
    assert (outcome.fault, outcome.body, outcome.status) == (Fault.PROTOCOL, b"", 200)


@pytest.mark.parametrize(
    ("coding", "compress"), [("gzip", gzip.compress), ("br", brotli.compress), ("zstd", zstd.compress)]
)
def test_a_bomb_is_broken_off_at_the_limit(coding: str, compress: Callable[[bytes], bytes]) -> None:
    outcome = asked(coded(coding, compress(bytes(20_000_000))))
    assert (outcome.fault, outcome.broken_off, outcome.body) == (Fault.TOO_LARGE, True, b"")


LONG = b"<p>some words</p>" * 4000
PACKED = gzip.compress(LONG, mtime=0)


@pytest.mark.parametrize("coding", ["gzip", "GZIP", " gzip "])
@pytest.mark.parametrize("split", [1, 10, len(PACKED) - 1])
def test_a_gzip_body_is_kept_as_it_arrived_where_it_is_wanted(coding: str, split: int) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nTransfer-Encoding: chunked\r\n\r\n" % coding.encode()
    response = head + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (PACKED[:split], PACKED[split:])) + b"0\r\n\r\n"
    outcome = asked(response, keep_gzip=True)
    assert (outcome.fault, outcome.body, outcome.gzipped) == (None, LONG, PACKED)
    assert asked(response).gzipped == b""


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("x-gzip", PACKED),
        ("gzip, identity", PACKED),
        ("gzip, gzip", gzip.compress(PACKED, mtime=0)),
        ("gzip\r\nContent-Encoding: gzip", gzip.compress(PACKED, mtime=0)),
        ("gzip", gzip.compress(LONG[:99], mtime=0) + gzip.compress(LONG[99:], mtime=0)),
        ("gzip", PACKED + b"\0\0\0"),
        # Nothing is saved.
        ("gzip", gzip.compress(LONG, 0, mtime=0)),
        ("gzip", b""),
        ("deflate", zlib.compress(LONG)),
        ("br", brotli.compress(LONG)),
        ("zstd", zstd.compress(LONG)),
        ("identity", LONG),
    ],
)
def test_any_other_body_is_kept_decoded_only(coding: str, body: bytes) -> None:
    outcome = asked(coded(coding, body), keep_gzip=True)
    assert (outcome.fault, outcome.body, outcome.gzipped) == (None, LONG if body else b"", b"")


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (PACKED[:-20], Fault.PROTOCOL),
        (PACKED[:-8] + bytes(8), Fault.PROTOCOL),
        (gzip.compress(bytes(200_000), mtime=0), Fault.TOO_LARGE),
    ],
)
def test_a_gzip_body_that_failed_is_not_kept(body: bytes, fault: Fault) -> None:
    outcome = asked(coded("gzip", body), keep_gzip=True)
    assert (outcome.fault, outcome.body, outcome.gzipped) == (fault, b"", b"")


def test_a_gzip_stream_without_content_is_not_collected() -> None:
    """Empty blocks may go on for ever: the limit of the decoded body never ends them."""
    decoder = decoder_for("gzip", keep_gzip=True)
    assert decoder is not None
    empty = b"\0\0\0\xff\xff" * 20_000
    decoder.feed(gzip.compress(b"")[:10], 1)
    decoder.feed(empty, 1)
    tracemalloc.start()
    try:
        for _ in range(50):
            decoder.feed(bytes(bytearray(empty)), 1)
        assert tracemalloc.get_traced_memory()[0] < len(empty)
    finally:
        tracemalloc.stop()


def test_a_body_of_just_the_limit_is_whole_and_one_byte_more_is_too_large() -> None:
    def page(size: int) -> bytes:
        return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (size, b"x" * size)

    assert asked(page(100), max_bytes=100).fault is None
    assert asked(page(101), max_bytes=100).fault is Fault.TOO_LARGE
    assert asked(coded("gzip", gzip.compress(bytes(100))), max_bytes=100).fault is None
    assert asked(coded("gzip", gzip.compress(bytes(101))), max_bytes=100).fault is Fault.TOO_LARGE


def test_a_cut_body_is_given_where_it_is_wanted() -> None:
    outcome = asked(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 1000, max_bytes=10, keep_partial=True)
    assert (outcome.fault, outcome.body) == (Fault.TOO_LARGE, b"x" * 10)


def test_an_announced_size_over_the_limit_is_not_read() -> None:
    outcome = asked(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\nx")
    assert (outcome.fault, outcome.broken_off) == (Fault.TOO_LARGE, True)


MUCH = b"y" * 90_000


@pytest.mark.parametrize("status", [200, 301, 404, 500])
@pytest.mark.parametrize(
    ("head", "body", "changes", "fault", "kept"),
    [
        (b"", MUCH, {"max_bytes": 80_000}, Fault.TOO_LARGE, MUCH[:65_536]),
        (b"Content-Length: 50\r\n", b"x" * 50, {"max_bytes": 49}, Fault.TOO_LARGE, b"x" * 50),
        (b"Content-Length: 50\r\n", b"x" * 7, {"timeout_s": 0.3}, Fault.TIMEOUT, b"x" * 7),
        (b"Transfer-Encoding: chunked\r\n", b"3\r\nxyz\r\nno\r\n", {}, Fault.PROTOCOL, b"xyz"),
        (b"Content-Encoding: " + b"gzip, " * 9 + b"\r\n", b"x", {}, Fault.PROTOCOL, b""),
    ],
)
def test_an_incomplete_redirect_or_error_keeps_its_beginning_apart_from_bodies(
    status: int, head: bytes, body: bytes, changes: dict[str, Any], fault: Fault, kept: bytes
) -> None:
    async def test() -> None:
        answer = b"HTTP/1.1 %d X\r\n%s\r\n%s" % (status, head, body)
        async with serving(answering(answer, then_close=False)) as server, fetching(resolve=rule(server)) as fetcher:
            outcome = await fetch(fetcher, "http://a.test/", **changes)
        assert (outcome.fault, outcome.body) == (fault, b"")
        assert outcome.beginning == (kept if status >= 300 else b"")

    run(test)


def test_an_error_that_is_cut_off_keeps_its_beginning() -> None:
    outcome = asked(b"HTTP/1.1 500 X\r\nContent-Length: 50\r\n\r\nonly this")
    assert (outcome.fault, outcome.body, outcome.beginning) == (Fault.RESET, b"", b"only this")


@pytest.mark.parametrize(
    ("content_type", "fault"),
    [
        (b"Content-Type: text/html; charset=utf-8\r\n", None),
        (b"Content-Type: TEXT/PLAIN\r\n", None),
        (b"Content-Type: \r\n", None),
        (b"", None),
        (b"Content-Type: image/png\r\n", Fault.WRONG_TYPE),
        (b"content-type: application/octet-stream\r\n", Fault.WRONG_TYPE),
    ],
)
def test_only_wanted_types_are_read(content_type: bytes, fault: Fault | None) -> None:
    outcome = asked(b"HTTP/1.1 200 OK\r\n" + content_type + b"Content-Length: 2\r\n\r\nok", keep_types=HTML)
    assert (outcome.fault, outcome.broken_off) == (fault, fault is not None)
    assert outcome.header("content-length") == "2"


def test_an_error_page_of_any_type_is_read() -> None:
    outcome = asked(b"HTTP/1.1 404 No\r\nContent-Type: image/png\r\nContent-Length: 2\r\n\r\nok", keep_types=HTML)
    assert (outcome.status, outcome.fault) == (404, None)


# Broken responses.


@pytest.mark.parametrize(
    ("response", "faults"),
    [
        (b"", (Fault.RESET,)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\npartial", (Fault.RESET,)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n8\r\nchunked \r\n", (Fault.RESET, Fault.PROTOCOL)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nx\r\n", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx\r\n", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\nabcd", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\nA: \0\r\n\r\nabcd", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\nabcd", (Fault.PROTOCOL,)),
        (b"<html>HTTP/0.9</html>", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 2000 OK\r\n\r\n", (Fault.PROTOCOL,)),
        (b"SSH-2.0-OpenSSH_9.2\r\n", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 400_000 + b"\r\n\r\n", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: 1\r\n" % i for i in range(100_000)) + b"\r\n", (Fault.PROTOCOL,)),
        (b"HTTP/1.1 200 OK\r\nConte", (Fault.RESET, Fault.PROTOCOL)),
    ],
)
def test_a_broken_response_is_a_fault_and_has_no_body(response: bytes, faults: tuple[Fault, ...]) -> None:
    outcome = asked(response)
    assert outcome.fault in faults, outcome.detail
    assert outcome.body == b""
    assert outcome.started is not None


def test_a_redirect_with_a_broken_body_still_names_its_target() -> None:
    outcome = asked(b"HTTP/1.1 301 Moved\r\nLocation: /next\r\nContent-Length: 99\r\n\r\nshort")
    assert (outcome.status, outcome.header("location"), outcome.fault) == (301, "/next", Fault.RESET)


def test_bytes_after_the_body_are_not_the_next_response() -> None:
    async def test() -> None:
        async def handler(connection: Connection) -> None:
            await connection.request()
            await connection.say(PAGE + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
            await connection.closed_by_client()

        async with serving(handler) as server, fetching(resolve=rule(server)) as fetcher:
            assert [(await fetch(fetcher, "http://a.test/")).body for _ in range(2)] == [b"hello", b"hello"]

    run(test)


def test_a_refused_connection_is_distinguished_from_a_lost_one() -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server:
            port = server.port
        async with fetching(resolve=(f"*.test=127.0.0.1:{port}",)) as fetcher:
            outcome = await fetch(fetcher, "http://a.test/")
        assert (outcome.fault, outcome.started) == (Fault.CONNECT, None)

    run(test)


# What we break off: the connection is closed before the outcome is told.


async def endless(connection: Connection) -> None:
    await connection.request()
    await connection.say(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    watch = asyncio.ensure_future(connection.closed_by_client())
    while not watch.done():
        connection.writer.write(b"x" * 10_000)
        await asyncio.sleep(0)


async def silent(connection: Connection) -> None:
    await connection.request()
    await connection.closed_by_client()


async def silent_after_head(connection: Connection) -> None:
    await connection.request()
    await connection.say(b"HTTP/1.1 200 OK\r\nContent-Type: video/mp4\r\nContent-Length: 9\r\n\r\n")
    await connection.closed_by_client()


@pytest.mark.parametrize(
    ("handler", "changes", "fault"),
    [
        (endless, {}, Fault.TOO_LARGE),
        (endless, {"keep_types": ("image/",)}, Fault.WRONG_TYPE),
        (silent, {"timeout_s": 0.2}, Fault.TIMEOUT),
        (silent_after_head, {"timeout_s": 0.2}, Fault.TIMEOUT),
        (silent_after_head, {"timeout_s": 0.2, "keep_types": HTML}, Fault.WRONG_TYPE),
    ],
)
def test_a_transfer_that_we_break_off_is_closed(handler: Any, changes: dict[str, Any], fault: Fault) -> None:
    async def test() -> None:
        async with serving(handler) as server, fetching(resolve=rule(server)) as fetcher:
            outcome = await fetch(fetcher, "http://a.test/", **changes)
            assert (outcome.fault, outcome.broken_off) == (fault, True)
            async with asyncio.timeout(5):
                await server.closed.wait()

    run(test)


def test_the_slots_end_ends_a_transfer_before_its_own_time_is_up() -> None:
    async def test() -> None:
        async with serving(silent) as server, fetching(resolve=rule(server)) as fetcher:
            deadline = boot_clock() + 1.2
            outcome = await fetch(fetcher, "http://a.test/", deadline=deadline, timeout_s=10.0)
            assert outcome.fault is Fault.TIMEOUT
            assert outcome.ended < deadline + 0.5

    run(test)


def test_cancelling_closes_the_connection_and_keeps_the_start() -> None:
    async def test() -> None:
        async with serving(silent) as server, fetching(resolve=rule(server)) as fetcher:
            wanted = job("http://a.test/")
            future = begin(fetcher, wanted)
            await server.asked.wait()
            fetcher.cancel(wanted.id)
            outcome = await future
            assert (outcome.fault, outcome.broken_off) == (Fault.CANCELLED, True)
            assert outcome.started is not None
            async with asyncio.timeout(5):
                await server.closed.wait()
            fetcher.cancel(wanted.id)

    run(test)


def test_cancelling_before_anything_was_sent() -> None:
    async def test() -> None:
        async with serving(silent) as server, fetching(resolve=rule(server)) as fetcher:
            wanted = job("http://a.test/")
            future = begin(fetcher, wanted)
            fetcher.cancel(wanted.id)
            outcome = await future
            assert (outcome.fault, outcome.started, outcome.broken_off) == (Fault.CANCELLED, None, False)
            assert server.requests == []

    run(test)


def test_closing_ends_every_job_once() -> None:
    async def test() -> None:
        async with serving(silent) as server:
            async with fetching(resolve=rule(server)) as fetcher:
                futures = [begin(fetcher, job(f"http://a{i}.test/")) for i in range(5)]
                await server.asked.wait()
            assert {(await future).fault for future in futures} == {Fault.CANCELLED}
            assert (await fetch(fetcher, "http://a.test/")).fault is Fault.CANCELLED

    run(test)


# Slots.


def test_nothing_starts_with_less_than_a_second_of_the_slot_left() -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            outcome = await fetch(fetcher, "http://a.test/", deadline=boot_clock() + 0.9)
            assert (outcome.fault, outcome.started) == (Fault.SLOT_EXPIRED, None)
            assert server.connections == 0

    run(test)


def test_nothing_is_sent_on_a_slot_that_expired_while_the_process_stood_still() -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            future = begin(fetcher, job("http://a.test/", deadline=boot_clock() + 1.05))
            time.sleep(1.2)  # noqa: ASYNC251 - a stopped process is what this is about
            outcome = await future
            assert (outcome.fault, outcome.started) == (Fault.SLOT_EXPIRED, None)
            assert server.requests == []

    run(test)


def test_a_request_on_a_kept_connection_that_died_is_not_sent_again() -> None:
    async def test() -> None:
        async def handler(connection: Connection) -> None:
            await connection.request()
            await connection.say(PAGE)
            await connection.request()

        async with serving(handler) as server, fetching(resolve=rule(server)) as fetcher:
            await fetch(fetcher, "http://a.test/1")
            before = boot_clock()
            outcome = await fetch(fetcher, "http://a.test/2")
            assert outcome.fault is Fault.RESENT
            assert outcome.started is not None
            assert before <= outcome.started
            assert len(server.requests) == 2
            assert (await fetch(fetcher, "http://a.test/3")).status == 200

    run(test)


def test_a_fresh_connection_that_dies_is_asked_once() -> None:
    async def test() -> None:
        async def handler(connection: Connection) -> None:
            await connection.request()

        async with serving(handler) as server, fetching(resolve=rule(server)) as fetcher:
            assert (await fetch(fetcher, "http://a.test/")).fault is Fault.RESET
            assert len(server.requests) == 1

    run(test)


# The guard.


@pytest.mark.parametrize("url", ["http://127.0.0.1:{}/", "http://localhost:{}/", "http://[::ffff:7f00:1]:{}/"])
def test_a_private_address_is_never_connected_to(url: str) -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server, fetching() as fetcher:
            outcome = await fetch(fetcher, url.format(server.port))
            assert (outcome.fault, outcome.started) == (Fault.FORBIDDEN_ADDRESS, None)
            assert server.connections == 0

    run(test)


def test_a_private_range_may_be_opened() -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server, fetching(allow_private=LOOPBACK) as fetcher:
            assert (await fetch(fetcher, f"http://127.0.0.1:{server.port}/")).body == b"hello"

    run(test)


@pytest.mark.parametrize("url", ["ftp://a.test/", "file:///etc/passwd", "nonsense", "http://u:p@a.test/", ""])
def test_what_is_no_http_url_is_refused(url: str) -> None:
    async def test() -> None:
        async with fetching() as fetcher:
            assert (await fetch(fetcher, url)).fault is Fault.FORBIDDEN_ADDRESS

    run(test)


def test_an_address_has_a_limit_of_requests_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    # The limit spares addresses that the operator opened, and a test has no others.
    monkeypatch.setattr(HttpFetcher, "_limited", lambda _self, _address: True)

    async def test() -> None:
        async with serving(silent) as server, fetching(allow_private=LOOPBACK, per_address=2) as fetcher:
            url = f"http://127.0.0.1:{server.port}/"
            first, second = (job(url) for _ in range(2))
            futures = [begin(fetcher, first), begin(fetcher, second)]
            outcome = await fetch(fetcher, url)
            assert (outcome.fault, outcome.started) == (Fault.ADDRESS_BUSY, None)
            fetcher.cancel(first.id)
            await futures[0]
            third = job(url, timeout_s=0.3)
            assert (await begin(fetcher, third)).fault is Fault.TIMEOUT

    run(test)


def test_opened_and_pinned_addresses_have_no_limit() -> None:
    async def test() -> None:
        async with (
            serving(silent) as server,
            fetching(allow_private=LOOPBACK, resolve=rule(server), per_address=1) as fetcher,
        ):
            urls = [f"http://127.0.0.1:{server.port}/", "http://a.test/", "http://b.test/"]
            futures = [begin(fetcher, job(url, timeout_s=0.3)) for url in urls]
            assert {(await future).fault for future in futures} == {Fault.TIMEOUT}

    run(test)


# Idle connections, callbacks.


def test_idle_connections_are_dropped_and_busy_ones_are_not() -> None:
    async def test() -> None:
        handler = answering(PAGE, then_close=False)
        async with serving(handler) as server, serving(silent) as other:
            rules = (f"a.test=127.0.0.1:{server.port}", f"b.test=127.0.0.1:{other.port}")
            async with fetching(resolve=rules) as fetcher:
                await fetch(fetcher, "http://a.test/")
                busy = begin(fetcher, job("http://b.test/", timeout_s=1.0))
                await other.asked.wait()
                assert fetcher.drop_idle(60) == 0
                assert fetcher.drop_idle(0) == 1
                async with asyncio.timeout(5):
                    await server.closed.wait()
                assert (await fetch(fetcher, "http://a.test/")).status == 200
                assert server.connections == 2
                assert (await busy).fault is Fault.TIMEOUT

    run(test)


def test_a_callback_that_fails_does_not_stop_the_others() -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        reported: asyncio.Queue[str] = asyncio.Queue()
        loop.set_exception_handler(lambda _, context: reported.put_nowait(str(context["exception"])))

        def fail(_id: int, what: object) -> None:
            raise ValueError(f"mistake with {type(what).__name__}")

        async with serving(answering(PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            fetcher.start(job("http://a.test/"), fail, fail)
            assert (await fetch(fetcher, "http://b.test/")).status == 200
            assert [await reported.get() for _ in range(2)] == ["mistake with float", "mistake with Outcome"]

    run(test)


def test_many_requests_at_once_each_end_once() -> None:
    async def test() -> None:
        async with (
            serving(answering(*[PAGE] * 50, then_close=False)) as server,
            fetching(resolve=rule(server)) as fetcher,
        ):
            futures = [begin(fetcher, job(f"http://h{i % 40}.test/{i}")) for i in range(400)]
            async with asyncio.timeout(30):
                outcomes = await asyncio.gather(*futures)
            assert {outcome.status for outcome in outcomes} == {200}
            assert len(server.requests) == 400

    run(test)
