"""Content that a server streams after the page and that a script moves to its placeholder, as React does.

The page has `<template id="B:2">` where the content belongs, and after it a substitute up to `<!--/$-->`. Later it
has `<div hidden id="S:2">` with the content, and a script that calls `$RC("B:2", "S:2")`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborNode

from curtsy.content.walk import Placement

_CALL = re.compile(r"\$R[A-Z]\(\"([^\"\\]{1,60})\",\s?\"([^\"\\]{1,60})\"")
#: siblings of all placeholders together that are examined
_MAX_SIBLINGS = 20_000


def placements_of(root: LexborNode) -> dict[int, Placement]:
    """Return the streamed content of a page by the `mem_id` of its placeholder."""
    holders = _by_id(root.css("template[id]"))
    if not holders:
        return {}
    contents = _by_id(root.css("[hidden][id]"))
    found: dict[int, Placement] = {}
    left = _MAX_SIBLINGS
    for one, other in _pairs(root):
        holder = holders.get(one) or holders.get(other)
        content = contents.get(other) or contents.get(one)
        if holder is not None and content is not None and holder.mem_id not in found:
            last, looked = _last_replaced(holder, left)
            left -= looked
            found[holder.mem_id] = Placement(content, last)
    return found


def _by_id(nodes: list[LexborNode]) -> dict[str, LexborNode]:
    """As in a browser, the first element with an id counts."""
    return {node.id: node for node in reversed(nodes) if node.id}


def _pairs(root: LexborNode) -> Iterator[tuple[str, str]]:
    for script in root.css("script"):
        source = script.text()
        if "$R" in source:
            yield from _CALL.findall(source)
    for node in root.css("template[data-bid][data-sid]"):
        yield node.attributes.get("data-bid") or "", node.attributes.get("data-sid") or ""


def _last_replaced(holder: LexborNode, left: int) -> tuple[LexborNode, int]:
    """Return the last node of the substitute, or the placeholder itself, and how many nodes were examined."""
    before = holder.prev
    if before is None or not (before.comment_content or "").startswith("$"):
        return holder, 0
    open_boundaries, looked = 1, 0
    at = holder.next
    while at is not None and looked < left:
        looked += 1
        comment = at.comment_content if at.tag == "-comment" else None
        if comment is not None and comment.startswith("$"):
            open_boundaries += 1
        elif comment is not None and comment.startswith("/$"):
            open_boundaries -= 1
            if not open_boundaries:
                return at, looked
        at = at.next
    return holder, looked
