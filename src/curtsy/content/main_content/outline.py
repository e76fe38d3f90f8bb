"""The elements of a page with their parts of the visible text, and what is counted of each.

Everything is counted once, in one pass from the leaves to the root, so that the time is linear in the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.main_content.names import Part, part_of
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
        if attributes:
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
    """Return the class and the id. The id of a heading is the address of its section, made from its words."""
    class_ = attributes.get("class") or ""
    return class_ if tag in _HEADINGS else f"{class_} {attributes.get('id') or ''}"


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
        above = self._open[-1]
        element = Element(node, tag, at, above, node.attributes)
        number = len(self.elements)
        if above >= 0:
            siblings = self.elements[above].children
            element.position = len(siblings)
            siblings.append(number)
        self.elements.append(element)
        self._open.append(number)

    def leave(self, at: int) -> None:
        element = self.elements[self._open.pop()]
        element.end = at
        element.stop = len(self.elements)
        if element.tag == "a":
            element.links = 1
        elif element.tag in _HEADINGS:
            element.headings += 1
        elif element.tag == "img":
            element.images = 1
        if element.parent >= 0 and (element.links or element.headings or element.images):
            above = self.elements[element.parent]
            above.links += element.links
            above.headings += element.headings
            above.images += element.images


def _count(elements: list[Element], text: str) -> None:
    for element in elements:
        if element.start < element.end and text[element.start].isspace():
            element.start += 1  # the separator before it
    factor = _DENSE if _is_dense(text) else 1.0
    full = [element for element in elements if element.end > element.start]
    linked, written = _sums(full, text, factor)
    for element in full:
        start, end = element.start, element.end
        element.letters = (end - start) * factor
        element.linked = (linked[end] - linked[start]) * factor
        prose = written[end] - written[start]
        if prose > 0.0:
            element.prose = prose


def _is_dense(text: str) -> bool:
    return not text.isascii() and len(_DENSE_CHARS.findall(text)) > 0.3 * len(text)


def _links(full: list[Element]) -> list[tuple[int, int]]:
    """Return where the outermost links begin and end."""
    found: list[tuple[int, int]] = []
    end = 0
    for element in full:
        if element.tag == "a" and element.start >= end and _is_link(element):
            end = element.end
            found.append((element.start, end))
    return found


def _is_link(element: Element) -> bool:
    """An anchor without an address is a target; a short link within the page is a footnote."""
    href = element.attributes.get("href")
    return bool(href) and not (str(href).startswith("#") and element.end - element.start <= _FOOTNOTE)


def _sums(full: list[Element], text: str, factor: float) -> tuple[dict[int, int], dict[int, float]]:
    """Return the characters of links, and the letters of prose, before the positions where elements begin and end."""
    # Elements share positions, and sorted positions need no search for their line and link.
    positions = {element.start for element in full}
    positions.update([element.end for element in full])
    links = _links(full)
    linked: dict[int, int] = {}
    written: dict[int, float] = {}
    linked_before = _LinkCount(links).before
    lines = _lines(text, links, factor)
    start, end, before, after = next(lines)
    for position in sorted(positions):
        while position > end:
            start, end, before, after = next(lines)
        linked[position] = linked_before(position)
        if after == before:
            written[position] = before
        else:
            written[position] = before + min(1.0, (position - start) / (end - start)) * (after - before)
    return linked, written


def _lines(text: str, links: list[tuple[int, int]], factor: float) -> Iterator[tuple[int, int, float, float]]:
    """Yield where each line begins and ends, and the letters of prose before it and up to its end."""
    linked_before = _LinkCount(links).before
    start, after = 0, 0.0
    for line in text.split("\n"):
        before, width = after, len(line)
        end = start + width
        if width * factor >= _PROSE:
            linked = linked_before(start)
            plain = width - (linked_before(end) - linked)
            after += _weight(line, width, plain, factor)
        yield start, end, before, after
        start = end + 1


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
