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
    last = len(visible.text)
    found: list[tuple[int, int]] = []
    ends: dict[int, int] = {}  # number of the span of a heading -> where the section around it ends
    open_sections: list[int] = []
    spans = sorted(visible.spans, key=lambda one: (one.start, one.node.tag in _LEVELS, -one.end))
    for number, one in enumerate(spans):
        while open_sections and open_sections[-1] <= one.start:
            open_sections.pop()
        if one.node.tag in _SECTIONS:
            open_sections.append(min([one.end, *open_sections[-1:]]))
        else:
            ends[number] = open_sections[-1] if open_sections else last
    following = [last] * 7  # the next heading of each level or above, or the next footer
    at = len(spans)
    while at:
        first = at - 1  # spans that begin at one place do not end each other
        while first and spans[first - 1].start == spans[at - 1].start:
            first -= 1
        for number in range(first, at):
            one = spans[number]
            if number in ends and _HEADINGS.search(visible.text[one.start : min(one.end, one.start + _MAX_HEADING)]):
                found.append((one.start, min(ends[number], following[_LEVELS[one.node.tag or ""]])))
        for one in spans[first:at]:
            least = 1 if one.node.tag == "footer" else _LEVELS.get(one.node.tag or "", 7)
            following[least:] = [one.start] * (7 - least)
        at = first
    return found[::-1]


def _is_foreign(span: prose.Span) -> bool:
    if span.node.tag in _ALWAYS:
        return True
    attributes = span.node.attributes
    return _MARKS.search(f"{attributes.get('class') or ''} {attributes.get('id') or ''}") is not None
