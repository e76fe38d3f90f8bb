"""Numbers and quantities in text: `1,234`, `1.234,5`, `12 000`, `1.5 million`, `45 %`, `€3m`, `5m users`.
`number_words` has those in English words.

A number may be ambiguous (`1.234` is 1234 in Germany and about 1.2 in the UK): all readings are returned. No I/O;
nothing raises.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from curtsy.grounding.folded_text import plain
from curtsy.grounding.number_words import numbers_in_words
from curtsy.grounding.vocabulary import COUNTED, CURRENCIES, UNITS

_SPACE = " \u00a0\u2009\u202f"
#: Han, kana, Hangul: written without spaces, so they may adjoin a number
_UNSPACED = "\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_SIGN = rf"(?<![\w)][-−+])(?<!\w [-−])(?:[-−]|(?<!\d )–)|\b(?:minus|negative)[{_SPACE}]"
_GLUED = "".join(rf"|(?<=\b{name})" for name in ("EUR", "USD", "GBP", "CHF", "SEK", "NOK", "DKK", "PLN", "Rs", "kr"))
_TOKEN = re.compile(
    rf"(?:(?<![^\W{_UNSPACED}]){_GLUED})(?<!\d[.,])(?<!\d:)(?P<sign>{_SIGN})?"
    rf"(?P<digits>\d{{1,3}}(?:[{_SPACE}'’]\d{{3}})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)*)"
    rf"(?P<ordinal>st|nd|rd|th)?(?P<unit>[^\W\d_¹²³⁰-⁹{_UNSPACED}]{{1,4}}[23²³]?)?[¹²³⁰-⁹]*(?![^\W_{_UNSPACED}]|:\d|/7\b)"
)
_SCALES = {
    "hundred": 2, "thousand": 3, "tausend": 3, "tsd": 3, "k": 3, "mille": 3, "mil": 3,
    "million": 6, "millions": 6, "millionen": 6, "mio": 6, "mn": 6, "millones": 6, "milioni": 6, "miljoen": 6,
    "billion": 9, "billions": 9, "bn": 9, "milliard": 9, "milliards": 9, "milliarde": 9, "milliarden": 9, "mrd": 9,
    "miliardi": 9, "miljard": 9, "trillion": 12, "lakh": 5, "crore": 7,
}  # fmt: skip
#: the same without spaces; `3億5千万` is not parsed
_EASTERN = {"百": 2, "千": 3, "천": 3, "万": 4, "萬": 4, "만": 4, "億": 8, "亿": 8, "억": 8, "兆": 12}
_SCALE = re.compile(
    rf"[{_SPACE}\-]?(?P<scale>{'|'.join(sorted(_SCALES, key=len, reverse=True))})(?:\b|(?=[{_UNSPACED}]))\.?"
    rf"|(?P<eastern>[{''.join(_EASTERN)}])",
    re.IGNORECASE,
)
_PERCENT = re.compile(
    rf"[{_SPACE}]?(?:%|％|(?:percent|per[{_SPACE}]cent|prozent|pct|procent|pour[{_SPACE}]cent)\b)", re.IGNORECASE
)
_CURRENCY_BEFORE = re.compile(rf"(?:[€$£¥₹]|\b(?:eur|usd|gbp|chf|sek|nok|dkk|rs))[{_SPACE}]?$", re.IGNORECASE)
_COUNTED_AFTER = re.compile(rf"[{_SPACE}](?:\w+[{_SPACE}])?(?:{'|'.join(COUNTED)})\b", re.IGNORECASE)
#: dollars and pounds of other countries: A$, CAD $
_OTHERS = re.compile(r"(?<![a-z])(?!usd? ?.$)[a-z]{1,3} ?[$£¥]$")
#: what follows a unit and makes it a different one
_LONGER_UNIT = re.compile(r"\s?/|\s?cents?\b|\s?pence\b|-")
#: names of a currency or unit -> one name
_NAMES = {
    "€": "eur", "euro": "eur", "euros": "eur", "$": "usd", "us$": "usd", "dollar": "usd", "dollars": "usd", "£": "gbp",
    "pound": "gbp", "pounds": "gbp", "¥": "jpy", "yen": "jpy", "₹": "inr", "rupees": "inr", "francs": "chf",
    "%": "percent", "prozent": "percent", "pct": "percent", "per cent": "percent", "procent": "percent",
    "pour cent": "percent", "tonnes": "t", "tonne": "t", "tonnen": "t", "metric tons": "t", "kilograms": "kg",
    "kilogram": "kg", "kilometres": "km", "kilometers": "km", "kilometre": "km", "kilometer": "km", "hectares": "ha",
    "hectare": "ha", "hektar": "ha", "litres": "l", "liters": "l", "megawatt": "mw", "megawatts": "mw", "metres": "m",
    "meters": "m", "square metres": "m2", "square meters": "m2",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number in a text."""

    #: its digits (and sign), without scale or unit
    start: int
    end: int
    #: including its scale (`million`) and its unit
    whole_end: int
    #: possible values, with its scale
    readings: frozenset[Decimal]
    #: the scale's word, and the possible values of the digits alone
    scale: str | None
    unscaled: frozenset[Decimal]
    percent: bool
    #: the value if it is written literally: digits, and at most a decimal point
    literal: Decimal | None


