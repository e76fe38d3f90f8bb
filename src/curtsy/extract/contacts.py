"""Whether an e-mail address, a phone number or an address on a site is the organization's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice
from urllib.parse import urlsplit

from curtsy.core.claims import Claim, SourceKind
from curtsy.extract import own_parts, postal_addresses
from curtsy.extract.sources import PageSources
from curtsy.grounding import attribution
from curtsy.rules.urls import registrable_domain

#: roles of pages that state the organization's own contact
_CONTACT = frozenset(("contact", "imprint"))
_MIN_SHARED = 5
_MAIL = re.compile(r"[\w.+-]@([\w-]+(?:\.[\w-]+)+)")
_MAX_LINE = 1_000
_MAX_MAIL = 80
_MAX_TEXT = 100_000
_MAX_PLACES = 20
_MAX_NAME = 6
_IMPRINT = frozenset(("imprint",))
_WORD = re.compile(r"[^\W\d_]+")
_PHONE = re.compile(r"\+?[0-9(][0-9 ()/.\xa0-]{5,24}[0-9]")
#: the label of a fax number, right before it; not `Phone and fax`
_FAX = re.compile(
    r"(?:^|[^\w/])(?:tele)?fax(?:nummer| ?n(?:o|r|umber))?[.:]?\s*$|"
    r"télécopieu?r?(?:ie)?(?:\s*:)?\s*$|ファ[ック]+ス[:：]?\s*$",
    re.IGNORECASE,
)
_NO_DIGIT = re.compile(r"\D+")
#: digits that tell two numbers apart, without the codes before them
_OWN_DIGITS = 7
#: between the contacts of a line
_PARTED = re.compile(r" ?[|·•]| [–—-] |\d[,;]? |@\S+ |\t")
#: an address or number that no longer holds
_FORMER = re.compile(
    r"\b(?:(?:our|the) old|unsere? alte[nrs]?|alte|bisherige[nrs]?|ancienne|vieille|"
    r"(?:antigu|viej)[ao]|vecchi[oa]|oude) "
    r"(?:address|number|phone|office|shop|workshop|anschrift|adresse|nummer|telefonnummer|dirección|número|oficina|sede|"
    r"indirizzo|numero|adres)\b|旧(?:住所|所在地|本社|店舗|電話)",
    re.IGNORECASE,
)
#: where an address or a contact begins
_FIRST = re.compile(r"[\d@]")
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
    """Return the claims without contacts of others; addresses at the site's own domain and head offices come first."""
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
            is_prose = "address" in claim.path and postal_addresses.is_prose(claim.value)
            kept += [] if is_prose or _is_of_others(claim, page) else [(_office_rank(claim, page), claim)]
        else:
            kept.append((0, claim))
    return [claim for _, claim in sorted(kept, key=lambda one: one[0])]


def _office_rank(claim: Claim, page: PageSources) -> int:
    """Of several offices, the head office comes first, branches last."""
    starts = [start for start, _ in _places(claim, page)]
    if any(page.is_of_head_office(start) for start in starts):
        return 0
    return 2 if starts and all(page.is_of_branch(start) for start in starts) else 1


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
    is_free = _FREE_MAIL.fullmatch(domain) is not None
    # `Mail: alder@mailbox.test`, `aldertrust@mailbox.test` of aldertrust.test, wherever it is
    is_labelled = is_free and (claim.span is not None or _is_of_site(claim.value.partition("@")[0], page))
    if not (page.roles & _CONTACT or is_labelled) or _is_of_others(claim, page):
        return None
    return 1 if is_free else 2


def _is_of_site(name: str, page: PageSources) -> bool:
    """Return whether the name of a mailbox is the site's domain."""
    said, own = re.sub(r"[^\w]|_", "", name.casefold()), own_parts.site_label(page.url)
    return min(len(said), len(own)) >= _MIN_SHARED and (said in own or own in said)


def _relates(domain: str, host: str) -> bool:
    """Return whether two domains are of one organization: equal, or one name within the other."""
    one, other = (registrable_domain(name) or name for name in (domain, host.removeprefix("www.")))
    left, right = (re.sub(r"[^\w]", "", name.partition(".")[0]) for name in (one, other))
    if one == other:
        return True
    return min(len(left), len(right)) >= _MIN_SHARED and (left in right or right in left)


def _is_of_others(claim: Claim, page: PageSources) -> bool:
    """Return whether every place of the contact is of others."""
    found = [_is_place_of_others(page, *place) for place in _places(claim, page)]
    return bool(found) and all(found)


