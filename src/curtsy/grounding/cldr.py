"""Words and forms of many languages, from the Unicode CLDR (`cldr.toml`) and a few that it lacks.

MONTHS        name of a month -> its possible numbers (`listopad` is October in Croatian, November in Polish)
SCALES        word -> decimal places: `млн` -> 6
date_order    order of day and month in numeric dates of a language
ascii_digits  a text with the digits and separators of all scripts as ASCII, character by character
"""

from __future__ import annotations

import tomllib
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from curtsy.grounding.vocabulary import MONTHS as COMMON_MONTHS

_TABLE = tomllib.loads((Path(__file__).parent / "cldr.toml").read_text("utf-8"))
#: names of months beside those of the CLDR: Levantine Arabic, Hebrew with its preposition, cases of Latvian and Finnish
_MORE_MONTHS = (
    "كانون_الثاني בינואר janvārī 1월", "شباط בפברואר februārī 2월", "آذار במרץ martā 3월", "نيسان באפריל aprīlī 4월",
    "أيار במאי maijā 5월", "حزيران ביוני jūnijā 6월", "تموز ביולי jūlijā 7월", "آب באוגוסט augustā 8월",
    "أيلول בספטמבר septembrī 9월", "تشرين_الأول באוקטובר oktobrī 10월", "تشرين_الثاني בנובמבר novembrī 11월",
    "كانون_الأول בדצמבר decembrī 12월",
)  # fmt: skip
#: a language without a region that uses one order everywhere; English does not
_NO_ORDER = frozenset(("en", "fr-ca", "en-ca", "en-za"))


def _months() -> dict[str, tuple[int, ...]]:
    found: dict[str, set[int]] = {}
    for names in (COMMON_MONTHS, _TABLE["months"], [one.split() for one in _MORE_MONTHS]):
        for number, many in enumerate(names, 1):
            for name in many:
                for form in {name.replace("_", " "), unicodedata.normalize("NFD", name.replace("_", " "))}:
                    found.setdefault(form, set()).add(number)
    return {name: tuple(sorted(numbers)) for name, numbers in found.items()}


MONTHS: Mapping[str, tuple[int, ...]] = _months()
#: cases of scales, and those of India and Sri Lanka that the CLDR lacks
_MORE_SCALES = {
    "tūkst": 3, "tūkstančių": 3, "tūkstančiai": 3, "milijonus": 6, "milijonais": 6, "milyong": 6, "milyon": 6, "მლნ": 6,
    "მლრდ": 9,
    "லட்சம்": 5, "இலட்சம்": 5, "கோடி": 7, "లక్ష": 5, "లక్షల": 5, "లక్షలు": 5, "కోటి": 7, "కోట్ల": 7, "కోట్లు": 7,
    "ಲಕ್ಷ": 5, "ಕೋಟಿ": 7, "ലക്ഷം": 5, "കോടി": 7,
}  # fmt: skip
SCALES: Mapping[str, int] = {
    form: places
    for word, places in (_TABLE["scales"] | _MORE_SCALES).items()
    for form in {word, unicodedata.normalize("NFD", word)}
}


def date_order(language: str | None) -> str | None:
    """Return `dmy` or `mdy` for a language tag; None if it does not say, or if years come first.

    >>> date_order("de-AT"), date_order("en-US"), date_order("en")
    ('dmy', 'mdy', None)
    """
    tag = (language or "").lower().replace("_", "-")
    orders = _TABLE["orders"]
    for one in (tag, tag.partition("-")[0]):
        if one in _NO_ORDER:
            return None
        if one in orders:
            return orders[one] if orders[one] in ("dmy", "mdy") else None
    return None


#: languages in which a point groups thousands, and those with another group and a decimal comma
_POINT_GROUPS = frozenset(
    [
        "de",
        "nl",
        "it",
        "pt",
        "es",
        "da",
        "id",
        "tr",
        "el",
        "ro",
        "hr",
        "sl",
        "sr",
        "bs",
        "mk",
        "az",
        "vi",
        "ca",
        "gl",
        "eu",
        "is",
        "nn",
    ]
)
_COMMA_DECIMALS = _POINT_GROUPS | frozenset(
    [
        "fr",
        "ru",
        "uk",
        "be",
        "pl",
        "cs",
        "sk",
        "bg",
        "fi",
        "sv",
        "nb",
        "no",
        "et",
        "lv",
        "lt",
        "hu",
        "sq",
        "hy",
        "ka",
        "kk",
        "uz",
        "af",
    ]
)
#: regions that write a decimal point
_DECIMAL_POINT = frozenset(["ch", "li", "mx", "us", "gt", "hn", "ni", "pa", "pe", "pr", "sv", "do"])


def groups_by_point(language: str | None) -> bool:
    """Return whether `1.234` is 1234 in a language."""
    return _is_of(language, _POINT_GROUPS)


def has_decimal_comma(language: str | None) -> bool:
    """Return whether `1,234` may be 1.234 in a language."""
    return _is_of(language, _COMMA_DECIMALS)


def _is_of(language: str | None, group: frozenset[str]) -> bool:
    own, *rest = (language or "").lower().replace("_", "-").split("-")
    return own in group and not _DECIMAL_POINT.intersection(rest)


class _Digits(dict[int, int]):
    """Code point -> the ASCII digit or separator that it stands for, filled on demand."""

    _SIGNS: ClassVar = {
        "٫": ".", "٬": ",", "．": ".", "，": ",", "／": "/", "－": "-", "٪": "%", "％": "%", "：": ":",
        "＋": "+", "（": "(", "）": ")", "\u3000": " ", "\u2011": "-", "＠": "@",
    }  # fmt: skip

    def __missing__(self, code: int) -> int:
        char = chr(code)
        digit = unicodedata.decimal(char, None)
        self[code] = found = ord(str(digit)) if digit is not None else ord(self._SIGNS.get(char, char))
        return found


_digits = _Digits()


def ascii_digits(text: str) -> str:
    """Return the text with all digits as ASCII; every character keeps its place."""
    return text if text.isascii() else text.translate(_digits)
