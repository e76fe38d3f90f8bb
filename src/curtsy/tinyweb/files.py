"""Writers of small PDF files and workbooks, with nothing but the standard library; scans need PDFium."""

from __future__ import annotations

import io
import textwrap
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

#: A4, in points
WIDTH, HEIGHT = 595, 842
_MARGIN = 60
_SIZE, _PITCH = 11, 16
#: characters of a line of `_SIZE` that surely fit between the margins
_LINE_CHARS = 84
#: dots per point of a scan: 150 dots per inch
_SCAN_SCALE = 150 / 72


@dataclass(frozen=True, slots=True, kw_only=True)
class PdfPage:
    """A page: its heading, paragraphs, then the rows of a table whose first row names the columns."""

    heading: str
    paragraphs: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()


def pdf(title: str, pages: Sequence[PdfPage]) -> bytes:
    """A PDF file with text in Helvetica."""
    streams = ["\n".join(_drawn(page)).encode("cp1252", "replace") for page in pages]
    fonts = [
        f"<< /Type /Font /Subtype /Type1 /BaseFont /{name} /Encoding /WinAnsiEncoding >>".encode()
        for name in ("Helvetica", "Helvetica-Bold")
    ]
    return _file(title, fonts, "/Font << /F1 3 0 R /F2 4 0 R >>", streams)


def scanned(title: str, pages: Sequence[PdfPage]) -> bytes:
    """The same as pictures without text, such as a scanner makes."""
    pictures = [_picture(*one) for one in _rendered(pdf(title, pages))]
    streams = [f"q {WIDTH} 0 0 {HEIGHT} 0 0 cm /P{number} Do Q".encode() for number in range(len(pictures))]
    names = " ".join(f"/P{number} {number + 3} 0 R" for number in range(len(pictures)))
    return _file(title, pictures, f"/XObject << {names} >>", streams)


def xlsx(sheets: Mapping[str, Sequence[Sequence[str | int]]]) -> bytes:
    """A workbook: name of a sheet -> its rows."""
    names = "".join(f'<sheet name="{escape(name)}" sheetId="{n}" r:id="rId{n}"/>' for n, name in enumerate(sheets, 1))
    main = "http://schemas.openxmlformats.org"
    relation = f"{main}/officeDocument/2006/relationships"
    rels = f'xmlns="{main}/package/2006/relationships"'
    members = {
        "[Content_Types].xml": _content_types(len(sheets)),
        "_rels/.rels": f'<Relationships {rels}><Relationship Id="rId1" Type="{relation}/officeDocument" '
        'Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{main}/spreadsheetml/2006/main" xmlns:r="{relation}">'
        f"<sheets>{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f"<Relationships {rels}>{_relations(relation, len(sheets))}</Relationships>",
    }
    for number, rows in enumerate(sheets.values(), 1):
        members[f"xl/worksheets/sheet{number}.xml"] = (
            f'<worksheet xmlns="{main}/spreadsheetml/2006/main"><sheetData>{_rows(rows)}</sheetData></worksheet>'
        )
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), content)
    return packed.getvalue()


# PDF


def _drawn(page: PdfPage) -> Iterator[str]:
    y = HEIGHT - _MARGIN - 20
    yield _line("F2", 2 * _SIZE, _MARGIN, y, page.heading)
    y -= 3 * _PITCH
    for paragraph in page.paragraphs:
        for line in textwrap.wrap(paragraph, _LINE_CHARS):
            yield _line("F1", _SIZE, _MARGIN, y, line)
            y -= _PITCH
        y -= _PITCH // 2
    for number, row in enumerate(page.rows):
        step = (WIDTH - 2 * _MARGIN) // max(len(row), 1)
        for column, cell in enumerate(row):
            yield _line("F1" if number else "F2", _SIZE, _MARGIN + column * step, y, cell)
        y -= _PITCH + 4


def _line(font: str, size: int, x: int, y: int, text: str) -> str:
    escaped = text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /{font} {size} Tf {x} {y} Td ({escaped}) Tj ET"


def _file(title: str, resources: Sequence[bytes], names: str, streams: Sequence[bytes]) -> bytes:
    """Objects: 1 catalog, 2 pages, the resources, for each page its dictionary and its stream, last the facts."""
    first = 3 + len(resources)
    kids = " ".join(f"{first + 2 * number} 0 R" for number in range(len(streams)))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R /Lang (en) >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(streams)} >>".encode(),
        *resources,
    ]
    for number, stream in enumerate(streams):
        page = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 {WIDTH} {HEIGHT}] /Resources << {names} >>"
        objects.append(f"{page} /Contents {first + 2 * number + 1} 0 R >>".encode())
        objects.append(_stream("", zlib.compress(stream)))
    escaped = title.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    objects.append(f"<< /Title ({escaped}) >>".encode("cp1252", "replace"))
    return _numbered(objects)


def _stream(facts: str, packed: bytes) -> bytes:
    return f"<< {facts} /Length {len(packed)} /Filter /FlateDecode >>\nstream\n".encode() + packed + b"\nendstream"


def _numbered(objects: Sequence[bytes]) -> bytes:
    made = bytearray(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n".encode() + content + b"\nendobj\n"
    start = len(made)
    made += f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n".encode()
    made += "".join(f"{place:010} 00000 n \n" for place in places).encode()
    count = len(objects) + 1
    made += f"trailer\n<< /Size {count} /Root 1 0 R /Info {len(objects)} 0 R >>\nstartxref\n{start}\n%%EOF\n".encode()
    return bytes(made)


def _rendered(body: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield width, height and gray values of each page."""
    import pypdfium2  # start-up: only scans need it

    document = pypdfium2.PdfDocument(body)
    try:
        for page in document:
            picture = page.render(scale=_SCAN_SCALE, grayscale=True)
            packed = bytes(picture.buffer)
            rows = (packed[y * picture.stride : y * picture.stride + picture.width] for y in range(picture.height))
            yield picture.width, picture.height, b"".join(rows)
            page.close()
    finally:
        document.close()


def _picture(width: int, height: int, gray: bytes) -> bytes:
    facts = (
        f"/Type /XObject /Subtype /Image /Width {width} /Height {height} /ColorSpace /DeviceGray /BitsPerComponent 8"
    )
    return _stream(facts, zlib.compress(gray))


# Workbooks


def _content_types(sheets: int) -> str:
    of = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    overrides = "".join(
        f'<Override PartName="/xl/worksheets/sheet{n}.xml" ContentType="{of}.worksheet+xml"/>'
        for n in range(1, sheets + 1)
    )
    return (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{of}.sheet.main+xml"/>{overrides}</Types>'
    )


def _relations(relation: str, sheets: int) -> str:
    return "".join(
        f'<Relationship Id="rId{n}" Type="{relation}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, sheets + 1)
    )


def _rows(rows: Sequence[Sequence[str | int]]) -> str:
    return "".join(
        f'<row r="{y}">{"".join(_cell(f"{chr(65 + x)}{y}", value) for x, value in enumerate(row))}</row>'
        for y, row in enumerate(rows, 1)
    )


def _cell(name: str, value: str | int) -> str:
    if isinstance(value, int):
        return f'<c r="{name}"><v>{value}</v></c>'
    return f'<c r="{name}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
