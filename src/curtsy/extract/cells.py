"""Table cells, definitions and lines of a text by their labels, for selectors with `label`.

`labelled`         cells and definitions
`labelled_lines`   `Founded: 1954`, rows of two cells, and a line below a line that is only a label
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from curtsy.core.claims import Source
from curtsy.core.text_layout import Label, LabelKind, joined
from curtsy.grounding.schema_hints import compiled

_LINE = re.compile(r"[^\n]+")
#: between two cells of a row
_TAB = re.compile(r"[:： ]{0,3}\t\s{0,4}")
_COLON = re.compile(r"\s{0,4}([:：])\s{0,4}")
#: characters of a label, and of a line with a label and its value
_MAX_LABEL = 60
_MAX_LABELLED = 240


class LabelledCell(NamedTuple):
    """A cell: `source.text[start:end] == text`."""

    text: str
    start: int
    end: int
    #: the text behind its labels: `Founded: 1954`
    quote: str
    #: the other labels of a cell that shares the label with further cells, or whose row has a label besides; None: it
    #: alone has the label
    others: tuple[str, ...] | None


def labelled(
    source: Source, pattern: str, is_foreign: Callable[[int, int], bool] = lambda _start, _end: False
) -> Iterator[LabelledCell]:
    """Yield the cells with a label that matches, in order, without those of others."""
    wanted = compiled(pattern)
    cells = source.layout.cells
    if any(wanted.search(label.text) for label in _labels(source)):
        cells = tuple(cell for cell in cells if not is_foreign(cell.start, cell.end))
    fitting = {label for label in _labels(source) if wanted.search(label.text)}
    sharing = Counter(label for cell in cells for label in cell.labels if label in fitting)
    for cell in cells:
        named = [label for label in cell.labels if label in fitting]
        said = source.text[cell.start : cell.end].strip()
        if named and said:
            start = source.text.index(said, cell.start)
            others = tuple(label.text for label in cell.labels if label not in fitting)
            is_one_of_many = all(sharing[label] > 1 for label in named) or _is_of_row(cell.labels, named)
            quote = f"{joined(cell.labels)}: {said}"
            yield LabelledCell(said, start, start + len(said), quote, others if is_one_of_many else None)


def labelled_lines(
    source: Source, pattern: str, is_foreign: Callable[[int, int], bool] = lambda _start, _end: False
) -> Iterator[LabelledCell]:
    """Yield the values of lines with a label that matches. If they differ, it is not known whose each is: `others` is
    empty then."""
    wanted = compiled(pattern)
    text = source.text
    inside = source.layout.cells
    found = [
        one
        for one in _labelled_values(text)
        if wanted.search(one[2])
        and not any(cell.start <= one[0] < cell.end for cell in inside)
        and not is_foreign(one[0], one[1])
    ]
    different = len({" ".join(text[start:end].casefold().split()) for start, end, _ in found}) > 1
    for start, end, label in found:
        yield LabelledCell(text[start:end], start, end, f"{label}: {text[start:end]}", () if different else None)


@lru_cache(maxsize=32)
def _labelled_values(text: str) -> list[tuple[int, int, str]]:
    """Return the values of lines that may have a label, with the label."""
    found: list[tuple[int, int, str]] = []
    above = ""
    for line in _LINE.finditer(text):
        said = line.group()
        if len(said) > _MAX_LABELLED:
            above = ""
            continue
        # a row of two cells may have a label without being marked so
        colon = (_TAB if said.count("\t") == 1 else _COLON).search(said[:_MAX_LABEL])
        if colon is not None and said[colon.end() :].strip():
            start, label, said = line.start() + colon.end(), said[: colon.start()].strip(), said[colon.end() :]
            above = ""
        else:
            start, label = line.start(), above
            above = said.strip().rstrip(":： ") if len(said) <= _MAX_LABEL else ""
        if label:
            first = start + len(said) - len(said.lstrip())
            found.append((first, first + len(said.strip()), label))
    return [one for one in found if one[0] < one[1]]


def _is_of_row(labels: Sequence[Label], named: Sequence[Label]) -> bool:
    """`Grower | Phone` over `Apple Farm | 01622 555 111`: the row, even a single one, says whose phone it is."""
    return all(one.kind is LabelKind.COLUMN for one in named) and any(one.kind is LabelKind.ROW for one in labels)


def _labels(source: Source) -> set[Label]:
    return {label for cell in source.layout.cells for label in cell.labels}
