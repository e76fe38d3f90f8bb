"""Phrases that say what a section is: "You may also like", "Share this", "© 2024".

`phrases.toml` has them in the languages of many sites.
"""

from __future__ import annotations

import re
import tomllib
from itertools import islice
from pathlib import Path

#: characters of the longest heading that is compared
MAX_HEADING = 80
_MAX_LABEL = 40

_PHRASES: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "phrases.toml").read_text("utf-8"))


def _any_of(name: str) -> str:
    return f"(?:{'|'.join(_PHRASES[name])})"


_ELSEWHERE = re.compile(rf"[\W_]{{0,4}}{_any_of('elsewhere')}", re.IGNORECASE)
_LABELS = re.compile(rf"{_any_of('labels')}[\W_]{{0,4}}", re.IGNORECASE)
_COOKIES = re.compile(_any_of("cookies"), re.IGNORECASE)
_ORDER = re.compile(_any_of("order"), re.IGNORECASE)
_DATELINE = re.compile(rf"{_any_of('dateline')}[^.!?。]{{0,80}}$", re.IGNORECASE)
_COPYRIGHT = re.compile(_any_of("copyright"), re.IGNORECASE)
_POSTER = re.compile(rf"\b{_any_of('poster')}\s{{0,3}}:", re.IGNORECASE)


def leads_elsewhere(heading: str) -> bool:
    """Return whether a heading announces other pages, a subscription or comments.

    >>> leads_elsewhere("Related articles"), leads_elsewhere("Lesen Sie auch:"), leads_elsewhere("Usage")
    (True, True, False)
    """
    return _ELSEWHERE.match(heading[:MAX_HEADING].strip()) is not None


def speaks_of_cookies(text: str) -> bool:
    return _COOKIES.search(text) is not None


def count_orders(text: str, most: int) -> int:
    """Return how often a text asks to order something, up to `most`."""
    return sum(1 for _ in islice(_ORDER.finditer(text), most))


def is_dateline(text: str) -> bool:
    """Return whether a text says when an article was published: `Updated: 3 May, 10:00`."""
    return _DATELINE.match(text) is not None


def is_copyright(text: str) -> bool:
    return _COPYRIGHT.search(text) is not None


def describes_poster(text: str) -> bool:
    """Return whether a text is what a forum says about the author of a post: `Joined: May 2010`."""
    return _POSTER.search(text) is not None


def is_label(text: str) -> bool:
    """Return whether a text is a label of a control and nothing else: `Read more`."""
    return len(text) < _MAX_LABEL and _LABELS.fullmatch(text.strip()) is not None
