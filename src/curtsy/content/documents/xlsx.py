"""XLSX: one part per visible sheet, with its cells as they are shown."""

from __future__ import annotations

from collections.abc import Iterator

from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.model import Merged
from curtsy.content.documents.number_formats import BUILT_IN, general, shown_number
from curtsy.content.documents.packages import END, START, TEXT, Event, Package, core_facts
from curtsy.content.documents.sheets import Rows, write_sheet

_MAIN = "xl/workbook.xml"
_MOST_COLUMNS = 16_384
_MOST_ROWS = 1_048_576


def read_xlsx(builder: Builder, body: bytes, _content_type: str | None = None) -> None:
    package = Package(body, builder.limits)
    if _MAIN not in package:
        raise Unreadable("malformed")
    core_facts(builder, package)
    book = _Book(package)
    builder.page_count = len(book.sheets)
    for name, path in book.sheets:
        builder.begin("sheet", name)
        if path in package:
            _read_sheet(builder, package, book, path)


class _Book:
    """What the sheets share: strings and formats."""

    def __init__(self, package: Package) -> None:
        relations = package.relations(_MAIN)
        self.sheets: list[tuple[str, str]] = []
        self.is_1904 = False
        for event in package.events(_MAIN):
            if event.kind != START:
                continue
            if event.name == "s:sheet" and event.get("state") not in ("hidden", "veryHidden"):
                relation = relations.get(event.get("r:id"))
                self.sheets.append((event.get("name"), relation.target if relation else ""))
            elif event.name == "s:workbookPr":
                self.is_1904 = event.get("date1904") in ("1", "true")
        parts = {relation.kind: relation.target for relation in relations.values()}
        self.strings = _strings(package.optional(parts.get("sharedStrings", "xl/sharedStrings.xml")))
        self.formats = _formats(package.optional(parts.get("styles", "xl/styles.xml")))

    def shown(self, value: str, kind: str, style: str) -> str:
        if kind == "s":
            return self.strings[int(value)] if value.isdigit() and int(value[:9]) < len(self.strings) else ""
        if kind == "b":
            return "TRUE" if value == "1" else "FALSE"
        if kind not in ("", "n") or not value:
            return value
        code = self.formats[int(style)] if style.isdigit() and int(style[:9]) < len(self.formats) else ""
        if not code:
            try:
                return general(float(value))
            except (ValueError, OverflowError):
                return value
        return shown_number(value, code, self.is_1904)


def _strings(found: Iterator[Event]) -> list[str]:
    strings: list[str] = []
    pieces: list[str] = []
    reads = phonetic = False
    for event in found:
        if event.kind == TEXT:
            if reads:
                pieces.append(event.name)
        elif event.name == "s:t":
            reads = event.kind == START and not phonetic
        elif event.name == "s:rPh":
            phonetic = event.kind == START
        elif event.name == "s:si" and event.kind == END:
            strings.append("".join(pieces))
            pieces.clear()
    return strings


def _formats(found: Iterator[Event]) -> list[str]:
    """The format code of each style; empty: none."""
    codes: dict[str, str] = {str(number): code for number, code in BUILT_IN.items()}
    formats: list[str] = []
    in_cells = False
    for event in found:
        if event.name == "s:cellXfs":
            in_cells = event.kind == START
        elif event.kind == START and event.name == "s:numFmt":
            codes[event.get("numFmtId")] = event.get("formatCode")
        elif event.kind == START and event.name == "s:xf" and in_cells:
            formats.append(codes.get(event.get("numFmtId"), ""))
    return formats


def _read_sheet(builder: Builder, package: Package, book: _Book, path: str) -> None:
    sheet = _Sheet(builder, book)
    try:
        sheet.read(package.events(path))
    except Unreadable as ended:
        if ended.problem != "malformed":
            raise
        write_sheet(builder, sheet.rows)
        raise
    relations = package.relations(path)
    for one in sheet.links:
        if one in relations and relations[one].is_outside:
            builder.link(relations[one].target)
    write_sheet(builder, sheet.rows)


class _Sheet:
    def __init__(self, builder: Builder, book: _Book) -> None:
        self.rows = Rows(builder)
        self.links: list[str] = []
        self._book = book

    def read(self, found: Iterator[Event]) -> None:
        row = column = -1
        kind = style = ""
        pieces: list[str] = []
        reads = False
        for event in found:
            name = event.name
            if event.kind == TEXT:
                if reads:
                    pieces.append(name)
            elif name == "s:v" or name == "s:t":
                reads = event.kind == START
            elif name == "s:c":
                if event.kind == START:
                    attributes = event.attributes
                    kind, style = attributes.get("t", ""), attributes.get("s", "")
                    column = _column(attributes.get("r", "")) if "r" in attributes else column + 1
                    pieces.clear()
                elif pieces and 0 <= column < _MOST_COLUMNS:
                    self.rows.put(row, column, self._book.shown("".join(pieces), kind, style))
            elif event.kind == START:
                if name == "s:row":
                    number = event.get("r")
                    row = min(int(number[:9]) - 1, _MOST_ROWS) if number.isdigit() else row + 1
                    column = -1
                elif name == "s:mergeCell":
                    self._merge(event.get("ref"))
                elif name == "s:hyperlink":
                    self.links.append(event.get("r:id"))

    def _merge(self, area: str) -> None:
        first, _, last = area.partition(":")
        top, bottom = _row(first), _row(last)
        left, right = _column(first), _column(last)
        if 0 <= top <= bottom < _MOST_ROWS and 0 <= left <= right < _MOST_COLUMNS:
            self.rows.merge(Merged(top, left, bottom - top + 1, right - left + 1))


_LETTERS = {chr(code): code - 64 for code in range(65, 91)}
_known: dict[str, int] = {}


def _column(reference: str) -> int:
    """0 for A1, 27 for AB9; -1 for anything else."""
    letters = reference.rstrip("0123456789")
    found = _known.get(letters)
    if found is None:
        found = 0
        for letter in letters if len(letters) <= 3 else "":
            found = 26 * found + _LETTERS.get(letter, -20_000)
        found = found - 1 if 0 < found <= _MOST_COLUMNS else -1
        if len(_known) <= _MOST_COLUMNS:
            _known[letters] = found
    return found


def _row(reference: str) -> int:
    digits = reference.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
    return int(digits) - 1 if digits.isdigit() and len(digits) < 8 else -1
