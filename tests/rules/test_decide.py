"""decide() and decide_robots() as tables."""

from __future__ import annotations

from random import Random

import pytest

from curtsy.core.model import Chain
from curtsy.core.outcome import Action, Decision, Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.rules.cookies import cookie_header, set_cookies
from curtsy.rules.decide import decide, next_chain, redirect_target
from curtsy.rules.robots_policy import RobotsDecision, decide_robots
from curtsy.rules.urls import fingerprint, short

URL = "http://a.test/dir/page"
SETTINGS = Settings()
Pairs = tuple[tuple[str, str], ...]


def answer(
    status: int = 200, headers: Pairs = (), fault: Fault | None = None, body: bytes = b"", **more: object
) -> Outcome:
    return Outcome(url=URL, status=status, headers=headers, fault=fault, body=body, started=1.0, ended=1.1, **more)  # type: ignore[arg-type]


def decided(outcome: Outcome, attempts: int = 0, chain: Chain | None = None, settings: Settings = SETTINGS) -> Decision:
    return decide(outcome, attempts, settings, chain=chain, now_s=784111777.0, rng=Random(1))


def redirect(location: str, status: int = 302, **more: object) -> Outcome:
    return answer(status, headers=(("Location", location),), **more)


def mark(url: str) -> int:
    return short(fingerprint(url))


@pytest.mark.parametrize(
    ("status", "action", "reason"),
    [
        (200, Action.DONE, ""),
        (201, Action.DONE, ""),
        (203, Action.DONE, ""),
        (204, Action.DONE, ""),
        (205, Action.DONE, ""),
        (299, Action.DONE, ""),
        (206, Action.RETRY, "partial"),
        (404, Action.DONE, "gone"),
        (410, Action.DONE, "gone"),
        (401, Action.DEAD, "refused"),
        (403, Action.DEAD, "refused"),
        (451, Action.DEAD, "refused"),
        (400, Action.DEAD, "http_400"),
        (405, Action.DEAD, "http_405"),
        (406, Action.DEAD, "http_406"),
        (407, Action.DEAD, "http_407"),
        (418, Action.DEAD, "http_418"),
        (421, Action.DEAD, "http_421"),
        (499, Action.DEAD, "http_499"),
        (408, Action.RETRY, "http_408"),
        (425, Action.RETRY, "http_425"),
        (429, Action.RETRY, "rate_limited"),
        (500, Action.RETRY, "server_error"),
        (501, Action.RETRY, "server_error"),
        (503, Action.RETRY, "server_error"),
        (599, Action.RETRY, "server_error"),
        (999, Action.RETRY, "server_error"),
        (101, Action.RETRY, "bad_response"),
        (99, Action.RETRY, "bad_response"),
    ],
)
def test_a_status_decides(status: int, action: Action, reason: str) -> None:
    decision = decided(answer(status))
    assert (decision.action, decision.reason) == (action, reason)


@pytest.mark.parametrize(
    ("fault", "action", "reason", "counts"),
    [
        (Fault.TOO_LARGE, Action.SKIP, "too_large", True),
        (Fault.WRONG_TYPE, Action.DONE, "type", True),
        (Fault.FORBIDDEN_ADDRESS, Action.SKIP, "forbidden_address", True),
        (Fault.DNS_NONE, Action.RETRY, "no_such_host", True),
        (Fault.DNS_FAIL, Action.RETRY, "dns_failed", True),
        (Fault.CONNECT, Action.RETRY, "connect_failed", True),
        (Fault.TLS, Action.RETRY, "tls_failed", True),
        (Fault.TIMEOUT, Action.RETRY, "timeout", True),
        (Fault.RESET, Action.RETRY, "connection_lost", True),
        (Fault.PROTOCOL, Action.RETRY, "bad_response", True),
        (Fault.PROXY, Action.RETRY, "proxy_failed", True),
        (Fault.SLOT_EXPIRED, Action.RETRY, "slot_expired", False),
        (Fault.ADDRESS_BUSY, Action.RETRY, "address_busy", False),
        (Fault.RESENT, Action.RETRY, "resent", False),
        (Fault.CANCELLED, Action.RETRY, "cancelled", False),
    ],
)
def test_a_fault_decides(fault: Fault, action: Action, reason: str, counts: bool) -> None:
    decision = decided(answer(0, fault=fault))
    assert (decision.action, decision.reason, decision.counts) == (action, reason, counts)


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (answer(500), "server_error"),
        (answer(429), "rate_limited"),
        (answer(206), "partial"),
        (answer(0, fault=Fault.TIMEOUT), "timeout"),
        (answer(0, fault=Fault.CONNECT), "connect_failed"),
        (answer(200, fault=Fault.PROTOCOL), "bad_response"),
        (answer(304), "http_304"),
    ],
)
def test_what_is_tried_again_is_dead_after_the_last_attempt(outcome: Outcome, cause: str) -> None:
    last = SETTINGS.max_attempts - 1
    assert decided(outcome, attempts=last - 1).action is Action.RETRY
    assert decided(outcome, attempts=last) == Decision(action=Action.DEAD, reason=cause)


