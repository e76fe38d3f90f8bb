"""Folded texts: what counts as the same, and the way back to the source; properties over any text."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from curtsy.grounding.folded_text import count_words, fold, is_copyright, is_whole, occurrences, plain
from curtsy.grounding.near_copies import contradiction, find_quote

# Letters that grow when folded, marks, blanks, what cannot be seen, and what looks like something else.
ODD = "aAzZ09 .,-'\"\n\t\u00a0\u00adßİıﬁﬀ²½…ΣσςéÉe\u0301ñ’“”„–—−\u200b\u200d\ufeff™©한글中文Ⅷ㎏🌱\u2028\x00"
TEXTS = st.text(alphabet=st.one_of(st.sampled_from(ODD), st.characters(codec="utf-8")), max_size=80)


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Straße", "strasse"),
        ("“Mend”  first\n now", '"mend" first now'),
        ("no\u00a0break", "no break"),
        ("soft\u00adhyphen", "softhyphen"),
        ("sustain-\nability", "sustainability"),
        ("Menu -\nabout", "menu - about"),
        ("Anna-\nLena", "anna- lena"),
        ("400 m²", "400 m2"),
        ("ﬁnal", "final"),
        ("Ⅷ", "viii"),
        ("Acme™", "acme"),
        ("Café", "cafe\u0301"),
        ("한글", "한글"),
        ("", ""),
    ],
)
def test_a_text_is_folded(text: str, folded: str) -> None:
    assert plain(text) == folded


@given(TEXTS)
@example("ß")
@example(" \u200b ")
@example("a-\nb")
def test_every_span_of_a_folded_text_leads_to_characters_of_the_source(text: str) -> None:
    folded = fold(text)
    for start in range(len(folded.text)):
        for end in range(start + 1, min(start + 6, len(folded.text)) + 1):
            first, last = folded.span(start, end)
            assert 0 <= first < last <= len(text)
            # Nothing is lost on the way: what is found there folds to at least what was asked for.
            assert folded.text[start:end].strip() in fold(text[first:last]).text


@given(TEXTS)
def test_offsets_of_the_source_have_their_place_in_order(text: str) -> None:
    folded = fold(text)
    places = [folded.place(offset) for offset in range(len(text) + 1)]
    assert places == sorted(places)
    assert places[-1] == len(folded.text)


@given(TEXTS)
def test_composed_and_decomposed_texts_fold_alike(text: str) -> None:
    # Marks in an order that is not canonical, and Hangul letters, are left as they are written.
    if any(unicodedata.combining(char) for char in text) or any("\u1100" <= char <= "\u11ff" for char in text):
        return
    if any("가" <= char <= "힣" for char in text):
        return
    assert plain(unicodedata.normalize("NFC", text)) == plain(unicodedata.normalize("NFD", text))


@given(TEXTS)
def test_folding_twice_changes_nothing(text: str) -> None:
    once = plain(text)
    assert plain(once) == once


@given(
    before=TEXTS,
    words=st.lists(st.sampled_from(["Alder", "Straße", "İzmir", "ﬁne", "1974", "co-op"]), min_size=1),
    after=TEXTS,
)
def test_a_text_is_found_where_it_was_put(before: str, words: list[str], after: str) -> None:
    inner = " ".join(words)
    source = f"{before} | {inner} | {after}"
    folded = fold(source)
    found = [folded.span(start, end) for start, end in occurrences(folded.text, plain(inner.upper()))]
    assert inner in [source[start:end] for start, end in found]


@given(TEXTS, TEXTS)
def test_a_quote_that_is_found_is_a_span_of_the_text(source: str, quote: str) -> None:
    folded = fold(source)
    for start, end in find_quote(folded, quote):
        assert 0 <= start < end <= len(folded.text)


@pytest.mark.parametrize(
    ("text", "part", "whole"),
    [
        ("the alderman", "alder", False),
        ("the alder man", "alder", True),
        ("12,450", "450", False),
        ("12, 450", "450", True),
        ("in 1974.", "1974", True),
        ("cafe\u0301", "cafe", False),
        ("東京都庁", "京都", True),
    ],
)
def test_words_and_numbers_are_not_cut(text: str, part: str, whole: bool) -> None:
    at = text.index(part)
    assert is_whole(text, at, at + len(part)) is whole


def test_words_are_counted_without_digits_and_by_pairs_where_there_are_no_blanks() -> None:
    assert count_words("founded in 1974, 12.5 %") == 2
    assert count_words("当社は2019年に設立") >= 3


@pytest.mark.parametrize(
    ("line", "sign"),
    [
        ("© 1998 Alder", True),
        ("(c) 1998 Alder", True),
        ("Copyright 1998 by Alder", True),
        ("1998 Alder. All rights reserved", True),
        ("clause (c) was added in 1998", False),
        ("founded in 1998 by six people", False),
        ("© 2020 Alder\nfounded in 1998", False),
    ],
)
def test_a_copyright_line_is_known(line: str, sign: bool) -> None:
    at = line.index("1998")
    assert is_copyright(line, at, at + 4) is sign


@pytest.mark.parametrize(
    ("value", "said", "how"),
    [
        ("we cut it by 42 percent", "we have cut it by 42 percent", None),
        ("we cut it by 24 percent", "we cut it by 42 percent", "figure"),
        ("we cut it", "we never cut it", "qualifier"),
        ("we cut it", "we will cut it", "qualifier"),
        ("we planned it", "we organised it", "qualifier"),
        ("we organized it", "we organised it", None),
        ("all employers agree", "all employees agree", "word"),
        ("wir wollen zahlen", "wir wollen bezahlen", "word"),
    ],
)
def test_a_copy_must_not_say_otherwise(value: str, said: str, how: str | None) -> None:
    assert contradiction(value.split(), said.split()) == how
