"""Parts of a page that others say, or that are about others: testimonials, case studies, quotations, teasers.

spans     by their elements and headings
headed    by their headings only: `What our customers say`, `Hosting`, `Press contact`
"""

from __future__ import annotations

import re

from curtsy.content import text as prose
from curtsy.content.document import Document

_TAGS = frozenset(
    ("blockquote", "q", "cite", "figure", "div", "section", "article", "li", "ul", "aside", "p", "figcaption")
)
_ALWAYS = frozenset(("blockquote", "q", "cite", "aside", "figcaption"))
_MARKS = re.compile(
    r"(?:^|[\s_\-])(?:testimonials?|quotes?|quotation|reviews?|case-?stud(?:y|ies)|customer-?stor(?:y|ies)|success-?stor(?:y|ies)|"
    r"stories|customers?|clients?|partners?|suppliers?|sponsors?|teasers?|related|press-?review|kundenstimmen|referenzen?|"
    r"temoignages?|temoignage|casos?|examples?|beispiele?)(?:$|[\s_\-])",
    re.IGNORECASE,
)
_MAX_SHARE = 0.8
_LEVELS = {f"h{level}": level for level in range(1, 7)}
#: a part ends at the end of these elements, and where the footer begins
_SECTIONS = frozenset(("section", "article", "aside", "footer"))
_MAX_HEADING = 100
#: headings of parts that others say, that are about others, or that have their contacts
_HEADINGS = re.compile(
    r"\b(?:testimonials?|reviews|case stud(?:y|ies)|(?:success|customer|client) stories|voices of|"
    r"in the (?:news|press|media)|"
    r"(?:customers?|clients?|people|users|visitors|members|others|they) (?:say|think|love|tell)|trusted by|"
    r"press (?:contact|enquiries|inquiries)|media contact|web ?design|web ?hosting|hosting|hosted by|website by|"
    r"data protection officer|"
    r"supervisory authority|ombudsman|(?:our|from our) (?:partners?|sponsors?|suppliers?)|sponsors|"
    r"kundenstimmen|kundenmeinungen|referenzen|erfahrungsberichte|bewertungen|fallstudien?|erfolgsgeschichten|pressestimmen|"
    r"(?:sagen|meinen) (?:unsere|die) kund\w{0,6}|das sagen|pressekontakt|hoster|gestaltung|umsetzung|"
    r"realisierung|programmierung|"
    r"datenschutzbeauftragte\w{0,2}|aufsichtsbehörde|schlichtungsstelle|unsere partner|sponsoren|"
    r"témoignages?|témoignent|avis (?:clients?|de nos)|études? de cas|parlent de nous|font confiance|contact presse|"
    r"hébergeur|hébergement|réalisation|conception|délégué à la protection|médiateur|nos partenaires|"
    r"testimonios|opiniones|casos de éxito|dicen|reseñas|contacto de prensa|diseño|alojamiento|desarrollo web|"
    r"delegado de protección|nuestros socios|patrocinadores|testimonianze|recensioni|dicono|"
    r"realizzazione|referenties|ervaringen)\b|"
    r"お客様の声|利用者の声|導入事例|事例紹介|口コミ|レビュー|サイト制作|制作会社|取材のお問い合わせ",
    re.IGNORECASE,
)


def spans(document: Document) -> list[tuple[int, int]]:
    """Return their spans of the visible text. An element with nearly the whole page is not such a part."""
    visible = prose.read(document.page_tree(), spans_of=_TAGS)
    most = _MAX_SHARE * max(len(visible.text), 1)
    marked = [
        (one.start, one.end)
        for one in visible.spans
        if one.end > one.start and one.end - one.start < most and _is_foreign(one)
    ]
    return marked + headed(document)


def headed(document: Document) -> list[tuple[int, int]]:
    """Return the spans from such a heading to the next heading of its level, or to the end of its section."""
    visible = prose.read(document.page_tree(), spans_of=_SECTIONS | _LEVELS.keys())
    headings = [one for one in visible.spans if one.node.tag in _LEVELS]
    sections = [one for one in visible.spans if one.node.tag in _SECTIONS]
    return [
        (one.start, _end(one, headings, sections, len(visible.text)))
        for one in headings
        if _HEADINGS.search(visible.text[one.start : min(one.end, one.start + _MAX_HEADING)])
    ]


def _end(heading: prose.Span, headings: list[prose.Span], sections: list[prose.Span], last: int) -> int:
    level = _LEVELS[heading.node.tag or ""]
    ends = [one.start for one in headings if one.start > heading.start and _LEVELS[one.node.tag or ""] <= level]
    ends += [one.end for one in sections if one.start <= heading.start < one.end]
    ends += [one.start for one in sections if one.node.tag == "footer" and one.start > heading.start]
    return min(ends, default=last)


def _is_foreign(span: prose.Span) -> bool:
    if span.node.tag in _ALWAYS:
        return True
    attributes = span.node.attributes
    return _MARKS.search(f"{attributes.get('class') or ''} {attributes.get('id') or ''}") is not None
