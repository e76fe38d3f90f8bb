"""Updates of hosts from a group of results, in the commit's transaction.

They concern times and delays, robots rules, and which hosts fail or answer again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from curtsy.core.model import Chain, Entry, HostState, Kind, RobotsState, hot_value
from curtsy.core.outcome import Fault
from curtsy.core.settings import Settings
from curtsy.crawl.results import Result, Returned
from curtsy.frontier.messages import Rules
from curtsy.rules import robots_policy
from curtsy.rules.politeness import robots_delay_ms
from curtsy.rules.robots import Robots
from curtsy.rules.robots_policy import RobotsDecision
from curtsy.rules.urls import host_key, origin, short
from curtsy.store import hosts, queues

_MAX_DETAIL = 300
#: a longer URL is cut in such a message
_MAX_URL = 150


@hot_value()
class HostUpdates:
    """What was written about hosts, for the frontier and for the maintenance of this process."""

    rules: Sequence[Rules] = ()
    #: redirected robots.txt files: (crawl, host, 0, entry) to push
    follows: Sequence[tuple[int, str, int, Entry]] = ()
    #: hosts that answer again
    answered: frozenset[str] = frozenset()
    #: hosts that did not answer
    failing: frozenset[str] = frozenset()
    #: (crawl, host) whose host's name does not exist
    nameless: frozenset[tuple[int, str]] = frozenset()


@dataclass(slots=True)
class _Rows:
    """Rows of one group for the store and the frontier."""

    states: dict[str, HostState] = field(default_factory=dict)
    robots: list[RobotsState] = field(default_factory=list)
    rules: list[Rules] = field(default_factory=list)
    follows: list[tuple[int, str, int, Entry]] = field(default_factory=list)


class HostWriter:
    def __init__(self, settings: Settings, failing: Mapping[str, int]) -> None:
        self._settings = settings
        #: hosts that this process knows to fail
        self._failing = failing

    def write(
        self, tx: Any, group: Sequence[Returned], opening: Sequence[tuple[int, str, str]], now_ms: int
    ) -> HostUpdates:
        """`opening`: the queues (crawl, host, lane) that the transaction opens next. All are locked in one order."""
        rows = _Rows()
        for returned in group:
            if returned.times is not None:
                _add_state(rows.states, returned)
            if returned.result.robots is not None:
                self._add_robots(tx, returned, returned.result.robots, rows, now_ms)
        hosts.upsert(tx, rows.states.values())
        hosts.upsert_robots(tx, rows.robots)
        return self._mark_queues(tx, [returned.result for returned in group], rows, opening, now_ms)

    def _mark_queues(
        self, tx: Any, results: Sequence[Result], rows: _Rows, opening: Sequence[tuple[int, str, str]], now_ms: int
    ) -> HostUpdates:
        """Mark the queues of hosts that answer again, that did not answer, and that do not exist."""
        known = self._failing
        answered = {r.lease.host for r in results if _is_answer(r) and (r.lease.failures or r.lease.host in known)}
        failing = {r.lease.host: _failure(r) for r in results if r.effect is not None and r.effect.failures > 0}
        forbid = [r for r in results if r.robots is not None and r.robots.verdict == "forbid"]
        failing |= {self._asked_first(r)[1]: _failure(r) for r in forbid}
        nameless = _nameless(tx, results)
        marked: set[tuple[int, str]] = set()
        unanswered = _unanswered(results)
        if answered or failing or nameless or unanswered:
            marked = queues.mark(
                tx, answered=answered, silent=failing, dead=nameless, unanswered=unanswered, opening=opening,
                now_ms=now_ms,
            )  # fmt: skip
        return HostUpdates(
            rules=rows.rules, follows=rows.follows, answered=frozenset(answered), failing=frozenset(failing),
            nameless=frozenset(marked),
        )  # fmt: skip

    # Rules apply to the origin of the first request, even if its redirects led elsewhere.

    def _add_robots(self, tx: Any, returned: Returned, answer: RobotsDecision, rows: _Rows, now_ms: int) -> None:
        result = returned.result
        where, host = self._asked_first(result)
        if answer.verdict == "follow" and answer.location is not None:
            rows.follows.append(self._follow(result, answer.location, where))
            until_ms = now_ms + robots_policy.FOLLOW_MS
            rows.rules.append(Rules(host=host, origin=where, until_ms=until_ms, fetched_ms=0, pending=True))
        elif answer.verdict == "skip":
            until_ms = now_ms + robots_policy.UNASKED_MS
            rows.robots.append(
                RobotsState(
                    origin=where, host=host, fetched_ms=now_ms, expires_ms=until_ms, status=0, verdict=answer.reason
                )
            )
            rows.rules.append(Rules(host=host, origin=where, until_ms=until_ms, fetched_ms=now_ms))
        elif answer.is_answer:
            self._add_rules(returned, answer, where, host, rows, now_ms)
        else:
            # Forbidden for now, or nothing was sent: the origin asks again after the pause.
            block_ms = result.effect.block_ms if result.effect is not None else 0
            others = answer.verdict == "forbid" and _has_other_rules(tx, host, where)
            pause_ms = robots_policy.pause_ms(answer, block_ms, self._settings, others_known=others)
            rows.rules.append(Rules(host=host, origin=where, until_ms=now_ms + pause_ms, fetched_ms=0, pending=True))

    def _follow(self, result: Result, location: str, where: str) -> tuple[int, str, int, Entry]:
        chain = result.lease.entry.chain
        trail = (*(chain.trail if chain else ()), short(result.fp or b"\0" * 8))
        entry = Entry(url=location, kind=Kind.ROBOTS, chain=Chain(trail=trail, robots_of=where))
        return result.lease.crawl, host_key(location, self._settings.politeness_unit), 0, entry

    def _add_rules(
        self, returned: Returned, answer: RobotsDecision, where: str, host: str, rows: _Rows, now_ms: int
    ) -> None:
        outcome = returned.result.outcome
        assert outcome is not None
        fetched = returned.times.end_ms if returned.times is not None else now_ms
        body = robots_policy.body_of(answer, outcome)
        delay_ms = robots_delay_ms(Robots.parse(body), self._settings.agent, self._settings) or 0
        expires = robots_policy.expires_ms(fetched, self._settings)
        rows.robots.append(
            RobotsState(
                origin=where, host=host, fetched_ms=fetched, expires_ms=expires, status=outcome.status, body=body,
                verdict=answer.verdict,
            )
        )  # fmt: skip
        before = rows.states.get(host) or HostState(host=host)
        rows.states[host] = replace(before, robots_delay_ms=delay_ms)
        rows.rules.append(Rules(host=host, origin=where, until_ms=expires, fetched_ms=fetched, delay_ms=delay_ms))

    def _asked_first(self, result: Result) -> tuple[str, str]:
        """The origin whose robots.txt this is about, and its host."""
        chain = result.lease.entry.chain
        where = chain.robots_of if chain is not None and chain.robots_of else origin(result.lease.entry.url)
        return where, host_key(where + "/", self._settings.politeness_unit)


def _has_other_rules(tx: Any, host: str, where: str) -> bool:
    known = hosts.robots_of_hosts(tx, [host]).get(host, ())
    return any(origin_ != where and robots_policy.is_known(verdict) for origin_, _, _, verdict in known)


def _nameless(tx: Any, results: Sequence[Result]) -> dict[tuple[int, str], str]:
    """Queues of hosts whose name was looked up for robots.txt and does not exist: twice, or three times if the host has
    answered before.
    """
    found = [r.lease for r in results if _has_no_name(r)]
    states = hosts.get_many(tx, {lease.host for lease in found}) if found else {}
    known = {host for host, state in states.items() if state.last_ok_ms}
    return {
        (lease.crawl, lease.host): Fault.DNS_NONE.value for lease in found if lease.failures > (lease.host in known)
    }


def _has_no_name(result: Result) -> bool:
    """The host's name was looked up for its robots.txt, not for the first time, and does not exist."""
    outcome, lease = result.outcome, result.lease
    own = result.robots is not None and lease.entry.chain is None
    return own and outcome is not None and outcome.fault is Fault.DNS_NONE and lease.failures > 0


