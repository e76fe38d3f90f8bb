"""Responses that libcurl refuses for one line of their head are read by us, under the same rules."""

from __future__ import annotations

import asyncio
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
import uvloop
from certificates import Authority
from crawl_folder import CrawlFolder
from hypothesis import given
from hypothesis import strategies as st
from raw_server import Connection, answering, begin, fetch, fetching, job, serving

from curtsy.core.outcome import Fault
from curtsy.fetch.headers import read_head
from curtsy.fetch.raw_response import BadResponse, RawResponse

PRIVATE = {"allow_private": ("127.0.0.0/8",)}
BAD = b"HTTP/1.1 200 OK\r\nno colon here\r\nContent-Type: text/html\r\n"


def read(data: bytes, *cuts: int) -> tuple[int, dict[str, str], bytes]:
    """(status, headers, body) of a response that arrives in pieces."""
    lines: list[bytes] = []
    body: list[bytes] = []
    response = RawResponse(lines, body.append)
    ends = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(ends)]
    if all(response.feed(piece) for piece in pieces if piece):
        response.end()
    head = read_head(lines)
    assert head.complete
    return head.status, dict(head.headers), b"".join(body)


HTML = {"Content-Type": "text/html"}
SIZED = {"Content-Length": "5", **HTML}


@pytest.mark.parametrize(
    ("data", "status", "headers", "body"),
    [
        (BAD + b"\r\nhello", 200, HTML, b"hello"),
        (BAD + b"Content-Length: 5\r\n\r\nhello and more", 200, SIZED, b"hello"),
        (BAD + b"Content-Length: five\r\n\r\nhello", 200, HTML, b"hello"),
        (BAD + b"Content-Length: 5\r\nContent-Length: 5, 5\r\n\r\nhello", 200, SIZED, b"hello"),
        (BAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2;x=1\r\nlo\r\n0\r\n\r\n", 200,
         {"Transfer-Encoding": "chunked", **HTML}, b"hello"),
        (b"HTTP/1.1 103 Early\r\nLink: x\r\n\r\n" + BAD + b"\r\nhello", 200, HTML, b"hello"),
        (b"HTTP/1.0 404\nA : 1\n : 2\n\n", 404, {"A": "1 : 2"}, b""),
        (b"HTTP/1.1 204 No\r\nwrong\r\n folded\r\nA: 1\r\n\r\n", 204, {"A": "1"}, b""),
    ],
)  # fmt: skip
@given(cuts=st.lists(st.integers(0, 400), max_size=5))
def test_malformed_lines_are_dropped_however_the_bytes_arrive(
    data: bytes, status: int, headers: dict[str, str], body: bytes, cuts: list[int]
) -> None:
    assert read(data, *cuts) == (status, headers, body)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"hello\r\n\r\n",
        BAD + b"A: b\0c\r\n\r\n",
        BAD + b"A: b\rc: d\r\n\r\n",
        BAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nhello",
        BAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
        BAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 50_000,
        BAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1" * 10_000,
    ],
)
def test_what_is_no_response_is_refused(data: bytes) -> None:
    with pytest.raises(BadResponse):
        read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        BAD,
        BAD + b"Content-Length: 9\r\n\r\nhello",
        BAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    ],
)
def test_a_response_that_ends_early_is_noticed(data: bytes) -> None:
    with pytest.raises(EOFError):
        read(data)


@given(st.binary(max_size=300), st.lists(st.integers(0, 400), max_size=4))
def test_any_bytes_are_a_response_or_an_error(tail: bytes, cuts: list[int]) -> None:
    for data in (tail, BAD + tail, BAD + b"Transfer-Encoding: chunked\r\n\r\n" + tail):
        try:
            read(data, *cuts)
        except (BadResponse, EOFError):
            continue


def test_many_small_chunks_take_time_in_proportion() -> None:
    data = BAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 200_000 + b"0\r\n\r\n"
    assert read(data)[2] == b"x" * 200_000


