"""What kind of page it is: by its structured data, its generator, its URL and its elements."""

from __future__ import annotations

import re
from enum import StrEnum

from selectolax.lexbor import LexborNode

from curtsy.content.main_content import phrases
from curtsy.content.main_content.groups import Group
from curtsy.content.main_content.outline import Outline


class PageType(StrEnum):
    ARTICLE = "article"
    PRODUCT = "product"
    #: a list of articles, results or entries
    LISTING = "listing"
    #: a category of a shop
    COLLECTION = "collection"
    FORUM = "forum"
    DOCUMENTATION = "documentation"
    #: the pages of an organization about itself and what it offers, and everything else
    SERVICE = "service"


_SIGNS = (
    'script[type="application/ld+json"],meta[property="og:type"],meta[name="generator"],meta[name="Generator"],'
    "[itemtype]"
)
_MAX_SIGNS = 400
#: a button that is no text; one product has its button once, or once more at its top
_BUTTONS = 'input[type="submit"],input[type="image"],input[type="button"]'
_MAX_BUTTONS = 40
_MANY_ORDERS = 3
#: letters of prose of a short article
_SHORT_ARTICLE = 300
#: share of links in a list of threads
_LEAST_INDEX = 0.3
_MAX_SCRIPT = 200_000
#: products of a shop's category, their share of the letters without the frame, and how many of them have a price
_LEAST_PRODUCTS = 6
_LEAST_SHELF = 0.3
_LEAST_PRICED = 0.8
#: one type, or a list of them
_TYPE = re.compile(r'"@type"\s{0,20}:\s{0,20}(\[[^\]]{0,300}|"[^"]{0,80})')
_TYPE_NAME = re.compile(r'"\s{0,20}(?:https?://schema\.org/)?([A-Za-z]{3,40})')
_ARTICLES = frozenset(
    ("article", "newsarticle", "blogposting", "reportagenewsarticle", "analysisnewsarticle", "opinionnewsarticle",
     "techarticle", "scholarlyarticle", "liveblogposting", "review", "recipe", "howto", "medicalwebpage")
)  # fmt: skip
_RECIPES = frozenset(("recipe", "howto"))
_FORUMS = frozenset(("discussionforumposting", "qapage", "question"))
_FORUM_URL = re.compile(
    r"/(?:forums?|foren|foro|threads?|topics?|discussions?|questions|viewtopic|showthread|viewthread|t|community"
    r"|comments|board)[/.?]|[?&](?:topic|showtopic)=|//(?:forums?|discuss|community|answers|ask)\."
)
_DOC_URL = re.compile(
    r"//(?:docs?|documentation|developer|wiki|help|manual)\."
    r"|/(?:docs?|documentation|manual|reference|api|guide|wiki|man|javadoc)(?:/|$)"
)
_COLLECTION_URL = re.compile(
    r"/(?:collections?|category|categories|categoria|kategorie|shop|store|c|catalog|catalogue|products)"
    r"(?:/[^/?]*+)?/?(?:\?|$)"
)
#: `/2024/05/an-entry`, `/2024/05/31/an-entry`; an archive has no name after the date
_DATED_URL = re.compile(r"/(?:19|20)[0-9]{2}/[01]?[0-9]/(?:[0-3]?[0-9]/)?[^/?#]*[a-z]")
_PRODUCT_URL = re.compile(r"/(?:products?|item|dp|p|produkt|producto|produit)/[^/?]")
_DOC_GENERATORS = (
    *("sphinx", "mkdocs", "docusaurus", "javadoc", "doxygen", "gitbook", "vuepress", "asciidoctor", "docbook"),
    *("antora", "starlight", "vitepress", "mediawiki", "makeinfo", "texi2html", "docutils", "rustdoc", "gi-docgen"),
    *("latex2html", "mdbook", "typedoc", "jsdoc", "dokka"),
)
_FORUM_GENERATORS = (
    *("phpbb", "vbulletin", "xenforo", "discourse", "mybb", "simple machines", "vanilla", "flarum", "nodebb"),
)


class Signs:
    """What the page says about itself."""

    def __init__(self, root: LexborNode, url: str) -> None:
        self._root = root
        self.url = url.lower()[:500]
        self.types: set[str] = set()
        self.declared = self.generator = ""
        for node in root.css(_SIGNS)[:_MAX_SIGNS]:
            self._read(node)

    @property
    def is_article(self) -> bool:
        return not self.types.isdisjoint(_ARTICLES) or self.declared in ("article", "news", "blog", "og:article")

    @property
    def is_dated(self) -> bool:
        """Whether the URL has a day or a month and then a name: an entry of a blog, not a list of entries."""
        return _DATED_URL.search(self.url) is not None

    @property
    def is_recipe(self) -> bool:
        """Whether the page has lists that belong to its text: ingredients, tools, steps."""
        return not self.types.isdisjoint(_RECIPES)

    @property
    def is_forum(self) -> bool:
        # The questions of an article or a service are no thread.
        is_answering = "faqpage" in self.types or not self.types.isdisjoint(_ARTICLES)
        if not self.types.isdisjoint(_FORUMS - {"question"} if is_answering else _FORUMS):
            return True
        return self._is_made_by_forum and _FORUM_URL.search(self.url) is not None

    @property
    def is_board(self) -> bool:
        """Whether the page is of a forum: a thread, or a list of threads."""
        return self.is_forum or self._is_made_by_forum or _FORUM_URL.search(self.url) is not None

    @property
    def _is_made_by_forum(self) -> bool:
        return any(name in self.generator for name in _FORUM_GENERATORS)

    def count_orders(self) -> int:
        """Return how many buttons that are no text ask to order something."""
        said = (
            f"{node.attributes.get('value') or ''} {node.attributes.get('alt') or ''}"
            for node in self._root.css(_BUTTONS)[:_MAX_BUTTONS]
        )
        return sum(phrases.count_orders(text, 1) for text in said)

    def _read(self, node: LexborNode) -> None:
        attributes = node.attributes
        if node.tag == "script":
            for said in _TYPE.findall((node.text() or "")[:_MAX_SCRIPT]):
                self.types.update(name.lower() for name in _TYPE_NAME.findall(said))
        elif node.tag == "meta" and attributes.get("property") == "og:type":
            self.declared = (attributes.get("content") or "").strip().lower()
        elif node.tag == "meta" and attributes.get("name"):
            self.generator += (attributes.get("content") or "").lower()
        elif itemtype := attributes.get("itemtype"):
            self.types.add(itemtype.rstrip("/").rpartition("/")[2].lower())


