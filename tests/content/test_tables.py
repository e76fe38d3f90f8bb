"""Labels of table cells and definitions: header cells, spans, heuristics, layout tables, bounds."""

from __future__ import annotations

import time

import pytest

from curtsy.content.document import Document
from curtsy.core.text_layout import EMPTY_LAYOUT, Label, LabelKind, TextLayout, joined


def parse(html: str) -> Document:
    return Document.parse(html.encode(), "text/html; charset=utf-8", "http://a.test/")


def labels(html: str, value: str) -> list[str]:
    """Of the last place of a value, as `kind:text`; every label is checked against the text."""
    page = parse(html)
    text = page.text()
    start = text.rindex(value)
    found = page.labels_at(start, start + len(value))
    assert all(text[label.start : label.end] == label.text for label in found)
    return [f"{label.kind.value}:{label.text}" for label in found]


def table(*rows: str) -> str:
    return f"<table>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>"


YEARS = table("<th>Indicator<th>2022<th>2023", "<td>Emissions (t)<td>1,500<td>1,234", "<td>Staff<td>80<td>95")


@pytest.mark.parametrize(
    ("html", "value", "expected"),
    [
        (YEARS, "1,234", ["row:Emissions (t)", "column:2023"]),
        (YEARS, "80", ["row:Staff", "column:2022"]),
        (YEARS, "Staff", ["column:Indicator"]),
        (YEARS, "2023", []),
        (table("<th>Founded<td>2019", "<th>Seat<td>Bergen"), "2019", ["row:Founded"]),
        (table("<td>Founded<td>2019", "<td>Seat<td>Bergen"), "Bergen", ["row:Seat"]),
        (table("<td>10<td>2019", "<td>11<td>2020"), "2020", []),
        (
            table("<td><b>Name</b><td><b>Year</b>", "<td>Alder<td>2001", "<td>Birch<td>2019"),
            "2019", ["row:Birch", "column:Year"],
        ),
        (
            table("<td>Name<td>Kind<td>Year", "<td>Alder<td>a<td>2001", "<td>Birch<td>b<td>2019"),
            "2019", ["row:Birch", "column:Year"],
        ),
        (table("<td><td><th scope=col>2022", "<th scope=row>A<td>x<td>7"), "7", ["row:A", "column:2022"]),
        (
            table("<th rowspan=2>Site<th colspan=2>Energy", "<th>Gas<th>Power", "<td>Oslo<td>10<td>20"),
            "20", ["row:Oslo", "column:Energy", "column:Power"],
        ),
        (
            table("<th>Scope<th>Year<th>t", "<th rowspan=2>One<td>2022<td>5", "<td>2023<td>6"),
            "6", ["row:One", "column:t"],
        ),
        (
            table("<th>A<th>B", "<th colspan=2>Norway", "<td>x<td>1", "<th colspan=2>Sweden", "<td>y<td>2"),
            "2", ["row:Sweden", "row:y", "column:B"],
        ),
        (table("<th id=a>A<th id=b>B", "<td headers='b x'>7<td>8"), "7", ["column:B"]),
        ("<table><thead><tr><td>A<td>B<tbody><tr><td>x<td><p>1</p><p>2</p></table>", "2", ["row:x", "column:B"]),
        ("<table role=presentation><tr><th>A<th>B<tr><td>x<td>1</table>", "1", []),
        (table("<td><div>menu</div><td><p>text 1</p>", "<td>a<td>b"), "1", []),
        ("<dl><dt>Founded<dd>2019<dt>Staff<dt>People<dd>80<dd>95</dl>", "2019", ["term:Founded"]),
        ("<dl><dt>Founded<dd>2019<dt>Staff<dt>People<dd>80<dd>95</dl>", "95", ["term:Staff", "term:People"]),
        ("<dl><div><dt>Founded</dt><dd>in <b>2019</b></dd></div></dl>", "2019", ["term:Founded"]),
        ("<dl><dt>Seat<dd>" + YEARS + "</dl>", "1,234", ["term:Seat", "row:Emissions (t)", "column:2023"]),
        (table("<th>A<th>B", "<td>x<td>" + YEARS), "95", ["row:x", "column:B", "row:Staff", "column:2023"]),
        (table("<td>" + YEARS + "<td><div>b</div>"), "95", ["row:Staff", "column:2023"]),
        ("<dd>2019</dd><dt>x</dt>", "2019", []),
    ],
)  # fmt: skip
def test_a_cell_has_its_labels(html: str, value: str, expected: list[str]) -> None:
    assert labels(html, value) == expected


def test_a_row_stays_on_its_line() -> None:
    html = table("<th><p>Name</p><th><div>Year</div>", "<td><p>Alder</p></td> <td><p>2001</p></td>")
    assert parse(f"<p>before</p>{html}after").text() == "before\nName\tYear\nAlder\t2001\nafter"


def test_a_quote_of_several_cells_has_the_labels_that_they_share() -> None:
    page = parse(table("<th>Name<th>Year<th>Seat", "<th>Alder<td>2001<td>Oslo"))
    text = page.text()
    start = text.index("Alder")
    assert [label.text for label in page.labels_at(start, len(text))] == ["Alder"]
    assert page.labels_at(0, len(text)) == page.labels_at(start, len(text))
    pair = parse("<p>About us</p>" + table("<td>Founded<td>2019", "<td>Seat<td>Bergen"))
    start = pair.text().index("Founded")
    assert joined(pair.labels_at(start, start + len("Founded\t2019"))) == "Founded"


def test_labels_are_stored_and_read_again() -> None:
    page = parse(f"<details>{YEARS}</details><dl><dt>a<dd>b</dl>")
    layout = page.visible().layout
    assert layout.cells
    assert layout.unseen
    assert TextLayout.from_json(layout.as_json(), page.text()) == layout
    assert EMPTY_LAYOUT.as_json() == {}
    assert TextLayout.from_json({}, "") == EMPTY_LAYOUT


def test_labels_are_joined_for_display() -> None:
    assert joined([Label(LabelKind.ROW, "Emissions\n(t)", 0, 13), Label(LabelKind.COLUMN, "2023", 14, 18)]) == (
        "Emissions (t) | 2023"
    )


@pytest.mark.parametrize(
    "html",
    [
        "<table>" + "<tr><th rowspan=65000 colspan=1000>a<td>b" * 20_000,
        "<table>" + "<tr><th>a<td rowspan=0>b" * 20_000,
        "<table><tr><th>a" + "<table><tr><th>b<td>c" * 300,
        "<table><tr>" + "<th>a" * 20_000 + "<tr>" + "<td>1" * 20_000,
        "<dl>" + "<dt>a<dd>b" * 20_000,
        "<dl><dt>a<dd>" * 300,
        "<table><tr><td>a<td headers='x'>" * 5_000,
    ],
)
def test_hostile_tables_take_bounded_time(html: str) -> None:
    page = parse(html)
    page.page_tree()
    start = time.process_time()
    page.text()
    assert time.process_time() - start < 3.0
