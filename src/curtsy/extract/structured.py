"""The first rung: values that a page states in its structured data.

A claim's source is the text at one JSON pointer into the page's data. For a value put together from several texts, as
`{city}, {country}` is, its locator has all pointers with blanks between them, and its text has theirs, a line each.
`text_at` reads a locator, so that evidence can be checked against the page.

Items of a list are told apart by the thing that says them and, if it says them in a list, by their place in that: what
two things list is never one item, and neither is what stands in two lists of one thing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from typing import Any, NamedTuple

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.extract.entities import Thing, Things, thing, values
from curtsy.extract.items import together
from curtsy.extract.sources import PageSources
from curtsy.extract.values import coerced
from curtsy.grounding.json_schema import keys as keys_of
from curtsy.grounding.json_schema import step
from curtsy.grounding.schema import Leaf, Schema

#: of one leaf on one page
_MAX_VALUES = 3
_MAX_ITEMS = 50
_MAX_TEXT = 2_000
_PART = re.compile(r"\{([^{}]+)\}")
_ADDRESS = ("streetAddress", "postalCode", "addressLocality", "addressRegion", "addressCountry")
#: what a leaf without keys of its own is looked for under, by its last name, beside that name itself
SYNONYMS: dict[str, tuple[str, ...]] = {
    "name": ("name", "legalName", "headline"),
    "title": ("headline", "name", "og:title"),
    "headline": ("headline", "name", "og:title"),
    "description": ("description", "og:description", "meta:description"),
    "summary": ("abstract", "description", "og:description"),
    "phone": ("telephone", "contactPoint.telephone"),
    "telephone": ("telephone", "contactPoint.telephone"),
    "email": ("email", "contactPoint.email"),
    "website": ("url",),
    "founded": ("foundingDate",),
    "founded_year": ("foundingDate",),
    "founding_year": ("foundingDate",),
    "headquarters": ("{address.addressLocality}, {address.addressCountry}", "location.name"),
    "city": ("address.addressLocality",),
    "country": ("address.addressCountry",),
    "author": ("author.name", "author", "meta:author"),
    "publisher": ("publisher.name", "og:site_name"),
    "published": ("datePublished", "article:published_time"),
    "price": ("offers.price", "price", "product:price:amount"),
    "currency": ("offers.priceCurrency", "priceCurrency", "product:price:currency"),
    "employees": ("numberOfEmployees.value", "numberOfEmployees"),
}


class Stated(NamedTuple):
    """Texts in the data, and where; of a list's item also which."""

    pointers: tuple[str, ...]
    texts: tuple[str, ...]
    #: the thing that says it
    thing: str = ""
    #: the item of the first list on the way; None: there is no list
    item: str | None = None
    #: what is said, if it is put together from several texts
    whole: str | None = None
    #: it is a number of JSON
    exact: bool = False

    @property
    def text(self) -> str:
        return self.texts[0] if self.whole is None else self.whole


#: what is stated, and the value of its leaf
_Said = tuple[Stated, Any]


def claims(schema: Schema, page: PageSources, leaves: Iterable[Leaf] | None = None) -> list[Claim]:
    """What the page's structured data says for the leaves, the best first for each."""
    if not page.data:
        return []
    reader = _Reader(page.data, schema, page.url)
    # A name of one thing and a price of another make no record.
    about_one = reader if schema.types else reader.about_one(schema, [leaf for leaf in schema.leaves if not leaf.many])
    found: list[Claim] = []
    for some in together(schema.leaves if leaves is None else leaves):
        if some[0].many:
            found += _of_list(page, some, {leaf.path: _of_leaf(schema, leaf, reader) for leaf in some})
        else:
            found += [_claim(page, some[0].path, *said) for said in _of_leaf(schema, some[0], about_one)]
    return found


