"""Real PDF files: the words and boxes that Curtsy reads beside those of Poppler's pdftotext."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import main_content_score as judged
import pypdfium2

from curtsy.content.documents.model import FileText, Limits
from curtsy.content.documents.reading import read_document
from tests.judge import debian_pdfs, floors, places

_LIMITS = Limits(seconds=120.0, pages=1_000)
#: in points: a word of the same text whose middle is farther away is another word
_NEAR = 4.0
_XHTML = "{http://www.w3.org/1999/xhtml}"


@dataclass(frozen=True)
class Placed:
    page: int
    text: str
    x: float
    y: float


@dataclass(frozen=True)
class Compared:
    name: str
    problem: str
    pages: int
    words: int
    #: of the words of the other reader, those that we have on the same page
    recall: float
    #: of our words, those that the other reader has on the same page
    precision: float
    #: of our words, those that the other reader has at the same place
    boxes: float
    ms_per_page: float
    bare_ms_per_page: float


def judge(python: Path | None, show_worst: int, raise_floors: bool) -> list[str]:
    if not shutil.which("pdftotext"):
        return ["## PDF files", "", "Not judged: install pdftotext (Debian: apt-get install poppler-utils)."]
    found = [compared(path) for path in debian_pdfs.files()]
    if not found:
        return ["## PDF files", "", "Not judged: no package could be downloaded (apt-get update?)."]
    head = "| file | pages | words | word recall | word precision | boxes agree | CPU ms per page | bare PDFium |"
    rows = [_row(one) for one in found]
    mean = {name: sum(getattr(one, name) for one in found) / len(found) for name in ("recall", "precision", "boxes")}
    pages = sum(one.pages for one in found)
    ours = sum(one.ms_per_page * one.pages for one in found) / pages
    bare = sum(one.bare_ms_per_page * one.pages for one in found) / pages
    total = f"| all {len(found)} | {pages} | {sum(one.words for one in found)} | " + " | ".join(
        f"{value:.4f}" for value in mean.values()
    )
    return [
        "## PDF files of Debian packages, beside pdftotext -bbox",
        "",
        head,
        places.rule(head),
        *rows,
        f"{total} | {ours:.2f} | {bare:.2f} |",
        *floors.compare({"documents.pdf": mean}, raise_floors),
    ]


def _row(one: Compared) -> str:
    note = f" ({one.problem})" if one.problem else ""
    return (
        f"| {one.name}{note} | {one.pages} | {one.words} | {one.recall:.4f} | {one.precision:.4f} | {one.boxes:.4f} "
        f"| {one.ms_per_page:.2f} | {one.bare_ms_per_page:.2f} |"
    )


def compared(path: Path) -> Compared:
    body = path.read_bytes()
    started = time.process_time()
    file = read_document("pdf", body, _LIMITS)
    ours_s = time.process_time() - started
    ours, other = _ours(file), _popplers(path)
    mine, theirs = _bags(ours), _bags(other)
    common = (mine & theirs).total()
    return Compared(
        name=f"{path.parent.name}/{path.name}",
        problem=file.problem,
        pages=file.page_count,
        words=theirs.total(),
        recall=common / max(1, theirs.total()),
        precision=common / max(1, mine.total()),
        boxes=_agreeing(ours, other),
        ms_per_page=1000 * ours_s / max(1, file.page_count),
        bare_ms_per_page=1000 * _bare_s(body) / max(1, file.page_count),
    )


def _ours(file: FileText) -> list[Placed]:
    return [
        Placed(box.page, file.text[box.start : box.end], (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2)
        for box in file.boxes
    ]


def _popplers(path: Path) -> list[Placed]:
    run = subprocess.run(["pdftotext", "-bbox", path, "-"], capture_output=True, check=True)
    text = "".join(character for character in run.stdout.decode() if character >= " " or character in "\n\t")
    found = []
    for number, page in enumerate(ElementTree.fromstring(text).iter(f"{_XHTML}page"), 1):
        for word in page.iter(f"{_XHTML}word"):
            x0, y0, x1, y1 = (float(word.attrib[name]) for name in ("xMin", "yMin", "xMax", "yMax"))
            found.append(Placed(number, word.text or "", (x0 + x1) / 2, (y0 + y1) / 2))
    return found


def _bags(of: list[Placed]) -> Counter[tuple[int, str]]:
    return Counter((word.page, token) for word in of for token in judged.words(word.text))


def _agreeing(ours: list[Placed], other: list[Placed]) -> float:
    """Of our words that the other reader has on the same page, the share whose middle is at the same place."""
    places_of: dict[tuple[int, tuple[str, ...]], list[Placed]] = defaultdict(list)
    for word in other:
        places_of[word.page, tuple(judged.words(word.text))].append(word)
    agreed = common = 0
    for word in ours:
        same = places_of.get((word.page, tuple(judged.words(word.text))))
        if same:
            common += 1
            agreed += any(abs(one.x - word.x) < _NEAR and abs(one.y - word.y) < _NEAR for one in same)
    return agreed / max(1, common)


def _bare_s(body: bytes) -> float:
    """CPU seconds of PDFium for the text alone: no boxes, no order, no tables."""
    started = time.process_time()
    document = pypdfium2.PdfDocument(body)
    for page in document:
        page.get_textpage().get_text_range()
    document.close()
    return time.process_time() - started
