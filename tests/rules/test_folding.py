"""Folding: which URLs are one, by which rule, and that no rule merges more than it says."""

from __future__ import annotations

import re
from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from curtsy.core.fold_rules import FOLD_RULES
from curtsy.core.settings import TRACKING_PARAMETERS, Settings
from curtsy.rules.folding import Folding, is_signed, strip_session
from curtsy.rules.urls import normalise

DEFAULT = Folding.of(Settings())
EVERY = Folding(FOLD_RULES, TRACKING_PARAMETERS)


@pytest.mark.parametrize(
    ("url", "stripped"),
    [
        ("http://a.test/x;jsessionid=0A1B.node1?q=1", "http://a.test/x?q=1"),
        ("http://a.test/x;JSESSIONID=0A1B/y", "http://a.test/x/y"),
        ("http://a.test/?PHPSESSID=abc&b=2", "http://a.test/?b=2"),
        ("http://a.test/?a=1&PHPSESSID=abc", "http://a.test/?a=1"),
        ("http://a.test/?PHPSESSID=abc", "http://a.test/"),
        ("http://a.test/?ASPSESSIONIDQQ=abc", "http://a.test/"),
        ("http://a.test/?sid=0cc175b9c0f1b6a831c399e269772661", "http://a.test/"),
        ("http://a.test/(S(abcdefghij1234567890abcd))/p.aspx", "http://a.test/p.aspx"),
        ("http://a.test/?sid=12", "http://a.test/?sid=12"),
        ("http://a.test/?session=9", "http://a.test/?session=9"),
        ("http://a.test/?s=search+words", "http://a.test/?s=search+words"),
        ("http://a.test/sessions/inside?cid=1", "http://a.test/sessions/inside?cid=1"),
    ],
)
def test_session_ids_are_removed_and_look_alikes_stay(url: str, stripped: str) -> None:
    assert strip_session(url) == stripped


@pytest.mark.parametrize(
    ("url", "folded", "rules"),
    [
        ("http://a.test/%7Ejoe/%61", "http://a.test/~joe/a", ["escapes"]),
        ("http://a.test/%c3%a9?q=%c3%a9", "http://a.test/%C3%A9?q=%C3%A9", ["escapes"]),
        ("http://a.test/%2fb%3F", "http://a.test/%2Fb%3F", ["escapes"]),
        ("http://a.test/100%/%41", "http://a.test/100%/A", ["escapes"]),
        ("http://a.test/%4%31%32", "http://a.test/%4%31%32", []),
        ("http://a.test/.;jsessionid=1", "http://a.test/.;jsessionid=1", []),
        ("http://a.test/%%34%31", "http://a.test/%%34%31", []),
        ("http://a.test/%2541", "http://a.test/%2541", []),
        ("http://a.test/a?", "http://a.test/a", ["empty_query"]),
        ("http://a.test/a??", "http://a.test/a??", []),
        ("http://a.test/a?&", "http://a.test/a?&", []),
        ("http://a.test/a?utm_source=x", "http://a.test/a", ["tracking"]),
        ("http://a.test/a?b=1&UTM_Medium=y&fbclid=z&c=", "http://a.test/a?b=1&c=", ["tracking"]),
        ("http://a.test/a?&utm_id", "http://a.test/a", ["tracking", "empty_query"]),
        ("http://a.test/a?utm=1&xgclid=2", "http://a.test/a?utm=1&xgclid=2", []),
        ("http://a.test/a;jsessionid=1?utm_id=2", "http://a.test/a", ["sessions", "tracking"]),
        ("http://a.test/a?b=2&a=1", "http://a.test/a?b=2&a=1", []),
        ("http://a.test/index.html", "http://a.test/index.html", []),
        ("http://a.test/a?utm_source=x&X-Amz-Signature=0f", "http://a.test/a?utm_source=x&X-Amz-Signature=0f", []),
        ("http://a.test/%7ea?sig=%2f", "http://a.test/%7ea?sig=%2f", []),
    ],
)
def test_the_default_rules_fold_what_servers_answer_alike(url: str, folded: str, rules: list[str]) -> None:
    assert (DEFAULT.links(url), DEFAULT.links.changed_by(url)) == (folded, rules)


@pytest.mark.parametrize(
    ("url", "folded"),
    [
        ("http://a.test/?b=2&a=1", "http://a.test/?a=1&b=2"),
        ("http://a.test/?b=2&a=2&b=1&a=1", "http://a.test/?a=2&a=1&b=2&b=1"),
        ("http://a.test/d/index.html", "http://a.test/d/"),
        ("http://a.test/d/Default.aspx?b&a", "http://a.test/d/?a&b"),
        ("http://a.test/d/index.html/x", "http://a.test/d/index.html/x"),
        ("http://a.test/myindex.html", "http://a.test/myindex.html"),
    ],
)
def test_order_and_index_are_folded_if_told(url: str, folded: str) -> None:
    assert EVERY.links(url) == folded


