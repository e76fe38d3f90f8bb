"""ODT, ODS and ODP: paragraphs, headings, lists, tables, sheets, slides, links and notes."""

from __future__ import annotations

from collections.abc import Iterator

from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.cells import OpenTable
from curtsy.content.documents.model import Merged
from curtsy.content.documents.packages import START, TEXT, Event, Package, skip, text_facts
from curtsy.content.documents.sheets import Rows, write_sheet

_SKIPPED = frozenset(
    ("text:tracked-changes", "office:annotation", "office:forms", "text:ruby-text", "draw:object", "svg:desc",
     "office:scripts", "office:font-face-decls", "table:tracked-changes", "table:named-expressions")
)  # fmt: skip
_FACTS = {
    "dc:title": "title", "dc:creator": "author", "meta:initial-creator": "author", "meta:creation-date": "created",
    "dc:date": "modified", "dc:language": "language",
}  # fmt: skip
_MOST_REPEATED = 1_000
_MOST_COLUMNS = 16_384


def read_odf(builder: Builder, body: bytes, _content_type: str | None = None) -> None:
    package = Package(body, builder.limits)
    if any(event.name.endswith(":encryption-data") for event in package.optional("META-INF/manifest.xml")):
        raise Unreadable("encrypted")
    if "content.xml" not in package:
        raise Unreadable("malformed")
    text_facts(builder, package.optional("meta.xml"), _FACTS.get)
    reader = _Spreadsheet(builder) if builder.kind == "ods" else _Content(builder)
    reader.read(package.events("content.xml"))


def _count(event: Event, name: str, most: int = _MOST_REPEATED) -> int:
    value = event.get(name)
    return max(1, min(int(value[:9]), most)) if value.isdigit() else 1


def _hidden_styles(event: Event) -> bool:
    return event.name == "style:text-properties" and event.get("text:display") == "none"


class _Content:
    """A text or a presentation."""

    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._tables: list[OpenTable] = []
        #: pieces of text and level of each open paragraph: a frame has paragraphs inside of one
        self._open: list[tuple[list[str], int]] = []
        self._items = 0
        self._style = ""
        self._hidden: set[str] = set()
        self._class = ""

    def read(self, found: Iterator[Event]) -> None:
        try:
            for event in found:
                if event.kind == TEXT:
                    if self._open:
                        self._open[-1][0].append(event.name)
                elif event.kind != START:
                    self._end(event.name)
                elif event.name in _SKIPPED or (event.name == "text:span" and self._is_hidden(event)):
                    skip(found, event.name)
                else:
                    self._start(event)
        finally:
            while self._tables:
                self._tables.pop().write(self._builder)

    def _is_hidden(self, event: Event) -> bool:
        return event.get("text:style-name") in self._hidden

    def _start(self, event: Event) -> None:
        name = event.name
        if name in ("text:p", "text:h"):
            self._open.append(([], _count(event, "text:outline-level", 6) if name == "text:h" else 0))
        elif name == "text:s":
            self._piece(" ")
        elif name in ("text:tab", "text:line-break"):
            self._piece("\t" if name == "text:tab" else "\n")
        elif name in ("text:a", "draw:a"):
            self._builder.link(event.get("xlink:href"))
        elif name == "text:list-item":
            self._items += 1
        elif name == "style:style":
            self._style = event.get("style:name")
        elif _hidden_styles(event):
            self._hidden.add(self._style)
        elif name == "draw:page":
            self._builder.begin("slide")
            self._class = ""
        elif name in ("draw:frame", "draw:custom-shape"):
            self._class = event.get("presentation:class")
        elif name.startswith("table:"):
            self._start_table(event)

    def _piece(self, text: str) -> None:
        if self._open:
            self._open[-1][0].append(text)

    def _start_table(self, event: Event) -> None:
        name = event.name
        if name == "table:table":
            self._tables.append(OpenTable())
        elif not self._tables:
            return
        elif name == "table:table-row":
            self._tables[-1].start_row()
        elif name == "table:table-cell":
            self._tables[-1].start_cell()
            rows, columns = _count(event, "table:number-rows-spanned"), _count(event, "table:number-columns-spanned")
            self._tables[-1].merge(rows, columns)
        elif name == "table:covered-table-cell":
            self._tables[-1].start_cell()

    def _end(self, name: str) -> None:
        if name in ("text:p", "text:h") and self._open:
            pieces, level = self._open.pop()
            self._write("".join(pieces), level)
        elif name == "text:list-item":
            self._items = max(0, self._items - 1)
        elif not self._tables:
            return
        elif name in ("table:table-cell", "table:covered-table-cell"):
            self._tables[-1].end_cell("rest" if name == "table:covered-table-cell" else "")
        elif name == "table:table-header-rows":
            self._tables[-1].header_rows = len(self._tables[-1].rows)
        elif name == "table:table":
            table = self._tables.pop()
            if self._tables:
                self._tables[-1].add(table.text())
            else:
                table.write(self._builder)

    def _write(self, text: str, level: int) -> None:
        if self._tables and self._tables[-1].add(text):
            return
        if self._class == "title":
            level = 2
            self._builder.name_part(text)
        if self._class not in ("date-time", "footer", "header", "page-number", "page"):
            for line in text.split("\n"):
                self._builder.paragraph(line, level, "- " if self._items and not level else "")


