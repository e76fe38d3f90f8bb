"""A process that evaluates CSS and XPath, so that it can be killed when an expression does not end on a hostile page.

Each input line is a request, `{"html"?, "css" | "xpath", "attribute"}`; each output line is the list of elements found,
`[text, chain]` each. `html` is sent once per page. All requests for a page share one second of CPU time; then the
kernel kills the process. It also ends when its input closes. Started by `elements`.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from lxml import etree
from selectolax.lexbor import LexborHTMLParser, LexborNode

from curtsy.content import text as prose

PAGE_SECONDS = 1.0
_MEMORY_BYTES = 2 << 30
MAX_FOUND = 200
MAX_TEXT = 4_000
#: of a chain; real pages are not this deep
MAX_DEPTH = 256


class Element(NamedTuple):
    """An element that a selector found: its text or attribute, and its position."""

    text: str
    #: numbers of the element and its ancestors, inner first; equal numbers mean the same element in all chains of one
    #: engine and page; empty: it is deeper than MAX_DEPTH, or not part of the page
    chain: tuple[int, ...]


class Page:
    """A page for both engines, parsed on first use."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._lexbor: LexborHTMLParser | None = None
        self._lxml: Any = None
        #: of lxml's elements; held here, because lxml recreates objects that are not referenced
        self._numbers: dict[Any, int] = {}

    def css(self, expression: str, attribute: str | None) -> Iterator[Element]:
        if self._lexbor is None:
            self._lexbor = LexborHTMLParser(self._html)
        return css_elements(self._lexbor, expression, attribute)

    def xpath(self, expression: str, attribute: str | None) -> Iterator[Element]:
        if self._lxml is None:
            parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
            self._lxml = etree.fromstring(self._html.encode("utf-8", "replace") or b"<p>", parser)
        found = etree.XPath(expression)(self._lxml)
        for node in found[:MAX_FOUND] if isinstance(found, list) else [found]:
            if isinstance(node, etree._Element):
                text = (node.get(attribute) or "") if attribute else "".join(node.itertext())
                yield Element(_clean(text), self._chain(node))
            else:  # an attribute or a text, which know their element, or a number
                yield Element(_clean(str(node)), self._chain(node.getparent() if hasattr(node, "getparent") else None))

    def _chain(self, node: Any) -> tuple[int, ...]:
        chain: list[int] = []
        while node is not None:
            if len(chain) == MAX_DEPTH:
                return ()
            chain.append(self._numbers.setdefault(node, len(self._numbers)))
            node = node.getparent()
        return tuple(chain)


def css_elements(tree: LexborHTMLParser, expression: str, attribute: str | None) -> Iterator[Element]:
    """Yield the elements that a CSS selector matches, in order, at most 200."""
    root = tree.root
    for node in [] if root is None else root.css(expression)[:MAX_FOUND]:
        if attribute:
            text = node.attributes.get(attribute.lower()) or ""
        else:
            # A title is not visible text, so `prose` omits it.
            text = node.text() if node.tag == "title" else prose.text(node, MAX_TEXT)
        yield Element(_clean(text), _css_chain(node))


def _css_chain(node: LexborNode | None) -> tuple[int, ...]:
    chain: list[int] = []
    while node is not None:
        if len(chain) == MAX_DEPTH:
            return ()
        chain.append(node.mem_id)
        node = node.parent
    return tuple(chain)


def _clean(text: str) -> str:
    """Collapse spaces within lines and limit the length."""
    lines = text[: MAX_TEXT * 4].splitlines()
    return "\n".join(" ".join(line.split()) for line in lines).strip()[:MAX_TEXT]


def _found(page: Page, request: dict[str, Any]) -> list[Element]:
    try:
        if "css" in request:
            return list(page.css(request["css"], request["attribute"]))
        return list(page.xpath(request["xpath"], request["attribute"]))
    except Exception:  # lxml cannot parse the page, or the expression is invalid: nothing is found
        return []


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent process ends it
    page, left = Page(""), PAGE_SECONDS
    for line in sys.stdin:
        request = json.loads(line)
        if "html" in request:
            page, left = Page(request["html"]), PAGE_SECONDS
        signal.setitimer(signal.ITIMER_VIRTUAL, max(left, 0.001))
        found = _found(page, request)
        left = signal.setitimer(signal.ITIMER_VIRTUAL, 0)[0]
        sys.stdout.write(json.dumps(found) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
