"""Names without a label that sign an article: in a box with its date, or in a line of its own below the text.

beside_date    `Nora Field`, and below it `Ferrow, 5 May 2024`, in one paragraph
below          the last line of the text, in italics or at the right
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from curtsy.content.text import Span
from curtsy.extract.article_marks import chain
from curtsy.extract.article_words import WORDS
from curtsy.grounding.dates import dates

_BOXES = frozenset(("p", "div", "section", "header", "td", "address"))
_INNER = frozenset(("i", "em", "b", "strong", "cite"))
_QUOTED = frozenset(("blockquote", "q", "figure", "aside"))
_RIGHT = re.compile(
    r"text-align:\s{0,3}(?:right|end)"
    r"|(?:^|[\s_\-])(?:text-?right|align-?right|right|signature|signed|firma|sign)(?:$|[\s_\-])"
)
_DASH = re.compile(r"[\s(]{0,2}[-–—―~]{0,2}\s{0,2}")
_MAX_BOX, _MAX_LINES, _MAX_BESIDE_DATE = 120, 3, 6


def beside_date(text: str, spans: Sequence[Span], start: int) -> Iterator[tuple[int, int]]:
    """Yield lines before a line with a date, in a box of few lines right below the heading, that have no link."""
    for box in spans:
        if box.node.tag not in _BOXES or not start <= box.start or box.end - box.start > _MAX_BOX:
            continue
        lines = [line for line in text[box.start : box.end].split("\n") if line.strip()]
        if not 2 <= len(lines) <= _MAX_LINES or not _is_dated(lines[1]) or any(dates(lines[0])):
            continue
        end = box.start + len(text[box.start : box.end].split("\n")[0])
        if not any(one.node.tag == "a" and box.start <= one.start < end for one in spans) and _is_full_name(lines[0]):
            yield box.start, end


def below(text: str, spans: Sequence[Span], last_line: str) -> Iterator[tuple[int, int]]:
    """Yield where the last line of an article is nothing but a name that is set apart."""
    name = _DASH.sub("", last_line, count=1).strip(" )")
    if not _is_full_name(name):
        return
    at = text.rfind(name)
    around = [one for one in spans if one.start <= at and at + len(name) <= one.end <= at + len(name) + 2]
    if at > 0 and any(_is_apart(one) for one in around) and text.count(name) == 1:
        yield at, at + len(name)


def _is_dated(line: str) -> bool:
    return any(dates(line)) and len(line.split()) <= _MAX_BESIDE_DATE + 3


def _is_full_name(line: str) -> bool:
    words = line.split()
    names = [word for word in words if word.casefold() not in WORDS["particles"]]
    return (
        2 <= len(words) <= 4 and len(names) >= 2 and all(word[:1].isupper() and word[-1:].isalpha() for word in names)
        and any(not word.isupper() for word in names)
        and not any(word.casefold() in WORDS["site_words"] | WORDS["not_names"] for word in words)
    )  # fmt: skip


def _is_apart(one: Span) -> bool:
    """Whether it is in italics or at the right, but not in a quotation."""
    if any(at.tag in _QUOTED for at in chain(one.node, frozenset())):
        return False
    attributes = one.node.attributes
    marks = " ".join(str(attributes.get(name) or "") for name in ("class", "align", "style"))
    return one.node.tag in _INNER or _RIGHT.search(marks) is not None