def test_the_second_request_to_an_origin_reads_what_libcurl_refuses() -> None:
    async def test() -> None:
        packed = zlib.compress(b"hello", wbits=31)
        page = BAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed
        async with serving(answering(page)) as server, fetching(**PRIVATE) as fetcher:
            url = f"http://127.0.0.1:{server.port}/x?y"
            first = await fetch(fetcher, url)
            assert (first.fault, first.status) == (Fault.PROTOCOL, 0)
            second = await fetch(fetcher, url, headers=(("If-None-Match", "e"), ("Cookie", "a=b")))
            assert (second.fault, second.status, second.body) == (None, 200, b"hello")
            assert second.header("content-type") == "text/html"
            assert second.started is not None
            assert second.address == "127.0.0.1"
        head = server.requests[1].decode().split("\r\n")
        assert head[0] == "GET /x?y HTTP/1.1"
        assert {f"Host: 127.0.0.1:{server.port}", "If-None-Match: e", "Cookie: a=b", "Connection: close"} <= set(head)
        assert len(server.requests) == server.connections == 2

    uvloop.run(test())


def test_limits_and_types_hold_without_libcurl() -> None:
    async def test() -> None:
        long, other = BAD + b"\r\n" + b"x" * 5_000, BAD.replace(b"text/html", b"image/png") + b"\r\nx"
        answers = iter((long, long, other, BAD + b"Content-Length: 9\r\n\r\nx"))

        async def handler(connection: Connection) -> None:
            await connection.request()
            await connection.say(next(answers))

        async with serving(handler) as server, fetching(**PRIVATE) as fetcher:
            url = f"http://127.0.0.1:{server.port}/"
            await fetch(fetcher, url)
            assert (await fetch(fetcher, url, max_bytes=1_000)).fault is Fault.TOO_LARGE
            assert (await fetch(fetcher, url, keep_types=("text/",))).fault is Fault.WRONG_TYPE
            assert (await fetch(fetcher, url)).fault is Fault.RESET

    uvloop.run(test())


def test_a_job_without_libcurl_ends_by_its_time_limit_or_when_it_is_canceled() -> None:
    async def test() -> None:
        async def handler(connection: Connection) -> None:
            await connection.request()
            if len(server.requests) == 1:
                await connection.say(BAD + b"\r\n")
                return
            await connection.closed_by_client()

        async with serving(handler) as server, fetching(**PRIVATE) as fetcher:
            url = f"http://127.0.0.1:{server.port}/"
            await fetch(fetcher, url)
            assert (await fetch(fetcher, url, timeout_s=0.3)).fault is Fault.TIMEOUT
            server.asked.clear()
            wanted = job(url)
            ended = begin(fetcher, wanted)
            await server.asked.wait()
            fetcher.cancel(wanted.id)
            assert (await ended).fault is Fault.CANCELLED
            async with asyncio.timeout(5):
                await server.closed.wait()
            assert fetcher.in_flight == 0

    uvloop.run(test())


def test_certificates_are_checked_without_libcurl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))

    async def test() -> None:
        async with (
            serving(answering(BAD + b"\r\nhello"), ssl=authority.context("a.test")) as server,
            fetching(resolve=(f"*.test=127.0.0.1:{server.port}",)) as fetcher,
        ):
            assert (await fetch(fetcher, "https://a.test/")).fault is Fault.PROTOCOL
            again = await fetch(fetcher, "https://a.test/")
            assert (again.fault, again.body) == (None, b"hello")
            # The certificate is of another name.
            fetcher._malformed["https://b.test"] = None
            assert (await fetch(fetcher, "https://b.test/")).fault is Fault.TLS
        assert len(server.requests) == 2

    uvloop.run(test())


def test_a_page_with_a_malformed_header_is_a_page_of_the_crawl(tmp_path: Path) -> None:
    async def test() -> None:
        async def handler(connection: Connection) -> None:
            head = await connection.request()
            missing = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"
            page = BAD + b'\r\n<a href="/next">x</a>'
            await connection.say(missing if b"robots.txt" in head else page)

        async with serving(handler) as server:
            folder = CrawlFolder(tmp_path, resolve=[f"*.small.test=127.0.0.1:{server.port}"])
            await asyncio.to_thread(folder.crawl, "http://one.small.test/")
        asked = [head.split(b" ")[1] for head in server.requests]
        # Only the first page is requested twice: afterwards the origin is known.
        assert asked == [b"/robots.txt", b"/", b"/", b"/next"]
        assert folder.pages() == {"http://one.small.test/", "http://one.small.test/next"}
        assert folder.run("audit")["overlaps"] == 0

    uvloop.run(test())
