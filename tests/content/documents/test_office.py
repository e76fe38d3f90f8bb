"""DOCX, XLSX, PPTX, ODT, ODS, ODP and EPUB: text, structure, labels, links and facts."""

from __future__ import annotations

import io
from datetime import datetime
from typing import Any

import pytest
from office_files import docx, epub, odf, packed, paragraph, sheet, xlsx

from curtsy.content.documents.model import FileText, Limits
from curtsy.content.documents.number_formats import shown_number
from curtsy.content.documents.reading import read_document


def read(kind: str, body: bytes, **limits: Any) -> FileText:
    return read_document(kind, body, Limits(**limits))


def labels(file: FileText, value: str) -> list[str]:
    start = file.text.index(value)
    return [label.text for label in file.labels_at(start, start + len(value))]


def headings(file: FileText) -> list[tuple[int, str]]:
    return [(heading.level, file.text[heading.start : heading.end]) for heading in file.headings]


def parts(file: FileText) -> list[tuple[str, int, str, str]]:
    return [(part.kind, part.number, part.label, file.text[part.start : part.end]) for part in file.parts]


def saved(document: Any) -> bytes:
    body = io.BytesIO()
    document.save(body)
    return body.getvalue()


# DOCX


def test_docx_by_python_docx() -> None:
    import docx as python_docx

    document = python_docx.Document()
    document.core_properties.title, document.core_properties.author = "Price list", "A. Writer"
    document.core_properties.created = datetime(2024, 5, 6, 7, 8, 9)
    document.add_heading("Fruit", 1)
    document.add_paragraph("Prices of this week.")
    document.add_paragraph("apples", style="List Bullet")
    document.add_paragraph("pears", style="List Bullet")
    document.add_heading("Table", 2)
    table = document.add_table(rows=0, cols=3)
    for row in (("Item", "Min", "Max"), ("Apple", "1.20", "2.00"), ("Pear", "0.90", "1.75")):
        for cell, text in zip(table.add_row().cells, row, strict=True):
            cell.text = text
    document.add_heading("Vegetables", 1)
    document.add_paragraph("None.")
    file = read("docx", saved(document))
    assert file.text.split("\n") == [
        "Fruit", "Prices of this week.", "apples", "pears", "Table", "Item\tMin\tMax", "Apple\t1.20\t2.00",
        "Pear\t0.90\t1.75", "Vegetables", "None.",
    ]  # fmt: skip
    assert headings(file) == [(1, "Fruit"), (2, "Table"), (1, "Vegetables")]
    assert labels(file, "1.75") == ["Max", "Pear"]
    assert (file.title, file.author, file.created) == ("Price list", "A. Writer", "2024-05-06T07:08:09Z")
    assert [part[2] for part in parts(file)] == ["Fruit", "Vegetables"]
    assert "- apples\n- pears\n\n## Table\n\n| Item | Min | Max |\n| --- | --- | --- |" in file.markdown
    assert file.problem == ""


def test_docx_runs_tabs_breaks_and_hidden_or_deleted_text() -> None:
    body = (
        "<w:p><w:r><w:t>one</w:t></w:r><w:r><w:t xml:space='preserve'> wo</w:t></w:r><w:r><w:t>rd</w:t><w:tab/>"
        "<w:t>tab</w:t><w:br/><w:t>line</w:t></w:r><w:del><w:r><w:delText>gone</w:delText><w:t>gone</w:t></w:r></w:del>"
        "<w:ins><w:r><w:t> new</w:t></w:r></w:ins>"
        "<w:r><w:rPr><w:vanish/></w:rPr><w:t>hidden</w:t></w:r><w:r><w:t> shown</w:t></w:r></w:p>"
    )
    assert read("docx", docx(body)).text == "one word tab\nline new shown"


def test_docx_links_by_relation_and_by_field() -> None:
    body = (
        '<w:p><w:hyperlink r:id="rId7"><w:r><w:t>there</w:t></w:r></w:hyperlink>'
        '<w:hyperlink w:anchor="x"><w:r><w:t> here</w:t></w:r></w:hyperlink>'
        '<w:r><w:instrText> HYPERLINK "https://b.test/c" </w:instrText></w:r><w:r><w:t> too</w:t></w:r></w:p>'
    )
    file = read("docx", docx(body, {"rId7": "https://a.test/"}))
    assert file.links == ("https://a.test/", "https://b.test/c")
    assert file.text == "there here too"


