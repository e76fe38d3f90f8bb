"""The first source of claims: values in a page's structured data.

A claim's source is the text at one JSON pointer into the page's data. For a value composed of several texts, such as
`{city}, {country}`, the locator has all pointers separated by spaces, and the text has one line for each. `text_at`
resolves a locator, so that evidence can be checked against the page.

Items of a list are distinguished by their entity and, if the entity has a list, by their position in it. Items of two
entities, or of two lists of one entity, are never merged.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from curtsy.content.structured import meta_tags
from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.extract.bylines import is_placeholder
from curtsy.extract.entities import Entities, Entity, entity, local, values
from curtsy.extract.items import together
from curtsy.extract.possible_values import is_possible
from curtsy.extract.sources import PageSources
from curtsy.extract.values import coerced
from curtsy.grounding.json_pointer import keys as keys_of
from curtsy.grounding.json_pointer import step, value_at
from curtsy.grounding.schema import Leaf, Schema

#: of one leaf on one page
_MAX_VALUES = 3
_MAX_ITEMS = 50
_MAX_TEXT = 2_000
_MAX_TITLE = 300
_PART = re.compile(r"\{([^{}]+)\}")
_ADDRESS = ("streetAddress", "postalCode", "addressLocality", "addressRegion", "addressCountry")
_AMOUNT = ("amount", "quantity", "unit", "name")
_AUTHOR = (
    "author.name", "author", "creator.name", "creator", "meta:author", "article:author", "meta:article:author",
    "meta:parsely-author", "meta:sailthru.author", "meta:citation_author", "meta:dc.creator", "meta:dcterms.creator",
    "meta:byl", "meta:article.author", "og:article:author", "og:author", "meta:authors",
    "meta:cse_author", "meta:author_name", "meta:article_author", "meta:dc.contributor.author", "meta:citation_authors",
    "meta:bt:author", "meta:shareaholic:article_author_name", "meta:rbauthors", "meta:blogger_name",
)  # fmt: skip
_PUBLISHED = (
    "datePublished", "article:published_time", "meta:article:published_time", "og:article:published_time",
    "og:published_time", "meta:parsely-pub-date", "meta:sailthru.date", "meta:citation_publication_date",
    "meta:citation_date", "meta:citation_online_date", "meta:dc.date.issued", "meta:dc.date.created", "meta:dc.date",
    "meta:dcterms.issued", "meta:dcterms.created", "meta:dcterms.date", "meta:pubdate", "meta:publishdate",
    "meta:publish-date", "meta:publish_date", "meta:published", "meta:date", "meta:publication_date",
    "meta:article.published", "meta:datepublished", "meta:article:published", "meta:article:published_date",
    "meta:article:publication_date", "meta:og:publish_date", "og:publish_date", "og:pubdate", "meta:published_time",
    "meta:published-date", "meta:published_date", "meta:publish_time", "meta:publication-date", "meta:publicationdate",
    "meta:originalpublicationdate", "meta:bt:pubdate", "meta:dc.date.publication", "meta:dc.created", "meta:dc.issued",
    "meta:date_published", "meta:cse_pubdate", "meta:rbpubdate", "meta:shareaholic:article_published_time",
    "meta:vr:published_time", "meta:article_date_original", "meta:release_date", "meta:created", "meta:creation_date",
    "meta:displaydate", "dateCreated", "uploadDate",
)  # fmt: skip
_MODIFIED = (
    "dateModified", "article:modified_time", "og:updated_time", "meta:article:modified_time", "meta:last-modified",
    "meta:dcterms.modified", "meta:dc.date.modified", "meta:lastmod",
)  # fmt: skip
_PRICE = (
    "offers.price", "offers.lowPrice", "offers.offers.price", "offers.priceSpecification.price",
    "hasVariant.offers.price", "hasVariant.offers.lowPrice", "hasVariant.offers.priceSpecification.price", "price",
    "product:sale_price:amount", "product:price:amount", "og:price:amount", "meta:price",
)  # fmt: skip
_CURRENCY = (
    "offers.priceCurrency", "offers.offers.priceCurrency", "offers.priceSpecification.priceCurrency",
    "hasVariant.offers.priceCurrency", "hasVariant.offers.priceSpecification.priceCurrency", "priceCurrency",
    "product:price:currency", "og:price:currency", "meta:pricecurrency",
)  # fmt: skip
_OTHER_PRICES = frozenset(
    ("ListPrice", "StrikethroughPrice", "RegularPrice", "SRP", "MSRP", "InvoicePrice", "MinimumAdvertisedPrice",
     "DeliveryChargeSpecification", "PaymentChargeSpecification")
)  # fmt: skip
_INGREDIENTS = ("recipeIngredient", "ingredients", "ingredient")
#: last name of a leaf without keys of its own -> keys to look up in addition to that name
SYNONYMS: dict[str, tuple[str, ...]] = {
    "name": ("name", "legalName", "headline"),
    "title": ("headline", "name", "og:title"),
    "headline": ("headline", "name", "og:title"),
    "description": ("description", "og:description", "meta:description"),
    "summary": ("abstract", "description", "og:description"),
    "phone": ("telephone", "contactPoint.telephone", "tel"),
    "telephone": ("telephone", "contactPoint.telephone", "tel"),
    "email": ("email", "contactPoint.email"),
    "website": ("url",),
    "founded": ("foundingDate",),
    "founded_year": ("foundingDate",),
    "founding_year": ("foundingDate",),
    "headquarters": ("{address.addressLocality}, {address.addressCountry}", "location.name"),
    "city": ("address.addressLocality", "adr.locality"),
    "country": ("address.addressCountry", "adr.country-name"),
    "author": _AUTHOR,
    "authors": _AUTHOR,
    "byline": _AUTHOR,
    "writer": _AUTHOR,
    "publisher": ("publisher.name", "og:site_name"),
    "published": _PUBLISHED,
    "date": _PUBLISHED,
    "date_published": _PUBLISHED,
    "publication_date": _PUBLISHED,
    "published_at": _PUBLISHED,
    "published_date": _PUBLISHED,
    "publish_date": _PUBLISHED,
    "pubdate": _PUBLISHED,
    "modified": _MODIFIED,
    "updated": _MODIFIED,
    "date_modified": _MODIFIED,
    "updated_at": _MODIFIED,
    "last_updated": _MODIFIED,
    "ingredients": _INGREDIENTS,
    "ingredient": _INGREDIENTS,
    "price": _PRICE,
    "currency": _CURRENCY,
    "availability": ("offers.availability", "offers.offers.availability", "availability", "product:availability"),
    "employees": ("numberOfEmployees.value", "numberOfEmployees"),
}


class Stated(NamedTuple):
    """Texts in the data and their pointers; for an item of a list, also which one."""

    pointers: tuple[str, ...]
    texts: tuple[str, ...]
    #: pointer of the entity
    entity: str = ""
    #: the item of the first list on the path; None: no list
    item: str | None = None
    #: the value, if it is composed of several texts
    whole: str | None = None
    #: it is a JSON number
    exact: bool = False

    @property
    def text(self) -> str:
        return self.texts[0] if self.whole is None else self.whole


#: a statement and the value for its leaf
_Valued = tuple[Stated, Any]


def claims(
    schema: Schema,
    page: PageSources,
    leaves: Iterable[Leaf] | None = None,
    is_known: Callable[[str], bool] = lambda _: True,
) -> list[Claim]:
    """Return what the page's structured data states for the leaves, best first for each. `is_known` says whether the
    site confirms the name of an organization."""
    if not page.data:
        return []
    reader = _Reader(page.data, schema, page.url, _titles(page), is_known)
    # A name of one entity and a price of another do not make a record.
    about_one = reader if schema.types else reader.about_one(schema, [leaf for leaf in schema.leaves if not leaf.many])
    found: list[Claim] = []
    for some in together(schema.leaves if leaves is None else leaves):
        if some[0].many:
            found += _of_list(page, some, {leaf.path: _of_leaf(schema, leaf, reader) for leaf in some})
        else:
            found += [_claim(page, some[0].path, *said) for said in _of_leaf(schema, some[0], about_one)]
    return _of_one_offer(found)


def _of_one_offer(found: list[Claim]) -> list[Claim]:
    """Of several currencies, only the one beside the price counts."""
    price = next((one for one in found if one.path == "/price"), None)
    many = [one for one in found if one.path == "/currency"]
    if price is None or len({one.value for one in many}) < 2:
        return found
    place = _parent(price)
    beside = [one for one in many if _parent(one) == place] or [
        one for one in many if f"{place}/".startswith(f"{_parent(one)}/")
    ]
    return [one for one in found if one not in many or one in beside]


def _parent(claim: Claim) -> str:
    return claim.source.locator.rpartition("/")[0]


def _titles(page: PageSources) -> list[str]:
    root = None if page.document is None else page.document.tree.root
    headings = [] if root is None else [one.text() for one in root.css("h1")[:3]]
    return [one for one in (page.title, *headings) if one]


def text_at(data: list[dict[str, Any]], locator: str) -> str | None:
    """Return the texts at the pointers of a locator, one line each; `None` if a pointer has no value."""
    pointers = [pointer.replace("%20", " ").replace("%25", "%") for pointer in locator.split(" ")]
    texts = [_scalar_text(value_at(data, pointer)) for pointer in pointers]
    return "\n".join(text[:_MAX_TEXT] for text in texts) if all(texts) else None


def _of_leaf(schema: Schema, leaf: Leaf, reader: _Reader) -> list[_Valued]:
    limit = _MAX_ITEMS if leaf.many else _MAX_VALUES
    is_author = SYNONYMS.get(leaf.path.strip("/*").lower()) is _AUTHOR
    is_title = leaf.path in ("/name", "/title", "/headline") and leaf.type == "string"
    found: list[_Valued] = []
    seen: set[tuple[str, str | None, str]] = set()
    for key in _keys(schema, leaf):
        for stated in _ordered(key, leaf, reader.look(key)):
            value = coerced(stated.text, leaf, exact=stated.exact)
            once = (stated.entity, stated.item, repr(value)) if leaf.many else ("", None, repr(value))
            if value is None or once in seen or (is_author and is_placeholder(stated.text)):
                continue
            if not is_possible(leaf, value, exact=stated.exact):
                continue
            if is_title and len(stated.text) > _MAX_TITLE:
                continue  # microformats without a name: the text of the whole item
            seen.add(once)
            found.append((stated, value))
            if len(found) == limit:
                return found
        if found and leaf.many:
            break  # another key would state the same items in other words
    return found


def _ordered(key: str, leaf: Leaf, found: Iterator[Stated]) -> Iterable[Stated]:
    """Of the variants of a product, the cheapest comes first."""
    if not key.startswith("hasVariant.") or leaf.type not in ("number", "integer"):
        return found
    many = [(coerced(one.text, leaf, exact=one.exact), one) for one in found]
    return [one for _, one in sorted(((value, one) for value, one in many if value is not None), key=lambda it: it[0])]


def _claim(page: PageSources, path: str, stated: Stated, value: Any) -> Claim:
    locator = " ".join(pointer.replace("%", "%25").replace(" ", "%20") for pointer in stated.pointers)
    source = Source(SourceKind.STRUCTURED, page.page, page.url, "\n".join(stated.texts), locator)
    repaired = _repaired(page.data, stated.pointers)
    return Claim(
        path=path, value=value, rung=Rung.STRUCTURED, source=source, quote=source.text, repaired=repaired
    )  # fmt: skip


def _repaired(data: list[dict[str, Any]], pointers: Iterable[str]) -> tuple[str, ...]:
    """Return what was repaired in the entries that the pointers lead to."""
    entries = dict.fromkeys(int(pointer.split("/", 2)[1]) for pointer in pointers)
    return tuple(dict.fromkeys(one for at in entries for one in data[at].get("repaired", ())))


# Items


def _of_list(page: PageSources, leaves: Sequence[Leaf], said: Mapping[str, Sequence[_Valued]]) -> list[Claim]:
    """Return the claims of a list's leaves, item by item."""
    of_entities: dict[str, list[Stated]] = {}
    for leaf in leaves:
        for stated, _ in said[leaf.path]:
            of_entities.setdefault(stated.entity, []).append(stated)
    items = [{(name, place) for place in one} for name, many in of_entities.items() for one in _items(many)]
    numbers = {place: number for number, item in enumerate(items) for place in item}
    found: list[tuple[int, Claim]] = []
    for leaf in leaves:
        for stated, value in said[leaf.path]:
            number = numbers.get((stated.entity, stated.item))
            if number is not None:
                found.append((number, _claim(page, leaf.path.replace("*", str(number)), stated, value)))
    return [claim for _, claim in sorted(found, key=lambda one: one[0])]


