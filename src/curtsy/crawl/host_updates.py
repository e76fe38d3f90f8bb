"""What a group of results says about hosts, in the commit's transaction: their times and delays, the rules of their
origins, who does not answer and who does again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from curtsy.core.model import Chain, Entry, HostState, Kind, RobotsState
from curtsy.core.outcome import Fault
from curtsy.core.settings import Settings
from curtsy.crawl.results import Finished
from curtsy.frontier.messages import Rules
from curtsy.rules.decide import RobotsDecision
from curtsy.rules.politeness import robots_delay_ms
from curtsy.rules.robots import Robots
from curtsy.rules.urls import host_key, origin, short
from curtsy.store import hosts, queues

if TYPE_CHECKING:
    from curtsy.crawl.transaction import Written

#: how long a redirected robots.txt may take before its origin asks anew
_FOLLOW_MS = 60_000
#: an origin whose rules fail while others of its host have theirs is asked so many times more seldom
_BESIDE_OTHERS = 10
#: how long an origin that may not be asked is left without another look
_UNASKED_MS = 60_000


@dataclass(slots=True)
class _Learnt:
    """Rows to be written."""

    states: dict[str, HostState] = field(default_factory=dict)
    rules: list[RobotsState] = field(default_factory=list)


class Lessons:
    def __init__(self, settings: Settings, silent: Mapping[str, int]) -> None:
        self._settings = settings
        #: hosts that this process knows not to answer
        self._silent = silent

    def write(
        self, tx: Any, group: Sequence[Finished], written: Written, opening: Sequence[tuple[int, str, str]]
    ) -> None:
        """`opening`: the queues (crawl, host, lane) that the transaction opens next. All are locked in one order."""
        learnt = _Learnt()
        for done in group:
            if done.times is not None:
                _learn(learnt.states, done)
            if done.robots is not None:
                self._learn_robots(tx, done, done.robots, learnt, written)
        hosts.upsert(tx, learnt.states.values())
        hosts.upsert_robots(tx, learnt.rules)
        self._note_silence(tx, group, written, opening)

    def _note_silence(
        self, tx: Any, group: Sequence[Finished], written: Written, opening: Sequence[tuple[int, str, str]]
    ) -> None:
        """Hosts that did not answer, and those that do again; one that did both in this group answers."""
        known = self._silent
        answered = {d.lease.host for d in group if _is_answer(d) and (d.lease.failures or d.lease.host in known)}
        silent = {d.lease.host: _fault(d) for d in group if d.effect is not None and d.effect.failures > 0}
        forbid = [d for d in group if d.robots is not None and d.robots.verdict == "forbid"]
        silent |= {self._asked_first(d)[1]: _fault(d) for d in forbid}
        nameless = {(d.lease.crawl, d.lease.host): Fault.DNS_NONE.value for d in group if _has_no_name(d)}
        if answered or silent or nameless:
            written.nameless = queues.mark(
                tx, answered=answered, silent=silent, dead=nameless, opening=opening, now_ms=written.now_ms
            )
        written.answered, written.silent = answered, set(silent)

    # Rules hold for the origin that was asked first, wherever its redirects led.

    def _learn_robots(self, tx: Any, done: Finished, answer: RobotsDecision, learnt: _Learnt, written: Written) -> None:
        where, host = self._asked_first(done)
        if answer.verdict == "follow" and answer.location is not None:
            self._follow(done, answer.location, where, host, written)
        elif answer.verdict == "skip":
            until_ms = written.now_ms + _UNASKED_MS
            learnt.rules.append(
                RobotsState(
                    origin=where, host=host, fetched_ms=written.now_ms, expires_ms=until_ms, status=0,
                    verdict=answer.reason,
                )
            )  # fmt: skip
            written.rules.append(Rules(host=host, origin=where, until_ms=until_ms, fetched_ms=written.now_ms))
        elif answer.verdict in ("rules", "allow"):
            self._take_up(done, answer.verdict, where, host, learnt, written)
        else:
            # Forbidden for now, or nothing was asked: the origin asks again when the pause is over.
            pause_ms = max(250, done.effect.block_ms if done.effect is not None else 0)
            if answer.verdict == "forbid":
                times = _BESIDE_OTHERS if _has_other_rules(tx, host, where) else 1
                pause_ms = max(pause_ms, times * int(self._settings.backoff_s * 1000))
            until_ms = written.now_ms + pause_ms
            written.rules.append(Rules(host=host, origin=where, until_ms=until_ms, fetched_ms=0, pending=True))

    def _follow(self, done: Finished, location: str, where: str, host: str, written: Written) -> None:
        chain = done.lease.entry.chain
        trail = (*(chain.trail if chain else ()), short(done.fp or b"\0" * 8))
        entry = Entry(url=location, kind=Kind.ROBOTS, chain=Chain(trail=trail, robots_of=where))
        target = host_key(location, self._settings.politeness_unit)
        written.follows.append((done.lease.crawl, target, 0, entry))
        until_ms = written.now_ms + _FOLLOW_MS
        written.rules.append(Rules(host=host, origin=where, until_ms=until_ms, fetched_ms=0, pending=True))

    def _take_up(self, done: Finished, verdict: str, where: str, host: str, learnt: _Learnt, written: Written) -> None:
        outcome = done.outcome
        assert outcome is not None
        fetched = done.times.end_ms if done.times is not None else written.now_ms
        body = outcome.body[: 500 * 1024] if verdict == "rules" else b""
        delay_ms = robots_delay_ms(Robots.parse(body), self._settings.agent, self._settings) or 0
        expires = fetched + int(self._settings.robots_ttl_s * 1000)
        learnt.rules.append(
            RobotsState(
                origin=where, host=host, fetched_ms=fetched, expires_ms=expires, status=outcome.status, body=body,
                verdict=verdict,
            )
        )  # fmt: skip
        states = learnt.states
        states[host] = replace(states.get(host) or HostState(host=host), robots_delay_ms=delay_ms)
        written.rules.append(Rules(host=host, origin=where, until_ms=expires, fetched_ms=fetched, delay_ms=delay_ms))

    def _asked_first(self, done: Finished) -> tuple[str, str]:
        """The origin whose robots.txt this is about, and its host."""
        chain = done.lease.entry.chain
        where = chain.robots_of if chain is not None and chain.robots_of else origin(done.lease.entry.url)
        return where, host_key(where + "/", self._settings.politeness_unit)


def _has_other_rules(tx: Any, host: str, where: str) -> bool:
    known = hosts.robots_of_hosts(tx, [host]).get(host, ())
    return any(origin_ != where and verdict in ("rules", "allow") for origin_, _, _, verdict in known)


def _has_no_name(done: Finished) -> bool:
    """The name of the host was looked up for its robots.txt, not for the first time, and does not exist."""
    outcome, lease = done.outcome, done.lease
    own = done.robots is not None and lease.entry.chain is None
    return own and outcome is not None and outcome.fault is Fault.DNS_NONE and lease.failures > 0


def _fault(done: Finished) -> str:
    """In a word: the fault, or the status that counts as one."""
    outcome = done.outcome
    return "" if outcome is None else outcome.fault.value if outcome.fault else f"status_{outcome.status}"


def _is_answer(done: Finished) -> bool:
    """The host answered, and where its rules were asked for, they are known now."""
    if done.effect is None or done.effect.failures > 0:
        return False
    return done.robots is None or done.robots.verdict in ("rules", "allow")


def _learn(states: dict[str, HostState], done: Finished) -> None:
    times, effect, host = done.times, done.effect, done.lease.host
    assert times is not None
    before = states.get(host) or HostState(host=host)
    blocked_ms = times.end_ms + effect.block_ms if effect is not None and effect.block_ms else 0
    changed_ms = effect.adaptive_ms if effect is not None else None
    states[host] = HostState(
        host=host,
        next_ms=max(times.next_ms, before.next_ms),
        blocked_until_ms=max(blocked_ms, before.blocked_until_ms),
        adaptive_ms=before.adaptive_ms if changed_ms is None else changed_ms,
        failures=effect.failures if effect is not None else 0,
        slow=effect.slow if effect is not None else False,
        last_ok_ms=times.end_ms if _is_answer(done) else before.last_ok_ms,
        robots_delay_ms=before.robots_delay_ms,
    )
