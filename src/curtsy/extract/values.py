"""Convert a text on a page to a value of a leaf's type.

Numbers and dates are parsed as in grounding, but only if they are unambiguous: `1.234` may be a decimal fraction, and
`04/03/2019` may be in April. Only a currency or a unit may accompany a number: in `3 of 5`, `from €12` or
`1.5 million` it is unclear which number is meant.
"""

from __future__ import annotations

import html
import re
from datetime import datetime
from decimal import Decimal
from typing import Any

from curtsy.grounding.dates import Day, dates, value_of
from curtsy.grounding.numbers import numbers
from curtsy.grounding.schema import Leaf

_ISO_DATE = re.compile(r"\d{4}-(?:0[1-9]|1[0-2])(?P<day>-(?:0[1-9]|[12]\d|3[01])(?:[T ]\d.*)?)?")
_PLAIN = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,10})?")
#: a longer text is neither a number nor a date, and a number with more digits is an identifier
_MAX_TEXT = 60
_MAX_DIGITS = 15
_TIME = re.compile(
    r"(?<![\d:.])[ T]?[0-2]?\d:[0-5]\d(?::[0-5]\d(?:[.,]\d{1,9})?)?(?: ?[ap]\.?m\b\.?| ?uhr\b)?", re.IGNORECASE
)
_WEEKDAY = re.compile(r"\b(?:mon|tue(?:s)?|wed(?:nes)?|thu(?:rs?)?|fri|sat(?:ur)?|sun)(?:day)?\b,?", re.IGNORECASE)
_ZONE = re.compile(r"\b(?:(?:GMT|UTC)(?:[+-]\d\d:?\d\d)?|[CEMPW]E?[SD]?T|Z)\b|(?<= )[+-]\d{4}$|\([A-Za-z ]{3,40}\)$")
_MONEY = (
    r"(?:(?:us|a|c|ca|au|nz|hk|s|r|mx)?\$|[€£¥₹₽₩₺₴₪₫฿₦]"
    r"|(?:eur|usd|gbp|chf|jpy|cny|inr|sek|nok|dkk|isk|pln|czk|huf|ron|bgn|try|uah|aud|cad|nzd|hkd|sgd|zar|brl|mxn|krw)\b"
    r"|(?:euros?|dollars?|pounds?|francs?|rupees|kr|zł|kč|ft|fr|rs|lei|руб|грн)\b\.?)"
)
#: without those that may also scale a number: m, k, b
_UNIT = (
    r"(?:%|‰|°[cf]?|(?:per ?cent|prozent|(?-i:[mk]?g|K[gG])|t|lbs?|oz|[kcm]m[²³23]?|m[²³23]|ha|[mhc]?l|[kmgt]?wh?|kwp"
    r"|min|h|km/h|mph|metres?|meters?|tonnes?|hours?|minutes?|days?|months?|years?)\b)"
)
_BEFORE = re.compile(rf"{_MONEY} ?", re.IGNORECASE)
_AFTER = re.compile(rf" ?(?:{_MONEY}|{_UNIT})", re.IGNORECASE)


#: an `@` or a point of an e-mail address that is spelled against robots: `office (at) alder (dot) test`
_SPELLED_AT = re.compile(
    r"\s?[\[({](?:at|@|ät|arroba|arobase|chiocciola|apenstaartje|アットマーク)[\])}]\s?", re.IGNORECASE
)
_SPELLED_DOT = re.compile(r"\s?[\[({](?:dot|punkt|point|punto|ponto|punt|\.)[\])}]\s?", re.IGNORECASE)


def mail_address(text: str) -> str:
    """Return an e-mail address as one writes it to send a mail.

    >>> mail_address("office (at) alder [dot] test")
    'office@alder.test'
    """
    return _SPELLED_DOT.sub(".", _SPELLED_AT.sub("@", text))


def _contact(text: str, field: str) -> str:
    """`office@alder.test` of `mailto:office@alder.test?subject=Hello`, the number of `tel:`; other texts."""
    scheme, colon, rest = text.partition(":")
    if field == "email":
        return mail_address(rest.partition("?")[0] if colon and scheme.lower() == "mailto" else text)
    if field in ("phone", "telephone", "fax") and colon and scheme.lower() == "tel":
        return rest.partition(";")[0].strip()
    return text


