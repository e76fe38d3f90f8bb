"""Small files of every kind, to be mutated."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from office_files import docx, epub, odf, paragraph, sheet, xlsx
from pdf_files import WORDS, lines, pages, pdf, string, table

_ROWS: list[list[str | float]] = [["Item", "Min", "Max"], ["Apple", 1.25, 2], ["Pear", 3, 4.5]]


def _pdf() -> list[bytes]:
    def draw(canvas: Any) -> None:
        canvas.setTitle("Sample")
        string(canvas, 50, 60, "A heading", 20)
        lines(canvas, WORDS, 50, 100, 220)
        lines(canvas, WORDS, 310, 100, 220)
        table(canvas, [["Item", "Min", "Max"], ["Apple", "1", "2"], ["Pear", "3", "4"]], [50, 200, 300], 500)
        canvas.linkURL("https://a.test/", (50, 600, 100, 620))

    return [pdf(draw), pdf(draw, pageCompression=0), pages(3), pdf(draw, encrypt="x")]


def _docx() -> list[bytes]:
    cells = "".join(f"<w:tc><w:tcPr><w:gridSpan w:val='2'/></w:tcPr>{paragraph(text)}</w:tc>" for text in "ab")
    styles = '<w:style w:styleId="H"><w:name w:val="heading 1"/></w:style>'
    body = paragraph("Heading", "H") + paragraph(WORDS) + f"<w:tbl><w:tr>{cells}</w:tr><w:tr>{cells}</w:tr></w:tbl>"
    link = '<w:p><w:hyperlink r:id="rId9"><w:r><w:t>x</w:t></w:r></w:hyperlink></w:p>'
    return [docx(body + link, {"rId9": "https://a.test/"}, styles=styles), _python_docx()]


def _python_docx() -> bytes:
    import docx as python_docx

    document = python_docx.Document()
    document.add_heading("Fruit", 1)
    document.add_paragraph(WORDS)
    document.add_table(rows=2, cols=2).cell(1, 1).text = "cell"
    return _saved(document)


def _saved(document: Any) -> bytes:
    body = io.BytesIO()
    document.save(body)
    return body.getvalue()


def _xlsx() -> list[bytes]:
    import openpyxl

    book = openpyxl.Workbook()
    first = book.active
    assert first is not None
    for row in _ROWS:
        first.append(row)
    first.merge_cells("A4:C5")
    first["B2"].number_format = "0.00%"
    return [_saved(book), xlsx({"A": sheet(_ROWS), "B": sheet(_ROWS)}, "<si><t>x</t></si>")]


def _pptx() -> list[bytes]:
    import pptx as python_pptx
    from pptx.util import Inches

    deck = python_pptx.Presentation()
    for n in range(2):
        slide = deck.slides.add_slide(deck.slide_layouts[5])
        slide.shapes.title.text = f"Slide {n}"
        made = slide.shapes.add_table(2, 2, Inches(1), Inches(2), Inches(6), Inches(2)).table
        made.cell(1, 1).text = WORDS
    return [_saved(deck)]


def _odf(kind: str) -> list[bytes]:
    cell = '<table:table-cell table:number-columns-repeated="2"><text:p>cell</text:p></table:table-cell>'
    rows = f'<table:table-row table:number-rows-repeated="3">{cell}{cell}</table:table-row>' * 3
    made = f'<table:table table:name="T">{rows}</table:table>'
    text = f'<text:h text:outline-level="1">Top</text:h><text:p>{WORDS}<text:s text:c="9"/></text:p>'
    frame = f'<draw:frame presentation:class="title"><draw:text-box>{text}</draw:text-box></draw:frame>'
    slide = f"<draw:page>{frame}</draw:page>"
    bodies = {"text": text + made, "spreadsheet": made, "presentation": slide * 2}
    return [odf(kind, bodies[kind], meta="<dc:title>T</dc:title>")]


def _rtf() -> list[bytes]:
    return [
        b"{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0\\fcharset0 Times;}{\\f1\\fcharset204 Arial;}}{\\info{\\title T}}"
        b"{\\stylesheet{\\s2 heading 2;}}\\pard\\s2 Heading\\par\\pard " + WORDS.encode() + b"\\'e9\\u8364?\\par"
        b"\\trowd\\pard\\intbl Item\\cell Price\\cell\\row\\trowd\\pard\\intbl Fig\\cell 7\\cell\\row\\pard"
        b'{\\field{\\*\\fldinst HYPERLINK "https://a.test/"}{\\fldrslt link}}{\\pict\\bin4 \0\1\2\3}\\par}'
    ]


def _epub() -> list[bytes]:
    chapter = f"<h1>One</h1><p>{WORDS}</p><table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>"
    return [epub({"a.xhtml": chapter, "b.xhtml": chapter}, "<dc:title>T</dc:title>")]


#: kind -> makes its samples
SAMPLES: dict[str, Callable[[], list[bytes]]] = {
    "pdf": _pdf,
    "docx": _docx,
    "xlsx": _xlsx,
    "pptx": _pptx,
    "odt": lambda: _odf("text"),
    "ods": lambda: _odf("spreadsheet"),
    "odp": lambda: _odf("presentation"),
    "rtf": _rtf,
    "epub": _epub,
    "csv": lambda: [b'Name,Price,"Since, when"\nApple,1.20,2020\n"Pe""ar",2.50,\n' * 5, b"a;b\n1;2\n"],
    "text": lambda: [WORDS.encode() * 3, "Größe\r\n".encode("utf-16") * 9],
}
