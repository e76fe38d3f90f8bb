"""Phrases that say what a section is: "You may also like", "Share this", "© 2024".

`phrases.toml` has them in the languages of many sites.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

#: characters of the longest heading that is compared
MAX_HEADING = 80
_MAX_LABEL = 40
_MAX_PAGES = 120
_LEAST_PAGES = 2

_PHRASES: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "phrases.toml").read_text("utf-8"))


#: a letter that every match begins with, and the rest
_FIRST_LETTER = re.compile(r"([^\W\d_])(?![?*+{])(.*)", re.DOTALL)
#: a word that begins a phrase and must not continue a word before it
_WORD_START = re.compile(r"\\b((?:[^\W\d_](?![?*+{]))+)")
_PARENTHESES = re.compile(r"\([^()]*\)")


class Pattern:
    """A pattern in lower case that is compared without regard to case.

    Most text is ASCII. Its lower case is compared with a pattern that regards case: that takes a third of the time, and
    gives the same result, because in ASCII only the dotless i of a pattern has another equivalent.
    """

    def __init__(self, pattern: str, in_ascii: str | None = None) -> None:
        """`in_ascii`: a pattern that finds the same in ASCII text."""
        self._any = re.compile(pattern, re.IGNORECASE)
        self._ascii = re.compile((pattern if in_ascii is None else in_ascii).replace("ı", "i"))

    @classmethod
    def of(cls, name: str, form: str = "{}") -> Pattern:
        """Return a pattern of the phrases of a name in this form."""
        found = _PHRASES[name]
        in_ascii = [phrase for phrase in found if phrase[0].isascii() or phrase[0] == "ı"]
        return cls(form.replace("{}", any_of(found)), form.replace("{}", any_of(in_ascii)))

    def search(self, text: str) -> re.Match[str] | None:
        return self._ascii.search(text.lower()) if text.isascii() else self._any.search(text)

    def match(self, text: str) -> re.Match[str] | None:
        return self._ascii.match(text.lower()) if text.isascii() else self._any.match(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        return self._ascii.fullmatch(text.lower()) if text.isascii() else self._any.fullmatch(text)

    def finditer(self, text: str) -> Iterator[re.Match[str]]:
        return self._ascii.finditer(text.lower()) if text.isascii() else self._any.finditer(text)


def any_of(phrases: Iterable[str]) -> str:
    """Return a pattern that matches where one of the phrases does; which one, it does not say.

    Phrases with the same first letter follow it, so that most text is refused by one comparison for each letter, and a
    search skips what none of them begins with.
    """
    groups: dict[str, list[str]] = {}
    for phrase in phrases:
        first, rest = _split(_WORD_START.sub(r"\1(?<=\\b\1)", phrase, count=1) if phrase[:2] == r"\b" else phrase)
        groups.setdefault(first, []).append(rest)
    return f"(?:{'|'.join(f'{first}(?:{chr(124).join(rests)})' for first, rests in groups.items())})"


def _split(phrase: str) -> tuple[str, str]:
    """Return the letter that a phrase begins with, and the rest; no letter if it is not certain."""
    found = _FIRST_LETTER.fullmatch(phrase)
    return ("", phrase) if found is None or _is_choice(phrase) else (found[1], found[2])


def _is_choice(phrase: str) -> bool:
    """Whether a phrase is two: `a|b`."""
    before = ""
    while phrase != before:
        before, phrase = phrase, _PARENTHESES.sub("", phrase.replace(r"\(", "").replace(r"\)", ""))
    return "|" in phrase


_ELSEWHERE = Pattern.of("elsewhere", r"[\W_]{0,4}{}")
_LABELS = Pattern.of("labels", r"{}[\W_]{0,4}")
_COOKIES = Pattern.of("cookies")
_ORDER = Pattern.of("order")
_DATELINE = Pattern.of("dateline", r"{}[^.!?。]{0,80}$")
_TOPICS = Pattern.of("topics", r"\W{0,3}{}\s?[:：]|\W{0,3}(?:posted in|tagged(?: with)?|filed under)\b")
_COPYRIGHT = Pattern.of("copyright")
_COPYRIGHT_FIRST = Pattern.of("copyright_first", r"\W{0,3}{}")
_PAGES = Pattern.of("pages", r"(?:[\W\d_]|{}(?![^\W\d_]))*")
#: not the year of a book or a film
_COUNTS = re.compile(r"[(（](?!(?:19|20)[0-9]{2}[)）])[0-9]{1,6}[)）][ \t]*$", re.MULTILINE)
_MOST_COUNTED = 0.6
_NUMBERS = re.compile(r"[0-9]{1,5}")
_FORUM = Pattern.of("forum", r"\W{0,3}{}")
_POSTER = Pattern.of("poster", r"\b{}\s{0,3}:")


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


def is_topics(text: str) -> bool:
    """Return whether a text is what an article is filed under: `Tags: cars, news`."""
    return _TOPICS.match(text) is not None


def is_copyright(text: str) -> bool:
    return _COPYRIGHT.search(text) is not None or _COPYRIGHT_FIRST.match(text) is not None


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
