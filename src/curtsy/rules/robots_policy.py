"""Every decision about robots.txt (RFC 9309 2.3.1, 2.4): what a response means, how long it is valid, what may be
fetched.

Pure. `rules/robots.py` parses the file; all other code uses this module.

The stored verdict of an origin is one of
    rules              its robots.txt was fetched: the body decides
    allow              the origin has no robots.txt (4xx, or a broken redirect): everything is allowed
    denied             the operator's deny list names the host: its robots.txt was not fetched
    forbidden_address  the guard refused the host's address: nothing of the origin is fetched
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

from curtsy.core.model import RobotsState, hot_value
from curtsy.core.outcome import Fault, HostEffect, Outcome
from curtsy.core.settings import Settings
from curtsy.rules.decide import UNCOUNTED, cause_of, redirect_target
from curtsy.rules.politeness import backoff_ms
from curtsy.rules.robots import MAX_BYTES, Robots

DENIED = "denied"
_MAX_REDIRECTS = 5
#: how long a redirected robots.txt may take before its origin asks again
FOLLOW_MS = 60_000
#: an origin that may not be fetched is checked again after this long
UNASKED_MS = 60_000
#: an origin whose robots.txt fails, while other origins of its host have theirs, is requested less often by this factor
_BESIDE_OTHERS = 10
_LEAST_PAUSE_MS = 250
#: third parties of a rendered page: a response is cached for at most this long, a failure for this long
_THIRD_PARTY_S, _THIRD_PARTY_FAILURE_S = 3600.0, 60.0


@hot_value()
class RobotsDecision:
    """What a response for robots.txt means for its origin."""

    #: `rules` (parse the body) | `allow` | `forbid` (for now: ask again) | `follow` (ask `location`) |
    #: `retry` (nothing was sent, and the host is not the cause) | `skip` (request nothing from the origin, for
    #: `reason`)
    verdict: str
    reason: str = ""
    location: str | None = None

    @property
    def is_answer(self) -> bool:
        """The origin's rules are known now."""
        return is_known(self.verdict)


def decide_robots(outcome: Outcome, hops: int = 0) -> RobotsDecision:
    """`hops`: redirects that led here."""
    status, fault = outcome.status, outcome.fault
    if fault in UNCOUNTED:
        return RobotsDecision(verdict="retry", reason=str(fault))
    if fault is Fault.FORBIDDEN_ADDRESS and not hops:
        return RobotsDecision(verdict="skip", reason=str(fault))
    if 300 <= status < 400 and status != 304:
        location = redirect_target(outcome)
        if location is None or hops >= _MAX_REDIRECTS:
            return RobotsDecision(verdict="allow", reason="bad_redirect" if location is None else "too_many_redirects")
        return RobotsDecision(verdict="follow", location=location)
    if 400 <= status < 500 and status != 429:
        return RobotsDecision(verdict="allow", reason=f"http_{status}")
    # A body over the limit is not a fault here: the part that fits is parsed.
    if 200 <= status < 300 and status != 206 and fault in (None, Fault.TOO_LARGE):
        return RobotsDecision(verdict="rules")
    return RobotsDecision(verdict="forbid", reason=str(fault) if fault is not None else cause_of(status))


def not_asked(reason: str, *, redirected: bool) -> RobotsDecision:
    """Nothing of the origin is fetched. If another origin's robots.txt redirects here, that one stays unknown."""
    return RobotsDecision(verdict="forbid" if redirected else "skip", reason=reason)


def host_effect(
    decision: RobotsDecision, effect: HostEffect, failures: int, settings: Settings, rng: Random
) -> HostEffect:
    """The effect of the answer on its host. An unusable answer (429, 5xx) counts as a failure of the host: the pause
    grows with each one.
    """
    if decision.verdict != "forbid" or effect.failures > failures:
        return effect
    return replace(effect, failures=failures + 1, block_ms=max(effect.block_ms, backoff_ms(failures, settings, rng)))


def pause_ms(decision: RobotsDecision, block_ms: int, settings: Settings, *, others_known: bool) -> int:
    """The time until robots.txt of an origin without rules is requested again. `others_known`: other origins of its
    host have rules.
    """
    pause = max(_LEAST_PAUSE_MS, block_ms)
    if decision.verdict == "forbid":
        times = _BESIDE_OTHERS if others_known else 1
        pause = max(pause, times * int(settings.backoff_s * 1000))
    return pause


def expires_ms(fetched_ms: int, settings: Settings) -> int:
    return fetched_ms + int(settings.robots_ttl_s * 1000)


def body_of(decision: RobotsDecision, outcome: Outcome) -> bytes:
    """The part of the answer that is stored and parsed."""
    return outcome.body[:MAX_BYTES] if decision.verdict == "rules" else b""


def is_known(verdict: str) -> bool:
    """The verdict comes from an answer of the origin, not from settings or the operator."""
    return verdict in ("rules", "allow")


def parsed(state: RobotsState | None) -> Robots | None:
    """The stored robots.txt; None: the origin has none, or it was not fetched."""
    return Robots.parse(state.body) if state is not None and state.verdict == "rules" else None


def rules_of(state: RobotsState) -> Robots:
    return parsed(state) or Robots.ALLOW_ALL


def refusal(verdict: str, rules: Robots, url: str, agent: str) -> str | None:
    """Why the URL must not be fetched under the stored rules of its origin; None: it may be."""
    if verdict == Fault.FORBIDDEN_ADDRESS:
        return verdict
    return None if rules.allows(url, agent) else "robots"


def allows(verdict: str, rules: Robots, url: str, agent: str) -> bool:
    """Whether a rendered page may load the URL. Without known rules, nothing is allowed."""
    return is_known(verdict) and rules.allows(url, agent)


def third_party_rules(decision: RobotsDecision, outcome: Outcome, ttl_s: float) -> tuple[Robots, float]:
    """(rules, seconds to keep them) for another site that a rendered page loads from. A failure forbids."""
    if not decision.is_answer:
        return Robots.FORBID_ALL, _THIRD_PARTY_FAILURE_S
    rules = Robots.parse(outcome.body) if decision.verdict == "rules" else Robots.ALLOW_ALL
    return rules, min(ttl_s, _THIRD_PARTY_S)
