"""A parsed page as Markdown: CommonMark with tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import cast

from selectolax.lexbor import LexborNode

from curtsy.content.walk import BLOCKS, CELLS, PRE, Step

_SPECIAL = re.compile(r"[\\`*\[\]<]")
_ESCAPES = str.maketrans({char: f"\\{char}" for char in "\\`*[]<"})
#: what would begin a heading, list, quotation, rule or fence; the group is what a backslash goes before
_LINE_START = re.compile(r"(?:[0-9]{1,9}(?=[.)](?:\s|$)))?((?:#{1,6}|[-+>.)])(?=\s|$)|={3,}|-{3,}|~{3})")
_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~", "strike": "~~"}
_BLANK = " \t\n\f\r\0"
_SPANS = {"a": "a", "code": "code", "kbd": "code", "samp": "code", "tt": "code"} | {tag: tag for tag in _EMPHASIS}
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
#: elements that have a form of their own
_WRITTEN = BLOCKS | CELLS | {"img"}
#: deeper lists, quotations and emphasis are not marked: the marks would grow with the square of the depth
_MAX_MARKS = 12


def markdown(walks: Iterable[Iterable[Step]], resolve: Callable[[str], str | None]) -> str:
    """CommonMark with tables of the elements that are walked over, one after the other.

    `resolve` makes a link absolute, or gives None to leave it out.
    """
    writer = _Writer(resolve)
    for steps in walks:
        for node, tag, entering in steps:
            if tag == "-text":
                writer.text(node.text_content or "")
            elif tag in _SPANS:
                if entering:
                    writer.begin_span(_SPANS[tag], node)
                else:
                    writer.end_span(_SPANS[tag])
            elif tag not in _WRITTEN:
                pass  # only its text counts
            elif entering:
                writer.enter(tag, node)
            else:
                writer.leave(tag)
        writer.end_block()
    return "\n".join(writer.lines) + "\n" if writer.lines else ""


class _Mark:
    """What a list item or quotation puts before its lines."""

    __slots__ = ("first", "rest", "used")

    def __init__(self, first: str, rest: str) -> None:
        #: before its first line
        self.first = first
        #: before all other lines, with the marks around it
        self.rest = rest
        self.used = False


class _Writer:
    """Gathers inline pieces until a block ends, then writes it behind the marks of its lists and quotations.

    Within pieces, NUL stands for a line break.
    """

    def __init__(self, resolve: Callable[[str], str | None]) -> None:
        self.lines: list[str] = []
        self._resolve = resolve
        self._pieces: list[str] = []
        self._marks: list[_Mark] = []
        #: items and quotations too deep to be marked
        self._unmarked = 0
        #: next number of each open list; None: bullets
        self._lists: list[int | None] = []
        #: open links, emphasis and code: kind, element, where it begins in `_pieces`
        self._spans: list[tuple[str, LexborNode, int]] = []
        self._heading = 0
        self._pre = 0
        self._table = 0
        self._rows: list[list[str]] = []
        #: the next list item follows without a blank line
        self._tight = False

    def text(self, content: str) -> None:
        if not self._pre:
            spans = self._spans
            if spans:
                if spans[-1][0] != "code":
                    content = _escaped(content)
            elif not self._pieces and content.isspace():
                return  # between blocks
            else:
                content = _escaped(content)
        self._pieces.append(content)

    def begin_span(self, kind: str, node: LexborNode) -> None:
        if not self._pre and len(self._spans) < _MAX_MARKS:
            self._spans.append((kind, node, len(self._pieces)))

    def end_span(self, kind: str) -> None:
        if self._spans and self._spans[-1][0] == kind:
            self._wrap(*self._spans.pop())

    def enter(self, tag: str, node: LexborNode) -> None:
        if tag == "br":
            self._pieces.append("\n" if self._pre else "\0")
        elif tag == "img":
            self._image(node)
        elif tag == "tr" and self._table:
            self._rows.append([])
        elif tag in BLOCKS:
            if self._table and tag != "table":
                self._pieces.append(" ")
            else:
                self.end_block()
                self._open(tag, node)

    def leave(self, tag: str) -> None:
        if tag in CELLS and self._table:
            self._end_cell()
        elif tag == "caption" and self._table:
            self._write([self._take()])
        elif tag == "table":
            self._end_table()
        elif tag in BLOCKS and tag != "br" and not self._table:
            self.end_block()
            self._close(tag)

    def _open(self, tag: str, node: LexborNode) -> None:
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag in PRE:
            self._pre += 1
        elif tag == "hr":
            self._write(["---"])
        elif tag == "table":
            self._table += 1
        elif tag in _LISTS:
            self._lists.append(_start(node) if tag == "ol" else None)
        elif tag == "blockquote":
            self._mark("> ", "> ")
        elif tag == "dd" or (tag == "li" and not (self._lists and self._lists[-1] is not None)):
            self._mark("- ", "  ")
        elif tag == "li":
            number = cast(int, self._lists[-1])
            self._lists[-1] = number + 1
            self._mark(f"{number}. ", " " * len(f"{number}. "))

    def _mark(self, first: str, rest: str) -> None:
        marks = self._marks
        if len(marks) < _MAX_MARKS:
            marks.append(_Mark(first, marks[-1].rest + rest if marks else rest))
        else:
            self._unmarked += 1

    def _close(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._heading = 0
        elif tag in PRE:
            self._pre = max(0, self._pre - 1)
        elif tag in ("blockquote", "li", "dd"):
            if self._unmarked:
                self._unmarked -= 1
            elif self._marks:
                self._marks.pop()
            self._tight = tag != "blockquote"
        elif tag in _LISTS and self._lists:
            self._lists.pop()
            self._tight = bool(self._lists)

    def _wrap(self, kind: str, node: LexborNode, start: int) -> None:
        """Puts the marks of a span around what was gathered since it began."""
        pieces = self._pieces
        inner = pieces[start] if len(pieces) == start + 1 else "".join(pieces[start:])
        core = inner.strip(_BLANK)
        if core:
            marked = self._span(kind, core, node)
            if len(core) < len(inner):
                marked = " " * (inner[0] in _BLANK) + marked + " " * (inner[-1] in _BLANK)
            pieces[start:] = [marked]

    def _span(self, kind: str, core: str, node: LexborNode) -> str:
        if kind == "a":
            href = (node.attributes.get("href") or "").strip()
            target = self._resolve(href) if href and not href.startswith("#") else None
            if target is None or target.startswith("javascript:"):
                return core
            return f"[{core.replace(chr(0), ' ')}]({_link(target)})"
        if kind == "code":
            fence, pad = ("``", " ") if "`" in core else ("`", "")
            return f"{fence}{pad}{core.replace(chr(0), ' ')}{pad}{fence}"
        mark = _EMPHASIS[kind]
        # The same emphasis within itself would end it.
        return core if core.startswith(mark) and core.endswith(mark) else f"{mark}{core}{mark}"

    def _image(self, node: LexborNode) -> None:
        attributes = node.attributes
        alt, source = (attributes.get("alt") or "").strip(), (attributes.get("src") or "").strip()
        target = self._resolve(source) if alt and source and not source.startswith("data:") else None
        if target is not None:
            label = _escaped(" ".join(alt.split()))
            self._pieces.append(f"![{label}]({_link(target)})")

    def _take(self) -> str:
        """What was gathered, on one line."""
        for kind, node, start in reversed(self._spans):
            self._wrap(kind, node, start)
        content = "".join(self._pieces)
        self._pieces.clear()
        # A span that continues in the next block starts again there.
        if self._spans:
            self._spans = [(kind, node, 0) for kind, node, _ in self._spans]
        return " ".join(content.replace("\0", " ").split())

    def _end_cell(self) -> None:
        if not self._rows:
            self._rows.append([])
        self._rows[-1].append(self._take().replace("|", "\\|"))

    def _end_table(self) -> None:
        self._table = max(0, self._table - 1)
        if self._table:
            return
        rows = [row for row in self._rows if any(row)]
        self._rows = []
        width = max((len(row) for row in rows), default=0)
        if width == 1:
            for row in rows:
                self._write(row)
        elif width > 1 and width * len(rows) <= _MAX_TABLE_CELLS:
            rows = [row + [""] * (width - len(row)) for row in rows]
            rows.insert(1, ["---"] * width)
            self._write([f"| {' | '.join(row)} |" for row in rows])
        else:
            for row in rows:
                self._write([" | ".join(row)])
        self.end_block()

    def end_block(self) -> None:
        """Writes what was gathered."""
        if not self._pieces:
            return
        if self._pre:
            self._write_code("".join(self._pieces))
            self._pieces.clear()
            return
        for kind, node, start in reversed(self._spans):
            self._wrap(kind, node, start)
        content = "".join(self._pieces)
        self._pieces.clear()
        if self._spans:
            self._spans = [(kind, node, 0) for kind, node, _ in self._spans]
        lines = [line for part in content.split("\0") if (line := " ".join(part.split()))]
        if lines and self._heading:
            self._write([f"{'#' * self._heading} {' '.join(lines)}"])
        elif lines:
            lines = [_protected(line) for line in lines]
            self._write([line + "\\" for line in lines[:-1]] + [lines[-1]])

    def _write_code(self, content: str) -> None:
        if content.strip():
            longest = max((len(run) for run in re.findall(r"`{3,}", content)), default=2)
            fence = "`" * (longest + 1)
            self._write([fence, *content.strip("\n").split("\n"), fence])

    def _write(self, block: list[str]) -> None:
        if not any(block):
            return
        if not self._marks:
            if self.lines:
                self.lines.append("")
            self.lines += map(str.rstrip, block)
            self._tight = bool(self._lists)
            return
        self._write_marked(block)
        self._tight = bool(self._lists)

    def _write_marked(self, block: list[str]) -> None:
        marks = self._marks
        first = rest = marks[-1].rest
        if marks[-1].used:
            if self.lines:
                self.lines.append(rest.rstrip())
        else:
            # The first line uses all marks, so that those without use are the innermost.
            used = [mark for mark in marks if mark.used]
            around = used[-1].rest if used else ""
            if self.lines and not self._tight:
                self.lines.append(around.rstrip())
            fresh = marks[len(used) :]
            first = around + "".join([mark.first for mark in fresh])
            for mark in fresh:
                mark.used = True
        self.lines.append((first + block[0]).rstrip())
        for line in block[1:]:
            self.lines.append((rest + line).rstrip())


#: tables beyond this are written row by row: one long row must not widen thousands of short ones
_MAX_TABLE_CELLS = 100_000


def _protected(line: str) -> str:
    """The line so that it does not begin anything but a paragraph."""
    found = _LINE_START.match(line)
    return line if found is None else f"{line[: found.start(1)]}\\{line[found.start(1) :]}"


def _escaped(text: str) -> str:
    # A template of `sub` costs more than the search, and most text has none of these characters.
    return text if _SPECIAL.search(text) is None else text.translate(_ESCAPES)


def _start(node: LexborNode) -> int:
    start = (node.attributes.get("start") or "").strip()
    return int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1


def _link(target: str) -> str:
    return target.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
