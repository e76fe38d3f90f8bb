"""The elements of a page with their parts of the visible text, and what is counted of each.

Everything is counted once, in one pass from the leaves to the root, so that the time is linear in the page.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence

from selectolax.lexbor import LexborNode

from curtsy.content.main_content.names import Part, part_of
from curtsy.content.text import Place, read_whole
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
#: members of an enumeration are slow to look up
_UNKNOWN = Part.UNKNOWN


class Element(Place):
    """An element that a reader sees, with the counts of everything within it."""

    __slots__ = (
        *("attributes", "children", "headings", "images", "letters", "linked", "links", "names", "part", "position"),
        "prose",
    )

    def __init__(self, node: LexborNode, tag: str, start: int, parent: int, first: int) -> None:
        self.node = node
        self.tag = tag
        self.start = self.end = start
        self.parent = parent
        self.first = self.last = first
        self.stop = 0
        self.attributes: Mapping[str, str | None] = node.attributes
        #: its class and id
        self.names = names_of(tag, self.attributes) if self.attributes else ""
        self.part = part_of(self.names) if len(self.names) > 1 else _UNKNOWN
        #: letters; those of links; those of prose: lines that read like sentences and are not links
        self.letters = self.linked = self.prose = 0.0
        self.links = self.headings = self.images = 0
        #: among the children of its parent
        self.position = 0
        self.children: Sequence[int] = ()

    @property
    def link_density(self) -> float:
        return self.linked / self.letters if self.letters else 0.0


class Outline:
    """Elements in document order; the first is the root."""

    def __init__(self, tree: PageTree) -> None:
        whole = read_whole(tree, Element)
        self.visible = whole.visible
        self.text = whole.visible.text
        self.elements = whole.places
        #: the walk over the page, and the elements that are only for screen readers
        self.steps = whole.steps
        self.unheard = whole.unheard
        self._is_counted = False

    def count(self) -> None:
        """Fill in the counts and the children of all elements, once."""
        if self.elements and not self._is_counted:
            _relate(self.elements)
            _count(self.elements, self.text)
        self._is_counted = True


def names_of(tag: str, attributes: Mapping[str, str | None]) -> str:
    """Return the class and the id. The id of a heading is the address of its section, made from its words."""
    class_ = attributes.get("class") or ""
    return class_ if tag in _HEADINGS else f"{class_} {attributes.get('id') or ''}"


def _relate(elements: list[Element]) -> None:
    children: dict[int, list[int]] = {}
    for number, element in enumerate(elements):
        above = element.parent
        siblings = children.get(above)
        if siblings is None:
            children[above] = [number]
        else:
            element.position = len(siblings)
            siblings.append(number)
    del children[-1]
    for number, found in children.items():
        elements[number].children = found


def _count(elements: list[Element], text: str) -> None:
    _Lines(text, elements).count(elements)
    for element in reversed(elements):
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


class _Lines:
    """Sums over the text up to a position: letters, letters of links, letters of prose."""

    def __init__(self, text: str, elements: list[Element]) -> None:
        self._dense = len(_DENSE_CHARS.findall(text)) > 0.3 * len(text)
        self._factor = _DENSE if self._dense else 1.0
        self._starts: list[int] = []
        self._widths: list[int] = []
        self._sums: list[float] = [0.0]
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
        total = 0.0
        least = _PROSE / self._factor
        starts, widths, sums = self._starts, self._widths, self._sums
        for line in text.split("\n"):
            width = len(line)
            starts.append(at)
            widths.append(width)
            if width >= least:
                plain = width - (self._links_to(at + width) - self._links_to(at))
                total += self._weight(line, width, plain)
            sums.append(total)
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

    def count(self, elements: list[Element]) -> None:
        """Fill in the letters of each element, those of its links, and those of its prose."""
        factor = self._factor
        known: dict[int, tuple[int, float]] = {}
        for element in elements:
            start, end = element.start, element.end
            if end > start:
                # Elements share positions.
                first = known.get(start)
                if first is None:
                    first = known[start] = (self._links_to(start), self._prose_to(start))
                last = known.get(end)
                if last is None:
                    last = known[end] = (self._links_to(end), self._prose_to(end))
                element.letters = (end - start) * factor
                element.linked = (last[0] - first[0]) * factor
                prose = last[1] - first[1]
                if prose > 0.0:
                    element.prose = prose

    def _prose_to(self, position: int) -> float:
        at = bisect_right(self._starts, position) - 1
        before, after = self._sums[at], self._sums[at + 1]
        if before == after:
            return before
        part = min(1.0, (position - self._starts[at]) / (self._widths[at] or 1))
        return before + part * (after - before)


def _is_link(element: Element) -> bool:
    """An anchor without an address is a target; a short link within the page is a footnote."""
    href = element.attributes.get("href")
    return bool(href) and not (str(href).startswith("#") and element.end - element.start <= _FOOTNOTE)
