"""Words of scale that multiply a number: `million`, `Mrd.`, `млн`, `ล้าน`, `億`. Some depend on the language: `mil` is a
thousand in Spanish and a million in Czech. No I/O; nothing raises.
"""

from __future__ import annotations

import re
import unicodedata

from curtsy.grounding.cldr import SCALES

_SPACE = " \u00a0\u2009\u202f"
_UNSPACED = "\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_COMMON = {
    "тыс": 3, "tys": 3, "hundred": 2, "thousand": 3, "tausend": 3, "tsd": 3, "k": 3, "mille": 3, "mil": 3,
    "million": 6, "millions": 6, "millionen": 6, "mio": 6, "mn": 6, "millones": 6, "milioni": 6, "miljoen": 6,
    "billion": 9, "billions": 9, "bn": 9, "milliard": 9, "milliards": 9, "milliarde": 9, "milliarden": 9, "mrd": 9,
    "miliardi": 9, "miljard": 9, "trillion": 12, "lakh": 5, "lakhs": 5, "lac": 5, "lacs": 5, "crore": 7,
    "crores": 7, "cr": 7,
    "mil millones": 9, "mil milhões": 9, "mil millóns": 9, "mil milions": 9, "thousand crore": 10, "lakh crore": 12,
    "milj": 6, "mill": 6, "mln": 6, "mld": 9, "mlrd": 9, "mljrd": 9, "mrdr": 9, "mia": 9, "mdr": 9, "mkr": 6, "tkr": 3,
    "εκατ": 6, "εκ": 6, "δισ": 9, "χιλ": 3, "тис": 3, "хил": 3, "млн": 6, "млрд": 9, "трлн": 12, "tūkst": 3, "tis": 3,
    "triệu": 6, "tỷ": 9, "tỉ": 9, "nghìn": 3, "ngàn": 3, "juta": 6, "ribu": 3, "miliar": 9, "milyar": 9, "milijon": 6,
    "milijonov": 6, "miliónov": 6, "miliardo": 9, "لاکھ": 5, "کروڑ": 7, "ارب": 9,
}  # fmt: skip
#: words that are no scale, or another one, in other languages
_OF_LANGUAGE: dict[str, dict[str, int]] = {
    "cs": {"mil": 6}, "sk": {"mil": 6}, "ro": {"mil": 6}, "hr": {"mil": 6}, "sl": {"mil": 6}, "sr": {"mil": 6},
    "bs": {"mil": 6}, "no": {"mil": 6}, "nb": {"mil": 6}, "de": {"billion": 12, "billionen": 12, "bio": 12},
    "fr": {"billion": 12, "billions": 12}, "da": {"billion": 12, "billioner": 12}, "pt": {"mi": 6, "bi": 9, "tri": 12},
    "id": {"jt": 6, "rb": 3}, "tr": {"mn": 6, "mr": 9, "bin": 3}, "es": {"mm": 6},
    "pl": {"bln": 12}, "he": {"מיליון": 6, "מיליארד": 9, "אלף": 3},
}  # fmt: skip
_RESTRICTED = {word for words in _OF_LANGUAGE.values() for word in words} - set(_COMMON) - set(SCALES)
_PLACES = {
    form: places
    for word, places in {**SCALES, **_COMMON}.items()
    for form in (word, unicodedata.normalize("NFD", word))
}
#: the same without spaces
EASTERN = {"百": 2, "백": 2, "千": 3, "천": 3, "万": 4, "萬": 4, "만": 4, "億": 8, "亿": 8, "억": 8, "兆": 12, "조": 12}
#: words of scripts without spaces, which other words follow directly
_ADJOINED = {
    "แสนล้าน": 11, "หมื่นล้าน": 10, "พันล้าน": 9, "ร้อยล้าน": 8, "ล้าน": 6, "แสน": 5, "หมื่น": 4, "พัน": 3, "ພັນລ້ານ": 9,
    "ລ້ານ": 6, "ແສນ": 5, "ພັນ": 3, "ពាន់លាន": 9, "លាន": 6, "ពាន់": 3, "သန်း": 6, "သိန်း": 5, "万亿": 12, "萬億": 12,
}  # fmt: skip
_MONEY = {
    "m": "million", "mio": "million", "k": "thousand", "t": "thousand", "b": "billion", "md": "milliard",
    "mds": "milliard", "mrd": "milliard",
}  # fmt: skip
_WORDS = "|".join(sorted(map(re.escape, {*_PLACES, *_RESTRICTED}), key=len, reverse=True))
_SCALE = re.compile(
    rf"[{_SPACE}]?(?P<adjoined>{'|'.join(_ADJOINED)})"
    rf"|[{_SPACE}\-]?(?P<scale>{_WORDS})"
    rf"(?:(?![^\W\d_]|[\u0300-\u036f\u0900-\u0d7f\u0e30-\u0e4e])|(?=[{_UNSPACED}]))\.?"
    rf"|[{_SPACE}]?(?P<money>Mrd|Mds?|Mio|[MkKB]|T(?=€|EUR))(?=[{_SPACE}]?(?:[€$£¥]|(?:EUR|USD|GBP|CHF)\b))"
    rf"|(?P<eastern>[{''.join(EASTERN)}])",
    re.IGNORECASE,
)
#: Swahili has it before the number
_BEFORE = re.compile(rf"\b(elfu|laki|milioni|bilioni|trilioni)[{_SPACE}]$", re.IGNORECASE)
_BEFORE_PLACES = {"elfu": 3, "laki": 5, "milioni": 6, "bilioni": 9, "trilioni": 12}


def scale_after(text: str, at: int, language: str | None) -> tuple[str | None, int]:
    """Return the word of scale at text[at:] and its end; (None, at) if this language has no such word."""
    found = _SCALE.match(text, at)
    if found is None:
        return None, at
    if found["money"]:
        return _MONEY[found["money"].lower()], found.end()
    word = (found["adjoined"] or found["scale"] or found["eastern"]).lower()
    if word in _RESTRICTED and word not in _own(language):
        return None, at
    return word, found.end()


def scale_before(text: str, at: int) -> str | None:
    found = _BEFORE.search(text, max(0, at - 12), at)
    return found[1].lower() if found else None


def places_of(scale: str, language: str | None) -> int:
    """Return the decimal places of a word of scale."""
    places = _own(language).get(scale, _PLACES.get(scale))
    if places is None:
        places = _ADJOINED.get(scale) or EASTERN.get(scale) or _BEFORE_PLACES[scale]
    return places


def _own(language: str | None) -> dict[str, int]:
    return _OF_LANGUAGE.get((language or "").lower().replace("_", "-").partition("-")[0], {})
