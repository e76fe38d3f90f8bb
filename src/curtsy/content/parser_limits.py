"""Bounds on what is given to the HTML parser.

The HTML standard's tree construction is quadratic in some places: every block walks up the open elements, every
attribute is compared with those before it in its tag, and unclosed formatting elements are rebuilt in every block.
500 KB of `<div>` keep lexbor busy for 16 s, 60 KB of `<font>` and `<p>` make millions of elements. Ordinary pages are
far from that. Others are truncated at the bounds: `tame` returns whether anything was removed.

These bounds limit memory and most of the time. `reading.py` limits the rest of the time: a page that `is_heavy` is
read in a process that can be killed.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import re2

#: below both, the page is parsed unchanged: the worst page takes half a second, nearly all take a millisecond
_EASY_TAGS = 1_500
_EASY_BYTES = 64 * 1024
#: beyond one of them, the parser may need seconds for a hostile page
HEAVY_TAGS = 10_000
_HEAVY_BYTES = 512 * 1024
#: open elements at a time
MAX_DEPTH = 1_000
#: start tags in all: about 150 bytes of memory each
MAX_TAGS = 300_000
#: elements that unclosed formatting may add
MAX_REBUILT = 1_000_000
#: characters of a tag without the values of its attributes, whose length is not limited
MAX_TAG_BYTES = 8 * 1024

# A tag as the tokenizer reads it, to its end: a `>` in a quoted value does not end it.
_VALUE = rb"""=[\t\n\f\r ]*+(?:"[^"]*+"|'[^']*+'|[^"'\t\n\f\r >][^\t\n\f\r >]*+)?+"""
_TAG = re.compile(rb"<(/?[a-zA-Z][a-zA-Z0-9-]*+)((?:[^>=]++|" + _VALUE + rb")*+)>?+")
_VALUES = re.compile(_VALUE)
_TEXT = re.compile(rb"<!--|<(?:script|style|textarea|title|xmp|iframe|noembed|noframes)(?=[\t\n\f\r />])")

#: names of tags; the same tags as those of `_TAG` where `_MISLEADING` occurs nowhere
_NAME = re.compile(rb"<([a-z/][a-z0-9-]*+)")
# A `>` in a quoted value, or the start of a tag within another one. RE2: one pass over the page, without going back.
_MISLEADING = re2.compile(
    rb"""=[\t\n\f\r ]*(?:"[^">]*>|'[^'>]*>)|<[a-z/](?:[^<>]|<+[^<>a-z/])*<+[a-z/]""",
)
#: tags whose order `_is_ordinary` does not look at: more of them cost less, and fewer pages are ordinary
_SOME_TAGS = 256

_NEVER_DEEP = frozenset(
    b"area base br col embed frame hr img input link meta param source track wbr image "
    b"path circle rect use line polygon polyline ellipse stop "
    b"p li dd dt option optgroup tr td th tbody thead tfoot caption colgroup rb rt rtc rp html head body".split()
)
_FORMATTING = frozenset(b"a b big code em font i nobr s small strike strong tt u".split())
_REBUILDS = frozenset(b"p li dd dt td th div h1 h2 h3 h4 h5 h6 ul ol dl table tr section article blockquote".split())


class _Meanings(dict[bytes, tuple[bytes, int, int, bool] | None]):
    """What a tag does to the count: (element, 1 opens or -1 closes or 0, is formatting, rebuilds formatting)."""

    def __missing__(self, tag: bytes) -> tuple[bytes, int, int, bool] | None:
        name = tag.removeprefix(b"/")
        deep, rebuilds = name not in _NEVER_DEEP, name in _REBUILDS and name == tag
        step = 0 if not deep else 1 if name == tag else -1
        found = (name, step, int(name in _FORMATTING), rebuilds) if deep or rebuilds else None
        if len(self) < _MOST_MEANINGS:
            self[tag] = found
        return found


#: number of element names, beyond those of HTML, that are remembered
_MOST_MEANINGS = 1_000
_meanings = _Meanings()


def is_heavy(html: bytes) -> bool:
    """Whether parsing may take long: such a page is not parsed on the event loop."""
    if len(html) <= _EASY_BYTES:
        return False
    return len(html) > _HEAVY_BYTES or html.count(b"<") > HEAVY_TAGS


def tame(html: bytes) -> tuple[bytes, bool]:
    """The page, or the part of it that can be parsed in bounded time and memory; and whether something is missing."""
    if len(html) <= _EASY_BYTES and html.count(b"<") <= _EASY_TAGS:
        return html, False
    seen = _without_text(html.lower())
    if _is_ordinary(seen):
        return html, False
    end, has_long = _look(seen)
    if has_long:
        return _shortened(html[:end], seen[:end]), True
    return (html, False) if end == len(html) else (html[:end], True)


def _is_ordinary(html: bytes) -> bool:
    """Whether the page is certainly within the bounds; if not, `_look` decides. Nearly all pages are, and this costs a
    third of a look.
    """
    if _MISLEADING.search(html) is not None or _has_long_gap(html):
        return False
    names = _NAME.findall(html)
    return len(names) <= MAX_TAGS and _is_shallow(names)