def test_docx_styles_based_on_headings_and_the_language() -> None:
    styles = (
        '<w:docDefaults><w:lang w:val="de-DE"/></w:docDefaults>'
        '<w:style w:styleId="berschrift1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Mine"><w:basedOn w:val="berschrift1"/><w:name w:val="Mine"/></w:style>'
    )
    body = paragraph("Eins", "berschrift1") + paragraph("Zwei", "Mine") + paragraph("Text")
    file = read("docx", docx(body, styles=styles))
    assert headings(file) == [(1, "Eins"), (1, "Zwei")]
    assert file.language == "de-DE"


def test_docx_merged_cells_and_nested_tables() -> None:
    def cell(text: str, look: str = "") -> str:
        return f"<w:tc><w:tcPr>{look}</w:tcPr>{paragraph(text)}</w:tc>"

    inner = f"<w:tbl><w:tr>{cell('in')}{cell('ner')}</w:tr></w:tbl>"
    body = (
        "<w:tbl><w:tr><w:trPr><w:tblHeader/></w:trPr>"
        + cell("Region") + cell("Month") + cell("Sums", '<w:gridSpan w:val="2"/>')
        + "</w:tr><w:tr><w:trPr><w:tblHeader/></w:trPr>" + cell("") + cell("") + cell("Net") + cell("Gross")
        + "</w:tr><w:tr>" + cell("North", '<w:vMerge w:val="restart"/>') + cell("May") + cell("10") + cell("12")
        + "</w:tr><w:tr>" + cell("", "<w:vMerge/>") + cell("June") + cell("20")
        + f"<w:tc>{inner}{paragraph('24')}</w:tc></w:tr></w:tbl>"
    )  # fmt: skip
    file = read("docx", docx(body))
    assert file.text == "Region\tMonth\tSums\n\t\tNet\tGross\nNorth\tMay\t10\t12\n\tJune\t20\tin ner 24"
    table = file.tables[0]
    assert table.header_rows == 2
    assert labels(file, "12")[:2] == ["Sums", "Gross"]
    assert labels(file, "10")[:2] == ["Sums", "Net"]


def test_docx_footnotes_are_read_and_fallbacks_are_not_repeated() -> None:
    space = 'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    choice, fallback = f"<mc:Choice>{paragraph('box')}</mc:Choice>", f"<mc:Fallback>{paragraph('box')}</mc:Fallback>"
    body = f"<mc:AlternateContent {space}>{choice}{fallback}</mc:AlternateContent>"
    file = read("docx", docx(paragraph("main") + body, footnotes=f"<w:footnote>{paragraph('a note')}</w:footnote>"))
    assert file.text == "main\nbox\na note"


# XLSX


def test_xlsx_by_openpyxl() -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.properties.title, book.properties.creator = "Sales", "B. Counter"
    first = book.active
    assert first is not None
    first.title = "Year 2024"
    first.append(["Sales by region"])
    first.append([])
    first.append(["Region", "Sales", "Share", "Since"])
    first.append(["North", 1234.5, 0.125, datetime(2020, 2, 3)])
    first.append(["South", 99, 0.5, datetime(2021, 12, 31, 13, 30)])
    for row in (4, 5):
        first.cell(row, 2).number_format = '#,##0.00 "€"'
        first.cell(row, 3).number_format = "0.0%"
    first.cell(4, 4).number_format = "dd.mm.yyyy"
    first["A1"].hyperlink = "https://a.test/x"
    second = book.create_sheet("Notes")
    second["C3"] = "only here"
    file = read("xlsx", saved(book))
    assert file.text.split("\n") == [
        "Sales by region", "Region\tSales\tShare\tSince", "North\t1,234.50 €\t12.5%\t2020-02-03",
        "South\t99.00 €\t50.0%\t2021-12-31 13:30", "only here",
    ]  # fmt: skip
    assert labels(file, "1,234.50 €") == ["Sales", "North"]
    assert labels(file, "50.0%") == ["Share", "South"]
    assert [part[:3] for part in parts(file)] == [("sheet", 1, "Year 2024"), ("sheet", 2, "Notes")]
    assert parts(file)[1][3] == "only here"
    assert (file.links, file.title, file.author) == (("https://a.test/x",), "Sales", "B. Counter")
    assert file.page_count == 2


