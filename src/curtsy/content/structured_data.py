"""The structured data of a page: JSON-LD, OpenGraph and other meta elements, microdata, RDFa Lite.

`read` gives what the page says, as it says it; `tidy` makes of it a JSON document of bounded size and depth, into which
JSON pointers lead. Bad content never raises.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from selectolax.lexbor import LexborNode

from curtsy.content import text
from curtsy.rules.urls import parse

_MAX_JSON_LENGTH = 1 << 20
_MAX_ITEMS = 1_000
_MAX_ITEM_NAMES = 16
_MAX_VALUE_LENGTH = 2_000
#: of a tidied document: what lies deeper or comes later is left out
_MAX_DEPTH = 24
_MAX_NODES = 20_000
_MAX_TEXT = 20_000


def read(root: LexborNode, metas: Iterable[LexborNode], base_url: str) -> list[dict[str, Any]]:
    """[{"kind": ..., "data": ...}, ...]: first JSON-LD, then OpenGraph, meta, microdata, RDFa."""
    found = [{"kind": "json-ld", "data": data} for data in _json_ld(root)]
    opengraph, meta = _metas(metas)
    if opengraph:
        found.append({"kind": "opengraph", "data": opengraph})
    if meta:
        found.append({"kind": "meta", "data": meta})
    found += [{"kind": "microdata", "data": item} for item in _microdata(root, base_url)]
    return found + [{"kind": "rdfa", "data": item} for item in _rdfa(root, base_url)]


def tidy(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same within bounds, and without numbers that JSON does not know."""
    return _Tidier().list(found, 0)


class _Tidier:
    def __init__(self) -> None:
        self._nodes = 0

    def list(self, values: list[Any], depth: int) -> list[Any]:
        return [self._value(one, depth + 1) for one in values if self._has_room(one, depth)]

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {
                str(key)[:_MAX_VALUE_LENGTH]: self._value(inner, depth + 1)
                for key, inner in value.items()
                if self._has_room(inner, depth)
            }
        if isinstance(value, list):
            return self.list(value, depth)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, str):
            return value[:_MAX_TEXT].encode("utf-8", "replace").decode()
        return value if value is None or isinstance(value, bool) or abs(value) < 1 << 63 else None

    def _has_room(self, inner: Any, depth: int) -> bool:
        self._nodes += 1
        return self._nodes <= _MAX_NODES and not (depth >= _MAX_DEPTH and isinstance(inner, dict | list))


def _json_ld(root: LexborNode) -> list[Any]:
    found: list[Any] = []
    for script in root.css("script[type]"):
        kind = (script.attributes.get("type") or "").partition(";")[0].strip().lower()
        if kind != "application/ld+json":
            continue
        source = script.text()
        if len(source) > _MAX_JSON_LENGTH:
            continue
        try:
            data = json.loads(source, strict=False)
        except (ValueError, RecursionError):
            continue
        found.extend(item for item in (data if isinstance(data, list) else [data]) if isinstance(item, dict))
    return found[:_MAX_ITEMS]


def _metas(nodes: Iterable[LexborNode]) -> tuple[dict[str, Any], dict[str, Any]]:
    """OpenGraph and its relatives by property, everything else by name; a name given twice has a list."""
    opengraph: dict[str, Any] = {}
    meta: dict[str, Any] = {}
    for node in nodes:
        attributes = node.attributes
        content = attributes.get("content")
        if not content:
            continue
        if prop := attributes.get("property"):
            _put(opengraph, prop.strip().lower(), content.strip())
        elif name := attributes.get("name"):
            _put(meta, name.strip().lower(), content.strip())
    return opengraph, meta


def _put(data: dict[str, Any], key: str, value: Any) -> None:
    if key not in data:
        data[key] = value
    elif isinstance(data[key], list):
        data[key].append(value)
    else:
        data[key] = [data[key], value]