def page_type(page: Outline, groups: list[Group], posts: list[int], signs: Signs, letters: float) -> PageType:
    """Return the type; `letters` is what the page has without its frame."""
    if posts or (signs.is_forum and not _is_index(page, groups)):
        return PageType.FORUM
    if signs.declared in ("product", "og:product", "product.item") or "product" in signs.types:
        is_shown_in_list = _is_list(page, groups, signs, letters) and not _PRODUCT_URL.search(signs.url)
        return PageType.COLLECTION if is_shown_in_list else PageType.PRODUCT
    if any(name in signs.generator for name in _DOC_GENERATORS) or _DOC_URL.search(signs.url):
        return PageType.DOCUMENTATION
    if signs.is_forum or _is_list(page, groups, signs, letters):
        return PageType.COLLECTION if _COLLECTION_URL.search(signs.url) else PageType.LISTING
    if signs.is_article:
        return PageType.ARTICLE
    if _is_product(page.text, signs):
        return PageType.PRODUCT
    if any(_is_shelf(page, group, letters) for group in groups):
        return PageType.COLLECTION
    prose = page.elements[0].prose
    if prose > 1_000 and _one_text(page) > 0.5 * prose:
        return PageType.ARTICLE
    return PageType.SERVICE


def _is_list(page: Outline, groups: list[Group], signs: Signs, letters: float) -> bool:
    """Whether repeated items are most of the page, and there is no long text."""
    if not groups:
        return False
    body = page.elements[0]
    listed = sum(group.letters for group in groups)
    one_text = _one_text(page)
    is_listed = listed > 0.45 * body.letters and body.prose < 0.5 * listed and one_text < 1_200
    is_archive = one_text < 2_000 and not signs.is_article and any(_is_archive(group, letters) for group in groups)
    is_article = signs.is_article and _is_short_article(body.prose, one_text)
    return (is_listed or is_archive) and not is_article


def _is_index(page: Outline, groups: list[Group]) -> bool:
    """Whether a page of a forum is a list of threads or boards: it has no long text, and many links."""
    return bool(groups) and _one_text(page) < _SHORT_ARTICLE and page.elements[0].link_density > _LEAST_INDEX


def _is_short_article(prose: float, one_text: float) -> bool:
    """Whether almost all prose is one text, though there are more letters in links to other pages."""
    return prose > _SHORT_ARTICLE and one_text > 0.6 * prose


def _is_archive(group: Group, letters: float) -> bool:
    """Whether a group is a list of articles, each with a title that links to it and maybe some of its text."""
    return len(group.items) >= 4 and group.titled >= 0.7 * len(group.items) and group.letters > 0.6 * letters


def _is_shelf(page: Outline, group: Group, letters: float) -> bool:
    """Whether a group is the products of a shop's category, though the page may have more prose about them."""
    if len(group.items) < _LEAST_PRODUCTS or group.letters < _LEAST_SHELF * letters:
        return False
    said = (page.text[page.elements[item].start : page.elements[item].end] for item in group.items)
    return sum(map(has_price, said)) >= _LEAST_PRICED * len(group.items)


def _is_product(text: str, signs: Signs) -> bool:
    """Whether a page has a price, and one button to order it; lists have one for each item."""
    if not has_price(text):
        return False
    return 0 < (phrases.count_orders(text, _MANY_ORDERS) or signs.count_orders()) < _MANY_ORDERS


def has_price(text: str) -> bool:
    return _PRICE.search(text) is not None


# A price begins or ends with a symbol. The set comes first, so that a search skips all other characters at once.
_PRICE = re.compile(
    r"[0-9€$£¥₹₽₺₩](?:(?<![0-9])\s?[0-9]"
    r"|(?<=[0-9])\s?(?:€|\$|£|¥|₽|₺|₩|EUR|USD|GBP|CHF|PLN|CZK|HUF|zł|Kč|kr|руб|грн|円|元|원|TL|lei|Ft))"
)


def _one_text(page: Outline) -> float:
    """The most letters of prose that one element holds directly, in its paragraphs or between line breaks."""
    elements = page.elements
    # An element has at least the prose of those within it.
    own = {number: element.prose for number, element in enumerate(elements) if element.prose > 0}
    for number in own:
        element = elements[number]
        if element.parent >= 0:
            own[element.parent] -= element.prose
    holders: dict[int, int] = {}
    held: dict[int, float] = {}
    for number, prose in own.items():
        element = elements[number]
        holder = holders[element.parent] if element.tag in _INNER and element.parent >= 0 else number
        holders[number] = holder
        if prose > 0:
            held[holder] = held.get(holder, 0.0) + prose
    return max(held.values(), default=0.0)


_INNER = frozenset(("p", "font", "span", "b", "i", "em", "strong", "a"))
