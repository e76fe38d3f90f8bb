"""Which values of structured data have no bytes of their own in the page: they would be invented.

An independent parser (Python's html.parser) collects the attributes, the texts and the scripts of the page. A value
must be an attribute, an attribute as an absolute URL, or a part of the texts, after entities are decoded and blanks
removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import unescape
from html.parser import HTMLParser
from typing import Any

from curtsy.content.document import Document
from curtsy.rules.urls import parse

_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([bfnrt])|(.))", re.DOTALL)
_SURROGATES = re.compile("[\ud800-\udfff]+")
#: composed from several elements: each word must have its bytes
_COMPOSED = frozenset(("microformats",))
_NAMES = frozenset(("type", "vocab"))


@dataclass
class _Source(HTMLParser):
    base_url: str
    attributes: set[str] = field(default_factory=set)
    parts: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    inside: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style"):
            self.inside = tag
        for _, value in attrs:
            if value and value.strip():
                self._attribute(value)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.inside = ""

    def handle_endtag(self, tag: str) -> None:
        if tag == self.inside:
            self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts.append(data)
        elif not self.inside:
            self.parts.append(data)

    def _attribute(self, value: str) -> None:
        self.attributes.add(_squeezed(value))
        for word in (value.strip(), *value.split()):
            bare = word[1:-1] if word.startswith("[") and word.endswith("]") else word
            self.attributes.add(_squeezed(bare))
            if address := parse(bare, self.base_url):
                self.attributes.add(_squeezed(address))


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _plain(script: str) -> str:
    """A script with the escapes of its texts undone."""

    def plain(found: re.Match[str]) -> str:
        if found[1]:
            return chr(int(found[1], 16))
        return " " if found[2] else found[3]

    text = _ESCAPE.sub(plain, script)
    return _SURROGATES.sub(lambda found: found[0].encode("utf-16", "surrogatepass").decode("utf-16", "replace"), text)


def values(data: Any) -> Iterator[str]:
    """All values in data; not the names of types and vocabularies, which are made from several attributes."""
    if isinstance(data, dict):
        for name, value in data.items():
            if name not in _NAMES:
                yield from values(value)
    elif isinstance(data, list):
        for value in data:
            yield from values(value)
    elif isinstance(data, bool) or data is None:
        return
    else:
        yield str(data)


def invented(document: Document, body: str) -> list[tuple[str, str]]:
    """(kind, value) of the values without bytes of their own."""
    source = _Source(document.base_url)
    source.feed(body)
    source.close()
    texts = _squeezed("".join(source.parts))
    scripts = _squeezed(" ".join(_plain(script) for script in source.scripts))
    scripts += _squeezed(unescape(scripts)) + _squeezed(" ".join(source.scripts))

    def has_bytes(kind: str, value: str) -> bool:
        wanted = _squeezed(value)
        if kind == "json-ld":
            return wanted in scripts or wanted.removesuffix(".0") in scripts
        if wanted in source.attributes or (wanted and wanted in texts):
            return True
        return kind in _COMPOSED and all(
            word in source.attributes or word in texts for word in map(_squeezed, value.split())
        )

    return [
        (entry["kind"], value)
        for entry in document.structured()
        for value in values({name: part for name, part in entry.items() if name not in ("kind", "repaired")})
        if not has_bytes(entry["kind"], value)
    ]
