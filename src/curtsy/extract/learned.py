"""The source before the model: selectors that were learned from verified values of the same template.

    Place       where a value is: a chain of elements, a label or position, constant text around it
    Template    what is known about pages of one kind: their places, their selectors, fields that they do not state
    find        what a template's selectors find on a page, and whether the page is known well enough to ask no model

A page is known if every missing field is found and grounded, or known to be absent, and no new place could state one.
`learning` makes the selectors. Pure; time is linear in the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from curtsy.core.claims import Claim, Rung
from curtsy.extract.places import Block, PagePlaces
from curtsy.extract.sources import PageSources
from curtsy.extract.values import coerced
from curtsy.grounding import judge, relation
from curtsy.grounding.schema import Leaf, Schema

#: pages on which a field must be verified, or verified to be absent
MIN_PAGES = 3
_MAX_ITEMS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value is. Without label and position, exactly one block has the chain."""

    path: str
    #: the block's label; None: any
    label: str | None = None
    #: the block's position among those with the chain (and label), and their number; None: there is only one
    at: int | None = None
    of: int | None = None
    #: constant text of the block around the value
    before: str = ""
    after: str = ""

    @property
    def is_whole(self) -> bool:
        """The value is all of its block."""
        return not self.before and not self.after

    def as_json(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value not in (None, "")}

    def __str__(self) -> str:
        label = "" if self.label is None else f' [label "{self.label}"]'
        position = "" if self.at is None else f" [{self.at + 1} of {self.of}]"
        return f"{self.path}{label}{position}"


class Value(NamedTuple):
    """A value that a place gives, and its span of the page's text."""

    value: Any
    start: int
    end: int


def values_at(place: Place, leaf: Leaf, page: PagePlaces) -> list[Value] | None:
    """Return the values of a field at a place: one, or all items of a list; None if the page has none there."""
    blocks = page.by_path.get(place.path, [])
    if place.label is not None:
        blocks = [one for one in blocks if one.label == place.label]
    if not leaf.many:
        blocks = _one_of(place, blocks)
    found = [_value(place, leaf, page, one) for one in blocks[:_MAX_ITEMS]]
    known = [one for one in found if one is not None]
    return known if known and len(known) == len(found) else None


def _one_of(place: Place, blocks: Sequence[Block]) -> list[Block]:
    if place.at is None or place.of is None:
        return list(blocks) if len(blocks) == 1 else []
    return [blocks[place.at]] if len(blocks) == place.of else []


def _value(place: Place, leaf: Leaf, page: PagePlaces, block: Block) -> Value | None:
    span = cut(place, page.text_of(block))
    if span is None:
        return None
    start, end = block.start + span[0], block.start + span[1]
    value = coerced(page.text[start:end], leaf)
    return None if value is None else Value(value, start, end)


def cut(place: Place, text: str) -> tuple[int, int] | None:
    """Return the span between the constant texts; None if the text does not have them."""
    start = text.find(place.before) + len(place.before) if place.before else 0
    if start < len(place.before):
        return None
    end = text.find(place.after, start) if place.after else len(text)
    if end < 0:
        return None
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    return (start, end) if start < end else None


def same(one: Any, other: Any) -> bool:
    """Whether two values of a field are the same, ignoring case and spaces."""
    if isinstance(one, str) and isinstance(other, str):
        return _bare(one) == _bare(other)
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return bool(one == other)


def same_values(some: Sequence[Any], others: Sequence[Any]) -> bool:
    """The same for all values of a field; the order of a list does not count."""
    left = list(others)
    for one in some:
        at = next((number for number, other in enumerate(left) if same(one, other)), None)
        if at is None:
            return False
        del left[at]
    return not left


def _bare(text: str) -> str:
    return " ".join(text.casefold().split())