def test_xlsx_by_xlsxwriter() -> None:
    import xlsxwriter

    body = io.BytesIO()
    with xlsxwriter.Workbook(body, {"constant_memory": False}) as book:
        made = book.add_worksheet("Data")
        made.merge_range("B1:C1", "Price")
        made.write_row("A2", ["Name", "Min", "Max"])
        made.write_row("A3", ["Plum", 1, 2])
        made.write_row("A4", ["Fig", 3, 4.25])
        made.write_boolean("A9", True)
        made.write_url("A7", "https://b.test/", string="more")
    file = read("xlsx", body.getvalue())
    assert labels(file, "4.25") == ["Price", "Max", "Fig"]
    assert labels(file, "1") == ["Price", "Min", "Plum"]
    assert file.text.endswith("more\nTRUE")
    assert file.links == ("https://b.test/",)


def test_xlsx_rich_strings_gaps_and_errors() -> None:
    strings = "<si><r><t>two </t></r><r><t>runs</t></r><rPh><t>no</t></rPh></si><si><t>x</t></si>"
    rows = (
        '<sheetData><row r="1"><c r="A1" t="s"><v>0</v></c><c r="D1" t="s"><v>1</v></c></row>'
        '<row r="2"><c r="A2" t="s"><v>77</v></c><c r="B2" t="e"><v>#N/A</v></c><c r="D2"><v>1E3</v></c>'
        '<c r="ZZZZ9"><v>5</v></c><c r="E2" t="str"><f>1+1</f><v>two</v></c></row></sheetData>'
    )
    file = read("xlsx", xlsx({"A": rows}, strings))
    assert file.text == "two runs\t\t\tx\n\t#N/A\t\t1000\ttwo"


def test_xlsx_hidden_sheets_are_not_read() -> None:
    file = read("xlsx", xlsx({"A": sheet([["a", "b"]]), "B": sheet([["secret"]])}, hidden="B"))
    assert (file.text, file.page_count) == ("a\tb", 1)


@pytest.mark.parametrize(
    ("value", "code", "shown"),
    [
        ("1234567.891", "#,##0.00", "1,234,567.89"),
        ("-5", "0", "-5"),
        ("0.07", "0%", "7%"),
        ("12", "[$€-407] #,##0.00", "€ 12.00"),
        ("12", '"$"#,##0;[Red]("$"#,##0)', "$12"),
        ("44000.75", "yyyy-mm-dd hh:mm", "2020-06-18 18:00"),
        ("0.5", "h:mm", "12:00"),
        ("1.25", "[h]:mm", "30:00"),
        ("3.14", "General", "3.14"),
        ("1e20", "General", "1e+20"),
        ("text", "0.00", "text"),
        ("nan", "0.00", "nan"),
        ("-1", "yyyy", "-1"),
        ("99999999", "yyyy-mm-dd", "99999999"),
        ("5", '0 "kg"', "5 kg"),
    ],
)
def test_numbers_as_they_are_shown(value: str, code: str, shown: str) -> None:
    assert shown_number(value, code) == shown


def test_dates_of_old_macintosh_files() -> None:
    assert shown_number("0", "yyyy-mm-dd", is_1904=True) == "1904-01-01"


# PPTX


def test_pptx_by_python_pptx() -> None:
    import pptx as python_pptx
    from pptx.util import Inches

    deck = python_pptx.Presentation()
    deck.core_properties.title = "Talk"
    one = deck.slides.add_slide(deck.slide_layouts[1])
    one.shapes.title.text = "First slide"
    one.placeholders[1].text = "point one\npoint two"
    run = one.placeholders[1].text_frame.add_paragraph().add_run()
    run.text = "linked"
    run.hyperlink.address = "https://a.test/deck"
    one.notes_slide.notes_text_frame.text = "said aloud"
    two = deck.slides.add_slide(deck.slide_layouts[5])
    two.shapes.title.text = "Numbers"
    table = two.shapes.add_table(3, 3, Inches(1), Inches(2), Inches(6), Inches(2)).table
    for y, row in enumerate((("Item", "Min", "Max"), ("Apple", "1", "2"), ("Pear", "3", "4.5"))):
        for x, text in enumerate(row):
            table.cell(y, x).text = text
    file = read("pptx", saved(deck))
    assert parts(file) == [
        ("slide", 1, "First slide", "First slide\npoint one\npoint two\nlinked\nsaid aloud"),
        ("slide", 2, "Numbers", "Numbers\nItem\tMin\tMax\nApple\t1\t2\nPear\t3\t4.5"),
    ]
    assert headings(file) == [(2, "First slide"), (2, "Numbers")]
    assert labels(file, "4.5") == ["Max", "Pear"]
    assert (file.links, file.title, file.page_count) == (("https://a.test/deck",), "Talk", 2)


