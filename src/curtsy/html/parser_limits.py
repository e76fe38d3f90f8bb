"""Bounds on what is given to the HTML parser.

The HTML standard's tree construction is quadratic in some places: every block walks up the open elements, every tag
looks through its attributes, and unclosed formatting elements are built anew in every block. 500 KB of `<div>` keep
lexbor busy for 16 s, 60 KB of `<font>` and `<p>` make millions of elements. Ordinary pages are far from that; others
are cut where they go beyond the bounds.
"""

from __future__ import annotations

import re
from collections import defaultdict

#: below both, the worst page costs some 20 ms, and no look at it is needed
_EASY_TAGS = 1_500
_EASY_BYTES = 64 * 1024
#: open elements at a time
MAX_DEPTH = 1_000
#: start tags in all: about 150 bytes of memory each
MAX_TAGS = 300_000
#: elements that unclosed formatting may add
MAX_REBUILT = 1_000_000
#: bytes of a tag with all its attributes
MAX_TAG_BYTES = 32 * 1024

_TAG = re.compile(rb"<(/?)([a-zA-Z][a-zA-Z0-9-]*)")
_TEXT = re.compile(rb"<!--|<script|<style")
_LONG_TAG = re.compile(rb"<[a-zA-Z][^<>]{%d}" % MAX_TAG_BYTES)

_NEVER_DEEP = frozenset(
    b"area base br col embed frame hr img input link meta param source track wbr image "
    b"path circle rect use line polygon polyline ellipse stop "
    b"p li dd dt option optgroup tr td th tbody thead tfoot caption colgroup rb rt rtc rp html head body".split()
)
_FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_REBUILDS = frozenset(b"p li dd dt td th div h1 h2 h3 h4 h5 h6 ul ol dl table tr section article blockquote".split())


def tame(html: bytes) -> bytes:
    """The page, or as much of it as can be parsed in bounded time and memory."""
    if len(html) <= _EASY_BYTES and html.count(b"<") <= _EASY_TAGS:
        return html
    long_tag = _LONG_TAG.search(html)
    if long_tag is not None:
        html = html[: long_tag.start()]
    end = _wild_from(html)
    return html if end == len(html) else html[:end]


def _wild_from(html: bytes) -> int:
    """Where the page goes beyond the bounds; its length if it does not."""
    opened: defaultdict[bytes, int] = defaultdict(int)
    depth = tags = rebuilt = formatting = 0
    html = _without_text(html.lower())
    for number, (slash, name) in enumerate(_TAG.findall(html)):
        if slash:
            if opened[name]:
                opened[name] -= 1
                depth -= 1
                formatting -= name in _FORMATTING
            continue
        tags += 1
        if name in _REBUILDS:
            rebuilt += formatting
        if name not in _NEVER_DEEP:
            opened[name] += 1
            depth += 1
            formatting += name in _FORMATTING
        if depth > MAX_DEPTH or tags > MAX_TAGS or rebuilt > MAX_REBUILT:
            return _position(html, number)
    return len(html)


def _without_text(html: bytes) -> bytes:
    """Comments and scripts blanked, so that end tags in them do not count; every other byte stays where it is."""
    parts: list[bytes] = []
    at = 0
    while (found := _TEXT.search(html, at)) is not None:
        end = html.find(b"-->" if found[0] == b"<!--" else b"</" + found[0][1:], found.end())
        if end < 0:
            break
        parts += (html[at : found.end()], b" " * (end - found.end()))
        at = end
    return b"".join((*parts, html[at:])) if parts else html


def _position(html: bytes, number: int) -> int:
    for at, found in enumerate(_TAG.finditer(html)):
        if at == number:
            return found.start()
    return len(html)
