"""Fitting a table into a terminal. Pure: no output.

Empty columns are left out, long texts are shortened in the middle, and columns that matter less are left out if it is
still too wide. Ids are never shortened: they must be copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

#: columns whose cells may be shortened, and how far
_FLEXIBLE = {
    "url": 30,
    "why": 12,
    "detail": 12,
    "title": 12,
    "name": 12,
    "note": 12,
    "before": 12,
    "now": 12,
    "fault": 10,
    "host": 18,
    "place": 12,
    "field": 12,
    "schedule": 12,
}
#: of these, texts whose beginning says most
_SENTENCES = ("why", "detail", "note", "place")
#: columns that are left out first if the table is too wide, in this order
_LESS = (
    "lane", "zone", "stage", "attempts", "size", "unchanged", "sha256", "found in test", "scopes", "note", "revoked",
    "ended", "used", "pending", "dead letters", "outcome", "at", "withheld", "detail", "created", "started",
)  # fmt: skip
#: between two columns; the edges have 1 each
_GAP, _EDGES = 3, 2

Rows = list[list[str]]


def fitted(columns: Sequence[str], rows: Rows, width: int) -> tuple[list[str], Rows]:
    """The columns and rows that fit into `width` characters; if even the least does not fit, the terminal wraps."""
    names, cells = _without_empty(columns, rows)
    kept = set(names)
    dropped: list[str] = []
    for less in _LESS:
        if less in kept and _least(*_only(kept, names, cells)) > width:
            kept.remove(less)
            dropped.append(less)
    # A narrow column may fit where a wide one that matters more does not; nothing is shortened for it.
    for less in reversed(dropped):
        if _total(_widths(*_only(kept | {less}, names, cells))) <= width:
            kept.add(less)
    names, cells = _only(kept, names, cells)
    return names, _shortened(names, cells, width)


def middle(text: str, most: int) -> str:
    """`https://a.test/very/...page.html`: both ends of a URL say what it is."""
    if len(text) <= most or most < 5:
        return text
    head = (most - 3 + 1) // 2
    return f"{text[:head]}...{text[len(text) - (most - 3 - head) :]}"


def _short(name: str, text: str, most: int) -> str:
    """Sentences lose their end, other texts their middle."""
    if name in _SENTENCES and len(text) > most >= 5:
        return f"{text[: most - 3]}..."
    return middle(text, most)


def _without_empty(columns: Sequence[str], rows: Rows) -> tuple[list[str], Rows]:
    kept = [at for at in range(len(columns)) if not rows or any(row[at] for row in rows)]
    return [columns[at] for at in kept], [[row[at] for at in kept] for row in rows]


def _only(kept: set[str], names: list[str], rows: Rows) -> tuple[list[str], Rows]:
    at = [at for at, name in enumerate(names) if name in kept]
    return [names[one] for one in at], [[row[one] for one in at] for row in rows]


def _widths(names: Sequence[str], rows: Rows) -> list[int]:
    return [max(len(name), *(len(row[at]) for row in rows), 0) for at, name in enumerate(names)]


def _least(names: Sequence[str], rows: Rows) -> int:
    """The width with every text as short as it may be."""
    widths = zip(names, _widths(names, rows), strict=True)
    return _total(min(width, max(_FLEXIBLE.get(name, width), len(name))) for name, width in widths)


def _total(widths: Iterable[int]) -> int:
    """The width of a table with these columns."""
    return sum(width + _GAP for width in widths) - _GAP + _EDGES


def _shortened(names: Sequence[str], rows: Rows, width: int) -> Rows:
    widths = _widths(names, rows)
    over = _total(widths) - width
    # The widest first: it can give the most.
    for at in sorted(range(len(names)), key=lambda one: -widths[one]):
        if over > 0 and names[at] in _FLEXIBLE:
            least = min(widths[at], max(_FLEXIBLE[names[at]], len(names[at])))
            given = min(over, widths[at] - least)
            widths[at] -= given
            over -= given
    return [
        [_short(names[at], cell, widths[at]) if names[at] in _FLEXIBLE else cell for at, cell in enumerate(row)]
        for row in rows
    ]
