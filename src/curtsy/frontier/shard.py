"""One shard of the frontier: its epoch, its connection, its scripts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from curtsy.core.clock import ServerClock, boot
from curtsy.core.errors import EpochLost
from curtsy.core.model import hot_value
from curtsy.frontier import scripts
from curtsy.frontier.client import Client, ServerError
from curtsy.frontier.connection import Link, run_id_of
from curtsy.frontier.server_errors import OtherRun
from curtsy.frontier.servers import Node, Servers

#: version of the key map in lua/preamble.lua; another version in the server counts as loss
LAYOUT = "6"
#: with Sentinel or a cluster, nothing is leased under an epoch that the store confirmed longer ago than this
CONFIRMED_S = 10.0


@hot_value()
class EpochFacts:
    """The value of {shard}:epoch, and which run of the server answers."""

    number: int | None
    #: last lease counter
    counter: int
    #: the epoch belongs to this run of the server and to this layout
    valid: bool
    run_id: str


class Shard:
    """Calls scripts under one epoch. Never retries by itself: a lost reply may have been carried out."""

    def __init__(self, number: int, servers: Servers | str, timeout_s: float = 5.0) -> None:
        self.number = number
        self.tag = f"{{s{number:02d}}}"
        self.epoch_key = f"{self.tag}:epoch"
        #: None until `use_epoch`
        self.epoch: int | None = None
        #: an epoch that must be rebuilt: the server's clock stepped, or its keys moved to another server
        self.lost_epoch: int | None = None
        #: boot clock before the store last confirmed this epoch as current
        self.confirmed: float = 0.0
        #: how often crawls were paused or ended here, as last reported
        self.halts = 0
        self.calls = 0
        #: the newest change known to this process, in ms, and its epoch
        self._known_ms, self._known_epoch = 0, -1
        self._run_id: str | None = None
        self._clock = ServerClock()
        self._servers = Servers(servers) if isinstance(servers, str) else servers
        self._link = Link(self._servers, self.tag, self._check_run, timeout_s)

    async def close(self) -> None:
        await self._link.close()

    def _check_run(self, run_id: str) -> None:
        if self._run_id is not None and run_id != self._run_id:
            raise OtherRun(f"run_id was {self._run_id}, is {run_id}")

    @property
    def may_lease(self) -> bool:
        """A server that was replaced may still answer: only the store knows which epoch is current."""
        return not self._servers.moves or boot() - self.confirmed <= CONFIRMED_S

    async def facts(self) -> EpochFacts:
        """Reads the epoch of the server without using it. Calls in progress continue, unless another run of
        the server answers: then every call fails until `use_epoch`.
        """
        if self._servers.moves:
            self._link.look_up_again()
        async with self._link.separate_exchange() as client:
            # On one connection: a restart in between would combine the old run_id with the new server's memory.
            epoch = ("HMGET", self.epoch_key, "n", "run_id", "layout", "ctr")
            replies = await client.commands([("MULTI",), ("INFO", "server"), epoch, ("EXEC",)])
        info, raw = replies[-1]
        run_id = run_id_of(info)
        if run_id != self._run_id:
            self.epoch = self._run_id = None
            await self._link.disconnect()
        number = int(raw[0]) if raw[0] else None
        valid = number is not None and raw[1] == run_id.encode() and raw[2] == LAYOUT.encode()
        return EpochFacts(number=number, counter=int(raw[3] or 0), valid=valid, run_id=run_id)

    def use_epoch(self, epoch: int, run_id: str, *, confirmed: float | None = None) -> None:
        """Calls run under this epoch from now on. `confirmed`: the boot clock before the store confirmed it as
        current.
        """
        if epoch != self.epoch:
            self.halts = 0
        if epoch != self._known_epoch:
            self._known_epoch, self._known_ms = epoch, 0
        self.epoch, self._run_id = epoch, run_id
        self._clock = ServerClock()
        if confirmed is not None:
            self.confirm(confirmed)

    def confirm(self, at: float) -> None:
        """The store confirmed this shard's epoch as current; `at` is the boot clock before the query."""
        self.confirmed = at

    def note_halts(self, halts: int) -> None:
        self.halts = halts

    def drop_epoch(self) -> None:
        """Another epoch is current: every call is refused until `use_epoch`."""
        self.epoch = None

    async def policies(self) -> dict[Node, str]:
        """maxmemory-policy of all servers of the frontier that answer."""
        return await self._link.policies()

    async def where(self) -> str:
        return await self._link.where()

    async def begin_epoch(self, epoch: int, run_id: str, quiet_s: float, *, over: int | None) -> int:
        """Replaces the epoch `over`, which was read before the new number was assigned. The server refuses older ones.

        The new epoch is not in use yet. Raises EpochLost if another process began one meanwhile. Returns the server's
        ms.
        """
        # Keys from an old snapshot in this run of the server must not be mistaken for the known epoch.
        self.epoch, self._run_id = None, run_id
        async with self._link.exchange() as client:
            now_ms = await client.command(
                "EVAL", scripts.source("begin"), 1, self.epoch_key, "" if over is None else over, epoch, run_id, LAYOUT,
                int(quiet_s * 1000),
            )  # fmt: skip
        return int(now_ms)

    async def unlink_older(self) -> int:
        """Removes the keys of older epochs, a few hundred at a time."""
        current = f"{self.tag}:e{self.epoch}:".encode()
        cursor, removed = 0, 0
        while True:
            async with self._link.exchange() as client:
                cursor, keys = await client.command("SCAN", cursor, "MATCH", f"{self.tag}:e*:*", "COUNT", 500)
                old = [key for key in keys if not key.startswith(current)]
                if old:
                    removed += await client.command("UNLINK", *old)
            if int(cursor) == 0:
                return removed

    async def call(self, name: str, *args: str | int | float | bytes) -> list[Any]:
        """Runs a script under this shard's epoch. Raises EpochLost or FrontierUnavailable."""
        if self.epoch is None:
            raise EpochLost("No epoch is in use yet.")
        before, epoch = boot(), self.epoch
        self.calls += 1
        async with self._link.exchange() as client:
            reply = await self._eval(client, name, args)
        now_ms = int(reply[0])
        try:
            self._clock.observe(before, boot(), now_ms)
        except EpochLost:
            self.lost_epoch = self.epoch
            raise
        if now_ms > self._known_ms and name not in scripts.READS and epoch == self._known_epoch:
            self._known_ms = now_ms
        return reply

    async def _eval(self, client: Client, name: str, args: tuple[str | int | float | bytes, ...]) -> list[Any]:
        words = (1, self.epoch_key, f"{self.epoch}:{self._known_ms}", *args)
        try:
            try:
                return await client.command("EVALSHA", scripts.digest(name), *words)  # type: ignore[no-any-return]
            except ServerError as error:
                if error.code != "NOSCRIPT":
                    raise
                return await client.command("EVAL", scripts.source(name), *words)  # type: ignore[no-any-return]
        except ServerError as error:
            if "went back in time" in str(error):
                self.lost_epoch = self.epoch
                raise EpochLost("The frontier server holds an old snapshot: it lacks changes that it made.") from error
            if "non local key" not in str(error):
                raise
            # Keys of this shard are moving to another server: the script may have done half of its work.
            self.lost_epoch = self.epoch
            raise EpochLost(f"The frontier's keys are moving to another server ({error}).") from error

    async def reaped(self, limit: int) -> list[bytes]:
        return await self.command("LRANGE", "%reaped", 0, limit - 1)  # type: ignore[no-any-return]

    async def forget_reaped(self, items: list[bytes]) -> None:
        key = f"{self.tag}:e{self.epoch}:reaped"
        async with self._link.exchange() as client:
            await client.commands([("LREM", key, 1, item) for item in items])

    async def delayed(self, before: str) -> AsyncIterator[tuple[Any, int]]:
        """(member, ms) of the retries whose member starts with `before`. Reads in parts, so the server is not
        blocked.
        """
        pattern = "".join(f"\\{sign}" if sign in "*?[]\\" else sign for sign in before) + "*"
        cursor = 0
        while True:
            cursor, found = await self.command("ZSCAN", "%delayed", cursor, "MATCH", pattern, "COUNT", 1000)
            for member, score in zip(found[::2], found[1::2], strict=True):
                yield member, int(float(score))
            if int(cursor) == 0:
                return

    async def future_times(self) -> list[tuple[str, int, int]]:
        """(host, next request, blocked until) in ms, of the hosts that may not receive a request yet."""
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
        """Runs a plain read command; `%` in a word is replaced by the key prefix of this epoch."""
        prefix = f"{self.tag}:e{self.epoch}:"
        async with self._link.exchange() as client:
            return await client.command(*[w.replace("%", prefix) if isinstance(w, str) else w for w in words])
