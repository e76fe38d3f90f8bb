"""What outcomes do to their host."""

from __future__ import annotations

from random import Random

import pytest

from curtsy.core.outcome import Fault, HostEffect, Outcome
from curtsy.core.settings import Settings
from curtsy.rules.politeness import (
    backoff_ms,
    effect,
    least_patience_ms,
    patience_ms,
    retry_after,
    robots_delay_ms,
)
from curtsy.rules.robots import Robots

#: Sun, 06 Nov 1994 08:49:37 GMT
NOW_S = 784111777.0
SETTINGS = Settings()


def answer(
    status: int = 200, latency_s: float = 0.1, fault: Fault | None = None, headers: tuple[tuple[str, str], ...] = ()
) -> Outcome:
    return Outcome(
        url="http://a.test/", status=status, headers=headers, fault=fault, started=100.0, ended=100.0 + latency_s
    )


def judged(
    outcome: Outcome, failures: int = 0, adaptive_ms: int | None = None, settings: Settings = SETTINGS
) -> HostEffect:
    return effect(outcome, failures, adaptive_ms, settings, now_s=NOW_S, rng=Random(1))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("  5  ", 5),
        ("05", 5),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 08:49:37 GMT", None),
        ("Sun, 06 Nov 1994 08:48:37 GMT", None),
        ("Sunday, 06-Nov-60 08:50:37 GMT", None),
        ("Sun, 06 Foo 1994 08:50:37 GMT", None),
        ("Sun, 99 Nov 1994 08:50:37 GMT", None),
        ("Sun, 06 Nov 1994 25:50:37 GMT", None),
        ("-5", None),
        ("+5", None),
        ("1.5", None),
        ("1e3", None),
        ("٣", None),
        ("5 seconds", None),
        ("soon", None),
        ("", None),
        (None, None),
        ("9" * 5000, 1e12),
    ],
)
def test_retry_after_is_seconds_or_one_of_three_dates(value: str | None, seconds: float | None) -> None:
    assert retry_after(value, NOW_S) == seconds


def test_a_fast_success_leaves_the_host_as_it_is() -> None:
    assert judged(answer()) == HostEffect()


def test_success_ends_a_row_of_failures() -> None:
    assert judged(answer(), failures=5) == HostEffect()
    assert judged(answer(404), failures=5).failures == 0


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_blocks_the_whole_host(status: int) -> None:
    told = judged(answer(status, headers=(("Retry-After", "30"),)))
    assert (told.block_ms, told.failures) == (30_000, 1)


def test_retry_after_as_a_date_blocks_until_then() -> None:
    headers = (("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT"),)
    assert judged(answer(503, headers=headers)).block_ms == 60_000


def test_a_retry_after_over_the_cap_means_the_cap() -> None:
    told = judged(answer(503, headers=(("Retry-After", "31536000"),)))
    assert told.block_ms == int(SETTINGS.retry_after_cap_s * 1000)


@pytest.mark.parametrize("value", ["0", "-1", "garbage"])
def test_without_a_usable_retry_after_the_host_is_left_alone_longer_each_time(value: str) -> None:
    headers = (("Retry-After", value),)
    ceilings = [2_000, 4_000, 8_000, 16_000]
    for failures, ceiling in enumerate(ceilings):
        told = judged(answer(429, headers=headers), failures=failures)
        assert 1_000 <= told.block_ms <= ceiling
        assert told.failures == failures + 1


def test_back_off_is_spread_over_its_whole_range_and_capped() -> None:
    rng = Random(7)
    throws = [backoff_ms(4, SETTINGS, rng) for _ in range(2000)]
    assert min(throws) >= 1_000
    assert max(throws) <= 32_000
    assert sum(throw < 8_000 for throw in throws) in range(400, 600)
    assert max(backoff_ms(500, SETTINGS, rng) for _ in range(100)) <= 300_000


def test_back_off_is_the_same_for_the_same_dice() -> None:
    assert backoff_ms(3, SETTINGS, Random(5)) == backoff_ms(3, SETTINGS, Random(5))


@pytest.mark.parametrize(
    "fault", [Fault.CONNECT, Fault.TLS, Fault.TIMEOUT, Fault.RESET, Fault.DNS_NONE, Fault.DNS_FAIL, Fault.PROTOCOL]
)
def test_a_host_that_cannot_be_reached_counts_failures_and_opens_its_circuit(fault: Fault) -> None:
    told = judged(answer(0, fault=fault), failures=1)
    assert told.failures == 2
    assert told.block_ms >= 1_000
    assert told.slow


@pytest.mark.parametrize(
    "fault", [Fault.SLOT_EXPIRED, Fault.CANCELLED, Fault.RESENT, Fault.PROXY, Fault.FORBIDDEN_ADDRESS]
)
def test_what_was_not_the_hosts_doing_changes_nothing(fault: Fault) -> None:
    assert judged(answer(0, fault=fault), failures=1) == HostEffect(failures=1)


def test_a_busy_address_puts_the_host_off_for_a_quarter_second() -> None:
    assert judged(answer(0, fault=Fault.ADDRESS_BUSY)) == HostEffect(block_ms=250)


