"""Hosts whose content types and charsets are missing or wrong."""

from __future__ import annotations

import struct
import zlib

from curtsy.tinyweb.answers import Answer, Pages, reply
from curtsy.tinyweb.faults.registry import body_of, fault, ordinary, page

GERMAN = "Grüße aus Köln"
RUSSIAN = "Привет из Казани"
JAPANESE = "京都からこんにちは"


def _png() -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\xff\xff\xff")) + chunk(b"IEND", b"")


@fault(
    "type-missing",
    "/untyped is HTML without a Content-Type, /empty-type with an empty one",
    "taken as HTML by its bytes: done, and /behind, linked only there, is done too",
    ends={"/": "done", "/untyped": "done", "/behind": "done"},
)
def _missing() -> Pages:
    return ordinary("/untyped", "/empty-type") | {
        "/untyped": reply(200, body_of("Untyped", "/behind"), None),
        "/empty-type": reply(200, body_of("Empty type"), ""),
        "/behind": page("Behind the untyped page"),
    }


@fault(
    "type-lying",
    "a PNG called text/html, HTML called image/png, HTML called application/octet-stream, JSON called text/html",
    "no crash; no links are taken from the picture; what is called an image is done as type",
    ends={"/": "done", "/picture.html": "done", "/page.png": "done type"},
)
def _lying() -> Pages:
    return ordinary("/picture.html", "/page.png", "/page.bin", "/data.html") | {
        "/picture.html": reply(200, _png() + b'<a href="/never-linked">'),
        "/page.png": reply(200, body_of("A page called picture", "/one"), "image/png"),
        "/page.bin": reply(200, body_of("A page called bytes", "/one"), "application/octet-stream"),
        "/data.html": reply(200, b'{"html": "<a href=\\"/one\\">one</a>"}'),
    }


@fault(
    "type-other",
    "a picture, a film, an archive, a style sheet, a script, JSON, XML, plain text and a PDF, each called what it is",
    "types outside keep_types are aborted after the head and done as type",
    ends={"/": "done", "/a.png": "done type", "/a.mp4": "done type", "/a.json": "done", "/a.txt": "done"},
)
def _other() -> Pages:
    said: dict[str, tuple[str, bytes]] = {
        "/a.png": ("image/png", _png()),
        "/a.mp4": ("video/mp4", bytes(100_000)),
        "/a.zip": ("application/zip", b"PK\x05\x06" + bytes(18)),
        "/a.css": ("text/css", b"p { color: green }"),
        "/a.js": ("text/javascript", b"'use strict';"),
        "/a.json": ("application/json", b'{"tiny": true}'),
        "/a.xml": ("application/xml", b"<?xml version='1.0'?><tiny/>"),
        "/a.txt": ("text/plain; charset=utf-8", b"Plain.\n"),
        "/a.pdf": ("application/pdf", b"%PDF-1.4\n%%EOF\n"),
    }
    return ordinary(*said) | {path: reply(200, body, kind) for path, (kind, body) in said.items()}


def _titled(title: str, encoding: str, content_type: str, meta: str = "") -> Answer:
    body = f"<!doctype html><html><head>{meta}<title>{title}</title></head><body><p>{title}.</p></body></html>"
    return reply(200, body.encode(encoding), content_type)


@fault(
    "charset",
    "charsets told by header, by meta, by byte order mark and in UTF-16, each correctly",
    f"titles come out as {GERMAN!r}, {RUSSIAN!r} and {JAPANESE!r}",
    ends={"/": "done", "/header": "done", "/meta": "done", "/bom": "done", "/utf16": "done"},
)
def _charset() -> Pages:
    return ordinary("/header", "/meta", "/bom", "/utf16", "/sjis", "/pragma") | {
        "/header": _titled(RUSSIAN, "windows-1251", "text/html; charset=Windows-1251"),
        "/meta": _titled(GERMAN, "iso-8859-1", "text/html", '<meta charset="latin1">'),
        "/bom": _titled(GERMAN, "utf-8-sig", "text/html; charset=iso-8859-1"),
        "/utf16": _titled(RUSSIAN, "utf-16", "text/html"),
        "/sjis": _titled(JAPANESE, "shift_jis", 'text/html; charset="Shift_JIS"'),
        "/pragma": _titled(
            RUSSIAN, "koi8-r", "text/html", '<meta http-equiv="Content-Type" content="text/html; charset=koi8-r">'
        ),
    }


@fault(
    "charset-lying",
    "Latin-1 bytes called UTF-8, UTF-8 called Latin-1 with a truthful meta, an unknown charset, and none at all",
    "no crash; the header wins over meta, an unknown label is ignored, windows-1252 is the last resort",
    ends={"/": "done", "/not-utf8": "done", "/not-latin1": "done", "/unknown": "done", "/none": "done"},
)
def _charset_lying() -> Pages:
    utf8_meta = '<meta charset="utf-8">'
    return ordinary("/not-utf8", "/not-latin1", "/unknown", "/none", "/broken") | {
        "/not-utf8": _titled(GERMAN, "iso-8859-1", "text/html; charset=utf-8"),
        "/not-latin1": _titled(GERMAN, "utf-8", "text/html; charset=iso-8859-1", utf8_meta),
        "/unknown": _titled(GERMAN, "utf-8", "text/html; charset=klingon", utf8_meta),
        "/none": _titled(GERMAN, "windows-1252", "text/html"),
        "/broken": reply(200, b"<title>\xff\xfe\x80 \xc3\x28</title><p>\xe2\x82", "text/html; charset=utf-8"),
    }
