"""Reading documents: CPU per page of PDF, DOCX and XLSX, beside libraries that read the text alone."""

from __future__ import annotations

import io
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import docx
import openpyxl
import pypdfium2
from reportlab.lib.pagesizes import A4
from reportlab.pdfgen.canvas import Canvas

from bench.plan import Plan
from bench.report import Bar, Section, number
from curtsy.content.documents.model import Limits
from curtsy.content.documents.reading import read_document

_LIMITS = Limits(seconds=600.0)
_LINE = "every polite crawler waits between two requests to one host and reads its rules first, page {} line {}"
_LINES = 40
_ROWS = 50
_COLUMNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    kind: str
    body: bytes
    #: of PDF pages, pages of about 500 words, or sheets of 50 rows
    pages: int
    unit: str
    bare: Callable[[bytes], Any]
    bare_name: str


def pdf_file(pages: int) -> bytes:
    """Forty lines and a table of five rows on each page."""
    body = io.BytesIO()
    canvas = Canvas(body, pagesize=A4, invariant=1)
    for page in range(pages):
        canvas.setFont("Helvetica-Bold", 16)
        canvas.drawString(60, 790, f"Chapter {page + 1}")
        canvas.setFont("Helvetica", 10)
        for line in range(_LINES):
            canvas.drawString(60, 760 - 13 * line, _LINE.format(page, line))
        for row in range(5):
            for column in range(4):
                canvas.drawString(60 + 110 * column, 200 - 16 * row, f"{row * column * 17}.{column}")
        canvas.showPage()
    canvas.save()
    return body.getvalue()


def docx_file(pages: int) -> bytes:
    document = docx.Document()
    for page in range(pages):
        document.add_heading(f"Chapter {page + 1}", 1)
        for part in range(8):
            document.add_paragraph(" ".join(_LINE.format(page, 5 * part + line) for line in range(4)))
        table = document.add_table(rows=4, cols=4)
        for number_, cell in enumerate(table._cells):
            cell.text = f"{page}.{number_}"
    return _saved(document)


def xlsx_file(sheets: int) -> bytes:
    book = openpyxl.Workbook()
    for number_ in range(sheets):
        sheet = book.create_sheet(f"Sheet {number_ + 1}")
        sheet.append([f"Column {column}" for column in range(_COLUMNS)])
        for row in range(_ROWS):
            sheet.append([f"Row {row}", *(row * column + 0.5 for column in range(1, _COLUMNS))])
    return _saved(book)


def _saved(document: Any) -> bytes:
    body = io.BytesIO()
    document.save(body)
    return body.getvalue()


def _bare_pdf(body: bytes) -> None:
    document = pypdfium2.PdfDocument(body)
    for page in document:
        page.get_textpage().get_text_range()
    document.close()


def _bare_docx(body: bytes) -> list[str]:
    return [paragraph.text for paragraph in docx.Document(io.BytesIO(body)).paragraphs]


def _bare_xlsx(body: bytes) -> list[tuple[Any, ...]]:
    book = openpyxl.load_workbook(io.BytesIO(body), read_only=True, data_only=True)
    rows = [row for sheet in book.worksheets for row in sheet.iter_rows(values_only=True)]
    book.close()
    return rows


def cases(pages: int) -> list[Case]:
    return [
        Case(kind="pdf", body=pdf_file(pages), pages=pages, unit="page", bare=_bare_pdf,
             bare_name="PDFium, text alone"),
        Case(kind="docx", body=docx_file(pages), pages=pages, unit="page of 500 words", bare=_bare_docx,
             bare_name="python-docx, paragraphs alone"),
        Case(kind="xlsx", body=xlsx_file(pages), pages=pages, unit="sheet of 50 x 8 cells", bare=_bare_xlsx,
             bare_name="openpyxl, read only"),
    ]  # fmt: skip


def cpu_ms(work: Callable[[], Any], repeats: int) -> float:
    """Median CPU time."""
    work()  # what is made on first use does not count
    times = []
    for _ in range(repeats):
        begun = time.process_time()
        work()
        times.append(1000 * (time.process_time() - begun))
    return statistics.median(times)


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    rows, ratios = [], {}
    for case in cases(plan.document_pages):
        say(f"  {case.kind}")
        ours = cpu_ms(partial(read_document, case.kind, case.body, _LIMITS), plan.repeats) / case.pages
        bare = cpu_ms(partial(case.bare, case.body), plan.repeats) / case.pages
        ratios[case.kind] = ours / bare
        rows.append((f"{case.kind.upper()}, {case.unit}", number(ours), number(bare), case.bare_name))
    text = (
        f"Files of {plan.document_pages} pages or sheets with known content, read in this process. Curtsy also gives "
        "headings, tables with labels, links, Markdown and, for PDF, reading order and the box of every word. "
        f"Values are medians of {plan.repeats} repeats."
    )
    return [
        Section(
            title="Documents",
            text=text,
            head=("file", "Curtsy, CPU ms", "bare reader, CPU ms", "bare reader"),
            rows=tuple(rows),
            bars=(Bar(what="Curtsy / bare PDFium, CPU per page of PDF", value=ratios["pdf"], limit=12),),
        )
    ]
