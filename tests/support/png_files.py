"""Reads the dots of a PNG file with three channels and no filters, as `pictures.py` writes it."""

from __future__ import annotations

import struct
import zlib
from typing import NamedTuple


class Picture(NamedTuple):
    width: int
    height: int
    rows: list[bytes]

    def dark_share(self, x0: float, y0: float, x1: float, y1: float) -> float:
        """The share of dark dots within a rectangle."""
        dots = [self.rows[y][3 * x] for y in range(int(y0), int(y1)) for x in range(int(x0), int(x1))]
        return sum(dot < 128 for dot in dots) / len(dots)


def read(body: bytes) -> Picture:
    assert body.startswith(b"\x89PNG\r\n\x1a\n")
    at, chunks = 8, {}
    while at < len(body):
        (length,) = struct.unpack(">I", body[at : at + 4])
        name, content = body[at + 4 : at + 8], body[at + 8 : at + 8 + length]
        assert struct.unpack(">I", body[at + 8 + length : at + 12 + length])[0] == zlib.crc32(name + content)
        chunks[name], at = content, at + 12 + length
    width, height, *form = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert form == [8, 2, 0, 0, 0]
    packed = zlib.decompress(chunks[b"IDAT"])
    rows = [packed[y * (3 * width + 1) + 1 : (y + 1) * (3 * width + 1)] for y in range(height)]
    assert len(packed) == height * (3 * width + 1)
    return Picture(width, height, rows)