class _Spreadsheet:
    def __init__(self, builder: Builder) -> None:
        self._builder = builder
        self._rows = Rows(builder)
        self._row = self._column = -1
        self._row_repeats = 1
        self._is_open = False
        #: styles of tables that are not shown
        self._hidden: set[str] = set()
        self._style = ""

    def read(self, found: Iterator[Event]) -> None:
        cell: list[str] = []
        depth = 0
        event_of_cell: Event | None = None
        try:
            for event in found:
                if event.kind == TEXT:
                    if depth:
                        cell.append(event.name)
                elif event.kind == START:
                    if event.name in _SKIPPED:
                        skip(found, event.name)
                    elif event.name == "text:p":
                        depth += 1
                        cell.append(" ")
                    elif event.name in ("table:table-cell", "table:covered-table-cell"):
                        event_of_cell = event
                        cell.clear()
                    elif event.name == "table:table" and event.get("table:style-name") in self._hidden:
                        skip(found, event.name)
                    else:
                        self._start(event)
                elif event.name == "text:p":
                    depth = max(0, depth - 1)
                elif event.name in ("table:table-cell", "table:covered-table-cell") and event_of_cell is not None:
                    self._cell(event_of_cell, "".join(cell).strip())
                    event_of_cell = None
                elif event.name == "table:table":
                    self._end_sheet()
        finally:
            if self._is_open:
                self._end_sheet()

    def _start(self, event: Event) -> None:
        name = event.name
        if name == "table:table":
            self._builder.begin("sheet", event.get("table:name"))
            self._rows, self._row, self._is_open = Rows(self._builder), -1, True
            self._row_repeats = 1
        elif name == "table:table-row":
            self._row += self._row_repeats
            self._row_repeats = _count(event, "table:number-rows-repeated", 2_000_000)
            self._column = 0
        elif name == "text:a":
            self._builder.link(event.get("xlink:href"))
        elif name == "style:style":
            self._style = event.get("style:name")
        elif name == "style:table-properties" and event.get("table:display") == "false":
            self._hidden.add(self._style)

    def _cell(self, event: Event, text: str) -> None:
        repeats = _count(event, "table:number-columns-repeated", _MOST_COLUMNS)
        rows, columns = _count(event, "table:number-rows-spanned"), _count(event, "table:number-columns-spanned")
        if text:
            if rows > 1 or columns > 1:
                self._rows.merge(Merged(self._row, self._column, rows, columns))
            for row in range(min(self._row_repeats, _MOST_REPEATED)):
                for column in range(min(repeats, _MOST_REPEATED)):
                    if self._column + column < _MOST_COLUMNS:
                        self._rows.put(self._row + row, self._column + column, text)
        self._column += repeats

    def _end_sheet(self) -> None:
        self._is_open = False
        write_sheet(self._builder, self._rows)
