"""Learn where the pages of a template state a field, from pages on which its value is verified.

    Example    a page with its verified values
    learn      the places of a field that give exactly the verified values

A place must give the value on at least three pages. Where several do, the one that evidence cites most often wins, then
one that has nothing but the value, then the one that agrees with most pages. Pure; the work is limited like the blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from curtsy.extract.learned import MIN_PAGES, Place, same, same_values, values_at
from curtsy.extract.places import Block, PagePlaces
from curtsy.extract.values import coerced
from curtsy.grounding import relation
from curtsy.grounding.schema import Leaf

#: places of one field: optional parts of a page give it several
MAX_PLACES = 4
#: of the verified values, those that a place may contradict
_MAX_WRONG = 0.1
#: pages on which only the place has a value, per verified value
_MAX_UNCONFIRMED = 0.25
#: words of a block in which a number or date is searched
_MAX_WORDS = 14
#: chains of one field that are tried
_MAX_TRIED = 40
_MAX_CONSTANT = 60
_NO_DIGIT = re.compile(r"\D")


@dataclass(frozen=True)
class Example:
    """A page of the template. A field without a key is unknown there; an empty list: it is verified to be absent."""

    places: PagePlaces
    values: Mapping[str, Sequence[Any]]
    #: field -> spans of its evidence in the page's text
    evidence: Mapping[str, Sequence[tuple[int, int]]] = field(default_factory=dict)
    #: fields whose values a person gave
    by_person: frozenset[str] = frozenset()


class Score(NamedTuple):
    """How well a place matches the examples."""

    right: int
    wrong: int
    #: values that a person contradicts
    refuted: int
    cited: int
    #: values on pages on which the model found none; it may have overlooked them
    unconfirmed: int = 0
    #: the verified values are not all the same
    different: bool = False

    @property
    def accepted(self) -> bool:
        if self.right < MIN_PAGES or self.refuted:
            return False
        return (
            self.wrong <= _MAX_WRONG * (self.right + self.wrong) and self.unconfirmed <= _MAX_UNCONFIRMED * self.right
        )


def learn(leaf: Leaf, examples: Sequence[Example], already: Sequence[Place] = ()) -> list[tuple[Place, Score]]:
    """Return new places of a field; `already` has those that are in use. Lists of objects are not learned."""
    if "/*/" in leaf.path:
        return []
    left = [one for one in examples if one.values.get(leaf.path) and not _is_found(leaf, one, already)]
    made: list[tuple[Place, Score]] = []
    while len(left) >= MIN_PAGES and len(made) + len(already) < MAX_PLACES:
        best = _best(leaf, left, examples)
        if best is None:
            break
        made.append(best)
        rest = [one for one in left if not _is_found(leaf, one, [best[0]])]
        if len(rest) == len(left):
            break
        left = rest
    return made


def _is_found(leaf: Leaf, example: Example, places: Sequence[Place]) -> bool:
    return any(values_at(place, leaf, example.places) is not None for place in places)


def _best(leaf: Leaf, wanted: Sequence[Example], examples: Sequence[Example]) -> tuple[Place, Score] | None:
    found = [(place, score(place, leaf, examples)) for place in _candidates(leaf, wanted)]
    accepted = [one for one in found if one[1].accepted]
    # max keeps the first of equals: candidates come in the order of preference
    return max(accepted, key=lambda one: (one[1].cited, one[0].is_whole, one[1].right), default=None)


def score(place: Place, leaf: Leaf, examples: Sequence[Example]) -> Score:
    right = wrong = refuted = cited = unconfirmed = 0
    values: set[str] = set()
    for one in examples:
        stated = one.values.get(leaf.path)
        found = None if stated is None else values_at(place, leaf, one.places)
        if stated is None or found is None:
            continue
        if same_values([a.value for a in found], stated):
            right += 1
            values.add(repr(stated))
            cited += any(
                a.start < end and start < a.end for a in found for start, end in one.evidence.get(leaf.path, ())
            )
        else:
            wrong += bool(stated)
            unconfirmed += not stated
            refuted += leaf.path in one.by_person
    return Score(right, wrong, refuted, cited, unconfirmed, len(values) > 1)


# Candidates


class _Seen(NamedTuple):
    """The value in a block of an example: the text around it, and its place among the blocks of its chain."""

    example: int
    block: Block
    before: str
    after: str
    at: int
    of: int


def _candidates(leaf: Leaf, examples: Sequence[Example]) -> Iterator[Place]:
    by_path: dict[str, list[_Seen]] = {}
    for number, example in enumerate(examples):
        for seen in _seen(leaf, number, example):
            by_path.setdefault(seen.block.path, []).append(seen)
    pages = {path: len({one.example for one in many}) for path, many in by_path.items()}
    often = sorted((path for path in by_path if pages[path] >= MIN_PAGES), key=lambda path: -pages[path])
    for path in often[:_MAX_TRIED]:
        yield from dict.fromkeys(_places(leaf, path, by_path[path]))


def _places(leaf: Leaf, path: str, seen: Sequence[_Seen]) -> Iterator[Place]:
    """Yield the places with a chain. A label that names the field is required if there is one, and that of a cell."""
    labels = _frequent([one.block.label for one in seen])
    naming = [one for one in labels if relation.names(leaf, one)]
    for before, after in dict.fromkeys(_constants(seen)):
        plain = Place(path=path, before=before, after=after)
        yield from (replace(plain, label=label) for label in naming)
        if not all(one.block.cell for one in seen):
            yield plain
        yield from (replace(plain, label=label) for label in labels if label not in naming)
        if not leaf.many:
            for position in _frequent([(one.at, one.of) for one in seen]):
                yield replace(plain, at=position[0], of=position[1])


def _frequent(found: Sequence[Any]) -> list[Any]:
    """The values that enough pages have; no empty label, and no position of only one."""
    known = dict.fromkeys(one for one in found if one and one != (0, 1))
    return [one for one in known if found.count(one) >= MIN_PAGES][:MAX_PLACES]


def _constants(seen: Sequence[_Seen]) -> Iterator[tuple[str, str]]:
    """Yield constant texts around the values: none if they fill their blocks, else what all have in common."""
    whole = [one for one in seen if not one.before and not one.after]
    if len({one.example for one in whole}) >= MIN_PAGES:
        yield "", ""
    parts = [one for one in seen if one.before or one.after]
    if len({one.example for one in parts}) < MIN_PAGES:
        return
    befores, afters = [one.before for one in parts], [one.after for one in parts]
    before = _common([one[::-1] for one in befores])[::-1]
    after = _common(afters)
    if (before.strip() or not any(befores)) and (after.strip() or not any(afters)):
        yield before, after


def _common(texts: Sequence[str]) -> str:
    """How all texts begin."""
    first, last = min(texts), max(texts)
    size = next((at for at, char in enumerate(first) if at >= len(last) or char != last[at]), len(first))
    return first[: min(size, _MAX_CONSTANT)]


def _seen(leaf: Leaf, number: int, example: Example) -> Iterator[_Seen]:
    """Yield the blocks of a page from which the value can be read; of a list, those with all its items."""
    stated, page = list(example.values[leaf.path]), example.places
    if leaf.many:
        for blocks in page.by_path.values():
            if len(blocks) >= len(stated):
                yield from _items(leaf, number, page, blocks, stated)
        return
    for blocks in page.by_path.values():
        for at, block in enumerate(blocks):
            for before, after in _around(leaf, page.text_of(block), stated[0]):
                yield _Seen(number, block, before, after, at, len(blocks))


def _items(leaf: Leaf, number: int, page: PagePlaces, blocks: Sequence[Block], stated: Sequence[Any]) -> list[_Seen]:
    by_label: dict[str, list[Block]] = {}
    for block in blocks:
        by_label.setdefault(block.label, []).append(block)
    for many in (blocks, *by_label.values()):
        read = [coerced(page.text_of(one), leaf) for one in many] if len(many) == len(stated) else []
        if read and same_values(read, stated):
            return [_Seen(number, many[0], "", "", 0, 1)]
    return []


def _around(leaf: Leaf, text: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield the texts before and after the value in a block."""
    if same(coerced(text, leaf), value):
        yield "", ""
        return
    if "\n" in text or "\t" in text:
        return  # its parts have places of their own
    if isinstance(value, str) and leaf.type == "string":
        if (at := _word_at(text, value)) is not None:
            yield text[:at], text[at + len(value) :]
        return
    if not _can_have(leaf, text, value):
        return
    for start, end in _windows(text):
        if same(coerced(text[start:end], leaf), value):
            yield text[:start], text[end:]
            return