def numbers(text: str) -> Iterator[Number]:
    """Numbers in digits, then numbers in English words."""
    for found in _TOKEN.finditer(text):
        unit = (found["unit"] or "").lower()
        if (unit and unit not in UNITS) or found["unit"] == "G":  # 5G
            continue
        if read := _number(text, found, unit):
            yield read
    for one in numbers_in_words(text):
        yield Number(
            start=one.start, end=one.end, whole_end=one.end, readings=frozenset((one.value,)), scale=one.scale,
            unscaled=frozenset((one.unscaled,)), percent=_PERCENT.match(text, one.end) is not None, literal=None,
        )  # fmt: skip


def _number(text: str, found: re.Match[str], unit: str) -> Number | None:
    digits = found["digits"]
    plain_readings = _readings(digits)
    if not plain_readings:
        return None
    if found["sign"]:
        plain_readings = frozenset(-one for one in plain_readings)
    end = found.end("digits")
    scale, whole_end = _scale(text, end)
    if scale in _EASTERN and text[whole_end : whole_end + 1] in (*_EASTERN, *"0123456789") and text[whole_end:]:
        return None
    # `5m` is five meters unless it is money or counts something.
    if unit in ("m", "b", "t") and (
        _CURRENCY_BEFORE.search(text, max(0, found.start() - 5), found.start())
        or (unit != "t" and _COUNTED_AFTER.match(text, found.end()))
    ):
        scale, whole_end = {"m": "million", "b": "billion", "t": "trillion"}[unit], found.end()
    percent = _PERCENT.match(text, whole_end)
    return Number(
        start=found.start(), end=end, whole_end=percent.end() if percent else max(whole_end, found.end()),
        readings=_scaled(plain_readings, scale), scale=scale, unscaled=plain_readings, percent=percent is not None,
        literal=_literal(found, digits) if scale is None else None,
    )  # fmt: skip


def _literal(found: re.Match[str], digits: str) -> Decimal | None:
    if found["ordinal"] or not digits.replace(".", "", 1).isdigit() or len(found["sign"] or "") > 1:
        return None
    return -Decimal(digits) if found["sign"] else Decimal(digits)


def _scale(text: str, at: int) -> tuple[str | None, int]:
    found = _SCALE.match(text, at)
    if found is None:
        return None, at
    return (found["scale"] or found["eastern"]).lower(), found.end()


def _scaled(readings: frozenset[Decimal], scale: str | None) -> frozenset[Decimal]:
    if scale is None:
        return readings
    places = _SCALES.get(scale) or _EASTERN[scale]
    return frozenset(one.scaleb(places) for one in readings)


