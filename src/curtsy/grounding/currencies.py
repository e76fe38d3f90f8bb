"""ISO 4217 codes that a sign or name next to an amount stands for. Pure."""

from __future__ import annotations

import re

from curtsy.grounding.folded_text import plain

_SIGNS = {
    "€": "EUR", "£": "GBP", "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₴": "UAH", "₪": "ILS", "฿": "THB",
    "₫": "VND", "zł": "PLN", "kč": "CZK", "円": "JPY", "元": "CNY", "원": "KRW", "руб": "RUB", "грн": "UAH",
    "лв": "BGN", "lei": "RON", "r$": "BRL", "us$": "USD", "a$": "AUD", "au$": "AUD", "c$": "CAD", "ca$": "CAD",
    "nz$": "NZD", "hk$": "HKD", "s$": "SGD", "mx$": "MXN", "nt$": "TWD", "rs": "INR", "ft": "HUF",
    "euro": "EUR", "euros": "EUR", "pounds": "GBP", "yen": "JPY", "sfr": "CHF", "ユーロ": "EUR", "евро": "EUR",
}  # fmt: skip
#: signs of several currencies -> by language
_BY_LANGUAGE = {
    "kr": {"sv": "SEK", "nb": "NOK", "no": "NOK", "nn": "NOK", "da": "DKK", "is": "ISK"},
    "¥": {"zh": "CNY", "": "JPY"},
    "$": {"": "USD", "en-au": "AUD", "en-ca": "CAD", "en-nz": "NZD", "es-mx": "MXN", "es-ar": "ARS", "es-cl": "CLP"},
    "fr": {"de": "CHF", "fr-ch": "CHF", "it": "CHF"},
}
_BEFORE = re.compile(r"((?:[a-z]{1,2})?[$€£¥₹₽₩₺₴₪฿₫]|\b(?:[a-z]{2,3}))[ .]{0,2}$")
_AFTER = re.compile(r"^[ ,.-]{0,3}([$€£¥₹₽₩₺₴₪฿₫円元원]|[^\W\d_]{2,6})")


def codes_of(text: str, start: int, end: int, language: str | None) -> set[str]:
    """Return the codes for the sign or name right before or right after text[start:end]."""
    before = _BEFORE.search(plain_end(text[max(0, start - 8) : start]))
    after = _AFTER.search(plain_start(text[end : end + 10]))
    found: set[str] = set()
    for match in (before, after):
        if match is not None:
            found |= _codes(match[1], (language or "").lower())
    return found


def plain_end(text: str) -> str:
    return text.casefold().replace("\u00a0", " ")


def plain_start(text: str) -> str:
    return text.casefold().replace("\u00a0", " ").replace("\u202f", " ")


def _codes(sign: str, language: str) -> set[str]:
    if sign in _BY_LANGUAGE:
        table = _BY_LANGUAGE[sign]
        code = table.get(language) or table.get(language.partition("-")[0]) or table.get("")
        return {code} if code else set()
    folded = plain(sign)
    code = _SIGNS.get(sign) or _SIGNS.get(folded)
    return {code} if code else set()
