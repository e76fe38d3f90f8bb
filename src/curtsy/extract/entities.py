"""The entities in a page's structured data, and which of them a record is about.

JSON-LD, microdata, RDFa and microformats get one form: an entity has types, properties and the JSON pointer to it.
References by `@id` within a page are resolved.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from curtsy.grounding.json_pointer import step
from curtsy.rules.urls import parse, registrable_domain

#: properties that name the main entity
_MAIN = ("mainEntity", "mainEntityOfPage")
#: for a page or site: its subject and its owner; an article may be about others, and published by them
_OF_SITES = ("mainEntity", "about", "publisher", "copyrightHolder", "provider")
_SITES = frozenset(("WebSite", "WebPage", "AboutPage", "ContactPage"))
_MAX_ENTITIES = 500
_KINDS_OF_ENTITIES = frozenset(("json-ld", "microdata", "rdfa", "microformats"))
#: microformat -> the type of schema.org that it is
_MICROFORMATS = {
    "h-entry": "Article",
    "h-event": "Event",
    "h-product": "Product",
    "h-recipe": "Recipe",
    "h-review": "Review",
}
#: keys of an item of microdata, RDFa or microformats
_ITEM = frozenset(("type", "id", "vocab", "properties", "value", "children"))
#: distance from the site of an entity that names another domain
_NO_DOMAIN, _OTHER_DOMAIN = 2, 3
_MAX_STEPS = 4
_WORD = re.compile(r"[^\W_]+")
_MIN_WORD = 3
_TITLE_AND_HEADING = 2
#: share of the words of a name that the page's title or heading must have
_SAME_NAME = 0.6
#: type -> its subtypes
_KINDS: dict[str, frozenset[str]] = {
    name: frozenset(kinds)
    for name, kinds in tomllib.loads((Path(__file__).parent / "kinds.toml").read_text("utf-8")).items()
}


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity in structured data."""

    #: local names: `Organization`
    types: frozenset[str]
    properties: Mapping[str, Any]
    #: JSON pointer to `properties`
    pointer: str