def test_pptx_merged_cells() -> None:
    import pptx as python_pptx
    from pptx.util import Inches

    deck = python_pptx.Presentation()
    slide = deck.slides.add_slide(deck.slide_layouts[6])
    table = slide.shapes.add_table(3, 3, Inches(1), Inches(2), Inches(6), Inches(2)).table
    for y, row in enumerate((("", "Price", ""), ("Apple", "1", "2"), ("Pear", "3", "4.5"))):
        for x, text in enumerate(row):
            table.cell(y, x).text = text
    table.cell(0, 1).merge(table.cell(0, 2))
    file = read("pptx", saved(deck))
    assert labels(file, "4.5") == ["Price", "Pear"]


def test_pptx_with_many_slides_is_cut() -> None:
    import pptx as python_pptx

    deck = python_pptx.Presentation()
    for n in range(5):
        deck.slides.add_slide(deck.slide_layouts[5]).shapes.title.text = f"Slide {n}"
    file = read("pptx", saved(deck), pages=3)
    assert (file.problem, file.page_count, len(file.parts)) == ("too_many_pages", 5, 3)


# OpenDocument


def test_odt_text() -> None:
    body = (
        "<text:tracked-changes><text:p>deleted</text:p></text:tracked-changes>"
        '<text:h text:outline-level="1">Fruit</text:h>'
        '<text:p>One<text:s text:c="3"/>two<text:tab/>three<text:line-break/>four <text:span>five</text:span>'
        '<text:span text:style-name="T1">hidden</text:span></text:p>'
        "<text:list><text:list-item><text:p>item</text:p></text:list-item></text:list>"
        '<text:p><text:a xlink:href="https://a.test/">link</text:a><office:annotation><text:p>comment</text:p></office:annotation></text:p>'
        "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>Item</text:p></table:table-cell>"
        "<table:table-cell><text:p>Price</text:p></table:table-cell></table:table-row></table:table-header-rows>"
        "<table:table-row><table:table-cell><text:p>Fig</text:p></table:table-cell><table:table-cell><text:p>7</text:p>"
        "</table:table-cell></table:table-row></table:table>"
    )
    styles = '<style:style style:name="T1"><style:text-properties text:display="none"/></style:style>'
    meta = (
        "<dc:title>Title</dc:title><meta:initial-creator>C. Author</meta:initial-creator>"
        "<meta:creation-date>2023-01-02T03:04:05</meta:creation-date><dc:language>fr</dc:language>"
    )
    file = read("odt", odf("text", body, styles, meta))
    assert file.text == "Fruit\nOne two three\nfour five\nitem\nlink\nItem\tPrice\nFig\t7"
    assert (headings(file), labels(file, "7"), file.links) == ([(1, "Fruit")], ["Price", "Fig"], ("https://a.test/",))
    assert (file.title, file.author, file.created, file.language) == ("Title", "C. Author", "2023-01-02T03:04:05", "fr")
    assert "- item" in file.markdown


def test_ods_sheets_with_repeated_and_merged_cells() -> None:
    def cell(text: str, look: str = "") -> str:
        return f"<table:table-cell {look}>{'<text:p>' + text + '</text:p>' if text else ''}</table:table-cell>"

    body = (
        '<table:table table:name="One"><table:table-row>'
        + cell("") + cell("Price", 'table:number-columns-spanned="2"') + "<table:covered-table-cell/>"
        + "</table:table-row><table:table-row>" + cell("Item") + cell("Min") + cell("Max")
        + "</table:table-row><table:table-row>" + cell("Fig") + cell("1,00 €", 'table:number-columns-repeated="2"')
        + '</table:table-row><table:table-row table:number-rows-repeated="1048570">'
        + cell("", 'table:number-columns-repeated="16384"') + "</table:table-row></table:table>"
        + '<table:table table:name="Two"><table:table-row>' + cell("z") + "</table:table-row></table:table>"
    )  # fmt: skip
    file = read("ods", odf("spreadsheet", body))
    assert file.text == "\tPrice\nItem\tMin\tMax\nFig\t1,00 €\t1,00 €\nz"
    assert [part[:3] for part in parts(file)] == [("sheet", 1, "One"), ("sheet", 2, "Two")]
    start = file.text.rindex("1,00 €")
    assert [label.text for label in file.labels_at(start, start + 6)] == ["Price", "Max", "Fig"]