def _microdata(root: LexborNode, base_url: str) -> list[dict[str, Any]]:
    """Top-level items with their properties; an item within an item is the value of its property."""
    items = _Items()
    for node, attributes in _elements(root, "[itemscope],[itemprop]"):
        item: dict[str, Any] | None = None
        if "itemscope" in attributes:
            item = items.begin(node, (attributes.get("itemtype") or "").strip())
        names = (attributes.get("itemprop") or "").split()
        items.add(node, names, item if item is not None else _item_value(node, attributes, base_url))
    return items.top


def _rdfa(root: LexborNode, base_url: str) -> list[dict[str, Any]]:
    """RDFa Lite, in the form of microdata. What is outside of any `typeof`, as OpenGraph does, is of no thing."""
    items = _Items()
    for node, attributes in _elements(root, "[typeof],[property]"):
        item: dict[str, Any] | None = None
        if (kind := (attributes.get("typeof") or "").strip()) or "typeof" in attributes:
            item = items.begin(node, _with_vocabulary(node, kind))
        names = [name.removeprefix("schema:") for name in (attributes.get("property") or "").split()]
        items.add(node, names, item if item is not None else _rdfa_value(node, attributes, base_url))
    return items.top


def _elements(root: LexborNode, css: str) -> Iterable[tuple[LexborNode, dict[str, str | None]]]:
    # An element that matches both is found twice.
    nodes = {node.mem_id: node for node in root.css(css)[: _MAX_ITEMS * 5]}
    return ((node, node.attributes) for node in nodes.values())


class _Items:
    """Things and their properties, by the elements that begin them."""

    def __init__(self) -> None:
        self.top: list[dict[str, Any]] = []
        self._by_node: dict[int, dict[str, Any]] = {}

    def begin(self, node: LexborNode, kind: str) -> dict[str, Any]:
        item: dict[str, Any] = {"properties": {}}
        if kind:
            item["type"] = kind
        self._by_node[node.mem_id] = item
        return item

    def add(self, node: LexborNode, names: list[str], value: Any) -> None:
        owner = self._owner(node)
        if owner is not None and names:
            for name in names[:_MAX_ITEM_NAMES]:
                _put(owner["properties"], name, value)
        elif isinstance(value, dict) and len(self.top) < _MAX_ITEMS:
            self.top.append(value)

    def _owner(self, node: LexborNode) -> dict[str, Any] | None:
        parent = node.parent
        for _ in range(256):
            if parent is None:
                return None
            if (item := self._by_node.get(parent.mem_id)) is not None:
                return item
            parent = parent.parent
        return None


def _with_vocabulary(node: LexborNode, kind: str) -> str:
    """The first type as a whole name, by the nearest `vocab`."""
    name = kind.split()[0] if kind else ""
    if not name or ":" in name:
        return name
    at: LexborNode | None = node
    for _ in range(256):
        if at is None:
            break
        if vocabulary := (at.attributes.get("vocab") or "").strip():
            return vocabulary + name if vocabulary[-1] in "/#" else f"{vocabulary}/{name}"
        at = at.parent
    return name


def _rdfa_value(node: LexborNode, attributes: dict[str, str | None], base_url: str) -> str:
    if (content := attributes.get("content")) is not None:
        return content.strip()
    if resource := (attributes.get("resource") or "").strip():
        return parse(resource, base_url) or resource
    return _item_value(node, attributes, base_url)


_URL_ATTRIBUTES = {"a": "href", "area": "href", "link": "href", "img": "src", "audio": "src", "video": "src"} | {
    "embed": "src",
    "iframe": "src",
    "source": "src",
    "track": "src",
    "object": "data",
}


def _item_value(node: LexborNode, attributes: dict[str, str | None], base_url: str) -> str:
    tag = node.tag or ""
    # Only of meta elements by the standard; schema.org's own examples have it on others too.
    if tag == "meta" or attributes.get("content"):
        return (attributes.get("content") or "").strip()
    if (attribute := _URL_ATTRIBUTES.get(tag)) is not None:
        href = attributes.get(attribute) or ""
        return parse(href, base_url) or href
    if tag in ("data", "meter"):
        return (attributes.get("value") or "").strip()
    if tag == "time" and attributes.get("datetime"):
        return (attributes["datetime"] or "").strip()
    return " ".join(text.text(node, _MAX_VALUE_LENGTH).split())
