"""Names in RDFa: terms of a vocabulary, prefixed names, and URLs; and the short form of a property's name.

A property of schema.org has its own name (`name`). One of another vocabulary in force has its own name too, and the
item has `vocab`. One of a common vocabulary that is not in force has its usual prefix (`foaf:name`), any other its URL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from curtsy.content.structured.values import Attributes

_MAX_PREFIXES = 64
#: the common prefixes of https://www.w3.org/2011/rdfa-context/rdfa-1.1 and of OpenGraph
PREFIXES: Mapping[str, str] = {
    "schema": "http://schema.org/",
    "dcterms": "http://purl.org/dc/terms/",
    "dc": "http://purl.org/dc/terms/",
    "dc11": "http://purl.org/dc/elements/1.1/",
    "foaf": "http://xmlns.com/foaf/0.1/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "xhv": "http://www.w3.org/1999/xhtml/vocab#",
    "owl": "http://www.w3.org/2002/07/owl#",
    "skos": "http://www.w3.org/2004/02/skos/core#",
    "sioc": "http://rdfs.org/sioc/ns#",
    "cc": "http://creativecommons.org/ns#",
    "gr": "http://purl.org/goodrelations/v1#",
    "v": "http://rdf.data-vocabulary.org/#",
    "vcard": "http://www.w3.org/2006/vcard/ns#",
    "ical": "http://www.w3.org/2002/12/cal/icaltzd#",
    "rev": "http://purl.org/stuff/rev#",
    "ctag": "http://commontag.org/ns#",
    "dcat": "http://www.w3.org/ns/dcat#",
    "org": "http://www.w3.org/ns/org#",
    "prov": "http://www.w3.org/ns/prov#",
    "void": "http://rdfs.org/ns/void#",
    "wdr": "http://www.w3.org/2007/05/powder#",
    "og": "http://ogp.me/ns#",
    "fb": "http://ogp.me/ns/fb#",
    "music": "http://ogp.me/ns/music#",
    "video": "http://ogp.me/ns/video#",
    "article": "http://ogp.me/ns/article#",
    "book": "http://ogp.me/ns/book#",
    "profile": "http://ogp.me/ns/profile#",
}
_SHORT = {url: prefix for prefix, url in reversed(list(PREFIXES.items()))}
_SCHEMA_ORG = ("http://schema.org/", "https://schema.org/", "http://www.schema.org/", "https://www.schema.org/")
#: terms that need no vocabulary
_TERMS = {"license": "xhv:license", "describedby": "wdrs:describedby", "role": "xhv:role"}
_PREFIX = re.compile(r"([^\s:]{1,64}):[ \t\r\n\f]+(\S+)")


@dataclass(frozen=True, slots=True)
class Names:
    """What names mean at one place of the page."""

    vocabulary: str | None = None
    prefixes: Mapping[str, str] = field(default_factory=dict)

    def within(self, attributes: Attributes) -> Names:
        """Return what they mean in an element with these attributes."""
        vocabulary, prefixes = self.vocabulary, self.prefixes
        if "vocab" in attributes:
            vocabulary = (attributes["vocab"] or "").strip() or None
        declared = _declared(attributes)
        if declared:
            prefixes = dict(list({**prefixes, **declared}.items())[:_MAX_PREFIXES])
        return self if not declared and vocabulary == self.vocabulary else Names(vocabulary, prefixes)

    def url(self, name: str) -> str:
        """Return a type or another name as a URL, as far as that is known."""
        prefix, colon, rest = name.partition(":")
        if not colon:
            return _joined(self.vocabulary, name) if self.vocabulary else name
        space = None if rest.startswith("//") else self._space(prefix)
        return name if space is None else space + rest

    def is_known(self, name: str) -> bool:
        """Whether a name is more than a word without a meaning."""
        return ":" in name or self.vocabulary is not None or name.lower() in _TERMS

    def key(self, name: str) -> tuple[str, str | None]:
        """Return the key of a property, and the vocabulary that it is a term of."""
        if ":" not in name:
            if self.vocabulary is None:
                return _TERMS.get(name.lower(), name), None
            return name, None if _without_schema_org(_joined(self.vocabulary, "")) == "" else self.vocabulary
        return short(self.url(name)), None

    def _space(self, prefix: str) -> str | None:
        prefix = prefix.lower()
        return self.prefixes.get(prefix) or PREFIXES.get(prefix)


def short(url: str) -> str:
    """Return the short form of a property's URL."""
    if (local := _without_schema_org(url)) is not None:
        return local or url
    end = max(url.rfind("/"), url.rfind("#")) + 1
    prefix = _SHORT.get(url[:end])
    return url if prefix is None or end == len(url) else f"{prefix}:{url[end:]}"


def full(vocabulary: str, term: str) -> str:
    """Return the URL of a term, in its short form."""
    return short(_joined(vocabulary, term))


def _joined(vocabulary: str, term: str) -> str:
    return vocabulary + term if vocabulary[-1] in "/#:?=" else f"{vocabulary}/{term}"


def _without_schema_org(url: str) -> str | None:
    for space in _SCHEMA_ORG:
        if url.startswith(space):
            return url[len(space) :]
    return None


def _declared(attributes: Attributes) -> dict[str, str]:
    found = {
        name[6:].lower(): value.strip()
        for name, value in attributes.items()
        if name.startswith("xmlns:") and value and value.strip()
    }
    if prefix := attributes.get("prefix"):
        found |= {name.lower(): url for name, url in _PREFIX.findall(prefix[:8_000])}
    return found
