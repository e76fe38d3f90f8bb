"""The places of a page: which elements contain its visible text.

    Block        an element with text: its chain of elements, its label, its span of the page's text
    PagePlaces   the blocks of a page, by chain
    url_shape    what the URLs of one template have in common

A chain is written as CSS with child steps: `main > div.product > p.price`. Everything takes time linear in the page:
depth, number and length of blocks are limited.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from urllib.parse import parse_qsl, urlsplit

from curtsy.content import text as prose
from curtsy.content.document import Document
from curtsy.content.text import Span
from curtsy.core.text_layout import TextLayout, joined

MAX_BLOCKS = 3_000
#: elements of a page; a larger one has no places
_MAX_SPANS = 50_000
_MAX_DEPTH = 48
#: characters of a block that can be a value
MAX_BLOCK = 600
_MAX_LABEL = 40
_MAX_CELL_LABEL = 80
#: characters of a block that can be a short value, and of a line that is prose
_SHORT = 80
_PROSE = 160
_MAX_CLASSES = 2
_CLASS = re.compile(r"[A-Za-z][A-Za-z_-]{1,39}")
#: classes that differ between pages of a template, or between items of a list
_UNSTABLE = re.compile(r"(?:category|tag|term|author|postid|page-id|lang)-")
_STATES = frozenset(("first", "last", "odd", "even", "active", "current", "selected", "open", "hidden", "visible"))
_FRAME = re.compile(r"(?:^| > )(?:nav|header|footer|aside|form|button|dialog)\b")
_OWN_LABEL = re.compile(r"([^\W\d_][^:：\n]{0,38})[:：]\s?(?=\S)")
_WORD_SEGMENT = re.compile(r"[^\W\d_]{1,30}")
_EXTENSION = re.compile(r"\.[a-z]{2,5}$", re.IGNORECASE)
_MAX_SEGMENTS = 12
_MAX_PARAMETERS = 8


class Block(NamedTuple):
    """`text[start:end]` of the page is the text of an element."""

    path: str
    #: folded; empty: none
    label: str
    start: int
    end: int
    #: a cell of a table, or a definition: its label belongs to its place
    cell: bool = False
    #: some words within a longer line
    inline: bool = False


@dataclass(frozen=True)
class PagePlaces:
    """The blocks of one page, in the order of the page."""

    text: str
    blocks: tuple[Block, ...]

    @cached_property
    def by_path(self) -> dict[str, list[Block]]:
        found: dict[str, list[Block]] = {}
        for block in self.blocks:
            found.setdefault(block.path, []).append(block)
        return found

    @cached_property
    def keys(self) -> dict[str, Block]:
        """Digest of a place -> its first block. The label counts where a chain alone does not identify the block."""
        return {key: block for block in reversed(self.blocks) if (key := self.key(block)) is not None}

    def key(self, block: Block) -> str | None:
        """The digest of a block's place; None for words within a line of prose."""
        if block.inline:
            return None
        is_one = len(self.by_path[block.path]) == 1 and not block.cell
        return digest(block.path if is_one else f"{block.path}\n{block.label}")

    @cached_property
    def skeleton(self) -> frozenset[str]:
        """The chains of the main part of the page."""
        return frozenset(
            digest(path)
            for path, blocks in self.by_path.items()
            if not _FRAME.search(path) and not all(one.inline for one in blocks)
        )

    def text_of(self, block: Block) -> str:
        return self.text[block.start : block.end]

    def is_short(self, block: Block) -> bool:
        return block.end - block.start <= _SHORT