def test_a_name_that_does_not_exist_twice_is_dead() -> None:
    gone = answer(0, fault=Fault.DNS_NONE)
    assert decided(gone, attempts=0).action is Action.RETRY
    assert decided(gone, attempts=1) == Decision(action=Action.DEAD, reason="no_such_host")


@pytest.mark.parametrize("fault", [Fault.SLOT_EXPIRED, Fault.ADDRESS_BUSY, Fault.RESENT, Fault.CANCELLED])
def test_what_was_not_the_urls_doing_never_kills_it(fault: Fault) -> None:
    assert decided(answer(0, fault=fault), attempts=99).action is Action.RETRY


def test_retries_wait_longer_each_time() -> None:
    ceilings = {0: 2_000, 1: 4_000, 2: 8_000}
    for attempts, ceiling in ceilings.items():
        delays = [decide(answer(500), attempts, SETTINGS, rng=Random(seed)).delay_ms for seed in range(50)]
        assert min(delays) >= 1_000
        assert max(delays) <= ceiling
        assert max(delays) > ceiling / 2


def test_a_retry_waits_at_least_as_long_as_the_host_asked() -> None:
    assert decided(answer(429, headers=(("Retry-After", "100"),))).delay_ms == 100_000
    assert decided(answer(503, headers=(("Retry-After", "999999"),))).delay_ms == 3_600_000


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 300])
def test_a_redirect_is_done_and_names_its_target(status: int) -> None:
    decision = decided(redirect("/next", status))
    assert decision == Decision(action=Action.DONE, reason="redirect", location="http://a.test/next")


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("other", "http://a.test/dir/other"),
        ("?q=1", "http://a.test/dir/page?q=1"),
        ("//b.test/x", "http://b.test/x"),
        ("https://a.test", "https://a.test/"),
        ("/x#fragment", "http://a.test/x"),
        ("http://user:secret@b.test/", "http://b.test/"),
        ("top?%E2%98%83%e2%98%83", "http://a.test/dir/top?%E2%98%83%e2%98%83"),
        ("top?\xe2\x98\x83%e2%98%83", "http://a.test/dir/top?%E2%98%83%e2%98%83"),
        ("top?\xff", "http://a.test/dir/top?%FF"),
        ("/\xc3\xa4", "http://a.test/%C3%A4"),
        ("http://b\xc3\xbccher.test/", "http://xn--bcher-kva.test/"),
        ("  /padded  ", "http://a.test/padded"),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
        ("file:///etc/passwd", None),
        ("ftp://b.test/", None),
        ("http://[bad/", None),
        ("http://", None),
        ("", None),
    ],
)
def test_the_target_of_a_redirect_is_normalised(location: str, target: str | None) -> None:
    assert redirect_target(redirect(location)) == target


@pytest.mark.parametrize("location", ["javascript:alert(1)", "mailto:a@b.test", "http://[bad/", ""])
def test_a_redirect_to_nowhere_is_skipped(location: str) -> None:
    assert decided(redirect(location)) == Decision(action=Action.SKIP, reason="bad_redirect")
    assert decided(answer(301)) == Decision(action=Action.SKIP, reason="bad_redirect")
    assert decided(redirect("http://proxy.test/", 305)) == Decision(action=Action.SKIP, reason="bad_redirect")


def test_multiple_choices_without_location_are_a_page() -> None:
    assert decided(answer(300, body=b"<a href=x>")) == Decision(action=Action.DONE)
    assert decided(answer(300)).reason == "bad_redirect"


def test_a_redirect_whose_body_broke_is_still_a_redirect() -> None:
    for fault in (Fault.RESET, Fault.PROTOCOL, Fault.TIMEOUT, Fault.TOO_LARGE, Fault.WRONG_TYPE):
        assert decided(redirect("/next", fault=fault)).location == "http://a.test/next"


def test_a_status_that_needs_no_body_decides_though_the_body_was_lost() -> None:
    assert decided(answer(404, fault=Fault.RESET)).reason == "gone"
    assert decided(answer(403, fault=Fault.TOO_LARGE)).reason == "refused"
    assert decided(answer(200, fault=Fault.RESET)).reason == "connection_lost"


