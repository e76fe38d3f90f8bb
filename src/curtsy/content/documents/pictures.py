"""A page of a PDF as a picture (PNG). Runs in the child process of `services.document_process`."""

from __future__ import annotations

import struct
import zlib

import pypdfium2 as pdfium

#: dots per point, if the picture does not become larger than this
_SCALE = 1.6
_MOST_DOTS = 2_500_000
_MOST_SIDE = 4_000


def picture_of(body: bytes, number: int) -> bytes:
    """The picture of the page with this number (from 1); ValueError if there is no such page."""
    try:
        document = pdfium.PdfDocument(body)
    except pdfium.PdfiumError as error:
        raise ValueError("no PDF that can be read") from error
    try:
        if not 1 <= number <= len(document):
            raise ValueError(f"the file has {len(document)} pages")
        return _rendered(document, number)
    except pdfium.PdfiumError as error:
        raise ValueError("a page that cannot be read") from error
    finally:
        document.close()


def _rendered(document: pdfium.PdfDocument, number: int) -> bytes:
    page = document[number - 1]
    try:
        width, height = page.get_size()
        if not (width > 0 and height > 0):
            raise ValueError("a page without size")
        scale = min(_SCALE, (_MOST_DOTS / (width * height)) ** 0.5, _MOST_SIDE / max(width, height))
        picture = page.render(scale=scale, rev_byteorder=True, may_draw_forms=False)
        return _png(picture)
    finally:
        page.close()


def _png(picture: pdfium.PdfBitmap) -> bytes:
    """Red, green and blue of each dot. Every row begins with the number of its filter: 0, no filter."""
    packed, channels = bytes(picture.buffer), picture.n_channels
    rows = bytearray()
    for y in range(picture.height):
        row = packed[y * picture.stride : y * picture.stride + picture.width * channels]
        rows.append(0)
        rows += row if channels == 3 else _without_alpha(row)
    head = struct.pack(">IIBBBBB", picture.width, picture.height, 8, 2, 0, 0, 0)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(bytes(rows), 6)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in parts)


def _without_alpha(row: bytes) -> bytes:
    made = bytearray(len(row) // 4 * 3)
    for channel in range(3):
        made[channel::3] = row[channel::4]
    return bytes(made)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
