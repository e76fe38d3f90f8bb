"""Names to addresses: our own lookups, off the loop, cached by TTL, at most 64 at a time.

libcurl never resolves names: the guard checks the addresses found here, and they are pinned to the transfer.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pycares

from curtsy.core.outcome import Fault
from curtsy.core.settings import Settings
from curtsy.fetch.guard import is_address

_MAX_LOOKUPS = 64
_MIN_TTL_S, _MAX_TTL_S = 60.0, 3600.0
_FAILURE_TTL_S = 60.0
#: less than the time before the second lookup (rules/politeness.py)
_MISSING_TTL_S = 4.0
#: about 20 MB; over it the oldest tenth is dropped
_MAX_CACHED = 50_000
_MAX_RULED = 10_000

#: time of one attempt; c-ares doubles it for the second, so a dead resolver costs 6 s of a slot
_TRY_S = 2.0
_TRIES = 2

_NO_NAME = (pycares.errno.ARES_ENOTFOUND, pycares.errno.ARES_ENODATA)
#: the name itself is invalid in DNS
_BAD_NAME = (pycares.errno.ARES_EBADNAME, pycares.errno.ARES_EFORMERR)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The result of resolving a name: addresses, or the fault."""

    addresses: tuple[str, ...] = ()
    fault: Fault | None = None
    detail: str = ""
    #: by the boot clock
    expires: float = 0.0


Done = Callable[[Answer], None]


