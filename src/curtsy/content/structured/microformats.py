"""Microformats2, and classic microformats by their classes, as items in the form of microdata.

http://microformats.org/wiki/microformats2-parsing. Only the types of its vocabularies are roots: classes such as
`h-full` belong to style sheets. `e-` properties are texts. The names of properties have no prefix: `p-name` is `name`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from selectolax.lexbor import LexborNode

from curtsy.content.structured import microformat_values
from curtsy.content.structured.things import Thing, as_data
from curtsy.content.structured.values import Attributes, Values, elements, words

_ROOTS = frozenset((
    "h-adr", "h-app", "h-breadcrumb", "h-card", "h-cite", "h-entry", "h-event", "h-feed", "h-geo", "h-item",
    "h-listing", "h-measure", "h-news", "h-org", "h-organization", "h-product", "h-recipe", "h-resume", "h-review",
    "h-review-aggregate",
))  # fmt: skip
_PROPERTY = re.compile(r"(p|u|dt|e)-((?:[a-z0-9]{1,32}-)?[a-z]{1,32}(?:-[a-z]{1,32}){0,8})")
#: a property: prefix and name
_Property = tuple[str, str]


def _classic() -> dict[str, tuple[str, Mapping[str, _Property]]]:
    """Root class -> type, and class -> property."""
    rules = tomllib.loads((Path(__file__).parent / "classic_microformats.toml").read_text("utf-8"))
    found: dict[str, tuple[str, Mapping[str, _Property]]] = {}
    for root, rule in rules.items():
        names = {name: (prefix, name) for prefix in ("p", "u", "dt") for name in rule.get(prefix, ())}
        for name, renamed in rule.get("renamed", {}).items():
            prefix, _, target = renamed.partition("-")
            names[name] = (prefix, target)
        found[root] = (rule["type"], names)
    return found


_CLASSIC = _classic()
_REVIEWED = _CLASSIC.pop("item")
_ANY_ROOT = ",".join(f".{name}" for name in (*sorted(_ROOTS), *_CLASSIC))


@dataclass(slots=True, eq=False)
class _Root:
    """An element that is an item."""

    node: LexborNode
    attributes: Attributes
    thing: Thing
    #: classes of the properties of a classic item
    classic: Mapping[str, _Property] | None
    #: prefixes of its properties
    prefixes: set[str] = field(default_factory=set)
    has_items: bool = False


def read(root: LexborNode, values: Values) -> list[dict[str, Any]]:
    """Return the items that are not in another."""
    if root.css_first(_ANY_ROOT) is None:
        return []
    reader = _Reader(values)
    found = elements(root, "[class],[rel~=bookmark]")
    for node, attributes in found:
        reader.classify(node, attributes)
    values.read_inner_first([node for node, _ in found if reader.has_text(node)])
    for node, attributes in found:
        reader.read(node, attributes)
    reader.imply()
    return as_data(reader.top)


class _Reader:
    def __init__(self, values: Values) -> None:
        self.top: list[Thing] = []
        self._values = values
        self._roots: dict[int, _Root] = {}
        #: element -> the root around it; None: no root
        self._around: dict[int, _Root | None] = {}
        self._properties: dict[int, list[_Property]] = {}
        #: element with a property -> elements in it that have parts of its value
        self._parts: dict[int, list[LexborNode]] = {}

    def classify(self, node: LexborNode, attributes: Attributes) -> None:
        """Find out what an element is, after the elements around it."""
        classes = words(attributes, "class")
        owner = self._owner(node)
        if owner is not None:
            properties = _properties(classes, owner.classic)
            if owner.classic is not None and "entry-title" in owner.classic and "bookmark" in words(attributes, "rel"):
                properties.append(("u", "url"))
            if properties:
                self._properties[node.mem_id] = properties
            elif "value" in classes or "value-title" in classes:
                self._add_part(node)
        thing = _thing(classes)
        if thing is None and owner is not None and owner.classic is not None and "item" in classes:
            thing = _reviewed(owner.classic)
        if thing is not None:
            self._roots[node.mem_id] = _Root(node, attributes, *thing)

    def _owner(self, node: LexborNode) -> _Root | None:
        path: list[int] = []
        above, found = node.parent, None
        while above is not None:
            name = above.mem_id
            if (root := self._roots.get(name)) is not None:
                found = root
                break
            if name in self._around:
                found = self._around[name]
                break
            path.append(name)
            above = above.parent
        self._around.update(dict.fromkeys(path, found))
        return found

    def _add_part(self, node: LexborNode) -> None:
        """Add a part to the property around it, if nothing else is in between."""
        above = node.parent
        for _ in range(_MAX_PART_DEPTH):
            if above is None or above.mem_id in self._roots:
                return
            if above.mem_id in self._properties:
                self._parts.setdefault(above.mem_id, []).append(node)
                return
            above = above.parent

    def has_text(self, node: LexborNode) -> bool:
        """Whether its text may be its value."""
        return node.mem_id in self._properties and node.mem_id not in self._roots and node.tag not in ("a", "img")

    def read(self, node: LexborNode, attributes: Attributes) -> None:
        root, properties = self._roots.get(node.mem_id), self._properties.get(node.mem_id, [])
        if root is None and not properties:
            return
        owner = self._owner(node)
        if root is not None:
            if owner is None:
                self.top.append(root.thing)
                return
            owner.has_items = True
            if not properties:
                owner.thing.children.append(root.thing)
        if owner is not None:
            for prefix, name in properties:
                owner.prefixes.add(prefix)
                owner.thing.add((name,), root.thing if root else self._value(prefix, node, attributes))

    def _value(self, prefix: str, node: LexborNode, attributes: Attributes) -> str | None:
        parts = self._parts.get(node.mem_id, [])
        return microformat_values.value(prefix, node, attributes, parts, self._values)

    def imply(self) -> None:
        """Add name, photo and URL to items that do not state them, as the standard says."""
        for root in reversed(self._roots.values()):
            if root.classic is None and not root.has_items:
                known = root.thing.properties
                if "name" not in known and not root.prefixes & {"p", "e"}:
                    name = microformat_values.implied_name(root.node, root.attributes, self._values)
                    root.thing.add(("name",), name)
                if not root.prefixes & {"u"}:
                    for name, tags in (("photo", ("img", "object")), ("url", ("a", "area"))):
                        url = microformat_values.implied_url(root.node, root.attributes, tags, self._values)
                        root.thing.add((name,), url)
            if not root.thing.properties:
                root.thing.value = self._values.text(root.node)


_MAX_PART_DEPTH = 16


def _thing(classes: list[str]) -> tuple[Thing, Mapping[str, _Property] | None] | None:
    if types := sorted(one for one in classes if one in _ROOTS):
        return Thing(types), None
    found = [_CLASSIC[one] for one in classes if one in _CLASSIC]
    if not found:
        return None
    properties = {name: target for _, names in found for name, target in names.items()}
    return Thing(sorted({kind for kind, _ in found})), properties


def _reviewed(review: Mapping[str, _Property]) -> tuple[Thing, Mapping[str, _Property]] | None:
    """Return an item for what a classic review is about."""
    return (Thing([_REVIEWED[0]]), _REVIEWED[1]) if "item" in review else None


def _properties(classes: list[str], classic: Mapping[str, _Property] | None) -> list[_Property]:
    if classic is not None:
        return list(dict.fromkeys(classic[one] for one in classes if one in classic))
    found = (_PROPERTY.fullmatch(one) for one in classes)
    return [(one[1], one[2]) for one in found if one is not None]
