"""Politeness after an outcome: how long its host is blocked, how its adaptive delay changes, when it counts as slow.

No I/O. Time and random source are optional arguments: without them, the system clock and one random source of the
process are used. Effects depend on fault, status, headers, duration and the length of the body, never on its content.
"""

from __future__ import annotations

import time
from datetime import UTC
from email.utils import parsedate_to_datetime
from random import Random

from curtsy.core.outcome import Fault, HostEffect, Outcome
from curtsy.core.settings import Settings
from curtsy.rules.robots import Robots

_RNG = Random()

#: Hosts that answer faster than this are not under strain: no delay beyond the configured one, and nothing to store.
_HEALTHY_S = 0.25
#: weight of a new sample in the adaptive delay: four slow answers in a row make up about 70 %
_WEIGHT = 0.25
#: A larger body says more about bandwidth than about the host's strain.
_SAMPLED_BYTES = 1_000_000
#: an adaptive delay that changes by less than this share is not updated, to save the write
_NOTABLE = 0.1

#: A host belongs in the slow lane from this many failures in a row, or from this smoothed latency on. It leaves
#: automatically: one success ends the failures, and each fast answer reduces the latency by a quarter.
_SLOW_FAILURES = 2
_SLOW_S = 5.0

#: A name that does not exist is looked up again after the first time (it may just be being set up), and after later
#: times. The resolver forgets a missing name sooner than that.
MISSING_NAME_MS = 5_000
MISSING_AGAIN_MS = 61_000

#: the host is due again this soon after its address was found busy
_BUSY_RETRY_MS = 250

#: the host asks for fewer requests
_BACK_OFF_STATUS = (429, 503)
#: the host's reverse proxy cannot reach its backend
_GATEWAY_STATUS = (502, 504)
_HOST_FAULTS = (Fault.DNS_NONE, Fault.DNS_FAIL, Fault.CONNECT, Fault.TLS, Fault.TIMEOUT, Fault.RESET)
_ANSWERED_FAULTS = (
    Fault.TOO_LARGE, Fault.WRONG_TYPE, Fault.DOCUMENT_TOO_LARGE, Fault.DOCUMENT_TYPE, Fault.NO_ROOM
)  # fmt: skip

#: of an answer without strain
FINE = HostEffect()


def effect(
    outcome: Outcome,
    failures: int,
    adaptive_ms: int | None,
    settings: Settings,
    *,
    now_s: float | None = None,
    rng: Random = _RNG,
) -> HostEffect:
    """The effect of an outcome on a host that had `failures` in a row and the adaptive delay `adaptive_ms`.

    `now_s` is the time since 1970, for dates in Retry-After; None: read when needed.
    """
    if is_fine(outcome, adaptive_ms):
        return FINE
    fault = outcome.fault
    if fault is None and outcome.status not in _BACK_OFF_STATUS and outcome.status not in _GATEWAY_STATUS:
        return _answered(outcome, adaptive_ms, settings)
    if outcome.status in _BACK_OFF_STATUS:
        return _asked_to_wait(outcome, failures + 1, adaptive_ms, settings, now_s, rng)
    if outcome.status in _GATEWAY_STATUS or fault in _HOST_FAULTS or (fault is Fault.PROTOCOL and not outcome.status):
        block_ms = backoff_ms(failures, settings, rng)
        if fault is Fault.DNS_NONE:
            block_ms = max(block_ms, MISSING_AGAIN_MS if failures else MISSING_NAME_MS)
        return _with_delay(outcome, failures + 1, adaptive_ms, settings, block_ms)
    if fault in _ANSWERED_FAULTS:
        return _answered(outcome, adaptive_ms, settings)
    # Caused by us, by the proxy or by one page: not evidence about the host.
    block_ms = _BUSY_RETRY_MS if fault is Fault.ADDRESS_BUSY else 0
    return HostEffect(failures=failures, block_ms=block_ms, slow=_is_slow(failures, adaptive_ms, settings))


def is_fine(outcome: Outcome, adaptive_ms: int | None) -> bool:
    """The host shows no strain: the answer changes neither its delay nor a block, and ends its failures."""
    status = outcome.status
    if outcome.fault is not None or status in _BACK_OFF_STATUS or status in _GATEWAY_STATUS:
        return False
    return not adaptive_ms and _latency_s(outcome) < _HEALTHY_S


def backoff_ms(failures: int, settings: Settings, rng: Random = _RNG) -> int:
    """Exponential back-off with full jitter after `failures` earlier ones.

    Never under half of `backoff_s`: a random value near zero would retry a failing host at once.
    """
    ceiling_s = min(settings.backoff_cap_s, settings.backoff_s * 2 ** min(failures, 30))
    return int(1000 * max(min(settings.backoff_s / 2, ceiling_s), rng.uniform(0, ceiling_s)))


#: a host whose first requests fail with these is unlikely to answer later
_DEFINITE = frozenset((Fault.DNS_NONE.value, Fault.CONNECT.value, Fault.TLS.value))
_DEFINITE_SHARE = 0.25


