"""Documents as sources: pages and boxes in the evidence, labels of cells, collapsed text, and which are chosen."""

from __future__ import annotations

from typing import Any

import office_files
import pdf_files
import pytest

from curtsy.content.documents.model import Limits
from curtsy.core.claims import Field
from curtsy.core.text_layout import LabelKind, PageBox, Part, Visibility
from curtsy.extract import record_claims
from curtsy.extract.page_selection import Candidate, choose, roles_of
from curtsy.extract.sources import MAX_TEXT, PageSources
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas
from curtsy.services.document_process import documents

WORDS = pdf_files.WORDS.strip().capitalize()
YEAR = {"type": ["integer", "null"]}
TEXT = {"type": ["string", "null"]}
LABELLED = {"label": "(?i)^founded$", "pattern": r"\d{4}"}


def schema(**properties: Any) -> schemas.Schema:
    return schemas.inline({"title": "Facts", "type": "object", "properties": properties})


def source(kind: str, body: bytes, url: str = "http://a.test/report") -> PageSources:
    file = documents.read(kind, body, None, Limits())
    assert not file.problem
    return record_claims.sources_of("1-00", url, body, None, file)


def html(body: str) -> PageSources:
    return record_claims.sources_of("1-00", "http://a.test/about", body.encode(), "text/html; charset=utf-8")


def fields(wanted: schemas.Schema, *pages: PageSources) -> dict[str, Field]:
    found = judge.settle(wanted, record_claims.extract(wanted, pages).claims)
    return {field.path: field for field in found if judge.is_published(field, wanted.leaf_for(field.path))}


def report(canvas: Any) -> None:
    pdf_files.string(canvas, 50, 80, "Annual report", 24, "Helvetica-Bold")
    pdf_files.lines(canvas, pdf_files.WORDS * 3, 50, 120, 400)
    canvas.showPage()
    pdf_files.string(canvas, 50, 80, "History", 18, "Helvetica-Bold")
    pdf_files.lines(canvas, f"{WORDS}. We were founded in 1954 by nine sailors. {WORDS}.", 50, 120, 400)
    rows = [["Measure", "2022", "2023"], ["Emissions", "120", "97"], ["Water use", "45", "41"], ["Waste", "9", "7"]]
    pdf_files.table(canvas, rows, [60, 260, 380], 300, bold_first=True)


@pytest.fixture(scope="module")
def pdf() -> PageSources:
    return source("pdf", pdf_files.pdf(report))


def test_evidence_in_a_pdf_names_the_page_and_the_boxes_of_its_words(pdf: PageSources) -> None:
    wanted = schema(founded={**YEAR, "x-curtsy": {"pattern": r"founded in (\d{4})"}})
    (one,) = fields(wanted, pdf)["/founded"].evidence
    assert one.part == Part("page", 2)
    assert one.quote == "We were founded in 1954 by nine sailors."
    assert one.boxes
    assert all(box.page == 2 and 40 < box.x0 < box.x1 < 470 and 110 < box.y0 < box.y1 < 170 for box in one.boxes)
    assert len(one.boxes) <= 2  # one per line, not one per word
    assert not one.ocr


def test_the_labels_of_a_cell_say_what_its_value_is(pdf: PageSources) -> None:
    wanted = schema(emissions={**YEAR, "x-curtsy": {"selectors": [{"label": "^Emissions$", "also": [r"\| 2023: "]}]}})
    field = fields(wanted, pdf)["/emissions"]
    (one,) = field.evidence
    assert (field.value, one.quote, one.part) == (97, "97", Part("page", 2))
    assert [(label.kind, label.text) for label in one.labels] == [
        (LabelKind.ROW, "Emissions"),
        (LabelKind.COLUMN, "2023"),
    ]
    assert all(pdf.text.text[label.start : label.end] == label.text for label in one.labels)
    (box,) = one.boxes
    assert isinstance(box, PageBox)
    assert 375 < box.x0 < 385


