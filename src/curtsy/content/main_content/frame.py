"""What surrounds the content of a page: menus, headers, footers, sidebars, notices, forms, related links, comments.

Elements are judged from the outside to the inside, by tag, role and names. An element that holds much of the page's
prose, or its title, is never left out by its names alone: themes name wrappers after what they may contain.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import lru_cache

from curtsy.content.main_content import names, phrases
from curtsy.content.main_content.names import Part
from curtsy.content.main_content.outline import Element, Outline
from curtsy.content.main_content.title import is_logo

_TAGS = frozenset(("nav", "button", "dialog", "menu", "search", "footer", "label"))
_BESIDE_TEXT = frozenset(("aside", "nav"))
_ROLES = frozenset(
    ("navigation", "contentinfo", "complementary", "search", "dialog", "alertdialog", "menu", "menubar", "toolbar",
     "tablist", "button", "menuitem", "progressbar", "slider", "status")
)  # fmt: skip
_OTHER_TAGS = frozenset(("header", "aside", "form"))
_OTHER_ROLES = _ROLES | {"banner"}
#: what the header of a site may be
_HEADER_TAGS = frozenset(("div", "table", "td", "tr", "section"))
#: elements of a site have the same tags and names on every page
_REMEMBERED = 16_384
_PLAIN_BLOCKS = frozenset(("div", "section", "p"))
#: other elements can only be left out by their attributes
_SUSPECT_TAGS = _TAGS | _OTHER_TAGS | _PLAIN_BLOCKS
_NEVER = frozenset(("html", "body", "main"))
_CODE = frozenset(("pre", "code"))
_NEVER_BY_NAME = frozenset(("h1", "pre", "code"))
_CONTENT_TAGS = frozenset(("article", "main", "section"))
_NOTE = re.compile(
    r"(?:^|[\s_-])(?:admonition|note|warning|tip|callout|important|hint|caution|danger|infobox|info-box|alert)",
    re.IGNORECASE,
)
#: share of the page's prose above which an element is not left out, without and with a title elsewhere
_MOST = (0.5, 0.6)
_MOST_BY_NAME = {Part.FRAME: (0.25, 0.4), Part.RELATED: (0.35, 0.6), Part.SIDEBAR: (0.35, 0.6)}
#: characters of the page after its last part
_LAST = 20
#: share of the page's letters above which an element that is no menu is not left out by its names
_MOST_LETTERS = 0.5
_MOST_LINKED_LIST = 0.6
_MOST_META_LETTERS = 250
_LISTS = frozenset(("ul", "ol", "dl", "table"))
_HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
#: `secondary` on one of these is its color or rank
_NO_SIDEBARS = _HEADINGS | {"a", "b", "em", "i", "p", "small", "span", "strong"}
#: letters of prose of an element that is the text of a page; paragraphs around a box that is part of a text
_LEAST_TEXT = 300
_LEAST_PARAGRAPHS = 2
#: letters of prose, and share of links, of a text that is named as a control
_LEAST_CONTROL_TEXT = 200
#: share of the page's prose in its only text
_ALMOST_ALL = 0.9
_MOST_LINKED_CONTROL = 0.1
#: boxes with the same name, in as many items, and their share of the page's prose together
_LEAST_BOXES = 3
_LEAST_BOXED = 0.5
#: letters of a column of facts
_LEAST_FACTS = 100
#: more headings are those of teasers; share of a list in it
_MOST_FACT_HEADINGS = 2
_LEAST_LISTED = 0.4
#: share of links in a part of a text
_MOST_LINKED_TEXT = 0.3
#: elements of a section that are searched for its heading
_FIRST_ELEMENTS = 8
#: share of links in a paragraph that may be left out by its names: `<p id="newsletter">`
_LEAST_LINKED_PARAGRAPH = 0.2
_NO_WORD = re.compile(r"[\W_]+")
_MOST_BUTTON_LETTERS = 60
_MOST_NOTICE_LETTERS = 600
#: more are those of a recipe of cookies
_MOST_NOTICE_HEADINGS = 1
#: characters of a dialog about cookies that are searched for their name
_MOST_CONSENT = 2_000
_LEAST_QUESTION = 10
_BUTTON_TAGS = frozenset(("a", "div", "span", "p", "li"))
_BUTTONS = 'button,[role="button"],[class*="btn"],[class*="button"],a[href^="#"],a[onclick]'
_ASKS = ",".join(
    (
        *(f'input[type="{kind}"]' for kind in ("email", "password", "search", "tel", "text")),
        *("input:not([type])", "textarea"),
    )
)
#: fields of forms that put a product into a cart
_ORDERS = ",".join(
    (
        *('[name*="qty"]', '[name*="quantity"]', '[name*="product"]', '[name="add"]'),
        *('[class*="add-to-cart"]', '[class*="addtocart"]', '[id*="add-to-cart"]'),
    )
)


class Frame:
    def __init__(self, page: Outline, heading: int | None, by_name: bool = True, with_forms: bool = True) -> None:
        """`with_forms`: whether forms that ask for text surround the content."""
        self._by_name = by_name
        self._with_forms = with_forms
        self._page = page
        self._elements = page.elements
        self._text = page.text
        self._heading = heading
        self._prose = page.elements[0].prose or 1.0
        self._letters = page.elements[0].letters or 1.0
        self._titles = _titles(page, heading)
        self._box_names = _box_names(page)
        content = page.named(_is_content)
        self._marked_texts = [
            number
            for number in sorted({*content, *page.tagged("article")})
            if page.elements[number].prose >= _LEAST_TEXT
        ]

    def out(self) -> set[int]:
        """Return the elements around the content, whatever the type of the page."""
        return self._sweep(_judged(self._page, _suspects(self._page)), self._is_out)

    def comments(self) -> set[int]:
        found = _judged(self._page, self._page.named(_is_comments))
        return self._sweep(found, lambda _, element: element.prose < 0.7 * self._prose)

    def free_labels(self) -> set[int]:
        """Return labels outside of forms: what a reader may tick off, as ingredients, or the question of an answer."""
        return {
            number
            for number in self._page.tagged("label")
            if self._elements[number].end > self._elements[number].start and not self._is_in_form(number)
        }

    def _is_in_form(self, number: int) -> bool:
        while number >= 0 and self._elements[number].tag != "form":
            number = self._elements[number].parent
        return number >= 0

    def posters(self) -> set[int]:
        """Return what a forum says about the authors of posts, and the buttons of posts."""
        found = _judged(self._page, self._page.named(names.is_poster))
        return self._sweep(found, lambda _, element: element.prose < 0.1 * self._prose)

    def _sweep(self, numbers: list[int], is_out: Callable[[int, Element], bool]) -> set[int]:
        """Return those of the elements that are out, without those in others that are."""
        found: set[int] = set()
        stop = 0
        for number in numbers:
            if number >= stop and is_out(number, element := self._elements[number]):
                found.add(number)
                stop = element.stop
        return found

    def _is_out(self, number: int, element: Element) -> bool:
        tag, role = element.tag, element.attributes.get("role")
        # Most elements have no tag, role or name that could matter.
        if not _may_surround(tag, role, element.names) and not self._is_notice(element):
            return False
        if role == "main":
            return False
        if element.part is Part.FRAME and self._is_consent(number, element):
            return True
        # On a page with little prose, a notice may hold most of it.
        share = min(element.prose / self._prose, 2 * element.letters / self._letters)
        if share > _MOST[self._heading is not None]:
            return self._is_beside_text(number, element)
        role = (role or "").lower()
        if (tag == "button" or role == "button") and _opens(element):
            return False
        if tag in _TAGS or (role in _ROLES and not (role == "tablist" and element.prose > 0)):
            return True
        if tag == "header" or role == "banner":
            return not self._is_in_content(number) and not self._holds_title(number) and not _is_opening(element)
        if tag in _HEADER_TAGS and element.links and names.is_header(element.names):
            is_around = not self._is_in_content(number) and not self._holds_title(number)
            return share < 0.3 and is_around and not _is_opening(element)
        if element.letters < _MOST_BUTTON_LETTERS and tag in _BUTTON_TAGS and names.is_button(element.names):
            return not element.headings
        if self._is_notice(element):
            return True
        if tag == "aside":
            is_content = self._is_text(number, element) or self._has_facts(number, element)
            return _NOTE.search(element.names) is None and not is_content
        if tag == "form":
            is_small = share < 0.3 and element.letters < 0.4 * self._letters
            return self._with_forms and is_small and _asks_reader(element)
        if tag == "p" and element.link_density < _LEAST_LINKED_PARAGRAPH and not names.is_path(element.names):
            return False
        return self._by_name and tag not in _NEVER_BY_NAME and self._is_out_by_name(number, element, share)

    def _is_consent(self, number: int, element: Element) -> bool:
        """Whether an element is named as a dialog about cookies and speaks of them: it may have most of the text."""
        if not names.is_consent(element.names) or self._holds_title(number):
            return False
        return phrases.speaks_of_cookies(self._text[element.start : min(element.end, element.start + _MOST_CONSENT)])

    def _is_notice(self, element: Element) -> bool:
        """Whether a block asks for consent: it speaks of cookies and has a button."""
        if element.tag not in _PLAIN_BLOCKS or element.letters >= _MOST_NOTICE_LETTERS:
            return False
        if element.headings > _MOST_NOTICE_HEADINGS:
            return False
        said = self._text[element.start : element.end]
        return phrases.speaks_of_cookies(said) and element.node.css_first(_BUTTONS) is not None

    def _is_out_by_name(self, number: int, element: Element, share: float) -> bool:
        part = element.part
        if part is Part.UNKNOWN or part is Part.CONTENT:
            return False
        if part is Part.SIDEBAR and (element.tag in _NO_SIDEBARS or self._has_facts(number, element)):
            return False
        if part is Part.SIDEBAR and self._is_only_text(element):
            return False
        if part is Part.META:
            # A list without links has facts: `14 km`, `3 rooms`.
            has_facts = element.tag in _LISTS and not element.links
            return element.letters < _MOST_META_LETTERS and not element.headings and not has_facts
        if part not in _MOST_BY_NAME:
            return False
        if share >= _MOST_BY_NAME[part][self._heading is not None]:
            return self._is_last(number, element) and names.is_footer(element.names)
        if element.letters > _MOST_LETTERS * self._letters and element.link_density < _MOST_LINKED_LIST:
            return False
        if part is Part.FRAME and element.prose > 0 and (_is_no_control(element) or self._is_text_box(number, element)):
            return False
        if part in (Part.FRAME, Part.SIDEBAR) and element.prose > 0 and names.is_content(element.names):
            return False
        if element.prose > 0 and element.link_density < _MOST_LINKED_TEXT and self._is_part_of_text(number, element):
            return False
        return not self._holds_title(number)

    def _is_only_text(self, element: Element) -> bool:
        """Whether a column has almost all prose of the page, though menus have more letters."""
        is_text = element.prose >= max(_LEAST_TEXT, _ALMOST_ALL * self._prose)
        return is_text and element.link_density < _MOST_LINKED_CONTROL

    def _is_text_box(self, number: int, element: Element) -> bool:
        """Whether an element is a box in an item, whose name all boxes with the text of items have: `cardOverlay`."""
        if element.names.split()[0] not in self._box_names or element.link_density > _MOST_LINKED_TEXT:
            return False
        return self._is_in_content(number)

    def _has_facts(self, number: int, element: Element) -> bool:
        """Whether a column beside a text is a part of it: one heading or two, or a list, without links."""
        if element.link_density > _MOST_LINKED_CONTROL or not element.headings or not self._is_in_content(number):
            return False
        if element.letters < _LEAST_FACTS or element.node.css_first(_ASKS) is not None:
            return False
        return element.headings <= _MOST_FACT_HEADINGS or any(
            one.tag in _LISTS and one.letters > _LEAST_LISTED * element.letters
            for one in self._elements[number : element.stop]
        )

    def _is_last(self, number: int, element: Element) -> bool:
        """Whether an element without headings is the end of a page that has other text: a long legal notice."""
        return (
            element.headings == 0
            and element.end >= self._elements[0].end - _LAST
            and self._prose - element.prose >= _LEAST_TEXT
            and not self._holds_title(number)
        )

    def _is_part_of_text(self, number: int, element: Element) -> bool:
        """Whether it is a section whose id is the slug of its heading, or a box between paragraphs."""
        if element.part is Part.SIDEBAR and element.parent >= 0:
            children = self._elements[element.parent].children
            return sum(1 for child in children if self._is_paragraph(child)) >= _LEAST_PARAGRAPHS
        return names.is_by_id(element.attributes) and self._is_anchor(number, element)

    def _is_paragraph(self, number: int) -> bool:
        element = self._elements[number]
        is_block = element.tag == "div" and not element.headings and element.part is Part.UNKNOWN
        return element.prose > 0 and (element.tag == "p" or is_block)

    def _is_anchor(self, number: int, element: Element) -> bool:
        """Whether the id is what links to the heading lead to: its slug, or the target of a link in it."""
        id_ = element.attributes.get("id") or ""
        for within in range(number + 1, min(element.stop, number + _FIRST_ELEMENTS)):
            heading = self._elements[within]
            if heading.tag in _HEADINGS:
                said = self._text[heading.start : heading.end]
                links = self._elements[within + 1 : min(heading.stop, within + _FIRST_ELEMENTS)]
                if any(link.attributes.get("href") == f"#{id_}" for link in links):
                    return True
                return _slug(id_) in _slug(said) and not phrases.leads_elsewhere(said)
        return False

    def _is_beside_text(self, number: int, element: Element) -> bool:
        """Whether a sidebar or a menu has more prose than the text beside it, which is marked as such."""
        if not self._by_name or (element.part is not Part.SIDEBAR and element.tag not in _BESIDE_TEXT):
            return False
        return not self._holds_title(number) and any(
            text >= element.stop or self._elements[text].stop <= number for text in self._marked_texts
        )

    def _is_text(self, number: int, element: Element) -> bool:
        """Whether an element has most of the page's prose, in an element that is marked as the text."""
        if element.prose < _MOST[0] * self._prose:
            return False
        return any(number < text < element.stop for text in self._marked_texts)

    def _holds_title(self, number: int) -> bool:
        return any(number <= title < self._elements[number].stop for title in self._titles)

    def _is_in_content(self, number: int) -> bool:
        """Whether an element is in an article or the like."""
        above = self._elements[number].parent
        while above >= 0:
            element = self._elements[above]
            if element.tag in _CONTENT_TAGS or element.part is Part.CONTENT:
                return True
            above = element.parent
        return False


