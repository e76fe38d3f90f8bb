"""The first rung: values that a page states in its structured data.

A claim's source is the text at one JSON pointer into the page's data. For a value put together from several texts, as
`{city}, {country}` is, its locator has all pointers with blanks between them, and its text has theirs, a line each.
`text_at` reads a locator, so that evidence can be checked against the page.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from curtsy.evidence import Claim, Rung, Source, SourceKind
from curtsy.extract.sources import PageSources
from curtsy.extract.things import Thing, Things, thing, values
from curtsy.extract.values import coerced
from curtsy.json_schema import keys as keys_of
from curtsy.json_schema import step
from curtsy.schemas import Leaf, Schema

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
    item: int = 0
    #: what is said, if it is put together from several texts
    whole: str | None = None

    @property
    def text(self) -> str:
        return self.texts[0] if self.whole is None else self.whole


def claims(schema: Schema, page: PageSources, leaves: Iterable[Leaf] | None = None) -> list[Claim]:
    """What the page's structured data says for the leaves, the best first for each."""
    if not page.data:
        return []
    reader = _Reader(page.data, schema, page.url)
    found: list[Claim] = []
    for leaf in schema.leaves if leaves is None else leaves:
        if leaf.path.count("*") <= 1:
            found += _of_leaf(schema, page, leaf, reader)
    return found


def text_at(data: list[dict[str, Any]], locator: str) -> str | None:
    """What the data has at the pointers of a locator, a line each; None: nothing stands there."""
    texts = [_scalar_text(_at(data, pointer.replace("%20", " ").replace("%25", "%"))) for pointer in locator.split(" ")]
    return "\n".join(text[:_MAX_TEXT] for text in texts) if all(texts) else None


def _of_leaf(schema: Schema, page: PageSources, leaf: Leaf, reader: _Reader) -> list[Claim]:
    limit = _MAX_ITEMS if leaf.many else _MAX_VALUES
    found: list[Claim] = []
    seen: set[str] = set()
    for key in schema.structured.get(leaf.path) or _default_keys(leaf):
        for stated in reader.look(key):
            value = coerced(stated.text, leaf)
            if value is None or (once := f"{stated.item if leaf.many else 0} {value!r}") in seen:
                continue
            seen.add(once)
            found.append(_claim(page, leaf, stated, value))
            if len(found) == limit:
                return found
        if found and leaf.many:
            break  # another key would say the same items in other words
    return found


def _claim(page: PageSources, leaf: Leaf, stated: Stated, value: Any) -> Claim:
    locator = " ".join(pointer.replace("%", "%25").replace(" ", "%20") for pointer in stated.pointers)
    source = Source(SourceKind.STRUCTURED, page.page, page.url, "\n".join(stated.texts), locator)
    path = leaf.path.replace("*", str(stated.item))
    return Claim(path=path, value=value, rung=Rung.STRUCTURED, source=source, quote=source.text)


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

    def look(self, key: str) -> Iterator[Stated]:
        """All that a key or template leads to."""
        if "{" in key:
            for subject in self._subjects:
                yield from self._filled(key, subject)
        elif ":" in key:
            yield from self._named(key)
        else:
            for subject in self._subjects:
                yield from self._along(key.split("."), subject)

    def _named(self, key: str) -> Iterator[Stated]:
        """`og:title` of OpenGraph, `meta:description` of other meta elements."""
        kind, name = ("meta", key.removeprefix("meta:")) if key.startswith("meta:") else ("opengraph", key)
        for entry, at in self._flat:
            if entry["kind"] == kind and isinstance(entry.get("data"), dict):
                pointer = step(f"/{at}/data", name.lower())
                for number, (value, where) in enumerate(values(entry["data"].get(name.lower()), pointer)):
                    if text := _scalar_text(value):
                        yield Stated((where,), (text[:_MAX_TEXT],), number)

    def _filled(self, template: str, subject: Thing) -> Iterator[Stated]:
        """The template with the first value of each of its keys; nothing if one is missing."""
        found: list[Stated] = []
        whole, at = "", 0
        for part in _PART.finditer(template):
            stated = next(self._along(part[1].split("."), subject), None)
            if stated is None:
                return
            found.append(stated)
            whole += template[at : part.start()] + stated.text.strip()
            at = part.end()
        if found:
            yield _joined(found, whole + template[at:])

    def _along(self, names: list[str], subject: Thing) -> Iterator[Stated]:
        """What the names lead to from a thing; an item's number is that in the first list on the way."""
        ends: list[tuple[Any, str, int | None]] = [(subject.properties, subject.pointer, None)]
        for name in names:
            following: list[tuple[Any, str, int | None]] = []
            for value, pointer, item in ends:
                value, pointer = self._inner(value, pointer)
                inner = value.get(name) if isinstance(value, dict) else None
                for number, (one, where) in enumerate(values(inner, step(pointer, name))):
                    following.append((one, where, number if item is None and isinstance(inner, list) else item))
            ends = following[:_MAX_ITEMS]
        for value, pointer, item in ends:
            if (stated := self._stated(value, pointer)) is not None:
                yield stated._replace(item=item or 0)

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
                return Stated((where,), (text,))
        return None


def _first(value: dict[str, Any], pointer: str, name: str) -> list[tuple[Any, str]]:
    return list(values(value.get(name), step(pointer, name)))[:1]


def _joined(parts: list[Stated], whole: str) -> Stated:
    pointers = tuple(pointer for part in parts for pointer in part.pointers)
    return Stated(pointers, tuple(text for part in parts for text in part.texts), 0, whole)


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
