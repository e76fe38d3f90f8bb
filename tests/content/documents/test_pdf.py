"""PDF: text in reading order, boxes, headings, tables, links, facts, and what is wrong with broken files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pdf_files import HEIGHT, WORDS, lines, pages, pdf, string, table
from reportlab.lib.utils import ImageReader
from reportlab.pdfbase.pdfmetrics import stringWidth

from curtsy.content.documents.model import FileText, Limits
from curtsy.content.documents.pdf import iso_date
from curtsy.content.documents.reading import read_document

PRICES = [["Item", "Min", "Max"], ["Apple", "1.20", "2.00"], ["Pear", "0.90", "1.75"], ["Plum", "3.10", "4.40"]]


def read(body: bytes, **limits: Any) -> FileText:
    return read_document("pdf", body, Limits(**limits))


def labels(file: FileText, value: str) -> list[str]:
    start = file.text.index(value)
    return [label.text for label in file.labels_at(start, start + len(value))]


def test_paragraphs_are_joined_and_headings_are_found() -> None:
    def draw(canvas: Any) -> None:
        string(canvas, 50, 60, "The annual report", 24)
        string(canvas, 50, 100, "Requests", 14)
        lines(canvas, WORDS, 50, 130, 480)
        lines(canvas, "Second paragraph. " + WORDS, 50, 180, 480)

    file = read(pdf(draw))
    assert file.text.split("\n") == [
        "The annual report",
        "Requests",
        WORDS.strip(),
        "Second paragraph. " + WORDS.strip(),
    ]
    assert [(heading.level, file.text[heading.start : heading.end]) for heading in file.headings] == [
        (1, "The annual report"),
        (2, "Requests"),
    ]
    assert file.markdown.startswith("# The annual report\n\n## Requests\n\nevery polite")
    assert (file.title, file.problem, file.page_count) == ("The annual report", "", 1)


def test_a_box_is_where_its_word_was_drawn() -> None:
    def draw(canvas: Any) -> None:
        string(canvas, 50, 100, "alpha beta", 12)
        canvas.showPage()
        string(canvas, 200, 700, "gamma", 12)

    file = read(pdf(draw))
    found = {file.text[box.start : box.end]: box for box in file.boxes}
    assert found.keys() == {"alpha", "beta", "gamma"}
    beta = found["beta"]
    left = 50 + stringWidth("alpha ", "Helvetica", 12)
    assert (beta.x0, beta.x1) == pytest.approx((left, left + stringWidth("beta", "Helvetica", 12)), abs=0.5)
    assert beta.y0 < 100 - 5 < 100 < beta.y1
    assert beta.y1 - beta.y0 < 1.6 * 12
    assert (found["gamma"].page, round(found["gamma"].x0)) == (2, 200)
    assert [file.text[part.start : part.end] for part in file.parts] == ["alpha beta", "gamma"]


@pytest.mark.parametrize(
    ("rotation", "place"),
    [(90, (400, 50)), (180, (595 - 50, 400)), (270, (595 - 400, 842 - 50))],
)
def test_boxes_of_a_rotated_page_are_those_of_the_page_as_it_is_seen(rotation: int, place: tuple[float, float]) -> None:
    def draw(canvas: Any) -> None:
        canvas.setPageRotation(rotation)
        canvas.drawString(50, 400, "word")

    (box,) = read(pdf(draw)).boxes
    x, y = place
    assert box.x0 - 6 < x < box.x1 + 6
    assert box.y0 - 6 < y < box.y1 + 6


def test_columns_are_read_one_after_the_other_though_their_lines_alternate() -> None:
    left, right = ("left " + WORDS).split(), ("right " + WORDS).split()

    def draw(canvas: Any) -> None:
        string(canvas, 50, 60, "A title over the width of both columns of the page, in one line", 12)
        for n in range(0, 40, 5):
            string(canvas, 50, 100 + 2.4 * n, " ".join(left[n : n + 5]) + " of this side", 10)
            string(canvas, 310, 100 + 2.4 * n, " ".join(right[n : n + 5]) + " of that side", 10)
        lines(canvas, "Below both. " + WORDS, 50, 260, 500)

    text = read(pdf(draw)).text
    assert text.startswith("A title over")
    assert text.index("left every") < text.rindex("of this side") < text.index("right every") < text.index("Below both")


def test_three_columns_are_read_in_order() -> None:
    def draw(canvas: Any) -> None:
        for x, name in ((40, "one"), (220, "two"), (400, "three")):
            lines(canvas, f"{name} {WORDS} end-{name}", x, 100, 150, 9)

    text = read(pdf(draw)).text
    places = [text.index(word) for word in ("one every", "end-one", "two every", "end-two", "three every", "end-three")]
    assert places == sorted(places)


@pytest.mark.parametrize("bold", [True, False])
def test_aligned_words_are_a_table_with_labels(bold: bool) -> None:
    def draw(canvas: Any) -> None:
        lines(canvas, WORDS, 50, 60, 480)
        table(canvas, PRICES, [50, 200, 300], 150, bold)
        lines(canvas, WORDS, 50, 260, 480)

    file = read(pdf(draw))
    assert "\nItem\tMin\tMax\nApple\t1.20\t2.00\nPear\t0.90\t1.75\nPlum\t3.10\t4.40\n" in file.text
    assert labels(file, "1.75") == ["Max", "Pear"]
    assert labels(file, "3.10") == ["Min", "Plum"]
    box = file.boxes.at(file.text.index("1.75"), file.text.index("1.75") + 4)[0]
    assert round(box.x0) == 300
    assert all(file.text[box.start : box.end].strip() == file.text[box.start : box.end] != "" for box in file.boxes)


def test_a_table_with_an_empty_cell_and_right_aligned_numbers_keeps_its_columns() -> None:
    rows = [("North", "1,200", "15"), ("South", "", "7"), ("East", "98", "1,004"), ("West", "5", "66")]

    def draw(canvas: Any) -> None:
        for x, name in ((150, "Sales"), (250, "Returns")):
            canvas.drawRightString(x + 50, HEIGHT - 85, name)
        canvas.drawString(50, HEIGHT - 85, "Region")
        for n, (name, sales, returns) in enumerate(rows):
            canvas.drawString(50, HEIGHT - 100 - 15 * n, name)
            canvas.drawRightString(200, HEIGHT - 100 - 15 * n, sales)
            canvas.drawRightString(300, HEIGHT - 100 - 15 * n, returns)

    file = read(pdf(draw))
    assert "South\t\t7" in file.text
    assert labels(file, "1,004") == ["Returns", "East"]
    assert labels(file, "7") == ["Returns", "South"]


def test_hyphens_at_line_ends_are_removed_and_those_of_compounds_kept() -> None:
    def draw(canvas: Any) -> None:
        string(canvas, 50, 100, "This well-known text has words that the end of a line has sepa-")
        string(canvas, 50, 112, "rated, and it also has another well-known kind of them: a well-")
        string(canvas, 50, 124, "known compound. It goes on for one more line in the same para.")

    file = read(pdf(draw))
    assert "has separated, and" in file.text
    assert "a well-known compound" in file.text
    boxes = file.boxes.at(file.text.index("separated"), file.text.index("separated") + 9)
    assert [file.text[box.start : box.end] for box in boxes] == ["sepa", "rated,"]
    assert boxes[0].y0 < boxes[1].y0


def test_lists_are_items() -> None:
    def draw(canvas: Any) -> None:
        for n, word in enumerate(("first", "second", "third")):
            string(canvas, 50, 100 + 14 * n, "•")
            string(canvas, 65, 100 + 14 * n, f"the {word} item of the list")

    file = read(pdf(draw))
    assert file.text == "the first item of the list\nthe second item of the list\nthe third item of the list"
    assert file.markdown.startswith("- the first item of the list\n- the second")


def test_links_and_facts_are_read() -> None:
    def draw(canvas: Any) -> None:
        canvas.setTitle("Größen und Preise")
        canvas.setAuthor("A. Writer")
        string(canvas, 50, 100, "see there")
        canvas.linkURL("https://a.test/b?c=1#d", (50, 700, 100, 720))
        canvas.linkURL("https://a.test/b?c=1#d", (50, 600, 100, 620))
        canvas.linkURL("mailto:x@a.test", (50, 500, 100, 520))

    file = read(pdf(draw, lang="de-DE"))
    assert file.links == ("https://a.test/b?c=1#d", "mailto:x@a.test")
    assert (file.title, file.author, file.language) == ("Größen und Preise", "A. Writer", "de-DE")
    assert file.created.startswith("2000-01-01T00:00:00")


@pytest.mark.parametrize(
    ("date", "iso"),
    [
        ("D:20240229235959Z", "2024-02-29T23:59:59Z"),
        ("D:20240229235959-05'30'", "2024-02-29T23:59:59-05:30"),
        ("20240229", "2024-02-29"),
        ("", ""),
    ],
)
def test_dates(date: str, iso: str) -> None:
    assert iso_date(date) == iso


def test_a_file_of_pictures_has_no_text() -> None:
    from PIL import Image

    def draw(canvas: Any) -> None:
        for _ in range(2):
            canvas.drawImage(ImageReader(Image.new("L", (200, 300), 128)), 0, 0, 595, 842)
            canvas.showPage()

    file = read(pdf(draw))
    assert (file.problem, file.truncated, file.page_count, file.text) == ("no_text", False, 2, "")


def test_a_scan_with_a_stamp_has_no_text_but_keeps_the_stamp() -> None:
    from PIL import Image

    def draw(canvas: Any) -> None:
        for n in range(3):
            canvas.drawImage(ImageReader(Image.new("L", (200, 300), 128)), 0, 0, 595, 842)
            string(canvas, 50, 50, f"p. {n}")
            canvas.showPage()

    file = read(pdf(draw))
    assert (file.problem, file.text) == ("no_text", "p. 0\np. 1\np. 2")


def test_an_encrypted_file_says_so_and_one_with_an_empty_password_is_read() -> None:
    def draw(canvas: Any) -> None:
        string(canvas, 50, 100, "secret words")

    file = read(pdf(draw, encrypt="key"))
    assert (file.problem, file.text) == ("encrypted", "")
    from reportlab.lib.pdfencrypt import StandardEncryption

    assert read(pdf(draw, encrypt=StandardEncryption("", "owner"))).text == "secret words"


@pytest.mark.parametrize("body", [b"", b"%PDF-1.7", b"%PDF-1.7\n" + b"x" * 1000, b"\0" * 100])
def test_bytes_that_are_no_file_are_malformed(body: bytes) -> None:
    file = read(body)
    assert (file.problem, file.truncated) == ("malformed", True)


def test_a_truncated_file_is_read_as_far_as_possible() -> None:
    body = pages(20)
    file = read(body[: len(body) // 2])
    assert file.problem in ("malformed", "")
    assert file.problem == "malformed" or "Page number 1" in file.text


def test_only_so_many_pages_are_read() -> None:
    file = read(pages(30), pages=10)
    assert (file.problem, file.truncated, file.page_count, len(file.parts)) == ("too_many_pages", True, 30, 10)
    assert file.text.endswith("Page number 10")


def test_a_long_text_is_cut_at_a_line() -> None:
    file = read(pages(30), characters=100)
    assert (file.problem, file.truncated) == ("too_large", True)
    assert file.text.split("\n")[-1].startswith("Page number")
    assert len(file.text) <= 100


@pytest.mark.parametrize(
    ("path", "title", "phrase", "heading"),
    [
        (
            "/usr/share/doc/shared-mime-info/shared-mime-info-spec.pdf",
            "Shared MIME-info Database",
            "Everyone is keen to see them merged.",
            "2.1. Directory layout",
        ),
        ("/usr/share/doc/libtasn1-doc/libtasn1.pdf", "Libtasn1", "parsing and structures management", "2.2 Naming"),
    ],
)
def test_real_files(path: str, title: str, phrase: str, heading: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"{path} is not installed")
    file = read(Path(path).read_bytes())
    assert file.problem == ""
    assert file.title == title
    assert phrase in file.text
    assert heading in [file.text[found.start : found.end] for found in file.headings]
    assert len(file.boxes) > 5_000
    assert all(" " not in file.text[box.start : box.end] for box in file.boxes)


def test_ligatures_of_fonts_without_names_of_characters_are_letters() -> None:
    def draw(canvas: Any) -> None:
        string(canvas, 50, 100, "signi~cance of the ~rst e@ect ~ ~~ 5", 12)

    body = pdf(draw, pageCompression=0).replace(b"~", b"\x1c").replace(b"@", b"\x1b")
    file = read(body)
    assert file.text == "significance of the first effect 5"
    assert [file.text[box.start : box.end] for box in file.boxes] == file.text.split()
