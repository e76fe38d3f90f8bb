"""The elements of a page with their parts of the visible text, and what is counted of each.

Everything is counted once, in one pass from the leaves to the root, so that the time is linear in the page.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from curtsy.content import text as prose
from curtsy.content.main_content.names import Part, of_type, part_of
from curtsy.content.text import VisibleText
from curtsy.content.walk import MARKS, PageTree, Step, walk

#: scripts that need few characters for much text: a character counts as this many letters
_DENSE = 2.2
_DENSE_CHARS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SENTENCE_END = re.compile(r"[.!?…。！？؟।॥።։]['\"”’»)\]）」』]{0,2}(?=\s|$)|[。！？।]")
_COMMA = re.compile(r"[,،、，;；]")
#: letters of a line that is probably prose, with and without the marks of a sentence
_PROSE = 50
_LONG_PROSE = 100
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_COUNTED = _HEADINGS | {"a", "img"}
#: steps of a walk around elements that are not simply visible
_NO_ELEMENTS = frozenset(MARKS.values())
#: of all elements without children: most have none
_NO_CHILDREN: list[int] = []
#: characters of a footnote's mark
_FOOTNOTE = 5


class Element:
    """An element that a reader sees, with the counts of everything within it."""

    # A page has hundreds of them: a plain class takes half the time of a dataclass to make.
    __slots__ = (
        "attributes", "children", "end", "headings", "images", "last_step", "letters", "linked", "links", "names",
        "node", "parent", "part", "position", "prose", "start", "step", "stop", "tag",
    )  # fmt: skip

    def __init__(
        self, node: LexborNode, tag: str, start: int, parent: int, attributes: Mapping[str, str | None], step: int
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
        self.children: list[int] = _NO_CHILDREN
        #: its first and last steps of the walk
        self.step = self.last_step = step

    @property
    def link_density(self) -> float:
        return self.linked / self.letters if self.letters else 0.0


@dataclass(frozen=True, slots=True)
class Outline:
    """Elements in document order; the first is the root."""

    visible: VisibleText
    elements: list[Element]
    #: numbers of elements by their tags, in document order
    tags: Mapping[str, list[int]]
    #: and by their names: there are far fewer different names than elements
    names: Mapping[str, list[int]]
    #: numbers of elements with a role
    roles: list[int]
    #: what a walk over the page sees; `Element.step` refers to it
    steps: list[Step]

    @property
    def text(self) -> str:
        return self.visible.text

    def tagged(self, *tags: str) -> list[int]:
        """Return the numbers of the elements with these tags, in document order."""
        found = [number for tag in tags for number in self.tags.get(tag, ())]
        if len(tags) > 1:
            found.sort()
        return found

    def named(self, is_wanted: Callable[[str], bool]) -> list[int]:
        """Return the numbers of the elements with such names, in document order."""
        return sorted(number for names, numbers in self.names.items() if is_wanted(names) for number in numbers)

    def outside(self, numbers: Iterable[int], out: set[int]) -> Iterator[int]:
        """Yield those of the ordered numbers that are not within elements that are left out."""
        ends = sorted(out, reverse=True)
        stop = 0
        for number in numbers:
            while ends and ends[-1] <= number:
                stop = max(stop, self.elements[ends.pop()].stop)
            if number >= stop:
                yield number


def names_of(tag: str, attributes: Mapping[str, str | None]) -> str:
    """Return the class, the id and the name of a declared part. The id of a heading is the address of its section."""
    class_ = attributes.get("class") or ""
    said = class_ if tag in _HEADINGS else f"{class_} {attributes.get('id') or ''}"
    if "itemtype" in attributes or "typeof" in attributes:
        return f"{said} {of_type(attributes.get('itemtype') or attributes.get('typeof') or '')}"
    return said


def outline(tree: PageTree) -> Outline:
    steps = list(walk(tree))
    visible, positions = prose.read_steps(steps)
    found = _Elements(visible.text)
    found.read(steps, positions)
    elements = found.elements
    if elements:
        _count_prose(elements, _lines(visible.text, found.links, found.factor))
    return Outline(visible, elements, found.tags, found.names, found.roles, steps)


class _Elements:
    """Gathers the elements in document order, with what is counted of each but its prose."""

    def __init__(self, text: str) -> None:
        self.elements: list[Element] = []
        self.tags: defaultdict[str, list[int]] = defaultdict(list)
        self.names: defaultdict[str, list[int]] = defaultdict(list)
        self.roles: list[int] = []
        #: where the outermost links begin and end
        self.links: list[tuple[int, int]] = []
        #: letters of a character
        self.factor = _DENSE if _is_dense(text) else 1.0
        self._text = text

    def read(self, steps: list[Step], positions: list[int]) -> None:
        elements, tags, names, roles = self.elements, self.tags, self.names, self.roles
        text, factor = self._text, self.factor
        #: the parents of the open elements, their numbers, and the characters of outermost links before their children
        open_: list[tuple[Element | None, int, int]] = []
        element: Element | None = None
        number, linked = -1, 0
        for step, (node, tag, entering) in enumerate(steps):
            if tag == "-text" or tag in _NO_ELEMENTS:
                continue
            if entering:
                open_.append((element, number, linked))
                above, parent = element, number
                number = len(elements)
                attributes = node.attributes
                element = Element(node, tag, positions[step], parent, attributes, step)
                if above is not None:
                    if above.children:
                        element.position = len(above.children)
                        above.children.append(number)
                    else:
                        above.children = [number]
                elements.append(element)
                tags[tag].append(number)
                if element.names:
                    names[element.names].append(number)
                if "role" in attributes:
                    roles.append(number)
                continue
            assert element is not None
            start, end = element.start, positions[step]
            if start < end:
                if text[start].isspace():
                    element.start = start = start + 1  # the separator before it
                element.letters = (end - start) * factor
            element.end = end
            element.stop = len(elements)
            element.last_step = step
            above, parent, linked_before = open_.pop()
            if tag in _COUNTED:
                if tag == "a":
                    element.links = 1
                    if start < end and _is_link(element):
                        linked = linked_before + end - start
                        self._add_link(element, number)
                elif tag == "img":
                    element.images = 1
                else:
                    element.headings += 1
            if linked != linked_before:
                element.linked = (linked - linked_before) * factor
            if above is not None and (element.links or element.headings or element.images):
                above.links += element.links
                above.headings += element.headings
                above.images += element.images
            element, number = above, parent

    def _add_link(self, link: Element, number: int) -> None:
        """All letters in a link are those of a link; links in it do not count."""
        while self.links and self.links[-1][0] >= link.start:
            self.links.pop()
        self.links.append((link.start, link.end))
        for inner in self.elements[number + 1 :]:
            inner.linked = inner.letters


def _is_dense(text: str) -> bool:
    return not text.isascii() and len(_DENSE_CHARS.findall(text)) > 0.3 * len(text)


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
