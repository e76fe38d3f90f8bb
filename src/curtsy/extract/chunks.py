"""Select the paragraphs of long pages to show to a language model, within a token budget.

    Passage     a paragraph of a page with its position and its tokens
    passages    a page's text as passages, in order
    relates     whether a sentence can be about a leaf
    choose      the best passages for the requested leaves, in page order

Pure and deterministic: the same pages and leaves give the same choice, so that answers can be cached. Passages are
ranked for each leaf by BM25 over its words, with a bonus for text that looks like its values (an @ for an email). The
leaves choose in turn, so a leaf with many matching paragraphs does not displace the others.

The layout of a text adds to each passage what it lacks: the heading of its section in a document, and the labels of the
columns of its table. No passage goes beyond a section.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from curtsy.core.text_layout import EMPTY_LAYOUT, LabelKind, TextLayout, section_at
from curtsy.grounding import relation
from curtsy.grounding.schema import Leaf

#: longer paragraphs are split between sentences; shorter ones, such as headings, are joined with the next
_LONG_CHARS = 600
_SHORT_CHARS = 40
#: the usual BM25 parameters: saturation of repeated words, and influence of the length
_K1, _B = 1.2, 0.75
#: the look of a value counts as much as two rare words; the beginning of a page less than one
_LOOK_BONUS, _LEAD_BONUS = 4.0, 0.5
_LEAD_PASSAGES = 3
#: characters of a context, and cells of a passage whose labels it has
_MAX_CONTEXT = 300
_MAX_CELLS = 100

#: a line of this length may be a label or a heading of the passages below it
_LABEL_CHARS, _BELOW_A_LABEL = 60, 5

#: words that occur near a value but also elsewhere, and looks that are unambiguous
_LOOSE = frozenset(("since", "history", "year", "people", "team", "percent", "box", "e", "by", "day"))
_UNAMBIGUOUS = frozenset(("email", "phone", "telephone", "price", "url"))
_ANYWHERE = frozenset(("name", "title", "headline"))
_WORD = re.compile(r"[^\W_]+")
_LABEL = re.compile(r"\s*([^:]{1,30}):\s")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+")
#: words that occur in every description
_STOP = frozenset(
    ("a", "an", "and", "are", "as", "at", "be", "by", "for", "from", "has", "have", "if", "in", "is", "it", "its",
     "not", "of", "on", "one", "or", "so", "such", "than", "that", "the", "their", "them", "these", "they", "this",
     "to", "was", "were", "what", "when", "where", "which", "who", "whose", "will", "with", "you", "your", "all",
     "any", "each", "every", "given", "found", "page", "site", "text", "value", "values", "string", "number", "list",
     "exactly", "stated", "short")
)  # fmt: skip
#: word of a leaf -> related words
_RELATED: dict[str, str] = tomllib.loads((Path(__file__).parent / "related_words.toml").read_text("utf-8"))
#: patterns of values, by a word of the leaf's path
_LOOKS = {
    "email": re.compile(r"[^\s@]@[^\s@]|\(at\)|\[at\]"),
    "phone": re.compile(r"\+?\d[\d\s()/.-]{6,}\d"),
    "telephone": re.compile(r"\+?\d[\d\s()/.-]{6,}\d"),
    "year": re.compile(r"\b(1[5-9]|20)\d\d\b"),
    "founded": re.compile(r"\b(1[5-9]|20)\d\d\b"),
    "date": re.compile(r"\b\d{1,4}[-./]\d{1,2}[-./]\d{1,4}\b|\b(1[5-9]|20)\d\d\b"),
    "price": re.compile(r"[€$£¥]\s?\d|\d\s?(€|EUR|USD|GBP|CHF)"),
    "address": re.compile(r"\b\d{4,6}\b"),
    "url": re.compile(r"https?://|www\."),
}


@dataclass(frozen=True, slots=True)
class Passage:
    """`pages[page][start:end]`."""

    page: int
    start: int
    end: int
    text: str
    #: with its context
    tokens: int
    #: heading and column labels, if the passage does not contain them
    context: str = ""


def tokens_of(text: str) -> int:
    """Estimate the tokens of a text, rather too high than too low: 3 letters each, and one for each other character."""
    plain = sum(map(text.count, "0123456789")) + (len(text.encode("utf-8", "replace")) - len(text))
    return len(text) // 3 + plain // 2 + 1


def passages(
    text: str,
    page: int = 0,
    leave_out: Callable[[str], bool] = lambda _: False,
    layout: TextLayout = EMPTY_LAYOUT,
) -> list[Passage]:
    """Return non-empty paragraphs; a heading is joined with the text after it. Lines to leave out are omitted."""
    cut = _paragraphs(text, page, leave_out, {section.start for section in layout.sections})
    return [_in_context(one, layout, leave_out) for one in cut]


def _in_context(one: Passage, layout: TextLayout, leave_out: Callable[[str], bool]) -> Passage:
    section = section_at(layout.sections, one.start)
    said = [] if section is None or section.start >= one.start else [section.title]
    cells = islice(layout.cells_within(one.start, one.end), _MAX_CELLS)
    columns = (label for cell in cells for label in cell.labels if label.kind is LabelKind.COLUMN)
    said += dict.fromkeys(" ".join(label.text.split()) for label in columns if label.start < one.start)
    context = " | ".join(said)[:_MAX_CONTEXT]
    if not context or leave_out(context):
        return one
    return replace(one, tokens=one.tokens + tokens_of(context), context=context)


def _paragraphs(text: str, page: int, leave_out: Callable[[str], bool], starts: set[int]) -> list[Passage]:
    found: list[Passage] = []
    lines = list(_lines(text))
    bad = _left_out([text[start:end] for start, end in lines], leave_out)
    start: int | None = None
    for number, (line_start, line_end) in enumerate(lines):
        if number in bad:
            continue
        first = line_start if start is None else start
        goes_on = number + 1 < len(lines) and number + 1 not in bad and lines[number + 1][0] not in starts
        if line_end - first < _SHORT_CHARS and goes_on:
            start = first
            continue
        found += _cut(text, first, line_end, page)
        start = None
    return found


def _left_out(lines: Sequence[str], leave_out: Callable[[str], bool]) -> set[int]:
    """Lines that match alone, or together with the previous line."""
    bad = {number for number, line in enumerate(lines) if leave_out(line)}
    for number in range(1, len(lines)):
        apart = not bad & {number - 1, number}
        if apart and leave_out(f"{lines[number - 1][-_SHORT_CHARS:]} {lines[number][:_SHORT_CHARS]}"):
            bad |= {number - 1, number}
    return bad


def choose(
    texts: Sequence[str],
    leaves: Sequence[Leaf],
    budget_tokens: int,
    leave_out: Callable[[str], bool] = lambda _: False,
    layouts: Sequence[TextLayout] = (),
    related: Sequence[bool] = (),
) -> list[Passage]:
    """Return the passages to show, ordered by page and position. All of them if they fit, except those to leave out.
    `layouts` has one layout for each text, or none. `related` says of which texts only passages that can state one of
    the leaves are shown; of the others, all.
    """
    known = layouts or [EMPTY_LAYOUT] * len(texts)
    everything: list[Passage] = []
    for page, (text, layout) in enumerate(zip(texts, known, strict=True)):
        found = passages(text, page, leave_out, layout)
        everything += _stating(found, leaves) if related and related[page] else found
    if sum(one.tokens for one in everything) <= budget_tokens:
        return everything
    rankings = _rankings(everything, leaves)
    taken: set[int] = set()
    left = budget_tokens
    for number in _in_turns(rankings):
        if number not in taken and everything[number].tokens <= left:
            taken.add(number)
            left -= everything[number].tokens
    return [everything[number] for number in sorted(taken)]


def _stating(found: Sequence[Passage], leaves: Sequence[Leaf]) -> list[Passage]:
    """Return the passages that can state a value of one of the leaves, with those next to them; none if no passage can.

    A quote that does not relate to its field is not published (grounding/relation.py), so other passages are useless.
    The first passage of the page says what it is about.
    """
    kept: set[int] = set()
    for leaf in leaves:
        for number, one in enumerate(found):
            if relation.can_name(leaf, f"{one.context} {one.text}"):
                kept.update(range(number - 1, number + (_BELOW_A_LABEL if _has_label(one) else 1) + 1))
    return [one for number, one in enumerate(found) if number in kept or (kept and number == 0)]


def _has_label(one: Passage) -> bool:
    """Return whether its first line can be the heading of what follows."""
    line = one.text.partition("\n")[0].rstrip()
    return len(line) <= _LABEL_CHARS and not line.endswith((".", "!", "?", "。"))


def words_of(leaf: Leaf) -> list[str]:
    """Return the words of a leaf's path and description, and related words."""
    named = _terms(leaf.path.replace("_", " "))
    own = named + [word for word in _terms(leaf.description) if word not in _STOP]
    related = [word for name in named for word in _RELATED.get(name, "").split()]
    listed = [word for value in leaf.enum for word in _terms(str(value))]
    return list(dict.fromkeys(own + related + listed))


