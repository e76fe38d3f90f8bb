"""Values that a page's structured data and meta tags state, by key: evidence for what a model quotes from the text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from curtsy.grounding.folded_text import plain
from curtsy.grounding.json_pointer import keys as keys_of

_MAX_NODES = 2_000
_MAX_VALUES = 400
_MAX_LENGTH = 2_000
#: a key with more values is about several things
_MAX_OF_ONE = 2
#: parts of the data that are about other things than the page
_OTHERS = frozenset(
    ("breadcrumb", "itemlistelement", "isrelatedto", "issimilarto", "review", "reviews", "comment", "comments",
     "mentions", "ispartof", "potentialaction", "hasmerchantreturnpolicy", "shippingdetails")
)  # fmt: skip
_MORE_KEYS = {
    "city": ("addresslocality",), "town": ("addresslocality",), "street": ("streetaddress",), "phone": ("telephone",),
    "company": ("hiringorganization",), "employer": ("hiringorganization",), "rating": ("ratingvalue",),
    "posted": ("dateposted",), "published": ("datepublished", "datecreated", "uploaddate", "article:published_time"),
    "modified": ("datemodified", "article:modified_time"), "currency": ("pricecurrency",), "price": ("lowprice",),
    "ingredients": ("recipeingredient",), "instructions": ("recipeinstructions", "text"), "votes": ("ratingcount",),
    "zip": ("postalcode",),
    "publisher": ("publisher", "og:site_name"), "authors": ("author",), "organizer": ("organizer",),
    "description": ("description", "og:description"), "summary": ("description", "og:description"),
    "location": ("addresslocality", "location"), "salary": ("basesalary", "minvalue"), "country": ("addresscountry",),
    "employmenttype": ("employmenttype",), "start": ("startdate",), "end": ("enddate",), "deadline": ("validthrough",),
}  # fmt: skip
_NUMBER = re.compile(r"\d{1,9}(?:\.\d{1,4})?")
_DATE = re.compile(r"[12]\d{3}-\d\d-\d\d")


class StatedValues:
    """The texts of a page's data by their key in lower case."""

    def __init__(self, data: list[dict[str, Any]]) -> None:
        self._texts: dict[str, set[str]] = {}
        for key, text in _pairs(data):
            self._texts.setdefault(key, set()).add(plain(text[:_MAX_LENGTH]))

    def states(self, path: str, value: Any) -> bool | None:
        """Return whether a key of that name has this value; None if there is no such key, or if it has many values."""
        names = [name for name in keys_of(path) if name != "*" and not name.isdigit()]
        if not names:
            return None
        is_item = "/*" in path or names[-1].endswith("s")
        wanted = plain(str(value))
        known = {
            one
            for key in _keys(names[-1])
            for one in self._texts.get(key, ())
            if is_item or len(self._texts[key]) <= _MAX_OF_ONE
        }
        if any(_is_same(wanted, one, value) for one in known):
            return True
        return False if known and all(_is_comparable(one, value) for one in known) else None


def _pairs(data: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    stack: list[tuple[str, Any]] = [("", entry.get("data")) for entry in data]
    found = 0
    for _ in range(_MAX_NODES):
        if not stack or found >= _MAX_VALUES:
            return
        key, value = stack.pop()
        if isinstance(value, dict):
            stack += [(name.lower(), inner) for name, inner in value.items() if name.lower() not in _OTHERS]
            value = value.get("name")
        elif isinstance(value, list):
            stack += [(key, inner) for inner in value[:200]]
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            found += 1
            yield key, str(value)


def _keys(name: str) -> set[str]:
    bare = re.sub(r"[_\-]", "", name).lower()
    return {bare, name.lower(), *_MORE_KEYS.get(bare, ())}


def _is_comparable(stated: str, value: Any) -> bool:
    """Return whether a text has the form of the value: a number, a date."""
    if isinstance(value, int | float):
        return _NUMBER.fullmatch(stated) is not None
    return not _DATE.match(str(value)) or _DATE.match(stated) is not None


def _is_same(wanted: str, stated: str, value: Any) -> bool:
    if isinstance(value, int | float):
        try:
            return float(stated.replace(",", "")) == float(value)
        except ValueError:
            return False
    if wanted == stated or (len(wanted) == 10 and stated.startswith(wanted)):
        return True
    return len(wanted) > 40 and (wanted in stated or stated in wanted)