def text_at(data: list[dict[str, Any]], locator: str) -> str | None:
    """What the data has at the pointers of a locator, a line each; None: nothing stands there."""
    texts = [_scalar_text(_at(data, pointer.replace("%20", " ").replace("%25", "%"))) for pointer in locator.split(" ")]
    return "\n".join(text[:_MAX_TEXT] for text in texts) if all(texts) else None


def _of_leaf(schema: Schema, leaf: Leaf, reader: _Reader) -> list[_Said]:
    limit = _MAX_ITEMS if leaf.many else _MAX_VALUES
    found: list[_Said] = []
    seen: set[tuple[str, str | None, str]] = set()
    for key in _keys(schema, leaf):
        for stated in reader.look(key):
            value = coerced(stated.text, leaf, exact=stated.exact)
            once = (stated.thing, stated.item, repr(value)) if leaf.many else ("", None, repr(value))
            if value is None or once in seen:
                continue
            seen.add(once)
            found.append((stated, value))
            if len(found) == limit:
                return found
        if found and leaf.many:
            break  # another key would say the same items in other words
    return found


def _claim(page: PageSources, path: str, stated: Stated, value: Any) -> Claim:
    locator = " ".join(pointer.replace("%", "%25").replace(" ", "%20") for pointer in stated.pointers)
    source = Source(SourceKind.STRUCTURED, page.page, page.url, "\n".join(stated.texts), locator)
    return Claim(path=path, value=value, rung=Rung.STRUCTURED, source=source, quote=source.text)


# Items


def _of_list(page: PageSources, leaves: Sequence[Leaf], said: Mapping[str, Sequence[_Said]]) -> list[Claim]:
    """The claims of a list's leaves, item by item."""
    of_things: dict[str, list[Stated]] = {}
    for leaf in leaves:
        for stated, _ in said[leaf.path]:
            of_things.setdefault(stated.thing, []).append(stated)
    items = [{(name, place) for place in one} for name, many in of_things.items() for one in _items(many)]
    numbers = {place: number for number, item in enumerate(items) for place in item}
    found: list[tuple[int, Claim]] = []
    for leaf in leaves:
        for stated, value in said[leaf.path]:
            number = numbers.get((stated.thing, stated.item))
            if number is not None:
                found.append((number, _claim(page, leaf.path.replace("*", str(number)), stated, value)))
    return [claim for _, claim in sorted(found, key=lambda one: one[0])]


