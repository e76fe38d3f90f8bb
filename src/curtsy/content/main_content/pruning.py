"""Parts within the content that lead elsewhere: lists of links, teasers of other pages, labels of controls."""

from __future__ import annotations

from curtsy.content.main_content import phrases
from curtsy.content.main_content.groups import Group
from curtsy.content.main_content.names import Part
from curtsy.content.main_content.outline import Element, Outline
from curtsy.content.main_content.page_type import PageType, has_price
from curtsy.content.main_content.root import Sums

_HEADINGS = frozenset(("h2", "h3", "h4", "h5", "h6"))
#: what may be a heading without being marked as one
_LABELS = frozenset(("p", "div", "strong", "span", "dt", "b"))
_BLOCKS = _HEADINGS | frozenset(
    ("div", "ul", "ol", "section", "table", "aside", "dl", "article", "tr", "td", "figure", "center", "li", "p",
     "header")
)  # fmt: skip
#: what may begin a part that leads elsewhere
_BEGINNINGS = _BLOCKS | _LABELS
_LISTS = frozenset((PageType.LISTING, PageType.COLLECTION))
_BOXES = frozenset(("div", "figure", "section", "article", "aside"))
_LIST_TAGS = frozenset(("ul", "ol", "li"))
_SMALL = 300
#: letters of choices to filter a list, and their share of the root
_MOST_FACET = 600
_MOST_OF_FACET = 0.2
#: letters of a list of headlines beside the items of a list
_MOST_HEADLINES = 500
#: share of links in lines that are no teasers, and of lines that begin with one
_MOST_LINKED_LINES = 0.5
#: share of items whose heading is a link, in a list that is no part of an article
_MOST_TITLED = 0.7
#: letters of prose in a text that is opened by a label, and share of links
_LEAST_OPENED = 250
_MOST_LINKED_OPENED = 0.1
_DATELINE = 90
#: share of links in a line that names the topics of an article
_LEAST_LINKED_TOPICS = 0.4
_MOST_LINKS_OF_PRICE = 4
#: share of the root that may be left out in addition
_MOST_PRUNED = 0.6
#: characters of a line that may be left out if it is repeated, how often, and where repetition is content
_REPEATED = (12, 200)
_LEAST_REPEATS = 3
_NOT_REPEATED = frozenset(("table", "pre", "code", "dl"))
#: characters of a heading that announces other pages: more than the first, at most the second
_ANNOUNCED = (2, phrases.MAX_HEADING)
_NOT_SMALL_PRINT = frozenset(("section", "article", *_HEADINGS))


