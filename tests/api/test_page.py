"""A stored page in Python: documents are read within the limits of the settings, or not again if that was done."""

from __future__ import annotations

from typing import Any

import pdf_files
import pytest

from curtsy.api.page import view
from curtsy.content.documents.model import FileText, Limits
from curtsy.core.model import Page
from curtsy.export.page_rows import content_of
from curtsy.services.stored_files import file_of

PDF = Page(
    id="1-aa", crawl=1, fp=b"\xaa", url="http://a.test/r.pdf", host="a.test", status=200, fetched_ms=0, depth=0,
    content_type="application/pdf",
)  # fmt: skip
ONE_PAGE = Limits(pages=1)


def two_pages(canvas: Any) -> None:
    pdf_files.string(canvas, 50, 60, "The first page", 12)
    canvas.showPage()
    pdf_files.string(canvas, 50, 60, "The second page", 12)


@pytest.fixture(scope="module")
def body() -> bytes:
    return pdf_files.pdf(two_pages)


@pytest.mark.parametrize(("limits", "is_whole"), [(None, True), (ONE_PAGE, False)])
def test_a_document_is_read_within_the_limits_of_the_settings(
    body: bytes, limits: Limits | None, is_whole: bool
) -> None:
    page = view(PDF, "c", body, limits)
    file = page.file()
    assert file is not None
    for text in (page.text(), page.markdown(), file.text, content_of("text", body, PDF, limits)):
        assert text is not None
        assert "The first page" in text
        assert ("The second page" in text) is is_whole


def test_a_document_that_was_read_is_not_read_again(body: bytes) -> None:
    known = file_of(body, PDF.content_type, PDF.url, ONE_PAGE)
    assert isinstance(known, FileText)
    page = view(PDF, "", body, file=known)
    assert page.file() is known
    assert (page.text(), page.markdown()) == (known.text, known.markdown)
