"""Pages with known main content, `main_content/*.html`, and how well an extracted text matches them.

Beside each page, a JSON file of the same name holds what a person marked in it:

type, language, system    one of seven kinds of pages; ISO 639 code; the system whose markup the page has
text                      the main content
with, without             segments that an extracted text must contain, and segments that it must not contain
"""

from __future__ import annotations

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parent / "main_content"
TYPES = ("article", "product", "listing", "collection", "forum", "documentation", "service")
#: scripts without spaces between words: each character counts as a word
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA")


@dataclass(frozen=True)
class Page:
    name: str
    type: str
    language: str
    text: str
    present: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def body(self) -> bytes:
        return (FOLDER / f"{self.name}.html").read_bytes()

    @property
    def url(self) -> str:
        return f"https://{self.type}.example/{self.language}/page"


@dataclass(frozen=True)
class Score:
    """How well one text, or the texts of several pages on average, match the truth. All numbers are shares."""

    precision: float
    recall: float
    f1: float
    #: of the segments of the main content, those that the text contains
    kept: float
    #: of the segments around the main content, those that the text does not contain
    kept_out: float
    #: of all segments, those treated correctly
    accuracy: float


@cache
def pages() -> tuple[Page, ...]:
    return tuple(_page(path) for path in sorted(FOLDER.glob("*.json")))


def _page(path: Path) -> Page:
    known = json.loads(path.read_text("utf-8"))
    return Page(
        name=path.stem,
        type=known["type"],
        language=known["language"],
        text=known["text"],
        present=tuple(known["with"]),
        absent=tuple(known["without"]),
    )


def words(text: str) -> list[str]:
    """The words of a text in lower case; in scripts without spaces, its characters."""
    found: list[str] = []
    current: list[str] = []
    for character in unicodedata.normalize("NFKC", text).lower():
        in_word, alone = _kind(character)
        if alone or not in_word:
            if current:
                found.append("".join(current))
                current = []
            if alone:
                found.append(character)
        else:
            current.append(character)
    return [*found, "".join(current)] if current else found


@cache
def _kind(character: str) -> tuple[bool, bool]:
    """(is part of a word, is a word of its own)."""
    in_word = unicodedata.category(character)[0] in "LMN"
    return in_word, in_word and unicodedata.name(character, "").startswith(_UNSPACED)


def score(page: Page, text: str) -> Score:
    found = words(text)
    truth = words(page.text)
    common = (Counter(found) & Counter(truth)).total()
    precision = common / len(found) if found else 0.0
    recall = common / len(truth)
    joined = _joined(found)
    kept = [_joined(words(segment)) in joined for segment in page.present]
    kept_out = [_joined(words(segment)) not in joined for segment in page.absent]
    return Score(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if common else 0.0,
        kept=sum(kept) / len(kept),
        kept_out=sum(kept_out) / len(kept_out),
        accuracy=(sum(kept) + sum(kept_out)) / (len(kept) + len(kept_out)),
    )


def _joined(found: list[str]) -> str:
    return f" {' '.join(found)} "


def mean(scores: Iterable[Score]) -> Score:
    of = list(scores)
    return Score(*(sum(getattr(one, name) for one in of) / len(of) for name in Score.__dataclass_fields__))


def by(scores: dict[str, Score], group: str) -> dict[str, Score]:
    """Mean scores by `type` or `language`."""
    grouped: dict[str, list[Score]] = defaultdict(list)
    for page in pages():
        grouped[getattr(page, group)].append(scores[page.name])
    return {name: mean(of) for name, of in grouped.items()}
