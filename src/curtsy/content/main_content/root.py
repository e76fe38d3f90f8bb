"""The smallest element that holds the main content."""

from __future__ import annotations

from curtsy.content.main_content.outline import Element, Outline
from curtsy.content.main_content.page_type import PageType

_NEVER = frozenset(("p", "ul", "ol", "pre", "li", "a", "h1", "h2", "h3", "b", "strong", "blockquote"))
_OF_TABLE = frozenset(("table", "tbody", "thead", "tfoot", "tr"))
#: share of the weight that a child must hold to become the root instead of its parent
_HEIR = 0.9
_HEIRS = {PageType.ARTICLE: 0.8, PageType.DOCUMENTATION: 0.8}
#: if the child also holds the title
_HEIR_WITH_TITLE = 0.7
#: letters of another part of a list, compared with its largest part, and headings of its entries
_TWIN = 0.2
_LEAST_TITLES = 3
#: letters of a section of a page about a service
_LEAST_SECTION = 100
#: share of links in a list of facts, and of the list in its part of the page
_MOST_LINKED_FACTS = 0.1
_LEAST_LISTED = 0.5
_LISTS = frozenset(("ul", "ol", "dl", "table", "tbody"))
_SECTIONS = frozenset(("div", "section", "article", "header", "main"))
#: share of the page's weight that makes `main` the place to begin
_MARKED = 0.4


class Sums:
    """Counts of each element without what is left out."""

    def __init__(self, elements: list[Element], out: set[int], by_prose: bool = True) -> None:
        size = len(elements)
        self._by_prose = by_prose
        self.prose, self.letters, self.linked = [0.0] * size, [0.0] * size, [0.0] * size
        lost = [0.0] * size, [0.0] * size, [0.0] * size
        for number in range(size - 1, -1, -1):
            element = elements[number]
            above = element.parent
            if number in out:
                if above >= 0:
                    lost[0][above] += element.prose
                    lost[1][above] += element.letters
                    lost[2][above] += element.linked
                continue
            gone = lost[1][number]
            if not gone:
                self.prose[number], self.letters[number] = element.prose, element.letters
                self.linked[number] = element.linked
                continue
            self.prose[number] = max(0.0, element.prose - lost[0][number])
            self.letters[number] = max(0.0, element.letters - gone)
            self.linked[number] = max(0.0, element.linked - lost[2][number])
            if above >= 0:
                lost[0][above] += lost[0][number]
                lost[1][above] += gone
                lost[2][above] += lost[2][number]

    def weight(self, number: int) -> float:
        """Prose counts; other text that is no link counts a little, links almost nothing. In lists, all counts."""
        if not self._by_prose:
            return self.letters[number]
        plain = max(0.0, self.letters[number] - self.linked[number] - self.prose[number])
        return self.prose[number] + 0.25 * plain + 0.1 * self.linked[number]


