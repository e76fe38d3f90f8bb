"""Plain text and CSV."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator

from curtsy.content.charset import charset_of, decode
from curtsy.content.documents.builder import UNWANTED, Builder

_URL = re.compile(r"https?://[^\s<>\"]+")
_LAYOUT = {code: char for code, char in UNWANTED.items() if code not in (0x09, 0x0A)}
_DELIMITERS = ",;\t|"
#: lines that the delimiter is guessed from
_LOOKED_LINES = 50
_LOOKED_CHARACTERS = 100_000
#: columns that are read
_WIDEST = 2_000


def decoded(body: bytes, content_type: str | None) -> str:
    """By the byte order mark, the declared charset or UTF-8. Other bytes are read as Windows-1252."""
    if content_type and "charset" in content_type.lower():
        return decode(body, charset_of(body, content_type))
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        return body.decode("utf-16", "replace")
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        return decode(body, "windows-1252")


def read_text(builder: Builder, body: bytes, content_type: str | None) -> None:
    builder.page_count = 1
    text = decoded(body, content_type).replace("\r\n", "\n").replace("\r", "\n").translate(_LAYOUT).strip("\n")
    for found in _URL.finditer(text):
        builder.link(found[0].rstrip(".,;:!?)]}'"))
    if text.strip():
        builder.lines(text)


def read_csv(builder: Builder, body: bytes, content_type: str | None) -> None:
    builder.begin("sheet")
    text = decoded(body, content_type).replace("\0", "")
    builder.look()
    builder.table(_rows(builder, text))


def _rows(builder: Builder, text: str) -> Iterator[list[str]]:
    csv.field_size_limit(max(1, builder.limits.characters))
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter(text)):
            if any(row):
                yield row[:_WIDEST]
    except csv.Error:
        return


def delimiter(text: str) -> str:
    """The character that most lines have equally often."""
    lines = [line for line in text[:_LOOKED_CHARACTERS].splitlines()[:_LOOKED_LINES] if line.strip()]
    if text.startswith("sep=") and len(lines[0]) == 5:
        return lines[0][4]
    best, chosen = 0.0, ","
    for one in _DELIMITERS:
        counts = Counter(_count(line, one) for line in lines)
        counts.pop(0, None)
        if counts:
            often, same = counts.most_common(1)[0]
            if (score := same / len(lines) + min(often, 20) / 100) > best:
                best, chosen = score, one
    return chosen


def _count(line: str, one: str) -> int:
    """Occurrences outside of quotation marks."""
    return sum(part.count(one) for part in line.split('"')[::2])
