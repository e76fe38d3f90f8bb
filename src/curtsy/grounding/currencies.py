"""ISO 4217 codes that a sign or name next to an amount stands for. Pure; `currencies.toml` has the signs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from curtsy.grounding.cldr import ascii_digits

_NAMES: dict[str, str] = tomllib.loads((Path(__file__).parent / "currencies.toml").read_text("utf-8"))
#: ISO 4217 codes
CODES = frozenset(_NAMES)
_SIGNS = {
    **{code.casefold(): code for code in CODES},
    **{sign.replace("_", " "): code for code, signs in _NAMES.items() for sign in signs.split()},
}
#: signs of several currencies -> by language
_BY_LANGUAGE = {
    "kr": {"sv": "SEK", "nb": "NOK", "no": "NOK", "nn": "NOK", "da": "DKK", "is": "ISK"},
    "¥": {"zh": "CNY", "": "JPY"},
    "￥": {"zh": "CNY", "": "JPY"},
    "$": {
        "": "USD",
        "fr-ca": "CAD",
        "en-au": "AUD",
        "en-ca": "CAD",
        "en-nz": "NZD",
        "es-mx": "MXN",
        "es-ar": "ARS",
        "es-cl": "CLP",
    },
    "fr": {"de": "CHF", "fr-ch": "CHF", "it": "CHF"},
}
_GLUED_SIGNS = ("R", "RM", "Rs", "Rp", "kr", "Kr", "Fr")
_EVERY = sorted({*_SIGNS, *_BY_LANGUAGE}, key=lambda sign: (-len(sign), sign))
_LONGEST = len(_EVERY[0])
#: what may be between a sign and its amount: `US$: 12`, `50,- Kč`
_GAP = " .:\u00a0\u202f"
_AFTER_GAP = " ,.-–\u00a0\u202f"
_ANY = "|".join(map(re.escape, _EVERY))
_MONEY = re.compile(
    rf"(?<![^\W\d_])(?:{_ANY})[{re.escape(_GAP)}]{{0,2}}\d|\d[{re.escape(_AFTER_GAP)}]{{0,3}}(?:{_ANY})(?![^\W\d_])",
    re.IGNORECASE,
)


def has_money(text: str) -> bool:
    """Return whether a text has an amount with the sign or name of a currency."""
    return _MONEY.search(ascii_digits(text)) is not None


def is_sign(word: str) -> bool:
    """Return whether a word in lower case is the sign or name of a currency."""
    return word in _SIGNS or word in _BY_LANGUAGE


def glued(width: int) -> str:
    """Return a pattern for the signs of that many letters that are written right before an amount: `RM50`."""
    upper = {code for code in CODES if len(code) == width}
    return "|".join(sorted(upper | {one for one in _GLUED_SIGNS if len(one) == width}))


def codes_of(text: str, start: int, end: int, language: str | None) -> set[str]:
    """Return the codes for the sign or name right before or right after text[start:end]."""
    before = text[max(0, start - _LONGEST - 3) : start].casefold().rstrip(_GAP)
    after = text[end : end + _LONGEST + 3].casefold().lstrip(_AFTER_GAP)
    return {
        code for sign in (*_last(before), *_first(after)) if (code := _code(sign, (language or "").lower())) is not None
    }


def _last(text: str) -> Iterator[str]:
    """Yield the longest sign at the end of a text."""
    for sign in _EVERY:
        if text.endswith(sign) and not (sign[0].isalpha() and text[: -len(sign)][-1:].isalpha()):
            yield sign
            return


def _first(text: str) -> Iterator[str]:
    for sign in _EVERY:
        if text.startswith(sign) and not (sign[-1].isalpha() and _is_word(sign) and text[len(sign) :][:1].isalpha()):
            yield sign
            return


def _is_word(sign: str) -> bool:
    """Signs of scripts without spaces may be followed by other words."""
    return not ("\u2e80" <= sign[-1] <= "\u9fff" or "\uac00" <= sign[-1] <= "\ud7af")


def _code(sign: str, language: str) -> str | None:
    if sign in _BY_LANGUAGE:
        table = _BY_LANGUAGE[sign]
        return table.get(language) or table.get(language.partition("-")[0]) or table.get("")
    return _SIGNS[sign]
