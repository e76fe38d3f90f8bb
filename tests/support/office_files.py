"""Office files and e-books with known content, made with plain ZIP and XML."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping

_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_R = 'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
_S = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELS = 'xmlns="http://schemas.openxmlformats.org/package/2006/relationships"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_O = " ".join(
    f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{space}:1.0"'
    for name, space in (
        ("office", "office"), ("text", "text"), ("table", "table"), ("draw", "drawing"), ("style", "style"),
        ("presentation", "presentation"), ("meta", "meta"), ("manifest", "manifest"),
    )
) + ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:dc="http://purl.org/dc/elements/1.1/"'  # fmt: skip


def packed(members: Mapping[str, str | bytes], mimetype: str = "", level: int = 6) -> bytes:
    """A ZIP file; `mimetype` is stored first, as OpenDocument and EPUB demand."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED, compresslevel=level) as file:
        if mimetype:
            file.writestr(zipfile.ZipInfo("mimetype", (2024, 1, 1, 0, 0, 0)), mimetype)
        for name, content in members.items():
            file.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
    return body.getvalue()


def relations(*of: tuple[str, str, str]) -> str:
    """(id, kind, target); targets with `://` are outside of the file."""
    made = "".join(
        f'<Relationship Id="{name}" Type="{_OFFICE}/{kind}" Target="{target}"'
        f"{' TargetMode=' + chr(34) + 'External' + chr(34) if '://' in target else ''}/>"
        for name, kind, target in of
    )
    return f"<Relationships {_RELS}>{made}</Relationships>"


def docx(body: str, links: Mapping[str, str] | None = None, **parts: str) -> bytes:
    """`body` is the content of `w:body`; `parts` are further files of `word/`."""
    members = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(("rId1", "officeDocument", "word/document.xml")),
        "word/document.xml": f"<w:document {_W} {_R}><w:body>{body}</w:body></w:document>",
        "word/_rels/document.xml.rels": relations(*((one, "hyperlink", href) for one, href in (links or {}).items())),
    }
    return packed(members | {f"word/{name}.xml": f"<w:{name} {_W}>{text}</w:{name}>" for name, text in parts.items()})


def paragraph(text: str, style: str = "") -> str:
    look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{look}<w:r><w:t xml:space="preserve">{text}</w:t></w:r></w:p>'


def xlsx(sheets: Mapping[str, str], strings: str = "", styles: str = "", hidden: str = "") -> bytes:
    """Sheet name -> content of its `worksheet`."""
    names = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}" state="{"hidden" if name == hidden else "visible"}"/>'
        for n, name in enumerate(sheets, 1)
    )
    members = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(("rId1", "officeDocument", "xl/workbook.xml")),
        "xl/workbook.xml": f"<workbook {_S} {_R}><sheets>{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": relations(
            *((f"rId{n}", "worksheet", f"worksheets/sheet{n}.xml") for n in range(1, len(sheets) + 1))
        ),
        "xl/sharedStrings.xml": f"<sst {_S}>{strings}</sst>",
        "xl/styles.xml": f"<styleSheet {_S}>{styles}</styleSheet>",
    }
    for n, content in enumerate(sheets.values(), 1):
        members[f"xl/worksheets/sheet{n}.xml"] = f"<worksheet {_S} {_R}>{content}</worksheet>"
    return packed(members)


def sheet(rows: list[list[str | float]]) -> str:
    """Cells from A1 on, as inline strings and numbers; empty strings are no cells."""
    made = []
    for y, row in enumerate(rows, 1):
        cells = []
        for x, value in enumerate(row):
            name = f"{chr(65 + x)}{y}"
            if isinstance(value, str):
                cells.append(f'<c r="{name}" t="inlineStr"><is><t>{value}</t></is></c>' if value else "")
            else:
                cells.append(f'<c r="{name}"><v>{value}</v></c>')
        made.append(f'<row r="{y}">{"".join(cells)}</row>')
    return f"<sheetData>{''.join(made)}</sheetData>"


def odf(kind: str, body: str, styles: str = "", meta: str = "", manifest: str = "") -> bytes:
    """`kind`: text, spreadsheet or presentation."""
    content = (
        f"<office:document-content {_O}><office:automatic-styles>{styles}</office:automatic-styles>"
        f"<office:body><office:{kind}>{body}</office:{kind}></office:body></office:document-content>"
    )
    members = {
        "content.xml": content,
        "meta.xml": f"<office:document-meta {_O}><office:meta>{meta}</office:meta></office:document-meta>",
        "META-INF/manifest.xml": f"<manifest:manifest {_O}>{manifest}</manifest:manifest>",
    }
    return packed(members, f"application/vnd.oasis.opendocument.{kind}")


def epub(chapters: Mapping[str, str], facts: str = "", **more: str) -> bytes:
    """File name -> content of its `body`."""
    items = "".join(
        f'<item id="c{n}" href="text/{name}" media-type="application/xhtml+xml"/>' for n, name in enumerate(chapters)
    )
    spine = "".join(f'<itemref idref="c{n}"/>' for n in range(len(chapters)))
    members = {
        "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>',
        "OPS/book.opf": '<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<metadata>{facts}</metadata><manifest>{items}</manifest><spine>{spine}</spine></package>",
    }
    for name, body in chapters.items():
        members[f"OPS/text/{name}"] = (
            '<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head><title>x</title></head>'
            f"<body>{body}</body></html>"
        )
    return packed(members | more, "application/epub+zip")
