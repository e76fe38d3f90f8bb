"""Numbers in words of many languages, with exact spans."""

from __future__ import annotations

import pytest

from curtsy.grounding.spelled_numbers import spelled_numbers

#: language, words, value
CASES = [
    ("es", "doscientos cincuenta y tres mil", 253_000), ("es", "treinta y un", 31), ("es", "cien", 100),
    ("pt", "mil novecentos e noventa e oito", 1998), ("pt", "três milhões", 3_000_000), ("fr", "soixante et onze", 71),
    ("fr", "soixante-dix", 70), ("fr", "quatre-vingts", 80), ("fr", "quatre-vingt-dix-neuf", 99),
    ("fr", "dix-sept", 17), ("fr", "deux cent cinquante", 250), ("de", "neunzehnhundertachtundneunzig", 1998),
    ("de", "zwei Millionen", 2_000_000),
    ("de", "hundertzwanzig", 120), ("nl", "drieëntwintig", 23), ("it", "ventuno", 21), ("it", "tremila", 3_000),
    ("ru", "тысяча девятьсот девяносто восьми", 1998), ("ru", "двадцати пяти", 25), ("hi", "दो सौ पचास", 250),
    ("hi", "एक करोड़", 10_000_000), ("bn", "পঁচিশ হাজার", 25_000), ("ar", "مئتان وخمسون", 250),
    ("ar", "ألف وتسعمئة وثمانية وتسعون", 1998), ("ar", "خَمْسَةَ عَشَرَ", 15), ("id", "lima belas", 15),
    ("id", "seribu sembilan ratus", 1900), ("tr", "bin dokuz yüz doksan sekiz", 1998),
]  # fmt: skip


@pytest.mark.parametrize(("language", "words", "value"), CASES, ids=[f"{one[0]}-{one[2]}" for one in CASES])
def test_a_number_in_words_has_its_value_and_its_exact_span(language: str, words: str, value: int) -> None:
    text = f"(§ {words}, ×)"
    found = list(spelled_numbers(text, f"{language}-XX"))
    assert [int(one.value) for one in found] == [value]
    assert text[found[0].start : found[0].end] == words


@pytest.mark.parametrize("text", ["Once upon a time", "the elf", "a due date", "ten cent", "mil spec", "un homme"])
def test_a_word_alone_counts_only_in_its_language(text: str) -> None:
    assert list(spelled_numbers(text, "en")) == []
    assert list(spelled_numbers(text)) == []


def test_several_words_of_a_number_count_on_any_page() -> None:
    assert [int(one.value) for one in spelled_numbers("Somos doscientos cincuenta")] == [250]
