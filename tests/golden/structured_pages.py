"""Pages with known structured data: `structured/*.html`. The JSON file beside each has the expected data by kind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from curtsy.content.document import Document

FOLDER = Path(__file__).parent / "structured"
URL = "https://site.example/dir/page"
KINDS = ("json-ld", "opengraph", "twitter", "dublin-core", "meta", "microdata", "rdfa", "microformats")


@dataclass(frozen=True)
class Page:
    name: str
    body: bytes
    #: kind -> items, in the order of the page
    expected: dict[str, list[Any]]


def pages() -> list[Page]:
    return [
        Page(path.stem, path.with_suffix(".html").read_bytes(), json.loads(path.read_text("utf-8")))
        for path in sorted(FOLDER.glob("*.json"))
    ]


def found(body: bytes, url: str = URL) -> dict[str, list[Any]]:
    """What Curtsy reads, by kind."""
    by_kind: dict[str, list[Any]] = {}
    for entry in Document.parse(body, "text/html; charset=utf-8", url).structured():
        by_kind.setdefault(entry["kind"], []).append(entry["data"])
    return by_kind


def leaves(data: Any) -> Iterator[str]:
    """The texts and numbers in data, without names of types and properties."""
    if isinstance(data, dict):
        for name, value in data.items():
            if name not in ("type", "vocab", "@context", "@type"):
                yield from leaves(value)
    elif isinstance(data, list):
        for value in data:
            yield from leaves(value)
    elif isinstance(data, str | int | float) and not isinstance(data, bool):
        yield str(data)
