"""The things that a page's structured data describes, and which of them a record is about.

JSON-LD, microdata and RDFa become one form: a thing has types, properties, and the JSON pointer that leads to it.
References by `@id` within a page are followed.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from curtsy.grounding.json_schema import step
from curtsy.rules.urls import registrable_domain

#: properties that lead to what a thing is about
_MAIN = ("mainEntity", "mainEntityOfPage")
#: of a page or site: what it is about, and whose it is; an article may be about others, and published by them
_OF_SITES = ("mainEntity", "about", "publisher", "copyrightHolder", "provider")
_SITES = frozenset(("WebSite", "WebPage", "AboutPage", "ContactPage"))
_MAX_THINGS = 500
#: how strange a thing is to a site if it names another one
_ANOTHERS = 3
_MAX_STEPS = 4
#: type -> types that are kinds of it
_KINDS: dict[str, frozenset[str]] = {
    name: frozenset(kinds)
    for name, kinds in tomllib.loads((Path(__file__).parent / "kinds.toml").read_text("utf-8")).items()
}


@dataclass(frozen=True, slots=True)
class Thing:
    """Something that structured data describes."""

    #: local names: `Organization`
    types: frozenset[str]
    properties: Mapping[str, Any]
    #: leads to `properties`
    pointer: str


class Things:
    """All that a page's data describes."""

    def __init__(self, data: list[dict[str, Any]]) -> None:
        self._by_id: dict[str, Thing] = {}
        self._roots: list[Thing] = []
        for at, entry in enumerate(data):
            if entry.get("kind") in ("json-ld", "microdata", "rdfa") and isinstance(entry.get("data"), dict):
                self._roots += _roots(entry["data"], f"/{at}/data")
                self._name(entry["data"], f"/{at}/data")

    def _name(self, value: Any, pointer: str) -> None:
        """Remembers what references may lead to. The data is tidied, so it is not deep."""
        if isinstance(value, dict):
            name = value.get("@id")
            if isinstance(name, str) and not _is_reference(value):
                self._by_id.setdefault(name, thing(value, pointer))
            for key, inner in value.items():
                if isinstance(inner, dict | list):
                    self._name(inner, step(pointer, key))
        elif isinstance(value, list):
            for at, inner in enumerate(value):
                self._name(inner, f"{pointer}/{at}")

    def followed(self, value: Any, pointer: str) -> tuple[Any, str]:
        """The value, or what a reference leads to."""
        if isinstance(value, dict) and _is_reference(value):
            target = self._by_id.get(value["@id"])
            if target is not None:
                return target.properties, target.pointer
        return value, pointer

    def about(self, types: tuple[str, ...], url: str) -> list[Thing]:
        """What a record about things of these types can be made from; of no types: whatever the page describes.

        Several that differ in name, none of them of this very site, are a list of others: then nothing is sure. One
        that names another domain is that one's: the agency that made the site.
        """
        found = [one for one in self._reachable() if not types or is_a(one, types)]
        if not types or not found:
            return found
        nearest = min(_strangeness(one, url) for one in found)
        if nearest == _ANOTHERS:
            return []
        found = [one for one in found if _strangeness(one, url) == nearest]
        names = {str(one.properties["name"]).casefold() for one in found if one.properties.get("name")}
        if len(names) < 2:
            return found
        return [] if nearest else found[:1]

    def _reachable(self) -> Iterator[Thing]:
        seen: set[str] = set()
        for root in self._roots[:_MAX_THINGS]:
            yield from self._under(root, seen, 0)

    def _under(self, found: Thing, seen: set[str], depth: int) -> Iterator[Thing]:
        if found.pointer in seen or depth > _MAX_STEPS or len(seen) > _MAX_THINGS:
            return
        seen.add(found.pointer)
        yield found
        for name in _OF_SITES if found.types & _SITES else _MAIN:
            for value, pointer in values(found.properties.get(name), step(found.pointer, name)):
                value, pointer = self.followed(value, pointer)
                if isinstance(value, dict):
                    yield from self._under(thing(value, pointer), seen, depth + 1)


def _roots(value: dict[str, Any], pointer: str) -> list[Thing]:
    graph = value.get("@graph")
    members = [thing(one, at) for one, at in values(graph, f"{pointer}/@graph") if isinstance(one, dict)]
    own = thing(value, pointer)
    return [own, *members] if own.types or not members else members


def _is_reference(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("@id"), str) and set(value) <= {"@id", "@type"}


def thing(value: Mapping[str, Any], pointer: str) -> Thing:
    """Of an object in JSON-LD, or of an item of microdata or RDFa."""
    if isinstance(value.get("properties"), dict) and set(value) <= {"properties", "type"}:
        return Thing(_types(value.get("type")), value["properties"], f"{pointer}/properties")
    return Thing(_types(value.get("@type")), value, pointer)


def values(value: Any, pointer: str) -> Iterator[tuple[Any, str]]:
    """Each of a list with its pointer; anything else itself."""
    if isinstance(value, list):
        for at, one in enumerate(value):
            yield one, f"{pointer}/{at}"
    elif value is not None:
        yield value, pointer


def _types(value: Any) -> frozenset[str]:
    named = value if isinstance(value, list) else str(value).split() if value else []
    return frozenset(local(one) for one in named if isinstance(one, str))


def local(name: str) -> str:
    """`https://schema.org/Organization`, `schema:Organization` -> `Organization`."""
    return name.strip().rstrip("/").rpartition("/")[2].rpartition("#")[2].rpartition(":")[2]


def is_a(found: Thing, types: tuple[str, ...]) -> bool:
    return any(one in found.types or found.types & _KINDS.get(one, frozenset()) for one in types)


def _strangeness(found: Thing, url: str) -> int:
    """0: it says that it is of this host; 1: of this domain; 2: it does not say; 3: it names another."""
    named = [_host(one) for key in ("url", "@id") for one, _ in values(found.properties.get(key), "")]
    named = [one for one in named if one]
    if not named:
        return 2
    ours = _host(url)
    if ours in named:
        return 0
    return 1 if registrable_domain(ours) in map(registrable_domain, named) else _ANOTHERS


def _host(url: Any) -> str:
    try:
        host = urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return ""
    return (host or "").removeprefix("www.")