class RootSearch:
    def __init__(
        self, page: Outline, sums: Sums, out: set[int], kind: PageType, heading: int | None, has_parts: bool
    ) -> None:
        self._elements = page.elements
        mains = {number for number in page.roles if page.elements[number].attributes["role"] == "main"}
        self._marked = sorted(mains.union(page.tagged("main")))
        self._sums = sums
        self._out = out
        self._is_article = kind is PageType.ARTICLE
        self._is_list = kind in (PageType.LISTING, PageType.COLLECTION)
        self._share = _HEIRS.get(kind, _HEIR)
        self._has_parts = has_parts or kind is PageType.SERVICE
        self._heading = heading

    def root(self) -> int:
        """Descend from the top while one child holds the content."""
        at = self._start()
        while (heir := self._heir(at)) is not None:
            at = heir
        # Many old pages are tables; a table that is the content stays whole.
        while self._elements[at].tag in _OF_TABLE and self._elements[at].parent >= 0:
            at = self._elements[at].parent
        return at

    def _start(self) -> int:
        least = _MARKED * self._sums.weight(0)
        marked = [number for number in self._marked if number not in self._out and self._sums.weight(number) > least]
        if not marked:
            return 0
        is_nested = self._elements[marked[0]].stop > marked[-1]
        return marked[0] if is_nested else 0

    def _heir(self, at: int) -> int | None:
        children = [child for child in self._elements[at].children if child not in self._out]
        led = self._child_with_heading(at)
        if self._is_article and led is not None and self._takes_over(at, led):
            return led
        heir = max(children, key=self._sums.weight, default=None)
        if heir is None or self._elements[heir].tag in _NEVER:
            return None
        if (self._is_list and self._has_twin(at, heir)) or (self._has_parts and self._has_sections(at, heir)):
            return None
        if self._is_article and self._has_facts(at, heir):
            return None
        here = self._sums.weight(at)
        share = min(self._share, _HEIR_WITH_TITLE) if heir == led else self._share
        is_enough = self._sums.weight(heir) >= share * here
        if not is_enough and not self._stands_out(at, heir):
            return None
        if led is not None and led != heir:
            # The title stays with what it is the title of, unless there is more between them.
            rest = here - self._sums.weight(heir) - self._sums.weight(led)
            if not self._is_article or rest < 0.03 * here:
                return None
        return heir

    def _has_twin(self, at: int, heir: int) -> bool:
        """Whether another child of the same class has entries, too: popular ones, and the latest ones."""
        class_ = self._elements[heir].attributes.get("class")
        return bool(class_) and any(
            child != heir
            and child not in self._out
            and self._elements[child].attributes.get("class") == class_
            and self._sums.letters[child] >= _TWIN * self._sums.letters[heir]
            and self._elements[child].headings >= _LEAST_TITLES
            for child in self._elements[at].children
        )

    def _has_sections(self, at: int, heir: int) -> bool:
        """Whether another child is a section of the page: a heading and text that is no list of links."""
        return any(
            child != heir
            and child not in self._out
            and self._elements[child].headings > 0
            and self._elements[child].tag in _SECTIONS
            and self._sums.letters[child] >= _LEAST_SECTION
            and self._sums.linked[child] < 0.3 * self._sums.letters[child]
            for child in self._elements[at].children
        )

    def _has_facts(self, at: int, heir: int) -> bool:
        """Whether another child is a list or a table without links: the ingredients beside the steps."""
        return any(
            child != heir
            and child not in self._out
            and self._sums.letters[child] >= _LEAST_SECTION
            and self._sums.linked[child] < _MOST_LINKED_FACTS * self._sums.letters[child]
            and self._consists_of_list(child)
            for child in self._elements[at].children
        )

    def _consists_of_list(self, number: int) -> bool:
        least = _LEAST_LISTED * self._sums.letters[number]
        return any(
            self._elements[within].tag in _LISTS and within not in self._out and self._sums.letters[within] > least
            for within in range(number, self._elements[number].stop)
        )

    def _stands_out(self, at: int, heir: int) -> bool:
        """Whether a child is the text of an article, or the column of a table that holds the content."""
        if self._is_article:
            return self._is_sole_text(at, heir, 0.5)
        return self._elements[heir].tag == "td" and self._is_main_column(at, heir)

    def _is_main_column(self, at: int, heir: int) -> bool:
        if self._sums.weight(heir) < 0.6 * self._sums.weight(at):
            return False
        others = (child for child in self._elements[at].children if child != heir and child not in self._out)
        return all(
            self._sums.linked[child] > 0.3 * self._sums.letters[child] or self._sums.letters[child] < 300
            for child in others
        )

    def _child_with_heading(self, at: int) -> int | None:
        heading = self._heading
        if heading is None or not at <= heading < self._elements[at].stop:
            return None
        for child in self._elements[at].children:
            if child <= heading < self._elements[child].stop:
                return None if child in self._out else child
        return None

    def _takes_over(self, at: int, led: int) -> bool:
        """Whether the child with the title holds the text, though others hold more that is not part of it."""
        prose = self._sums.prose
        if prose[led] < 0.25 * prose[at] or self._elements[led].tag in _NEVER:
            return False
        return prose[at] - prose[led] < 0.15 * prose[at] or self._is_sole_text(at, led, 0.25)

    def _is_sole_text(self, at: int, heir: int, least: float) -> bool:
        """Whether the other children are no text of their own: they consist of links, or there is little of them."""
        sums = self._sums
        if sums.prose[heir] < least * sums.prose[at]:
            return False
        rest = sum(
            sums.prose[child]
            for child in self._elements[at].children
            if child != heir and child not in self._out and sums.linked[child] < 0.2 * sums.letters[child]
        )
        return rest < 0.15 * sums.prose[heir]