def sentences(text: str) -> Iterable[str]:
    """Yield the sentences of a text, unchanged."""
    for start, end in _lines(text):
        yield from _SENTENCE_END.split(text[start:end])


def relates(leaf: Leaf, text: str) -> bool:
    """Return whether a sentence can be about the leaf: it has one of its words, or text that looks like its values.
    Names may occur anywhere.
    """
    named = _terms(leaf.path.replace("_", " "))
    if not named or named[-1] in _ANYWHERE:
        return True
    wanted = {*named, *(word for name in named for word in _RELATED.get(name, "").split())} - _LOOSE
    looks = [_LOOKS[name] for name in named if name in _UNAMBIGUOUS]
    if (label := _LABEL.match(text)) and wanted.isdisjoint(_terms(label[1])):
        return False  # `Hosting: 0800 555 010` belongs to another company
    return not wanted.isdisjoint(_terms(text)) or any(look.search(text) for look in looks)


def _lines(text: str) -> Iterable[tuple[int, int]]:
    at = 0
    for line in text.splitlines(keepends=True):
        stripped = line.strip()
        if stripped:
            start = at + line.index(stripped)
            yield start, start + len(stripped)
        at += len(line)


def _cut(text: str, start: int, end: int, page: int) -> list[Passage]:
    """Split long text between sentences, and very long sentences anywhere."""
    if end - start <= _LONG_CHARS:
        return [_passage(text, start, end, page)]
    found, at = [], start
    while end - at > _LONG_CHARS:
        breaks = [match.end() for match in _SENTENCE_END.finditer(text, at + _SHORT_CHARS, at + _LONG_CHARS)]
        space = text.rfind(" ", at + _SHORT_CHARS, at + _LONG_CHARS)
        cut = breaks[-1] if breaks else space + 1 if space > 0 else at + _LONG_CHARS
        found.append(_passage(text, at, cut, page))
        at = cut
    return [*found, _passage(text, at, end, page)]


