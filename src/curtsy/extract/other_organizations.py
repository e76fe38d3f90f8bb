"""Other organizations that a site names: what stands below their names in headings is theirs.

names       suppliers and others with a heading of their own below `Our suppliers`, or after `our supplier`
without     claims without those below a heading that is such a name
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from curtsy.core.claims import Claim, SourceKind
from curtsy.extract import foreign_parts
from curtsy.extract.sources import PageSources
from curtsy.grounding import attribution

_CAPITAL = "[A-ZÀ-ÖØ-Þ]"
#: `our supplier Alder Salt`
_OURS = re.compile(
    r"\b(?i:our|unsere?[mnrs]?|notre|nos|nuestr[oa]s?|(?:il|la) nostr[oa]|onze?|ons)\s(?:[a-zß-öø-ÿ-]{2,20}\s)?"
    r"(?i:suppliers?|customers?|clients?|partners?|subsidiar(?:y|ies)|distributors?|landlord|rivals?|competitors?|"
    r"lieferant(?:in|en)?|zulieferer|kunden?|kundin|partnerin|tochter(?:firma|gesellschaft)|vermieter(?:in)?|"
    r"fournisseurs?|partenaires?|filiales?|concurrents?|proveedor(?:es)?|clientes?|soci[oa]s?|filial(?:es)?|"
    r"fornitor[ei]|cliente|leveranciers?|klant(?:en)?|dochter)"
    rf"(?:,? | [a-z]{{2,12}} (?:de |di )?)(?:die |the |la |le |el )?"
    rf"(?P<name>{_CAPITAL}[\w'’&-]{{2,30}}(?: {_CAPITAL}[\w'’&-]{{1,30}}){{0,3}})"
)
_MAX_TEXT = 100_000
_MAX_NAMES = 200


def names(pages: Sequence[PageSources]) -> frozenset[str]:
    """Return the names, folded, without those that the site's own domain repeats."""
    found = (name for page in pages for name in _of_page(page) if not attribution.names_in(name, page.url))
    return frozenset(folded for name, _ in zip(found, range(_MAX_NAMES), strict=False) if (folded := _folded(name)))


def _of_page(page: PageSources) -> Iterator[str]:
    if page.document is not None:
        yield from foreign_parts.named(page.document)
    for one in _OURS.finditer(page.text.text[:_MAX_TEXT]):
        yield one["name"]


def without(claims: Iterable[Claim], page: PageSources, known: frozenset[str]) -> list[Claim]:
    """Return the claims whose quotes have a place that is not below such a heading."""
    kept = list(claims)
    if not known or page.document is None:
        return kept
    below = foreign_parts.Spans(foreign_parts.below(page.document, lambda text: _folded(text) in known))
    return [one for one in kept if not _is_below(one, page, below)]


def _is_below(claim: Claim, page: PageSources, below: foreign_parts.Spans) -> bool:
    if claim.source.kind is not SourceKind.TEXT or not claim.quote:
        return False
    at = page.text.text.find(claim.quote)
    return at >= 0 and at in below and page.text.text.find(claim.quote, at + 1) < 0


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).strip(" .:")
