"""Whether a value of structured data can be what its leaf is called: templates write `call` as a phone number."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from curtsy.extract.article_words import WORDS
from curtsy.grounding.json_pointer import keys
from curtsy.grounding.schema import Leaf

_MAIL = re.compile(r"[^\s@]{1,100}@[^\s@.]{1,100}(?:\.[^\s@.]{1,100}){1,9}")
_NONE = WORDS["placeholders"] | {"n/a", "na", "tbd", "tba", "address", "-"}
#: `2 eggs, 100 g sugar, 1 lemon, 3 cups milk`
_NEXT_AMOUNT = re.compile(r", ?\d")
_MAX_AMOUNTS = 3
#: short numbers such as 112
_LEAST_DIGITS = 3


def is_possible(leaf: Leaf, value: Any, *, exact: bool) -> bool:
    """`exact`: it is a JSON number or boolean. A boolean is no text."""
    if exact and leaf.type == "string" and value in ("true", "false"):
        return False
    names = [name for name in keys(leaf.path) if name != "*"]
    check = _CHECKS.get(names[-1].lower()) if names and not isinstance(value, bool) else None
    return check is None or check(str(value).strip())


def _is_mail(text: str) -> bool:
    return _MAIL.search(text) is not None and "@@" not in text


def _is_phone(text: str) -> bool:
    return sum(map(str.isdigit, text)) >= _LEAST_DIGITS


def _is_address(text: str) -> bool:
    return text.casefold() not in _NONE


def _is_price(text: str) -> bool:
    return not text.startswith(("-", "−"))


def _is_ingredient(text: str) -> bool:
    """Not all of them in one text."""
    return len(_NEXT_AMOUNT.findall(text)) < _MAX_AMOUNTS


_CHECKS: dict[str, Callable[[str], bool]] = {
    "email": _is_mail,
    "phone": _is_phone,
    "telephone": _is_phone,
    "address": _is_address,
    "price": _is_price,
    "ingredients": _is_ingredient,
}