def coerced(text: str, leaf: Leaf, *, exact: bool = False) -> Any:
    """Return the text as a value of the leaf's type; `None` if it is not one, or ambiguous.

    `exact`: it is a JSON number, in which a point is a decimal point.
    """
    text = " ".join(html.unescape(text).split())
    match leaf.type:
        case "string":
            return _contact(text, leaf.path.rpartition("/")[2]) or None
        case "integer":
            return _integer(text, exact)
        case "number":
            return _number(text, exact)
        case "date":
            return _date(text, leaf.timed)
        case "boolean":
            return {"true": True, "yes": True, "false": False, "no": False}.get(_local(text).lower())
        case "enum":
            return _word(text, leaf)
    return None


# Numbers


def _number(text: str, exact: bool) -> int | float | None:
    found = _readings(text, exact)
    if len(found) == 1:
        return float(next(iter(found)))
    return int(text[:4]) if _ISO_DATE.fullmatch(text) else None


def _integer(text: str, exact: bool) -> int | None:
    """`1.234` can only be one integer, `12.00` is one; a date gives its year."""
    whole = [one for one in _readings(text, exact) if one == one.to_integral_value()]
    return int(whole[0]) if len(whole) == 1 else _year(text)


def _readings(text: str, exact: bool) -> frozenset[Decimal]:
    """Return the possible meanings of a text that is one number; empty if it is anything else."""
    if exact:
        return frozenset((Decimal(text),)) if _PLAIN.fullmatch(text) else frozenset()
    if len(text) > _MAX_TEXT:
        return frozenset()
    text = _bare(text).removeprefix("+")
    if not 0 < sum(char.isdigit() for char in text) <= _MAX_DIGITS:
        return frozenset()
    found = list(numbers(text))
    if len(found) != 1 or (found[0].start, found[0].end) != (0, len(text)):
        return frozenset()
    return found[0].readings


def _bare(text: str) -> str:
    """Remove a currency before the number, and a currency or unit after it."""
    before = _BEFORE.match(text)
    text = text[before.end() :] if before else text
    for found in _AFTER.finditer(text):
        if found.end() == len(text):
            return text[: found.start()]
    return text


def _year(text: str) -> int | None:
    if _ISO_DATE.fullmatch(text):
        return int(text[:4])
    day = _day(text)
    return day.year if day and day.month else None


# Dates


def _date(text: str, timed: bool) -> str | None:
    """Return ISO 8601; with the time only if the leaf has a time and the text states it in full."""
    if (found := _ISO_DATE.fullmatch(text)) and found["day"]:
        if len(text) > _MAX_TEXT or len(list(dates(text))) != 1 or value_of(text[:10]) is None:
            return None
        return text if timed and _is_timed(text) else text[:10]
    day = _day(text)
    return day.iso if day and day.day else None


def _day(text: str) -> Day | None:
    """Return the one day or month of the text; two digits do not determine the century."""
    found = value_of(text) or value_of(_without_time(text)) if len(text) <= _MAX_TEXT else None
    return found[0] if found and f"{found[0].year:04d}" in text else None


def _without_time(text: str) -> str:
    """`Thu, 16 May 2024 10:00:00 GMT` -> `16 May 2024`."""
    bare = _ZONE.sub(" ", _WEEKDAY.sub(" ", _TIME.sub(" ", text)))
    return " ".join(bare.split()).strip(" ,|–-")


def _is_timed(text: str) -> bool:
    """Return whether the text can be parsed with its time, for validation and grounding."""
    found = value_of(text)
    if found is None or found[1] is None:
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


# Words


def _word(text: str, leaf: Leaf) -> Any:
    for said in (text, _local(text)):
        for one in leaf.enum:
            if str(one).casefold() == said.casefold():
                return one
    return None


def _local(text: str) -> str:
    """Return the last part of a URL: `InStock` of `https://schema.org/InStock`."""
    return text.rstrip("/").rpartition("/")[2]
