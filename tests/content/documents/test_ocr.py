"""Scanned documents: recognized as such, and read with the extra `ocr` (`make test-ocr`), within their own time."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec

import pytest
from pydantic import ValidationError

from curtsy.api.page import view
from curtsy.content.documents.layout import FileLayout
from curtsy.content.documents.model import FileText, Limits
from curtsy.core.model import Page
from curtsy.core.settings import Settings
from curtsy.core.text_layout import Part
from curtsy.extract import record_claims
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas
from curtsy.services.document_process import documents
from curtsy.tinyweb.facts import org_host, truth
from curtsy.tinyweb.files import PdfPage, scanned
from curtsy.tinyweb.pages import OrgSite, Shape

SCANNED = org_host(15)
WITH_OCR = Limits(ocr=True)
installed = pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra `ocr` is not installed: make test-ocr")


def scan() -> bytes:
    site = OrgSite(SCANNED, Shape())
    answer = site.answer(site.document or "")
    return answer.wire[len(answer.head) :]


@pytest.fixture(scope="module")
def read() -> FileText:
    return documents.read("pdf", scan(), None, WITH_OCR)


def test_a_scan_is_reported_as_such() -> None:
    found = documents.read("pdf", scan())
    assert (found.problem, found.text, found.page_count, found.ocr) == ("no_text", "", 3, False)


@pytest.mark.skipif(find_spec("rapidocr") is not None, reason="the extra `ocr` is installed")
def test_the_setting_needs_the_extra() -> None:
    with pytest.raises(ValidationError, match=r"pip install 'curtsy\[ocr\]'"):
        Settings(document_ocr=True)


@installed
def test_the_text_of_a_stored_page_has_what_was_recognized() -> None:
    stored = Page(
        id="1-aa", crawl=1, fp=b"", url="http://a.test/r.pdf", host="a.test", status=200, fetched_ms=0, depth=0,
        content_type="application/pdf",
    )  # fmt: skip
    assert view(stored, "c", scan()).text() == ""
    assert "Who we are" in view(stored, "c", scan(), WITH_OCR).text()


@installed
def test_the_text_of_a_scan_is_recognized_page_by_page(read: FileText) -> None:
    org = truth(SCANNED)
    assert (read.problem, read.ocr, len(read.parts)) == ("", True, 3)
    second = " ".join(read.text[read.parts[1].start : read.parts[1].end].split())
    assert f"{org.name} was founded in {org.founded_year}" in second
    assert f"Our headquarters are in {org.headquarters}" in second
    assert read.title == "Annual report"
    assert "Who we are" in [read.text[one.start : one.end] for one in read.headings]


@installed
def test_words_of_a_scan_have_boxes(read: FileText) -> None:
    start = read.text.index("Who we are")
    boxes = FileLayout(read, len(read.text)).boxes_at(start, start + len("Who we are"))
    (box,) = boxes
    assert box.page == 2
    assert abs(box.x0 - 60) < 4
    assert 55 < box.y0 < box.y1 < 90


@installed
def test_evidence_from_a_scan_says_that_it_was_recognized(read: FileText) -> None:
    schema = schemas.load("organization")
    site = OrgSite(SCANNED, Shape())
    home = record_claims.sources_of("1-00", f"http://{SCANNED}/", site.html("/").encode(), "text/html")
    report = record_claims.sources_of("1-01", f"http://{SCANNED}{site.document}", b"", None, read)
    fields = {one.path: one for one in judge.settle(schema, record_claims.extract(schema, [home, report]).claims)}
    founded = fields["/founded_year"]
    assert founded.value == truth(SCANNED).founded_year
    (one,) = founded.evidence
    assert (one.ocr, one.part) == (True, Part("page", 2))
    assert one.boxes
    assert not fields["/name"].evidence[0].ocr


@installed
def test_a_table_of_a_scan_has_labels() -> None:
    rows = [["Measure", "2022", "2023"], ["Emissions", "120", "97"], ["Water use", "45", "41"], ["Waste", "19", "17"]]
    found = documents.read("pdf", scanned("", [PdfPage(heading="Figures", rows=rows)]), None, WITH_OCR)
    start = found.text.index("97")
    assert [label.text for label in found.labels_at(start, start + 2)] == ["2023", "Emissions"]


@installed
def test_recognizing_has_its_own_limits() -> None:
    pages = [
        PdfPage(heading=f"Page {n}", paragraphs=["The quick brown fox jumps over the lazy dog."] * 20) for n in range(9)
    ]
    body = scanned("", pages)
    soon = documents.read("pdf", body, None, replace(WITH_OCR, seconds=1.0, ocr_seconds=14.0))
    assert soon.problem == "timeout"
    assert "Page 0" in soon.text
    assert len(soon.parts) < 9
    one = documents.facts("pdf", body, None, WITH_OCR)
    assert (one.problem, one.ocr, one.truncated, one.title) == ("", True, True, "Page 0")