class Entities:
    """All entities in a page's data."""

    def __init__(self, data: list[dict[str, Any]], url: str) -> None:
        self._url = url
        self._by_id: dict[str, Entity] = {}
        self._roots: list[Entity] = []
        for at, entry in enumerate(data):
            if entry.get("kind") in _KINDS_OF_ENTITIES and isinstance(entry.get("data"), dict):
                self._roots += _roots(entry["data"], f"/{at}/data")
                self._name(entry["data"], f"/{at}/data")

    def _name(self, value: Any, pointer: str) -> None:
        """Record the targets of references. The data has bounded depth."""
        if isinstance(value, dict):
            name = value.get("@id")
            if isinstance(name, str) and not _is_reference(value):
                self._by_id.setdefault(self._absolute(name), entity(value, pointer))
            for key, inner in value.items():
                if isinstance(inner, dict | list):
                    self._name(inner, step(pointer, key))
        elif isinstance(value, list):
            for at, inner in enumerate(value):
                self._name(inner, f"{pointer}/{at}")

    def _absolute(self, name: str) -> str:
        """`#org` and the URL of the page with `#org` are the same name."""
        return parse(name, self._url) or name

    def followed(self, value: Any, pointer: str) -> tuple[Any, str]:
        """Return the value, or the target of a reference."""
        if isinstance(value, dict) and _is_reference(value):
            target = self._by_id.get(self._absolute(value["@id"]))
            if target is not None:
                return target.properties, target.pointer
        return value, pointer

    def about(
        self,
        types: tuple[str, ...],
        url: str,
        titles: Sequence[str] = (),
        is_known: Callable[[str], bool] = lambda _: True,
    ) -> list[Entity]:
        """Return the entities of these types that a record can be made from; without types, all of the page.

        Several entities with different names, none of them of this site, are a list of others: then the result is
        empty. An entity that names another domain belongs to that domain, such as the agency that made the site.
        `titles` are the title and heading of the page: they name its article, product or event. An organization
        without an address counts if `is_known` knows its name.
        """
        every = list(self._reachable())
        found = [one for one in every if not types or is_a(one, types)]
        if not found and "Recipe" in types:
            found = [one for one in every if is_a(one, ("Article",))]
        if not found and ("Article" in types or "Recipe" in types):
            # Sites also state author and date of an article as those of its page.
            found = [one for one in every if "WebPage" in one.types and _is_at(one, url)]
        if "Product" in types:
            found += self._loose_offers(found)
        if not types or not found:
            return found
        if "Recipe" in types and _are_one(found):
            return found  # also one that another site published first
        if not _are_organizations(types):
            return self._main(found, url, titles)
        nearest = min(_distance(one, url) for one in found)
        if nearest == _OTHER_DOMAIN:
            return []
        found = [one for one in found if _distance(one, url) == nearest]
        if nearest == _NO_DOMAIN:
            found = [one for one in found if not _name_of(one) or is_known(_name_of(one))]
        names = {name.casefold() for one in found if (name := _name_of(one))}
        if len(names) < 2:
            return found
        return [] if nearest else found[:1]

    def _loose_offers(self, products: Sequence[Entity]) -> list[Entity]:
        """The only offer of a page that no product contains, if no product has one."""
        if len(products) > 1 or any("offers" in one.properties for one in products):
            return []
        found = [one for one in self._roots if one.types & {"Offer", "AggregateOffer"}]
        return found if len(found) == 1 else []

    def _main(self, found: list[Entity], url: str, titles: Sequence[str]) -> list[Entity]:
        """Return the main entity of a page, perhaps described several times; of a list of others, none."""
        names = {name.casefold() for one in found if (name := _name_of(one))}
        if len(names) < 2:
            near = [one for one in found if _distance(one, url) < _OTHER_DOMAIN]
            if (
                near
                and not any(_is_at(one, url) for one in near)
                and _is_about_another(next(iter(names), ""), url, titles)
            ):
                return []
            return near or [one for one in found if _is_titled(one, titles)]
        own = [one for one in found if _is_at(one, url)]
        named = [one for one in own or found if _is_titled(one, titles)]
        main = named or own
        first = {_name_of(one).casefold() for one in main[:1]}
        return [one for one in main if _name_of(one).casefold() in first]

    def _reachable(self) -> Iterator[Entity]:
        seen: set[str] = set()
        for root in self._roots[:_MAX_ENTITIES]:
            yield from self._under(root, seen, 0)

    def _under(self, found: Entity, seen: set[str], depth: int) -> Iterator[Entity]:
        if found.pointer in seen or depth > _MAX_STEPS or len(seen) > _MAX_ENTITIES:
            return
        seen.add(found.pointer)
        yield found
        for name in _OF_SITES if found.types & _SITES else _MAIN:
            for value, pointer in values(found.properties.get(name), step(found.pointer, name)):
                value, pointer = self.followed(value, pointer)
                if isinstance(value, dict):
                    yield from self._under(entity(value, pointer), seen, depth + 1)


def _roots(value: dict[str, Any], pointer: str) -> list[Entity]:
    graph = value.get("@graph")
    members = [entity(one, at) for one, at in values(graph, f"{pointer}/@graph") if isinstance(one, dict)]
    own = entity(value, pointer)
    return [own, *members] if own.types or not members else members


def _is_reference(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("@id"), str) and set(value) <= {"@id", "@type"}


def entity(value: Mapping[str, Any], pointer: str) -> Entity:
    """Make an entity from an object in JSON-LD, or from an item of microdata, RDFa or microformats."""
    if isinstance(value.get("properties"), dict) and set(value) <= _ITEM:
        return Entity(_item_types(value), value["properties"], f"{pointer}/properties")
    if isinstance(value.get("value"), str) and set(value) <= _ITEM:
        return Entity(_types(value.get("type")), value, pointer)
    return Entity(_types(value.get("@type")), value, pointer)


def values(value: Any, pointer: str) -> Iterator[tuple[Any, str]]:
    """Yield each item of a list with its pointer; any other value itself."""
    if isinstance(value, list):
        for at, one in enumerate(value):
            if isinstance(one, list):
                yield from values(one, f"{pointer}/{at}")
            else:
                yield one, f"{pointer}/{at}"
    elif value is not None:
        yield value, pointer


