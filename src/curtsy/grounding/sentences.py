"""Sentences of a text."""

from __future__ import annotations

import re

_MAX_SENTENCE = 400
#: not within `e. V.`, `z. B.`: a single small letter after a word
#: a digit begins a sentence only as a year: `without peat. 2021 we planted`, not `approx. 300 trees`, `Sept. 2021`
_END = re.compile(
    r"(?:(?<![^\W\d_] [a-zäöü])\.|[!?])(?=\s+[^\sa-z\d])"
    r"|(?<=[^\W\d_]{4})(?<!Sept)(?<!prox)\.(?=\s+(?:19|20)\d\d,? [^\W\d_])"
    r"|[。！？]|\n"
)


def sentence_around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the sentence that contains text[start:end], within its line and of about 400 characters at most.

    >>> sentence_around("One. Two is here. Three.", 5, 8)
    (5, 17)
    """
    first = max(text.rfind("\n", 0, start) + 1, start - _MAX_SENTENCE)
    for stop in _END.finditer(text, first, start + 1):
        first = stop.end() if stop.end() <= start else first
    found = _END.search(text, max(end - 1, start), min(len(text), end + _MAX_SENTENCE))
    last = min(len(text), end + _MAX_SENTENCE) if found is None else found.end()
    while first < start and text[first].isspace():
        first += 1
    while last > end and text[last - 1].isspace():
        last -= 1
    return first, max(last, end)
