"""Which encoding a body is in, by the WHATWG rules, and its text. No I/O; bad bytes never raise.

A byte order mark wins, then the charset of the Content-Type header, then what the document declares. A body without
any of these is UTF-8 if its bytes are valid UTF-8; otherwise `charset_guess.py` decides. Names are those of the
Encoding Standard wherever Python knows them, else Python's.
"""

from __future__ import annotations

import codecs
import re
from functools import cache, lru_cache
from typing import Any, cast

from curtsy.content.charset_guess import guess
from curtsy.content.encoding_labels import FALLBACK, SINGLE_BYTE, encoding_for

#: within these bytes a declaration counts anywhere; beyond them only while the head has not ended, as
#: browsers do it (the standard leaves it open how long they wait)
PRESCAN_BYTES = 1024
#: no declaration is read after this many bytes
_PRESCAN_LIMIT_BYTES = 128 * 1024

_HTTP_CHARSET = re.compile(r"""[;,]\s*charset\s*=\s*(?:"([^"]*)"?|'([^']*)'?|([^;,\s]+))""", re.IGNORECASE)
_META_CHARSET = re.compile(
    rb"""charset[\t\n\f\r ]*=[\t\n\f\r ]*(?:"([^"]*)"|'([^']*)'|([^"'\t\n\f\r ;][^\t\n\f\r ;]*)|)"""
)
_XML_ENCODING = re.compile(rb"""encoding[\x00-\x20]*=[\x00-\x20]*(?:"([^"]*)"|'([^']*)')""")
_TAG = re.compile(rb"<(/?)([A-Za-z][^\t\n\f\r >]*)")
_NAME_END = re.compile(rb"[\t\n\f\r />=]")
_VALUE_END = re.compile(rb"[\t\n\f\r >]")
_NOT_BLANK = re.compile(rb"[^\t\n\f\r ]")
_NOT_BLANK_OR_SLASH = re.compile(rb"[^\t\n\f\r /]")
#: tags that do not end the head
_HEAD_TAGS = frozenset((b"script", b"noscript", b"style", b"link", b"meta", b"object", b"title", b"base"))
#: elements whose content is text, whatever it looks like
_TEXT_TAGS = frozenset((b"script", b"style", b"title", b"textarea", b"xmp", b"iframe", b"noembed", b"noframes"))
#: byte order marks, longer ones first. The standard lacks UTF-32, whose pages would begin with NUL in UTF-16
_MARKS = {
    b"\xff\xfe\0\0": "utf-32le",
    b"\0\0\xfe\xff": "utf-32be",
    b"\xef\xbb\xbf": "utf-8",
    b"\xfe\xff": "utf-16be",
    b"\xff\xfe": "utf-16le",
}
_ANY_MARK = tuple(_MARKS)
_WIDE = frozenset(("utf-16le", "utf-16be", "utf-32le", "utf-32be"))


def charset_of(
    body: bytes, content_type: str | None, prescan_bytes: int = PRESCAN_BYTES, *, url: str | None = None
) -> str:
    """The encoding of a body: BOM, HTTP, declaration in the document, or its bytes (XML and JSON: UTF-8)."""
    if body.startswith(_ANY_MARK):
        return next(charset for mark, charset in _MARKS.items() if body.startswith(mark))
    declared, kind = _http(content_type) if content_type else (None, "")
    if declared is not None:
        return declared
    if kind.endswith("json"):
        return "utf-8"
    if kind.endswith("xml") and "html" not in kind:
        return _xml_encoding(body) or "utf-8"
    return prescan(body, prescan_bytes) or guess(body, url)


def media_type(content_type: str | None) -> str:
    """`text/html` for `Text/HTML; charset=utf-8, text/html`: the first type of a header, in lower case."""
    return (content_type or "").partition(";")[0].partition(",")[0].strip().lower()


@lru_cache(maxsize=1024)
def _http(content_type: str) -> tuple[str | None, str]:
    """(encoding named by the header, media type in lower case)"""
    kind = media_type(content_type)
    found = _HTTP_CHARSET.search(content_type)
    label = found and next((group for group in found.groups() if group is not None), None)
    return (encoding_for(label) if label else None), kind


def prescan(body: bytes, prescan_bytes: int = PRESCAN_BYTES) -> str | None:
    """What the document itself declares: the HTML standard's prescan, then its XML declaration."""
    if _USUAL_START.match(body) is not None:
        return "utf-8"
    data = body[:_PRESCAN_LIMIT_BYTES]
    if data.startswith(b"<\0?\0x\0"):
        return "utf-16le"
    if data.startswith(b"\0<\0?\0x"):
        return "utf-16be"
    try:
        found = _scan(data, prescan_bytes)
    except _Exhausted:
        found = None
    return found or _xml_encoding(data)


#: how most pages begin; the prescan finds the same, ten times slower. Possessive: nothing is tried a second time
_USUAL_START = re.compile(
    rb'\s*+(?:<!doctype html>\s*+)?+(?:<html(?: lang="[a-z-]*+")?+>\s*+)?+(?:<head>\s*+)?+'
    rb'<meta charset="?+utf-8"?+\s*+/?+>',
    re.IGNORECASE,
)


class _Exhausted(Exception):
    """The bytes ended within a construct, which therefore does not count."""


