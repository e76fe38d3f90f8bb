"""RTF: text in several code pages, tables, headings, links, facts."""

from __future__ import annotations

import pytest

from curtsy.content.documents.model import FileText, Limits
from curtsy.content.documents.reading import read_document


def read(text: str | bytes, head: str = "\\rtf1\\ansi\\ansicpg1252") -> FileText:
    inner = text if isinstance(text, bytes) else text.encode()
    return read_document("rtf", b"{" + head.encode() + b" " + inner + b"}", Limits())


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("one\\par two", "one\ntwo"),
        ("caf\\'e9 \\u8364? \\u-10179?\\u-8704?", "café € 😀"),
        ("\\uc0\\u8364 x", "€x"),
        ("\\uc2\\u8364 abx", "€x"),
        ("a\\~b\\_c\\-d \\{e\\}\\\\", "a b-cd {e}\\"),
        ("\\ldblquote x\\rdblquote \\emdash y", "“x”—y"),
        ("x{\\v hidden}y{\\deleted gone}z", "xyz"),
        ("a\\line b", "a\nb"),
        ("{\\*\\unknown secret}seen", "seen"),
        ("{\\pict\\wmetafile8 0102}seen", "seen"),
        ("{\\fonttbl{\\f0 Times;}{\\f1\\fcharset204 Arial;}}\\f1\\'cf\\'f0\\f0 x", "Прx"),
        ("\\bin5 {{{{{seen", "seen"),
        ("{\\b bold}{\\i  italic}", "bold italic"),
    ],
)
def test_text(source: str, text: str) -> None:
    file = read(source)
    assert (file.text, file.problem) == (text, "")


def test_code_page_of_the_file() -> None:
    assert read("\\'cf\\'f0", "\\rtf1\\ansi\\ansicpg1251").text == "Пр"
    assert read("\\'82\\'a0", "\\rtf1\\ansi\\ansicpg932").text == "あ"
    assert read("x", "\\rtf1\\ansi\\ansicpg99999").text == "x"


def test_tables_have_labels() -> None:
    file = read(
        "before\\par\\trowd\\trhdr\\cellx1\\cellx2\\pard\\intbl Item\\cell Price\\cell\\row"
        "\\trowd\\pard\\intbl Fig\\par dried\\cell 7\\cell\\row\\pard after\\par"
    )
    assert file.text == "before\nItem\tPrice\nFig dried\t7\nafter"
    start = file.text.index("7")
    assert [label.text for label in file.labels_at(start, start + 1)] == ["Price", "Fig dried"]


def test_headings_links_and_facts() -> None:
    file = read(
        "{\\stylesheet{\\s0 Normal;}{\\s2\\b heading 2;}}{\\info{\\title My title}{\\author E. Author}"
        "{\\creatim\\yr2021\\mo3\\dy4\\hr5\\min6}}\\pard\\outlinelevel0 Top\\par\\pard\\s2 Sub\\par\\pard text "
        '{\\field{\\*\\fldinst HYPERLINK "https://a.test/x"}{\\fldrslt link}}\\par'
    )
    assert file.text == "Top\nSub\ntext link"
    assert [heading.level for heading in file.headings] == [1, 2]
    assert file.links == ("https://a.test/x",)
    assert (file.title, file.author, file.created) == ("My title", "E. Author", "2021-03-04T05:06:00")


@pytest.mark.parametrize("body", [b"", b"x", b"{\\rtf1 open {", b"{\\rtf1 open"])
def test_broken_files_are_malformed(body: bytes) -> None:
    file = read_document("rtf", body, Limits())
    assert file.problem == "malformed"
    assert file.text in ("", "open")


def test_deep_groups_are_too_large() -> None:
    body = b"{\\rtf1 seen" + b"{" * 100_000 + b"x" + b"}" * 100_001
    file = read_document("rtf", body, Limits())
    assert (file.problem, file.text) == ("too_large", "seen")
