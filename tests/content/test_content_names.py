"""Names of elements: a word is found where a pattern of all words would find it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.content.main_content import names
from curtsy.content.main_content.names import Part, is_button, part_of

WORDS = sorted({word for found in names._LISTS.values() for word in found.split()})
NAMES = st.lists(
    st.one_of(st.sampled_from(WORDS), st.text("ab1 -_:Z", max_size=3), st.sampled_from((" ", "-", "2", "no-"))),
    max_size=5,
).map("".join)


@given(NAMES, st.sampled_from(sorted(names._LISTS)))
def test_words_are_found_as_a_search_finds_them(said: str, name: str) -> None:
    read = names._read(said)
    words = "|".join(map(re.escape, names._LISTS[name].split()))
    expected = re.search(rf"(?:^|[\s-])(?:{words})(?=$|[\s\d-])", read.text) is not None
    assert names._Words.of(names._LISTS[name]).are_in(read) == expected


@pytest.mark.parametrize(
    ("said", "part"),
    [
        ("nav2", Part.FRAME),
        ("mainNav", Part.FRAME),
        ("item_nav-x", Part.FRAME),
        ("navel", Part.UNKNOWN),
        ("post-content", Part.CONTENT),
        ("has-sidebar", Part.UNKNOWN),
        ("main3_C3_SearchResults", Part.UNKNOWN),
        ("search-results-7", Part.UNKNOWN),
        ("search-results filters", Part.FRAME),
        ("search-resulting", Part.FRAME),
        ("postcontentx", Part.UNKNOWN),
        ("", Part.UNKNOWN),
    ],
)
def test_a_part_has_whole_words(said: str, part: Part) -> None:
    assert part_of(said) is part


@pytest.mark.parametrize("said", ["buyNow", "x buy_now1", "no x-buy-now"])
def test_a_word_may_have_several_pieces(said: str) -> None:
    assert is_button(said)


@pytest.mark.parametrize("said", ["buy now", "buynow", "buy-nowx", "now-buy"])
def test_pieces_of_a_word_are_no_word(said: str) -> None:
    assert not is_button(said)