def _places(claim: Claim, page: PageSources) -> list[tuple[int, int]]:
    """Return the places of a contact in the page's text; a number of a link may be written in another way there."""
    text = page.text.text
    if claim.span is not None:
        return [claim.span]
    needle = claim.value if claim.source.kind is SourceKind.ATTRIBUTE else (claim.quote or claim.value)
    found: list[tuple[int, int]] = []
    at = text.find(needle)
    while at >= 0 and len(found) < _MAX_PLACES:
        inner = max(needle.find(claim.value), 0)
        found.append((at + inner, at + max(len(needle), inner + len(claim.value))))
        at = text.find(needle, at + 1)
    digits = _NO_DIGIT.sub("", claim.value)[-_OWN_DIGITS:]
    if found or "phone" not in claim.path or len(digits) < _OWN_DIGITS:
        return found
    numbers = (one.span() for one in _PHONE.finditer(text[:_MAX_TEXT]) if digits in _NO_DIGIT.sub("", one.group()))
    return list(islice(numbers, _MAX_PLACES))


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
    if _is_fax(text, at, start) or _OTHERS.search(before) or _is_former(before) or page.is_headed_by_others(at, end):
        return True
    if _has_mail_of_others(before + after, page):
        return True
    return not _has_own_mail(before + after + _paragraph(page, at), page) and _is_unclear(page, at, start)


def _is_fax(text: str, at: int, line: int) -> bool:
    """A number after `Fax` in its line, or below a line that is this label; an e-mail address is not judged."""
    if not _PHONE.match(text, at):
        return False
    before = text[line:at]
    above = text[text.rfind("\n", 0, max(line - 1, 0)) + 1 : max(line - 1, 0)]
    return _FAX.search(before if before.strip() else above) is not None


def _paragraph(page: PageSources, at: int) -> str:
    """Return the short lines of the paragraph around a contact: a number above an e-mail address of the site."""
    text, first = page.text.text, page.paragraph_at(at)
    last = text.find("\n", at, at + _MAX_LINE)
    after = text[last + 1 : last + 1 + _MAX_MAIL].partition("\n")[0] if first is not None and last >= 0 else ""
    same = page.paragraph_at(last + 1) == first
    return " " + after if same and first is not None else ""


def _is_former(text: str) -> bool:
    return _FORMER.search(text) is not None or attribution.is_past(text) or attribution.is_ahead(text)


def _is_unclear(page: PageSources, at: int, line: int) -> bool:
    """Return whether it is left open whose contact it is: by the heading, the words before it, the first line of the
    paragraph, or because others quote it."""
    text, own = page.text.text, own_parts.site_label(page.url)
    before, first = text[line:at], page.paragraph_at(at)
    is_named = first is not None and _names_site(text[first:at].partition("\n")[0].partition(",")[0], own)
    if page.is_of_others(at, at + 1) or (page.is_below_another(at) and not is_named):
        return True
    if attribution.is_other_name(before, ()) and not _names_site(before, own):
        return True
    ends = list(_SENTENCE_END.finditer(before))
    said = before[ends[-1].end() - 1 if ends else 0 :]
    if not _names_site(before, own) and not (_is_led(said, own) and own_parts.names_none(_PARTED.split(said)[-1], own)):
        return True
    return first is not None and not page.roles & _IMPRINT and _is_name_of_other(text[first : max(first, line)], own)


def _is_led(said: str, own: str) -> bool:
    """Return whether a label, or nothing, leads a line of contacts: `Call us: `; not `Rose Inn, 4 High Street, `."""
    first = _FIRST.search(said)
    lead = said if first is None else said[: first.start()]
    end = max(lead.rfind(mark) for mark in ":：,")
    return end < 0 or own_parts.names_none(lead[:end], own)


def _names_site(text: str, own: str) -> bool:
    return any(own_parts.names_site(word, own) for word in _WORD.findall(text))


def _is_name_of_other(lines: str, own: str) -> bool:
    """`Rose Inn`, in a line above the street and the number."""
    first = lines.strip().partition("\n")[0]
    if not first or _names_site(lines, own) or any(char.isdigit() for char in first):
        return False
    return first[0].isupper() and len(first.split()) <= _MAX_NAME and not own_parts.names_none(first, own)


def _has_own_mail(line: str, page: PageSources) -> bool:
    host = urlsplit(page.url).hostname or ""
    return any(_relates(domain, host) for domain in _mail_domains(line))


def _has_mail_of_others(line: str, page: PageSources) -> bool:
    """A phone number beside an e-mail address of others is theirs, on a page that also has an address of the site."""
    host = urlsplit(page.url).hostname or ""
    domains = _mail_domains(line)
    if not domains or any(_relates(domain, host) or _FREE_MAIL.fullmatch(domain) for domain in domains):
        return False
    return any(_relates(domain, host) for domain in _mail_domains(page.text.text[:_MAX_TEXT]))


def _mail_domains(text: str) -> list[str]:
    return [found[1].casefold() for found in _MAIL.finditer(text)]