def _can_have(leaf: Leaf, text: str, value: Any) -> bool:
    """Whether a text can have the value among other words: of a number its figures, of a date its year."""
    if leaf.type == "enum":
        return len(text) <= _MAX_CONSTANT * 2
    wanted = _NO_DIGIT.sub("", str(value).removesuffix(".0"))
    return wanted[:4] in _NO_DIGIT.sub("", text) if leaf.type == "date" else wanted in _NO_DIGIT.sub("", text)


def _word_at(text: str, value: str) -> int | None:
    """The spans where the value occurs as whole words."""
    folded, wanted = text.casefold(), value.casefold()
    if len(folded) != len(text) or not wanted:
        folded, wanted = text, value
    at = folded.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        is_whole = not (folded[at - 1 : at].isalnum() and wanted[0].isalnum())
        if is_whole and not (folded[end : end + 1].isalnum() and wanted[-1].isalnum()):
            return at
        at = folded.find(wanted, at + 1)
    return None


def _windows(text: str) -> Iterator[tuple[int, int]]:
    """Yield runs of words, shorter ones first."""
    words: list[tuple[int, int]] = []
    at = 0
    for word in text.split():
        at = text.index(word, at)
        words.append((at, at + len(word)))
        at += len(word)
    if len(words) > _MAX_WORDS:
        return
    for size in range(1, min(len(words), 5) + 1):
        for first in range(len(words) - size + 1):
            start, end = words[first][0], words[first + size - 1][1]
            yield start, end
            if text[end - 1] in ",.;:)":
                yield start, end - 1