def _has_long_gap(html: bytes) -> bool:
    """Whether a tag may be too long: somewhere MAX_TAG_BYTES follow each other without a `>`."""
    at, last = 0, len(html) - MAX_TAG_BYTES
    while at < last:
        at = html.rfind(b">", at, at + MAX_TAG_BYTES) + 1
        if not at:
            return True
    return False


def _is_shallow(names: list[bytes]) -> bool:
    """Whether depth and rebuilt elements stay within the bounds in any order of each _SOME_TAGS tags.

    After some tags, at most `max(0, open - closed) + opened` elements of a name are open: most of them if all end tags
    come first. While they are read, at most `open + opened` are.
    """
    opened: defaultdict[bytes, int] = defaultdict(int)
    depth = formatting = rebuilt = 0
    for at in range(0, len(names), _SOME_TAGS):
        new: list[tuple[bytes, int]] = []
        new_depth = new_formatting = closed = closed_formatting = rebuilding = 0
        for tag, times in Counter(names[at : at + _SOME_TAGS]).items():
            meaning = _meanings[tag]
            if meaning is None:
                continue
            name, step, formats, rebuilds = meaning
            if step < 0:
                ends = min(opened[name], times)
                opened[name] -= ends
                closed += ends
                closed_formatting += ends * formats
                continue
            if rebuilds:
                rebuilding += times
            if step:
                new.append((name, times))
                new_depth += times
                new_formatting += times * formats
        rebuilt += (formatting + new_formatting) * rebuilding
        if depth + new_depth > MAX_DEPTH or rebuilt > MAX_REBUILT:
            return False
        for name, times in new:
            opened[name] += times
        depth += new_depth - closed
        formatting += new_formatting - closed_formatting
    return True


def _look(html: bytes) -> tuple[int, bool]:
    """Where the page goes beyond the bounds, its length if it does not; and whether a tag is too long."""
    opened: defaultdict[bytes, int] = defaultdict(int)
    depth = rebuilt = formatting = 0
    found = _TAG.findall(html)
    has_long = any(_is_long(rest) for _, rest in found if len(rest) > MAX_TAG_BYTES)
    most = _most_tags(found)
    for number, (tag, _) in enumerate(found[:most]):
        meaning = _meanings[tag]
        if meaning is None:
            continue
        name, step, formats, rebuilds = meaning
        if step < 0:
            if opened[name]:
                opened[name] -= 1
                depth -= 1
                formatting -= formats
            continue
        if rebuilds:
            rebuilt += formatting
        if step:
            opened[name] += 1
            depth += 1
            formatting += formats
        if depth > MAX_DEPTH or rebuilt > MAX_REBUILT:
            return _position(html, number), has_long
    return (len(html) if most == len(found) else _position(html, most)), has_long


def _most_tags(found: list[tuple[bytes, bytes]]) -> int:
    """How many tags, start and end, there are up to the last start tag that may be."""
    if len(found) > MAX_TAGS:
        starts = 0
        for number, (tag, _) in enumerate(found):
            starts += not tag.startswith(b"/")
            if starts > MAX_TAGS:
                return number
    return len(found)


def _is_long(rest: bytes) -> bool:
    return len(rest) > MAX_TAG_BYTES and len(_VALUES.sub(b"=", rest)) > MAX_TAG_BYTES


def _shortened(html: bytes, seen: bytes) -> bytes:
    """Tags that are too long lose their attributes; what follows them stays. `seen` has each byte at the same place."""
    parts: list[bytes] = []
    at = 0
    for found in _TAG.finditer(seen):
        if _is_long(found[2]):
            parts += (html[at : found.end(1)], b">")
            at = found.end()
    return b"".join((*parts, html[at:]))


def _without_text(html: bytes) -> bytes:
    """Comments, scripts and other text blanked, so that tags in them do not count; all else stays where it is.

    An unclosed part extends to the end of the page, as in a browser.
    """
    parts: list[bytes] = []
    at = next_at = 0
    while (found := _TEXT.search(html, next_at)) is not None:
        if (end := _end_of_tag_around(html, next_at, found.start())) is not None:
            next_at = end
            continue
        # `<!-->` is a whole comment.
        comment = found[0] == b"<!--"
        end = html.find(b"-->", found.start() + 2) if comment else html.find(b"</" + found[0][1:], found.end())
        begin = found.start() + 2 if comment else _tag_end(html, found.start())
        end = len(html) if end < 0 else max(end, begin)
        parts += (html[at:begin], b" " * (end - begin))
        at = next_at = end
    return b"".join((*parts, html[at:])) if parts else html


def _end_of_tag_around(html: bytes, start: int, at: int) -> int | None:
    """Where the tag ends that begins after `start` and has the byte `at` in it, as in `<a title="<!--">`."""
    begin = html.rfind(b"<", start, at)
    while begin >= 0 and (found := _TAG.match(html, begin)) is None:
        begin = html.rfind(b"<", start, begin)
    return found.end() if begin >= 0 and found is not None and found.end() > at else None


def _tag_end(html: bytes, at: int) -> int:
    found = _TAG.match(html, at)
    return len(html) if found is None else found.end()


def _position(html: bytes, number: int) -> int:
    for at, found in enumerate(_TAG.finditer(html)):
        if at == number:
            return found.start()
    return len(html)
