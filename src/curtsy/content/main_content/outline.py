"""The elements of a page with their parts of the visible text, and what is counted of each.

Everything is counted once, in one pass from the leaves to the root, so that the time is linear in the page.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.main_content.names import Part, part_of
from curtsy.content.text import Place, VisibleText
from curtsy.content.walk import PageTree

#: scripts that need few characters for much text: a character counts as this many letters
_DENSE = 2.2
_DENSE_CHARS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"[.!?…。！？؟।॥።։]['\"”’»)\]）」』]{0,2}(?=\s|$)|[。！？।]")
_COMMA = re.compile(r"[,،、，;；]")
#: letters of a line that is probably prose, with and without the marks of a sentence
_PROSE = 50
_LONG_PROSE = 100
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
#: characters of a footnote's mark
_FOOTNOTE = 5


@dataclass(slots=True)
class Element:
    """An element that a reader sees, with the counts of everything within it."""

    node: LexborNode
    tag: str
    start: int
    end: int
    parent: int
    attributes: Mapping[str, str | None]
    #: its class and id
    names: str
    part: Part
    #: number of the first element after it and everything within it
    stop: int = 0
    #: letters; those of links; those of prose: lines that read like sentences and are not links
    letters: float = 0.0
    linked: float = 0.0
    prose: float = 0.0
    links: int = 0
    headings: int = 0
    images: int = 0
    #: among the children of its parent
    position: int = 0
    children: list[int] = field(default_factory=list)

    @property
    def link_density(self) -> float:
        return self.linked / self.letters if self.letters else 0.0


@dataclass(frozen=True, slots=True)
class Outline:
    """Elements in document order; the first is the root."""

    visible: VisibleText
    elements: list[Element]

    @property
    def text(self) -> str:
        return self.visible.text


def names_of(tag: str, attributes: Mapping[str, str | None]) -> str:
    """Return the class and the id. The id of a heading is the address of its section, made from its words."""
    if not attributes:
        return ""
    class_ = attributes.get("class") or ""
    return class_ if tag in _HEADINGS else f"{class_} {attributes.get('id') or ''}"


def outline(tree: PageTree) -> Outline:
    places: list[Place] = []
    visible = prose.read(tree, places=places)
    elements = _elements(places, visible.text)
    if elements:
        _count(elements, visible.text)
    return Outline(visible, elements)


def _elements(places: list[Place], text: str) -> list[Element]:
    found: list[Element] = []
    for number, place in enumerate(places):
        node, tag, start, end, above = place.node, place.tag, place.start, place.end, place.parent
        if start < end and text[start].isspace():
            start += 1  # the separator before it
        attributes = node.attributes
        names = names_of(tag, attributes)
        part = part_of(names) if len(names) > 1 else Part.UNKNOWN
        element = Element(node, tag, start, end, above, attributes, names, part)
        if above >= 0:
            siblings = found[above].children
            element.position = len(siblings)
            siblings.append(number)
        found.append(element)
    for number in range(len(found) - 1, -1, -1):
        element = found[number]
        element.stop = max(element.stop, number + 1)
        if element.parent >= 0:
            above_element = found[element.parent]
            above_element.stop = max(above_element.stop, element.stop)
    return found


def _count(elements: list[Element], text: str) -> None:
    lines = _Lines(text, elements)
    for element in elements:
        if element.end > element.start:
            element.letters, element.linked, element.prose = lines.counts(element.start, element.end)
    for element in reversed(elements):
        if element.tag == "a":
            element.links = 1
        elif element.tag in _HEADINGS:
            element.headings += 1
        elif element.tag == "img":
            element.images = 1
        if element.parent >= 0:
            above = elements[element.parent]
            above.links += element.links
            above.headings += element.headings
            above.images += element.images


class _Lines:
    """Sums over the text up to a position: letters, letters of links, letters of prose."""

    def __init__(self, text: str, elements: list[Element]) -> None:
        self._dense = len(_DENSE_CHARS.findall(text)) > 0.3 * len(text)
        self._factor = _DENSE if self._dense else 1.0
        self._starts: list[int] = []
        self._widths: list[int] = []
        self._sums: list[float] = [0.0]
        self._known: dict[int, tuple[int, float]] = {}
        self._link_starts = [0]
        self._link_sums = [0]
        self._link_last = [0]
        self._read_links(elements)
        self._read_lines(text)

    def _read_links(self, elements: list[Element]) -> None:
        end = total = 0
        for element in elements:
            if element.tag == "a" and element.start >= end and element.end > element.start and _is_link(element):
                self._link_starts.append(element.start)
                self._link_sums.append(total)
                self._link_last.append(element.end)
                total += element.end - element.start
                end = element.end

    def _read_lines(self, text: str) -> None:
        at = 0
        for line in text.split("\n"):
            width = len(line)
            plain = width - (self._links_to(at + width) - self._links_to(at))
            self._starts.append(at)
            self._widths.append(width)
            self._sums.append(self._sums[-1] + self._weight(line, width, plain))
            at += width + 1

    def _weight(self, line: str, width: int, plain: int) -> float:
        """Letters of prose in a line: none, unless it is long and reads like a sentence."""
        letters = plain * self._factor
        if letters < _PROSE or plain < 0.4 * width:
            return 0.0
        if letters >= _LONG_PROSE or _SENTENCE_END.search(line) or _COMMA.search(line):
            return letters
        return 0.3 * letters

    def _links_to(self, position: int) -> int:
        at = bisect_right(self._link_starts, position) - 1
        return self._link_sums[at] + min(position, self._link_last[at]) - self._link_starts[at]

    def counts(self, start: int, end: int) -> tuple[float, float, float]:
        """Return the letters between two positions, those of links, and those of prose."""
        first, last = self._to(start), self._to(end)
        return (end - start) * self._factor, (last[0] - first[0]) * self._factor, max(0.0, last[1] - first[1])

    def _to(self, position: int) -> tuple[int, float]:
        """Return the characters of links and the letters of prose before a position. Elements share positions."""
        found = self._known.get(position)
        if found is None:
            found = self._known[position] = (self._links_to(position), self._prose_to(position))
        return found

    def _prose_to(self, position: int) -> float:
        at = bisect_right(self._starts, position) - 1
        part = min(1.0, (position - self._starts[at]) / (self._widths[at] or 1))
        return self._sums[at] + part * (self._sums[at + 1] - self._sums[at])


def _is_link(element: Element) -> bool:
    """An anchor without an address is a target; a short link within the page is a footnote."""
    href = element.attributes.get("href")
    return bool(href) and not (str(href).startswith("#") and element.end - element.start <= _FOOTNOTE)