def digest(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


class _AnyElement:
    def __contains__(self, tag: object) -> bool:
        return isinstance(tag, str) and not tag.startswith("-")


_ANY = _AnyElement()


def places_of(document: Document) -> PagePlaces:
    """Never raises. Hidden elements have no places."""
    visible = prose.read(document.page_tree(), spans_of=_ANY)
    spans = visible.spans if len(visible.spans) <= _MAX_SPANS else []
    return PagePlaces(visible.text, tuple(_blocks(visible.text, visible.layout, spans)))


class _Element(NamedTuple):
    path: str
    start: int
    depth: int


def _blocks(text: str, layout: TextLayout, spans: list[Span]) -> list[Block]:
    """Spans come in the order of their ends. Read backwards, each element comes after the one that contains it."""
    found: dict[tuple[int, int], Block] = {}
    around: list[_Element] = []
    for span in reversed(spans):
        while around and around[-1].depth >= span.depth:
            around.pop()
        if span.depth > _MAX_DEPTH or len(around) != span.depth:
            continue  # too deep
        parent = around[-1] if around else _Element("", span.start, -1)
        path = _joined(parent.path, span)
        around.append(_Element(path, span.start, span.depth))
        if path and 0 < span.end - span.start <= MAX_BLOCK:
            # The innermost element with the same text comes last.
            found[span.start, span.end] = _block(text, layout, path, parent.start, span)
    return sorted(found.values(), key=lambda one: (one.start, -one.end))[:MAX_BLOCKS]


def _joined(path: str, span: Span) -> str:
    tag = span.node.tag or ""
    if tag in ("html", "body"):
        return path
    classes = (span.node.attributes.get("class") or "")[:400].split()
    kept = [one for one in classes if _CLASS.fullmatch(one) and one not in _STATES and not _UNSTABLE.match(one)]
    step = ".".join([tag, *dict.fromkeys(kept[:_MAX_CLASSES])])
    return f"{path} > {step}" if path else step


def _block(text: str, layout: TextLayout, path: str, parent: int, span: Span) -> Block:
    start, end = span.start, span.end
    if labels := layout.labels_at(start, end):
        return Block(path, folded(joined(labels))[:_MAX_CELL_LABEL], start, end, cell=True)
    line = text.rfind("\n", max(0, start - _PROSE - 1), start) + 1 or max(0, start - _PROSE)
    after = text.find("\n", end, end + _PROSE)
    rest = min(_PROSE, len(text) - end) if after < 0 else after - end
    inline = (start - line) + rest + (end - start) > _PROSE and (start - line) + rest > 0
    return Block(path, "" if inline else _label(text, start, end, line, parent), start, end, inline=inline)


def _label(text: str, start: int, end: int, line: int, parent: int) -> str:
    """The label in the block itself, before it in its line, or in the short line before it within its parent."""
    if own := _OWN_LABEL.match(text, start, min(end, start + _MAX_LABEL + 2)):
        return folded(own[1])
    if before := text[line:start].strip():
        return folded(before) if len(before) <= _MAX_LABEL else ""
    above = text.rfind("\n", max(0, line - _MAX_LABEL - 2), max(0, line - 1)) + 1
    said = text[above : max(0, line - 1)].strip() if above or line <= _MAX_LABEL else ""
    return folded(said) if above >= parent and 0 < len(said) <= _MAX_LABEL else ""


def folded(text: str) -> str:
    """A label without case, spaces, figures and the colon."""
    words = " ".join(text.casefold().split()).rstrip(" :：")
    return "".join("#" if char.isdigit() else char for char in words)


# Templates


def url_shape(url: str) -> str:
    """What the URLs of one template have in common.

    >>> url_shape("https://a.example/shop/hats/12-red-hat.html?id=7&page=2"), url_shape("https://a.example/")
    ('/shop/*/*.html?id&page', '/')
    """
    parts = urlsplit(url)
    segments = [one for one in parts.path.split("/") if one][:_MAX_SEGMENTS]
    shaped = ["*" for _ in segments]
    if len(segments) > 1 and _WORD_SEGMENT.fullmatch(segments[0]):
        shaped[0] = segments[0].lower()
    if segments and (extension := _EXTENSION.search(segments[-1])):
        shaped[-1] = f"*{extension[0].lower()}"
    names = sorted({name for name, _ in parse_qsl(parts.query[:2000], keep_blank_values=True)})[:_MAX_PARAMETERS]
    query = "&".join(name[:40] for name in names)
    return f"/{'/'.join(shaped)}{f'?{query}' if query else ''}"[:500]


#: share of the smaller skeleton, and of both together, that pages of one template have in common
_MIN_OVERLAP, _MIN_JACCARD = 0.7, 0.35


def similarity(one: frozenset[str], other: Iterable[str]) -> float:
    """How similar two skeletons are; 0: they belong to different templates."""
    known = frozenset(other)
    shared = len(one & known)
    if not shared or shared < _MIN_OVERLAP * min(len(one), len(known)):
        return 0.0
    jaccard = shared / len(one | known)
    return jaccard if jaccard >= _MIN_JACCARD else 0.0
