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
import os
import re
import subprocess
import sys
import threading
from typing import IO, cast

from curtsy.content.document import Document
from curtsy.core.observe import count
from curtsy.extract.selector_process import Element, css_elements
from curtsy.grounding.schema_hints import Selector

#: a longer evaluation means that the process was stopped or the machine suspended
_MAX_WAIT_S = 120.0
_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "VIRTUAL_ENV")
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
            child = _child()
            if (child.pid, self._number) != _sent.get("last"):
                request["html"] = self._document.tree.html or ""
                _sent["last"] = child.pid, self._number
            return _exchange(child, json.dumps(request))


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
_running: subprocess.Popen[str] | None = None
_running_in: int | None = None


def _child() -> subprocess.Popen[str]:
    global _running, _running_in
    if _running is not None and _running_in == os.getpid() and _running.poll() is not None:
        close()
    if _running is None or _running_in != os.getpid():
        # -P: do not import modules of the working directory. The environment is reduced: it may hold secrets.
        _running = subprocess.Popen(
            [sys.executable, "-P", "-m", "curtsy.extract.selector_process"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8",
            env={name: os.environ[name] for name in _ENVIRONMENT if name in os.environ},
        )  # fmt: skip
        _running_in = os.getpid()
    return _running


def _exchange(child: subprocess.Popen[str], request: str) -> list[Element] | None:
    """Return None if the process ended during the request."""
    waiting = threading.Timer(_MAX_WAIT_S, child.kill)
    waiting.start()
    try:
        given, taken = cast(IO[str], child.stdin), cast(IO[str], child.stdout)
        given.write(request + "\n")
        given.flush()
        answer = taken.readline()
    except OSError:
        answer = ""
    finally:
        waiting.cancel()
    if answer.endswith("\n"):
        return [Element(text, tuple(chain)) for text, chain in json.loads(answer)]
    _end(child)
    return None


def _end(child: subprocess.Popen[str]) -> None:
    child.kill()
    for pipe in (child.stdin, child.stdout):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass
    child.wait()


@atexit.register
def close() -> None:
    """End the process, if one was started."""
    global _running
    if _running is not None and _running_in == os.getpid():
        _end(_running)
    _running = None