def _items(many: Sequence[Stated]) -> list[list[str | None]]:
    """Return the items of one entity, each with all its positions.

    An entity whose first leaf is outside of any list is one item, such as a product with several offers. Otherwise the
    items are those of its lists; values outside of the lists belong to an item only if there is just one.
    """
    places = sorted({one.item for one in many if one.item is not None}, key=_order)
    if many[0].item is None:
        return [[None, *places]]
    return [[places[0], None]] if len(places) == 1 else [[place] for place in places]


def _order(pointer: str) -> list[tuple[int, str]]:
    return [(int(key) if key.isdigit() and len(key) < 10 else -1, key) for key in pointer.split("/")]


def _keys(schema: Schema, leaf: Leaf) -> tuple[str, ...]:
    return tuple(schema.structured.get(leaf.path) or _default_keys(leaf))


def _default_keys(leaf: Leaf) -> tuple[str, ...]:
    names = [name for name in keys_of(leaf.path) if name != "*"]
    dotted = ".".join(names)
    camel = ".".join(re.sub(r"_(\w)", lambda found: found[1].upper(), name) for name in names)
    known = SYNONYMS.get(names[-1], ()) if len(names) == 1 or names[0] in ("contact", "address") else ()
    return tuple(dict.fromkeys((dotted, camel, *known)))


