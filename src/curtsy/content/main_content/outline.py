"""The elements of a page with their parts of the visible text, and what is counted of each.

Everything is counted once, in one pass from the leaves to the root, so that the time is linear in the page.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Container, Mapping
from dataclasses import dataclass, field

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
#: characters of a footnote's mark
_FOOTNOTE = 5


class _Every(Container[str]):
    """All tags but the marks of visibility."""

    def __contains__(self, tag: object) -> bool:
        return str(tag)[:1] != "-"


@dataclass(slots=True)
class Element:
    """An element that a reader sees, with the counts of everything within it."""

    node: LexborNode
    tag: str
    start: int
    end: int
    parent: int
    attributes: Mapping[str, str | None]
    part: Part
    #: after the last element within it
    last: int = 0
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
    def names(self) -> str:
        return names_of(self.attributes)

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


def names_of(attributes: Mapping[str, str | None]) -> str:
    return f"{attributes.get('class') or ''} {attributes.get('id') or ''}"


def outline(tree: PageTree) -> Outline:
    visible = prose.read(tree, spans_of=_Every())
    elements = _elements(visible)
    if elements:
        _count(elements, visible.text)
    return Outline(visible, elements)


def _elements(visible: VisibleText) -> list[Element]:
    """Spans come in the order of their ends; read backwards, parents come before children, the last child first."""
    spans = visible.spans
    total = len(spans)
    found: list[Element] = []
    path: list[int] = []
    for span in reversed(spans):
        del path[span.depth :]
        attributes = span.node.attributes
        names = names_of(attributes)
        part = part_of(names) if len(names) > 1 else Part.UNKNOWN
        above = path[-1] if path else -1
        found.append(Element(span.node, span.node.tag or "", span.start, span.end, above, attributes, part))
        path.append(len(found) - 1)
    return _in_document_order(found, total)


def _in_document_order(found: list[Element], total: int) -> list[Element]:
    """Renumber the elements: parents first, then children from the first to the last."""
    for number, element in enumerate(found):
        if element.parent >= 0:
            found[element.parent].children.append(number)
    ordered: list[Element] = []
    open_: list[tuple[int, int]] = [(0, -1)] if total else []
    while open_:
        number, parent = open_.pop()
        element = found[number]
        element.parent = parent
        here = len(ordered)
        ordered.append(element)
        # `children` has the last child first, which is what a stack needs.
        open_.extend((child, here) for child in element.children)
    for element in ordered:
        element.children = []
    for number in range(len(ordered) - 1, -1, -1):
        element = ordered[number]
        element.last = max(element.last, number + 1)
        if element.parent >= 0:
            above = ordered[element.parent]
            above.last = max(above.last, element.last)
            above.children.append(number)
    for element in ordered:
        element.children.reverse()
        for position, child in enumerate(element.children):
            ordered[child].position = position
    return ordered


_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))


def _count(elements: list[Element], text: str) -> None:
    lines = _Lines(text, elements)
    for element in elements:
        element.letters = lines.letters(element.start, element.end)
        element.linked = lines.linked(element.start, element.end)
        element.prose = lines.prose(element.start, element.end)
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

    def letters(self, start: int, end: int) -> float:
        return (end - start) * self._factor

    def linked(self, start: int, end: int) -> float:
        return (self._links_to(end) - self._links_to(start)) * self._factor

    def prose(self, start: int, end: int) -> float:
        return max(0.0, self._prose_to(end) - self._prose_to(start))

    def _prose_to(self, position: int) -> float:
        at = bisect_right(self._starts, position) - 1
        part = min(1.0, (position - self._starts[at]) / (self._widths[at] or 1))
        return self._sums[at] + part * (self._sums[at + 1] - self._sums[at])


def _is_link(element: Element) -> bool:
    """An anchor without an address is a target; a short link within the page is a footnote."""
    href = element.attributes.get("href")
    return bool(href) and not (str(href).startswith("#") and element.end - element.start <= _FOOTNOTE)
