"""Table cells and definitions of a text by their labels, for selectors with `label`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from curtsy.core.claims import Source
from curtsy.core.text_layout import Label, LabelKind, joined
from curtsy.grounding.schema_hints import compiled


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


def labelled(source: Source, pattern: str) -> Iterator[LabelledCell]:
    """Yield the cells with a label that matches, in order."""
    wanted = compiled(pattern)
    cells = source.layout.cells
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


def _is_of_row(labels: Sequence[Label], named: Sequence[Label]) -> bool:
    """`Grower | Phone` over `Apple Farm | 01622 555 111`: the row, even a single one, says whose phone it is."""
    return all(one.kind is LabelKind.COLUMN for one in named) and any(one.kind is LabelKind.ROW for one in labels)


def _labels(source: Source) -> set[Label]:
    return {label for cell in source.layout.cells for label in cell.labels}
