"""Meta elements: OpenGraph and its relatives, Twitter cards, Dublin Core, and all other names.

A key is in lower case; a key that is given twice has a list. OpenGraph also describes objects: `og:image:width` belongs
to the `og:image` before it. Entries of kind `opengraph` have such objects under `objects`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from selectolax.lexbor import LexborNode

from curtsy.content.structured.values import attribute

#: prefixes of OpenGraph that pages also write as `name`
_OPENGRAPH = frozenset((
    "og", "fb", "article", "book", "profile", "video", "music", "product", "place", "restaurant", "business", "al",
))  # fmt: skip
_DUBLIN_CORE = re.compile(r"(dc|dcterms)[.:]([a-z.]{1,64})")
#: roots of OpenGraph that can be given several times and have properties
_OBJECTS = ("og:image", "og:video", "og:audio")
_MAX_STEPS = 256


#: the kinds of entries
KINDS = ("opengraph", "twitter", "dublin-core", "meta")


def read(metas: Iterable[LexborNode]) -> list[dict[str, Any]]:
    """Return at most one entry of each kind."""
    found: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
    graph: list[tuple[str, str]] = []
    for node in metas:
        attributes = node.attributes
        content = attribute(attributes, "content")
        if content is None:
            continue
        names = (attributes.get("property") or "").lower().split()
        if names and not _is_of_item(node, names):
            for name in names:
                kind, key = place(name, "opengraph")
                _put(found[kind], key, content)
                graph.append((name, content))
        name = (attribute(attributes, "name") or _item_name(node) or "").lower()
        if name and name not in names:
            kind, key = place(name, "meta")
            _put(found[kind], key, content)
            graph.append((name, content))
    entries = [{"kind": kind, "data": data} for kind, data in found.items() if data]
    if objects := _objects(graph):
        entries[0]["objects"] = objects
    return entries


def place(name: str, otherwise: str) -> tuple[str, str]:
    """Return the kind and the key of a name; `otherwise` is the kind of names without a prefix that is known."""
    prefix, colon, _ = name.partition(":")
    if colon and prefix == "twitter":
        return "twitter", name
    if colon and prefix in _OPENGRAPH:
        return "opengraph", name
    if otherwise == "meta" and (found := _DUBLIN_CORE.fullmatch(name)) is not None:
        return "dublin-core", f"{found[1]}:{found[2]}"
    return otherwise, name


def _is_of_item(node: LexborNode, names: list[str]) -> bool:
    """Whether it is a property of an RDFa item around it: then its names have no prefix of OpenGraph."""
    if any(name.partition(":")[0] in _OPENGRAPH and ":" in name for name in names):
        return False
    above = node.parent
    for _ in range(_MAX_STEPS):
        if above is None or above.tag in ("head", "html"):
            return False
        if "typeof" in above.attributes:
            return True
        above = above.parent
    return False


def _item_name(node: LexborNode) -> str | None:
    """The name of microdata that belongs to no item: `<meta itemprop="datePublished">` in the head of a page."""
    name = attribute(node.attributes, "itemprop")
    above = node.parent if name else None
    for _ in range(_MAX_STEPS):
        if above is None:
            return name
        if "itemscope" in above.attributes:
            return None
        above = above.parent
    return None


def _put(data: dict[str, Any], key: str, value: str) -> None:
    if key not in data:
        data[key] = value
    elif isinstance(data[key], list):
        data[key].append(value)
    else:
        data[key] = [data[key], value]


def _objects(graph: Iterable[tuple[str, str]]) -> Mapping[str, list[dict[str, str]]]:
    """{"og:image": [{"url": ..., "width": ...}, ...]} of roots that have properties."""
    found: dict[str, list[dict[str, str]]] = {root: [] for root in _OBJECTS}
    for name, content in graph:
        root, part = _split(name)
        if root is None:
            continue
        many = found[root]
        if part == "url" and (not many or "url" in many[-1]) and many and many[-1]["url"] == content:
            continue  # `og:image:url` repeats `og:image`
        if part == "url" or not many:
            many.append({})
        many[-1].setdefault(part, content)
    return {root: many for root, many in found.items() if any(set(one) - {"url"} for one in many)}


def _split(name: str) -> tuple[str | None, str]:
    for root in _OBJECTS:
        if name == root:
            return root, "url"
        if name.startswith(root + ":"):
            return root, name[len(root) + 1 :]
    return None, ""
