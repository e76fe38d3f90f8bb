"""The visible text of a page, with its layout: which parts a reader must open first, and the labels of table cells.

The text has one line per block and tabs between the cells of a row. Blanks are collapsed, and characters that take no
room (soft hyphens, zero-width spaces) are left out. Each piece of text is final when it is written, so that every
element has an exact span. docs/reference/visible-text.md has the rules.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import partial
from typing import NamedTuple

from selectolax.lexbor import LexborNode

from curtsy.content.tables import Tables
from curtsy.content.walk import BLOCKS, MARKS, PRE, PageTree, Step, walk
from curtsy.core.text_layout import TextLayout, Visibility, VisibilitySpan

#: struck text is not joined with the text next to it
_STRUCK = frozenset(("s", "del", "strike"))
#: exponents and footnotes: `300²`, not `3002`; `1,234ᵃ`, not `1,234a`
_RAISED = str.maketrans("0123456789+-abcdefghijklmnoprstuvwxyz", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ")
#: soft hyphen, zero-width space, word joiner, byte order mark: they only say where a line may break
_NO_WIDTH = dict.fromkeys((0xAD, 0x200B, 0x2060, 0xFEFF))
#: `translate` looks up each character, and most text has none of these
_HAS_NO_WIDTH = re.compile(f"[{''.join(map(chr, _NO_WIDTH))}]")

# Separators; the strongest since the last text is written before the next.
_NONE, _SPACE, _TAB, _LINE = range(4)
_SIGNS = ("", " ", "\t", "\n")

# What an element means for the text.
_BLOCK, _PRE, _STRIKE, _SUP, _RUBY, _RT, _TABLE, _ROW, _CELL, _TERM, _MARK = range(11)
_MEANING = (
    dict.fromkeys(BLOCKS, _BLOCK)
    | dict.fromkeys(PRE, _PRE)
    | dict.fromkeys(_STRUCK, _STRIKE)
    | {"sup": _SUP, "ruby": _RUBY, "rt": _RT, "table": _TABLE, "tr": _ROW, "td": _CELL, "th": _CELL}
    | dict.fromkeys(("dl", "dt", "dd"), _TERM)
    | dict.fromkeys(MARKS.values(), _MARK)
)
_VISIBILITY = {tag: visibility for visibility, tag in MARKS.items()}


class Span(NamedTuple):
    """An element and its part of the text."""

    node: LexborNode
    start: int
    end: int
    #: requested elements around it
    depth: int


class VisibleText(NamedTuple):
    text: str
    layout: TextLayout
    #: of the requested elements, in the order of their ends
    spans: list[Span]


def text(root: LexborNode | None, limit: int | None = None, tree: PageTree | None = None) -> str:
    """Return the text of an element; stops after about `limit` characters and elements.

    `tree` says what is hidden on its page; without it, hidden elements count too.
    """
    return "" if root is None else read(PageTree(root) if tree is None else tree, root, limit).text


def read(
    tree: PageTree, root: LexborNode | None = None, limit: int | None = None, spans_of: Container[str] = ()
) -> VisibleText:
    """Return the text and its layout, and the spans of elements with the tags `spans_of`."""
    writer = _Writer()
    tables = Tables()
    meaning_of = _MEANING.get
    write = writer.write
    spans: list[Span] = []
    starts: list[int] = []
    steps = 0
    for node, tag, entering in walk(tree, root):
        if tag == "-text":
            write(node.text_content or "")
        else:
            if tag in spans_of:
                if entering:
                    starts.append(writer.size)
                else:
                    spans.append(Span(node, starts.pop(), writer.size, len(starts)))
            if (meaning := meaning_of(tag)) is not None:
                if meaning == _BLOCK:
                    if not writer.at_cell_start:
                        writer.pending = _LINE
                else:
                    _apply(writer, tables, meaning, node, tag, entering)
        if limit is not None:
            steps += 1
            if writer.size + steps > limit:
                break
    return _result(writer, tables, spans)


def read_steps(steps: Iterable[Step]) -> tuple[VisibleText, list[int]]:
    """Return the text of a walk, without spans, and for each step the number of characters before it."""
    writer = _Writer()
    tables = Tables()
    meaning_of = _MEANING.get
    write = writer.write
    positions: list[int] = []
    add = positions.append
    for node, tag, entering in steps:
        add(writer.size)
        if tag == "-text":
            write(node.text_content or "")
        elif (meaning := meaning_of(tag)) is not None:
            if meaning == _BLOCK:
                if not writer.at_cell_start:
                    writer.pending = _LINE
            else:
                _apply(writer, tables, meaning, node, tag, entering)
    return _result(writer, tables, []), positions


def _result(writer: _Writer, tables: Tables, spans: list[Span]) -> VisibleText:
    whole = "".join(writer.parts)
    layout = TextLayout(tuple(writer.unseen()), partial(tables.cells, whole))
    return VisibleText(whole, layout, [_trimmed(span, whole) for span in spans])


def _trimmed(span: Span, whole: str) -> Span:
    """An element does not begin with the separator before it."""
    start = span.start
    return span._replace(start=start + 1) if start < span.end and whole[start].isspace() else span


def _apply(writer: _Writer, tables: Tables, meaning: int, node: LexborNode, tag: str, entering: bool) -> None:
    if meaning == _CELL:
        writer.cell(entering, tables.in_data_table)
        tables.cell(node, tag, entering, writer.size)
    elif meaning == _ROW:
        writer.separate(_LINE)
        tables.row(node, entering)
    elif meaning == _TABLE:
        writer.separate(_LINE)
        tables.table(node, entering)
    elif meaning == _TERM:
        writer.separate(_LINE)
        tables.term(tag, entering, writer.size)
    elif meaning == _PRE:
        writer.separate(_LINE)
        writer.preformatted += 1 if entering else -1
    elif meaning == _STRIKE:
        writer.separate(_SPACE)
    elif meaning == _SUP:
        writer.raised += 1 if entering else -1
    elif meaning == _MARK:
        writer.mark(_VISIBILITY[tag], entering)
    else:
        writer.ruby(meaning == _RT, entering)


class _Writer:
    """Gathers the text. Pieces begin and end with a character that is not blank."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        #: characters written
        self.size = 0
        self.preformatted = self.raised = 0
        self.pending = _NONE
        #: no text was written since the data cell began: a block does not leave its row
        self.at_cell_start = False
        self._annotations: list[list[str]] = []
        self._in_annotation = 0
        self._visibility = [Visibility.VISIBLE]
        self._since = 0
        self._unseen: list[VisibilitySpan] = []

    def separate(self, strength: int) -> None:
        if strength > self.pending and not self.at_cell_start:
            self.pending = strength

    def write(self, content: str) -> None:
        if self.preformatted and "\n" in content:
            for number, line in enumerate(content.split("\n")):
                if number:
                    self.separate(_LINE)
                self.write(line)
            return
        if not content.isascii() and _HAS_NO_WIDTH.search(content) is not None:
            content = content.translate(_NO_WIDTH)
        words = content.split()
        if not words:
            if content and self.pending < _SPACE:
                self.pending = _SPACE
            return
        piece = " ".join(words)
        if self._in_annotation:
            self._annotations[-1].append(piece)
            return
        if self.raised and (piece.isdecimal() or len(piece) == 1):
            piece = piece.translate(_RAISED)
        pending = self.pending
        if pending < _SPACE and content[0].isspace():
            pending = _SPACE
        if pending and self.size:
            self.parts.append(_SIGNS[pending])
            self.size += 1
        self.parts.append(piece)
        self.size += len(piece)
        self.at_cell_start = False
        self.pending = _SPACE if content[-1].isspace() else _NONE

    def cell(self, entering: bool, is_data: bool) -> None:
        """In a data table, blocks at the edges of a cell do not end the line of the row."""
        if self.pending < _TAB or (is_data and not entering):
            self.pending = _TAB
        self.at_cell_start = entering and is_data

    def ruby(self, is_annotation: bool, entering: bool) -> None:
        """Readings follow the whole word: `東京(とうきょう)`, so that the word itself stays in one piece."""
        if is_annotation:
            if self._annotations:
                self._in_annotation += 1 if entering else -1
        elif entering:
            self._annotations.append([])
        else:
            reading = "".join(self._annotations.pop())
            self._in_annotation = 0
            if reading:
                self.parts.append(f"({reading})")
                self.size += len(reading) + 2
                self.at_cell_start = False
                self.pending = _NONE

    def mark(self, visibility: Visibility, entering: bool) -> None:
        before = self._visibility[-1]
        if not entering:
            self._visibility.pop()
        elif visibility is Visibility.VISIBLE:
            self._visibility.append(self._visibility[-2] if len(self._visibility) > 1 else before)
        elif before is Visibility.VISIBLE:
            self._visibility.append(visibility)
        else:
            self._visibility.append(before)
        if self._visibility[-1] is not before:
            self._close(before)

    def unseen(self) -> list[VisibilitySpan]:
        self._close(self._visibility[-1])
        return self._unseen

    def _close(self, visibility: Visibility) -> None:
        if visibility is not Visibility.VISIBLE and self.size > self._since:
            self._unseen.append(VisibilitySpan(self._since, self.size, visibility))
        self._since = self.size
