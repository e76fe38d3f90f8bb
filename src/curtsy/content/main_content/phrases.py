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
_MAX_PAGES = 120
_LEAST_PAGES = 2

_PHRASES: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "phrases.toml").read_text("utf-8"))


def _any_of(name: str) -> str:
    return f"(?:{'|'.join(_PHRASES[name])})"


class Pattern:
    """A pattern in lower case that is compared without regard to case.

    Most text is ASCII. Its lower case is compared with a pattern that regards case: that takes a third of the time, and
    gives the same result, because in ASCII only the dotless i of a pattern has another equivalent.
    """

    def __init__(self, pattern: str) -> None:
        self._any = re.compile(pattern, re.IGNORECASE)
        self._ascii = re.compile(pattern.replace("ı", "i"))

    def search(self, text: str) -> re.Match[str] | None:
        return self._ascii.search(text.lower()) if text.isascii() else self._any.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self._ascii.match(text.lower()) if text.isascii() else self._any.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._ascii.fullmatch(text.lower()) if text.isascii() else self._any.fullmatch(text)


_ELSEWHERE = Pattern(rf"[\W_]{{0,4}}{_any_of('elsewhere')}")
_LABELS = Pattern(rf"{_any_of('labels')}[\W_]{{0,4}}")
_COOKIES = Pattern(_any_of("cookies"))
_ORDER = re.compile(_any_of("order"), re.IGNORECASE)
_DATELINE = Pattern(rf"{_any_of('dateline')}[^.!?。]{{0,80}}$")
_COPYRIGHT = Pattern(_any_of("copyright"))
_PAGES = Pattern(rf"(?:[\W\d_]|{_any_of('pages')}(?![^\W\d_]))*")
_COUNTS = re.compile(r"\([0-9]{1,6}\)[ \t]*$", re.MULTILINE)
_MOST_COUNTED = 0.6
_NUMBERS = re.compile(r"[0-9]{1,5}")
_FORUM = Pattern(rf"\W{{0,3}}{_any_of('forum')}")
_POSTER = Pattern(rf"\b{_any_of('poster')}\s{{0,3}}:")


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


def is_pagination(text: str) -> bool:
    """Return whether a text is the numbers of pages and nothing else: `1 2 3 … 11 Next`."""
    if len(text) > _MAX_PAGES or len(_NUMBERS.findall(text)) < _LEAST_PAGES:
        return False
    return _PAGES.fullmatch(text) is not None


def is_facet(text: str) -> bool:
    """Return whether most lines of a text end with a number: `Red (3)`, `Blue (12)`."""
    lines = [line for line in text.split("\n") if line.strip()]
    return len(_COUNTS.findall(text)) >= max(_LEAST_PAGES, _MOST_COUNTED * len(lines))


def is_about_forum(text: str) -> bool:
    """Return whether a text is what a forum says about its readers: `You cannot post new topics`."""
    return _FORUM.match(text) is not None


def describes_poster(text: str) -> bool:
    """Return whether a text is what a forum says about the author of a post: `Joined: May 2010`."""
    return _POSTER.search(text) is not None


def is_label(text: str) -> bool:
    """Return whether a text is a label of a control and nothing else: `Read more`."""
    return len(text) < _MAX_LABEL and _LABELS.fullmatch(text.strip()) is not None
