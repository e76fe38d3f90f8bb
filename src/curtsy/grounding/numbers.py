"""Numbers and quantities in text: `1,234`, `1.234,5`, `12 000`, `1,24,500`, `1.5 million`, `3,5 M€`, `12 млн`,
`3億5千万`, `٢٬٥٠٠`, `45 %`, `€3m`, `5m users`. `number_words` has those in English words,
`spelled_numbers` those of other languages.

A number may be ambiguous (`1.234` is 1234 in Germany and about 1.2 in the UK): all readings are returned. No I/O;
nothing raises.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from curtsy.grounding.cldr import ascii_digits, groups_by_point, has_decimal_comma
from curtsy.grounding.currencies import glued, is_sign
from curtsy.grounding.folded_text import plain
from curtsy.grounding.number_words import numbers_in_words
from curtsy.grounding.scales import EASTERN, places_of, scale_after, scale_before
from curtsy.grounding.spelled_numbers import spelled_numbers
from curtsy.grounding.vocabulary import COUNTED, CURRENCIES, ONES, UNITS

_SPACE = " \u00a0\u2009\u202f"
#: Han, kana, Hangul: written without spaces, so they may adjoin a number
_UNSPACED = "\u2e80-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_SIGN = rf"(?<![\w)][-−+])(?<!\w [-−])(?:[-−]|(?<!\d )–)|\b(?:minus|negative)[{_SPACE}]"
#: the sign of a currency may adjoin a number
_GLUED = rf"|(?=\d)(?:(?<=\b(?:{glued(3)}))|(?<=\b(?:{glued(2)}))|(?<=\b(?:{glued(1)}))(?=\d[\d.,]))"
_TOKEN = re.compile(
    rf"(?:(?<![^\W{_UNSPACED}]){_GLUED})(?<!\d[.,])(?<!\d:)(?P<sign>{_SIGN})?"
    rf"(?P<digits>\d{{1,3}}(?:[{_SPACE}'’]\d{{3}})+(?:[.,]\d+)?(?!\d)|\d+:\d\d(?= ?kr\b)|\d+(?:[.,]\d+)*)"
    rf"(?P<ordinal>st|nd|rd|th|(?:er|re|[eè]me|[eè]|de|ste|ος|η|ο|:[ae]|\.?[ªº°]|[-‑](?:го|ой|[йяеа]|th))(?![^\W_]))?(?P<unit>[^\W\d_¹²³⁰-⁹{_UNSPACED}]{{1,4}}[23²³]?)?[¹²³⁰-⁹]*(?![^\W_{_UNSPACED}]|:\d|/7\b)"
)
_PERCENT = re.compile(
    rf"[{_SPACE}]?(?:%|％|パーセント|퍼센트|프로|प्रतिशत|بالمئة|بالمائة|في المئة|في المائة|درصد|เปอร์เซ็นต์"
    rf"|(?:percent|per[{_SPACE}]cent|prozent|pct|procent[aeu]?|procentów|pour[{_SPACE}]cent|por[{_SPACE}]ciento|por[{_SPACE}]cento|per[{_SPACE}]cento"
    rf"|prosent(?:tia)?|százalék|persen|phần[{_SPACE}]trăm|процент(?:а|ов|и)?|відсотк(?:ів|и|а)|τοις[{_SPACE}]εκατό|אחוז(?:ים)?)(?![^\W\d_]))",
    re.IGNORECASE,
)
_PERCENT_BEFORE = re.compile(rf"(?:[%٪]|百分之|\byüzde)[{_SPACE}]?$", re.IGNORECASE)
#: `3億5千万`, `1천5백`: digits with scales, largest first
_EASTERN_PARTS = re.compile(r"(\d[\d,]{0,15}(?:\.\d{1,6})?)([百백千천]?)([万萬만億亿억兆조]?)")
#: `1만 2,500명`; a year is another number
_SPACED = re.compile(r" (?=\d[\d,]{0,15}(?!\s?[\d년월,]))")
_SPACED_SCALES = ("만", "억", "조")
#: `五百万`, `二十三`
_HAN = re.compile(
    r"(?<![一二三四五六七八九十百千万萬億亿兆〇零\d])[一二三四五六七八九十百千][一二三四五六七八九十百千万萬億亿兆〇零]{1,15}"
)
#: `2½`, `2 1/2`, `¾`
_FRACTION = re.compile(
    r"(?<![\w.,/:])(?:(?P<whole>\d{1,6})[ \u00a0]?)??"
    r"(?:(?P<sign>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])|(?<!\d)(?P<top>[1-7])[/⁄](?P<under>[2348])(?=[ \u00a0]?[^\W\d_]))"
    r"(?![\w/.,]\d|[\d/])"
)
_HALVES = {
    "anderthalb": "1.5", "eineinhalb": "1.5", "zweieinhalb": "2.5", "dreieinhalb": "3.5", "viereinhalb": "4.5",
    "डेढ\u093c": "1.5", "\u0921\u0947\u095d": "1.5", "दीड": "1.5", "ढाई": "2.5", "अडीच": "2.5",
    "ڈیڑھ": "1.5", "ڈھائی": "2.5",
    "দেড\u09bc": "1.5", "দে\u09dc": "1.5", "আড\u09bcাই": "2.5", "আ\u09dcাই": "2.5",
    "полтора": "1.5", "півтора": "1.5", "półtora": "1.5",
}  # fmt: skip
_HALF = re.compile(
    rf"(?<![^\W_])(?:{'|'.join(map(re.escape, _HALVES))}|(?P<words>{'|'.join(ONES[1:])}) and a half)(?![^\W_])",
    re.IGNORECASE,
)
_HAN_DIGITS = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0}
#: numerals of contracts, which cannot be altered
_FORMAL = str.maketrans("壱壹弐貳贰参參叁肆伍陸陆柒漆捌玖拾佰仟", "一一二二二三三三四五六六七七八九十百千")
_HAN_TENS = {"十": 10, "百": 100, "千": 1000}
_CURRENCY_BEFORE = re.compile(rf"(?:[€$£¥₹]|\b(?:eur|usd|gbp|chf|sek|nok|dkk|rs))[{_SPACE}]?$", re.IGNORECASE)
_CURRENCY_AFTER = re.compile(rf"[{_SPACE}]?(?:[€$£¥₹]|(?:EUR|USD|GBP|CHF)\b)")
#: the scale of a number that has several
_COMPOUND = "compound"
_COUNTED_AFTER = re.compile(rf"[{_SPACE}](?:\w+[{_SPACE}])?(?:{'|'.join(COUNTED)})\b", re.IGNORECASE)
#: dollars and pounds of other countries: A$, CAD $
_OTHERS = re.compile(r"(?<![a-z])(?!usd? ?.$)[a-z]{1,3} ?[$£¥]$")
#: what follows a unit and makes it a different one
_LONGER_UNIT = re.compile(r"\s?/|\s?cents?\b|\s?pence\b|-")
#: names of a currency or unit -> one name
_NAMES = {
    "€": "eur", "euro": "eur", "euros": "eur", "$": "usd", "us$": "usd", "dollar": "usd", "dollars": "usd",
    "£": "gbp", "pound": "gbp", "pounds": "gbp", "¥": "jpy", "yen": "jpy", "₹": "inr", "rupees": "inr",
    "francs": "chf", "%": "percent", "prozent": "percent", "pct": "percent", "per cent": "percent",
    "procent": "percent", "pour cent": "percent", "tonnes": "t", "tonne": "t", "tonnen": "t",
    "metric tons": "t", "kilograms": "kg", "kilogram": "kg", "kilometres": "km", "kilometers": "km",
    "kilometre": "km", "kilometer": "km", "hectares": "ha", "hectare": "ha", "hektar": "ha", "litres": "l",
    "liters": "l", "megawatt": "mw", "megawatts": "mw", "metres": "m", "meters": "m", "square metres": "m2",
    "square meters": "m2", "円": "jpy", "元": "cny", "人民币": "cny", "원": "krw", "₩": "krw", "₽": "rub",
    "руб": "rub", "рублей": "rub", "рубля": "rub", "₺": "try", "₴": "uah", "грн": "uah", "zł": "pln",
    "złotych": "pln", "kč": "czk", "ft": "huf", "₪": "ils", "฿": "thb", "บาท": "thb", "₫": "vnd", "r$": "brl",
    "reais": "brl", "रुपये": "inr", "र": "inr", "rs": "inr", "lei": "ron", "лв": "bgn", "fr": "chf",
    "sfr": "chf", "kronor": "sek", "chf": "chf", "euroa": "eur", "евро": "eur", "доллара": "usd",
    "долларов": "usd", "ユーロ": "eur", "ドル": "usd", "欧元": "eur", "美元": "usd", "يورو": "eur",
    "ريال": "sar", "درهم": "aed", "por ciento": "percent", "процентов": "percent", "パーセント": "percent",
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


def numbers(text: str, language: str | None = None) -> Iterator[Number]:
    """Numbers in digits, then in Han characters, then in English words, then in words of other languages.

    `language` is the page's: some words are numbers in one language only.
    """
    text = ascii_digits(text)
    within = 0
    fractions = list(_fractions(text))
    yield from fractions
    for found in _TOKEN.finditer(text):
        if _overlaps(fractions, found.start(), found.start() + 1):
            continue
        unit = (found["unit"] or "").lower()
        if (unit and unit not in UNITS and not is_sign(unit)) or found["unit"] == "G" or found.start() < within:  # 5G
            continue
        if read := _number(text, found, unit, language):
            yield read
            within = read.end if read.scale == _COMPOUND else within
    yield from _han_numbers(text)
    halves = list(_halves(text, language))
    yield from halves
    for one in numbers_in_words(text):
        if _overlaps(halves, one.start, one.end):
            continue
        yield Number(
            start=one.start, end=one.end, whole_end=one.end, readings=frozenset((one.value,)), scale=one.scale,
            unscaled=frozenset((one.unscaled,)), percent=_PERCENT.match(text, one.end) is not None, literal=None,
        )  # fmt: skip
    for spelled in spelled_numbers(text, language):
        if _overlaps(halves, spelled.start, spelled.end):
            continue
        readings = frozenset((spelled.value,))
        yield Number(
            start=spelled.start, end=spelled.end, whole_end=spelled.end, readings=readings, scale=None,
            unscaled=readings, percent=_PERCENT.match(text, spelled.end) is not None, literal=None,
        )  # fmt: skip


def _number(text: str, found: re.Match[str], unit: str, language: str | None) -> Number | None:
    digits = found["digits"]
    plain_readings = _readings(digits, language)
    if not plain_readings:
        return None
    if found["sign"]:
        plain_readings = frozenset(-one for one in plain_readings)
    end = found.end("digits")
    scale, whole_end = scale_after(text, end, language)
    scale = scale or scale_before(text, found.start())
    behind = text[_part_after(text, whole_end) :][:1] if scale in _SPACED_SCALES else text[whole_end : whole_end + 1]
    if scale in EASTERN and behind and behind in (*EASTERN, *"0123456789"):
        return _compound(text, found.start("digits"))
    # `5m` is five meters unless it is money or counts something.
    if unit in ("m", "b", "t", "k") and (
        _CURRENCY_AFTER.match(text, found.end())
        or _CURRENCY_BEFORE.search(text, max(0, found.start() - 5), found.start())
        or (unit != "t" and _COUNTED_AFTER.match(text, found.end()))
    ):
        scale, whole_end = {"m": "million", "b": "billion", "t": "trillion", "k": "thousand"}[unit], found.end()
    percent = _PERCENT.match(text, whole_end)
    before = _PERCENT_BEFORE.search(text, max(0, found.start() - 8), found.start())
    return Number(
        start=found.start(), end=end, whole_end=percent.end() if percent else max(whole_end, found.end()),
        readings=_scaled(plain_readings, scale, language), scale=scale, unscaled=plain_readings,
        percent=percent is not None or before is not None,
        literal=_literal(found, digits) if scale is None else None,
    )  # fmt: skip


def _overlaps(known: Sequence[Number], start: int, end: int) -> bool:
    return any(one.start < end and start < one.whole_end for one in known)


def _halves(text: str, language: str | None) -> Iterator[Number]:
    """`anderthalb`, `ढाई करोड़`, `seven and a half`."""
    for found in _HALF.finditer(text):
        word = found[0].lower()
        if word in _HALVES:
            value = Decimal(_HALVES[word])
        else:
            value = next(iter(numbers_in_words(found["words"]))).value + Decimal("0.5")
        scale, end = scale_after(text, found.end(), language)
        readings = frozenset((value,))
        yield Number(
            start=found.start(), end=found.end(), whole_end=end, readings=_scaled(readings, scale, language),
            scale=scale, unscaled=readings, percent=_PERCENT.match(text, end) is not None, literal=None,
        )  # fmt: skip


def _fractions(text: str) -> Iterator[Number]:
    for found in _FRACTION.finditer(text):
        if found["sign"]:
            part = Decimal(str(unicodedata.numeric(found["sign"])))
        elif int(found["top"]) < int(found["under"]):
            part = Decimal(found["top"]) / Decimal(found["under"])
        else:
            continue
        value = frozenset((int(found["whole"] or 0) + round(part, 4),))
        yield Number(
            start=found.start(), end=found.end(), whole_end=found.end(), readings=value, scale=None, unscaled=value,
            percent=_PERCENT.match(text, found.end()) is not None, literal=None,
        )  # fmt: skip


def _part_after(text: str, end: int) -> int:
    return end + 1 if _SPACED.match(text, end) else end


def _compound(text: str, start: int) -> Number | None:
    """Return a number such as `3億5千万`; None if its parts are not in order."""
    total, section, end, least = Decimal(0), Decimal(0), start, Decimal("1e20")
    for _ in range(6):
        part = _EASTERN_PARTS.match(text, end)
        if part is None:
            break
        section += Decimal(part[1].replace(",", "")) * (10 ** EASTERN[part[2]] if part[2] else 1)
        if part[3]:
            scale = Decimal(10) ** EASTERN[part[3]]
            if scale >= least:
                return None
            total, section, least = total + section * scale, Decimal(0), scale
        end = part.end()
        if not (part[2] or part[3]):
            break
        end = _part_after(text, end) if part[3] in _SPACED_SCALES else end
    value = frozenset((total + section,))
    return Number(
        start=start,
        end=end,
        whole_end=end,
        readings=value,
        scale=_COMPOUND,
        unscaled=value,
        percent=False,
        literal=None,
    )


def _han_numbers(text: str) -> Iterator[Number]:
    for found in _HAN.finditer(text.translate(_FORMAL)) if not text.isascii() else ():
        if (value := _han_value(found[0])) is not None:
            readings = frozenset((value,))
            yield Number(
                start=found.start(), end=found.end(), whole_end=found.end(), readings=readings, scale=None,
                unscaled=readings, percent=_PERCENT.match(text, found.end()) is not None, literal=None,
            )  # fmt: skip


def _han_value(text: str) -> Decimal | None:
    total, section, digit = 0, 0, 0
    if not any(char in _HAN_TENS or char in EASTERN for char in text):
        return None
    for char in text:
        if char in _HAN_DIGITS:
            digit = _HAN_DIGITS[char]
        elif char in _HAN_TENS:
            section, digit = section + (digit or 1) * _HAN_TENS[char], 0
        else:
            total, section, digit = total + (section + digit or 1) * 10 ** EASTERN[char], 0, 0
    return Decimal(total + section + digit)


def _literal(found: re.Match[str], digits: str) -> Decimal | None:
    if found["ordinal"] or not digits.replace(".", "", 1).isdigit() or len(found["sign"] or "") > 1:
        return None
    return -Decimal(digits) if found["sign"] else Decimal(digits)


def _scaled(readings: frozenset[Decimal], scale: str | None, language: str | None) -> frozenset[Decimal]:
    if scale is None:
        return readings
    places = places_of(scale, language)
    return frozenset(one.scaleb(places) for one in readings)


def _readings(digits: str, language: str | None = None) -> frozenset[Decimal]:
    """Return the possible values of digits and separators; empty if it is not a number: 12.05.1998, 192.168.0.1."""
    digits = re.sub(rf"[{_SPACE}'’]", "", digits).replace(":", ".")
    dots, commas = digits.count("."), digits.count(",")
    if not dots and not commas:
        return _decimals(digits)
    if dots and commas:
        return _with_both(digits)
    mark = "." if dots else ","
    if dots + commas > 1:
        return _decimals(_ungrouped(digits, mark))
    whole, _, fraction = digits.partition(mark)
    if len(fraction) != 3 or len(whole) > 3 or whole.startswith("0"):
        return _decimals(f"{whole}.{fraction}")
    # Three digits after a comma are thousands, after a point they may be: it depends on the language.
    is_decimal = not groups_by_point(language) if mark == "." else has_decimal_comma(language)
    return _decimals(whole + fraction) | (_decimals(f"{whole}.{fraction}") if is_decimal else frozenset())


def _with_both(digits: str) -> frozenset[Decimal]:
    """The last separator is the decimal one: `1.234,5`."""
    point = "." if digits.rfind(".") > digits.rfind(",") else ","
    whole, _, fraction = digits.rpartition(point)
    ungrouped = "" if point in whole else _ungrouped(whole, "," if point == "." else ".")
    return _decimals(f"{ungrouped}.{fraction}") if ungrouped else frozenset()


def _ungrouped(digits: str, mark: str) -> str:
    groups = digits.split(mark)
    regular = 1 <= len(groups[0]) <= 3 and all(len(group) == 3 for group in groups[1:])
    # 1,24,500: groups of two above the thousands
    indian = mark == "," and len(groups) > 2 and len(groups[0]) <= 2 and len(groups[-1]) == 3
    indian = indian and all(len(group) == 2 for group in groups[1:-1])
    return "".join(groups) if regular or indian or len(groups) == 1 else ""


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
