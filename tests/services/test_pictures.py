"""Pictures of PDF pages: words are where their boxes say, sizes are limited, and broken files have none."""

from __future__ import annotations

from typing import Any

import pdf_files
import png_files
import pytest

from curtsy.content.documents.layout import FileLayout
from curtsy.content.documents.model import Limits
from curtsy.services import stored_files
from curtsy.services.document_process import documents


def draw(canvas: Any) -> None:
    pdf_files.string(canvas, 100, 200, "Founded in 1954", 24, "Helvetica-Bold")
    canvas.showPage()
    pdf_files.string(canvas, 300, 700, "Bergen", 40, "Helvetica-Bold")


@pytest.mark.parametrize(("number", "word"), [(1, "1954"), (2, "Bergen")])
def test_the_words_of_a_picture_are_at_their_boxes(number: int, word: str) -> None:
    body = pdf_files.pdf(draw)
    file = documents.read("pdf", body)
    start = file.text.index(word)
    (box,) = FileLayout(file, len(file.text)).boxes_at(start, start + len(word))
    assert (box.page, box.width, box.height) == (number, pytest.approx(595.28, abs=0.1), pytest.approx(841.89, abs=0.1))
    found = documents.picture(body, number, Limits())
    assert found is not None
    picture = png_files.read(found)
    scale = picture.width / box.width
    assert picture.height == pytest.approx(box.height * scale, abs=2)
    assert picture.dark_share(box.x0 * scale, box.y0 * scale, box.x1 * scale, box.y1 * scale) > 0.15
    below = (box.x0 * scale, box.y1 * scale + 5, box.x1 * scale, box.y1 * scale + 25)
    assert picture.dark_share(*below) == 0.0


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_boxes_and_picture_of_a_rotated_page_agree(degrees: int) -> None:
    def rotated(canvas: Any) -> None:
        canvas.setPageRotation(degrees)
        canvas.setFont("Helvetica-Bold", 40)
        canvas.drawString(100, 300, "Bergen")

    body = pdf_files.pdf(rotated)
    file = documents.read("pdf", body)
    (box,) = FileLayout(file, len(file.text)).boxes_at(0, len("Bergen"))
    found = documents.picture(body, 1, Limits())
    assert found is not None
    picture = png_files.read(found)
    scale = picture.width / box.width
    assert picture.height == pytest.approx(box.height * scale, abs=2)
    place = (box.x0 * scale, box.y0 * scale, box.x1 * scale, box.y1 * scale)
    assert picture.dark_share(*place) > 0.15
    whole = picture.dark_share(0, 0, picture.width, picture.height) * picture.width * picture.height
    inside = picture.dark_share(*place) * (place[2] - place[0]) * (place[3] - place[1])
    assert inside > 0.9 * whole


def test_a_huge_page_gives_a_small_picture() -> None:
    def huge(canvas: Any) -> None:
        canvas.setPageSize((9_000, 14_000))
        canvas.drawString(100, 100, "small")

    found = documents.picture(pdf_files.pdf(huge), 1, Limits())
    assert found is not None
    picture = png_files.read(found)
    assert picture.width * picture.height <= 2_600_000


@pytest.mark.parametrize("number", [0, 3, 10**6])
def test_there_is_no_picture_of_a_page_that_is_not_there(number: int) -> None:
    assert documents.picture(pdf_files.pdf(draw), number, Limits()) is None


def test_a_broken_file_has_no_picture_and_the_process_lives_on() -> None:
    assert documents.picture(b"%PDF-1.7 nothing", 1, Limits()) is None
    before = documents.process_id
    assert documents.picture(pdf_files.pdf(draw), 1, Limits()) is not None
    assert documents.process_id == before


def test_a_picture_is_drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    body = pdf_files.pdf(draw)
    first = stored_files.picture_of(body, 2)
    monkeypatch.setattr(documents, "picture", lambda *_: pytest.fail("drawn again"))
    assert stored_files.picture_of(body, 2) == first is not None
