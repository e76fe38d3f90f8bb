"""DOCX: paragraphs, headings by their styles, lists, tables, links, footnotes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.cells import OpenTable
from curtsy.content.documents.packages import START, TEXT, Event, Package, Relation, core_facts, skip

_HEADING = re.compile(r"heading ?([1-9])")
#: deleted text is `w:delText`, which is not read; `mc:Fallback` repeats what comes before it
_SKIPPED = frozenset(
    ("w:del", "w:moveFrom", "mc:Fallback", "w:instrText", "w:sectPr", "w:sdtPr", "w:rubyPr", "w:commentReference")
)
_BREAKS = {"w:tab": "\t", "w:br": "\n", "w:cr": "\n", "w:noBreakHyphen": "-", "w:ptab": "\t"}
_OFF = frozenset(("0", "false", "off"))


def read_docx(builder: Builder, body: bytes, _content_type: str | None = None) -> None:
    package = Package(body, builder.limits)
    main = _main_part(package)
    core_facts(builder, package)
    levels, language = _styles(package, main)
    relations = package.relations(main)
    try:
        _Text(builder, levels, relations).read(package.events(main))
        for name in ("footnotes", "endnotes"):
            path = f"{main.rpartition('/')[0]}/{name}.xml"
            _Text(builder, levels, package.relations(path)).read(package.optional(path))
    finally:
        builder.facts(language=language)


def _main_part(package: Package) -> str:
    for relation in package.relations("").values():
        if relation.kind == "officeDocument" and relation.target in package:
            return relation.target
    if "word/document.xml" not in package:
        raise Unreadable("malformed")
    return "word/document.xml"


def _styles(package: Package, main: str) -> tuple[dict[str, int], str]:
    """Style -> level of a heading, and the language of the text."""
    levels: dict[str, int] = {}
    based: dict[str, str] = {}
    style = language = ""
    for event in package.optional(f"{main.rpartition('/')[0]}/styles.xml"):
        if event.kind != START:
            continue
        if event.name == "w:style":
            style = event.get("w:styleId")
        elif event.name == "w:name" and style:
            name = event.get("w:val").lower()
            if found := _HEADING.fullmatch(name):
                levels[style] = int(found[1])
            elif name == "title":
                levels[style] = 1
        elif event.name == "w:basedOn":
            based[style] = event.get("w:val")
        elif event.name == "w:outlineLvl" and event.get("w:val").isdigit() and int(event.get("w:val")) < 9:
            levels.setdefault(style, int(event.get("w:val")) + 1)
        elif event.name == "w:lang" and not language:
            language = event.get("w:val")
    for style in based:
        parent, steps = style, 0
        while parent not in levels and parent in based and steps < 20:
            parent, steps = based[parent], steps + 1
        if parent in levels:
            levels.setdefault(style, levels[parent])
    return levels, language


class _Text:
    """Writes the events of a part to the builder."""

    def __init__(self, builder: Builder, levels: dict[str, int], relations: dict[str, Relation]) -> None:
        self._builder = builder
        self._levels = levels
        self._relations = relations
        self._tables: list[OpenTable] = []
        #: one entry per open paragraph: a text box has paragraphs inside of one
        self._paragraphs: list[list[str]] = []
        self._level = 0
        self._is_item = False
        self._is_hidden = False
        self._falls = ""
        self._reads_text = False

    def read(self, found: Iterator[Event]) -> None:
        try:
            for event in found:
                if event.kind == TEXT:
                    if self._reads_text and self._paragraphs and not self._is_hidden:
                        self._paragraphs[-1].append(event.name)
                elif event.kind == START:
                    if event.name == "w:instrText":
                        self._field(found)
                    elif event.name in _SKIPPED:
                        skip(found, event.name)
                    else:
                        self._start(event)
                else:
                    self._end(event.name)
        finally:
            self._finish()

    def _finish(self) -> None:
        """Ends elements that a broken file does not close."""
        while self._tables:
            table = self._tables.pop()
            table.write(self._builder)

    def _field(self, found: Iterator[Event]) -> None:
        """`HYPERLINK "address"`."""
        code = ""
        for event in found:
            if event.kind == TEXT:
                code += event.name
            else:
                break
        words = code.split('"')
        if words[0].strip() == "HYPERLINK" and len(words) > 1:
            self._builder.link(words[1])

    def _start(self, event: Event) -> None:
        name = event.name
        if name == "w:t":
            self._reads_text = True
        elif name == "w:p":
            self._paragraphs.append([])
            self._level, self._is_item = 0, False
        elif name in _BREAKS:
            if self._paragraphs:
                self._paragraphs[-1].append(_BREAKS[name])
        elif name == "w:r":
            self._is_hidden = False
        elif name == "w:vanish":
            self._is_hidden = event.get("w:val") not in _OFF
        elif name == "w:pStyle":
            self._level = self._levels.get(event.get("w:val"), 0)
            self._is_item = self._is_item or event.get("w:val").startswith("List")
        elif name == "w:outlineLvl" and event.get("w:val").isdigit() and int(event.get("w:val")) < 9:
            self._level = int(event.get("w:val")) + 1
        elif name == "w:numPr":
            self._is_item = True
        elif name == "w:hyperlink":
            relation = self._relations.get(event.get("r:id"))
            if relation is not None and relation.is_outside:
                self._builder.link(relation.target)
        elif name.startswith("w:t"):
            self._start_table(event)
        elif name in ("w:gridSpan", "w:vMerge") and self._tables:
            self._span(event)

    def _start_table(self, event: Event) -> None:
        if event.name == "w:tbl":
            self._tables.append(OpenTable())
        elif self._tables:
            table = self._tables[-1]
            if event.name == "w:tr":
                table.start_row()
            elif event.name == "w:tblHeader" and event.get("w:val") not in _OFF:
                table.mark_header()
            elif event.name == "w:tc":
                table.start_cell()
                self._falls = ""

    def _span(self, event: Event) -> None:
        value = event.get("w:val")
        if event.name == "w:gridSpan" and value.isdigit():
            self._tables[-1].widen(int(value[:6]))
        elif event.name == "w:vMerge":
            self._falls = "start" if value == "restart" else "rest"

    def _end(self, name: str) -> None:
        if name == "w:t":
            self._reads_text = False
        elif name == "w:r":
            self._is_hidden = False
        elif name == "w:p" and self._paragraphs:
            self._write("".join(self._paragraphs.pop()))
        elif name == "w:tc" and self._tables:
            self._tables[-1].end_cell(self._falls)
            self._falls = ""
        elif name == "w:tbl" and self._tables:
            table = self._tables.pop()
            if self._tables:
                self._tables[-1].add(table.text())
            else:
                table.write(self._builder)

    def _write(self, text: str) -> None:
        if self._tables and self._tables[-1].add(text):
            return
        for line in text.split("\n"):
            self._builder.paragraph(line, self._level, "- " if self._is_item and not self._level else "")