class Pruning:
    def __init__(
        self,
        page: Outline,
        sums: Sums,
        out: set[int],
        kind: PageType,
        groups: list[Group],
        heading: int | None,
        is_board: bool = False,
    ) -> None:
        self._elements = page.elements
        self._text = page.text
        self._sums = sums
        self._out = out
        self._kind = kind
        self._groups = {group.parent: group for group in groups}
        self._items = {item for group in groups for item in group.items}
        self._heading = heading
        self._root = 0
        self._is_board = is_board
        self._has_pages = kind in _LISTS or kind in (PageType.FORUM, PageType.SERVICE)

    def within(self, root: int) -> set[int]:
        """Return what is left out of the root, in addition."""
        self._root = root
        found: set[int] = set()
        elements, out = self._elements, self._out
        number = root + 1
        stop = elements[root].stop
        while number < stop:
            element = elements[number]
            if number in out:
                number = element.stop
                continue
            if element.tag in _BLOCKS and self._leads_elsewhere(number):
                section = [number]
            elif element.tag in _BEGINNINGS and _ANNOUNCED[0] < element.end - element.start <= _ANNOUNCED[1]:
                section = self._section(number)
            else:
                number += 1
                continue
            found.update(section)
            number = elements[section[-1]].stop if section else number + 1
        if sum(self._sums.letters[one] for one in found) > _MOST_PRUNED * self._sums.letters[root]:
            # A page of links: they are what it is about.
            found = {one for one in found if self._is_named(one)}
        if self._kind is PageType.ARTICLE:
            found |= self._repeats(found)
        return found | self._orphans(found | self._out)

    def _is_named(self, number: int) -> bool:
        """Whether words say that a part is not content. On a page of links, most lists of them are short."""
        element = self._elements[number]
        if element.tag in _HEADINGS:
            return True
        if self._sums.letters[number] >= _SMALL:
            return False
        return self._kind is not PageType.DOCUMENTATION or self._is_small_print(element)

    def _repeats(self, gone: set[int]) -> set[int]:
        """Return lines that say again what the title says, and captions that every picture has."""
        title = "" if self._heading is None else self._said(self._heading)
        times: dict[str, list[int]] = {}
        number = self._root + 1
        while number < self._elements[self._root].stop:
            element = self._elements[number]
            is_skipped = number in gone or number in self._out or element.tag in _NOT_REPEATED
            if is_skipped or number == self._heading:
                number = element.stop
            elif _REPEATED[0] < element.end - element.start < _REPEATED[1] and self._is_whole_line(element):
                times.setdefault(self._said(number), []).append(number)
                number = element.stop
            else:
                number += 1
        again = set(times.pop(title, ()))
        return again.union(*(places[1:] for places in times.values() if len(places) >= _LEAST_REPEATS))

    def _is_whole_line(self, element: Element) -> bool:
        """Whether an element is not a word of a line: a name in bold, the title in a sentence."""
        return self._begins_line(element) and self._text[element.end : element.end + 1] in ("", "\n")

    def _begins_line(self, element: Element) -> bool:
        return self._text[max(0, element.start - 1) : element.start] in ("", "\n")

    def _said(self, number: int) -> str:
        return self._text[self._elements[number].start : self._elements[number].end].strip()

    # One element

    def _leads_elsewhere(self, number: int) -> bool:
        element = self._elements[number]
        letters = self._sums.letters[number]
        if letters <= 0:
            return False
        if letters < _SMALL and (self._is_small_print(element) or (element.linked and self._is_filed(number))):
            return True
        group = self._groups.get(number)
        if self._kind in _LISTS:
            if number in self._items or self._is_sublist(number) or self._is_cell(number):
                return False
            if element.links > 1 and letters < _MOST_FACET and phrases.is_facet(self._said(number)):
                return letters < _MOST_OF_FACET * self._sums.letters[self._root] and not self._is_in_item(number)
            return (
                self._is_menu(number)
                and (letters < 30 * element.links or (group is None and letters < _MOST_HEADLINES))
                and not (element.headings and self._is_in_item(number))
            )
        if group is not None and self._is_teasers(number, group):
            return True
        if self._is_menu(number) and phrases.is_facet(self._said(number)):
            return True
        return self._is_link_list(number) or (self._kind is PageType.ARTICLE and self._is_teaser(number))

    def _is_sublist(self, number: int) -> bool:
        """Whether an element is a list, or an item, within an item of a list: the next level of contents."""
        if self._elements[number].tag not in _LIST_TAGS:
            return False
        above = self._elements[number].parent
        while above > self._root and self._elements[above].tag in _LIST_TAGS:
            if above in self._items:
                return self._elements[above].tag == "li"
            above = self._elements[above].parent
        return False

    def _is_in_item(self, number: int) -> bool:
        """Whether an element is within an item: its title, with links to its author and its topics."""
        while number > self._root and number not in self._items:
            number = self._elements[number].parent
        return number in self._items

    def _is_cell(self, number: int) -> bool:
        """Whether an element is a cell of a row that is an item: a title, an author and links to its pages."""
        return self._elements[number].tag == "td" and self._elements[number].parent in self._items

    def _is_menu(self, number: int) -> bool:
        """A list of links beside the items of a list."""
        letters = self._sums.letters[number]
        return (
            self._elements[number].links >= 3
            and self._sums.linked[number] > 0.8 * letters
            and letters < 0.1 * self._sums.letters[self._root]
        )

    def _is_teasers(self, number: int, group: Group) -> bool:
        """Repeated items with links, on a page that has a text of its own."""
        whole = self._sums.prose[self._root]
        if self._kind is PageType.FORUM or group.prose >= 0.4 * max(whole, 1.0):
            return False
        if whole <= 600 and self._kind is not PageType.PRODUCT:
            return False
        if self._elements[group.items[0]].tag == "p":
            return False
        least = 0.2 if self._kind is PageType.ARTICLE else 0.4
        if self._kind is PageType.ARTICLE and group.titled > _MOST_TITLED * len(group.items):
            return True
        linked = self._sums.linked[number] / self._sums.letters[number]
        return linked > least and not (linked < _MOST_LINKED_LINES and self._are_lines(group))

    def _are_lines(self, group: Group) -> bool:
        """Whether items are lines that contain links, unlike teasers, which begin with one: `2 cups of [flour]`."""
        items = [self._elements[item] for item in group.items]
        if group.prose > 0 and sum(map(self._begins_with_link, items)) > _MOST_LINKED_LINES * len(items):
            return False
        return not any(item.headings or item.images for item in items)

    def _begins_with_link(self, item: Element) -> bool:
        within = self._elements[self._elements[item.parent].children[item.position] : item.stop]
        return any(one.tag == "a" and one.start <= item.start for one in within)

    def _is_teaser(self, number: int) -> bool:
        """One link around a heading and more: another article, between the paragraphs of this one."""
        element = self._elements[number]
        if element.tag not in _BOXES or element.links != 1 or not element.headings:
            return False
        return self._sums.linked[number] > 0.9 * self._sums.letters[number]

    def _is_link_list(self, number: int) -> bool:
        letters = self._sums.letters[number]
        return (
            self._elements[number].links >= 2
            and self._sums.linked[number] > 0.6 * letters
            and letters < 0.3 * self._sums.letters[self._root]
            and self._sums.prose[number] < 0.1 * letters
            and not (self._elements[number].headings and self._elements[number].links <= 3)
            and not (self._kind is PageType.PRODUCT and self._is_price(number))
            and self._elements[number].node.css_first("pre") is None
        )

    def _is_price(self, number: int) -> bool:
        """Whether an element says what the product costs, before links to send or share it."""
        if number in self._groups or number in self._items or self._elements[number].links > _MOST_LINKS_OF_PRICE:
            return False
        return has_price(self._said(number)[:_SMALL])

    def _is_small_print(self, element: Element) -> bool:
        said = self._text[element.start : element.end]
        if element.links == 0 and phrases.is_label(said):
            # `close` may be the name of a function.
            return self._kind is not PageType.DOCUMENTATION or element.tag not in _HEADINGS
        if element.links > 1 and self._has_pages and phrases.is_pagination(said):
            return True
        if self._is_board and phrases.is_about_forum(said):
            return True
        if self._kind is PageType.FORUM and element.prose == 0 and phrases.describes_poster(said):
            return True
        if self._kind is PageType.ARTICLE and element.letters < _DATELINE and phrases.is_dateline(said):
            return not element.headings
        return element.tag not in _NOT_SMALL_PRINT and not element.headings and phrases.is_copyright(said)

    def _is_filed(self, number: int) -> bool:
        """Whether an element of an article names its topics, or is within a link to another page."""
        element = self._elements[number]
        if self._kind is not PageType.ARTICLE or element.link_density <= _LEAST_LINKED_TOPICS:
            return False
        if element.headings and element.tag not in _HEADINGS:
            return False
        links = [one for one in self._elements[number : element.stop] if one.tag == "a"]
        if not links:  # it is in one; so may be the heading of a section, which links to itself
            return not element.headings
        return phrases.is_topics(self._said(number)) or all(map(_is_tag, links))

    # A section under a heading

    def _section(self, number: int) -> list[int]:
        """Return the elements under a heading that announces other pages, in order; empty: there is no such heading."""
        heading = self._elements[number]
        is_heading = heading.tag in _HEADINGS
        if not is_heading and (heading.tag not in _LABELS or heading.children or not self._begins_line(heading)):
            return []
        if heading.tag == "dt" and self._kind is PageType.DOCUMENTATION:
            return []  # `See also:` of a function
        if not phrases.leads_elsewhere(self._text[heading.start : heading.end]):
            return []
        top = self._top(number)
        if self._elements[top].end > heading.end:
            return [] if not is_heading and self._is_text(top) else [top]
        followers = self._followers(top, heading)
        return [top, *followers] if followers or is_heading else []

    def _is_text(self, number: int) -> bool:
        """Whether an element is a long text, which begins with the label that opens it: `Read more`."""
        prose, letters = self._sums.prose[number], self._sums.letters[number]
        return prose >= _LEAST_OPENED and self._sums.linked[number] < _MOST_LINKED_OPENED * letters

    def _top(self, number: int) -> int:
        """Return the outermost element that begins with the heading and may be left out."""
        at = number
        while (above := self._elements[at].parent) > self._root:
            if self._elements[above].start != self._elements[at].start or not self._may_go(above):
                break
            at = above
        return at

    def _followers(self, top: int, heading: Element) -> list[int]:
        found: list[int] = []
        siblings = self._elements[self._elements[top].parent].children
        is_heading = heading.tag in _HEADINGS
        for at in range(self._elements[top].position + 1, len(siblings)):
            element = self._elements[siblings[at]]
            if element.tag in _HEADINGS and (not is_heading or element.tag <= heading.tag):
                break
            is_plain = element.prose > 0 and element.linked < 0.3 * element.letters
            if (is_plain and (element.tag == "p" or not is_heading)) or not self._may_go(siblings[at]):
                break
            found.append(siblings[at])
        return found

    def _may_go(self, number: int) -> bool:
        if self._heading is not None and number <= self._heading < self._elements[number].stop:
            return False
        limit = 0.15 if self._kind in _LISTS or self._kind is PageType.FORUM else 0.35
        return (
            self._sums.prose[number] <= limit * self._sums.prose[self._root]
            and self._sums.letters[number] < 0.5 * self._sums.letters[self._root]
        )

    # Headings without a section

    def _orphans(self, gone: set[int]) -> set[int]:
        """Return headings whose section was left out."""
        found: set[int] = set()
        root = self._elements[self._root]
        for above in {self._elements[number].parent for number in gone if self._root < number < root.stop}:
            children = [child for child in self._elements[above].children if self._elements[child].letters > 0]
            following: Element | None = None
            for at in range(len(children) - 1, -1, -1):
                element = self._elements[children[at]]
                if children[at] in gone:
                    continue
                lost = at + 1 < len(children) and children[at + 1] in gone and self._is_section(children[at + 1])
                if element.tag in _HEADINGS and lost and _ends(element, following):
                    found.add(children[at])
                else:
                    following = element
        return found

    def _is_section(self, number: int) -> bool:
        """Whether what was left out had a heading of its own, unlike a date or a button."""
        element = self._elements[number]
        return element.part is not Part.META and element.letters > 30 and element.links > 0


def _is_tag(link: Element) -> bool:
    """Whether a link leads to what is filed under the same word: `rel="category tag"`."""
    return "tag" in (link.attributes.get("rel") or "").split()


def _ends(heading: Element, following: Element | None) -> bool:
    """Whether what follows is not part of the heading's section."""
    return following is None or (following.tag in _HEADINGS and following.tag <= heading.tag)
