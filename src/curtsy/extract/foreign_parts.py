"""Parts of a page that others say, or that are about others: testimonials, case studies, quotations, teasers.

spans     by their elements and headings
headed    by their headings only: `What our customers say`, `Hosting`, `Press contact`
elsewhere parts about other things than the page: related items, comments, what follows `More events`
named     names in the headings below `Our suppliers`
below     parts below given headings
boxes     asides with a heading of their own, such as the name of another event
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import urlsplit

from curtsy.content import text as prose
from curtsy.content.document import Document
from curtsy.content.main_content.phrases import leads_elsewhere
from curtsy.extract.article_words import any_of, marked
from curtsy.extract.page_selection import roles_of
from curtsy.rules.urls import registrable_domain

_TAGS = frozenset(
    ("blockquote", "q", "cite", "figure", "div", "section", "article", "li", "ul", "aside", "p", "figcaption")
)
_ALWAYS = frozenset(("blockquote", "q", "cite", "aside", "figcaption"))
_MARKS = re.compile(
    r"(?:^|[\s_\-])(?:testimonials?|quotes?|quotation|reviews?|case-?stud(?:y|ies)|customer-?stor(?:y|ies)|"
    r"success-?stor(?:y|ies)|"
    r"stories|customers?|clients?|partners?|suppliers?|sponsors?|teasers?|related|press-?review|kundenstimmen|"
    r"referenzen?|"
    r"temoignages?|temoignage|casos?|examples?|beispiele?)(?:$|[\s_\-])",
    re.IGNORECASE,
)
#: the first line of an aside with the contact of the site
_CONTACT = re.compile(
    r"\W{0,4}(?:contact(?: us| info\w*)?|get in touch|talk to us|write to us|call us|ring us|find us|visit(?: us)?|"
    r"where to find us|opening hours|"
    r"kontakt|so erreichen sie uns|so finden sie uns|anschrift|besuchen sie uns|"
    r"contactez[- ]nous|nous (?:contacter|joindre|trouver)|"
    r"coordonnées|nos horaires|contacto|contáct(?:anos|enos)|dónde estamos|visítanos|contatti|dove siamo|contattaci|"
    r"neem contact op|bezoek ons|contactos?|contato|fale connosco|お問い合わせ|アクセス)\W{0,4}$",
    re.IGNORECASE | re.MULTILINE,
)
_MAX_SHARE = 0.8
_LEVELS = {f"h{level}": level for level in range(1, 7)}
#: a part ends at the end of these elements, and where the footer begins
_SECTIONS = frozenset(("section", "article", "aside", "footer"))
_MAX_HEADING = 100
#: elements whose spans `elsewhere` and `boxes` need
TAGS = _TAGS | _SECTIONS | _LEVELS.keys() | {"ol", "table", "th"}
#: headings of parts that others say, that are about others, or that have their contacts
_HEADINGS = re.compile(
    r"\b(?:testimonials?|reviews|case stud(?:y|ies)|(?:success|customer|client) stories|voices of|"
    r"in the (?:news|press|media)|"
    r"(?:customers?|clients?|people|users|visitors|members|others|they) (?:say|think|love|tell)|trusted by|"
    r"press (?:contact|enquiries|inquiries)|media contact|web ?design|web ?hosting|hosting|hosted by|website by|"
    r"data protection officer|"
    r"supervisory authority|ombudsman|(?:our|from our) (?:partners?|sponsors?|suppliers?)|sponsors|"
    r"kundenstimmen|kundenmeinungen|referenzen|erfahrungsberichte|bewertungen|fallstudien?|erfolgsgeschichten|"
    r"pressestimmen|"
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
#: `Our subsidiary Alder`, `Distributor for Ireland`: a name may follow the word for a related company
_NAMED = r"(?:[:,]?\s(?:(?:for|in|für|pour|en|au|para|per|voor|w|the|la|el|l[’'])\s)*(?-i:[A-ZÀ-ÖØ-Þ0-9])\S{0,30}){0,4}"
#: headings of parts with facts and contacts of companies that are related to the organization. Below them, it may well
#: state its own deeds: `Suppliers`
_RELATED = re.compile(
    r"\W{0,4}(?:(?:our|the|unsere?n?|die|nos|notre|les|nuestr[oa]s?|los|las|la|i nostri|le nostre|la nostra|il nostro|"
    r"i|"
    r"onze|de|nossos|nossa|nasi|nasza)\s)?"
    r"(?:parent(?: company)?|(?:sister|daughter) compan(?:y|ies)|holding(?: company)?|subsidiar(?:y|ies)|"
    r"group companies|affiliates|"
    r"distributors?|dealers?|stockists?|resellers?|retailers?|importers?|agents? (?:for|in)|representatives? (?:for|"
    r"in)|"
    r"funders|donors|grantees|clients|customers|"
    r"partners?|suppliers?|competitors|investors|tenants?|tax advis[eo]rs?|auditors?|"
    r"(?:media|press) (?:enquiries|inquiries|agency|office)|"
    r"muttergesellschaft|tochter(?:gesellschaft(?:en)?|unternehmen|firm(?:a|en))|schwesterfirm(?:a|en)|"
    r"gruppenunternehmen|lieferanten|"
    r"kunden|(?:vertrags)?händler|vertretung(?:en)?|vertriebspartner|importeure?|pächter|förderer|mitbewerber|"
    r"steuerberat\w{1,4}|wirtschaftsprüf\w{1,4}|presseagentur|"
    r"maison[- ]mère|filiales?|fournisseurs|distributeurs?|revendeurs?|importateurs?|mécènes|concurrents|"
    r"expert-comptable|partenaires|"
    r"empresa matriz|filial(?:es)?|proveedores|clientes|distribuidor(?:es)?|importador(?:es)?|competidores|"
    r"financiadores|alianzas|"
    r"aliados|socios|certificadora|casa madre|società controllat[ae]|controllata|fornitori|clienti|distribut(?:ori|"
    r"ore)|"
    r"rivenditor[ei]|concorrenti|finanziatori|"
    r"moedermaatschappij|dochteronderneming(?:en)?|leveranciers|klanten|concurrenten|verkooppunten|importeurs?|"
    r"parceiros|fornecedores|distribuidor[ea]?s?|partnerzy|dostawcy|klienci|dystrybutor(?:zy)?)"
    r"(?:\s(?:and|&|und|et|y|e|en|i)\s\w{3,20})?" + _NAMED + r"\W{0,4}"
    r"|(?:グループ会社|関連会社|子会社|親会社|取引先|主要取引先|仕入先|販売店|代理店|協力会社|パートナー)(?:様|一覧|企業|紹介){0,2}",
    re.IGNORECASE,
)
#: a heading that is the registered name of a company
_COMPANY = re.compile(
    r"\b(?:gmbh|ag|kg|e\. ?k\.|e\. ?v\.|ltd\.?|limited|inc\.?|llc|plc|corp\.?|s\.?a\.?r\.?l\.?|sas|s\. ?a\.|"
    r"s\. ?l\.|s\.r\.l\.|s\.p\.a\.|lda\.|b\. ?v\.|v\. ?o\. ?f\.|a/s|sp\. z o\. ?o\.)$|株式会社|有限会社|合同会社",
    re.IGNORECASE,
)
_MIN_NAME = 4
_TWO_NAMES = re.compile(r"[A-ZÀ-ÖØ-Þ][\w'’&-]{1,30}(?: [A-ZÀ-ÖØ-Þ&][\w'’&-]{0,30}){1,4}")
#: pages that state the registered name of the organization itself
_LEGAL_PAGES = frozenset(("contact", "imprint"))
#: `More events`, `Weitere Stellen`, `Autres offres`
_OTHER_THINGS = re.compile(
    rf"\W{{0,4}}(?:{any_of('other_words')} {any_of('other_things')}"
    rf"|{any_of('other_things')} {any_of('other_words_after')})\b",
    re.IGNORECASE,
)
_CONTROLS = re.compile(rf"\W{{0,4}}{any_of('control_headings')}\b", re.IGNORECASE)
_ELSEWHERE = marked("elsewhere_marks")
_DETAILS = re.compile(rf"\b{any_of('detail_headings')}\b", re.IGNORECASE)

_Span = tuple[int, int]


class Spans:
    """Spans of a text: whether one of them contains a position."""

    def __init__(self, found: Iterable[_Span]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(found):
            if not self._ends or start > self._ends[-1]:
                self._starts.append(start)
                self._ends.append(end)
            else:
                self._ends[-1] = max(self._ends[-1], end)

    def __contains__(self, position: int) -> bool:
        at = bisect_right(self._starts, position) - 1
        return at >= 0 and position < self._ends[at]


def spans(document: Document) -> list[_Span]:
    """Return their spans of the visible text. An element with nearly the whole page is not such a part."""
    visible = prose.read(document.page_tree(), spans_of=_TAGS)
    most = _MAX_SHARE * max(len(visible.text), 1)
    marked = [
        (one.start, one.end)
        for one in visible.spans
        if one.end > one.start
        and one.end - one.start < most
        and _is_foreign(one)
        and not (one.node.tag == "aside" and _CONTACT.match(visible.text[one.start : one.start + _MAX_HEADING]))
    ]
    return marked + headed(document)


def headed(document: Document) -> list[_Span]:
    """Return the spans from such a heading to the end of its part."""
    visible = prose.read(document.page_tree(), spans_of=_SECTIONS | _LEVELS.keys())
    return [(one.start, end) for one, end in _parts(visible, lambda text: _HEADINGS.search(text) is not None)]


def of_companies(document: Document) -> list[_Span]:
    """Return the spans below headings that name other companies, or companies that are related to the organization."""
    visible = prose.read(document.page_tree(), spans_of=_SECTIONS | _LEVELS.keys())
    label = _squeezed((registrable_domain(urlsplit(document.base_url).hostname or "") or "").partition(".")[0])
    is_legal = bool(roles_of(document.base_url, document.title) & _LEGAL_PAGES)

    def is_wanted(text: str) -> bool:
        said = " ".join(text.split())
        if _HEADINGS.search(said) or _RELATED.fullmatch(said):
            return True
        return not is_legal and _COMPANY.search(said) is not None and not _is_in_domain(said, label)

    return [(one.start, end) for one, end in _parts(visible, is_wanted)]


def named(document: Document) -> list[str]:
    """Return the headings below headings such as `Our suppliers` that may be names: two to five capitalized words."""
    visible = prose.read(document.page_tree(), spans_of=_SECTIONS | _LEVELS.keys())
    parts = Spans((one.end, end) for one, end in _parts(visible, lambda text: _RELATED.fullmatch(text) is not None))
    heads = (
        visible.text[one.start : one.end] for one in visible.spans if one.node.tag in _LEVELS and one.start in parts
    )
    return [text for text in heads if _TWO_NAMES.fullmatch(text)]


def below(document: Document, is_wanted: Callable[[str], bool]) -> list[_Span]:
    """Return the spans from headings with such a text to the end of their parts."""
    visible = prose.read(document.page_tree(), spans_of=_SECTIONS | _LEVELS.keys())
    return [(one.start, end) for one, end in _parts(visible, is_wanted)]


def sections(document: Document, *, with_main: bool = False) -> list[tuple[str, int, int]]:
    """Return the text of each heading, and the span from it to the end of its part; main headings only on demand."""
    visible = prose.read(document.page_tree(), spans_of=_SECTIONS | _LEVELS.keys())
    return [
        (visible.text[one.start : min(one.end, one.start + _MAX_HEADING)], one.start, end)
        for one, end in _parts(visible, lambda _: True)
        if with_main or one.node.tag != "h1"
    ]


def _is_in_domain(name: str, label: str) -> bool:
    """Return whether the domain repeats a word of the name; a name in another script is not compared."""
    words = [_squeezed(word) for word in name.split() if len(word) >= _MIN_NAME]
    return not any(word.isascii() for word in words) or any(word in label for word in words)


def _squeezed(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(char for char in plain if char.isalnum())


def elsewhere(visible: prose.VisibleText, heading: _Span | None) -> list[_Span]:
    """Return the spans below headings that lead elsewhere, and of marked elements, without those that have the page's
    heading. The text has the spans of `TAGS`."""
    below = [(one.end, end) for one, end in _parts(visible, _leads_elsewhere) if one.node.tag != "h1"]
    most = _MAX_SHARE * len(visible.text)
    named = [(one.start, one.end) for one in visible.spans if one.end - one.start < most and _is_elsewhere(one)]
    return [one for one in [*below, *named, *_tables(visible)] if not _contains(one, heading)]


def _tables(visible: prose.VisibleText) -> Iterator[_Span]:
    """Yield the tables whose first cell is a heading that leads elsewhere: `Other dates`."""
    heads = {
        one.start
        for one in visible.spans
        if one.node.tag == "th" and _leads_elsewhere(visible.text[one.start : min(one.end, one.start + _MAX_HEADING)])
    }
    for one in visible.spans:
        if one.node.tag == "table" and one.start in heads:
            yield one.start, one.end


def boxes(visible: prose.VisibleText, heading: _Span | None) -> list[_Span]:
    """Return the spans of asides whose first heading does not announce details of the page's own thing."""
    heads = sorted((one for one in visible.spans if one.node.tag in _LEVELS), key=lambda one: one.start)
    starts = [one.start for one in heads]
    found: list[_Span] = []
    for one in visible.spans:
        at = bisect_left(starts, one.start)
        if one.node.tag != "aside" or at == len(heads) or heads[at].start >= one.end:
            continue
        said = visible.text[heads[at].start : min(heads[at].end, heads[at].start + _MAX_HEADING)]
        if not _DETAILS.search(said) and not _contains((one.start, one.end), heading):
            found.append((one.start, one.end))
    return found


