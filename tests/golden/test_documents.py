"""Every kind of file gives back what was written into it: text, tables with labels, headings, links, parts, facts."""

from __future__ import annotations

from functools import cache

import pytest
from document_contents import CONTENTS, Content
from document_writers import WRITERS, placed
from reportlab.pdfbase.pdfmetrics import stringWidth

from curtsy.content.documents.model import FileText, Limits
from curtsy.content.documents.reading import read_document
from curtsy.content.documents.sniff import kind_of

CASES = [(writer, content) for writer in WRITERS for content in CONTENTS]

_WITH_PARAGRAPHS = WRITERS.keys() - {"csv", "ods"}
_WITH_TABLES = WRITERS.keys() - {"text"}
_WITH_HEADINGS = ("pdf", "pdf-flowing", "docx", "odt", "rtf", "epub", "pptx", "odp")
_WITH_FACTS = WRITERS.keys() - {"csv", "text"}
_WITH_ALL_LINKS = ("pdf", "docx", "odt", "odp", "rtf", "epub")


@cache
def read(writer: str, content: Content) -> FileText:
    kind, write = WRITERS[writer]
    return read_document(kind, write(content), Limits())


def cases(writers: object) -> pytest.MarkDecorator:
    chosen = [(writer, content) for writer, content in CASES if writer in writers]  # type: ignore[operator]
    return pytest.mark.parametrize(
        ("writer", "content"), chosen, ids=[f"{writer}-{content.name}" for writer, content in chosen]
    )


def test_there_are_many_documents() -> None:
    assert len(CASES) >= 40


@cases(WRITERS)
def test_a_file_is_read_without_a_problem(writer: str, content: Content) -> None:
    file = read(writer, content)
    assert (file.kind, file.problem, file.truncated) == (WRITERS[writer][0], "", False)


@cases(_WITH_PARAGRAPHS)
def test_paragraphs_are_lines_in_their_order(writer: str, content: Content) -> None:
    lines = read(writer, content).text.split("\n")
    expected = [text for section in content.sections for text in section.paragraphs]
    places = [lines.index(text) for text in expected]
    assert places == sorted(places)


@cases(_WITH_TABLES)
def test_tables_are_rows_of_cells(writer: str, content: Content) -> None:
    text = read(writer, content).text
    for table in content.tables[:1] if writer == "csv" else content.tables:
        assert "\n".join("\t".join(row) for row in table) in text


@cases(_WITH_TABLES)
def test_every_cell_has_the_labels_of_its_column_and_row(writer: str, content: Content) -> None:
    file = read(writer, content)
    for table in content.tables[:1] if writer == "csv" else content.tables:
        start = file.text.index("\n".join("\t".join(row) for row in table))
        for y, row in enumerate(table):
            for x, cell in enumerate(row):
                if x and y:
                    labels = [label.text for label in file.labels_at(start, start + len(cell))]
                    assert labels == [table[0][x], row[0]], cell
                start += len(cell) + 1


@cases(_WITH_HEADINGS)
def test_headings_are_found(writer: str, content: Content) -> None:
    file = read(writer, content)
    found = [file.text[one.start : one.end] for one in file.headings]
    assert found == [section.heading for section in content.sections]


@cases(_WITH_FACTS)
def test_title_and_author_are_known(writer: str, content: Content) -> None:
    file = read(writer, content)
    assert (file.title, file.author) == (content.title, content.author)


@cases(_WITH_ALL_LINKS)
def test_links_are_found(writer: str, content: Content) -> None:
    assert set(read(writer, content).links) >= set(content.links)


@cases(("xlsx", "pptx", "ods"))
def test_the_links_of_cells_and_runs_are_found(writer: str, content: Content) -> None:
    assert content.links[0] in read(writer, content).links


@cases(("xlsx", "pptx", "epub", "pdf"))
def test_every_section_is_a_part(writer: str, content: Content) -> None:
    file = read(writer, content)
    kinds = {"xlsx": "sheet", "pptx": "slide", "epub": "chapter", "pdf": "page"}
    assert [(part.kind, part.number) for part in file.parts] == [
        (kinds[writer], n) for n in range(1, len(content.sections) + 1)
    ]
    for part, section in zip(file.parts, content.sections, strict=True):
        assert section.paragraphs[0] in file.text[part.start : part.end]
        assert writer in ("epub", "pdf") or part.label == section.heading


@cases(("pdf",))
def test_the_boxes_of_words_are_where_they_were_drawn(writer: str, content: Content) -> None:
    file = read(writer, content)
    font = "Helvetica" if content.latin else "HeiseiMin-W3"
    drawn = [
        (page, x + stringWidth(before, font, size), top, size, word)
        for page, x, top, size, line in placed(content)
        for before, word in _words(line)
    ]
    boxes = [(box, file.text[box.start : box.end]) for box in file.boxes]
    for page, x, top, size, word in drawn:
        near = [
            box
            for box, said in boxes
            if said == word and box.page == page and abs(box.x0 - x) < 1.5 and box.y0 < top - 1 and top <= box.y1 + 1
        ]
        assert near, (page, x, top, word)
        assert near[0].x1 == pytest.approx(x + stringWidth(word, font, size), abs=1.5)
        assert near[0].y1 - near[0].y0 < 1.6 * size
    assert len(boxes) == len(drawn)


def _words(line: str) -> list[tuple[str, str]]:
    """Each word with what is before it on its line."""
    found, before = [], ""
    for word in line.split(" "):
        found.append((before, word))
        before += f"{word} "
    return found


@cases(WRITERS.keys() - {"csv", "text"})
def test_the_kind_is_known_from_the_bytes(writer: str, content: Content) -> None:
    kind, write = WRITERS[writer]
    assert kind_of(None, write(content), "https://files.test/download") == kind
