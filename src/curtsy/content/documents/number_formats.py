"""Numbers of a spreadsheet as its cells show them: decimals, thousands, percent, currency, dates and times."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from functools import lru_cache

#: formats of a spreadsheet that have no code in the file
BUILT_IN = {
    1: "0", 2: "0.00", 3: "#,##0", 4: "#,##0.00", 9: "0%", 10: "0.00%", 14: "yyyy-mm-dd", 15: "d-mmm-yy", 16: "d-mmm",
    17: "mmm-yy", 18: "h:mm AM/PM", 19: "h:mm:ss AM/PM", 20: "h:mm", 21: "h:mm:ss", 22: "yyyy-mm-dd h:mm",
    37: "#,##0", 38: "#,##0", 39: "#,##0.00", 40: "#,##0.00", 45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0",
}  # fmt: skip
_LITERAL = re.compile(r'"([^"]{0,50})"|\\(.)|\[\$([^\]-]{0,10})(?:-[^\]]{0,20})?\]|\[[^\]]{0,20}\]|_.|\*.')
_DATE_CODE = re.compile(r"[ymdhs]", re.IGNORECASE)
_DIGITS = re.compile(r"[#0?][#0?,]*(?:\.([#0?]*))?")
_MOST_DECIMALS = 15


@lru_cache(maxsize=1000)
def _parsed(code: str) -> tuple[str, str, int, bool, bool, str]:
    """(what comes before, what comes after, decimals, thousands, percent, kind: number, date, time, both, general)"""
    section = code.partition(";")[0]
    shown = _LITERAL.sub(lambda found: found[1] or found[2] or found[3] or "", section)
    bare = _LITERAL.sub("", section)
    if "general" in section.lower() or section in ("", "@"):
        return "", "", 0, False, False, "general"
    if _DATE_CODE.search(bare) or "[h" in section.lower() or "[m" in section.lower():
        lower = bare.lower()
        has_day, has_time = "d" in lower or "y" in lower, "h" in lower or "s" in lower or "[h" in section.lower()
        kind = "both" if has_day and has_time else "time" if has_time else "date"
        return "", "", 0, False, False, kind
    digits = _DIGITS.search(shown)
    if digits is None or "E" in bare or "/" in bare:
        return "", "", 0, False, False, "general"
    decimals = min(len(digits[1] or ""), _MOST_DECIMALS)
    before, after = shown[: digits.start()].lstrip("( "), shown[digits.end() :].rstrip(")")
    return before, after, decimals, "," in digits[0], "%" in shown, "number"


def shown_number(value: str, code: str, is_1904: bool = False) -> str:
    """The number as it is shown.

    >>> [shown_number(v, c) for v, c in (("0.125", "0.0%"), ("1234.5", '#,##0.00 "€"'), ("45292", "yyyy-mm-dd"))]
    ['12.5%', '1,234.50 €', '2024-01-01']
    """
    try:
        number = float(value)
    except ValueError:
        return value
    before, after, decimals, thousands, percent, kind = _parsed(code[:200])
    if number != number or abs(number) > 1e300:
        return value
    if kind == "general":
        return general(number)
    if kind != "number":
        return _date(number, kind, is_1904) or general(number)
    if percent:
        number *= 100
    return f"{'-' if number < 0 else ''}{before}{abs(number):{',' if thousands else ''}.{decimals}f}{after}".strip()


def general(number: float) -> str:
    """Without a format: up to 15 digits, as spreadsheets keep them."""
    if number == int(number) and abs(number) < 1e15:
        return str(int(number))
    return f"{number:.15g}"


def _date(number: float, kind: str, is_1904: bool) -> str:
    if not 0 <= number < 2_958_466:
        return ""
    start = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)
    try:
        moment = start + timedelta(seconds=round(number * 86_400))
    except OverflowError:
        return ""
    time = moment.strftime("%H:%M:%S").removesuffix(":00") if number % 1 else "00:00"
    if kind == "time":
        return time if number < 1 else f"{int(number * 24 + 1e-9)}{time[2:]}"
    day = moment.date().isoformat()
    return day if kind == "date" else f"{day} {time}"