@pytest.mark.parametrize("fault", [Fault.TOO_LARGE, Fault.WRONG_TYPE])
def test_a_body_that_we_did_not_want_is_a_success_of_the_host(fault: Fault) -> None:
    assert judged(answer(200, fault=fault), failures=3).failures == 0


def test_one_broken_page_says_nothing_about_the_host() -> None:
    assert judged(answer(200, fault=Fault.PROTOCOL), failures=1) == HostEffect(failures=1)
    assert judged(answer(500), failures=0).block_ms == 0


def test_the_pause_grows_with_the_hosts_latency_a_quarter_of_the_way_at_a_time() -> None:
    """A host that takes two seconds is left alone for two: the delay runs from start to start."""
    assert judged(answer(latency_s=2.0)).adaptive_ms == 4000
    assert judged(answer(latency_s=4.0), adaptive_ms=4000).adaptive_ms == 5000
    assert judged(answer(latency_s=0.3), adaptive_ms=4000).adaptive_ms == 3150


def test_the_pause_fades_away_when_the_host_is_fast_again() -> None:
    pause: int | None = 2000
    for _ in range(20):
        told = judged(answer(latency_s=0.01), adaptive_ms=pause)
        pause = pause if told.adaptive_ms is None else told.adaptive_ms
    assert pause == 0


def test_the_pause_is_clamped() -> None:
    settings = Settings(max_adaptive_delay_s=3.0, latency_factor=10)
    assert judged(answer(latency_s=5.0), settings=settings).adaptive_ms == 3000
    assert judged(answer(latency_s=5.0), settings=Settings(latency_factor=0)).adaptive_ms is None


@pytest.mark.parametrize(
    ("outcome", "after_ms"),
    [
        (answer(200, latency_s=0.01), 1500),
        (answer(304, latency_s=0.01), 1500),
        (answer(403, latency_s=0.01), 1500),
        (answer(404, latency_s=0.01), 1500),
        (answer(404, latency_s=3.0), 3000),
        (answer(500, latency_s=0.01), 1500),
        (answer(500, latency_s=3.0), 3000),
        # The host is under strain: a fast answer does not say that it has recovered, a slow one says the opposite.
        (answer(429, latency_s=0.01), None),
        (answer(429, latency_s=3.0), 3000),
        (answer(502, latency_s=0.01), None),
        (answer(503, latency_s=0.01), None),
        (answer(503, latency_s=3.0), 3000),
        (answer(504, latency_s=0.01), None),
    ],
)
def test_every_answer_without_strain_teaches_in_both_directions(outcome: Outcome, after_ms: int | None) -> None:
    assert judged(outcome, adaptive_ms=2000).adaptive_ms == after_ms


def test_a_few_slow_errors_do_not_slow_down_a_hundred_fast_ones() -> None:
    """Five answers 404 of 2 s, then 95 of 10 ms, with no delay of its own: what the host is waited for in all."""
    pause_ms, waited_ms = 0, 0
    for latency_s in [2.0] * 5 + [0.01] * 95:
        told = judged(answer(404, latency_s=latency_s), adaptive_ms=pause_ms)
        pause_ms = pause_ms if told.adaptive_ms is None else told.adaptive_ms
        waited_ms += pause_ms
    assert pause_ms == 0
    assert waited_ms < 25_000


def test_a_small_change_of_the_pause_is_not_worth_a_write() -> None:
    assert judged(answer(latency_s=1.05), adaptive_ms=2000).adaptive_ms is None


def test_a_slow_host_is_marked_and_comes_back() -> None:
    told = judged(answer(latency_s=8.0))
    assert told.slow
    pause = told.adaptive_ms
    for _ in range(3):
        told = judged(answer(latency_s=0.1), adaptive_ms=pause)
        pause = told.adaptive_ms or pause
    assert not told.slow


def test_crawl_delay_is_capped() -> None:
    robots = Robots.parse(b"User-agent: *\nCrawl-delay: 2.5\n")
    assert robots_delay_ms(robots, "curtsy", SETTINGS) == 2500
    robots = Robots.parse(b"User-agent: *\nCrawl-delay: 86400\n")
    assert robots_delay_ms(robots, "curtsy", SETTINGS) == int(SETTINGS.robots_delay_cap_s * 1000)
    assert robots_delay_ms(Robots.parse(b""), "curtsy", SETTINGS) is None


@pytest.mark.parametrize(
    ("fault", "has_answered", "patience_s"),
    [
        ("timeout", False, 60), ("connection_lost", False, 60), ("dns_failed", False, 60),
        ("connect_failed", False, 15), ("tls_failed", False, 15), ("no_such_host", False, 15),
        ("connect_failed", True, 3600), ("timeout", True, 3600),
        ("status_503", False, 3600), ("status_429", False, 3600),
    ],
)  # fmt: skip
def test_a_host_that_never_answered_has_less_patience(fault: str, has_answered: bool, patience_s: int) -> None:
    assert patience_ms(fault, has_answered, Settings()) == patience_s * 1000
    short = Settings(host_patience_s=2)
    assert patience_ms(fault, has_answered, short) == 2000
    assert least_patience_ms(Settings()) == 15_000