# Templates


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """A learned selector of a field."""

    #: number in the store
    n: int
    leaf: str
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """The model's results on pages with a place: fields that it did not find, fields whose value is at the place."""

    absent: frozenset[str] = frozenset()
    found: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """What is known about the pages of one kind."""

    #: digest of a place -> what the model said; places of all pages that the model has seen
    known: Mapping[str, Known] = field(default_factory=dict)
    #: field -> pages on which the model did not find it
    absent: Mapping[str, int] = field(default_factory=dict)
    #: the active ones
    selectors: tuple[Selector, ...] = ()

    def of(self, leaf: Leaf) -> list[Selector]:
        return [one for one in self.selectors if one.leaf == leaf.path]


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnedClaims:
    """What the selectors of a template find on a page."""

    #: every missing field is found, or known to be absent, and nothing is new
    is_complete: bool = False
    claims: tuple[Claim, ...] = ()
    #: those of fields about which the page has nothing new
    trusted: tuple[Claim, ...] = ()
    #: numbers of the selectors that found something
    used: tuple[int, ...] = ()
    #: fields that the page is known not to state
    absent: frozenset[str] = frozenset()
    #: a place that was never seen before could state a missing field
    has_new: bool = False


def find(
    template: Template, schema: Schema, page: PageSources, places: PagePlaces, missing: Sequence[Leaf]
) -> LearnedClaims:
    """Return what the selectors find for the missing fields."""
    claims: list[Claim] = []
    trusted: list[Claim] = []
    used: list[int] = []
    absent: set[str] = set()
    is_complete, has_new = bool(missing), False
    for leaf in missing:
        by, values = _found(template, leaf, places)
        found = [_claim(leaf, number, value, by[0].place, page) for number, value in enumerate(values)]
        grounded = bool(found) and all(judge.is_grounded(judge.judge(one, leaf)) for one in found)
        claims += found
        used += [one.n for one in by]
        if _is_new(template, leaf, places, found=bool(found)):
            is_complete, has_new = False, True
        elif grounded:
            trusted += found
        elif not found and _is_absent(template, leaf, places):
            absent.add(leaf.path)
        else:
            is_complete = False
    return LearnedClaims(
        is_complete=is_complete, claims=tuple(claims), trusted=tuple(trusted), used=tuple(used),
        absent=frozenset(absent), has_new=has_new,
    )  # fmt: skip


def _found(template: Template, leaf: Leaf, places: PagePlaces) -> tuple[list[Selector], list[Value]]:
    """Return the selectors that find the field, and its values; nothing if they contradict each other."""
    by: list[Selector] = []
    values: list[Value] = []
    for selector in template.of(leaf):
        found = values_at(selector.place, leaf, places)
        if found is None:
            continue
        if by and not same_values([one.value for one in values], [one.value for one in found]):
            return [], []
        by.append(selector)
        values = values or found
    return by, values


def _claim(leaf: Leaf, number: int, found: Value, place: Place, page: PageSources) -> Claim:
    source = replace(page.text, locator=f"learned:{place}")
    path = leaf.path.replace("*", str(number))
    return Claim(path=path, value=found.value, rung=Rung.LEARNED, source=source, span=(found.start, found.end))


def _is_new(template: Template, leaf: Leaf, places: PagePlaces, *, found: bool) -> bool:
    """Whether a place could state the field that was not on the pages which the model has seen; if the selectors find
    nothing, that was not on those without the field.
    """
    own = [one.place for one in template.of(leaf)] if found else []
    for key, block in places.keys.items():
        known = template.known.get(key)
        is_known = known is not None and (found or leaf.path in known.absent)
        is_known = is_known or any(one.path == block.path and one.label in (None, block.label) for one in own)
        if not is_known and _could_state(leaf, places, block):
            return True
    return False


def _could_state(leaf: Leaf, places: PagePlaces, block: Block) -> bool:
    if block.label and relation.names(leaf, block.label):
        return True
    is_labelled = block.label and (block.cell or len(places.by_path[block.path]) > 1)
    return not is_labelled and places.is_short(block) and coerced(places.text_of(block), leaf) is not None


def _is_absent(template: Template, leaf: Leaf, places: PagePlaces) -> bool:
    if template.absent.get(leaf.path, 0) < MIN_PAGES:
        return False
    return not any(leaf.path in one.found for key in places.keys if (one := template.known.get(key)) is not None)
