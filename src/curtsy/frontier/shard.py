"""One shard of the frontier: its epoch, its connection, its scripts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

import hiredis
import redis.asyncio as aioredis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, RedisError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from curtsy.errors import EpochLost, FrontierUnavailable
from curtsy.frontier import scripts
from curtsy.frontier.clock import ServerClock, boot

#: version of the key map in lua/preamble.lua; another version in the server counts as loss
LAYOUT = "2"


class _OtherRun(RedisError):
    """The server behind this connection is not the run that the epoch belongs to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochFacts:
    """What stands in the server under {shard}:epoch, and who the server is."""

    number: int | None
    #: the epoch belongs to this run of the server and to this layout
    valid: bool
    run_id: str


class Shard:
    """Calls scripts under one epoch. Never retries by itself: a lost reply may have been carried out."""

    def __init__(self, number: int, url: str, timeout_s: float = 5.0) -> None:
        self.number = number
        self.tag = f"{{s{number:02d}}}"
        self.epoch_key = f"{self.tag}:epoch"
        #: None until the epoch was adopted
        self.epoch: int | None = None
        #: an epoch whose times lie because the server's clock stepped: it must be rebuilt
        self.spoilt: int | None = None
        self.calls = 0
        self._run_id: str | None = None
        self._clock = ServerClock()
        self._url = url
        self._timeout_s = timeout_s
        self._options: dict[str, Any] = {
            # The client would limit sending by asyncio.wait_for, which before Python 3.12 swallows a cancellation that
            # comes meanwhile: a task that is to end would go on for ever. `_talking` is the limit instead.
            "socket_timeout": None,
            "socket_connect_timeout": timeout_s,
            "retry": Retry(NoBackoff(), 0),
        }
        self._redis: Any = aioredis.Redis.from_url(
            url, redis_connect_func=self._on_connect, max_connections=32, **self._options
        )

    async def close(self) -> None:
        await self._redis.aclose()

    async def _on_connect(self, connection: Any) -> None:
        """Every connection compares the server's run_id when it opens: a restart or failover is a loss."""
        await connection.on_connect()
        await connection.send_command("INFO", "server")
        run_id = _run_id_of(await connection.read_response())
        if self._run_id is not None and run_id != self._run_id:
            raise _OtherRun(f"run_id was {self._run_id}, is {run_id}")
        # The asynchronous client packs in Python, word by word: dear for a script with hundreds of them.
        connection.pack_command = _packed

    async def facts(self) -> EpochFacts:
        """Reads the epoch as it stands, without adopting it. Calls under way are not disturbed, unless the server is
        another run than the one we knew: then nothing is valid until an epoch is adopted."""
        async with self._talking():
            async with self._unchecked() as client, client.pipeline(transaction=True) as pipe:
                # On one connection: a restart in between would marry the old run_id to the new server's memory.
                pipe.info("server")
                pipe.hmget(self.epoch_key, ["n", "run_id", "layout"])
                info, raw = await pipe.execute()
            run_id = _run_id_of(info)
            if run_id != self._run_id:
                self.epoch = self._run_id = None
                await self._redis.connection_pool.disconnect()
        number = int(raw[0]) if raw[0] else None
        valid = number is not None and raw[1] == run_id.encode() and raw[2] == LAYOUT.encode()
        return EpochFacts(number=number, valid=valid, run_id=run_id)

    def _unchecked(self) -> Any:
        """A client of whatever server answers now; the others refuse to talk to another run than the one we knew."""
        return aioredis.Redis.from_url(self._url, single_connection_client=True, **self._options)

    def adopt(self, epoch: int, run_id: str) -> None:
        self.epoch, self._run_id = epoch, run_id
        self._clock = ServerClock()

    async def policy(self) -> str:
        """The server's maxmemory-policy; 'unknown' where CONFIG is not allowed."""
        try:
            async with self._talking(), self._unchecked() as client:
                answer = await client.config_get("maxmemory-policy")
        except ResponseError:
            return "unknown"
        value = answer.get("maxmemory-policy", answer.get(b"maxmemory-policy", "unknown"))
        return value.decode() if isinstance(value, bytes) else str(value)

    async def begin_epoch(self, epoch: int, run_id: str, quiet_s: float, *, over: int | None) -> int:
        """Writes a new epoch in place of the number `over`, read before the new one was allotted; everything older is
        refused from here on. Not adopted yet. Raises EpochLost if another one was begun since; answers the server's ms.
        """
        # Nobody may take what an old snapshot left in this run of the server for the epoch that it knew.
        self.epoch, self._run_id = None, run_id
        with _translating():
            now_ms = await self._redis.eval(
                scripts.source("begin"), 1, self.epoch_key, "" if over is None else over, epoch, run_id, LAYOUT,
                int(quiet_s * 1000),
            )  # fmt: skip
        return int(now_ms)

    async def unlink_older(self) -> int:
        """Removes the keys of older epochs, a few hundred at a time."""
        current = f"{self.tag}:e{self.epoch}:".encode()
        cursor, removed = 0, 0
        while True:
            async with self._talking():
                cursor, keys = await self._redis.scan(cursor, match=f"{self.tag}:e*:*", count=500)
                old = [key for key in keys if not key.startswith(current)]
                if old:
                    removed += await self._redis.unlink(*old)
            if cursor == 0:
                return removed

    async def call(self, name: str, *args: str | int | float | bytes) -> list[Any]:
        """Runs a script under this shard's epoch. Raises EpochLost or FrontierUnavailable."""
        if self.epoch is None:
            raise EpochLost("No epoch is adopted yet.")
        before = boot()
        self.calls += 1
        async with self._talking():
            reply = await self._eval(name, args)
        try:
            self._clock.observe(before, boot(), int(reply[0]))
        except EpochLost:
            self.spoilt = self.epoch
            raise
        return reply

    async def _eval(self, name: str, args: tuple[str | int | float | bytes, ...]) -> list[Any]:
        words = (1, self.epoch_key, self.epoch, *args)
        try:
            return await self._redis.execute_command("EVALSHA", scripts.digest(name), *words)  # type: ignore[no-any-return]
        except NoScriptError:
            return await self._redis.execute_command("EVAL", scripts.source(name), *words)  # type: ignore[no-any-return]

    async def reaped(self, limit: int) -> list[bytes]:
        return await self.command("LRANGE", "%reaped", 0, limit - 1)  # type: ignore[no-any-return]

    async def forget_reaped(self, items: list[bytes]) -> None:
        key = f"{self.tag}:e{self.epoch}:reaped"
        async with self._talking(), self._redis.pipeline(transaction=False) as pipe:
            for item in items:
                pipe.lrem(key, 1, item)
            await pipe.execute()

    async def future_times(self) -> list[tuple[str, int, int]]:
        """(host, not asked before, blocked until) in ms of the hosts that may not be asked yet."""
        found: list[tuple[str, int, int]] = []
        cursor = 0
        while True:
            cursor, keys = await self.command("SCAN", cursor, "MATCH", "%host:*", "COUNT", 1000)
            names = [key.decode().split(":host:", 1)[1] for key in keys]
            for item in (await self.call("future", *names))[1] if names else ():
                host, due, blocked = item.decode().split("\x1f")
                found.append((host, int(due), int(blocked)))
            if int(cursor) == 0:
                return found

    async def command(self, *words: str | int | float) -> Any:
        """A plain read command on a key of this epoch; `%` in a word stands for the epoch's prefix."""
        prefix = f"{self.tag}:e{self.epoch}:"
        async with self._talking():
            return await self._redis.execute_command(
                *[w.replace("%", prefix) if isinstance(w, str) else w for w in words]
            )

    @asynccontextmanager
    async def _talking(self) -> AsyncIterator[None]:
        """One exchange with the server: it takes a limited time, and its errors are those that a caller can act on."""
        with _translating():
            async with asyncio.timeout(self._timeout_s):
                yield


def _packed(*words: Any) -> list[bytes]:
    """A command as it is sent; its name may be of two words."""
    return [hiredis.pack_command((*words[0].split(), *words[1:]))]


def _run_id_of(info: Any) -> str:
    if isinstance(info, dict):
        return str(info["run_id"])
    text = info.decode() if isinstance(info, bytes) else str(info)
    return next(line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("run_id:"))


@contextmanager
def _translating() -> Iterator[None]:
    """Errors of the client become the two that a caller can act on."""
    try:
        yield
    except _OtherRun as error:
        raise EpochLost(f"The frontier server was restarted ({error}).") from error
    except (RedisConnectionError, RedisTimeoutError, OSError) as error:
        said = str(error).rstrip(".") or "it took too long"
        raise FrontierUnavailable(
            f"The frontier server (Valkey/Redis) does not answer: {said}. Check that it runs and frontier_url is right."
        ) from error
    except ResponseError as error:
        if "EPOCH" in str(error):
            raise EpochLost(f"Another epoch rules the frontier ({error}).") from error
        raise