# Looking up keys


class _Reader:
    """Resolves keys in the data of a page."""

    def __init__(
        self,
        data: list[dict[str, Any]],
        schema: Schema,
        url: str,
        titles: Sequence[str] = (),
        is_known: Callable[[str], bool] = lambda _: True,
    ) -> None:
        self._entities = Entities(data, url)
        self._subjects = self._entities.about(schema.types, url, titles, is_known)
        self._flat = [(entry, at) for at, entry in enumerate(data) if entry.get("kind") in meta_tags.KINDS]

    def about_one(self, schema: Schema, leaves: Sequence[Leaf]) -> _Reader:
        """Restrict it to the entity with the most of these leaves (the first of equal ones), and others of its name."""
        if len(self._subjects) < 2 or not leaves:
            return self
        keys = [[key for key in _keys(schema, leaf) if ":" not in key] for leaf in leaves]

        def known(subject: Entity) -> int:
            return sum(any(next(self._of(key, subject), None) for key in many) for many in keys)

        main = max(self._subjects[:_MAX_ITEMS], key=known)
        name = main.properties.get("name")
        narrowed = copy(self)
        narrowed._subjects = [
            one for one in self._subjects if one is main or (name and one.properties.get("name") == name)
        ]
        return narrowed

    def _of(self, key: str, subject: Entity) -> Iterator[Stated]:
        return self._filled(key, subject) if "{" in key else self._along(key.split("."), subject)

    def look(self, key: str) -> Iterator[Stated]:
        """Yield everything that a key or template refers to."""
        if ":" in key and "{" not in key:
            yield from self._named(key)
            return
        for subject in self._subjects:
            yield from self._of(key, subject)

    def _named(self, key: str) -> Iterator[Stated]:
        """`og:title`, `twitter:site`; `meta:description` of `<meta name>`, also `meta:dc.title`."""
        kind, name = meta_tags.place(
            key.lower().removeprefix("meta:"), "meta" if key.startswith("meta:") else "opengraph"
        )
        # Pages also write `property="author"`, which has no prefix.
        kinds = (kind, "opengraph") if kind == "meta" else (kind,)
        for entry, at in self._flat:
            if entry["kind"] in kinds and isinstance(entry.get("data"), dict):
                pointer = step(f"/{at}/data", name)
                many = list(values(entry["data"].get(name), pointer))
                for number, (value, where) in enumerate(many):
                    if text := _scalar_text(value):
                        # Lists of equal length are about the same items.
                        item = None if len(many) == 1 else str(number)
                        yield Stated((where,), (text[:_MAX_TEXT],), f"/{at}/data {len(many)}", item)

    def _filled(self, template: str, subject: Entity) -> Iterator[Stated]:
        """Fill the template with the first value of each key, for each item of a list; nothing if one is missing."""
        parts = list(_PART.finditer(template))
        found = [list(self._along(part[1].split("."), subject)) for part in parts]
        items = dict.fromkeys(stated.item for many in found for stated in many)
        for item in [None] if None in items else items:
            # A value outside of lists is combined with the first item.
            chosen = [next((one for one in many if item in (None, one.item)), None) for many in found]
            known = [stated for stated in chosen if stated is not None]
            if known and len(known) == len(parts):
                yield _joined(known, _fill(template, parts, known))._replace(entity=subject.pointer, item=item)

    def _along(self, names: list[str], subject: Entity) -> Iterator[Stated]:
        """Follow the names from an entity; an item is one of the first list on the path."""
        ends: list[tuple[Any, str, str | None]] = [(subject.properties, subject.pointer, None)]
        for name in names:
            following: list[tuple[Any, str, str | None]] = []
            for value, pointer, item in ends:
                value, pointer = self._inner(value, pointer)
                name_here = _spelled(value, name) if isinstance(value, dict) else name
                inner = value.get(name_here) if isinstance(value, dict) else None
                for one, where in values(inner, step(pointer, name_here)):
                    if name == "priceSpecification" and _is_other_price(one):
                        continue
                    following.append((one, where, where if item is None and isinstance(inner, list) else item))
            ends = following[:_MAX_ITEMS]
        for value, pointer, item in ends:
            if (stated := self._stated(value, pointer)) is not None:
                yield stated._replace(entity=subject.pointer, item=item)

    def _inner(self, value: Any, pointer: str) -> tuple[Any, str]:
        value, pointer = self._entities.followed(value, pointer)
        if isinstance(value, dict):
            found = entity(value, pointer)
            return found.properties, found.pointer
        return value, pointer

    def _stated(self, value: Any, pointer: str) -> Stated | None:
        """Return the parts of an address, amount and name of an ingredient, or the text of anything else."""
        value, pointer = self._inner(value, pointer)
        if isinstance(value, dict) and "name" in value and ("amount" in value or "quantity" in value):
            parts = (self._plain(one, where) for name in _AMOUNT for one, where in _first(value, pointer, name))
            known = [part for part in parts if part is not None]
            return _joined(known, " ".join(part.text.strip() for part in known)) if known else None
        if isinstance(value, dict) and "streetAddress" in value:
            parts = (self._plain(one, where) for name in _ADDRESS for one, where in _first(value, pointer, name))
            known = [part for part in parts if part is not None]
            if len(known) > 1:
                return _joined(known, ", ".join(part.text.strip() for part in known))
        return self._plain(value, pointer)

    def _plain(self, value: Any, pointer: str) -> Stated | None:
        """Return the text of a scalar, or the value or name of an object."""
        value, pointer = self._inner(value, pointer)
        places = [(value, pointer)]
        if isinstance(value, dict):
            places = [place for name in ("@value", "value", "name") for place in _first(value, pointer, name)]
        for one, where in places:
            if (text := _scalar_text(one)[:_MAX_TEXT]).strip():
                return Stated((where,), (text,), exact=not isinstance(one, str))
        return None