def patience_ms(fault: str, has_answered: bool, settings: Settings) -> int:
    """How long a host may fail before it is dead for a crawl; `fault` began its failures.

    A host that has answered, also with an error status, exists. One that never answered may not exist.
    """
    patience_s = settings.host_patience_s
    if not has_answered and not fault.startswith("status_"):
        share = _DEFINITE_SHARE if fault in _DEFINITE else 1.0
        patience_s = min(patience_s, settings.new_host_patience_s * share)
    return int(1000 * patience_s)


def least_patience_ms(settings: Settings) -> int:
    """The shortest time that `patience_ms` returns."""
    return int(1000 * min(settings.host_patience_s, settings.new_host_patience_s * _DEFINITE_SHARE))


def wait_ms(outcome: Outcome, settings: Settings, now_s: float | None = None) -> int | None:
    """The wait that Retry-After requests, limited to the cap: after that, the host receives a request again."""
    named_s = retry_after(outcome.header("retry-after"), time.time() if now_s is None else now_s)
    # Zero means no wait: the usual back-off applies.
    return int(1000 * min(named_s, settings.retry_after_cap_s)) if named_s else None


def _asked_to_wait(
    outcome: Outcome, failures: int, adaptive_ms: int | None, settings: Settings, now_s: float | None, rng: Random
) -> HostEffect:
    named_ms = wait_ms(outcome, settings, now_s)
    block_ms = backoff_ms(failures - 1, settings, rng) if named_ms is None else named_ms
    return _with_delay(outcome, failures, adaptive_ms, settings, block_ms)


def _answered(outcome: Outcome, adaptive_ms: int | None, settings: Settings) -> HostEffect:
    return _with_delay(outcome, 0, adaptive_ms, settings, 0)


def _with_delay(
    outcome: Outcome, failures: int, adaptive_ms: int | None, settings: Settings, block_ms: int
) -> HostEffect:
    new_ms = _adaptive_delay_ms(outcome, failures, adaptive_ms, settings)
    changed = new_ms != (adaptive_ms or 0)
    slow = _is_slow(failures, new_ms, settings)
    return HostEffect(block_ms=block_ms, adaptive_ms=new_ms if changed else None, failures=failures, slow=slow)


def _adaptive_delay_ms(outcome: Outcome, failures: int, adaptive_ms: int | None, settings: Settings) -> int:
    """The new adaptive delay, from start to start: latency_factor x latency, moved a quarter of the way at a time."""
    old_ms = adaptive_ms or 0
    latency_s = _latency_s(outcome)
    if not settings.latency_factor or len(outcome.body) > _SAMPLED_BYTES or outcome.started is None:
        return old_ms
    target_ms = 1000 * settings.latency_factor * latency_s if latency_s >= _HEALTHY_S else 0.0
    # A fast failure must not shorten the delay. Every other answer changes it in both directions, also a 404.
    if target_ms < old_ms and failures:
        return old_ms
    new_ms = target_ms if adaptive_ms is None else old_ms + _WEIGHT * (target_ms - old_ms)
    # Upper limit: a host that needs more than the cap per page is in the slow lane, and the cap keeps it crawlable.
    new_ms = min(new_ms, 1000 * settings.max_adaptive_delay_s)
    # A delay that decayed below that of a healthy host counts as none.
    if new_ms < 1000 * settings.latency_factor * _HEALTHY_S:
        return 0
    return old_ms if abs(new_ms - old_ms) < _NOTABLE * old_ms else round(new_ms)


def _is_slow(failures: int, adaptive_ms: int | None, settings: Settings) -> bool:
    limit_s = min(_SLOW_S * settings.latency_factor, settings.max_adaptive_delay_s)
    return failures >= _SLOW_FAILURES or bool(limit_s and adaptive_ms and adaptive_ms >= 1000 * limit_s)


def _latency_s(outcome: Outcome) -> float:
    if outcome.started is None:
        return 0.0
    # The time that a browser needs for a response is not counted for the host.
    return (outcome.ended if outcome.answered is None else outcome.answered) - outcome.started


def robots_delay_ms(robots: Robots, agent: str, settings: Settings) -> int | None:
    """Crawl-delay up to the cap: with a longer delay, a crawl would take years, and the operator should decide."""
    delay_s = robots.delay(agent)
    return None if delay_s is None else int(1000 * min(delay_s, settings.robots_delay_cap_s))


#: numbers with more digits are always over the cap
_MAX_DIGITS = 12
#: RFC 9110 5.6.7: a date further ahead has a two-digit year of the century before
_AHEAD_S = 50 * 365.25 * 86_400


def retry_after(value: str | None, now_s: float) -> float | None:
    """Seconds to wait by Retry-After (RFC 9110 10.2.3): a number, or a date in one of three forms.

    None if it names no usable wait: absent, negative, a fraction, a past date, garbage.
    """
    text = (value or "").strip()
    if text.isdigit() and text.isascii():
        return float(text) if len(text) <= _MAX_DIGITS else 10.0**_MAX_DIGITS
    try:
        at = parsedate_to_datetime(text)
        wait_s = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now_s
    except (ValueError, OverflowError):
        return None
    return wait_s if 0 < wait_s <= _AHEAD_S else None