def _items(many: Sequence[Stated]) -> list[list[str | None]]:
    """The items of what one thing states, its most telling leaf first, each with all places that are that item.

    A thing that states its most telling value outside of any list is one item: a product that has several offers. Else
    the items are those of its lists; what it says beside them is of none, unless there is only one.
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


# Looking for keys


class _Reader:
    """The data of a page, as keys lead into it."""

    def __init__(self, data: list[dict[str, Any]], schema: Schema, url: str) -> None:
        self._things = Things(data)
        self._subjects = self._things.about(schema.types, url)
        self._flat = [(entry, at) for at, entry in enumerate(data) if entry.get("kind") in ("opengraph", "meta")]

    def about_one(self, schema: Schema, leaves: Sequence[Leaf]) -> _Reader:
        """Of the thing that has the most of these leaves, the first of equal ones, and of others of its name."""
        if len(self._subjects) < 2 or not leaves:
            return self
        keys = [[key for key in _keys(schema, leaf) if ":" not in key] for leaf in leaves]

        def known(subject: Thing) -> int:
            return sum(any(next(self._of(key, subject), None) for key in many) for many in keys)

        main = max(self._subjects[:_MAX_ITEMS], key=known)
        name = main.properties.get("name")
        narrowed = copy(self)
        narrowed._subjects = [
            one for one in self._subjects if one is main or (name and one.properties.get("name") == name)
        ]
        return narrowed

    def _of(self, key: str, subject: Thing) -> Iterator[Stated]:
        return self._filled(key, subject) if "{" in key else self._along(key.split("."), subject)

    def look(self, key: str) -> Iterator[Stated]:
        """All that a key or template leads to."""
        if ":" in key and "{" not in key:
            yield from self._named(key)
            return
        for subject in self._subjects:
            yield from self._of(key, subject)

    def _named(self, key: str) -> Iterator[Stated]:
        """`og:title` of OpenGraph, `meta:description` of other meta elements."""
        kind, name = ("meta", key.removeprefix("meta:")) if key.startswith("meta:") else ("opengraph", key)
        for entry, at in self._flat:
            if entry["kind"] == kind and isinstance(entry.get("data"), dict):
                pointer = step(f"/{at}/data", name.lower())
                many = list(values(entry["data"].get(name.lower()), pointer))
                for number, (value, where) in enumerate(many):
                    if text := _scalar_text(value):
                        # Lists of one length are about the same items.
                        item = None if len(many) == 1 else str(number)
                        yield Stated((where,), (text[:_MAX_TEXT],), f"/{at}/data {len(many)}", item)

    def _filled(self, template: str, subject: Thing) -> Iterator[Stated]:
        """The template with the first value of each of its keys, of each item of a list; nothing if one is missing."""
        parts = list(_PART.finditer(template))
        found = [list(self._along(part[1].split("."), subject)) for part in parts]
        items = dict.fromkeys(stated.item for many in found for stated in many)
        for item in [None] if None in items else items:
            # What stands in no list goes with the first of what does.
            chosen = [next((one for one in many if item in (None, one.item)), None) for many in found]
            known = [stated for stated in chosen if stated is not None]
            if known and len(known) == len(parts):
                yield _joined(known, _fill(template, parts, known))._replace(thing=subject.pointer, item=item)

    def _along(self, names: list[str], subject: Thing) -> Iterator[Stated]:
        """What the names lead to from a thing; an item is one of the first list on the way."""
        ends: list[tuple[Any, str, str | None]] = [(subject.properties, subject.pointer, None)]
        for name in names:
            following: list[tuple[Any, str, str | None]] = []
            for value, pointer, item in ends:
                value, pointer = self._inner(value, pointer)
                inner = value.get(name) if isinstance(value, dict) else None
                for one, where in values(inner, step(pointer, name)):
                    following.append((one, where, where if item is None and isinstance(inner, list) else item))
            ends = following[:_MAX_ITEMS]
        for value, pointer, item in ends:
            if (stated := self._stated(value, pointer)) is not None:
                yield stated._replace(thing=subject.pointer, item=item)

    def _inner(self, value: Any, pointer: str) -> tuple[Any, str]:
        value, pointer = self._things.followed(value, pointer)
        if isinstance(value, dict):
            found = thing(value, pointer)
            return found.properties, found.pointer
        return value, pointer

    def _stated(self, value: Any, pointer: str) -> Stated | None:
        """Of an address its parts, of anything else its text."""
        value, pointer = self._inner(value, pointer)
        if isinstance(value, dict) and "streetAddress" in value:
            parts = (self._plain(one, where) for name in _ADDRESS for one, where in _first(value, pointer, name))
            known = [part for part in parts if part is not None]
            if len(known) > 1:
                return _joined(known, ", ".join(part.text.strip() for part in known))
        return self._plain(value, pointer)

    def _plain(self, value: Any, pointer: str) -> Stated | None:
        """Of a scalar its text, of an object its value or name."""
        value, pointer = self._inner(value, pointer)
        places = [(value, pointer)]
        if isinstance(value, dict):
            places = [place for name in ("@value", "value", "name") for place in _first(value, pointer, name)]
        for one, where in places:
            if (text := _scalar_text(one)[:_MAX_TEXT]).strip():
                return Stated((where,), (text,), exact=not isinstance(one, str))
        return None


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


def _at(data: Any, pointer: str) -> Any:
    for key in keys_of(pointer):
        if isinstance(data, list):
            data = data[int(key)] if key.isdigit() and int(key) < len(data) else None
        else:
            data = data.get(key) if isinstance(data, dict) else None
    return data


def _scalar_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, bool | int | float) else ""
