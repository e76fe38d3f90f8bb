"""Writes a content into a file of each kind, with libraries that the readers do not use."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import docx
import openpyxl
import pptx
from document_contents import Content, Section
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import OxmlElement
from docx.oxml.ns import qn
from office_files import epub, odf
from pptx.util import Inches
from reportlab.lib.pagesizes import A4, landscape
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.pdfmetrics import registerFont, stringWidth
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph, SimpleDocTemplate, Spacer, Table, TableStyle

_JAPANESE = "HeiseiMin-W3"


def _saved(document: Any) -> bytes:
    body = io.BytesIO()
    document.save(body)
    return body.getvalue()


def _facts(properties: Any, content: Content) -> None:
    properties.title = content.title
    setattr(properties, "creator" if hasattr(properties, "creator") else "author", content.author)


# PDF


def _font(content: Content) -> str:
    if content.latin:
        return "Helvetica"
    registerFont(UnicodeCIDFont(_JAPANESE))
    return _JAPANESE


def placed(content: Content) -> Iterator[tuple[int, float, float, float, str]]:
    """(page, x, baseline from the top, size, text) of every line of the PDF with known places: a page per section."""
    for page, section in enumerate(content.sections, 1):
        yield page, 60, 80, 20, section.heading
        top = 120.0
        for paragraph in section.paragraphs:
            for line in _broken(paragraph, 470, _font(content), 11):
                yield page, 60, top, 11, line
                top += 14
            top += 16
        for row in section.table:
            for x, cell in zip(_columns(section), row, strict=True):
                yield page, x, top, 11, cell
            top += 18


def _columns(section: Section) -> list[float]:
    return [60 + 120 * n for n in range(len(section.table[0]))]


def _broken(text: str, width: float, font: str, size: float) -> Iterator[str]:
    words = text.split(" ") if " " in text else [text]
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if line and stringWidth(longer, font, size) > width:
            yield line
            line = word
        else:
            line = longer
    yield line


def pdf(content: Content) -> bytes:
    body = io.BytesIO()
    canvas = Canvas(body, pagesize=A4, invariant=1, lang=content.language)
    canvas.setTitle(content.title)
    canvas.setAuthor(content.author)
    current = 1
    for page, x, top, size, text in placed(content):
        if page != current:
            canvas.showPage()
            current = page
        canvas.setFont(_font(content), size)
        canvas.drawString(x, A4[1] - top, text)
    for n, link in enumerate(content.links):
        canvas.linkURL(link, (60, 60 + 20 * n, 200, 75 + 20 * n))
    canvas.save()
    return body.getvalue()


def pdf_flowing(content: Content) -> bytes:
    """Laid out by a typesetter: landscape, ruled tables, links within paragraphs."""
    styles = getSampleStyleSheet()
    font = _font(content)
    for name in ("Heading1", "BodyText"):
        styles[name].fontName = font
    rules = [("GRID", (0, 0), (-1, -1), 0.5, (0, 0, 0)), ("FONTNAME", (0, 0), (-1, -1), font)]
    flow: list[Any] = []
    for section in content.sections:
        flow.append(Paragraph(escape(section.heading), styles["Heading1"]))
        flow += [Paragraph(escape(text), styles["BodyText"]) for text in section.paragraphs]
        if section.table:
            flow += [Spacer(1, 12), Table(section.table, style=TableStyle(rules), hAlign="LEFT"), Spacer(1, 12)]
    body = io.BytesIO()
    SimpleDocTemplate(
        body, pagesize=landscape(A4), title=content.title, author=content.author, invariant=1, lang=content.language
    ).build(flow)
    return body.getvalue()


# Office


def docx_file(content: Content) -> bytes:
    document = docx.Document()
    _facts(document.core_properties, content)
    document.core_properties.language = content.language
    for section in content.sections:
        document.add_heading(section.heading, 1)
        for text in section.paragraphs:
            document.add_paragraph(text)
        if section.table:
            table = document.add_table(rows=0, cols=len(section.table[0]))
            for row in section.table:
                for cell, text in zip(table.add_row().cells, row, strict=True):
                    cell.text = text
    last = document.add_paragraph("")
    for link in content.links:
        _docx_link(last, link)
    return _saved(document)


def _docx_link(paragraph: Any, link: str) -> None:
    element = OxmlElement("w:hyperlink")
    element.set(qn("r:id"), paragraph.part.relate_to(link, RELATIONSHIP_TYPE.HYPERLINK, is_external=True))
    element.append(paragraph.add_run("link ")._r)
    paragraph._p.append(element)


def xlsx_file(content: Content) -> bytes:
    book = openpyxl.Workbook()
    book.remove(book.worksheets[0])
    _facts(book.properties, content)
    links = iter(content.links)
    for section in content.sections:
        sheet = book.create_sheet(section.heading)
        for text in section.paragraphs:
            sheet.append([text])
        sheet.append([])
        for row in section.table:
            sheet.append(list(row))
        if link := next(links, None):
            sheet["A1"].hyperlink = link
    return _saved(book)


def pptx_file(content: Content) -> bytes:
    deck = pptx.Presentation()
    _facts(deck.core_properties, content)
    for section in content.sections:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = section.heading
        frame = slide.placeholders[1].text_frame
        frame.text = section.paragraphs[0]
        for text in section.paragraphs[1:]:
            frame.add_paragraph().text = text
        if section.table:
            _pptx_table(slide, section.table)
    run = deck.slides[0].placeholders[1].text_frame.paragraphs[0].runs[0]
    run.hyperlink.address = content.links[0]
    return _saved(deck)


def _pptx_table(slide: Any, rows: tuple[tuple[str, ...], ...]) -> None:
    place = (Inches(1), Inches(4), Inches(8), Inches(3))
    table = slide.shapes.add_table(len(rows), len(rows[0]), *place).table
    for y, row in enumerate(rows):
        for x, text in enumerate(row):
            table.cell(y, x).text = text


def _odf_table(section: Section) -> str:
    def row(cells: tuple[str, ...]) -> str:
        made = "".join(
            f'<table:table-cell office:value-type="string"><text:p>{escape(cell)}</text:p></table:table-cell>'
            for cell in cells
        )
        return f"<table:table-row>{made}</table:table-row>"

    head, *rows = section.table
    name = quoteattr(section.heading)
    top = f"<table:table-header-rows>{row(head)}</table:table-header-rows>"
    return f"<table:table table:name={name}>{top}{''.join(row(one) for one in rows)}</table:table>"


def _odf_meta(content: Content) -> str:
    return (
        f"<dc:title>{escape(content.title)}</dc:title><dc:creator>{escape(content.author)}</dc:creator>"
        f"<dc:language>{content.language}</dc:language>"
    )


def _odf_links(content: Content) -> str:
    return "".join(f"<text:p><text:a xlink:href={quoteattr(link)}>link</text:a></text:p>" for link in content.links)


def _odf_texts(section: Section) -> str:
    return "".join(f"<text:p>{escape(text)}</text:p>" for text in section.paragraphs)


def odt(content: Content) -> bytes:
    body = "".join(
        f'<text:h text:outline-level="1">{escape(section.heading)}</text:h>{_odf_texts(section)}'
        f"{_odf_table(section) if section.table else ''}"
        for section in content.sections
    )
    return odf("text", body + _odf_links(content), meta=_odf_meta(content))


def ods(content: Content) -> bytes:
    link = quoteattr(content.links[0])
    cell = f"<table:table-cell><text:p><text:a xlink:href={link}>link</text:a></text:p></table:table-cell>"
    more = f'<table:table table:name="Links"><table:table-row>{cell}</table:table-row></table:table>'
    body = "".join(_odf_table(section) for section in content.sections if section.table)
    return odf("spreadsheet", body + more, meta=_odf_meta(content))


def odp(content: Content) -> bytes:
    slides = "".join(
        '<draw:page><draw:frame presentation:class="title"><draw:text-box>'
        f"<text:p>{escape(section.heading)}</text:p></draw:text-box></draw:frame><draw:frame><draw:text-box>"
        f"{_odf_texts(section)}</draw:text-box></draw:frame>"
        + (f"<draw:frame>{_odf_table(section)}</draw:frame>" if section.table else "")
        + "</draw:page>"
        for section in content.sections
    )
    frame = f"<draw:page><draw:frame><draw:text-box>{_odf_links(content)}</draw:text-box></draw:frame></draw:page>"
    return odf("presentation", slides + frame, meta=_odf_meta(content))


# The rest


def _rtf_text(text: str) -> str:
    codes = memoryview(text.encode("utf-16-le")).cast("H")
    return "".join(
        chr(code) if code < 128 and chr(code) not in "{}\\" else f"\\u{code if code < 32768 else code - 65536}?"
        for code in codes
    )


def rtf(content: Content) -> bytes:
    parts = [
        "{\\rtf1\\ansi\\ansicpg1252\\uc1{\\stylesheet{\\s0 Normal;}{\\s1 heading 1;}}",
        f"{{\\info{{\\title {_rtf_text(content.title)}}}{{\\author {_rtf_text(content.author)}}}}}",
    ]
    for section in content.sections:
        parts.append(f"\\pard\\s1 {_rtf_text(section.heading)}\\par")
        parts += [f"\\pard\\s0 {_rtf_text(text)}\\par" for text in section.paragraphs]
        for row in section.table:
            cells = "".join(f"\\pard\\intbl {_rtf_text(cell)}\\cell" for cell in row)
            parts.append(f"\\trowd{cells}\\row")
    for link in content.links:
        parts.append(f'\\pard{{\\field{{\\*\\fldinst HYPERLINK "{_rtf_text(link)}"}}{{\\fldrslt link}}}}\\par')
    return ("\n".join(parts) + "}").encode("ascii")


def epub_file(content: Content) -> bytes:
    chapters = {}
    for n, section in enumerate(content.sections):
        rows = "".join(
            "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in row) + "</tr>"
            for tag, row in zip(["th"] + ["td"] * len(section.table), section.table, strict=False)
        )
        links = "".join(f"<p><a href={quoteattr(link)}>link</a></p>" for link in content.links) if n == 0 else ""
        texts = "".join(f"<p>{escape(text)}</p>" for text in section.paragraphs)
        table = f"<table>{rows}</table>" if rows else ""
        chapters[f"c{n}.xhtml"] = f"<h1>{escape(section.heading)}</h1>{texts}{table}{links}"
    return epub(chapters, _odf_meta(content))


def csv_file(content: Content) -> bytes:
    body = io.StringIO()
    csv.writer(body, delimiter=";" if content.language != "en" else ",").writerows(content.tables[0])
    return body.getvalue().encode("utf-8-sig" if content.language == "fr" else "utf-8")


def text(content: Content) -> bytes:
    lines = [line for section in content.sections for line in (section.heading, *section.paragraphs)]
    return "\r\n".join(lines).encode("utf-16" if content.language == "ja" else "utf-8")


#: name -> (kind that the reader is told, writer)
WRITERS: dict[str, tuple[str, Callable[[Content], bytes]]] = {
    "pdf": ("pdf", pdf),
    "pdf-flowing": ("pdf", pdf_flowing),
    "docx": ("docx", docx_file),
    "xlsx": ("xlsx", xlsx_file),
    "pptx": ("pptx", pptx_file),
    "odt": ("odt", odt),
    "ods": ("ods", ods),
    "odp": ("odp", odp),
    "rtf": ("rtf", rtf),
    "epub": ("epub", epub_file),
    "csv": ("csv", csv_file),
    "text": ("text", text),
}
