"""Files that are made to use up memory or time have a problem, in bounded time, and the process reads the next file."""

from __future__ import annotations

import io
import struct
import time
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from office_files import docx, epub, odf, packed, paragraph, sheet, xlsx
from pdf_files import pages, pdf, string

from curtsy.content.documents.model import FileText, Limits
from curtsy.services.document_process import Documents

LIMITS = Limits(seconds=10.0, memory_bytes=1 << 30, characters=1_000_000, unpacked_bytes=64 << 20)


@pytest.fixture(scope="module")
def process() -> Iterator[Documents]:
    made = Documents()
    yield made
    made.close()


def read(process: Documents, kind: str, body: bytes, **limits: Any) -> FileText:
    started = time.monotonic()
    file = process.read(kind, body, limits=LIMITS if not limits else Limits(**limits))
    assert time.monotonic() - started < 60
    assert process.read("csv", b"a,b\n1,2\n").problem == "", "the next file is read"
    return file


def test_a_zip_bomb_is_too_large(process: Documents) -> None:
    text = "<w:p><w:r><w:t>" + "a" * (200 << 20) + "</w:t></w:r></w:p>"
    body = docx(text)
    assert len(body) < 1 << 20
    assert read(process, "docx", body).problem == "too_large"


def test_members_that_share_their_data_count_each(process: Documents) -> None:
    """An overlapping ZIP bomb: every name of the directory points to the same compressed data."""
    content = b"<x>" + b" " * (20 << 20)
    packed_once = zlib.compress(content, 9)[2:-4]
    name = b"word/document.xml"
    local = struct.pack(
        "<4sHHHHHIIIHH", b"PK\3\4", 20, 0, 8, 0, 0, zlib.crc32(content), len(packed_once), len(content), len(name), 0
    )
    directory = b""
    for n in range(1_000):
        entry = name if not n else b"word/p%d.xml" % n
        directory += struct.pack(
            "<4sHHHHHHIIIHHHHHII", b"PK\1\2", 20, 20, 0, 8, 0, 0, zlib.crc32(content), len(packed_once), len(content),
            len(entry), 0, 0, 0, 0, 0, 0,
        ) + entry  # fmt: skip
    start = len(local) + len(name) + len(packed_once)
    end = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 1_000, 1_000, len(directory), start, 0)
    body = local + name + packed_once + directory + end
    assert read(process, "docx", body).problem in ("malformed", "too_large")


def test_too_many_members_are_too_large(process: Documents) -> None:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        for n in range(21_000):
            file.writestr(f"{n}", "")
    assert read(process, "docx", made.getvalue()).problem == "too_large"


ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaaaaaaaaaaaa">'
    + "".join(f'<!ENTITY {two} "{f"&{one};" * 20}">' for one, two in zip("abcdefgh", "bcdefghi", strict=True))
    + "]>"
)


@pytest.mark.parametrize("kind", ["docx", "odt", "epub"])
def test_entities_are_refused(process: Documents, kind: str) -> None:
    xml = f"{ENTITIES}<x>&i;</x>"
    bodies = {
        "docx": packed({"word/document.xml": xml}),
        "odt": packed({"content.xml": xml}),
        "epub": packed({"META-INF/container.xml": xml}),
    }
    assert read(process, kind, bodies[kind]).problem == "malformed"


def test_external_entities_are_not_read(process: Documents) -> None:
    xml = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x>&a;</x>'
    file = read(process, "odt", packed({"content.xml": xml}))
    assert (file.problem, file.text) == ("malformed", "")


@pytest.mark.parametrize("depth", [1_000, 500_000])
def test_deep_xml_is_too_large(process: Documents, depth: int) -> None:
    body = docx(paragraph("kept") + "<w:x>" * depth + "</w:x>" * depth)
    file = read(process, "docx", body)
    assert (file.problem, file.text) == ("too_large", "kept")


def test_deep_html_of_a_chapter_is_read(process: Documents) -> None:
    assert read(process, "epub", epub({"a": "<div>" * 200_000 + "x"})).problem in ("", "no_text", "timeout")


def test_a_sheet_that_repeats_its_cells_without_end_is_cut(process: Documents) -> None:
    cell = '<table:table-cell table:number-columns-repeated="16384"><text:p>repeated</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="1048576">{cell}</table:table-row>'
    file = read(process, "ods", odf("spreadsheet", f'<table:table table:name="A">{row * 9}</table:table>'))
    assert (file.problem, file.truncated) == ("too_large", True)
    assert len(file.text) <= LIMITS.characters


def test_cells_at_the_far_end_of_a_sheet_do_not_fill_it(process: Documents) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c><c r="XFD{n}"><v>2</v></c></row>' for n in range(1, 2_000))
    file = read(process, "xlsx", xlsx({"A": f"<sheetData>{rows}</sheetData>"}))
    assert file.problem == "too_large"


def test_a_sheet_with_a_million_cells_is_read_or_cut(process: Documents) -> None:
    rows: list[list[str | float]] = [[float(n), float(n)] for n in range(200_000)]
    file = read(process, "xlsx", xlsx({"A": sheet(rows)}), seconds=3.0)
    assert file.problem in ("", "timeout")


def test_ten_thousand_pages_are_cut(process: Documents) -> None:
    file = read(process, "pdf", pages(10_000))
    assert (file.problem, file.page_count, len(file.parts)) == ("too_many_pages", 10_000, LIMITS.pages)


def test_a_picture_of_a_hundred_thousand_pixels_square_is_not_unpacked(process: Documents) -> None:
    side = 100_000

    def draw(canvas: Any) -> None:
        string(canvas, 50, 100, "beside a picture")

    # The picture is an object of its own, 10 GB when it is unpacked.
    data = zlib.compress(b"\0" * 1_000_000, 9)
    stream = (
        b"<< /Type /XObject /Subtype /Image /Width %d /Height %d /ColorSpace /DeviceGray /BitsPerComponent 8 "
        b"/Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (side, side, len(data), data)
    )
    body = pdf(draw, pageCompression=0)
    body = body.replace(b"%%EOF", b"99 0 obj\n" + stream + b"\nendobj\n%%EOF")
    assert read(process, "pdf", body).text == "beside a picture"


def test_a_stream_that_unpacks_to_gigabytes_is_a_problem(process: Documents) -> None:
    bomb = zlib.compress(zlib.compress(b"q " * (200 << 20), 9), 9)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] /Contents 4 0 R >>",
        b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%s\nendstream" % (len(bomb), bomb),
    ]
    body = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % (n, one) for n, one in enumerate(objects, 1))
    body += b"trailer << /Root 1 0 R >>\n%%EOF"
    file = read(process, "pdf", body, seconds=5.0, memory_bytes=512 << 20)
    assert file.problem in ("memory", "timeout", "malformed", "no_text")


def test_pages_that_contain_themselves_are_a_problem(process: Documents) -> None:
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [2 0 R 2 0 R 3 0 R] /Count 1000000000 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 100 100] >>",
    ]
    body = b"%PDF-1.4\n" + b"".join(b"%d 0 obj\n%s\nendobj\n" % (n, one) for n, one in enumerate(objects, 1))
    file = read(process, "pdf", body + b"trailer << /Root 1 0 R >>\n%%EOF")
    assert file.problem in ("malformed", "no_text", "too_many_pages", "timeout")
