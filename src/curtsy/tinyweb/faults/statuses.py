"""Hosts that answer with errors, late, or not at all."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from email.utils import formatdate

from curtsy.tinyweb.answers import HTML, After, Answer, Handler, Pages, Request, Script, head, reply, text
from curtsy.tinyweb.faults.registry import fault, ordinary, page, replaced


def _at_first(times: int, trouble: Callable[[], Answer], then: Answer) -> Handler:
    """Return errors for the first requests, then the page."""
    asked = 0

    def answer(_: Request) -> Answer:
        nonlocal asked
        asked += 1
        return trouble() if asked <= times else then

    return answer


def _busy(retry_after: str, hold_s: float = 0.0, status: int = 429) -> Answer:
    return reply(status, b"Later, please.\n", "text/plain", (("Retry-After", retry_after),), hold_s=hold_s)


def _busy_until() -> Answer:
    # Dates have whole seconds: rounded up, so that it is at least two seconds ahead.
    until_s = math.ceil(time.time()) + 2
    return _busy(formatdate(until_s, usegmt=True), hold_s=until_s - time.time())


@fault(
    "retry-after-seconds",
    "/busy answers 429 with Retry-After: 2 twice, then 200",
    "the whole host pauses for 2 s each time; then everything is done",
    ends={"/": "done", "/busy": "done", "/two": "done"},
)
def _seconds() -> Pages:
    return ordinary("/busy") | {"/busy": _at_first(2, lambda: _busy("2", 2.0), page("Not busy any more"))}


@fault(
    "retry-after-date",
    "/busy answers 429 with Retry-After as a date 2 to 3 s ahead, then 200",
    "the whole host pauses until then; then everything is done",
    ends={"/": "done", "/busy": "done", "/two": "done"},
)
def _date() -> Pages:
    return ordinary("/busy") | {"/busy": _at_first(1, _busy_until, page("Not busy any more"))}


@fault(
    "retry-after-503",
    "/down answers 503 with Retry-After: 1, then 200",
    "the whole host pauses for 1 s; then everything is done",
    ends={"/": "done", "/down": "done"},
)
def _seconds_503() -> Pages:
    return ordinary("/down") | {"/down": _at_first(1, lambda: _busy("1", 1.0, 503), page("Up again"))}


@fault(
    "retry-after-day",
    "/busy always answers 429 with Retry-After: 86400",
    "capped by retry_after_cap_s; after max_attempts a dead letter, the other pages are done",
    ends={"/": "done", "/one": "done", "/two": "done", "/busy": "failed rate_limited"},
)
def _day() -> Pages:
    return ordinary("/busy") | {"/busy": _busy("86400")}


@fault(
    "retry-after-bad",
    "/busy answers 429 with Retry-After: soon, -5 and 0.1, then 200",
    "unreadable values are ignored for the usual backoff; then everything is done",
    ends={"/": "done", "/busy": "done"},
)
def _bad() -> Pages:
    answers = iter([_busy("soon"), _busy("-5"), _busy("0.1")])
    return ordinary("/busy") | {"/busy": _at_first(3, lambda: next(answers), page("Not busy any more"))}


@fault(
    "error-503",
    "/down always answers 503",
    "tried max_attempts times with growing pauses, then a dead letter; the other pages are done",
    ends={"/": "done", "/one": "done", "/two": "done", "/down": "failed server_error"},
)
def _error_503() -> Pages:
    return ordinary("/down") | {"/down": text("Down.\n", 503)}


@fault(
    "error-500",
    "/error always answers 500",
    "tried max_attempts times, then a dead letter server_error; the other pages are done",
    ends={"/": "done", "/error": "failed server_error"},
)
def _error_500() -> Pages:
    return ordinary("/error") | {"/error": text("Error.\n", 500)}


@fault(
    "flapping-500",
    "every page answers 500 when asked for the first, third, ... time",
    "each is retried once; all are done",
    ends={"/": "done", "/one": "done", "/two": "done"},
)
def _flapping() -> Pages:
    asked: Counter[str] = Counter()

    def flap(answer: Answer) -> Handler:
        def say(request: Request) -> Answer:
            asked[request.target] += 1
            return text("Error.\n", 500) if asked[request.target] % 2 else answer

        return say

    return replaced(ordinary(), flap)


@fault(
    "gone",
    "/missing answers 404, /gone answers 410",
    "both are done as gone, requested once",
    ends={"/": "done", "/missing": "done gone", "/gone": "done gone"},
)
def _gone() -> Pages:
    return ordinary("/missing", "/gone") | {"/gone": text("Gone.\n", 410)}


@fault(
    "refused",
    "401, 403, 451 and 402",
    "the first three are dead letters refused at once, 402 is a dead letter too; none is requested twice",
    ends={
        "/": "done",
        "/login": "failed refused",
        "/no": "failed refused",
        "/law": "failed refused",
        "/pay": "failed http_402",
    },
)
def _refused() -> Pages:
    return ordinary("/login", "/no", "/law", "/pay") | {
        "/login": reply(401, b"Who?", "text/plain", (("WWW-Authenticate", 'Basic realm="tiny"'),)),
        "/no": text("No.\n", 403),
        "/law": text("No.\n", 451),
        "/pay": text("Pay.\n", 402),
    }


@fault(
    "status-odd",
    "204, 206 without a range request, 299, 600, 999, and a 200 after 103 Early Hints",
    "no crash and no hang; /early and /299 are done, 600 and 999 count as server errors",
    ends={
        "/": "done",
        "/204": "done",
        "/206": "failed partial",
        "/299": "done",
        "/600": "failed server_error",
        "/999": "failed server_error",
        "/early": "done",
    },
)
def _odd() -> Pages:
    pages = ordinary("/204", "/206", "/299", "/600", "/999", "/early")
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </style.css>; rel=preload\r\n\r\n"
    early = page("After the hints")
    return pages | {
        "/204": Answer(status=204, wire=head(204, ())),
        "/206": reply(206, b"<p>Part", headers=(("Content-Range", "bytes 0-6/100"),)),
        "/299": reply(299, b"<!doctype html><title>299</title><p>Fine, really.</p>"),
        "/600": text("Beyond.\n", 600),
        "/999": text("Denied, says a large site.\n", 999),
        "/early": Answer(status=200, wire=hints + early.wire),
    }


@fault(
    "slow",
    "every page takes 1 s to begin and 1 s to end",
    "all are done; the pause between requests grows with the host's latency",
    ends={"/": "done", "/one": "done"},
)
def _slow() -> Pages:
    def slowly(answer: Answer) -> Handler:
        half = len(answer.wire) // 2
        return lambda _: Script(status=200, steps=(1.0, answer.wire[:half], 1.0, answer.wire[half:]))

    return replaced(ordinary(), slowly)


@fault(
    "slow-drip",
    "/drip sends one byte every 0.1 s without end",
    "aborted by the total time limit, not by a pause between bytes: a dead letter timeout",
    ends={"/": "done", "/one": "done", "/two": "done", "/drip": "failed timeout|failed host_unreachable"},
)
def _drip() -> Pages:
    def dripping() -> Iterator[bytes | float]:
        yield head(200, (("Content-Type", HTML), ("Content-Length", "100000")))
        while True:
            yield 0.1
            yield b"."

    return ordinary("/drip") | {"/drip": lambda _: Script(status=200, steps=dripping())}


@fault(
    "hang",
    "/never is accepted and never answered",
    "timeout after fetch_timeout_s; after its attempts a dead letter; the other pages are done",
    ends={"/": "done", "/one": "done", "/two": "done", "/never": "failed timeout|failed host_unreachable"},
)
def _hang() -> Pages:
    return ordinary("/never") | {"/never": lambda _: Script(status=0, steps=(), after=After.HANG)}


@fault(
    "hang-all",
    "robots.txt is answered, every page is accepted and never answered",
    "after host_patience the seed is a dead letter timeout or host_unreachable",
    ends={"/": "failed timeout|failed host_unreachable"},
)
def _hang_all() -> Pages:
    return {"/robots.txt": text("User-agent: *\n"), "*": lambda _: Script(status=0, steps=(), after=After.HANG)}


@fault(
    "hang-body",
    "/half sends its head and half of its body, then nothing more",
    "timeout after fetch_timeout_s; after its attempts a dead letter; the half body is not kept",
    ends={"/": "done", "/one": "done", "/two": "done", "/half": "failed timeout|failed host_unreachable"},
)
def _hang_body() -> Pages:
    whole = page("Half a page", words="Half of this will never arrive. " * 50).wire
    steps = (whole[: len(whole) // 2],)
    return ordinary("/half") | {"/half": lambda _: Script(status=200, steps=steps, after=After.HANG)}


@fault(
    "connection-reset",
    "/reset resets the connection before a byte, /reset-midway in the middle of the body",
    "retried through the frontier, each attempt at the host's pace; then dead letters connection_lost",
    ends={
        "/": "done",
        "/two": "done",
        "/reset": "failed connection_lost|failed host_unreachable",
        "/reset-midway": "failed connection_lost|failed host_unreachable",
    },
)
def _reset() -> Pages:
    whole = page("Reset", words="Cut off. " * 100).wire
    # The pause lets the first half leave before the reset throws away what is still unsent.
    return ordinary("/reset", "/reset-midway") | {
        "/reset": lambda _: Script(status=0, steps=(), after=After.RESET),
        "/reset-midway": lambda _: Script(status=200, steps=(whole[:400], 0.05), after=After.RESET),
    }


@fault(
    "connection-close",
    "/closed closes the connection without an answer",
    "retried, then a dead letter connection_lost",
    ends={"/": "done", "/two": "done", "/closed": "failed connection_lost|failed bad_response|failed host_unreachable"},
)
def _close() -> Pages:
    return ordinary("/closed") | {"/closed": lambda _: Script(status=0, steps=(), after=After.CLOSE)}


@fault(
    "keepalive-drop",
    "every answer promises keep-alive, and the connection is closed right after it",
    "all pages are done, each over a new connection",
    ends={"/": "done", "/one": "done", "/two": "done"},
)
def _drop() -> Pages:
    def dropped(answer: Answer) -> Answer:
        return Answer(status=answer.status, wire=answer.wire, after=After.CLOSE)

    return replaced(ordinary(), dropped, robots=True)


@fault(
    "keepalive-resend",
    "the second request of a connection is read and the connection closed without an answer",
    "the client library must not send it again by itself: the retry keeps the host's delay; all pages are done",
    ends={"/": "done", "/one": "done", "/two": "done"},
)
def _resend() -> Pages:
    def once(answer: Answer) -> Handler:
        def say(request: Request) -> Answer | Script:
            return answer if request.turn == 1 else Script(status=0, steps=(), after=After.CLOSE)

        return say

    return replaced(ordinary(), once, robots=True)