def _suspects(page: Outline) -> list[int]:
    """Return the elements whose tag, role or names may be those of what surrounds the content, or of a notice."""
    found = set(page.tagged(*_SUSPECT_TAGS))
    found.update(page.named(_may_be_named))
    found.update(
        number for number in page.roles if (page.elements[number].attributes["role"] or "").lower() in _OTHER_ROLES
    )
    return sorted(found)


def _judged(page: Outline, numbers: list[int]) -> list[int]:
    """Return those of the elements that may be left out.

    Names within code are those of its syntax: `hljs-comment`. Only buttons may be left out there.
    """
    elements = page.elements
    plain = set(page.outside(numbers, set(page.tagged(*_CODE))))
    return [
        number
        for number in numbers
        if (element := elements[number]).end > element.start
        and element.tag not in _NEVER
        and (number in plain or element.tag == "button")
    ]


def _box_names(page: Outline) -> frozenset[str]:
    """Return first names of the frame whose elements together have most of the page's prose."""
    prose: defaultdict[str, float] = defaultdict(float)
    times: Counter[str] = Counter()
    for number in page.named(_is_frame):
        element = page.elements[number]
        if element.prose > 0:
            name = element.names.split()[0]
            prose[name] += element.prose
            times[name] += 1
    least = _LEAST_BOXED * page.elements[0].prose
    return frozenset(name for name, count in times.items() if count >= _LEAST_BOXES and prose[name] > least)


