"""Evaluate CSS and XPath on a page, in bounded time.

CSS that examines one element, its parents and neighbors by name takes time linear in the page, and is evaluated here.
Anything else can take hours on a hostile page, and no engine can be interrupted. It runs in a process of its own
(`selector_process`), which the kernel kills after one second of CPU time per page. After that, such selectors find
nothing more on the page.
"""

from __future__ import annotations

import atexit
import itertools
import json
import re
import threading
from typing import IO

from curtsy.content.document import Document
from curtsy.core.child_process import ChildProcess
from curtsy.core.observe import count
from curtsy.extract.selector_process import Element, css_elements
from curtsy.grounding.schema_hints import Selector

#: a longer evaluation means that the process was stopped or the machine suspended
_MAX_WAIT_S = 120.0
_ATTRIBUTE = re.compile(r"\[[^\]]*+\]?+")
#: a step to any ancestor or sibling, and everything that counts elements or examines others
_HEAVY = re.compile(r"[~(:]|[^\s>+,]\s+[^\s>+,]")


class Elements:
    """The elements of one page."""

    def __init__(self, document: Document) -> None:
        self._document = document
        self._number = next(_numbers)
        #: the process was killed while it evaluated this page
        self.exhausted = False

    def texts(self, selector: Selector) -> list[str]:
        """Return the texts, or one attribute, of the matching elements, in order; empty if it took too long."""
        return [one.text for one in self.found(selector) if one.text]

    def found(self, selector: Selector, *, in_process: bool = False) -> list[Element]:
        """Return the matching elements in order, also those without text; nothing if it took too long.

        Chains are comparable among CSS evaluated here, among CSS evaluated in the process, and among XPath.
        `in_process` sends CSS that could be evaluated here to the process, so that it is comparable with CSS that
        cannot.
        """
        light = selector.css is not None and is_light(selector.css)
        if light and (self.exhausted or not in_process):
            return list(css_elements(self._document.tree, selector.css or "", selector.attribute))
        if self.exhausted:
            return []
        request: dict[str, str | None] = {"attribute": selector.attribute}
        request |= {"css": selector.css} if selector.css is not None else {"xpath": selector.xpath}
        found = self._asked(request)
        if found is None:
            self.exhausted = True
            count("selector_stopped")
        return found or []

    def _asked(self, request: dict[str, str | None]) -> list[Element] | None:
        with _lock:
            sent = _child.start(), self._number
            if sent != _sent.get("last"):
                request["html"] = self._document.tree.html or ""
                _sent["last"] = sent
            found = _child.ask(json.dumps(request).encode() + b"\n", b"", _MAX_WAIT_S, _answer)
            if found is None:
                _child.end()
            return found


def is_light(css: str) -> bool:
    """Return whether a CSS selector takes time linear in the page.

    >>> is_light('main > a[href^="mailto:"], h1'), is_light("main a"), is_light("a:first-child")
    (True, False, False)
    """
    return _HEAVY.search(_ATTRIBUTE.sub("[]", css.strip())) is None


_lock = threading.Lock()
_numbers = itertools.count()
#: the process and the number of the page that was sent last
_sent: dict[str, tuple[int, int]] = {}
_child = ChildProcess("curtsy.extract.selector_process", grace_s=0)


def _answer(taken: IO[bytes]) -> list[Element] | None:
    line = taken.readline()
    return [Element(text, tuple(chain)) for text, chain in json.loads(line)] if line.endswith(b"\n") else None


@atexit.register
def close() -> None:
    """End the process, if one was started."""
    _child.end()
