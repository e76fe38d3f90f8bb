"""Hosts with validators for conditional requests, and with cookies."""

from __future__ import annotations

import itertools
from email.utils import formatdate

from curtsy.tinyweb.answers import HTML, Answer, Handler, Pages, Request, redirect, reply, tagged
from curtsy.tinyweb.faults.registry import body_of, fault, ordinary, page

#: 1 May 2024, 12:00:00 GMT
MODIFIED_S = 1_714_564_800


@fault(
    "etag",
    "/tagged has an ETag, /weak a weak one; both answer 304 to If-None-Match",
    "done; a revisit sends the tag and ends as not_modified",
    ends={"/": "done", "/tagged": "done", "/weak": "done"},
)
def _etag() -> Pages:
    weak = reply(200, body_of("Weak"), HTML, (("ETag", 'W/"v1"'),))
    return ordinary("/tagged", "/weak") | {
        "/tagged": tagged(body_of("Tagged")),
        "/weak": Answer(status=200, wire=weak.wire, etag=b'W/"v1"'),
    }


@fault(
    "last-modified",
    "/dated has a Last-Modified and answers 304 to If-Modified-Since",
    "done; a revisit sends the date and ends as not_modified",
    ends={"/": "done", "/dated": "done"},
)
def _last_modified() -> Pages:
    dated = reply(200, body_of("Dated"), HTML, (("Last-Modified", formatdate(MODIFIED_S, usegmt=True)),))
    return ordinary("/dated") | {"/dated": Answer(status=200, wire=dated.wire, modified_s=MODIFIED_S)}


@fault(
    "changing",
    "/news is different each time and changes its ETag, /blind answers 304 without a condition",
    "/news is done and new on a revisit; a 304 without a condition is not a page",
    ends={"/": "done", "/news": "done", "/blind": "failed http_304"},
)
def _changing() -> Pages:
    numbers = itertools.count(1)
    return ordinary("/news", "/blind") | {
        "/news": lambda _: tagged(body_of(f"Edition {next(numbers)}")),
        "/blind": reply(304, b"", None),
    }


def _with_cookie(name: str, without: Answer, then: Answer) -> Handler:
    """Return the page for requests with the cookie, and another answer for others."""

    def answer(request: Request) -> Answer:
        cookies = [part.strip() for part in (request.header("cookie") or "").split(";")]
        return then if f"{name}=1" in cookies else without

    return answer


@fault(
    "cookie-redirect",
    "/hello redirects to itself and sets a cookie; with the cookie it answers 200",
    "requested once more with the cookie, not a loop: done",
    ends={"/": "done", "/hello": "done", "/door": "done redirect"},
)
def _cookie() -> Pages:
    hello = redirect("/hello", 302, (("Set-Cookie", "seen=1; Path=/; HttpOnly"),))
    door = redirect("/inside", 303, (("Set-Cookie", "key=1; Path=/"), ("Set-Cookie", "other=2; Path=/")))
    return ordinary("/hello", "/door") | {
        "/hello": _with_cookie("seen", hello, page("Hello again")),
        "/door": door,
        "/inside": _with_cookie("key", reply(403, b"No key.\n", "text/plain"), page("Inside")),
    }


@fault(
    "cookie-wall",
    "/wall redirects to itself and sets a new cookie for ever",
    "requested once more, then skipped redirect_loop",
    ends={"/": "done", "/wall": "skipped redirect_loop|skipped too_many_redirects"},
)
def _wall() -> Pages:
    numbers = itertools.count()
    return ordinary("/wall") | {
        "/wall": lambda _: redirect("/wall", 302, (("Set-Cookie", f"try={next(numbers)}; Path=/"),))
    }


@fault(
    "cookie-host",
    "a cookie for another domain, one for the whole of .test, and ten thousand bytes of cookie",
    "never sent elsewhere; bounded; all pages are done",
    ends={"/": "done", "/foreign": "done", "/large": "done"},
)
def _foreign() -> Pages:
    foreign = (("Set-Cookie", "a=1; Domain=other.example"), ("Set-Cookie", "b=1; Domain=.test"))
    return ordinary("/foreign", "/large") | {
        "/foreign": reply(200, body_of("Foreign"), HTML, foreign),
        "/large": reply(200, body_of("Large"), HTML, (("Set-Cookie", "c=" + "x" * 10_000),)),
    }