def _readings(digits: str) -> frozenset[Decimal]:
    """Return the possible values of digits and separators; empty if it is not a number: 12.05.1998, 192.168.0.1."""
    digits = re.sub(rf"[{_SPACE}'’]", "", digits)
    dots, commas = digits.count("."), digits.count(",")
    if not dots and not commas:
        return _decimals(digits)
    if dots and commas:
        point = "." if digits.rfind(".") > digits.rfind(",") else ","
        group = "," if point == "." else "."
        whole, _, fraction = digits.rpartition(point)
        return (
            _decimals(f"{_ungrouped(whole, group)}.{fraction}")
            if _ungrouped(whole, group) and point not in whole
            else frozenset()
        )
    mark = "." if dots else ","
    if dots + commas > 1:
        return _decimals(_ungrouped(digits, mark))
    whole, _, fraction = digits.partition(mark)
    if len(fraction) != 3 or len(whole) > 3 or whole.startswith("0"):
        return _decimals(f"{whole}.{fraction}")
    # Three digits after a comma are thousands; after a point it is ambiguous.
    return _decimals(whole + fraction) | (_decimals(f"{whole}.{fraction}") if mark == "." else frozenset())


def _ungrouped(digits: str, mark: str) -> str:
    groups = digits.split(mark)
    regular = 1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
    return "".join(groups) if regular or len(groups) == 1 else ""


def _decimals(text: str) -> frozenset[Decimal]:
    try:
        return frozenset((Decimal(text),))
    except InvalidOperation:
        return frozenset()


def decimal(value: object) -> Decimal | None:
    """Return a value as a finite decimal, if it is a number."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    try:
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


# Quantities


def quantity(text: str) -> tuple[frozenset[Decimal], str] | None:
    """Return (possible amounts, unit) of a text that is a number with a unit or a currency: `€3 million`, `45 %`."""
    found = next(iter(numbers(text)), None)
    if found is None:
        return None
    rest = text[: found.start] + " " + text[found.end :]
    if found.scale:
        rest = re.sub(rf"\b{re.escape(found.scale)}\b\.?", " ", rest, flags=re.IGNORECASE)
    unit = plain(rest)
    if not unit or len(unit) > 40 or any(char.isdigit() for char in unit.removesuffix("2").removesuffix("3")):
        return None
    return found.readings, _NAMES.get(unit, unit)


def states(text: str, wanted: tuple[frozenset[Decimal], str]) -> Iterator[tuple[int, int]]:
    """Yield the spans where a text states the quantity: the same amount with the same unit."""
    readings, unit = wanted
    names = {unit} | {name for name, one in _NAMES.items() if one == unit}
    for number in numbers(text):
        if not number.readings & readings:
            continue
        before = plain(text[max(0, number.start - 8) : number.start])
        after = plain(text[number.end : number.whole_end + 30])
        if number.scale:
            after = after.lstrip("- ").removeprefix(number.scale).lstrip(". ")
        if any(_ends(before, name) or _begins(after, name) for name in names):
            yield number.start, number.whole_end


def _ends(text: str, name: str) -> bool:
    """Only a currency may precede its amount."""
    if not text.endswith(name) or not (name in "€$£¥₹" or name in CURRENCIES or name == "us$"):
        return False
    return not (name.isalpha() and text[: -len(name)][-1:].isalnum()) and not is_of_others(text)


def is_of_others(text: str) -> bool:
    """Return whether the (folded) text ends in a currency sign with the letters of another country before it."""
    return _OTHERS.search(text) is not None


def _begins(text: str, name: str) -> bool:
    text = text.lstrip("- ")
    if not text.startswith(name):
        return False
    following = text[len(name) :]
    return not (name[-1].isalnum() and (following[:1].isalnum() or _LONGER_UNIT.match(following)))