def test_odp_slides() -> None:
    body = "".join(
        f'<draw:page><draw:frame presentation:class="title"><draw:text-box><text:p>Slide {n}</text:p></draw:text-box>'
        f"</draw:frame><draw:frame><draw:text-box><text:p>words {n}</text:p></draw:text-box></draw:frame></draw:page>"
        for n in (1, 2)
    )
    file = read("odp", odf("presentation", body))
    assert parts(file) == [("slide", 1, "Slide 1", "Slide 1\nwords 1"), ("slide", 2, "Slide 2", "Slide 2\nwords 2")]


def test_an_encrypted_opendocument_says_so() -> None:
    manifest = "<manifest:file-entry><manifest:encryption-data/></manifest:file-entry>"
    assert read("odt", odf("text", "", manifest=manifest)).problem == "encrypted"


# EPUB


def test_epub_chapters() -> None:
    facts = "<dc:title>The Book</dc:title><dc:creator>D. Poet</dc:creator><dc:language>en</dc:language>"
    chapters = {
        "b.xhtml": "<h1>Two &amp; one</h1><p>First<br/>line <b>bo</b>ld.</p><ul><li>item</li></ul>",
        "a.xhtml": "<h2>Next</h2><table><tr><th>Item</th><th>Price</th></tr><tr><td>Fig</td><td>7</td></tr></table>"
        '<script>no()</script><p><a href="https://a.test/">x</a><a href="b.xhtml#p">y</a></p>',
    }
    file = read("epub", epub(chapters, facts))
    assert parts(file) == [
        ("chapter", 1, "Two & one", "Two & one\nFirst\nline bold.\nitem"),
        ("chapter", 2, "Next", "Next\nItem\tPrice\nFig\t7\nxy"),
    ]
    assert (headings(file), labels(file, "7")) == ([(1, "Two & one"), (2, "Next")], ["Price", "Fig"])
    assert (file.title, file.author, file.language) == ("The Book", "D. Poet", "en")
    assert file.links == ("https://a.test/", "b.xhtml#p")


def test_epub_with_encrypted_chapters_says_so_and_scrambled_fonts_do_not_matter() -> None:
    def lock(name: str) -> dict[str, str]:
        return {"META-INF/encryption.xml": f'<encryption><CipherReference URI="{name}"/></encryption>'}

    assert read("epub", epub({"a.xhtml": "<p>x</p>"}, **lock("OPS/text/a.xhtml"))).problem == "encrypted"
    assert read("epub", epub({"a.xhtml": "<p>x</p>"}, **lock("OPS/fonts/a.otf"))).text == "x"


# What is wrong with a file

KINDS = ("docx", "xlsx", "pptx", "odt", "ods", "odp", "epub")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("body", [b"", b"PK\x03\x04", b"x" * 100, packed({}), packed({"a": "b"})])
def test_files_without_content_are_malformed(kind: str, body: bytes) -> None:
    file = read(kind, body)
    assert (file.problem, file.truncated) == ("malformed", True)


@pytest.mark.parametrize("kind", ["docx", "xlsx", "pptx"])
def test_an_ole_container_is_encrypted(kind: str) -> None:
    assert read(kind, b"\xd0\xcf\x11\xe0" + b"\0" * 600).problem == "encrypted"


def test_what_comes_before_broken_xml_is_kept() -> None:
    file = read("docx", docx(paragraph("kept") + "<w:p><w:r></w:p>"))
    assert (file.text, file.problem) == ("kept", "malformed")


def test_empty_documents_have_no_text() -> None:
    for kind, body in (
        ("docx", docx("")),
        ("odt", odf("text", "")),
        ("xlsx", xlsx({"A": ""})),
        ("epub", epub({"a": ""})),
    ):
        assert read(kind, body).problem == "no_text", kind
