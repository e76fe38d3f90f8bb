"""Values of elements: their text, and the URLs in their attributes.

A value is None if the page has no bytes for it. An empty address is not the address of the page.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from selectolax.lexbor import LexborNode

from curtsy.rules.urls import parse

#: attributes of an element
Attributes = dict[str, str | None]

_MAX_ELEMENTS = 10_000
_MAX_TEXT = 20_000
#: characters and elements read for the texts of one page
_MAX_PAGE_TEXT = 2_000_000
_UNREAD = frozenset(("script", "style", "template", "noscript", "iframe", "noembed", "noframes", "-comment"))
_BREAKS = frozenset((
    "address", "article", "aside", "blockquote", "br", "caption", "dd", "details", "dialog", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup",
    "hr", "legend", "li", "main", "menu", "nav", "ol", "option", "p", "pre", "section", "summary", "table",
    "tbody", "td", "tfoot", "th", "thead", "tr", "ul",
))  # fmt: skip
_URL_ATTRIBUTES = {
    "a": "href",
    "area": "href",
    "link": "href",
    "img": "src",
    "audio": "src",
    "video": "src",
    "embed": "src",
    "iframe": "src",
    "source": "src",
    "track": "src",
    "object": "data",
}


def elements(root: LexborNode, css: str) -> list[tuple[LexborNode, Attributes]]:
    """Return the first elements that match, in document order."""
    # An element that matches two selectors of a list is found twice.
    nodes = {node.mem_id: node for node in root.css(css)[: _MAX_ELEMENTS * 2]}
    return [(node, node.attributes) for node in list(nodes.values())[:_MAX_ELEMENTS]]


def attribute(attributes: Attributes, name: str) -> str | None:
    """Return the attribute without blanks around it; None if nothing remains."""
    return (attributes.get(name) or "").strip() or None


def words(attributes: Attributes, name: str) -> list[str]:
    """Return the words of an attribute, each once."""
    return list(dict.fromkeys((attributes.get(name) or "").split()))


class Values:
    """Reads the values of one page, within a budget."""

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._left = _MAX_PAGE_TEXT
        #: texts of elements that have elements
        self._texts: dict[int, str] = {}

    def url(self, raw: str | None) -> str | None:
        """Return an absolute URL. `#` and scripts refer to nothing."""
        raw = (raw or "").strip()
        if not raw or raw == "#" or raw[:11].lower() == "javascript:":
            return None
        return parse(raw, self.base_url) or raw

    def address(self, tag: str | None, attributes: Attributes) -> str | None:
        """Return the URL in the attribute that an element has for it."""
        name = _URL_ATTRIBUTES.get(tag or "")
        if name is None:
            return None
        if tag == "img" and (attributes.get("src") or "").startswith("data:") and attributes.get("data-src"):
            name = "data-src"  # the image is loaded later; its address is there
        return self.url(attributes.get(name))

    def text(self, node: LexborNode) -> str | None:
        """Return the text in an element with blanks collapsed, hidden or not."""
        if self._left <= 0 or node.tag in _UNREAD:
            return None
        child = node.first_child
        if child is None:
            return None
        if child.tag == "-text" and child.next is None:
            content = child.text_content or ""
            self._left -= len(content) + 1
        else:
            content = self._known(node)
        return " ".join(content[:_MAX_TEXT].split()) or None

    def read_inner_first(self, nodes: Sequence[LexborNode]) -> None:
        """Read the texts of elements in document order: texts within texts are then read once."""
        for node in reversed(nodes):
            self.text(node)

    def _known(self, node: LexborNode) -> str:
        found = self._texts.get(node.mem_id)
        if found is None:
            found = self._texts[node.mem_id] = self._gathered(node)
        return found

    def _gathered(self, root: LexborNode) -> str:
        parts: list[str] = []
        node, depth, size, steps = cast(LexborNode, root.first_child), 1, 0, 0
        while size < _MAX_TEXT and steps < self._left:
            steps += 1
            tag = node.tag or ""
            if tag == "-text":
                content = node.text_content or ""
                parts.append(content)
                size += len(content)
            elif tag not in _UNREAD:
                if tag in _BREAKS:
                    parts.append(" ")
                known = self._texts.get(node.mem_id)
                child = node.first_child if known is None else None
                if child is not None:
                    node, depth = child, depth + 1
                    continue
                if known is not None:
                    parts.append(known)
                    size += len(known)
            while (following := node.next) is None:
                node, depth = cast(LexborNode, node.parent), depth - 1
                if not depth:
                    self._left -= size + steps
                    return "".join(parts)
                if node.tag in _BREAKS:
                    parts.append(" ")
            if node.tag in _BREAKS:
                parts.append(" ")
            node = following
        self._left -= size + steps
        return "".join(parts)
