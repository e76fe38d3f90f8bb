"""Values of microformats: by the prefix of the property, by parts (the value class pattern), and implied ones."""

from __future__ import annotations

import re

from selectolax.lexbor import LexborNode

from curtsy.content.structured.values import Attributes, Values, attribute, words

_MAX_PARTS = 20
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?|[0-9]{4}-[0-9]{3}")
_TIME = re.compile(r"[0-9]{1,2}(?::[0-9]{2}){0,2}(?: ?[ap]\.?m\.?)?(?:Z|[+-][0-9]{1,2}:?(?:[0-9]{2})?)?", re.IGNORECASE)
_ZONE = re.compile(r"Z|[+-][0-9]{1,2}:?(?:[0-9]{2})?")


def value(prefix: str, node: LexborNode, attributes: Attributes, parts: list[LexborNode], values: Values) -> str | None:
    """Return the value of a property; None if the page has no bytes for it."""
    if prefix == "e":
        return values.text(node)
    if prefix == "u" and (url := _address(node, attributes, values)) is not None:
        return url
    found = _from_parts(prefix, parts, values) if parts else None
    if found is None:
        found = _from_attributes(prefix, node, attributes)
    if found is None and node.tag not in ("img", "area"):
        found = values.text(node) or (_image_text(node) if prefix == "p" else None)
    return values.url(found) if prefix == "u" and found is not None and "://" in found else found


def _address(node: LexborNode, attributes: Attributes, values: Values) -> str | None:
    found = values.address(node.tag, attributes)
    return values.url(attributes.get("poster")) if found is None and node.tag == "video" else found


def _from_attributes(prefix: str, node: LexborNode, attributes: Attributes) -> str | None:
    tag = node.tag
    if prefix == "dt" and tag in ("time", "ins", "del"):
        return attribute(attributes, "datetime")
    if tag in ("abbr", "link"):
        return attribute(attributes, "title")
    if tag in ("data", "input"):
        return attribute(attributes, "value")
    return attribute(attributes, "alt") if tag in ("img", "area") and prefix == "p" else None


def _image_text(node: LexborNode) -> str | None:
    images = (attribute(one.attributes, "alt") for one in node.iter() if one.tag == "img")
    return next((alt for alt in images if alt), None)


def _from_parts(prefix: str, parts: list[LexborNode], values: Values) -> str | None:
    found = [text for part in parts[:_MAX_PARTS] if (text := _part(prefix, part, values))]
    if prefix != "dt":
        return "".join(found) or None
    if len(found) == 1:
        return found[0]
    date = next((one for one in found if _DATE.fullmatch(one)), None)
    time = next((one for one in found if _TIME.fullmatch(one) and one != date), None)
    zone = next((one for one in found if _ZONE.fullmatch(one) and one != time), None)
    return " ".join(one for one in (date, (time or "") + (zone or "")) if one) or None


def _part(prefix: str, node: LexborNode, values: Values) -> str | None:
    attributes = node.attributes
    if "value-title" in words(attributes, "class"):
        return attribute(attributes, "title")
    return _from_attributes(prefix, node, attributes) or values.text(node)


def implied_name(node: LexborNode, attributes: Attributes, values: Values) -> str | None:
    """Return the name of an item without properties: of its only image, else its text."""
    for one in (node, *_only_children(node)):
        own = attributes if one is node else one.attributes
        name = attribute(own, "alt" if one.tag in ("img", "area") else "title")
        if name and one.tag in ("img", "area", "abbr"):
            return name
    return values.text(node)


def implied_url(node: LexborNode, attributes: Attributes, tags: tuple[str, ...], values: Values) -> str | None:
    """Return the URL of an item that is such an element, or whose only such child it is."""
    if node.tag in tags:
        return values.address(node.tag, attributes)
    for around in (node, *_only_children(node)[:1]):
        for tag in tags:
            inner = [one for one in around.iter() if one.tag == tag]
            if len(inner) == 1 and not _is_item(inner[0]):
                return values.address(tag, inner[0].attributes)
    return None


def _only_children(node: LexborNode) -> list[LexborNode]:
    """Return the only child of an element, and its only child."""
    found: list[LexborNode] = []
    while len(found) < 2:
        inner = list(node.iter())
        if len(inner) != 1 or _is_item(inner[0]):
            break
        node = inner[0]
        found.append(node)
    return found


def _is_item(node: LexborNode) -> bool:
    return any(one.startswith("h-") for one in words(node.attributes, "class"))