def _spelled(properties: Mapping[str, Any], name: str) -> str:
    """Sites also write `Author` for `author`."""
    capital = name[:1].upper() + name[1:]
    return capital if name not in properties and capital in properties else name


def _is_other_price(value: Any) -> bool:
    """A list price that is struck out, a price per unit, or a charge for delivery: not what the product costs."""
    if not isinstance(value, dict):
        return False
    if value.get("referenceQuantity") is not None:
        return True
    kinds = [local(str(one)) for key in ("priceType", "@type") for one, _ in values(value.get(key), "")]
    return any(one in _OTHER_PRICES for one in kinds)


def _first(value: dict[str, Any], pointer: str, name: str) -> list[tuple[Any, str]]:
    return list(values(value.get(name), step(pointer, name)))[:1]


def _joined(parts: list[Stated], whole: str) -> Stated:
    pointers = tuple(pointer for part in parts for pointer in part.pointers)
    return Stated(pointers, tuple(text for part in parts for text in part.texts), whole=whole)


def _fill(template: str, parts: Sequence[re.Match[str]], found: Sequence[Stated]) -> str:
    whole, at = "", 0
    for part, stated in zip(parts, found, strict=True):
        whole += template[at : part.start()] + stated.text.strip()
        at = part.end()
    return whole + template[at:]


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else ""
