"""PPTX: one part per slide, with its title, paragraphs, tables and notes."""

from __future__ import annotations

from collections.abc import Iterator

from curtsy.content.documents.builder import Builder, Unreadable
from curtsy.content.documents.cells import OpenTable
from curtsy.content.documents.packages import START, TEXT, Event, Package, Relation, core_facts, skip

_MAIN = "ppt/presentation.xml"
_TITLES = frozenset(("title", "ctrTitle"))
#: placeholders that repeat on every slide
_REPEATED = frozenset(("dt", "ftr", "sldNum", "hdr", "sldImg"))


def read_pptx(builder: Builder, body: bytes, _content_type: str | None = None) -> None:
    package = Package(body, builder.limits)
    if _MAIN not in package:
        raise Unreadable("malformed")
    core_facts(builder, package)
    relations = package.relations(_MAIN)
    order = [event.get("r:id") for event in package.events(_MAIN) if event.kind == START and event.name == "p:sldId"]
    slides = [relations[one].target for one in order if one in relations]
    builder.page_count = len(slides)
    broken = False
    for slide in slides:
        builder.begin("slide")
        try:
            _read_slide(builder, package, slide)
        except Unreadable as ended:
            if ended.problem != "malformed":
                raise
            broken = True
    if broken:
        raise Unreadable("malformed")


def _read_slide(builder: Builder, package: Package, slide: str) -> None:
    relations = package.relations(slide)
    _Slide(builder, relations).read(package.events(slide))
    for relation in relations.values():
        if relation.kind == "notesSlide" and relation.target in package:
            _Slide(builder, package.relations(relation.target)).read(package.optional(relation.target))


class _Slide:
    def __init__(self, builder: Builder, relations: dict[str, Relation]) -> None:
        self._builder = builder
        self._relations = relations
        self._table: OpenTable | None = None
        self._paragraph: list[str] | None = None
        self._placeholder = ""
        self._reads_text = False
        self._covers = False

    def read(self, found: Iterator[Event]) -> None:
        try:
            for event in found:
                if event.kind == TEXT:
                    if self._reads_text and self._paragraph is not None:
                        self._paragraph.append(event.name)
                elif event.kind != START:
                    self._end(event.name)
                elif event.name == "mc:Fallback":
                    skip(found, event.name)
                else:
                    self._start(event)
        finally:
            if self._table is not None:
                self._table.write(self._builder)

    def _start(self, event: Event) -> None:
        name = event.name
        if name == "a:t":
            self._reads_text = True
        elif name == "a:p":
            self._paragraph = []
        elif name in ("a:br", "a:tab") and self._paragraph is not None:
            self._paragraph.append(" ")
        elif name in ("p:sp", "p:graphicFrame"):
            self._placeholder = ""
        elif name == "p:ph":
            self._placeholder = event.get("type")
        elif name == "a:hlinkClick":
            relation = self._relations.get(event.get("r:id"))
            if relation is not None and relation.is_outside:
                self._builder.link(relation.target)
        elif name == "a:tbl":
            self._table = OpenTable()
        elif self._table is not None:
            self._start_in_table(self._table, event)

    def _start_in_table(self, table: OpenTable, event: Event) -> None:
        if event.name == "a:tblPr" and event.get("firstRow") in ("1", "true"):
            table.header_rows = 1
        elif event.name == "a:tr":
            table.start_row()
        elif event.name == "a:tc":
            self._covers = "1" in (event.get("hMerge"), event.get("vMerge"))
            table.start_cell()
            table.merge(_count(event, "rowSpan"), _count(event, "gridSpan"))

    def _end(self, name: str) -> None:
        if name == "a:t":
            self._reads_text = False
        elif name == "a:p" and self._paragraph is not None:
            self._write("".join(self._paragraph))
            self._paragraph = None
        elif name == "a:tc" and self._table is not None:
            self._table.end_cell("rest" if self._covers else "")
        elif name == "a:tbl" and self._table is not None:
            self._table.write(self._builder)
            self._table = None

    def _write(self, text: str) -> None:
        if self._table is not None and self._table.add(text):
            return
        if self._placeholder in _TITLES:
            self._builder.paragraph(text, 2)
            self._builder.name_part(text)
        elif self._placeholder not in _REPEATED:
            self._builder.paragraph(text)


def _count(event: Event, name: str) -> int:
    value = event.get(name)
    return int(value[:6]) if value.isdigit() else 1
