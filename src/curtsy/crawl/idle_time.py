"""Measures the time in which a worker process has nothing to do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from enum import Enum

from curtsy.core.model import WaitingHost

#: shorter gaps do not count as waiting: a host that is due within this time is worth staying for
GAP_S = 0.05
#: how long a process with nothing to do waits for an event: at first, at most, and how much longer each time
_FIRST_S, _LONGEST_S, _GROWTH = 0.01, 0.25, 1.2
#: hosts that the description of a wait names
_MAX_NAMED = 3


class Doing(Enum):
    """What keeps the worker process busy now."""

    WORK = 0  # requests are in flight or due
    CLOSING = 1  # commits or scans are running, and nothing else
    NOTHING = 2  # nothing is in flight and nothing is due


class IdleTime:
    """Adds up gaps of over 50 ms without work. A gap counts as waiting if nothing at all was in flight."""

    def __init__(self) -> None:
        self.waiting_s = 0.0
        self.closing_s = 0.0
        self._since: dict[Doing, float | None] = {Doing.CLOSING: None, Doing.NOTHING: None}

    def note(self, doing: Doing, now: float) -> None:
        """The process does this from `now` on."""
        for kind, since in self._since.items():
            if kind is doing:
                if since is None:
                    self._since[kind] = now
            elif since is not None:
                self._since[kind] = None
                self._add(kind, now - since)

    def _add(self, kind: Doing, gap_s: float) -> None:
        if gap_s <= GAP_S:
            return
        if kind is Doing.NOTHING:
            self.waiting_s += gap_s
        else:
            self.closing_s += gap_s

    def take(self, now: float) -> tuple[float, float]:
        """(waiting, closing) since the last call; a gap that continues is cut here."""
        self.note(Doing.WORK, now)
        taken = self.waiting_s, self.closing_s
        self.waiting_s = self.closing_s = 0.0
        return taken


class Patience:
    """How long a process waits until it asks the frontier again.

    Its requests, commits and scans wake it. If it has none and nothing is due, another process may list URLs at any
    moment, and no event tells. So it asks soon, then less and less often: after 1.5 s, four times a second.
    """

    def __init__(self) -> None:
        self._next_s = _FIRST_S

    def wait_s(self, *, has_work: bool) -> float:
        if has_work:
            self._next_s = _FIRST_S
            return _LONGEST_S
        wait_s, self._next_s = self._next_s, min(_LONGEST_S, _GROWTH * self._next_s)
        return wait_s


def waiting_hosts(troubled: Mapping[str, tuple[str, float]], now: float) -> tuple[WaitingHost, ...]:
    """Hosts that are blocked because of a fault, soonest first."""
    left = (WaitingHost(host, fault, until - now) for host, (fault, until) in troubled.items() if until > now)
    return tuple(sorted(left, key=lambda one: one.in_s))


def describe_wait(troubled: Mapping[str, tuple[str, float]], due_s: float, now: float) -> str:
    """`waiting for 2 hosts that do not answer: a.test (dns_failed), b.test (timeout); next try in 12 s`."""
    left = waiting_hosts(troubled, now)
    if left:
        hosts = "1 host that does not answer" if len(left) == 1 else f"{len(left):,} hosts that do not answer"
        named = ", ".join(f"{one.host} ({one.cause})" for one in left[:_MAX_NAMED])
        more = ", ..." if len(left) > _MAX_NAMED else ""
        return f"waiting for {hosts}: {named}{more}; next try in {math.ceil(left[0].in_s)} s"
    return f"waiting: the next host is due in {math.ceil(due_s)} s" if due_s > 1 else ""
