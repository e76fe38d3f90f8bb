"""PDF files with known content, made by reportlab."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from reportlab.lib.pagesizes import A4
from reportlab.pdfbase.pdfmetrics import stringWidth
from reportlab.pdfgen.canvas import Canvas

HEIGHT = A4[1]

WORDS = (
    "every polite crawler waits between two requests to the same host and reads the rules of a site before the first "
    "page because the people who run it pay for each answer that their server sends over the network at night or day "
)


def pdf(draw: Callable[[Any], None], **options: Any) -> bytes:
    """A file that `draw` fills; a page is open at the start and is ended at the end."""
    packed = io.BytesIO()
    canvas = Canvas(packed, pagesize=A4, invariant=1, **options)
    draw(canvas)
    canvas.save()
    return packed.getvalue()


def lines(canvas: Any, text: str, x: float, top: float, width: float, size: float = 10, pitch: float = 1.2) -> float:
    """Writes text with line breaks from `top` (from the upper edge); returns where it ends."""
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if stringWidth(longer, "Helvetica", size) > width:
            string(canvas, x, top, line, size)
            top, line = top + pitch * size, word
        else:
            line = longer
    string(canvas, x, top, line, size)
    return top + pitch * size


def string(canvas: Any, x: float, top: float, text: str, size: float = 10, font: str = "Helvetica") -> None:
    """A line whose baseline is `top` below the upper edge."""
    canvas.setFont(font, size)
    canvas.drawString(x, HEIGHT - top, text)


def table(canvas: Any, rows: list[list[str]], xs: list[float], top: float, bold_first: bool = False) -> None:
    for n, row in enumerate(rows):
        for x, cell in zip(xs, row, strict=True):
            string(canvas, x, top + 15 * n, cell, font="Helvetica-Bold" if bold_first and not n else "Helvetica")


def pages(count: int) -> bytes:
    """So many pages with one line each, small as a file."""

    def draw(canvas: Any) -> None:
        for n in range(count):
            canvas.drawString(50, 700, f"Page number {n + 1}")
            canvas.showPage()

    return pdf(draw, pageCompression=0)