def _scan(data: bytes, patience: int) -> str | None:
    at, in_head = 0, True
    while (at := data.find(b"<", at)) >= 0 and (in_head or at < patience):
        if data.startswith(b"<!--", at):
            at = _after(data, b"-->", at + 2)
            continue
        tag = _TAG.match(data, at)
        if tag is None:
            at = _after(data, b">", at) if data[at + 1 : at + 2] in (b"!", b"/", b"?") else at + 1
            continue
        name = tag[2].lower()
        if name.startswith(b"meta") and not tag[1] and name[4:5] in (b"", b"/"):
            found, at = _meta(data, at + 5)
            if found is not None:
                return found
            continue
        name = name.partition(b"/")[0]
        in_head = in_head and (name in _HEAD_TAGS or (not tag[1] and name in (b"html", b"head")))
        at = tag.end()
        while (attribute := _attribute(data, at))[0]:
            at = attribute[2]
        at = attribute[2]
        if name in _TEXT_TAGS and not tag[1]:
            at = _text_end(data, name, at)
    return None


def _after(data: bytes, mark: bytes, at: int) -> int:
    found = data.find(mark, at)
    if found < 0:
        raise _Exhausted
    return found + len(mark)


@cache
def _end_tag(name: bytes) -> re.Pattern[bytes]:
    return re.compile(rb"</" + name + rb"(?=[\t\n\f\r />])", re.IGNORECASE)


def _text_end(data: bytes, name: bytes, at: int) -> int:
    found = _end_tag(name).search(data, at)
    if found is None:
        raise _Exhausted
    return found.start()


def _meta(data: bytes, at: int) -> tuple[str | None, int]:
    seen: set[bytes] = set()
    charset: str | None = None
    got_pragma, need_pragma = False, False
    while True:
        name, value, at = _attribute(data, at)
        if not name:
            break
        if name in seen:
            continue
        seen.add(name)
        if name == b"http-equiv":
            got_pragma = got_pragma or value == b"content-type"
        elif name == b"content" and charset is None:
            charset = _meta_content(value)
            need_pragma = charset is not None
        elif name == b"charset":
            charset, need_pragma = _encoding(value), False
    if charset is None or (need_pragma and not got_pragma):
        return None, at
    return _declared(charset), at


def _declared(charset: str) -> str:
    """A document whose declaration could be read is not in UTF-16, even if it declares it."""
    return {"utf-16le": "utf-8", "utf-16be": "utf-8", "x-user-defined": FALLBACK}.get(charset, charset)


def _encoding(label: bytes) -> str | None:
    return encoding_for(label.decode("latin-1"))


def _meta_content(value: bytes) -> str | None:
    found = _META_CHARSET.search(value)
    label = found and (found[1] or found[2] or found[3])
    return _encoding(label) if label else None


def _attribute(data: bytes, at: int) -> tuple[bytes, bytes, int]:
    """Return (name, value, next position); the name is empty at the end of a tag. Names and values are lowercase."""
    at = _skip(_NOT_BLANK_OR_SLASH, data, at)
    if data[at] == 0x3E:
        return b"", b"", at
    # A "=" in the first place is part of the name.
    end = _skip(_NAME_END, data, at + 1)
    name = data[at:end].lower()
    at = _skip(_NOT_BLANK, data, end)
    if data[at] != 0x3D:
        return name, b"", at
    at = _skip(_NOT_BLANK, data, at + 1)
    if data[at] in b"\"'":
        end = _after(data, data[at : at + 1], at + 1)
        return name, data[at + 1 : end - 1].lower(), end
    end = _skip(_VALUE_END, data, at)
    return name, data[at:end].lower(), end


def _skip(until: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = until.search(data, at)
    if found is None:
        raise _Exhausted
    return found.start()


def _xml_encoding(data: bytes) -> str | None:
    if not data.startswith(b"<?xml"):
        return None
    found = _XML_ENCODING.search(data, 0, max(data.find(b">"), 0))
    charset = found and _encoding(found[1] or found[2] or b"")
    return _declared(charset) if charset else None


def decode(body: bytes, charset: str) -> str:
    """The text of a body without its byte order mark; what cannot be decoded becomes U+FFFD."""
    if charset == "utf-8":
        return body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")
    if charset in _WIDE:
        return body.decode(charset, "replace").removeprefix("\ufeff")
    if charset in SINGLE_BYTE:
        return codecs.charmap_decode(body, "replace", _table(charset))[0]
    return body.decode(charset, "replace")


@cache
def _table(charset: str) -> str:
    """256 characters. The standard's tables have control characters where Python's have holes below 0xA0."""
    rows = [bytes((octet,)).decode(charset, "replace") for octet in range(256)]
    if charset.startswith(("windows", "cp874")):
        rows[0x80:0xA0] = [chr(0x80 + n) if char == "\ufffd" else char for n, char in enumerate(rows[0x80:0xA0])]
    if charset == "koi8-u":
        rows[0xAE], rows[0xBE] = "ў", "Ў"
    return "".join(rows)


# Encodings of the standard that Python lacks, so that `bytes.decode` understands every name that charset_of returns.
def _user_defined(data: bytes, _errors: str = "strict") -> tuple[str, int]:
    return "".join(chr(octet if octet < 0x80 else 0xF700 + octet) for octet in bytes(data)), len(data)


def _replacement(data: bytes, _errors: str = "strict") -> tuple[str, int]:
    return ("\ufffd" if data else ""), len(data)


def _encode(text: str, errors: str = "strict") -> tuple[bytes, int]:
    return text.encode("utf-8", errors), len(text)


_OWN = {"x_user_defined": _user_defined, "replacement": _replacement}


def _find(name: str) -> codecs.CodecInfo | None:
    decoder = _OWN.get(name.replace("-", "_"))
    if decoder is None:
        return None
    return codecs.CodecInfo(_encode, cast(Any, decoder), name=name.replace("_", "-"))


codecs.register(_find)
