"""Group the values of a page into the items of a list, by their position in the page.

The elements of one leaf are the items. To each item belong the values in the largest element around it that contains no
other item. Values outside of all items are left out, and an item may lack values. Where positions are not comparable
(CSS with XPath, patterns over the page's text), or items have no elements of their own (`dt` and `dd` in one `dl`),
values are paired by order, but only if all leaves found equally many. No I/O; the work grows with the number and depth
of the elements, which `selector_process` bounds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from curtsy.core.claims import Claim
from curtsy.grounding.schema import Leaf

#: leaves of a list whose elements are tried as items
_MAX_LEADERS = 4


class Cell(NamedTuple):
    """The value of one element, or of one match in a text, for a leaf."""

    #: as of an `Element`; empty: not comparable
    chain: tuple[int, ...]
    #: its first value that can be parsed
    claim: Claim | None


class Column(NamedTuple):
    """What was found for a leaf, in order."""

    path: str
    #: `css`, `xpath`: chains are comparable with others of the same kind; `text`: not comparable
    kind: str
    cells: list[Cell]
    #: all values of a single element
    inner: list[Cell]
    #: the list was truncated
    cut: bool


#: one item: leaf -> claim
Row = dict[str, Claim]


def together(leaves: Iterable[Leaf]) -> list[list[Leaf]]:
    """Group the leaves of one list of objects; all others are alone. Lists within lists are ignored."""
    groups: dict[str, list[Leaf]] = {}
    for leaf in leaves:
        if leaf.path.count("*") <= 1:
            name = leaf.path.partition("/*/")[0] if is_of_object(leaf) else leaf.path
            groups.setdefault(name, []).append(leaf)
    return list(groups.values())


def is_of_object(leaf: Leaf) -> bool:
    """Return whether the leaf is inside an item of a list, and not the item itself."""
    return "/*/" in leaf.path


def rows(columns: Sequence[Column]) -> list[Row]:
    """Return the items that have values, in order."""
    if not columns:
        return []
    if all(len(column.cells) == 1 for column in columns) and (found := _within(columns)) is not None:
        return found
    groups: dict[str, list[Column]] = {}
    for column in columns:
        groups.setdefault(column.kind if column.kind != "text" else column.path, []).append(column)
    if len(groups) > 1 and _alike([column.cells for column in columns]) and not any(column.cut for column in columns):
        return _by_position({column.path: column.cells for column in columns})
    group = max(groups.values(), key=lambda group: max(len(column.cells) for column in group))
    return _by_place(group) if group[0].kind != "text" else _by_position({group[0].path: group[0].cells})


def _within(columns: Sequence[Column]) -> list[Row] | None:
    """Items inside one element, such as the lines of a text; None: there is only one item."""
    several = [column for column in columns if len(column.inner) > 1]
    if not several:
        return None
    if _alike([column.inner for column in columns]):
        return _by_position({column.path: column.inner for column in columns})
    if len(several) == 1 and len({column.cells[0].chain for column in columns}) == len(columns):
        return None  # one leaf of one item has several values
    most = max(several, key=lambda column: len(column.inner))
    return _by_position({most.path: most.inner})


def _alike(many: Sequence[Sequence[Cell]]) -> bool:
    return len({len(cells) for cells in many}) == 1


def _by_position(columns: Mapping[str, Sequence[Cell]]) -> list[Row]:
    """Pair values by their order; all columns have the same length."""
    count = max(len(cells) for cells in columns.values())
    found = ({path: claim for path, cells in columns.items() if (claim := cells[at].claim)} for at in range(count))
    return [row for row in found if row]


def _by_place(columns: Sequence[Column]) -> list[Row]:
    """Use the leaf with the most elements, unless an item may have several of these."""
    leaders = sorted(columns, key=lambda column: -len(column.cells))[:_MAX_LEADERS]
    most = leaders[0]
    if _is_flat(most, columns):
        return _by_position({column.path: column.cells for column in columns})
    for leader in leaders[1:]:
        owners = _owners(leader)
        if 1 < len(leader.cells) < len(most.cells) and all(_is_regular(column, leader, owners) for column in columns):
            return _led(leader, owners, columns)
    return _led(most, _owners(most), columns)


def _is_flat(leader: Column, columns: Sequence[Column]) -> bool:
    """Equally many of each, none inside an item of another, such as `dt` and `dd` in one `dl`."""
    others = [column for column in columns if column is not leader]
    if not others or not _alike([column.cells for column in columns]) or any(column.cut for column in columns):
        return False
    owners = _owners(leader)
    return not any(_owner(cell, owners) for column in others for cell in column.cells)


#: element -> the one item that it contains, or is part of, and its distance from that item
_Owners = dict[int, tuple[int, int]]


def _owners(leader: Column) -> _Owners:
    holding = Counter(node for cell in leader.cells for node in cell.chain)
    owners: _Owners = {}
    for item, cell in enumerate(leader.cells):
        for height, node in enumerate(cell.chain):
            if holding[node] > 1:
                break
            owners[node] = (item, height)
    return owners


def _owner(cell: Cell, owners: _Owners) -> tuple[int, int] | None:
    return next((owners[node] for node in cell.chain if node in owners), None)


def _is_regular(column: Column, leader: Column, owners: _Owners) -> bool:
    """All of its cells are in the leader's items, and most items have one value."""
    owned = [
        (owner[0], cell.claim and repr(cell.claim.value)) for cell in column.cells if (owner := _owner(cell, owners))
    ]
    counts = Counter(item for item, _ in set(owned))
    single = sum(count == 1 for count in counts.values())
    few = len(column.cells) <= len(leader.cells)
    return len(owned) == len(column.cells) and (few or single * 3 >= len(leader.cells) * 2)


def _led(leader: Column, owners: _Owners, columns: Sequence[Column]) -> list[Row]:
    """Make an item for each of the leader's elements, with the nearest values of the other leaves."""
    found: list[Row] = [{leader.path: cell.claim} if cell.claim else {} for cell in leader.cells]
    for column in columns:
        if column is not leader:
            for item, claim in _nearest(column, owners):
                found[item][column.path] = claim
    # The end of the last item of a truncated list is unknown.
    return [row for row in (found[:-1] if leader.cut else found) if row]


def _nearest(column: Column, owners: _Owners) -> Iterator[tuple[int, Claim]]:
    """Yield for each item the nearest value that can be parsed; of equally near ones the first."""
    best: dict[int, tuple[int, Claim]] = {}
    for cell in column.cells:
        owner = _owner(cell, owners)
        if cell.claim and owner and (owner[0] not in best or owner[1] < best[owner[0]][0]):
            best[owner[0]] = owner[1], cell.claim
    return ((item, claim) for item, (_, claim) in best.items())
