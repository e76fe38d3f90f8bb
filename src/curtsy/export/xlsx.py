"""Tables as sheets of an Excel workbook (Office Open XML), streamed: memory does not grow with the table.

Text is written as text: no cell of a page can become a formula. Excel allows 1,048,576 rows in a sheet and 32,767
characters in a cell: more rows continue on another sheet, and a longer text is cut and ends with `...`.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from curtsy.export.tables import Columns, Sink, Table, Tally, as_text, joined

MOST_ROWS = 1_048_576
MOST_CHARS = 32_767
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
#: what XML 1.0 cannot hold, also not as a reference
_NOT_XML = re.compile(r"[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
#: Excel reads _xHHHH_ as a character
_ESCAPE = re.compile(r"_(?=x[0-9A-Fa-f]{4}_)")
_NOT_A_NAME = re.compile(r"[\[\]:*?/\\']")
#: beyond this, Excel rounds an integer
_EXACT = 1 << 53


def workbook(tables: Sequence[Table], written: Tally) -> Iterator[bytes]:
    """Return the file; `written` counts the rows of the first table."""
    return joined(_workbook(tables, written))


def _workbook(tables: Sequence[Table], written: Tally) -> Iterator[bytes]:
    sink, names = Sink(), list[str]()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED, compresslevel=4) as package:
        for at, (name, columns, rows) in enumerate(tables):
            found = iter(written.each(rows()) if at == 0 else rows())
            first: list[dict[str, Any]] = list(islice(found, 1))
            more = 1
            while first or more == 1:
                names.append(_sheet_name(name, more, names))
                part = chain(first, islice(found, MOST_ROWS - 1 - len(first)))
                with package.open(_info(f"xl/worksheets/sheet{len(names)}.xml"), "w", force_zip64=True) as file:
                    for block in joined(_sheet(columns, part)):
                        file.write(block)
                        yield sink.take()
                first, more = list(islice(found, 1)), more + 1
        for path, content in _frame(names):
            package.writestr(_info(path), content)
    yield sink.take()


def _info(path: str) -> zipfile.ZipInfo:
    """Without the time: equal tables make equal files."""
    info = zipfile.ZipInfo(path)
    info.compress_type = zipfile.ZIP_DEFLATED
    return info


def _sheet_name(name: str, part: int, taken: Sequence[str]) -> str:
    """At most 31 characters, and no other sheet's name."""
    plain = _NOT_A_NAME.sub("_", name)
    number = part
    while True:
        end = "" if number == 1 else f"_{number}"
        found = plain[: 31 - len(end)] + end
        if found.lower() not in {one.lower() for one in taken}:
            return found
        number += 1


def _sheet(columns: Columns, rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    yield (
        f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetViews><sheetView workbookViewId="0">'
        '<pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/></sheetView></sheetViews>'
        f"<sheetData>{_row(list(columns))}"
    ).encode()
    for row in rows:
        shown = as_text(row, columns)
        yield _row([shown[name] for name in columns]).encode("utf-8", "replace")
    yield b"</sheetData></worksheet>"


def _row(values: Iterable[Any]) -> str:
    return f"<row>{''.join(map(_cell, values))}</row>"


def _cell(value: Any) -> str:
    if value is None:
        return "<c/>"
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    if (isinstance(value, int) and abs(value) <= _EXACT) or (isinstance(value, float) and value - value == 0):
        return f"<c><v>{value!r}</v></c>"
    return f'<c t="inlineStr"><is><t xml:space="preserve">{_escaped(str(value))}</t></is></c>'


def _escaped(text: str) -> str:
    if len(text) > MOST_CHARS:
        text = text[: MOST_CHARS - 3] + "..."
    return escape(_ESCAPE.sub("_x005F_", _NOT_XML.sub("\ufffd", text)))


def _frame(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The parts that make sheets a workbook."""
    numbers = range(1, len(names) + 1)
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{_TYPE}.worksheet+xml"/>' for n in numbers
    )
    yield (
        "[Content_Types].xml",
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
        'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_TYPE}.sheet.main+xml"/>{overrides}</Types>',
    )
    yield "_rels/.rels", _relations([("rId1", "officeDocument", "xl/workbook.xml")])
    yield (
        "xl/_rels/workbook.xml.rels",
        _relations([(f"rId{n}", "worksheet", f"worksheets/sheet{n}.xml") for n in numbers]),
    )
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{n}" r:id="rId{n}"/>' for n, name in zip(numbers, names, strict=True)
    )
    yield (
        "xl/workbook.xml",
        f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets></workbook>',
    )


def _relations(parts: Iterable[tuple[str, str, str]]) -> str:
    listed = "".join(f'<Relationship Id="{id}" Type="{_OFFICE}/{kind}" Target="{to}"/>' for id, kind, to in parts)
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{listed}</Relationships>'
