"""URLs: WHATWG parsing, the normal form, units of politeness, session ids, scope."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl
from curtsy.rules.urls import (
    Scope,
    fingerprint,
    host_key,
    host_named,
    hosts_named,
    normalise,
    origin,
    parse,
    registrable_domain,
    short,
)

BASE = "http://a.test/b/c/d;p?q"


@pytest.mark.parametrize(
    ("url", "base", "href"),
    [
        ("HTTP://EXAMPLE.com:80/%7Efoo/../bar", None, "http://example.com/bar"),
        ("https://example.com", None, "https://example.com/"),
        ("https://example.com:443/", None, "https://example.com/"),
        ("http://example.com:443/", None, "http://example.com:443/"),
        ("g", BASE, "http://a.test/b/c/g"),
        ("./g", BASE, "http://a.test/b/c/g"),
        ("../../../g", BASE, "http://a.test/g"),
        ("?y", BASE, "http://a.test/b/c/d;p?y"),
        ("#s", BASE, "http://a.test/b/c/d;p?q#s"),
        ("//g", BASE, "http://g/"),
        ("http:g", BASE, "http://a.test/b/c/g"),
        ("/a\\b", BASE, "http://a.test/a/b"),
        ("  \n/x\t \r\n", BASE, "http://a.test/x"),
        ("/a b", BASE, "http://a.test/a%20b"),
        ("/é?ü", BASE, "http://a.test/%C3%A9?%C3%BC"),
        ("http://bücher.test/", None, "http://xn--bcher-kva.test/"),
        ("http://ＧＯ.test/", None, "http://go.test/"),
        ("http://0x7f.1/", None, "http://127.0.0.1/"),
        ("http://[::ffff:1.2.3.4]/", None, "http://[::ffff:102:304]/"),
        ("http://example.com/\ud800x", None, "http://example.com/%EF%BF%BDx"),
        ("mailto:a@b", BASE, "mailto:a@b"),
        ("javascript:void(0)", BASE, "javascript:void(0)"),
        ("http://a b/", None, None),
        ("http://[::1/", None, None),
        ("http://a.test:99999/", None, None),
        ("http://", None, None),
        ("relative", None, None),
        ("x", "mailto:a@b", None),
        ("http://1.2.3.256/", None, None),
        ("http://\ud800/", None, None),
    ],
)
def test_parsing_is_that_of_the_url_standard(url: str, base: str | None, href: str | None) -> None:
    assert parse(url, base) == href


@pytest.mark.parametrize(
    ("url", "normal"),
    [
        ("http://user:pass@a.test/x#frag", "http://a.test/x"),
        ("http://us%40er@a.test/?q=@b#", "http://a.test/?q=@b"),
        ("https://a.test:8443/@x", "https://a.test:8443/@x"),
        ("/y#z", "http://a.test/y"),
        ("#top", "http://a.test/b/c/d;p?q"),
        ("ftp://a.test/", None),
        ("data:text/html,x", None),
        ("mailto:a@b.test", None),
        ("tel:+1", None),
        ("http://", None),
        ("", "http://a.test/b/c/d;p?q"),
    ],
)
def test_only_http_is_normal_and_without_fragment_or_credentials(url: str, normal: str | None) -> None:
    assert normalise(url, BASE) == normal


@given(st.text())
def test_normalising_any_text_is_idempotent_and_never_raises(text: str) -> None:
    url = normalise(text, BASE)
    if url is not None:
        assert normalise(url) == url
        assert url.startswith(origin(url) + "/")
        assert host_key(url).replace(":", ".:") in url or host_key(url) in url


def test_a_fingerprint_is_sixteen_bytes_and_its_short_form_fits_sixty_three_bits() -> None:
    fp = fingerprint("http://a.test/")
    assert len(fp) == 16
    assert fp != fingerprint("http://a.test/x")
    assert 0 <= short(fp) < 2**63
    assert short(b"\xff" * 16) == 2**63 - 1


@pytest.mark.parametrize(
    ("url", "host", "domain"),
    [
        ("http://www.example.co.uk/", "www.example.co.uk", "example.co.uk"),
        ("https://www.example.co.uk/x?y=/", "www.example.co.uk", "example.co.uk"),
        ("http://a.test:8080/", "a.test:8080", "a.test"),
        ("http://1.2.3.4:81/", "1.2.3.4:81", "1.2.3.4"),
        ("http://[::1]:81/", "[::1]:81", "[::1]"),
        ("http://localhost/", "localhost", "localhost"),
        ("http://me.github.io/", "me.github.io", "me.github.io"),
        ("http://co.uk/", "co.uk", "co.uk"),
        ("http://x.y.internal/", "x.y.internal", "y.internal"),
        ("http://www.example.co.uk./", "www.example.co.uk", "example.co.uk"),
        ("http://a.test.:8080/x.:y", "a.test:8080", "a.test"),
        ("http://localhost./", "localhost", "localhost"),
        ("http://1.2.3.4./", "1.2.3.4", "1.2.3.4"),
        ("http://[::1]/x.:1", "[::1]", "[::1]"),
        ("http://./", ".", "."),
    ],
)
def test_the_unit_of_politeness_is_the_host_or_its_registrable_domain(url: str, host: str, domain: str) -> None:
    normal = normalise(url)
    assert normal is not None
    assert host_key(normal) == host
    assert host_key(normal, "domain") == domain
    assert registrable_domain(host) == domain


@pytest.mark.parametrize(
    "name",
    ["WWW.A.test", "www.a.test:443", "www.a.test:80", "www.a.test:80/x", "https://someone:hunter2@www.a.test/x?y"],
)
def test_people_name_a_host_by_its_name_or_a_url(name: str) -> None:
    assert host_named(name) == "www.a.test"
    assert host_named(name, "domain") == "a.test"


@pytest.mark.parametrize(
    ("name", "hosts"),
    [
        ("a.test", ("a.test",)),
        ("a.test:8080", ("a.test:8080",)),
        ("a.test.:80", ("a.test", "a.test:80")),
        ("a.test:443", ("a.test", "a.test:443")),
        ("[::1]:80", ("[::1]", "[::1]:80")),
        ("http://a.test:80/", ("a.test",)),
        ("https://a.test:80/", ("a.test:80",)),
    ],
)
def test_a_default_port_is_no_part_of_the_name_unless_a_url_says_so(name: str, hosts: tuple[str, ...]) -> None:
    assert hosts_named(name) == hosts


@pytest.mark.parametrize("name", ["", "*.a.test", "ftp://someone:hunter2@a.test/", "someone:hunter2@a b"])
def test_what_names_no_host_is_refused_without_its_password(name: str) -> None:
    with pytest.raises(UsageError, match="is not a host") as told:
        host_named(name)
    assert "hunter2" not in str(told.value)


def crawl(**fields: object) -> Crawl:
    return Crawl(id="c", request_id="r", **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("reach", "members", "url", "reason"),
    [
        ("host", {"a.test"}, "http://a.test/x", None),
        ("host", {"a.test"}, "https://a.test/x", None),
        ("host", {"a.test"}, "http://www.a.test/x", "scope"),
        ("host", {"a.test"}, "http://a.test:81/x", "scope"),
        ("host", {"a.test:81"}, "http://a.test:81/x", None),
        ("host", {"a.test:81"}, "http://a.test.:81/x", None),
        ("domain", {"a.test"}, "http://www.a.test./x", None),
        ("domain", {"a.test"}, "http://deep.www.a.test:81/x", None),
        ("domain", {"a.test"}, "http://ba.test/x", "scope"),
        ("any", set(), "http://whatever.test/", None),
    ],
)
def test_scope_reaches_hosts_domains_or_everything(reach: str, members: set[str], url: str, reason: str | None) -> None:
    scope = Scope.of(crawl(scope=reach, members=frozenset(members)))
    assert scope.admits(url, 0) == reason
    assert reach == "any" or (Scope.member(url, reach) in members) == (reason is None)


def test_depth_is_counted_from_the_seeds() -> None:
    scope = Scope.of(crawl(scope="any", max_depth=2))
    assert scope.admits("http://a.test/", 2) is None
    assert scope.admits("http://a.test/", 3) == "depth"
    assert Scope.of(crawl(scope="any")).admits("http://a.test/", 10**6) is None


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/a/b/c", None),
        ("/a/a/a", None),
        ("/a/a/a/a", "repeated"),
        ("/a/x/a/y/a/z/a", "repeated"),
        ("/a/b/a/b", None),
        ("/a/b/a/b/a/b", "repeated"),
        ("/x/a/b/c/a/b/c/a/b/c/y", "repeated"),
        ("/" + "/".join(map(str, range(32))), None),
        ("/" + "/".join(map(str, range(33))), "segments"),
        ("/?" + "/".join("a" * 40), None),
        ("/" + "x" * 2083, "length"),
    ],
)
def test_traps_are_recognized_by_their_paths(path: str, reason: str | None) -> None:
    assert Scope.of(crawl(scope="any")).admits("http://a.test" + path, 0) == reason


def test_the_limits_of_traps_are_settings() -> None:
    scope = Scope.of(crawl(scope="any"), max_url_length=40, max_path_segments=3, max_repeated_segments=1)
    assert scope.admits("http://a.test/a/b/c", 0) is None
    assert scope.admits("http://a.test/a/b/c/d", 0) == "segments"
    assert scope.admits("http://a.test/a/a", 0) == "repeated"
    assert scope.admits("http://a.test/" + "x" * 40, 0) == "length"


def test_excluded_links_are_out_and_only_included_ones_are_in() -> None:
    scope = Scope.of(crawl(scope="any", include=("/news/", r"\.pdf$"), exclude=("/private",)))
    assert scope.admits("http://a.test/news/1", 0) is None
    assert scope.admits("http://a.test/x.pdf", 0) is None
    assert scope.admits("http://a.test/news/private", 0) == "exclude"
    assert scope.admits("http://a.test/about", 0) == "include"


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "x" * 1001, "(?:" + "a{999}" * 99 + "){999}"])
def test_a_pattern_that_cannot_be_used_is_named(pattern: str) -> None:
    with pytest.raises(UsageError) as error:
        Scope.of(crawl(include=(pattern,)))
    assert pattern[:20] in str(error.value).replace("\\\\", "\\")


def test_patterns_run_in_linear_time() -> None:
    scope = Scope.of(crawl(scope="any", exclude=("(a+)+$", "(a|aa)+b")))
    assert scope.admits("http://a.test/" + "a" * 2000 + "!", 0) is None