def _failure(result: Result) -> tuple[str, str]:
    """The fault, or the status that counts as one; and its message, which names the URL unless it is a robots.txt: it
    is shown with every URL of the host.
    """
    outcome, entry = result.outcome, result.lease.entry
    if outcome is None:
        return "", ""
    fault = outcome.fault.value if outcome.fault else f"status_{outcome.status}"
    detail = outcome.detail
    if result.robots is None and entry.kind is not Kind.ROBOTS:
        detail = f"the last request, for {entry.url[:_MAX_URL]}, failed: {detail or fault}"
    return fault, detail[:_MAX_DETAIL]


def _is_answer(result: Result) -> bool:
    """The host answered; if this was its robots.txt, its rules are known now."""
    if result.effect is None or result.effect.failures > 0:
        return False
    return result.robots is None or result.robots.is_answer


def _add_state(states: dict[str, HostState], returned: Returned) -> None:
    times, effect, host = returned.times, returned.result.effect, returned.result.lease.host
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
        last_ok_ms=times.end_ms if _is_answer(returned.result) else before.last_ok_ms,
        robots_delay_ms=before.robots_delay_ms,
    )


def _unanswered(results: Sequence[Result]) -> dict[tuple[int, str], tuple[int, int]]:
    """queue -> responses 429 and 503, and requests without a response."""
    counts: dict[tuple[int, str], tuple[int, int]] = {}
    for result in results:
        outcome = result.outcome
        if outcome is None or outcome.started is None:
            continue
        status = result.answered or outcome.status
        refused, silent = status in (429, 503), not status
        if refused or silent:
            before = counts.get((result.lease.crawl, result.lease.host), (0, 0))
            counts[result.lease.crawl, result.lease.host] = (before[0] + refused, before[1] + silent)
    return counts
