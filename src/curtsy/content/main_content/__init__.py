"""The main content of a page: what it is about, without what surrounds it on every page of its site.

    MainContent   the text, its pieces of the visible text, and the type of the page
    main_content  reads a page

Pure; bad content never raises; the time is linear in the page. docs/reference/main-content.md has the rules.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import NamedTuple

from curtsy.content.main_content.choose import Choice, choose
from curtsy.content.main_content.outline import Outline, outline
from curtsy.content.main_content.page_type import PageType
from curtsy.content.walk import PageTree, Step, walk
from curtsy.core.text_layout import Visibility

__all__ = ["MainContent", "PageType", "Piece", "main_content", "outline"]


class Piece(NamedTuple):
    """A part of the main text that is exactly a part of the visible text: `visible[start:end]` begins at `at`."""

    at: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class MainContent:
    type: PageType
    #: the pieces, one per line or more
    text: str
    #: in order, without overlaps
    pieces: tuple[Piece, ...]
    #: makes `walks`
    _walks: Callable[[], Iterator[Iterable[Step]]] = field(repr=False, compare=False)

    def walks(self) -> Iterator[Iterable[Step]]:
        """Yield for each element of the content a walk over it, without what is left out."""
        return self._walks()


def main_content(tree: PageTree, page: Outline, url: str = "", title: str | None = None) -> MainContent:
    """Return the main content of a page; `page` is the outline of `tree`."""
    if tree.root is None:
        return MainContent(PageType.SERVICE, "", (), partial(iter, ()))
    choice = choose(page, tree.root, url, title)
    text, pieces = _joined(page.text, _spans(page, choice))
    return MainContent(type=choice.type, text=text, pieces=pieces, _walks=partial(_walks, tree, page, choice))


def _walks(tree: PageTree, page: Outline, choice: Choice) -> Iterator[Iterable[Step]]:
    elements, states = page.elements, tree.visibility
    unheard = {at for at, state in states.items() if state is Visibility.SCREEN_READER}
    out = set(choice.out)
    if unheard:
        out.update(number for number, element in enumerate(elements) if element.node.mem_id in unheard)
    if tree.placements:
        # Streamed content is visited where a walk finds its first placeholder.
        hidden = {elements[number].node.mem_id: Visibility.HIDDEN for number in out}
        rest = PageTree(tree.root, {**states, **hidden}, tree.placements)
        yield from (walk(rest, elements[root].node) for root in choice.roots)
        return
    ordered = sorted(out)
    yield from (chain.from_iterable(_parts(page, root, ordered)) for root in choice.roots)


def _parts(page: Outline, root: int, out: list[int]) -> Iterator[list[Step]]:
    """Yield the steps of a root without those of the elements that are left out."""
    at, last = page.elements[root].step, page.elements[root].last_step
    for number in out[bisect_left(out, root) : bisect_left(out, page.elements[root].stop)]:
        element = page.elements[number]
        if element.step >= at:
            yield page.steps[at : element.step]
            at = element.last_step + 1
    yield page.steps[at : last + 1]


def _spans(page: Outline, choice: Choice) -> Iterator[tuple[int, int]]:
    """Yield the parts of the visible text: the roots without what is left out."""
    cuts = [(page.elements[number].start, page.elements[number].end) for number in choice.out]
    cuts += [(one.start, one.end) for one in page.visible.layout.unseen if one.visibility is Visibility.SCREEN_READER]
    cuts.sort()
    for number in choice.roots:
        at, end = page.elements[number].start, page.elements[number].end
        for cut in range(bisect_left(cuts, (at, 0)), len(cuts)):
            start, stop = cuts[cut]
            if start >= end:
                break
            if start > at:
                yield at, start
            at = max(at, stop)
        if at < end:
            yield at, end


def _joined(text: str, spans: Iterator[tuple[int, int]]) -> tuple[str, tuple[Piece, ...]]:
    parts: list[str] = []
    pieces: list[Piece] = []
    size = 0
    for start, end in spans:
        part = text[start:end]
        stripped = part.strip()
        if stripped:
            start += len(part) - len(part.lstrip())
            pieces.append(Piece(size, start, start + len(stripped)))
            parts.append(stripped)
            size += len(stripped) + 1
    return "\n".join(parts), tuple(pieces)
