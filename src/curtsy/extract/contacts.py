"""Whether an e-mail address, a phone number or an address on a site is the organization's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from curtsy.core.claims import Claim, SourceKind
from curtsy.extract.sources import PageSources
from curtsy.grounding import attribution
from curtsy.rules.urls import registrable_domain

#: roles of pages that state the organization's own contact
_CONTACT = frozenset(("contact", "imprint"))
_MIN_SHARED = 5
_MAIL = re.compile(r"[\w.+-]@([\w-]+(?:\.[\w-]+)+)")
_MAX_LINE = 1_000
_MAX_TEXT = 100_000
_SENTENCE_END = re.compile(r"[.!?] (?=[^\W\da-z_])")
#: domains of public mail providers
_FREE_MAIL = re.compile(
    r"(?:gmail|googlemail|gmx|web|outlook|hotmail|live|yahoo|icloud|me|aol|proton|protonmail|t-online|freenet|orange|wanadoo|"
    r"free|laposte|sfr|libero|virgilio|tiscali|terra|mail|yandex|qq|163|naver|posteo|mailbox|bluewin|telenet|ziggo|kpnmail)\."
    r"[a-z.]{2,10}"
)
#: words that mark a contact as that of others
_OTHERS = re.compile(
    r"\b(?:webdesign|web design|webmaster|website by|site by|made by|designed by|built by|powered by|created by|"
    r"hosting|hosted|hoster|theme|agency|agentur|agence|agencia|partners?|suppliers?|sponsors?|customers?|photos? by|"
    r"umsetzung|gestaltung|realisierung|réalisation|conception|hébergeur|hébergement|diseño|alojamiento|desarrollo web|"
    r"realizzazione|ombudsman|data protection officer|"
    r"datenschutzbeauftragte\w{0,2}|supervisory authority|aufsichtsbehörde|schlichtungsstelle|"
    # a site and its maker: `web desarrollada por`, `site réalisé par`
    r"(?:web|website|site|sitio|página|seite|homepage|webauftritt|sito|pagina|strona)\b[^\n.|·]{0,30}?"
    r"\s(?:by|von|por|par|door|przez)|création (?:du )?site|creación web|"
    r"web ?ontwerp|website van|website door|ontworpen door|realizado por|creado por|desarrollado por|"
    r"sito (?:di|web di)|webauftritt von|website von|site par|site réalisé par|créé par|propulsé par|desenvolvido por|"
    r"projekt i wykonanie)\b"
    r"|制作[:：]|(?:サイト|ホームページ|web|ウェブ)制作",
    re.IGNORECASE,
)


def fitting(claims: Sequence[Claim], pages: Sequence[PageSources]) -> list[Claim]:
    """Return the claims without contacts of others; addresses at the site's own domain come first."""
    known = {page.page: page for page in pages}
    kept: list[tuple[int, Claim]] = []
    for claim in claims:
        page = known.get(claim.source.page)
        if page is None or not isinstance(claim.value, str):
            kept.append((0, claim))
        elif claim.source.locator.startswith("css:a[") and " ".join(claim.source.text.split()) not in page.links:
            continue  # a hidden link: a trap for robots
        elif _is_mail(claim.value):
            rank = _mail_rank(claim, page)
            kept += [] if rank is None else [(rank, claim)]
        elif "phone" in claim.path or "address" in claim.path:
            kept += [] if _is_of_others(claim, page) else [(0, claim)]
        else:
            kept.append((0, claim))
    return [claim for _, claim in sorted(kept, key=lambda one: one[0])]


def _is_mail(value: str) -> bool:
    return "@" in value and " " not in value


def _mail_rank(claim: Claim, page: PageSources) -> int | None:
    """0: at the site's domain; 1, 2: at another, on a page that states its own contact; None: of others."""
    domain = claim.value.rpartition("@")[2].casefold()
    host = urlsplit(page.url).hostname or ""
    if _relates(domain, host):
        return 0
    if claim.source.kind is SourceKind.STRUCTURED:
        return 1
    if not page.roles & _CONTACT or _is_of_others(claim, page):
        return None
    return 1 if _FREE_MAIL.fullmatch(domain) else 2


def _relates(domain: str, host: str) -> bool:
    """Return whether two domains are of one organization: equal, or one name within the other."""
    one, other = (registrable_domain(name) or name for name in (domain, host.removeprefix("www.")))
    left, right = (re.sub(r"[^\w]", "", name.partition(".")[0]) for name in (one, other))
    if one == other:
        return True
    return min(len(left), len(right)) >= _MIN_SHARED and (left in right or right in left)


def _is_of_others(claim: Claim, page: PageSources) -> bool:
    """Return whether every place of the contact is of others."""
    text = page.text.text
    found: list[bool] = []
    needle = claim.value if claim.source.kind is SourceKind.ATTRIBUTE else (claim.quote or claim.value)
    at = text.find(needle)
    while at >= 0 and len(found) < 20:
        found.append(_is_place_of_others(page, at, at + len(needle)))
        at = text.find(needle, at + 1)
    return bool(found) and all(found)


def _is_place_of_others(page: PageSources, at: int, end: int) -> bool:
    """Return whether the line names others or the past, has their e-mail address, or is below their heading."""
    text = page.text.text
    start = text.rfind("\n", 0, at) + 1
    line_end = text.find("\n", end, end + _MAX_LINE)
    stop = _SENTENCE_END.search(text, max(end - 1, 0), line_end if line_end >= 0 else end + _MAX_LINE)
    before, after = (
        text[start:end],
        text[end : stop.start()] if stop else text[end : end + _MAX_LINE].partition("\n")[0],
    )
    if _OTHERS.search(before) or attribution.is_past(before) or page.is_headed_by_others(at, end):
        return True
    return _has_mail_of_others(before + after, page)


def _has_mail_of_others(line: str, page: PageSources) -> bool:
    """A phone number beside an e-mail address of others is theirs, on a page that also has an address of the site."""
    host = urlsplit(page.url).hostname or ""
    domains = _mail_domains(line)
    if not domains or any(_relates(domain, host) or _FREE_MAIL.fullmatch(domain) for domain in domains):
        return False
    return any(_relates(domain, host) for domain in _mail_domains(page.text.text[:_MAX_TEXT]))


def _mail_domains(text: str) -> list[str]:
    return [found[1].casefold() for found in _MAIL.finditer(text)]
