"""CSV and plain text."""

from __future__ import annotations

import pytest

from curtsy.content.documents.model import FileText, Limits
from curtsy.content.documents.plain import delimiter
from curtsy.content.documents.reading import read_document


def _labels(file: FileText, value: str) -> list[str]:
    start = file.text.index(value)
    return [label.text for label in file.labels_at(start, start + len(value))]


def test_a_csv_file_is_one_table_with_labels() -> None:
    file = read_document("csv", b"City,Area,People\nUlm,118.7,126000\nJena,114.8,111000\n", Limits())
    assert file.text == "City\tArea\tPeople\nUlm\t118.7\t126000\nJena\t114.8\t111000"
    assert _labels(file, "114.8") == ["Area", "Jena"]
    assert file.markdown.startswith("| City | Area | People |\n| --- | --- | --- |\n| Ulm |")
    assert (file.problem, file.truncated, file.page_count) == ("", False, 1)


def test_quoted_cells_stay_in_their_row() -> None:
    file = read_document("csv", b'a,b\n"x, ""y""\r\nz",1\nq,2\n', Limits())
    assert file.text == 'a\tb\nx, "y" z\t1\nq\t2'
    assert _labels(file, "1") == ["b", 'x, "y" z']


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a;b;c\n1,5;2,5;3,5\n", ";"),
        ("a\tb\n1, 2\t3\n", "\t"),
        ("a|b\n1|2", "|"),
        ('"x;y",1\n"z;w",2', ","),
        ("sep=;\na;b", ";"),
        ("one column\nonly", ","),
        ("", ","),
    ],
)
def test_the_delimiter_is_found(text: str, expected: str) -> None:
    assert delimiter(text) == expected


@pytest.mark.parametrize(
    ("body", "content_type", "text"),
    [
        ("Größe".encode(), None, "Größe"),
        ("Größe".encode("latin-1"), None, "Größe"),
        ("Größe".encode("utf-16"), None, "Größe"),
        ("Привет".encode("koi8-r"), "text/plain; charset=koi8-r", "Привет"),
        (b"\xef\xbb\xbfa\r\nb\rc", None, "a\nb\nc"),
        (b"a\tb  c\x07\n", None, "a\tb  c "),
    ],
)
def test_text_is_decoded_and_keeps_its_lines(body: bytes, content_type: str | None, text: str) -> None:
    assert read_document("text", body, Limits(), content_type).text == text


def test_addresses_in_text_are_links() -> None:
    file = read_document("text", b"See https://a.test/x?y=1, (http://b.test/) and ftp://c.test.", Limits())
    assert file.links == ("https://a.test/x?y=1", "http://b.test/")


@pytest.mark.parametrize("kind", ["csv", "text"])
def test_a_long_file_is_cut(kind: str) -> None:
    file = read_document(kind, b"name,value\n" + b"a,1\n" * 1000, Limits(characters=500))
    assert file.problem == "too_large"
    assert file.truncated
    assert 400 < len(file.text) <= 500
    assert kind == "text" or file.tables[0].end == len(file.text)


@pytest.mark.parametrize("kind", ["csv", "text"])
def test_an_empty_file_has_no_text(kind: str) -> None:
    file = read_document(kind, b" \n", Limits())
    assert (file.problem, file.truncated) == ("no_text", False)


def test_a_kind_without_reader_is_unsupported() -> None:
    assert read_document("doc", b"x", Limits()).problem == "unsupported"
