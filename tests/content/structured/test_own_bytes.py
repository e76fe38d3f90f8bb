"""No value without its own bytes in the page.

Pages are made at random from elements of all syntaxes, with attributes that are missing, empty, blank or relative.
Every text of the result must be a text of the page, or an attribute of it, before blanks are collapsed and URLs are
resolved.
"""

from __future__ import annotations

import html as html_entities
import re
from collections.abc import Iterator
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from curtsy.content.document import Document
from curtsy.rules.urls import parse

URL = "http://a.test/dir/page?q=1"
_TAGS = (
    *("div", "span", "a", "img", "link", "meta", "time", "data", "meter", "object", "audio", "video", "source"),
    *("iframe", "abbr", "area", "input", "b", "p"),
)
_NAMES = (
    *("itemscope", "itemprop", "itemtype", "itemid", "itemref", "id", "typeof", "property", "about", "resource", "rel"),
    *("rev", "vocab", "prefix", "datatype", "content", "href", "src", "data", "value", "datetime", "title", "alt"),
    *("poster", "class", "name"),
)
_CONTENTS = (
    *("", " ", "\n", "#", "x", "/rel", "rel y", "http://b.test/", "name", "og:title", "schema:name", "foaf: http://f/"),
    *(
        "h-card",
        "h-entry p-name",
        "p-author h-card u-url",
        "u-photo",
        "dt-start",
        "value",
        "vcard",
        "fn url",
        "2020-01",
    ),
    *("http://schema.org/", "Person", "&amp;", "javascript:x", "_:a", "[foaf:x]", "é", "&nbsp;", "license"),
)
_attribute = st.tuples(st.sampled_from(_NAMES), st.none() | st.sampled_from(_CONTENTS))
_element = st.tuples(
    st.sampled_from(_TAGS), st.lists(_attribute, max_size=6), st.sampled_from(("", " ", "word", "two  words", "&lt;"))
)
_SCRIPTS = ('{"a": "json text", "b": ["c\nd",]}', '<!-- {"a": 5} -->', '{"a": "cut', "{&quot;a&quot;: &quot;e&quot;}")
_page = st.tuples(st.lists(st.tuples(_element, st.booleans()), max_size=12), st.sampled_from(("", *_SCRIPTS)))


def _written(page: Any) -> str:
    """The elements one after the other, or one in the other."""
    elements, script = page
    parts = [f'<script type="application/ld+json">{script}</script>'] if script else []
    for (tag, attributes, text), closes in elements:
        inner = "".join(f" {name}" if content is None else f' {name}="{content}"' for name, content in attributes)
        # What is in an iframe is no text of the page.
        parts.append(f"<{tag}{inner}>{'' if tag == 'iframe' else text}" + (f"</{tag}>" if closes else ""))
    return "".join(parts)


def _texts(value: Any) -> Iterator[str]:
    """All texts but the names of types, vocabularies and properties, and the notes about repairs."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in ("type", "vocab", "kind", "repaired"):
                yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
    elif isinstance(value, str):
        yield value


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _has_bytes(value: str, html: str) -> bool:
    raw = [html_entities.unescape(one) for one in re.findall(r'="([^"]*)"', html)]
    if any(one.strip() and value in (_collapsed(one), one.strip(), parse(one.strip(), URL)) for one in raw):
        return True
    # A name of a thing in brackets is resolved without them.
    if any(one.startswith("[") and value == parse(one[1:-1], URL) for one in raw):
        return True
    seen = html_entities.unescape(re.sub(r"<[^<>]*>", "", html))
    return bool(_squeezed(value)) and _squeezed(value) in _squeezed(seen)


def _collapsed(text: str) -> str:
    return " ".join(text.split())


def _found(html: str) -> list[dict[str, Any]]:
    return Document.parse(html.encode(), "text/html; charset=utf-8", URL).structured()


@settings(max_examples=400, deadline=None, derandomize=True)
@given(_page)
@example(([(("div", [("itemscope", None)], ""), False), (("img", [("itemprop", "name")], ""), True)], ""))
@example(([(("div", [("typeof", "Person")], ""), False), (("a", [("property", "schema:name")], ""), True)], ""))
@example(([(("a", [("class", "h-card"), ("href", "")], ""), True)], ""))
def test_every_text_has_its_own_bytes(page: Any) -> None:
    html = _written(page)
    for value in _texts(_found(html)):
        assert _has_bytes(value, html), (value, html)


def test_a_text_from_elsewhere_would_be_seen() -> None:
    html = '<div itemscope><img itemprop="image" src=""></div>'
    assert not _has_bytes(URL, html)
    assert not _has_bytes("invented", html)
    assert _has_bytes("http://a.test/rel", '<a href="/rel">')
