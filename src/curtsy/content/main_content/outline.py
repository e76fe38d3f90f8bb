"""The elements of a page with their parts of the visible text, and what is counted of each.

Everything is counted once, in one pass from the leaves to the root, so that the time is linear in the page.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.main_content.names import Part, of_type, part_of
from curtsy.content.text import VisibleText
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


class Element:
    """An element that a reader sees, with the counts of everything within it."""

    # A page has hundreds of them: a plain class takes half the time of a dataclass to make.
    __slots__ = (
        "attributes", "children", "end", "headings", "images", "letters", "linked", "links", "names", "node", "parent",
        "part", "position", "prose", "start", "stop", "tag",
    )  # fmt: skip

    def __init__(
        self, node: LexborNode, tag: str, start: int, parent: int, attributes: Mapping[str, str | None]
    ) -> None:
        self.node = node
        self.tag = tag
        self.start = self.end = start
        self.parent = parent
        self.attributes = attributes
        #: its class and id, and what they say
        if "class" in attributes or "id" in attributes or "itemtype" in attributes or "typeof" in attributes:
            self.names = names = names_of(tag, attributes)
            self.part = part_of(names) if len(names) > 1 else Part.UNKNOWN
        else:
            self.names = ""
            self.part = Part.UNKNOWN
        #: number of the first element after it and everything within it
        self.stop = 0
        #: letters; those of links; those of prose: lines that read like sentences and are not links
        self.letters = self.linked = self.prose = 0.0
        self.links = self.headings = self.images = 0
        #: among the children of its parent
        self.position = 0
        self.children: list[int] = []

    @property
    def link_density(self) -> float:
        return self.linked / self.letters if self.letters else 0.0


@dataclass(frozen=True, slots=True)
class Outline:
    """Elements in document order; the first is the root."""

    visible: VisibleText
    elements: list[Element]
    #: the different names of elements: far fewer than elements
    names: frozenset[str]

    @property
    def text(self) -> str:
        return self.visible.text


def names_of(tag: str, attributes: Mapping[str, str | None]) -> str:
    """Return the class, the id and the name of a declared part. The id of a heading is the address of its section."""
    class_ = attributes.get("class") or ""
    said = class_ if tag in _HEADINGS else f"{class_} {attributes.get('id') or ''}"
    if "itemtype" in attributes or "typeof" in attributes:
        return f"{said} {of_type(attributes.get('itemtype') or attributes.get('typeof') or '')}"
    return said


def outline(tree: PageTree) -> Outline:
    found = _Elements()
    visible = prose.read(tree, elements=found)
    if found.elements:
        _count(found.elements, visible.text)
    return Outline(visible, found.elements, frozenset(element.names for element in found.elements))


class _Elements:
    """Gathers the elements in document order."""

    def __init__(self) -> None:
        self.elements: list[Element] = []
        #: numbers of the open elements
        self._open = [-1]

    def enter(self, node: LexborNode, tag: str, at: int) -> None:
        elements = self.elements
        above = self._open[-1]
        element = Element(node, tag, at, above, node.attributes)
        number = len(elements)
        if above >= 0:
            siblings = elements[above].children
            element.position = len(siblings)
            siblings.append(number)
        elements.append(element)
        self._open.append(number)

    def leave(self, at: int) -> None:
        elements = self.elements
        element = elements[self._open.pop()]
        element.end = at
        element.stop = len(elements)
        tag = element.tag
        if tag == "a":
            element.links = 1
        elif tag in _HEADINGS:
            element.headings += 1
        elif tag == "img":
            element.images = 1
        if element.parent >= 0 and (element.links or element.headings or element.images):
            above = elements[element.parent]
            above.links += element.links
            above.headings += element.headings
            above.images += element.images


class _Line(NamedTuple):
    """A line with prose; the letters of prose before it and up to its end."""

    start: int
    end: int
    before: float
    after: float

    def up_to(self, position: int) -> float:
        """Letters of prose before a position up to the end of the line."""
        if position <= self.start:
            return self.before
        return self.before + min(1.0, (position - self.start) / (self.end - self.start)) * (self.after - self.before)


def _count(elements: list[Element], text: str) -> None:
    factor = _DENSE if _is_dense(text) else 1.0
    for element in elements:
        start, end = element.start, element.end
        if start < end:
            if text[start].isspace():
                element.start = start = start + 1  # the separator before it
            element.letters = (end - start) * factor
    links = _count_links(elements, factor)
    _count_prose(elements, _lines(text, links, factor))


def _is_dense(text: str) -> bool:
    return not text.isascii() and len(_DENSE_CHARS.findall(text)) > 0.3 * len(text)


def _count_links(elements: list[Element], factor: float) -> list[tuple[int, int]]:
    """Count the letters of links in each element; return where the outermost links begin and end."""
    links: list[tuple[int, int]] = []
    #: characters of outermost links before each element
    before: list[int] = []
    total = link_end = 0
    for element in elements:
        before.append(total)
        if element.start < link_end:
            element.linked = element.letters  # within a link
        elif element.tag == "a" and element.letters and _is_link(element):
            link_end = element.end
            total += link_end - element.start
            links.append((element.start, link_end))
    before.append(total)
    for element, linked_before in zip(elements, before, strict=False):
        linked = before[element.stop] - linked_before
        if linked:
            element.linked = linked * factor
    return links


def _is_link(element: Element) -> bool:
    """An anchor without an address is a target; a short link within the page is a footnote."""
    href = element.attributes.get("href")
    return bool(href) and not (str(href).startswith("#") and element.end - element.start <= _FOOTNOTE)


def _count_prose(elements: list[Element], lines: list[_Line]) -> None:
    """Count the letters of prose in each element. A line's prose is spread evenly over its characters."""
    ends = [line.end for line in lines]
    at = 0
    line = lines[0]
    for element in elements:
        start, end = element.start, element.end
        while line.end < start:
            at += 1
            line = lines[at]
        if start < end and end > line.start:
            last = line if end <= line.end else lines[bisect_left(ends, end)]
            prose = last.up_to(end) - line.up_to(start)
            if prose > 0.0:
                element.prose = prose


def _lines(text: str, links: list[tuple[int, int]], factor: float) -> list[_Line]:
    """Return the lines with prose, and what follows them as a line without any."""
    found: list[_Line] = []
    linked_before = _LinkCount(links).before
    start, written = 0, 0.0
    for line in text.split("\n"):
        width = len(line)
        end = start + width
        if width * factor >= _PROSE:
            linked = linked_before(start)
            weight = _weight(line, width, width - (linked_before(end) - linked), factor)
            if weight:
                found.append(_Line(start, end, written, written + weight))
                written += weight
        start = end + 1
    # Nothing ends after it, and nothing in it is prose.
    found.append(_Line(start, start, written, written))
    return found


def _weight(line: str, width: int, plain: int, factor: float) -> float:
    """Letters of prose in a line: none, unless it is long and reads like a sentence."""
    letters = plain * factor
    if letters < _PROSE or plain < 0.4 * width:
        return 0.0
    if letters >= _LONG_PROSE or _SENTENCE_END.search(line) or _COMMA.search(line):
        return letters
    return 0.3 * letters


class _LinkCount:
    """Counts the characters of links before positions, which only grow."""

    def __init__(self, links: list[tuple[int, int]]) -> None:
        self._left = links[::-1]
        self._ended = self._start = self._end = 0

    def before(self, position: int) -> int:
        left = self._left
        while left and left[-1][0] <= position:
            self._ended += self._end - self._start
            self._start, self._end = left.pop()
        return self._ended + min(position, self._end) - self._start
