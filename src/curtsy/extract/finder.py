"""A process that evaluates CSS and XPath, so that an expression that does not end on a hostile page ends with it.

Each line of its input is a request, `{"html"?, "css" | "xpath", "attribute"}`; each line of its output is the list of
elements that were found, `[text, chain]` each. `html` is sent once for each page, which may take a second of this
process's time for all requests; after that the kernel ends the process. It also ends with its input. Run by `elements`.
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

from curtsy.html import text as prose

PAGE_SECONDS = 1.0
_MEMORY_BYTES = 2 << 30
MAX_FOUND = 200
MAX_TEXT = 4_000
#: of a chain; nobody writes pages so deep
MAX_DEPTH = 256


class Element(NamedTuple):
    """What a selector found: its text, or its attribute, and where it stands."""

    text: str
    #: the element itself and all that hold it, inner first, by numbers that mean the same in all chains of one engine
    #: and page; empty: it is deeper than MAX_DEPTH, or no part of the page
    chain: tuple[int, ...]


class Page:
    """A page as both engines see it, parsed when first asked for."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._lexbor: LexborHTMLParser | None = None
        self._lxml: Any = None
        #: of lxml's elements; they are the same objects only as long as they are held
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
            else:  # an attribute, a text, which know their element, or a number
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
    """The elements that a CSS selector finds, in order, 200 at most."""
    root = tree.root
    for node in [] if root is None else root.css(expression)[:MAX_FOUND]:
        if attribute:
            text = node.attributes.get(attribute.lower()) or ""
        else:
            # A title is no part of what a reader sees, so `prose` leaves it out.
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
    """Blanks collapsed within lines, nothing too long."""
    lines = text[: MAX_TEXT * 4].splitlines()
    return "\n".join(" ".join(line.split()) for line in lines).strip()[:MAX_TEXT]


def _found(page: Page, request: dict[str, Any]) -> list[Element]:
    try:
        if "css" in request:
            return list(page.css(request["css"], request["attribute"]))
        return list(page.xpath(request["xpath"], request["attribute"]))
    except Exception:  # a page that lxml cannot read, an expression that is none: nothing is found
        return []


def main() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started it ends it
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