def _types(value: Any) -> frozenset[str]:
    named = value if isinstance(value, list) else str(value).split() if value else []
    return frozenset(local(one) for one in named if isinstance(one, str))


def _item_types(item: Mapping[str, Any]) -> frozenset[str]:
    """Return the types of an item. A card whose name is its organization describes that, any other a person."""
    types = _types(item.get("type"))
    if "h-card" in types:
        name = item["properties"].get("name")
        types |= {"Organization" if name and item["properties"].get("org") == name else "Person"}
    return types | {_MICROFORMATS[one] for one in types & _MICROFORMATS.keys()}


def local(name: str) -> str:
    """`https://schema.org/Organization`, `schema:Organization` -> `Organization`."""
    return name.strip().rstrip("/").rpartition("/")[2].rpartition("#")[2].rpartition(":")[2]


def is_a(found: Entity, types: tuple[str, ...]) -> bool:
    return any(one in found.types or found.types & _KINDS.get(one, frozenset()) for one in types)


def _are_organizations(types: tuple[str, ...]) -> bool:
    return any(one == "Organization" or one in _KINDS["Organization"] for one in types)


def _name_of(found: Entity) -> str:
    """Return the headline or name of an entity."""
    for key in ("headline", "name", "title"):
        for value, _ in values(found.properties.get(key), ""):
            if isinstance(value, str) and value.strip():
                return " ".join(value.split())
    return ""


def _are_one(found: Sequence[Entity]) -> bool:
    """Whether all have the same name, perhaps with more words: `Bean soup` and `Bean soup recipe`."""
    names = sorted((set(_name_of(one).casefold().split()) for one in found), key=len)
    return len(found) == 1 or (bool(names[0]) and all(names[0] <= name for name in names))


def _is_at(found: Entity, url: str) -> bool:
    """Return whether the entity says that it is on this page."""
    said = [value for key in ("url", "@id", "mainEntityOfPage") for value, _ in values(found.properties.get(key), "")]
    said = [one.get("@id") or one.get("url") if isinstance(one, dict) else one for one in said]
    return any(_page(one) == _page(url) for one in said if isinstance(one, str))


def _page(url: str) -> str:
    return url.partition("#")[0].partition("?")[0].rstrip("/").partition("://")[2].removeprefix("www.")


def _is_titled(found: Entity, titles: Sequence[str]) -> bool:
    """Return whether the title or heading of the page has most words of the entity's name."""
    words = set(_name_of(found).casefold().split())
    return bool(words) and any(
        len(words & set(title.casefold().split())) >= _SAME_NAME * len(words) for title in titles if title
    )


def _is_about_another(name: str, url: str, titles: Sequence[str]) -> bool:
    """Return whether title and heading agree on a thing, and have no word of the name: the data are of a teaser."""
    if len(titles) != _TITLE_AND_HEADING:
        return False
    title, heading = (_long_words(one) for one in titles)
    if not heading or not heading <= title or heading <= _in_host(heading, url):
        return False
    wanted = _long_words(name)
    return bool(wanted) and not wanted & (title | heading) and all(word.isascii() for word in wanted | heading)


def _long_words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text.casefold()) if len(word) >= _MIN_WORD}


def _in_host(words: set[str], url: str) -> set[str]:
    """Return the words that are in the address of the site: its own name."""
    host = _host(url)
    return {word for word in words if word in host}


def _distance(found: Entity, url: str) -> int:
    """0: it names this host; 1: this domain; 2: no domain; 3: another domain."""
    named = [_host(one) for key in ("url", "@id") for one, _ in values(found.properties.get(key), "")]
    named = [one for one in named if one]
    if not named:
        return 2
    ours = _host(url)
    if ours in named:
        return 0
    return 1 if registrable_domain(ours) in map(registrable_domain, named) else _OTHER_DOMAIN


def _host(url: Any) -> str:
    try:
        host = urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return ""
    return (host or "").removeprefix("www.")
