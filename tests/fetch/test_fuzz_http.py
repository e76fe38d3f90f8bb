"""10,000 random and mutated byte strings as HTTP responses: no crash, no hang, one callback each, bounded memory."""

from __future__ import annotations

import asyncio
import gzip
import resource
from random import Random

import uvloop
from raw_server import Connection, fetching, job, serving

from curtsy.core.outcome import Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.http import HttpFetcher
from curtsy.rules.decide import decide
from curtsy.rules.politeness import effect
from curtsy.rules.robots_policy import decide_robots

RESPONSES = 10_000
AT_ONCE = 100
MAX_BYTES = 50_000
SETTINGS = Settings()

SEEDS = [
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n3;ext=1\r\nabc\r\n0\r\nTrailer: 1\r\n\r\n",
    b"HTTP/1.1 301 Moved\r\nLocation: http://b.test/\xc3\xa4?x\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 103 Early\r\nLink: <x>\r\n\r\nHTTP/1.1 404 Not Found\r\nSet-Cookie: a=b; Path=/\r\n\r\ngone",
    b"HTTP/1.0 503 Busy\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\nX-Fold: a\r\n b\r\n\r\n",
    b"HTTP/1.1 204 None\r\nContent-Encoding: br\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello" * 100, mtime=0),
    b"HTTP/1.1 200 OK\r\nContent-Encoding: deflate, gzip\r\nContent-Length: 40\r\n\r\n" + b"\x1f\x8b\x08" + bytes(37),
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    b"HTTP/2 200\r\n\r\n",
]
SPLICES = [b"\r\n", b"\r\n\r\n", b"\n", b"\0", b":", b" ", b"HTTP/1.1 ", b"Content-Length: 99999999999999999999\r\n",
           b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"Location: \xff\r\n", b"\xff" * 20,
           b"x" * 5000, b"A: b\r\n" * 300]  # fmt: skip


def response(rng: Random) -> bytes:
    if rng.random() < 0.1:
        return rng.randbytes(rng.randrange(400))
    data = bytearray(rng.choice(SEEDS))
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0:
                data[at : at + 1] = bytes([rng.randrange(256)])
            case 1:
                del data[at : at + rng.randrange(1, 20)]
            case 2:
                data[at:at] = rng.choice(SPLICES)
            case 3:
                data[at:at] = rng.choice(SEEDS)
            case 4:
                del data[at:]
    return bytes(data)


class Storm:
    """Keeps jobs in flight until all responses were given."""

    def __init__(self, fetcher: HttpFetcher):
        self._fetcher = fetcher
        self._started = 0
        self.calls: dict[int, int] = {}
        self.faults: dict[str, int] = {}
        self.over = asyncio.get_running_loop().create_future()

    def next(self) -> None:
        self._started += 1
        number = self._started
        # Few hosts: kept connections are used again, and what was left on them comes to light.
        self._fetcher.start(job(f"http://h{number % 50}.test/{number}", max_bytes=MAX_BYTES, timeout_s=2.0), self._done)

    def _done(self, job_id: int, outcome: Outcome) -> None:
        self.calls[job_id] = self.calls.get(job_id, 0) + 1
        word = str(outcome.fault or "none")
        self.faults[word] = self.faults.get(word, 0) + 1
        assert len(outcome.body) <= MAX_BYTES
        assert outcome.status or outcome.fault
        decide(outcome, 0, SETTINGS)
        decide_robots(outcome)
        effect(outcome, 0, None, SETTINGS)
        if self._started < RESPONSES:
            self.next()
        elif not self._fetcher.in_flight:
            self.over.set_result(None)


def test_ten_thousand_broken_responses_do_no_harm() -> None:
    async def test() -> None:
        rng = Random(20_240)
        failures: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: failures.append(context))

        async def handler(connection: Connection) -> None:
            while True:
                await connection.request()
                await connection.say(response(rng))
                if rng.random() < 0.9:
                    return

        async with serving(handler) as server, fetching(resolve=(f"*.test=127.0.0.1:{server.port}",)) as fetcher:
            storm = Storm(fetcher)
            before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            for _ in range(AT_ONCE):
                storm.next()
            async with asyncio.timeout(120):
                await storm.over
            grown_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
        assert failures == []
        assert len(storm.calls) == RESPONSES
        assert set(storm.calls.values()) == {1}
        assert grown_kb < 100_000
        assert storm.faults["none"] > 500
        assert storm.faults[Fault.PROTOCOL] > 500

    uvloop.run(test())
