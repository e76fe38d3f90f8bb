"""Recognizes the text of scanned pages with RapidOCR (extra `ocr`), in the child process that reads documents.

The models are in the package: nothing is loaded from elsewhere. Lines come with a box; the box of a word is the part of
its line's box that its characters take.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pypdfium2 as pdfium

from curtsy.content.documents.pdf_layout import Word

#: dots per inch of the picture that is searched for text; fewer if the page is so large that it has more dots
_DPI = 150
_MOST_DOTS = 12_000_000
#: lines that the model is less sure of are noise: specks, rules, drawings
_LEAST_SCORE = 0.6
#: the font size of a line as a share of its box
_SIZE_SHARE = 0.8


def words_of(page: pdfium.PdfPage) -> list[Word]:
    """The words in the picture of a page, line by line from the top."""
    width, height = page.get_size()
    scale = min(_DPI / 72, (_MOST_DOTS / max(width * height, 1)) ** 0.5)
    found = _engine()(_dots(page, scale))
    if found.boxes is None:
        return []
    lines = [
        (_around(box, scale), text.strip())
        for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True)
        if score >= _LEAST_SCORE
    ]
    return [word for place, text in lines for word in _words(place, text)]


@lru_cache(maxsize=1)
def _engine() -> Any:
    import cv2  # extra `ocr`
    from rapidocr import RapidOCR  # extra `ocr`

    cv2.setNumThreads(1)
    threads = {f"EngineConfig.onnxruntime.{name}_op_num_threads": 1 for name in ("intra", "inter")}
    return RapidOCR(params={"Global.log_level": "critical", **threads})


def _dots(page: pdfium.PdfPage, scale: float) -> Any:
    """The picture as an array of rows of dots, blue, green and red."""
    import numpy  # extra `ocr`

    picture = page.render(scale=scale)
    rows = numpy.frombuffer(picture.buffer, dtype=numpy.uint8).reshape(picture.height, picture.stride)
    dots = rows[:, : picture.width * picture.n_channels].reshape(picture.height, picture.width, picture.n_channels)
    return numpy.ascontiguousarray(dots[:, :, :3])


def _around(corners: Any, scale: float) -> tuple[float, float, float, float]:
    xs, ys = [float(x) / scale for x, _ in corners], [float(y) / scale for _, y in corners]
    return min(xs), min(ys), max(xs), max(ys)


def _words(place: tuple[float, float, float, float], line: str) -> Iterator[Word]:
    x0, y0, x1, y1 = place
    each = (x1 - x0) / max(len(line), 1)
    at = 0
    for text in line.split():
        at = line.index(text, at)
        end = at + len(text)
        yield Word(x0 + at * each, y0, x0 + end * each, y1, _SIZE_SHARE * (y1 - y0), text, False)
        at = end
