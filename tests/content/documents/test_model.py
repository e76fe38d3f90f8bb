"""Offsets of parts, headings, tables and boxes, and the way of a result between two processes."""

from __future__ import annotations

import pytest

from curtsy.content.documents.headers import guess_header_rows
from curtsy.content.documents.model import Box, Boxes, FileText, Heading, Label, Merged, Part, Table
from curtsy.content.documents.wire import box_bytes, from_wire, to_wire

TEXT = "Prices\n\tSpring\t\tFruit\n\tMin\tMax\nApple\t1\t2\nPear\t\t4\nEnd"


def _table() -> Table:
    start, end = TEXT.index("\tSpring"), TEXT.index("\nEnd")
    return Table(start, end, header_rows=2, header_columns=1, merged=(Merged(0, 1, 1, 2),))


def _file() -> FileText:
    boxes = Boxes()
    boxes.append(0, 6, 1, (1.5, 2.0, 30.25, 12.0))
    boxes.append(TEXT.index("End"), len(TEXT), 2, (1.0, 2.0, 3.0, 4.0))
    parts = (Part("page", 1, "i", 0, 6), Part("page", 2, "", 7, len(TEXT)))
    return FileText("pdf", TEXT, "", parts, (Heading(1, 0, 6),), (_table(),), boxes, ("https://a.test/",), page_count=2)


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        ("1", ["Spring", "Min", "Apple"]),
        ("2", ["Spring", "Max", "Apple"]),
        ("4", ["Spring", "Max", "Pear"]),
        ("Apple", []),
        ("Max", []),
        ("End", []),
    ],
)
def test_a_cell_has_the_labels_of_its_column_and_row(value: str, labels: list[str]) -> None:
    start = TEXT.index(value)
    found = _file().labels_at(start, start + len(value))
    assert [label.text for label in found] == labels
    assert all(TEXT[label.start : label.end] == label.text for label in found)


def test_labels_say_whether_they_name_a_row_or_a_column() -> None:
    start = TEXT.index("4")
    assert _file().labels_at(start, start + 1)[1:] == (
        Label("Max", TEXT.index("Max"), TEXT.index("Max") + 3, "column"),
        Label("Pear", TEXT.index("Pear"), TEXT.index("Pear") + 4, "row"),
    )


def test_a_merged_row_label_names_all_its_rows() -> None:
    text = "Year\tMonth\tSum\n2020\tMay\t10\n\tJune\t20"
    table = Table(0, len(text), 1, 2, (Merged(1, 0, 2, 1),))
    assert [label.text for label in table.labels_at(text, text.index("20", 25))] == ["Sum", "2020", "June"]


def test_parts_are_found_by_offset() -> None:
    file = _file()
    assert [part and part.number for part in map(file.part_at, (0, 5, 7, len(TEXT) - 1))] == [1, 1, 2, 2]
    assert file.part_at(6) is None, "the line end between two pages belongs to none"
    assert FileText("text").part_at(0) is FileText("text").table_at(0) is None


def test_boxes_are_found_by_span() -> None:
    file = _file()
    first = Box(0, 6, 1, 1.5, 2.0, 30.25, 12.0)
    assert file.boxes[0] == first
    assert file.boxes.at(2, 4) == [first]
    assert file.boxes.at(6, 9) == []
    assert [box.page for box in file.boxes.at(0, len(TEXT))] == [1, 2]
    assert [box.page for box in file.boxes] == [1, 2]


def test_a_result_is_the_same_in_the_other_process() -> None:
    line, _, packed = to_wire(_file()).partition(b"\n")
    assert box_bytes(line) == len(packed) == 56
    assert from_wire(line, packed) == _file()


@pytest.mark.parametrize("line", [b"[]", b"{}", b'{"kind": 1}', b"x", b'{"boxes": "many"}'])
def test_bytes_that_are_no_result_are_refused(line: bytes) -> None:
    with pytest.raises((ValueError, TypeError, KeyError)):
        from_wire(line, b"")


def test_a_year_names_a_column_only_above_numbers() -> None:
    assert guess_header_rows([["Founded", "1954"], ["Staff", "12"], ["Name", "Alder"]]) == 0
    assert guess_header_rows([["Measure", "2022", "2023"], ["Emissions", "120", "97"], ["Water", "45", "41"]]) == 1
