"""A file is recognized by its bytes, then by its type and its URL."""

from __future__ import annotations

import pytest
from office_files import packed

from curtsy.content.documents.sniff import kind_of


def _zip(*names: str, mimetype: str = "") -> bytes:
    return packed(dict.fromkeys(names, "x" * 2000), mimetype)


DOCX = _zip("[Content_Types].xml", "_rels/.rels", "word/document.xml")
XLSX = _zip("[Content_Types].xml", "_rels/.rels", "xl/workbook.xml")
PPTX = _zip("[Content_Types].xml", "_rels/.rels", "ppt/presentation.xml")
OCTETS = "application/octet-stream"


@pytest.mark.parametrize(
    ("content_type", "body", "url", "kind"),
    [
        ("application/pdf", b"%PDF-1.7 ...", "/a", "pdf"),
        (OCTETS, b"\n\n%PDF-1.4", "/a", "pdf"),
        ("text/html", b"%PDF-1.4", "/a", "pdf"),
        ("application/pdf", b"<!DOCTYPE html><p>%PDF- not found", "/a.pdf", None),
        ("application/pdf", b"", "/a.pdf", None),
        (OCTETS, DOCX, "/a", "docx"),
        ("application/zip", XLSX, "/a.zip", "xlsx"),
        (None, PPTX, "/a", "pptx"),
        ("application/msword", DOCX, "/a.doc", "docx"),
        ("application/zip", _zip("a.txt", "b.txt"), "/a.zip", None),
        (OCTETS, DOCX[:40], "/a.docx", "docx"),
        ("application/zip", _zip("x", mimetype="application/vnd.oasis.opendocument.text"), "/a", "odt"),
        (OCTETS, _zip("x", mimetype="application/vnd.oasis.opendocument.spreadsheet"), "/a", "ods"),
        (OCTETS, _zip("x", mimetype="application/vnd.oasis.opendocument.presentation"), "/a", "odp"),
        (OCTETS, _zip("META-INF/container.xml", mimetype="application/epub+zip"), "/a", "epub"),
        (OCTETS, _zip("META-INF/container.xml", "a.opf"), "/a", "epub"),
        ("text/plain", b"{\\rtf1 a}", "/a", "rtf"),
        ("text/csv; charset=utf-8", b"a,b\n1,2", "/a", "csv"),
        ("text/plain", b"a,b\n1,2", "/a.csv?x=1", "csv"),
        ("application/vnd.ms-excel", b"a,b\n1,2", "/a.csv", "csv"),
        ("text/plain", b"hello", "/a", "text"),
        (OCTETS, b"hello", "/a.txt", "text"),
        (OCTETS, b"hello", "/a.bin", None),
        ("text/plain", b"a\0b", "/a.txt", None),
        ("text/plain", b"\xff\xfea\0", "/a.txt", "text"),
        ("text/html", b"<p>hello", "/a.pdf", None),
        ("text/plain", b"<!doctype html><p>", "/a.txt", None),
        ("image/png", b"\x89PNG\r\n", "/a.pdf", None),
        ("application/json", b"{}", "/a.csv", None),
        (None, b"%PDF-1.1", "http://[::1", "pdf"),
    ],
)
def test_kind_of(content_type: str | None, body: bytes, url: str, kind: str | None) -> None:
    assert kind_of(content_type, body, url if "://" in url else f"http://a.test{url}") == kind


def test_an_encrypted_office_file_keeps_the_kind_of_its_name() -> None:
    body = b"\xd0\xcf\x11\xe0" + b"\0" * 500 + "EncryptedPackage".encode("utf-16-le") + b"\0" * 90
    assert kind_of(OCTETS, body, "http://a.test/a.xlsx") == "xlsx"
    assert kind_of(OCTETS, b"\xd0\xcf\x11\xe0" + b"\0" * 500, "http://a.test/a.xls") is None