def _passage(text: str, start: int, end: int, page: int) -> Passage:
    piece = text[start:end]
    return Passage(page, start, end, piece, tokens_of(piece))


def _rankings(everything: Sequence[Passage], leaves: Sequence[Leaf]) -> list[list[int]]:
    """Return, for each leaf, the numbers of all passages, best first."""
    bags = [Counter(_terms(f"{one.context} {one.text}")) for one in everything]
    usual = max(1.0, sum(map(len, bags)) / max(1, len(bags)))
    holding = Counter(word for bag in bags for word in bag)
    leads = {number for number, one in enumerate(everything) if _is_lead(everything, number, one)}

    def score(number: int, words: Sequence[str], looks: Sequence[re.Pattern[str]]) -> float:
        bag = bags[number]
        weight = _K1 * (1 - _B + _B * len(bag) / usual)
        total = sum(
            math.log(1 + (len(bags) - holding[word] + 0.5) / (holding[word] + 0.5))
            * bag[word] * (_K1 + 1) / (bag[word] + weight)
            for word in words
            if word in bag
        )  # fmt: skip
        total += _LOOK_BONUS * any(look.search(everything[number].text) for look in looks)
        return total + _LEAD_BONUS * (number in leads)

    rankings = []
    for leaf in leaves:
        words, looks = words_of(leaf), _looks(leaf)
        scores = [score(number, words, looks) for number in range(len(everything))]
        rankings.append(sorted(range(len(everything)), key=lambda number: (-scores[number], number)))
    return rankings


def _is_lead(everything: Sequence[Passage], number: int, one: Passage) -> bool:
    back = number - _LEAD_PASSAGES
    return back < 0 or everything[back].page != one.page


def _looks(leaf: Leaf) -> list[re.Pattern[str]]:
    names = [*_terms(leaf.path.replace("_", " ")), *(["date"] if leaf.type == "date" else [])]
    return [_LOOKS[name] for name in names if name in _LOOKS]


def _in_turns(rankings: Sequence[Sequence[int]]) -> Iterable[int]:
    """Yield the best passage of each leaf, then the second of each."""
    for turn in zip(*rankings, strict=True):
        yield from turn


def _terms(text: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(text)]
