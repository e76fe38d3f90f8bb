"""The guard's table: which addresses and URLs may be asked."""

from __future__ import annotations

import pytest

from curtsy.fetch.guard import Target, address_allowed, check_url, is_listed, networks


@pytest.mark.parametrize(
    "address",
    [
        "1.1.1.1",
        "8.8.8.8",
        "93.184.216.34",
        "100.63.255.255",
        "100.128.0.1",
        "172.15.255.255",
        "172.32.0.1",
        "192.0.1.1",
        "192.169.0.1",
        "198.17.255.255",
        "198.20.0.1",
        "223.255.255.255",
        "::ffff:8.8.8.8",
        "64:ff9b::8.8.8.8",
        "2606:4700:4700::1111",
        "2a00:1450:4001::200e",
        "2001:4860:4860::8888",
    ],
)
def test_a_global_address_is_allowed(address: str) -> None:
    assert address_allowed(address)


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "0.1.2.3",
        "10.0.0.1",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "127.255.255.255",
        "168.63.129.16",  # Azure
        "100.100.100.200",  # Alibaba
        "192.0.0.192",  # Oracle
        "169.254.170.2",  # AWS, containers
        "169.254.0.23",  # Tencent
        "169.254.42.42",  # Scaleway
        "fd00:ec2::254",  # AWS
        "fd20:ce::254",  # Google
        "fd00:a9fe:a9fe::1",  # Linode
        "fd00:42::42",  # Scaleway
        "::ffff:168.63.129.16",
        "64:ff9b::a83f:8110",  # Azure's through NAT64
        "169.254.169.254",
        "172.16.0.1",
        "172.31.255.255",
        "192.0.0.8",
        "192.0.2.1",
        "192.88.99.1",
        "192.168.1.1",
        "198.18.0.1",
        "198.19.255.255",
        "198.51.100.7",
        "203.0.113.9",
        "224.0.0.1",
        "239.255.255.255",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::8.8.8.8",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:169.254.169.254",
        "::ffff:0:8.8.8.8",
        "64:ff9b::127.0.0.1",
        "64:ff9b::192.168.0.1",
        "64:ff9b:1::8.8.8.8",
        "100::1",
        "2001::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:10::1",
        "2001:20::1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "3fff::1",
        "5f00::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%eth0",
        "2606:4700::1%eth0",
        "fec0::1",
        "ff02::1",
        "4000::1",
        "not an address",
        "",
        "0x7f.1",
    ],
)
def test_an_address_that_is_not_global_is_refused(address: str) -> None:
    assert not address_allowed(address)


def test_the_operator_may_open_a_private_range() -> None:
    opened = networks(("127.0.0.0/8", "fd00::/8"))
    assert address_allowed("127.0.0.1", opened)
    assert address_allowed("::ffff:127.0.0.1", opened)
    assert address_allowed("fd00::7", opened)
    assert not address_allowed("10.0.0.1", opened)
    assert not address_allowed("::1", opened)


def test_an_opened_range_is_distinguished_from_a_global_address() -> None:
    opened = networks(("127.0.0.0/8",))
    assert is_listed("127.1.2.3", opened)
    assert not is_listed("8.8.8.8", opened)
    assert not is_listed("rubbish", opened)


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://example.com/", Target("http", "example.com", 80, "example.com")),
        ("https://example.com/a?b", Target("https", "example.com", 443, "example.com")),
        ("https://example.com:8443/", Target("https", "example.com", 8443, "example.com:8443")),
        ("http://[2606:4700::1]/", Target("http", "2606:4700::1", 80, "[2606:4700::1]")),
        ("http://[::1]:81/", Target("http", "::1", 81, "[::1]:81")),
    ],
)
def test_the_target_of_a_normal_url(url: str, target: Target) -> None:
    assert check_url(url) == target


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "HTTP://example.com/",
        "http:///path",
        "http://user@example.com/",
        "http://user:pass@example.com/",
        "http://example.com:x/",
        "http://example.com:0/",
        "http://example.com:65536/",
        "http://[::1/",
        "http://[::1]x/",
        "http://example.com\\@evil.test/",
        "http://exämple.com/",
        "http://exa mple.com/",
        "http://:80/",
    ],
)
def test_what_is_not_a_normal_http_url_has_no_target(url: str) -> None:
    assert check_url(url) is None
