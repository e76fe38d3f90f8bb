"""Negations before and after a value, in several languages."""

from __future__ import annotations

import pytest

from curtsy.grounding.folded_text import plain
from curtsy.grounding.negations import is_denied, is_hedged, is_negated, says_no


@pytest.mark.parametrize(
    ("text", "value", "denied"),
    [
        ("we are not carbon neutral", "carbon neutral", True),
        ("we are not only carbon neutral", "carbon neutral", False),
        ("no doubt that alder works", "alder works", False),
        ("we did not wait. carbon neutral", "carbon neutral", False),
        ("it is no longer in bergen", "bergen", True),
        ("do not hesitate to write to alder", "alder", False),
        ("at no 5 mill road", "5 mill road", False),
        ("kein mitglied", "mitglied", True),
    ],
)
def test_what_is_denied_right_before_is_known(text: str, value: str, denied: bool) -> None:
    assert is_negated(text, text.index(value)) is denied


@pytest.mark.parametrize(
    ("text", "language", "denied"),
    [
        ("L'entreprise n'a pas été fondée en 1998.", "fr", True),
        ("Компания не была основана в 1998 году.", "ru", True),
        ("Η εταιρεία δεν ιδρύθηκε το 1998.", "el", True),
        ("Yhtiötä ei perustettu vuonna 1998.", "fi", True),
        ("公司不是1998年成立的。", "zh", True),
        ("Pas moins de 1998 salariés", "fr", False),
        ("ei 1998", "nl", False),
    ],
)
def test_negations_of_a_language(text: str, language: str, denied: bool) -> None:
    folded = plain(text)
    assert is_negated(folded, folded.index("1998"), language=language) is denied


@pytest.mark.parametrize(
    ("text", "language", "denied"),
    [
        ("当社の設立は1998年ではありません。", "ja", True),
        ("1998年に設立され、上場はしていません。", "ja", False),
        ("社員は1998名しかいません。", "ja", False),
        ("회사는 1998년에 설립되지 않았습니다.", "ko", True),
        ("Şirket 1998'de kurulmadı.", "tr", True),
        ("Şirket 1998'de kuruldu.", "tr", False),
        ("wurde 1998 nicht gegründet", "de", True),
        ("1998 nicht nur gegründet, auch gebaut", "de", False),
        ("1998 nicht gegründet", "en", False),
    ],
)
def test_negations_after_a_value(text: str, language: str, denied: bool) -> None:
    folded = plain(text)
    assert is_denied(folded, folded.index("1998") + 4, language) is denied


@pytest.mark.parametrize(
    ("text", "language", "no"),
    [
        ("Nicht auf Lager", "de", True),
        ("Auf Lager", "de", False),
        ("此商品没有库存", "zh", True),
        ("재고가 없습니다.", "ko", True),
    ],
)
def test_a_statement_that_denies(text: str, language: str, no: bool) -> None:
    assert says_no(plain(text), language) is no


def test_a_word_that_weakens() -> None:
    assert is_hedged("nearly 1998", 7)
    assert not is_hedged("exactly 1998", 8)
