"""The audit's judgement over made-up logs: polite ones pass, each kind of impoliteness is found."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.control.audit import EXTERNAL, MAX_FINDINGS, Verdict, coverage, judge
from curtsy.core.model import SUBRESOURCE, Kind, Request, RobotsState
from curtsy.core.outcome import Fault
from curtsy.crawl import external_slots

ROBOTS = b"User-agent: *\nDisallow: /private\n"
RULES = RobotsState(origin="https://a.test", host="a.test", fetched_ms=0, expires_ms=10**9, status=200, body=ROBOTS)
T0 = 1_000_000


def request(at_ms: int, fence: int, *, took_ms: int = 100, **fields: object) -> Request:
    values: dict[str, object] = {
        "fence": fence,
        "crawl": 1,
        "host": "a.test",
        "url": "https://a.test/page",
        "start_ms": T0 + at_ms,
        "end_ms": T0 + at_ms + took_ms,
        "kind": Kind.PAGE,
        "status": 200,
        "delay_ms": 1000,
        **fields,
    }
    return Request(**values)  # type: ignore[arg-type]


def verdict_of(*rows: Request, robots: RobotsState | None = RULES, pages_without_request: int = 0) -> Verdict:
    def rules(origin: str) -> RobotsState | None:
        return robots and replace(robots, origin=origin)

    return judge(rows, rules, "curtsy", pages_without_request=pages_without_request)


def counts(verdict: Verdict) -> tuple[int, int, int]:
    return verdict.overlaps, verdict.early, verdict.robots_violations


def test_an_empty_log_is_polite() -> None:
    verdict = verdict_of()
    assert verdict.polite
    assert verdict.document() == {
        "requests": 0,
        "hosts": 0,
        "overlaps": 0,
        "early": 0,
        "robots_violations": 0,
        "presumed": 0,
        "unaccounted": 0,
        "gaps": 0,
        "min_gap_s": None,
        "visits": 0,
        "subresources": 0,
        "third_party": 0,
        "third_hosts": 0,
        "external_requests": 0,
        "guests": 0,
    }


def test_requests_one_delay_apart_are_polite() -> None:
    verdict = verdict_of(request(0, 1), request(1000, 2), request(2500, 3))
    assert counts(verdict) == (0, 0, 0)
    assert (verdict.requests, verdict.hosts, verdict.min_gap_s) == (3, 1, 1.0)


def test_a_request_one_millisecond_too_soon_is_early() -> None:
    assert counts(verdict_of(request(0, 1), request(999, 2))) == (0, 1, 0)


def test_a_request_while_another_is_in_flight_overlaps_even_after_the_delay() -> None:
    assert counts(verdict_of(request(0, 1, took_ms=1500), request(1400, 2))) == (1, 0, 0)


def test_a_request_that_begins_as_another_ends_does_not_overlap() -> None:
    assert verdict_of(request(0, 1, took_ms=1500), request(1500, 2)).polite


def test_two_at_a_time_are_allowed_where_per_host_is_two() -> None:
    rows = [request(0, 1, took_ms=5000), request(1000, 2, took_ms=5000), request(2000, 3)]
    assert counts(verdict_of(*[replace(row, per_host=2) for row in rows])) == (1, 0, 0)
    assert verdict_of(*[replace(row, per_host=3) for row in rows]).polite


def test_different_hosts_do_not_wait_for_each_other() -> None:
    verdict = verdict_of(request(0, 1), request(1, 2, host="b.test"), request(2, 3, host="c.test"))
    assert verdict.polite
    assert verdict.hosts == 3
    assert verdict.min_gap_s is None


def test_the_delay_in_force_is_the_one_recorded_with_the_later_request() -> None:
    assert verdict_of(request(0, 1, delay_ms=9000), request(1000, 2)).polite
    assert counts(verdict_of(request(0, 1), request(1000, 2, delay_ms=9000))) == (0, 1, 0)


@pytest.mark.parametrize("fault", [Fault.TIMEOUT, Fault.TOO_LARGE, Fault.WRONG_TYPE, Fault.CANCELLED])
def test_after_a_transfer_that_we_broke_off_the_delay_counts_from_its_end(fault: Fault) -> None:
    first = request(0, 1, took_ms=600, fault=fault)
    assert counts(verdict_of(first, request(1500, 2))) == (0, 1, 0)
    assert verdict_of(first, request(1600, 2)).polite
    assert verdict_of(replace(first, fault=Fault.RESET), request(1000, 2)).polite


def test_a_broken_off_transfer_counts_from_its_end_only_once_it_has_ended() -> None:
    rows = [request(0, 1, took_ms=9000, fault=Fault.TIMEOUT), request(1000, 2), request(9500, 3), request(10000, 4)]
    # Of two at a time, the one that began 500 ms after that end may have had its turn before it; the next may not.
    assert counts(verdict_of(*[replace(row, per_host=2) for row in rows])) == (0, 1, 0)
    assert counts(verdict_of(*[replace(row, per_host=2) for row in rows[:2]], rows[2])) == (0, 1, 0)


def test_a_presumed_request_counts_as_one_until_its_expiry() -> None:
    lost = request(0, 1, took_ms=30_000, nature="presumed", status=0)
    assert counts(verdict_of(lost, request(20_000, 2))) == (1, 0, 0)
    assert counts(verdict_of(lost, request(30_500, 2))) == (0, 1, 0)
    verdict = verdict_of(lost, request(31_000, 2))
    assert verdict.polite
    assert verdict.presumed == 1


def test_a_presumed_request_without_a_url_breaks_no_rules() -> None:
    assert verdict_of(request(0, 1, took_ms=30_000, nature="presumed", status=0, url="", kind="")).polite


def test_a_request_told_after_its_slot_expired_is_the_presumed_one_and_no_overlap() -> None:
    lost = request(0, 1, took_ms=30_000, nature="presumed", status=0)
    assert verdict_of(lost, request(200, 1, ordinal=1), request(31_000, 2)).polite


def test_something_sent_on_an_expired_slot_is_found() -> None:
    lost = request(0, 1, took_ms=30_000, nature="presumed", status=0)
    assert not verdict_of(lost, request(30_500, 1, ordinal=1), request(31_000, 2)).polite


def test_a_page_that_robots_forbid_is_a_violation() -> None:
    assert counts(verdict_of(request(0, 1, url="https://a.test/private/x"))) == (0, 0, 1)


def test_a_sitemap_that_robots_forbid_is_a_violation() -> None:
    assert counts(verdict_of(request(0, 1, url="https://a.test/private.xml", kind=Kind.SITEMAP))) == (0, 0, 1)


def test_robots_txt_itself_is_never_forbidden() -> None:
    everything = replace(RULES, body=b"User-agent: *\nDisallow: /\n")
    assert verdict_of(request(0, 1, url="https://a.test/robots.txt", kind=Kind.ROBOTS), robots=everything).polite


def test_any_page_is_a_violation_while_robots_are_unreachable() -> None:
    assert counts(verdict_of(request(0, 1), robots=replace(RULES, verdict="forbid", body=b""))) == (0, 0, 1)


def test_every_page_is_allowed_where_there_is_no_robots_txt() -> None:
    allow = replace(RULES, verdict="allow", body=b"")
    assert verdict_of(request(0, 1, url="https://a.test/private"), robots=allow).polite


def test_a_page_asked_before_robots_is_a_violation() -> None:
    robots = request(1000, 2, url="https://a.test/robots.txt", kind=Kind.ROBOTS)
    later = replace(RULES, fetched_ms=T0 + 1100)
    assert counts(verdict_of(request(0, 1), robots, robots=later)) == (0, 0, 1)
    assert counts(verdict_of(request(0, 1), robots=None)) == (0, 0, 1)


def test_a_page_whose_rules_were_replaced_since_is_unaccounted_for() -> None:
    robots = request(0, 1, url="https://a.test/robots.txt", kind=Kind.ROBOTS)
    newer = replace(RULES, fetched_ms=T0 + 10**6)
    verdict = verdict_of(robots, request(1000, 2, url="https://a.test/private"), robots=newer)
    assert verdict.polite
    assert verdict.unaccounted == 1
    assert any("Not judged: 1" in line for line in coverage(verdict))


def test_rules_hold_for_the_origin_and_not_for_another_port_or_scheme() -> None:
    def rules(origin: str) -> RobotsState:
        return replace(RULES, verdict="rules" if origin == "http://a.test" else "allow")

    forbidden, allowed = "http://a.test/private", "https://a.test/private"
    assert judge([request(0, 1, url=forbidden)], rules, "curtsy").robots_violations == 1
    assert judge([request(0, 1, url=allowed)], rules, "curtsy").polite


def test_gaps_are_counted_and_are_no_requests() -> None:
    verdict = verdict_of(request(0, 9, host="", url="", nature="gap"), request(0, 1), request(1000, 2))
    assert verdict.polite
    assert (verdict.gaps, verdict.requests, verdict.hosts) == (1, 2, 1)
    assert any("lost 1 times" in line for line in coverage(verdict))


def test_pages_without_a_request_row_are_unaccounted_for() -> None:
    assert verdict_of(request(0, 1), pages_without_request=2).unaccounted == 2


def test_findings_are_bounded_but_all_are_counted() -> None:
    rows = [request(i, i, took_ms=0) for i in range(1000)]
    verdict = verdict_of(*rows)
    assert verdict.early == 999
    assert len(verdict.findings) == MAX_FINDINGS
    assert "delay 1000 ms" in verdict.findings[0].detail


def test_a_long_log_is_judged_as_a_stream() -> None:
    seen = 0

    def rows() -> Iterator[Request]:
        nonlocal seen
        for i in range(5000):
            seen += 1
            yield request(i * 1000, i, host=f"{i % 1:03}.test")

    assert judge(rows(), lambda _: RULES, "curtsy").requests == seen == 5000


@given(
    st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 3000), st.integers(0, 2000)), max_size=12),
    st.integers(1, 3),
)
def test_it_agrees_with_comparing_every_pair(times: list[tuple[int, int, int]], per_host: int) -> None:
    rows = [
        request(at, fence, took_ms=took, delay_ms=delay, per_host=per_host)
        for fence, (at, took, delay) in enumerate(sorted(times))
    ]
    overlaps = early = 0
    for i, row in enumerate(rows):
        under_way = sum(other.end_ms > row.start_ms for other in rows[:i])
        overlaps += under_way >= per_host
        early += i > 0 and row.start_ms - rows[i - 1].start_ms < row.delay_ms
    assert counts(verdict_of(*rows))[:2] == (overlaps, early)


def visit(at_ms: int, fence: int, took_ms: int = 5000) -> Request:
    return request(at_ms, fence, took_ms=took_ms, kind=Kind.BROWSER.value)


def loaded(at_ms: int, fence: int, ordinal: int, url: str = "https://a.test/app.js", host: str = "a.test") -> Request:
    return request(at_ms, fence, ordinal=ordinal, kind=SUBRESOURCE, url=url, host=host)


def test_what_a_visit_loads_is_counted_apart_and_is_no_overlap() -> None:
    other = loaded(500, 1, 3, "https://cdn.test/lib.js", "cdn.test")
    verdict = verdict_of(visit(0, 1), loaded(200, 1, 2), loaded(300, 1, 4), other)
    assert counts(verdict) == (0, 0, 0)
    assert (verdict.requests, verdict.hosts, verdict.visits) == (1, 1, 1)
    assert (verdict.subresources, verdict.third_party, verdict.third_hosts) == (3, 1, 1)
    assert any("1 from 1 other hosts" in line for line in coverage(verdict))


def test_the_delay_runs_from_the_end_of_a_visit() -> None:
    assert counts(verdict_of(visit(0, 1), request(6000, 2))) == (0, 0, 0)
    assert counts(verdict_of(visit(0, 1), request(5900, 2))) == (0, 1, 0)


def test_a_plain_request_during_a_visit_is_an_overlap() -> None:
    assert counts(verdict_of(visit(0, 1), request(3000, 2)))[0] == 1


def test_a_visit_that_loads_what_robots_forbid_is_found() -> None:
    forbidden = loaded(200, 1, 2, "https://a.test/private/data.json")
    assert counts(verdict_of(visit(0, 1), forbidden)) == (0, 0, 1)
    assert counts(verdict_of(visit(0, 1), loaded(200, 1, 2), robots=None))[2] == 1, "the visit, not what it loaded"


def external_request(at_ms: int, fence: int, url: str = "https://a.test/private", took_ms: int = 100) -> Request:
    return request(at_ms, fence, took_ms=took_ms, kind=external_slots.KIND, crawl=None, url=url)


def test_robots_txt_is_not_judged_for_external_clients() -> None:
    rows = (
        external_request(0, 1, "https://a.test/robots.txt"),
        external_request(1000, 2),
        external_request(2000, 3, ""),
    )
    for robots in (RULES, None):
        verdict = verdict_of(*rows, robots=robots)
        assert (counts(verdict), verdict.unaccounted) == ((0, 0, 0), 0)
        assert (verdict.requests, verdict.hosts, verdict.external_requests) == (3, 1, 3)
        assert any("Requests of external clients (Scrapy, Airflow) among them: 3" in line for line in coverage(verdict))


def test_the_delay_applies_to_external_clients_too() -> None:
    assert counts(verdict_of(external_request(0, 1, took_ms=1500), external_request(1400, 2))) == (1, 0, 0)
    assert counts(verdict_of(request(0, 1), external_request(999, 2))) == (0, 1, 0)
    assert counts(verdict_of(external_request(0, 1), request(999, 2))) == (0, 1, 0)


def test_rules_that_an_external_client_fetched_are_not_those_of_a_crawl() -> None:
    verdict = verdict_of(external_request(0, 1, "https://a.test/robots.txt"), request(1000, 2), robots=None)
    assert counts(verdict) == (0, 0, 1)


def test_external_requests_have_the_kind_that_they_are_logged_with() -> None:
    assert external_slots.KIND == EXTERNAL
