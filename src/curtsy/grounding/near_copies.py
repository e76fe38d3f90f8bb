"""Near copies of long texts: when two texts count as the same, and where a quote is.

A near copy adds nothing to the source: no figure, no negation and no content word. Its figures have the same order, and
its words nearly the same. The threshold was measured on the labeled cases in tests/golden:
`tests/golden/calibrate.py` prints the table, docs/decisions/0019-what-counts-as-evidence.md contains it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import Indel, LCSseq

from curtsy.grounding.folded_text import Folded, fold, occurrences, plain
from curtsy.grounding.negations import is_hedged, is_negated
from curtsy.grounding.vocabulary import AGENTS, AMOUNTS, IS, LIGHT, NEGATIONS, QUALIFIERS, WAS

#: minimum share of equal words in the same order (Indel similarity over words)
NEAR = 0.8
#: shorter texts are names, places, headings: they are compared exactly
MIN_WORDS = 6
#: minimum similarity by characters for a candidate; low, since NEAR decides
_WORTH_A_LOOK = 70.0
_MAX_GAP = 400
#: longer texts are not compared word by word: it would take seconds
_MAX_QUOTE, _MAX_TEXT, _MAX_PASSAGE = 1_000, 2_000_000, 100_000

_WORD = re.compile(r"\d+(?:[.,]\d+)*|(?:[^\W\d_]|[\u0300-\u036f])+(?:'[^\W\d_]+)*|[^\W_]+")
#: words and amounts with the marks that belong to them
_MARKED_WORD = re.compile(r"[^\s|:,;/·•*\-\"'()\[\]]+")
_MAX_MARKED = 120
_ELISION = re.compile(r"(?:(?<!\s)\s++)?[\[(]?\.{3,}+[\])]?\s*+")
_WRAPPING = " \"'*_`>"
_ENDINGS = frozenset(("", "s", "es", "d", "ed", "ing", "e", "y", "ies", "ied", "ly", "'s", "n", "en"))


class _Words(NamedTuple):
    texts: list[str]
    spans: list[tuple[int, int]]


def _words(text: str) -> _Words:
    found = list(_WORD.finditer(text))
    return _Words([one[0] for one in found], [one.span() for one in found])


def similarity(value: list[str], window: list[str]) -> float:
    """Return 1 for the same words in the same order."""
    return float(Indel.normalized_similarity(value, window))


def find_near(folded: Folded, value: str, lo: int, hi: int, threshold: float = NEAR) -> tuple[int, int] | None:
    """Return the span of a near copy of the (folded) value in the folded text, between `lo` and `hi`."""
    if hi - lo > _MAX_PASSAGE:
        return None
    ours, theirs = _words(value), _words(folded.text[lo:hi])
    window = _overlap(ours.texts, theirs.texts)
    if len(ours.texts) < MIN_WORDS or window is None:
        return None
    first, last = window
    said = theirs.texts[first:last]
    if similarity(ours.texts, said) < threshold or contradiction(ours.texts, said):
        return None
    start, end = lo + theirs.spans[first][0], lo + theirs.spans[last - 1][1]
    return None if is_negated(folded.text, start) or is_hedged(folded.text, start) else (start, end)


def nearest(folded: Folded, value: str) -> float:
    """Return the similarity of the (folded) value to the overlapping part of the text, regardless of its meaning."""
    ours, theirs = _words(value).texts, _words(folded.text).texts
    window = _overlap(ours, theirs)
    return 0.0 if window is None else similarity(ours, theirs[slice(*window)])


def _overlap(ours: list[str], theirs: list[str]) -> tuple[int, int] | None:
    """Return the range of words in `theirs` from the first to the last that `ours` has in the same order."""
    equal = [code for code in LCSseq.opcodes(ours, theirs) if code.tag == "equal"]
    if not equal:
        return None
    return equal[0].dest_start, equal[-1].dest_end


def contradiction(value: list[str], said: list[str]) -> str | None:
    """Return how the value contradicts the words of the source; None if it does not.

    `figure` | `qualifier` (a negation, limit, promise or agent is lost or added) | `tense` | `word` (a new content
    word) | `order` (content words in another order).
    """
    figures = iter(word for word in said if _is_figure(word))
    if not all(word in figures for word in value if _is_figure(word)):
        return "figure"
    if _qualifiers(value) != _qualifiers(said):
        return "qualifier"
    if _tense(value) != _tense(said) and len(_tense(value)) == len(_tense(said)):
        return "tense"
    known = set(said)
    heavy = [word for word in value if word not in LIGHT and not _is_figure(word)]
    if any(word not in known and not any(_same_stem(word, other) for other in known) for word in heavy):
        return "word"
    theirs = iter(said)
    in_order = all(any(word == other or _same_stem(word, other) for other in theirs) for word in heavy)
    return None if in_order else "order"


def _qualifiers(words: list[str]) -> list[str]:
    return sorted(word for word in words if word in NEGATIONS or word in QUALIFIERS or word in AGENTS)


def _tense(words: list[str]) -> list[bool]:
    """For each verb of being: whether it is in the present."""
    return [word in IS for word in words if word in IS or word in WAS]


def _is_figure(word: str) -> bool:
    return word[0].isdigit() or word in AMOUNTS


def _same_stem(one: str, other: str) -> bool:
    one, other = _spelling(one), _spelling(other)
    shared = 0
    for left, right in zip(one, other, strict=False):
        if left != right:
            break
        shared += 1
    ends = one[shared:], other[shared:]
    # `wine` and `wind` share only letters.
    return (shared >= 4 or (shared == 3 and "" in ends)) and all(end in _ENDINGS for end in ends)


def _spelling(word: str) -> str:
    """Map British and American spelling to the same text."""
    return word.replace("z", "s").replace("our", "or").replace("ll", "l").replace("mme", "m")


# Quotes


def find_quote(folded: Folded, quote: str) -> list[tuple[int, int]]:
    """Return the spans of the quote in the folded text: exactly, else with omissions, else nearly."""
    for needle in _variants(plain(quote)):
        if found := _all(folded.text, needle):
            return found
    if (cell_by_cell := _by_words(folded, plain(quote))) is not None:
        return [cell_by_cell]
    needle = plain(quote).strip(_WRAPPING)
    if found_parts := _with_gaps(folded.text, needle):
        return [found_parts]
    near = _nearly(folded, needle)
    return [near] if near else []


def _variants(needle: str) -> list[str]:
    bare = needle.strip(_WRAPPING)
    return list(dict.fromkeys(one for one in (needle, bare, bare.rstrip(".,;:!?-"), bare.strip(".,;:!?-[]() ")) if one))


def _all(text: str, needle: str) -> list[tuple[int, int]]:
    return list(occurrences(text, needle))


def _by_words(folded: Folded, needle: str) -> tuple[int, int] | None:
    """Return the span with the same words, and other marks between them: `Founded | 1962` of a row of two cells."""
    wanted = [one[0] for one in _MARKED_WORD.finditer(needle)]
    if not 2 <= len(wanted) <= _MAX_MARKED or _ELISION.search(needle):
        return None
    pattern = r"(?<![^\W_])" + r"[\s|:,;/·•*\-\"'()\[\]]{1,12}".join(map(re.escape, wanted)) + r"(?![^\W_])"
    found = re.search(pattern, folded.text)
    return found.span() if found else None


def _with_gaps(text: str, needle: str) -> tuple[int, int] | None:
    parts = [part for part in _ELISION.split(needle) if part]
    if len(parts) < 2 or any(len(part) < 4 for part in parts):
        return None
    for start, end in _all(text, parts[0]):
        for part in parts[1:]:
            at = text.find(part, end, end + _MAX_GAP + len(part))
            if at < 0:
                break
            end = at + len(part)
        else:
            return start, end
    return None


def _nearly(folded: Folded, needle: str) -> tuple[int, int] | None:
    if len(_words(needle).texts) < MIN_WORDS or len(needle) > _MAX_QUOTE or len(folded.text) > _MAX_TEXT:
        return None
    alignment = fuzz.partial_ratio_alignment(needle, folded.text, score_cutoff=_WORTH_A_LOOK)
    if alignment is None:
        return None
    reach = max(20, len(needle) // 4)
    return find_near(folded, needle, *_widened(folded.text, alignment.dest_start - reach, alignment.dest_end + reach))


def _widened(text: str, lo: int, hi: int) -> tuple[int, int]:
    """Extend the range to the ends of words."""
    lo, hi = max(lo, 0), min(hi, len(text))
    while lo > 0 and text[lo - 1].isalnum():
        lo -= 1
    while hi < len(text) and text[hi].isalnum():
        hi += 1
    return lo, hi


def same_text(one: str, other: str) -> bool:
    """Return whether two long (folded) texts are near copies of each other."""
    if not fuzz.ratio(one, other, score_cutoff=_WORTH_A_LOOK):
        return False
    left, right = fold(one), fold(other)
    return (
        find_near(left, right.text, 0, len(left.text)) is not None
        and find_near(right, left.text, 0, len(right.text)) is not None
    )