def test_not_modified_needs_a_condition_in_the_request() -> None:
    asked = answer(304, request_head=b'GET / HTTP/1.1\r\nIf-None-Match: "x"\r\n\r\n')
    assert decided(asked) == Decision(action=Action.DONE, reason="not_modified")
    assert decided(answer(304, request_head=b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")).action is Action.RETRY


def test_a_redirect_to_itself_is_a_loop() -> None:
    assert decided(redirect(URL)) == Decision(action=Action.SKIP, reason="redirect_loop")
    assert decided(redirect("#top")) == Decision(action=Action.SKIP, reason="redirect_loop")


def test_a_redirect_back_into_the_chain_is_a_loop() -> None:
    chain = Chain(trail=(mark("http://a.test/first"), mark("http://a.test/second")))
    assert decided(redirect("/first"), chain=chain) == Decision(action=Action.SKIP, reason="redirect_loop")
    assert decided(redirect("/third"), chain=chain).reason == "redirect"


def test_a_chain_may_be_as_long_as_the_limit_and_no_longer() -> None:
    settings = Settings(max_redirects=3)
    assert decided(redirect("/x"), chain=Chain(trail=(1, 2)), settings=settings).reason == "redirect"
    decision = decided(redirect("/x"), chain=Chain(trail=(1, 2, 3)), settings=settings)
    assert decision == Decision(action=Action.SKIP, reason="too_many_redirects")


def test_a_redirect_to_itself_that_sets_a_cookie_is_asked_once_more() -> None:
    outcome = answer(302, headers=(("Location", URL), ("Set-Cookie", "seen=1; Path=/")))
    assert decided(outcome) == Decision(action=Action.RETRY, reason="cookie", counts=False)
    chain = next_chain(None, outcome)
    assert cookie_header(chain, None, URL) == "seen=1"
    assert decided(outcome, chain=chain).reason == "redirect_loop"
    another = answer(302, headers=(("Location", URL), ("Set-Cookie", "seen=2")))
    assert decided(another, chain=chain).reason == "redirect_loop"


def test_cookies_go_back_to_the_origin_that_set_them_only() -> None:
    chain = next_chain(None, answer(302, headers=(("Set-Cookie", "a=1"), ("Set-Cookie", "b=2; HttpOnly"))))
    assert cookie_header(chain, None, "http://a.test/x") == "a=1; b=2"
    assert cookie_header(chain, None, "https://a.test/x") == "a=1; b=2"
    assert cookie_header(chain, None, "http://b.test/x") is None
    assert cookie_header(chain, None, "http://a.test:81/x") is None
    assert cookie_header(None, None, "http://a.test/") is None


def test_cookies_set_over_https_are_not_sent_in_the_clear() -> None:
    secure = Outcome(url="https://a.test/", status=302, headers=(("Set-Cookie", "a=1"),), started=1.0, ended=1.1)
    assert cookie_header(next_chain(None, secure), None, "http://a.test/") is None


def test_a_chain_grows_by_the_url_asked_and_keeps_what_it_knows() -> None:
    first = next_chain(None, answer(302, headers=(("Set-Cookie", "a=1"), ("Set-Cookie", "c=3"))), seed=True)
    second = next_chain(first, answer(302, headers=(("Set-Cookie", "a=2"),)))
    assert second.trail == (mark(URL), mark(URL))
    assert second.seed
    assert second.cookies == ("c=3", "a=2")


def test_cookie_lines_are_read_leniently_and_bounded() -> None:
    lines = [
        "a=1; Path=/",
        "b",
        "=x",
        "c=3;Max-Age=0",
        "d=4; max-age = -1",
        " e = 5 ",
        "a=9",
        "f=" + "x" * 9000,
        "g=\x01",
    ]
    assert set_cookies(answer(302, headers=tuple(("Set-Cookie", line) for line in lines))) == ("e=5", "a=9")
    many = tuple(("set-cookie", f"n{i}=1") for i in range(10_000))
    assert len(set_cookies(answer(302, headers=many))) == 20


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (answer(200), "rules"),
        (answer(204), "rules"),
        (answer(200, fault=Fault.TOO_LARGE), "rules"),
        (answer(400), "allow"),
        (answer(401), "allow"),
        (answer(403), "allow"),
        (answer(404), "allow"),
        (answer(404, fault=Fault.RESET), "allow"),
        (answer(410), "allow"),
        (answer(451), "allow"),
        (answer(429), "forbid"),
        (answer(500), "forbid"),
        (answer(503), "forbid"),
        (answer(999), "forbid"),
        (answer(206), "forbid"),
        (answer(304), "forbid"),
        (answer(200, fault=Fault.RESET), "forbid"),
        (answer(200, fault=Fault.PROTOCOL), "forbid"),
        (answer(0, fault=Fault.TIMEOUT), "forbid"),
        (answer(0, fault=Fault.CONNECT), "forbid"),
        (answer(0, fault=Fault.DNS_NONE), "forbid"),
        (answer(0, fault=Fault.TLS), "forbid"),
        (answer(0, fault=Fault.FORBIDDEN_ADDRESS), "skip"),
        (answer(0, fault=Fault.SLOT_EXPIRED), "retry"),
        (answer(0, fault=Fault.CANCELLED), "retry"),
        (answer(301), "allow"),
        (redirect("javascript:1"), "allow"),
    ],
)
def test_robots_by_status(outcome: Outcome, verdict: str) -> None:
    assert decide_robots(outcome).verdict == verdict


def test_robots_redirects_are_followed_five_times() -> None:
    for hops in range(5):
        followed = RobotsDecision(verdict="follow", location="http://b.test/robots.txt")
        assert decide_robots(redirect("http://b.test/robots.txt"), hops) == followed
    assert decide_robots(redirect("http://b.test/robots.txt"), 5).verdict == "allow"


def test_rules_that_lie_behind_a_forbidden_address_stay_unknown() -> None:
    assert decide_robots(answer(0, fault=Fault.FORBIDDEN_ADDRESS), hops=1).verdict == "forbid"
