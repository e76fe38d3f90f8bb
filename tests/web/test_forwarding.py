"""What proxies say about clients is believed from named proxies only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask

from curtsy.web.forwarding import Forwarding, is_forwarded

NAMED = ("10.0.0.0/8", "::1", "192.0.2.7")


def seen(peer: str, **headers: str) -> tuple[str, str]:
    """(client address, scheme) that the application sees."""
    found: dict[str, Any] = {}
    environ = {"REMOTE_ADDR": peer, "wsgi.url_scheme": "http"} | {
        f"HTTP_{name}": text for name, text in headers.items()
    }
    Forwarding(lambda environ, _start: found.update(environ), NAMED)(environ, None)
    return found["REMOTE_ADDR"], found["wsgi.url_scheme"]


@pytest.mark.parametrize(
    ("peer", "chain", "client"),
    [
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.2.3.4, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "1.2.3.4, 203.0.113.9, 10.9.9.9", "203.0.113.9"),
        ("10.0.0.1", "10.0.0.2, 10.0.0.3", "10.0.0.2"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "nonsense", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9, nonsense", "10.0.0.1"),
        ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("::1", "2001:db8::9", "2001:db8::9"),
        ("203.0.113.1", "127.0.0.1", "203.0.113.1"),
        ("127.0.0.1", "203.0.113.9", "127.0.0.1"),
    ],
)
def test_the_client_is_the_last_address_that_no_named_proxy_has(peer: str, chain: str, client: str) -> None:
    assert seen(peer, X_FORWARDED_FOR=chain, X_FORWARDED_PROTO="https") == (
        client,
        "http" if peer in ("203.0.113.1", "127.0.0.1") else "https",
    )


@pytest.mark.parametrize(
    "header",
    ["Forwarded", "X-Forwarded-For", "x-forwarded-proto", "X-FORWARDED-HOST", "X-Forwarded-Port", "X-Forwarded-Server",
     "X-Forwarded-Client-Cert", "Via", "X-Real-IP", "CF-Ray", "True-Client-IP", "X-Amzn-Trace-Id", "X-Original-Host",
     "X-Envoy-External-Address", "Fastly-Client-IP", "CDN-Loop", "X-ARR-Log-Id"],
)  # fmt: skip
def test_a_request_with_a_header_of_a_proxy_is_never_local(apps: Callable[..., Flask], header: str) -> None:
    assert is_forwarded(["Host", header])
    for proxies in ((), ("127.0.0.1",)):
        client = apps(api_proxies=proxies).test_client()
        assert client.get("/v1/crawls", headers={header: "127.0.0.1"}).status_code == 401


def test_a_request_over_http_1_0_is_not_local(apps: Callable[..., Flask]) -> None:
    """nginx speaks it to its backend unless it is told otherwise."""
    client = apps().test_client()
    old = client.get("/v1/crawls", environ_overrides={"SERVER_PROTOCOL": "HTTP/1.0"})
    assert (old.status_code, client.get("/v1/crawls").status_code) == (401, 200)


def test_the_cookie_is_secure_if_the_browser_or_a_named_proxy_says_https(apps: Callable[..., Flask]) -> None:
    for proxies, headers, secure in (
        ((), {}, False),
        ((), {"X-Forwarded-Proto": "https"}, False),
        (("127.0.0.1",), {"X-Forwarded-Proto": "https"}, True),
        (("127.0.0.1",), {"X-Forwarded-Proto": "http"}, False),
    ):
        client = apps(api_proxies=proxies).test_client()
        cookie = client.get("/sign-in", headers={"Accept": "text/html", **headers}).headers.get("Set-Cookie", "")
        # Without a forwarding header the overview needs no key, so the form redirects without a cookie.
        assert ("Secure" in cookie) is secure, (proxies, headers)


def test_failed_keys_count_against_the_client_and_not_against_its_proxy(apps: Callable[..., Flask]) -> None:
    client = apps(api_proxies=("127.0.0.1",), api_rate=0.001, api_burst=2).test_client()
    wrong = {"Authorization": "Bearer curtsy_000000000000_" + "x" * 43}
    for address, statuses in (("203.0.113.1", [401, 401, 429]), ("203.0.113.2", [401])):
        headers = wrong | {"X-Forwarded-For": address}
        assert [client.get("/v1/crawls", headers=headers).status_code for _ in statuses] == statuses