class Resolver:
    """Answers arrive on the loop. Concurrent requests for one name share a lookup."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop, hosts_file: Path = Path("/etc/hosts")):
        self._loop = loop
        self._servers = settings.dns_servers
        self._rules = [_parse_rule(rule) for rule in settings.resolve]
        #: host -> its rule
        self._ruled: dict[str, tuple[str, int] | None] = {}
        self._hosts = _read_hosts(hosts_file)
        self._cache: dict[str, Answer] = {}
        self._waiting: dict[str, list[Done]] = {}
        self._queue: deque[str] = deque()
        self._active = 0
        self._channel: Any = None
        self._ipv6 = _has_ipv6()
        self._closed = False

    def rule(self, host: str) -> tuple[str, int] | None:
        """The address and port that the operator set for this host by --resolve."""
        if not self._rules:
            return None
        try:
            return self._ruled[host]
        except KeyError:
            if len(self._ruled) > _MAX_RULED:
                self._ruled.clear()
            found = (rule[1:] for rule in self._rules if fnmatchcase(host.rstrip("."), rule[0]))
            rule = self._ruled[host] = next(found, None)
            return rule

    def cached(self, host: str) -> Answer | None:
        """The cached answer, if there is one."""
        answer = self._cache.get(host)
        if answer is not None:
            return answer if answer.expires > _now() else None
        if is_address(host):
            return Answer(addresses=(host,), expires=float("inf"))
        if (known := self._hosts.get(host.rstrip("."))) is not None:
            return Answer(addresses=known, expires=float("inf"))
        return None

    def lookup(self, host: str, done: Done) -> None:
        """Calls `done` once with the answer, later on the loop."""
        if (answer := self.cached(host)) is not None:
            self._loop.call_soon(done, answer)
        elif host in self._waiting:
            self._waiting[host].append(done)
        else:
            self._waiting[host] = [done]
            self._queue.append(host)
            self._pump()

    def _pump(self) -> None:
        while self._queue and self._active < _MAX_LOOKUPS and not self._closed:
            self._active += 1
            _Lookup(self, self._queue.popleft()).begin(self._ipv6)

    def query(self, host: str, kind: int, done: Callable[[Any, int | None], None]) -> None:
        """Asks the DNS; `done` runs on the loop."""
        if self._channel is None:
            # Created late: its thread would not survive a fork.
            self._channel = pycares.Channel(
                timeout=_TRY_S,
                tries=_TRIES,
                flags=pycares.ARES_FLAG_NOSEARCH | pycares.ARES_FLAG_EDNS,
                servers=self._servers or None,
            )
        self._channel.query(host, kind, callback=lambda result, error: self._to_loop(done, result, error))

    def _to_loop(self, done: Callable[[Any, int | None], None], result: Any, error: int | None) -> None:
        if self._closed:
            return
        try:
            self._loop.call_soon_threadsafe(done, result, error)
        except RuntimeError:
            # The loop was closed: no caller waits any more.
            self._closed = True

    def finish(self, host: str, answer: Answer) -> None:
        self._active -= 1
        if self._closed:
            return
        self._cache.pop(host, None)
        self._cache[host] = answer
        if len(self._cache) > _MAX_CACHED:
            for old in list(self._cache)[: _MAX_CACHED // 10]:
                del self._cache[old]
        for done in self._waiting.pop(host, ()):
            done(answer)
        self._pump()

    def close(self) -> None:
        self._closed = True
        self._queue.clear()
        self._waiting.clear()
        if self._channel is not None:
            self._channel.close()
            self._channel = None


class _Lookup:
    """The lookup of one name: A, and AAAA if this machine has IPv6 or there is no A."""

    def __init__(self, resolver: Resolver, host: str):
        self._resolver = resolver
        self._host = host
        self._pending = 0
        self._found: list[tuple[str, int]] = []
        self._errors: list[int] = []
        self._asked_v6 = False

    def begin(self, ipv6: bool) -> None:
        self._pending = 2 if ipv6 else 1
        self._asked_v6 = ipv6
        self._ask(pycares.QUERY_TYPE_A)
        if ipv6:
            self._ask(pycares.QUERY_TYPE_AAAA)

    def _ask(self, kind: int) -> None:
        try:
            self._resolver.query(self._host, kind, self._answered)
        except (pycares.AresError, ValueError, UnicodeError):
            self._resolver._loop.call_soon(self._answered, None, pycares.errno.ARES_EBADNAME)

    def _answered(self, result: Any, error: int | None) -> None:
        self._pending -= 1
        if error is not None:
            self._errors.append(error)
        else:
            self._found += [(r.data.addr, r.ttl) for r in result.answer if r.type in _ADDRESS_TYPES]
        if self._pending:
            return
        # A name without A may have AAAA; one that does not exist has neither.
        if not self._found and not self._asked_v6 and self._errors in ([], [pycares.errno.ARES_ENODATA]):
            self._asked_v6 = True
            self._pending = 1
            self._ask(pycares.QUERY_TYPE_AAAA)
            return
        self._resolver.finish(self._host, self._answer())

    def _answer(self) -> Answer:
        now = _now()
        if self._found:
            ttl_s = min(max(min(ttl for _, ttl in self._found), _MIN_TTL_S), _MAX_TTL_S)
            return Answer(addresses=tuple(dict.fromkeys(a for a, _ in self._found)), expires=now + ttl_s)
        # If one query failed, the lookup failed, even if the other one found nothing.
        bad = [e for e in self._errors if e not in _NO_NAME and e not in _BAD_NAME]
        fault = Fault.DNS_FAIL if bad else Fault.DNS_NONE
        code = (bad or self._errors or [pycares.errno.ARES_ENODATA])[0]
        detail = f"DNS: {self._host}: {_words(code)}"
        return Answer(fault=fault, detail=detail, expires=now + (_FAILURE_TTL_S if bad else _MISSING_TTL_S))


_ADDRESS_TYPES = (pycares.QUERY_TYPE_A, pycares.QUERY_TYPE_AAAA)


def _words(code: int) -> str:
    text: str | bytes = pycares.errno.strerror(code)
    return text.decode() if isinstance(text, bytes) else text


def _now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _parse_rule(rule: str) -> tuple[str, str, int]:
    pattern, _, target = rule.partition("=")
    address, _, port = target.rpartition(":")
    return pattern.lower(), address.strip("[]"), int(port)


def _read_hosts(path: Path) -> dict[str, tuple[str, ...]]:
    hosts: dict[str, tuple[str, ...]] = {}
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError:
        return hosts
    for line in lines:
        address, *names = line.partition("#")[0].split() or [""]
        if is_address(address):
            for name in names:
                hosts[name.lower()] = (*hosts.get(name.lower(), ()), address)
    return hosts


def _has_ipv6() -> bool:
    """Whether there is a route to the IPv6 internet. Connecting a datagram socket sends nothing."""
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.connect(("2001:4860:4860::8888", 53))
    except OSError:
        return False
    return True
