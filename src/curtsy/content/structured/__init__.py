"""The structured data of a page: JSON-LD, meta elements, microdata, RDFa, microformats.

`read` returns what the page states. Each syntax has one module. Every value has its own bytes in the page: an empty or
missing attribute or text has no value. `tidy` limits the size and depth of the result, so that JSON pointers lead into
a bounded JSON document. Bad content never raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from selectolax.lexbor import LexborNode

from curtsy.content.structured import json_ld, meta_tags, microdata, microformats, rdfa
from curtsy.content.structured.tidy import tidy
from curtsy.content.structured.values import Values

__all__ = ["read", "tidy"]


def read(root: LexborNode, metas: Iterable[LexborNode], base_url: str) -> list[dict[str, Any]]:
    """[{"kind": ..., "data": ...}, ...]: JSON-LD, then meta elements, microdata, RDFa, microformats.

    An entry of JSON-LD that was not valid JSON has `repaired`: what was repaired.
    """
    values = Values(base_url)
    found = [*json_ld.read(root), *meta_tags.read(metas)]
    for kind, items in (
        ("microdata", microdata.read(root, values)),
        ("rdfa", rdfa.read(root, values)),
        ("microformats", microformats.read(root, values)),
    ):
        found += [{"kind": kind, "data": item} for item in items]
    return found