def test_a_cell_of_a_workbook_names_its_sheet() -> None:
    rows: list[list[str | float]] = [["Fact", "Value"], ["Name", "Alder Trust"], ["Founded", 1954], ["Staff", 12]]
    book = source(
        "xlsx",
        office_files.xlsx({"Notes": office_files.sheet([["See the next sheet"]]), "Facts": office_files.sheet(rows)}),
    )
    field = fields(schema(founded={**YEAR, "x-curtsy": {"selectors": [LABELLED]}}), book)["/founded"]
    (one,) = field.evidence
    assert (field.value, one.part, one.boxes) == (1954, Part("sheet", 2, "Facts"), ())
    assert "Founded" in [label.text for label in one.labels]


COMPANIES = (
    "<table><tr><th>Company</th><th>Founded</th></tr><tr><th>Birch Works</th><td>1970</td></tr>"
    "<tr><th>Alder Trust</th><td>1954</td></tr></table>"
)


def test_in_a_table_of_several_the_row_of_the_subject_counts() -> None:
    name = {"type": "string", "x-curtsy": {"css": "h1"}}
    founded = {**YEAR, "x-curtsy": {"selectors": [{**LABELLED, "subject": "name"}]}}
    found = fields(schema(name=name, founded=founded), html(f"<h1>Alder Trust</h1>{COMPANIES}"))
    assert found["/founded"].value == 1954
    assert "/founded" not in fields(schema(name=name, founded=founded), html(f"<h1>Elm Foods</h1>{COMPANIES}"))


def test_a_definition_is_found_by_its_term() -> None:
    page = html("<h1>Alder</h1><dl><dt>Founded</dt><dd>in 1954</dd><dt>Staff</dt><dd>1960</dd></dl>")
    field = fields(schema(founded={**YEAR, "x-curtsy": {"selectors": [LABELLED]}}), page)["/founded"]
    assert field.value == 1954
    assert [label.kind for label in field.evidence[0].labels] == [LabelKind.TERM]


@pytest.mark.parametrize("hint", [{"css": "details > p", "pattern": r"\d{4}"}, {"pattern": r"founded in (\d{4})"}])
def test_evidence_in_collapsed_text_says_so(hint: dict[str, str]) -> None:
    page = html("<p>Questions</p><details><summary>Since when?</summary><p>We were founded in 1954.</p></details>")
    (one,) = fields(schema(founded={**YEAR, "x-curtsy": hint}), page)["/founded"].evidence
    assert one.visibility is Visibility.COLLAPSED


def test_a_long_document_is_used_as_far_as_its_limit() -> None:
    long = source("text", b"word " * (MAX_TEXT // 4))
    assert len(long.text.text) == MAX_TEXT


# Which documents


def test_documents_add_to_the_pages_of_a_role() -> None:
    wanted = schemas.load("organization")
    listed = [
        Candidate("http://a.test/", "Home"),
        Candidate("http://a.test/sustainability", "Sustainability"),
        Candidate("http://a.test/wp/uploads/2024/05/esg-report-2023-en.pdf", None, is_file=True),
        Candidate("http://a.test/wp/uploads/x17.pdf", "Annual report of the Alder Trust for 2023", is_file=True),
        Candidate("http://a.test/wp/uploads/x18.pdf", None, "Fact sheet", is_file=True),
        Candidate("http://a.test/wp/uploads/menu-of-the-day.pdf", "Menu", is_file=True),
    ]
    found = choose(wanted, listed)
    assert found[:2] == ["http://a.test/", "http://a.test/sustainability"]
    assert sorted(url.rpartition("/")[2] for url in found[2:]) == ["esg-report-2023-en.pdf", "x17.pdf", "x18.pdf"]


def test_the_ending_of_a_file_is_not_its_name() -> None:
    assert "report" in roles_of("http://a.test/files/factsheet.pdf", is_file=True)
    assert "about" in roles_of("http://a.test/a/b/c/about-us.docx?v=3", is_file=True)
    assert roles_of("http://a.test/index.pdf", is_file=True) == frozenset()