def _contains(span: _Span, heading: _Span | None) -> bool:
    return heading is not None and span[0] <= heading[0] and heading[1] <= span[1]


def _leads_elsewhere(text: str) -> bool:
    return (leads_elsewhere(text) and not _CONTROLS.match(text)) or _OTHER_THINGS.match(text) is not None


def _is_elsewhere(span: prose.Span) -> bool:
    if span.node.tag in _LEVELS:
        return False
    attributes = span.node.attributes
    return _ELSEWHERE.search(f"{attributes.get('class') or ''} {attributes.get('id') or ''}") is not None


def _parts(visible: prose.VisibleText, is_wanted: Callable[[str], bool]) -> list[tuple[prose.Span, int]]:
    """Return the headings, with the next heading of their level, or the end of their section."""
    last = len(visible.text)
    found: list[tuple[prose.Span, int]] = []
    ends: dict[int, int] = {}  # number of the span of a heading -> where the section around it ends
    open_sections: list[int] = []
    spans = [one for one in visible.spans if one.node.tag in _SECTIONS or one.node.tag in _LEVELS]
    spans.sort(key=lambda one: (one.start, one.node.tag in _LEVELS, -one.end))
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
            if number in ends and is_wanted(visible.text[one.start : min(one.end, one.start + _MAX_HEADING)]):
                found.append((one, min(ends[number], following[_LEVELS[one.node.tag or ""]])))
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
