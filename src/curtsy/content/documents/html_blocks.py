"""The blocks of an HTML chapter: headings, paragraphs, items and tables."""

from __future__ import annotations

from selectolax.lexbor import LexborHTMLParser, LexborNode

from curtsy.content.documents.builder import Builder
from curtsy.content.documents.cells import OpenTable
from curtsy.content.parser_limits import tame

_UNSEEN = frozenset(
    ("head", "script", "style", "template", "noscript", "svg", "math", "iframe", "object", "audio", "video",
     "-comment", "-doctype")
)  # fmt: skip
_BLOCKS = frozenset(
    ("address", "article", "aside", "blockquote", "body", "caption", "dd", "details", "div", "dl", "dt", "fieldset",
     "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "legend",
     "li", "main", "nav", "ol", "p", "pre", "section", "summary", "table", "tbody", "tfoot", "thead", "tr", "ul")
)  # fmt: skip
_LEVELS = {f"h{n}": n for n in range(1, 7)}


def write_html(builder: Builder, html: bytes) -> None:
    root = LexborHTMLParser(tame(html)[0]).root
    if root is not None:
        _Blocks(builder).read(root)


class _Blocks:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._pieces: list[str] = []
        self._tables: list[OpenTable] = []
        self._level = 0
        self._is_item = False

    def read(self, root: LexborNode) -> None:
        """Walks the tree without recursion."""
        node: LexborNode | None = root
        depth = 0
        while node is not None:
            tag = node.tag or ""
            if tag == "-text":
                self._pieces.append(node.text_content or "")
            elif tag not in _UNSEEN:
                self._enter(tag, node)
                if node.first_child is not None:
                    node, depth = node.first_child, depth + 1
                    continue
                self._leave(tag)
            while depth and node is not None and node.next is None:
                node, depth = node.parent, depth - 1
                if node is not None:
                    self._leave(node.tag or "")
            node = node.next if depth and node is not None else None
        self._end_block()

    def _enter(self, tag: str, node: LexborNode) -> None:
        if tag == "a":
            self._builder.link(node.attributes.get("href") or "")
        elif tag == "br":
            self._end_block()
        elif tag in ("td", "th"):
            self._start_cell(tag, node)
        elif tag in _BLOCKS:
            self._end_block()
            self._level = _LEVELS.get(tag, self._level)
            self._is_item = tag == "li" or (self._is_item and tag not in ("ul", "ol", "section"))
            if tag == "table":
                self._tables.append(OpenTable())
            elif tag == "tr" and self._tables:
                self._tables[-1].start_row()

    def _start_cell(self, tag: str, node: LexborNode) -> None:
        if self._tables:
            table = self._tables[-1]
            self._end_block()
            table.start_cell()
            table.widen(_number(node.attributes.get("colspan")))
            if tag == "th" and not any(table.rows[-1]) and len(table.rows) == 1:
                table.mark_header()

    def _leave(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._end_block()
            if self._tables:
                self._tables[-1].end_cell()
        elif tag in _BLOCKS:
            self._end_block()
            if tag in _LEVELS:
                self._level = 0
            elif tag == "li":
                self._is_item = False
            elif tag == "table" and self._tables:
                table = self._tables.pop()
                if self._tables:
                    self._tables[-1].add(table.text())
                else:
                    table.write(self._builder)

    def _end_block(self) -> None:
        text = "".join(self._pieces)
        self._pieces.clear()
        if not text.strip() or (self._tables and self._tables[-1].add(text)):
            return
        self._builder.paragraph(text, self._level, "- " if self._is_item and not self._level else "")
        if self._level:
            self._builder.name_part(text)


def _number(value: str | None) -> int:
    return int(value[:4]) if value and value.isascii() and value.isdigit() else 1
