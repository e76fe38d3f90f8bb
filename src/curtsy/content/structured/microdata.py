"""Microdata: items with `itemref`, several types, and items within items.

https://html.spec.whatwg.org/multipage/microdata.html, and two things that schema.org's examples and pages use:
`content` on any element, and `-input` properties of actions.
"""

from __future__ import annotations

from typing import Any

from selectolax.lexbor import LexborNode

from curtsy.content.structured.things import Thing, as_data
from curtsy.content.structured.values import Attributes, Values, attribute, elements, words

_MAX_REFERENCES = 1_000


def read(root: LexborNode, values: Values) -> list[dict[str, Any]]:
    """Return the items that are not the value of a property of another."""
    found = elements(root, "[itemscope],[itemprop]")
    scopes = _Scopes(root, found, values)
    top: list[Thing] = []
    values.read_inner_first([node for node, attributes in found if _has_text(node, attributes)])
    for node, attributes in found:
        item = scopes.items.get(node.mem_id)
        names = words(attributes, "itemprop")
        owners = scopes.owners(node) if names else ()
        if owners:
            value = item if item is not None else _value(node, attributes, values)
            for owner in owners:
                owner.add(names, value)
        elif item is not None:
            top.append(item)
    for node, attributes in reversed(found):
        item = scopes.items.get(node.mem_id)
        if item is not None and not item.properties:
            text = _value(node, attributes, values)
            item.value = text if isinstance(text, str) else None
    return as_data(top)


class _Scopes:
    """The items of a page, and which of them an element belongs to."""

    def __init__(self, root: LexborNode, found: list[tuple[LexborNode, Attributes]], values: Values) -> None:
        self.items: dict[int, Thing] = {}
        self._known: dict[int, tuple[Thing, ...]] = {}
        #: items that are values: an item that refers to one has the item itself, not its properties
        self._closed: set[int] = set()
        referrers: dict[str, list[Thing]] = {}
        for node, attributes in found:
            if "itemscope" in attributes:
                item = Thing(words(attributes, "itemtype"), values.url(attributes.get("itemid")))
                self.items[node.mem_id] = item
                if "itemprop" in attributes:
                    self._closed.add(node.mem_id)
                for name in words(attributes, "itemref")[:_MAX_REFERENCES]:
                    referrers.setdefault(name, []).append(item)
        self._referrers = _referred(root, referrers) if referrers else {}

    def owners(self, node: LexborNode) -> tuple[Thing, ...]:
        """Return the item around an element, and items that refer to it or to an element between them."""
        own = self._referrers.get(node.mem_id, ())
        path: list[int] = []
        above = node.parent
        around: tuple[Thing, ...] = ()
        while above is not None:
            name = above.mem_id
            if (known := self._known.get(name)) is not None:
                around = known
                break
            if (item := self.items.get(name)) is not None:
                # The standard knows no reference to an item that is no value; pages refer to its properties.
                around = (item,) if name in self._closed else (item, *self._referrers.get(name, ()))
                break
            path.append(name)
            above = above.parent
        for name in reversed(path):
            if more := self._referrers.get(name):
                around = tuple(dict.fromkeys((*around, *more)))
            self._known[name] = around
        return tuple(dict.fromkeys((*around, *own))) if own else around


def _referred(root: LexborNode, referrers: dict[str, list[Thing]]) -> dict[int, tuple[Thing, ...]]:
    """Element -> the items that refer to it. The first element with an id counts."""
    found: dict[int, tuple[Thing, ...]] = {}
    for node in root.css("[id]"):
        if items := referrers.pop(node.attributes.get("id") or "", None):
            found[node.mem_id] = tuple(items)
    return found


def _value(node: LexborNode, attributes: Attributes, values: Values) -> Any:
    tag = node.tag
    content = attribute(attributes, "content")
    if tag == "meta":
        return content
    if (address := values.address(tag, attributes)) is not None:
        return address
    if tag in ("data", "meter"):
        return attribute(attributes, "value") or content
    if tag == "time" and (moment := attribute(attributes, "datetime")):
        return moment
    if content:
        return content
    if tag == "input" and attributes.get("itemprop", "") and (found := _action_input(attributes)):
        return found
    return values.text(node)


def _has_text(node: LexborNode, attributes: Attributes) -> bool:
    """Whether its text may be its value."""
    return (
        "itemscope" not in attributes and "content" not in attributes and node.tag not in ("meta", "a", "link", "img")
    )


def _action_input(attributes: Attributes) -> dict[str, Any] | None:
    """https://schema.org/docs/actions.html#part-4."""
    if not (attributes.get("itemprop") or "").strip().endswith(("-input", "-output")):
        return None
    found: dict[str, Any] = {"valueRequired": True} if "required" in attributes else {}
    if name := attribute(attributes, "name"):
        found["valueName"] = name
    return found or None
