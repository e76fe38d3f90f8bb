"""Walks over what a page says, in document order. `text.py` and `markdown.py` are built on it.

The walk has no recursion: pages may be nested deeply. It leaves out what no reader sees (`visibility.py`), and visits
content that scripts only move to a placeholder at its placeholder (`streamed.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from curtsy.core.text_layout import Visibility

UNSEEN = frozenset(
    ("script", "style", "noscript", "template", "head", "iframe", "object", "canvas", "svg", "math", "datalist",
     "audio", "video", "select", "textarea", "noframes", "noembed", "title", "rp", "-comment", "-doctype")
)  # fmt: skip
BLOCKS = frozenset(
    ("address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog", "dir",
     "div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6",
     "header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "option", "p", "pre",
     "search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul", "xmp")
)  # fmt: skip
CELLS = frozenset(("td", "th"))
PRE = frozenset(("pre", "listing", "xmp"))

#: further elements of many pages
_OTHERS = frozenset(
    ("a", "abbr", "acronym", "b", "bdi", "bdo", "big", "button", "cite", "code", "col", "colgroup", "del", "dfn", "em",
     "font", "i", "img", "input", "ins", "kbd", "label", "link", "map", "mark", "meta", "nobr", "picture", "q", "ruby",
     "rt", "s", "samp", "small", "source", "span", "strike", "strong", "sub", "sup", "td", "th", "time", "tt", "u",
     "var", "wbr", "-text")
)  # fmt: skip
#: the tags above by themselves, and by the numbers that the parser gives them: one string for each
_NAMES = {name: name for name in BLOCKS | UNSEEN | _OTHERS}
_tags: dict[int, str] = {}

#: (node, its tag, True on the way in and False on the way out); text nodes only on the way in. Around an element
#: that is not simply visible, there is a step with the value of its visibility as tag: `-collapsed`
Step = tuple[LexborNode, str, bool]
#: visibility -> the tag of its step. `-visible` ends what the parent began: a `summary` in closed `details`
MARKS = {
    Visibility.COLLAPSED: "-collapsed",
    Visibility.SCREEN_READER: "-screen_reader",
    Visibility.VISIBLE: "-visible",
}


class Placement(NamedTuple):
    """Streamed content that replaces a placeholder: its parent element, and the last node that it replaces."""

    content: LexborNode
    last: LexborNode


@dataclass(frozen=True, slots=True)
class PageTree:
    """A tree, and the visibility of its elements by their `mem_id`; elements that are not listed are visible."""

    root: LexborNode | None
    visibility: Mapping[int, Visibility] = field(default_factory=dict)
    placements: Mapping[int, Placement] = field(default_factory=dict)


class _Return(NamedTuple):
    """Where the walk continues after streamed content."""

    node: LexborNode
    open_elements: list[tuple[LexborNode, str]]
    marks: list[tuple[int, LexborNode, str]]


def walk(tree: PageTree, root: LexborNode | None = None) -> Iterator[Step]:
    """Yield everything that a reader may see of the page, or of one element of it."""
    node = root if root is not None else tree.root
    visibility = tree.visibility
    tag_of = _tags.get
    #: elements whose children are being visited, with their tags: read once, each of them costs a call
    open_: list[tuple[LexborNode, str]] = []
    #: depth, element and tag of open marks
    marks: list[tuple[int, LexborNode, str]] = []
    returns: list[_Return] = []
    placed: set[int] = set()
    while node is not None:
        tag = tag_of(node.tag_id) or _read_tag(node)
        if tag == "-text":
            yield node, tag, True
        elif tag in UNSEEN:
            if tag == "template" and (place := _placement(tree, node, placed)) is not None:
                child = place.content.first_child
                if child is not None:
                    returns.append(_Return(place.last, open_, marks))
                    node, open_, marks = child, [(place.content, "")], []
                    continue
                node = place.last
        elif visibility and (state := visibility.get(node.mem_id)) is not None:
            if state is not Visibility.HIDDEN:
                yield node, MARKS[state], True
                yield node, tag, True
                child = node.first_child
                if child is not None:
                    marks.append((len(open_), node, MARKS[state]))
                    open_.append((node, tag))
                    node = child
                    continue
                yield node, tag, False
                yield node, MARKS[state], False
        else:
            yield node, tag, True
            child = node.first_child
            if child is not None:
                open_.append((node, tag))
                node = child
                continue
            yield node, tag, False
        while True:
            while open_ and (following := node.next) is None:
                node, tag = open_.pop()
                if open_ or not returns:
                    yield node, tag, False
                if marks and marks[-1][0] == len(open_):
                    yield marks[-1][1], marks.pop()[2], False
            if open_ or not returns:
                break
            node, open_, marks = returns.pop()
        if not open_:
            return
        node = following


def _read_tag(node: LexborNode) -> str:
    """Return the tag of a node; a known one is remembered, because reading it makes a string each time."""
    tag = node.tag or ""
    if (known := _NAMES.get(tag)) is None:
        return tag
    _tags[node.tag_id] = known
    return known


def _placement(tree: PageTree, node: LexborNode, placed: set[int]) -> Placement | None:
    """Return the content of a placeholder, if it was not visited yet."""
    place = tree.placements.get(node.mem_id) if tree.placements else None
    if place is None or place.content.mem_id in placed:
        return None
    placed.add(place.content.mem_id)
    return place