def _is_frame(names_: str) -> bool:
    return len(names_) > 1 and names.part_of(names_) is Part.FRAME


def _is_content(names_: str) -> bool:
    return len(names_) > 1 and names.part_of(names_) is Part.CONTENT


def _is_comments(names_: str) -> bool:
    return len(names_) > 1 and names.part_of(names_) is Part.COMMENTS


@lru_cache(_REMEMBERED)
def _may_be_named(names_: str) -> bool:
    """Whether names may be those of what surrounds the content, of an element with some tag."""
    is_part = names.part_of(names_) not in (Part.UNKNOWN, Part.CONTENT)
    return is_part or names.is_header(names_) or names.is_button(names_)


@lru_cache(_REMEMBERED)
def _may_surround(tag: str, role: str | None, names_: str) -> bool:
    """Whether a tag, a role and names may be those of what surrounds the content."""
    if tag in _TAGS or tag in _OTHER_TAGS or (role or "").lower() in _OTHER_ROLES:
        return True
    if (tag in _HEADER_TAGS and names.is_header(names_)) or (tag in _BUTTON_TAGS and names.is_button(names_)):
        return True
    return names.part_of(names_) not in (Part.UNKNOWN, Part.CONTENT)


def _titles(page: Outline, heading: int | None) -> list[int]:
    """Return the heading of the page, or all headings of the first rank."""
    if heading is not None:
        return [heading]
    return [number for number in page.tagged("h1") if page.elements[number].letters >= 3 and not is_logo(page, number)]


def _is_no_control(element: Element) -> bool:
    """Whether an element that is named as a menu or a search is paragraphs: they have no links."""
    is_prose = element.prose >= _LEAST_CONTROL_TEXT and element.prose > _MOST[0] * element.letters
    return is_prose and element.link_density < _MOST_LINKED_CONTROL and names.is_control(element.names)


def _slug(text: str) -> str:
    return _NO_WORD.sub("", text.lower())


def _opens(element: Element) -> bool:
    """Whether a button is the question or heading of a part that it opens."""
    if element.letters < _LEAST_QUESTION:
        return False
    return "aria-controls" in element.attributes or "aria-expanded" in element.attributes


def _is_opening(header: Element) -> bool:
    """Whether a header is the opening of a page: a heading and a sentence, not only a menu."""
    return header.prose > 0 and header.linked < 0.4 * header.letters and (header.headings > 0 or header.links < 2)


def _asks_reader(form: Element) -> bool:
    """Whether a form is for messages, names or searches, and not a frame around a product or a page."""
    return form.node.css_first(_ORDERS) is None and form.node.css_first(_ASKS) is not None
