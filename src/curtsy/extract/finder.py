"""A process that evaluates CSS and XPath, so that an expression that does not end on a hostile page ends with it.

Each line of its input is a request, `{"html"?, "css" | "xpath", "attribute"}`; each line of its output is the list of
texts that were found. `html` is sent once for each page, which may take a second of this process's time for all
requests; after that the kernel ends the process. It also ends with its input. Run by `elements`.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from curtsy import prose

PAGE_SECONDS = 1.0
_MEMORY_BYTES = 2 << 30
MAX_FOUND = 200
MAX_TEXT = 4_000


class Page:
    """A page as both engines see it, parsed when first asked for."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._lexbor: LexborHTMLParser | None = None
        self._lxml: Any = None

    def css(self, expression: str, attribute: str | None) -> Iterator[str]:
        if self._lexbor is None:
            self._lexbor = LexborHTMLParser(self._html)
        return css_texts(self._lexbor, expression, attribute)

    def xpath(self, expression: str, attribute: str | None) -> Iterator[str]:
        from lxml import etree  # few need it

        if self._lxml is None:
            parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
            self._lxml = etree.fromstring(self._html.encode("utf-8", "replace") or b"<p>", parser)
        found = etree.XPath(expression)(self._lxml)
        for node in found[:MAX_FOUND] if isinstance(found, list) else [found]:
            if isinstance(node, etree._Element):
                yield (node.get(attribute) or "") if attribute else "".join(node.itertext())
            else:
                yield str(node)


def css_texts(tree: LexborHTMLParser, expression: str, attribute: str | None) -> Iterator[str]:
    """The texts, or one attribute, of the elements that a CSS selector finds."""
    root = tree.root
    for node in [] if root is None else root.css(expression)[:MAX_FOUND]:
        if attribute:
            yield node.attributes.get(attribute.lower()) or ""
        else:
            # A title is no part of what a reader sees, so `prose` leaves it out.
            yield node.text() if node.tag == "title" else prose.text(node, MAX_TEXT)


def cleaned(texts: Iterable[str]) -> list[str]:
    """Blanks collapsed within lines, nothing empty, nothing too long."""
    lines = ("\n".join(" ".join(line.split()) for line in text[: MAX_TEXT * 4].splitlines()) for text in texts)
    return [text for text in (line.strip()[:MAX_TEXT] for line in lines) if text]


def _found(page: Page, request: dict[str, Any]) -> list[str]:
    try:
        if "css" in request:
            return cleaned(page.css(request["css"], request["attribute"]))
        return cleaned(page.xpath(request["xpath"], request["attribute"]))
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
