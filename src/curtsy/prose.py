"""The text and the Markdown of a parsed page. Walks the tree without recursion: pages may be nested deeply."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from selectolax.lexbor import LexborNode

_UNSEEN = frozenset(
    ("script", "style", "noscript", "template", "head", "iframe", "object", "canvas", "svg", "math", "datalist")
    + ("audio", "video", "select", "textarea", "noframes", "noembed", "title", "-comment", "-doctype")
)
_BLOCKS = frozenset(
    ("address", "article", "aside", "blockquote", "body", "br", "caption", "center", "dd", "details", "dialog", "dir")
    + ("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6")
    + ("header", "hgroup", "hr", "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "option", "p", "pre")
    + ("search", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul", "xmp")
)
_CELLS = frozenset(("td", "th"))
_PRE = frozenset(("pre", "listing", "xmp"))

#: (node, its tag, True on the way in and False on the way out); text nodes only on the way in
_Step = tuple[LexborNode, str, bool]


def _walk(root: LexborNode) -> Iterator[_Step]:
    """Everything that can be seen, in document order."""
    node: LexborNode | None = root
    depth = 0
    while node is not None:
        tag = node.tag or ""
        if tag not in _UNSEEN and "hidden" not in node.attributes:
            yield node, tag, True
            child = node.first_child if tag != "-text" else None
            if child is not None:
                node, depth = child, depth + 1
                continue
            if tag != "-text":
                yield node, tag, False
        while True:
            if depth == 0:
                return
            following = node.next
            if following is not None:
                node = following
                break
            parent = node.parent
            if parent is None:
                return
            node, depth = parent, depth - 1
            yield node, node.tag or "", False


def text(root: LexborNode | None, limit: int | None = None) -> str:
    """One line per block, blanks collapsed; stops after `limit` characters."""
    if root is None:
        return ""
    parts: list[str] = []
    size = preformatted = 0
    for node, tag, entering in _walk(root):
        if tag == "-text":
            content = node.text_content or ""
            parts.append(content.replace("\n", "\0") if preformatted else content.replace("\n", " "))
            size += len(content)
            if limit is not None and size > limit:
                break
        elif tag in _BLOCKS:
            parts.append("\n")
            if tag in _PRE:
                preformatted += 1 if entering else -1
        elif tag in _CELLS:
            parts.append("\t")
    lines = "".join(parts).replace("\0", "\n").split("\n")
    return "\n".join(line for line in (" ".join(line.split()) for line in lines) if line)


_SPECIAL = re.compile(r"([\\`*\[\]<])")
_LINE_START = re.compile(r"(?:#{1,6}|[-+>]|[0-9]{1,9}[.)])(?=\s|$)|={3,}|-{3,}|~{3}")
_HEADINGS = {"h1": 1, "h2": 2, "h3": 3, "h4": 4, "h5": 5, "h6": 6}
_EMPHASIS = {"b": "**", "strong": "**", "i": "*", "em": "*", "del": "~~", "s": "~~", "strike": "~~"}
_CODE = frozenset(("code", "kbd", "samp", "tt"))
#: deeper quotations and lists are not indented further: prefixes would grow with the square of the depth
_MAX_INDENT = 12


def markdown(root: LexborNode | None, resolve: Callable[[str], str | None]) -> str:
    """CommonMark with tables; `resolve` makes a link absolute, or gives None to leave it out."""
    if root is None:
        return ""
    writer = _Writer(resolve)
    for node, tag, entering in _walk(root):
        if tag == "-text":
            writer.text(node.text_content or "")
        elif entering:
            writer.enter(tag, node)
        else:
            writer.leave(tag, node)
    writer.end_block()
    return "\n".join(writer.lines).strip("\n") + "\n" if writer.lines else ""


class _Writer:
    """Gathers inline pieces until a block ends, then writes it behind the marks of the lists and quotations it is in."""

    def __init__(self, resolve: Callable[[str], str | None]) -> None:
        self.lines: list[str] = []
        self._resolve = resolve
        self._pieces: list[str] = []
        #: [mark for the next line, mark for the lines after it]
        self._marks: list[list[str]] = []
        #: next number of each open list; None: bullets
        self._lists: list[int | None] = []
        #: where open links, emphasis and code begin in `_pieces`
        self._spans: list[tuple[str, int]] = []
        self._heading = 0
        self._pre = 0
        self._table = 0
        self._rows: list[list[str]] = []
        self._tight = False

    def text(self, content: str) -> None:
        if self._pre:
            self._pieces.append(content)
        elif any(tag == "code" for tag, _ in self._spans[-3:]):
            self._pieces.append(re.sub(r"\s+", " ", content))
        else:
            self._pieces.append(_SPECIAL.sub(r"\\\1", re.sub(r"\s+", " ", content)))

    def enter(self, tag: str, node: LexborNode) -> None:
        if tag in _EMPHASIS or tag in _CODE or tag == "a":
            if not self._pre:
                self._spans.append(("code" if tag in _CODE else tag, len(self._pieces)))
        elif tag == "br":
            self._pieces.append("\n" if self._pre else "\0")
        elif tag == "img":
            self._image(node)
        elif self._table and tag in ("tr", "td", "th"):
            self._cell(tag)
        elif tag in _BLOCKS and not (self._table and tag != "table"):
            self.end_block()
            self._open(tag, node)
        elif tag in _BLOCKS:
            self._pieces.append(" ")

    def leave(self, tag: str, node: LexborNode) -> None:
        if tag in _EMPHASIS or tag in _CODE or tag == "a":
            self._close_span("code" if tag in _CODE else tag, node)
        elif self._table and tag in _CELLS:
            self._end_cell()
        elif tag == "table":
            self._end_table()
        elif tag in _BLOCKS and tag != "br" and not self._table:
            self.end_block()
            self._close(tag)

    def _open(self, tag: str, node: LexborNode) -> None:
        if tag in _HEADINGS:
            self._heading = _HEADINGS[tag]
        elif tag in _PRE:
            self._pre += 1
        elif tag == "hr":
            self._write(["---"])
        elif tag == "table":
            self._table += 1
        elif tag == "blockquote":
            self._marks.append(["> ", "> "] if len(self._marks) < _MAX_INDENT else ["", ""])
        elif tag in ("ul", "ol", "menu", "dir"):
            self._lists.append(_start(node) if tag == "ol" else None)
        elif tag in ("li", "dd"):
            self._marks.append(self._item_mark(tag))

    def _item_mark(self, tag: str) -> list[str]:
        if len(self._marks) >= _MAX_INDENT:
            return ["", ""]
        number = self._lists[-1] if self._lists and tag == "li" else None
        if number is None:
            return ["- ", "  "]
        self._lists[-1] = number + 1
        mark = f"{number}. "
        return [mark, " " * len(mark)]

    def _close(self, tag: str) -> None:
        if tag in _HEADINGS:
            self._heading = 0
        elif tag in _PRE:
            self._pre = max(0, self._pre - 1)
        elif tag in ("blockquote", "li", "dd") and self._marks:
            self._marks.pop()
            self._tight = tag != "blockquote"
        elif tag in ("ul", "ol", "menu", "dir") and self._lists:
            self._lists.pop()
            self._tight = bool(self._lists)

    def _close_span(self, tag: str, node: LexborNode) -> None:
        if not self._spans or self._spans[-1][0] != tag:
            return
        _, start = self._spans.pop()
        inner = "".join(self._pieces[start:])
        core = inner.strip(" \0")
        if not core:
            return
        before, after = " " * inner.startswith((" ", "\0")), " " * inner.endswith((" ", "\0"))
        self._pieces[start:] = [before + self._span(tag, core, node) + after]

    def _span(self, tag: str, core: str, node: LexborNode) -> str:
        if tag == "a":
            href = (node.attributes.get("href") or "").strip()
            target = self._resolve(href) if href and not href.startswith("#") else None
            if target is None or target.startswith("javascript:"):
                return core
            return f"[{core.replace(chr(0), ' ')}]({_link(target)})"
        if tag == "code":
            fence = "``" if "`" in core else "`"
            pad = " " if "`" in core else ""
            return f"{fence}{pad}{core.replace(chr(0), ' ')}{pad}{fence}"
        mark = _EMPHASIS[tag]
        # Emphasis within the same emphasis would end it.
        return core if core.startswith(mark) and core.endswith(mark) else f"{mark}{core}{mark}"

    def _image(self, node: LexborNode) -> None:
        attributes = node.attributes
        alt, source = (attributes.get("alt") or "").strip(), (attributes.get("src") or "").strip()
        target = self._resolve(source) if source and not source.startswith("data:") else None
        if alt and target is not None:
            label = _SPECIAL.sub(r"\\\1", " ".join(alt.split()))
            self._pieces.append(f"![{label}]({_link(target)})")

    def _cell(self, tag: str) -> None:
        if tag == "tr":
            self._rows.append([])
        self._pieces.clear()
        self._spans.clear()

    def _end_cell(self) -> None:
        if not self._rows:
            self._rows.append([])
        content = " ".join("".join(self._pieces).replace("\0", " ").split())
        self._rows[-1].append(content.replace("|", "\\|"))
        self._pieces.clear()
        self._spans.clear()

    def _end_table(self) -> None:
        self._table = max(0, self._table - 1)
        if self._table:
            return
        rows = [row for row in self._rows if any(row)]
        self._rows = []
        caption = "".join(self._pieces)
        self._pieces.clear()
        width = max((len(row) for row in rows), default=0)
        if width == 1:
            for row in rows:
                self._write([row[0]])
        elif rows:
            rows = [row + [""] * (width - len(row)) for row in rows]
            rows.insert(1, ["---"] * width)
            self._write([f"| {' | '.join(row)} |" for row in rows])
        self._pieces.append(caption)
        self.end_block()

    def end_block(self) -> None:
        """Writes what was gathered."""
        content = "".join(self._pieces)
        self._pieces.clear()
        self._spans.clear()
        if self._pre:
            if content.strip():
                fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", content)), 3)
                self._write([fence, *content.strip("\n").split("\n"), fence])
            return
        lines = [" ".join(line.split()) for line in content.split("\0")]
        lines = [line for line in lines if line]
        if not lines:
            return
        if self._heading:
            self._write([f"{'#' * self._heading} {' '.join(lines)}"])
        else:
            lines = ["\\" + line if _LINE_START.match(line) else line for line in lines]
            self._write([line + "\\" for line in lines[:-1]] + [lines[-1]])

    def _write(self, block: list[str]) -> None:
        fresh = any(mark[0] != mark[1] for mark in self._marks)
        if self.lines and not (self._tight and fresh):
            self.lines.append("".join(mark[1] for mark in self._marks if mark[0] == mark[1]).rstrip())
        for line in block:
            self.lines.append(("".join(mark[0] for mark in self._marks) + line).rstrip())
            for mark in self._marks:
                mark[0] = mark[1]
        self._tight = bool(self._lists)


def _start(node: LexborNode) -> int:
    start = (node.attributes.get("start") or "").strip()
    return int(start) if start.isascii() and start.isdigit() and len(start) < 10 else 1


def _link(target: str) -> str:
    return target.replace(" ", "%20").replace("(", "%28").replace(")", "%29")
