"""Phrases in ASCII text are compared in lower case: that finds the same as a comparison without regard to case."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.content.main_content import phrases

PHRASES = tomllib.loads(Path(phrases.__file__).with_name("phrases.toml").read_text("utf-8"))
WORDS = sorted({word for found in PHRASES.values() for phrase in found for word in re.findall(r"[^\W\d_]+", phrase)})
#: letters that are equal to ASCII letters if case does not count, and a few that are not
TEXT = st.lists(st.one_of(st.sampled_from(WORDS), st.text("aiks ıſKİé.:", max_size=4)), max_size=4).map(" ".join)


def in_any_case(text: str, upper: list[bool]) -> str:
    return "".join(sign.upper() if up else sign for sign, up in zip(text, upper, strict=False)) + text[len(upper) :]


@given(TEXT, st.lists(st.booleans(), max_size=30), st.sampled_from(sorted(PHRASES)))
def test_patterns_find_the_same_in_ascii_as_without_regard_to_case(text: str, upper: list[bool], name: str) -> None:
    pattern = f"(?:{'|'.join(PHRASES[name])})"
    said = in_any_case(text, upper)
    for method in ("search", "match", "fullmatch"):
        found = getattr(phrases.Pattern(pattern), method)(said)
        expected = getattr(re.compile(pattern, re.IGNORECASE), method)(said)
        assert (found and found.span()) == (expected and expected.span())


@given(TEXT, st.lists(st.booleans(), max_size=30), st.sampled_from(sorted(PHRASES)))
def test_grouped_phrases_find_the_same_as_a_list_of_them(text: str, upper: list[bool], name: str) -> None:
    said = in_any_case(text, upper)
    plain = re.compile(f"(?:{'|'.join(PHRASES[name])})", re.IGNORECASE)
    for method in ("search", "match", "fullmatch"):
        assert bool(getattr(phrases.Pattern.of(name), method)(said)) == bool(getattr(plain, method)(said))


@pytest.mark.parametrize(
    ("said", "is_found"),
    [("a cookie", True), ("cookies", True), ("acookies", False), ("x_cookie", False), ("cook", False), ("dog b", True)],
)
def test_a_phrase_may_demand_the_start_of_a_word(said: str, is_found: bool) -> None:
    pattern = phrases.any_of([r"\bcookies?\b", "dog a|dog b", "dogs"])
    assert (re.search(pattern, said) is not None) == is_found


def test_a_dotless_i_of_a_pattern_is_an_i_in_ascii() -> None:
    assert phrases.Pattern("tanıtım").search("TANITIM")
    assert phrases.Pattern("tanıtım").search("tanıtım")
    assert not phrases.Pattern("tanıtım").search("tanetem")
