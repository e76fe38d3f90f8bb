"""Cookies: the jar of a crawl and host, and those that a redirect chain carries."""

from __future__ import annotations

import pytest

from curtsy.rules.cookies import CookieJar

NOW_S = 1_700_000_000.0


def sent(jar: CookieJar, url: str, now_s: float = NOW_S) -> str:
    return "; ".join(f"{name}={value}" for name, value in jar.pairs(url, now_s))


def filled(*lines: str, url: str = "https://a.test/shop/cart") -> CookieJar:
    jar = CookieJar()
    jar.store(url, lines, NOW_S)
    return jar


@pytest.mark.parametrize(
    "line",
    [
        "b=; Max-Age=0",
        "b=2; max-age=-1",
        "b=2; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
        "b=; expires=Thu, 01-Jan-1970 00:00:01 GMT",
    ],
)
def test_a_cookie_that_expires_is_removed(line: str) -> None:
    jar = filled("a=1; Path=/", "b=2")
    assert sent(jar, "https://a.test/shop/x") == "b=2; a=1"
    jar.store("https://a.test/shop/other", [line], NOW_S)
    assert sent(jar, "https://a.test/shop/x") == "a=1"
    assert jar.knows("b")


def test_a_cookie_is_kept_for_its_time() -> None:
    jar = filled("a=1; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "b=2; Expires=soon", "c=3; Max-Age=x")
    assert sent(jar, "https://a.test/shop/") == "a=1; b=2; c=3"
    assert sent(jar, "https://a.test/shop/", NOW_S + 60) == "b=2; c=3"


@pytest.mark.parametrize(
    ("line", "url", "goes"),
    [
        ("a=1; Secure", "http://a.test/shop/x", False),
        ("a=1; Secure", "https://a.test/shop/x", True),
        ("a=1", "http://a.test/shop/x", True),
        ("a=1", "https://a.test/", False),
        ("a=1", "https://a.test/shopping", False),
        ("a=1; Path=/", "https://a.test", True),
        ("a=1; Path=/shop/cart", "https://a.test/shop/cart?x=1", True),
        ("a=1; Path=shop", "https://a.test/shop/x", True),
        ("a=1", "https://b.a.test/shop/x", False),
        ("a=1; Domain=.a.test", "https://b.a.test/shop/x", True),
        ("a=1; Domain=b.a.test", "https://b.a.test/shop/x", False),
        ("a=1; Domain=test", "https://a.test/shop/x", False),
        ("a", "https://a.test/shop/x", False),
        ("=1", "https://a.test/shop/x", False),
        ("a=\x01", "https://a.test/shop/x", False),
        ("a=" + "x" * 5000, "https://a.test/shop/x", False),
    ],
)
def test_where_a_cookie_goes(line: str, url: str, goes: bool) -> None:
    assert sent(filled(line), url) == ("a=1" if goes else "")


def test_a_jar_holds_so_many() -> None:
    jar = filled(*(f"c{n}=1" for n in range(60)))
    assert len(jar.pairs("https://a.test/shop/", NOW_S)) == 50
    assert "c59" in sent(jar, "https://a.test/shop/")