def test_seeds_and_redirects_keep_their_session_ids() -> None:
    url = "http://a.test/a;jsessionid=1?PHPSESSID=2&utm_id=3"
    assert DEFAULT.named(url) == "http://a.test/a;jsessionid=1?PHPSESSID=2"


def test_without_rules_every_url_stays_as_it_is() -> None:
    url = "http://a.test/%7Ea;jsessionid=1?utm_id=3&PHPSESSID=2"
    assert Folding((), TRACKING_PARAMETERS).links(url) == url


def test_the_list_of_tracking_parameters_is_a_setting() -> None:
    folding = Folding.of(Settings(tracking_parameters=("ref", "my_*")))
    assert folding.links("http://a.test/?ref=1&my_x=2&utm_id=3") == "http://a.test/?utm_id=3"
    with pytest.raises(ValidationError, match="not a parameter name"):
        Settings(tracking_parameters=("a=b",))


@pytest.mark.parametrize(
    ("canonical", "contradicted"),
    [
        ("http://a.test/p", False),
        ("http://a.test/%70", False),
        ("http://a.test/p?", False),
        ("http://a.test/q?utm_id=1", False),
        ("http://a.test/p?utm_id=1", True),
        ("http://a.test/p;jsessionid=2", True),
    ],
)
def test_a_canonical_url_that_was_folded_away_contradicts_the_fold(canonical: str, contradicted: bool) -> None:
    assert DEFAULT.is_contradicted("http://a.test/p", canonical) is contradicted


_PIECES = st.sampled_from(
    (
        *("%41", "%7e", "%7E", "%2f", "%2F", "%c3%a9", "%", "%4", "%25", "%2541", "%26", "%3D", "a", "é", "+", " "),
        *("utm_id=1", "gclid=", "utm", "b=2", "a=1", "a=2", "PHPSESSID=x", "sid=0cc175b9c0f1b6a831", "sig=1", "&", "?"),
        *(";jsessionid=1", ";", "=", "/", "//", "/index.html", "index.php", "/(S(abcdefghij1234567890))/", ".", ".."),
    )
)
_URLS = st.lists(_PIECES, max_size=14).map(lambda pieces: normalise("http://a.test/" + "".join(pieces)) or "")
_FOLDINGS = st.lists(st.sampled_from(FOLD_RULES), unique=True).map(lambda rules: Folding(rules, TRACKING_PARAMETERS))


@given(_URLS, _FOLDINGS)
@example("http://a.test/%%34%31", EVERY)
@example("http://a.test/?&utm_id=1", EVERY)
def test_folding_twice_changes_nothing_and_the_result_is_normal(url: str, folding: Folding) -> None:
    for steps in (folding.links, folding.named):
        once = steps(url)
        assert steps(once) == once == normalise(once)
        assert bool(steps.changed_by(url)) == (once != url)


def _without_rules(url: str) -> tuple[bytes, list[bytes]]:
    """What is left of a URL beside everything that some rule may change, found in another way than by the rules."""
    path, _, query = url.partition("?")
    path = re.sub(r"(?i);(?:jsessionid|phpsessid|sid)=[^/;?]*|/\(S\([0-9a-z]{20,}\)\)(?=/)", "", path)
    path = re.sub(r"(?i)/(index\.(html?|php)|default\.html?)\Z", "/", path)
    pairs = [unquote_to_bytes(pair) for pair in query.split("&")]
    noise = re.compile(rb"(?i)(utm_[^=]*|gclid|PHPSESSID)(=|\Z)|sid=[0-9A-Za-z_-]{16,}\Z")
    left = [pair for pair in pairs if noise.match(pair) is None]
    return unquote_to_bytes(path), sorted(left if left != [b""] else [])


@given(_URLS, _URLS)
def test_urls_that_fold_into_one_differ_only_in_what_the_rules_name(one: str, other: str) -> None:
    if EVERY.links(one) == EVERY.links(other):
        assert _without_rules(one) == _without_rules(other)


@given(_URLS)
def test_a_folded_url_differs_from_its_origin_only_in_what_the_rules_name(url: str) -> None:
    assert _without_rules(EVERY.links(url)) == _without_rules(url)


@given(_URLS)
def test_a_signed_url_is_never_changed(url: str) -> None:
    signed = f"{url}{'&' if '?' in url else '?'}signature=1"
    assert is_signed(signed)
    assert EVERY.links(signed) == signed
