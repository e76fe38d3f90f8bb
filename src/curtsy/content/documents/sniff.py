"""Which kind of file a response is: by its first bytes, the names in its ZIP directory, its content type, its URL.

The bytes decide where they can: servers send office files as `application/octet-stream` or `application/zip`, and
error pages in HTML under the URL of a PDF. Nothing is unpacked here.
"""

from __future__ import annotations

from urllib.parse import urlsplit

_HEAD_BYTES = 1024
#: a ZIP directory is at the end; names of members are in it, uncompressed
_TAIL_BYTES = 64 * 1024

_TYPES = {
    "application/pdf": "pdf",
    "application/x-pdf": "pdf",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.template": "docx",
    "application/vnd.ms-word.document.macroenabled.12": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.template": "xlsx",
    "application/vnd.ms-excel.sheet.macroenabled.12": "xlsx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "pptx",
    "application/vnd.openxmlformats-officedocument.presentationml.slideshow": "pptx",
    "application/vnd.openxmlformats-officedocument.presentationml.template": "pptx",
    "application/vnd.ms-powerpoint.presentation.macroenabled.12": "pptx",
    "application/vnd.oasis.opendocument.text": "odt",
    "application/vnd.oasis.opendocument.text-template": "odt",
    "application/vnd.oasis.opendocument.spreadsheet": "ods",
    "application/vnd.oasis.opendocument.spreadsheet-template": "ods",
    "application/vnd.oasis.opendocument.presentation": "odp",
    "application/vnd.oasis.opendocument.presentation-template": "odp",
    "application/epub+zip": "epub",
    "application/rtf": "rtf",
    "text/rtf": "rtf",
    "text/csv": "csv",
    "application/csv": "csv",
    "text/tab-separated-values": "csv",
    "text/plain": "text",
    "text/markdown": "text",
    "text/x-rst": "text",
}
#: ending of a file name -> kind
EXTENSIONS = {
    "pdf": "pdf", "docx": "docx", "docm": "docx", "dotx": "docx", "xlsx": "xlsx", "xlsm": "xlsx", "xltx": "xlsx",
    "pptx": "pptx", "pptm": "pptx", "ppsx": "pptx", "odt": "odt", "ott": "odt", "ods": "ods", "ots": "ods",
    "odp": "odp", "otp": "odp", "rtf": "rtf", "epub": "epub", "csv": "csv", "tsv": "csv",
    "txt": "text", "text": "text", "md": "text", "rst": "text",
}  # fmt: skip
#: content types that say nothing about a file
_VAGUE = frozenset(
    ("", "application/octet-stream", "binary/octet-stream", "application/download", "application/force-download",
     "application/x-download", "application/zip", "application/x-zip-compressed", "application/vnd.ms-excel",
     "application/msword", "application/vnd.ms-powerpoint", "text/plain")
)  # fmt: skip
_TEXTS = frozenset(("csv", "text"))
_OOXML = ((b"word/", "docx"), (b"xl/", "xlsx"), (b"ppt/", "pptx"))
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<script", b"<meta")


def kind_of(content_type: str | None, body: bytes, url: str) -> str | None:
    """The kind of the file, as in `FileText.kind`; None for HTML and everything that no reader reads."""
    said = (content_type or "").partition(";")[0].strip().lower()
    named = EXTENSIONS.get(_extension(url))
    if found := _by_bytes(body, _TYPES.get(said) or named):
        return found
    meant = named if said in _VAGUE and named is not None else _TYPES.get(said)
    if meant is None or _is_html(body):
        return None
    if meant in _TEXTS:
        return meant if _is_text(body) else None
    return meant if body and said in _TYPES else None


def announced(content_type: str, url: str, disposition: str | None = None) -> str | None:
    """The kind that the headers of a response and its URL announce, before the body arrives; None: no document.

    >>> announced("application/octet-stream", "http://a.test/files/report.pdf?v=2")
    'pdf'
    """
    said = content_type.partition(";")[0].strip().lower()
    if said not in _VAGUE:
        return _TYPES.get(said)
    attached = (disposition or "").lower().partition("filename")[2].lstrip("*=\"' ").partition(";")[0].strip("\"' ")
    return EXTENSIONS.get(_ending(attached)) or EXTENSIONS.get(_extension(url)) or _TYPES.get(said)


def _extension(url: str) -> str:
    try:
        return _ending(urlsplit(url).path.rpartition("/")[2])
    except ValueError:
        return ""


def _ending(name: str) -> str:
    return name.rpartition(".")[2].lower() if "." in name else ""


def _by_bytes(body: bytes, meant: str | None) -> str | None:
    if b"%PDF-" in body[:_HEAD_BYTES] and not _is_html(body):
        return "pdf"
    if body.startswith(b"{\\rtf"):
        return "rtf"
    if body.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return _zip_kind(body, meant)
    # An encrypted office file is an OLE container with a stream of this name.
    if body.startswith(b"\xd0\xcf\x11\xe0") and "EncryptedPackage".encode("utf-16-le") in body:
        return meant if meant in ("docx", "xlsx", "pptx") else "docx"
    return None


def _zip_kind(body: bytes, meant: str | None) -> str | None:
    # In OpenDocument and EPUB files the first member is stored without compression and holds the content type.
    if body[30:38] == b"mimetype":
        size = int.from_bytes(body[28:30], "little")
        media = body[38 + size : 38 + size + 80].partition(b"PK")[0].decode("latin-1").strip()
        for name, kind in _TYPES.items():
            if media == name:
                return kind
    names = body[:_HEAD_BYTES] + body[-_TAIL_BYTES:]
    if b"[Content_Types].xml" in names or b"_rels/.rels" in names:
        for folder, kind in _OOXML:
            if folder in names:
                return kind
    if b"META-INF/container.xml" in names:
        return "epub"
    if b"content.xml" in names and b"META-INF/manifest.xml" in names:
        return meant if meant in ("odt", "ods", "odp") else "odt"
    # A truncated file has no directory: its type and name must do.
    return meant if meant is not None and meant not in ("pdf", "rtf", *_TEXTS) and b"PK\x05\x06" not in names else None


def _is_html(body: bytes) -> bool:
    return body[:_HEAD_BYTES].lstrip(b"\xef\xbb\xbf\t\n\f\r ").lower().startswith(_HTML_STARTS)


def _is_text(body: bytes) -> bool:
    """Text has no NUL, except in UTF-16 and UTF-32, which start with a mark."""
    return body.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" not in body[: 8 * _HEAD_BYTES]
