"""From a text that a page states to a value of a leaf's type."""

from __future__ import annotations

import html
import re
from typing import Any

from curtsy.schemas import Leaf

_ISO_DATE = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?(?:[T ].*)?")
_INTEGER = re.compile(r"[+-]?\d{1,3}(?:[,. '’\u00a0\u202f]\d{3})+|[+-]?\d{1,15}")
_NUMBER = re.compile(r"[+-]?\d{1,15}(?:\.\d{1,10})?")


def coerced(text: str, leaf: Leaf) -> Any:
    """The value of the leaf's type that the text is; None: it is none."""
    text = " ".join(html.unescape(text).split())
    match leaf.type:
        case "string":
            return text or None
        case "integer":
            return _integer(text)
        case "number":
            return float(text) if _NUMBER.fullmatch(text) else _integer(text)
        case "date":
            return found[0][:10] if (found := _ISO_DATE.fullmatch(text)) and found[3] else None
        case "boolean":
            return {"true": True, "yes": True, "false": False, "no": False}.get(_local(text).lower())
        case "enum":
            return _word(text, leaf)
    return None


def _integer(text: str) -> int | None:
    if (found := _ISO_DATE.fullmatch(text)) and found[2]:
        return int(found[1])  # the year of a date
    if not _INTEGER.fullmatch(text):
        return None
    return int(re.sub(r"[,. '’\u00a0\u202f]", "", text))


def _word(text: str, leaf: Leaf) -> Any:
    for said in (text, _local(text)):
        for one in leaf.enum:
            if str(one).casefold() == said.casefold():
                return one
    return None


def _local(text: str) -> str:
    """The last part of an address: `https://schema.org/InStock` -> `InStock`."""
    return text.rstrip("/").rpartition("/")[2]
