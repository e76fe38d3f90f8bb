"""Postal addresses without a label: a street, then a postal code and a city, in lines or between commas.

    claims    the addresses of the organization on a page, best first

What stands before an address says whose it is. On any page, the name of the organization counts. On contact and imprint
pages, a heading such as `Head office` or nothing at all counts too; any other name there is that of others.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

from curtsy.core.claims import Claim, Rung
from curtsy.extract.sources import PageSources
from curtsy.grounding import attribution
from curtsy.rules.urls import registrable_domain

_OWN_PAGES = frozenset(("contact", "imprint"))
_CAPITAL = "[A-ZÀ-ÖØ-ÞŁŚŻŹĆČŠŽ]"
_NAME = rf"{_CAPITAL}[^\W\d_]{{1,20}}"
#: `Biberach an der Riß`, `Saint-Jean-de-Luz`
_CITY = (
    rf"(?:[dl]['’])?{_NAME}(?:[ '’/.-]{{1,2}}(?:(?:an|am|der|dem|den|im|in|bei|ob|vor|de|la|le|les|lès|du|des|sur|"
    rf"sous|en|d|l|"
    rf"di|del|della|da|do|el|los|las|y|w|nad|aan|upon|on|the|by|of)[ '’-]){{0,2}}{_NAME}){{0,4}}"
)
#: the end of an address: postal code and city, in the order of most of Europe, of the British Isles, and of America
_END = re.compile(
    rf"(?<![^\s(])(?:[A-Z]{{1,2}}-)?(?:\d{{5}}|\d{{4}} ?[A-Z]{{2}}|\d{{2}}-\d{{3}}|\d{{4}}-\d{{3}}|\d{{3}} \d{{2}}|"
    rf"[1-9]\d{{3}})"
    rf" {_CITY}(?: \([A-Z]{{2}}\))?(?=\s*(?:[\n\t,.;·|)]|$))"
    rf"|(?<![^\s(,]){_CITY},? (?:[A-Z]{{1,2}}\d[\dA-Z]? \d[A-Z]{{2}}|[A-Z]\d[\dW] [A-Z\d]{{4}})(?![\w])"
    rf"|(?<![^\s(,]){_CITY},? (?:[A-Z]{{2}} \d{{5}}(?:-\d{{4}})?|[A-Z]{{2,3}} \d{{4}}|"
    rf"[A-Z]{{2}} [A-Z]\d[A-Z] ?\d[A-Z]\d)(?!\w)"
)
#: the end of a name, after a comma
_LEGAL = re.compile(r"(?:inc|ltd|llc|s\.a|s\.l|s\.r\.l|plc|gmbh)\.?", re.IGNORECASE)
#: `Address: `, `Besuchen Sie uns: `
_LABEL = re.compile(r"^[^:：\n]{1,40}[:：]\s*")
#: what leads to an address in its line: a sign, `Find us at `
_LEAD = re.compile(
    r"[^\w\s(\"'„“«#]{1,3}\ufe0f?\s{0,3}(?=\w)"
    r"|(?:(?:you (?:can |will )?)?(?:find|visit|meet|reach) us|(?:come|write|post|send \w{1,10}) to us|we are|"
    r"(?:sie finden|besuchen sie|finden sie) uns|wir sind|(?:vous nous )?trouve[rz](?:[- ]nous)?|retrouvez[- ]nous|"
    r"rendez-nous visite|nous sommes|écrivez-nous|visítenos|visítanos|encuéntranos|estamos|nos encontrará|"
    r"ci trovate|venite a trovarci|siamo|(?:u vindt|bezoek) ons|wij zijn)"
    r" (?:at|in|an|unter|au|à|en|a|in|op|aan)(?: der| dem)? ",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?:postal |street |our |office |visiting )?address|(?:our |the )?(?:head|main|registered)? ?offices?|"
    r"headquarters|"
    r"visit(?: us)?|find us|where (?:to find us|we are)|post(?: to)?|by post|mail|write to us|come and see us|"
    r"get in touch|contact(?: us)?|post|postal|mailing address|registered (?:office|address)|location|"
    r"legal notice|imprint|"
    r"(?:post|haus|büro|besucher)?anschrift|(?:post|besucher|liefer)?adresse|hauptsitz|zentrale|firmensitz|"
    r"sitz|standort|besuchen sie uns|kontakt|impressum|"
    r"so finden sie uns|angaben gemäß.{0,30}|herausgeber|anbieter|betreiber|verantwortlich.{0,40}|"
    r"siège(?: social)?|nous trouver|nous contacter|contactez-nous|contact|éditeur.{0,20}|mentions légales|"
    r"domicilio(?: social)?|dirección|sede(?: central| social| legale)?|oficina central|dónde estamos|contacto|"
    r"visítanos|"
    r"indirizzo|dove siamo|contatti|adres|bezoekadres|hoofdkantoor|morada|endereço|adres|siedziba|kontakt",
    re.IGNORECASE,
)
#: a line about a person, between the name and the street
_PERSON = re.compile(
    r"(?:inh|inhaber(?:in)?|owner|prop|proprietor|c/o|z\. ?hd|attn?|managing director|geschäftsführ\w{1,10}|"
    r"gérante?|titular|titolare)\b",
    re.IGNORECASE,
)
#: prose that is no part of an address, and shows that it is another's: `With the support of the Region`
_PROSE = re.compile(
    r"(?:with|by|supported|funded|financed|sponsored|sponsors?|supervised|organi[sz]ed|hosted|thanks|"
    r"in (?:partnership|association|cooperation)|together|we|our|from|mit|gefördert|unterstützt|"
    r"finanziert|dank|in (?:zusammenarbeit|kooperation)|"
    r"wir|unsere?|zuständig\w{0,3}|avec|soutenue?|financée?|grâce|en (?:partenariat|collaboration|colaboración)|"
    r"nous|notre|con|apoyad[oa]|financiad[oa]|patrocina\w{0,3}|gracias|nuestr[oa]|sostenut[oa]|"
    r"finanziat[oa]|in collaborazione|"
    r"grazie|com o|met (?:steun|dank)|gesteund|"
    r"venues?|friends|supporters|partners?|landlords?|authority|ministry|regulator|veranstaltung\w{0,12}|freunde|"
    r"förderer|partner|ministerium|\w{1,20}behörde|landesamt|lieu|amis|mécènes|partenaires?|préfecture|mairie|lugar|"
    r"amigos|socios|ayuntamiento|ministerio|luogo|amici|trading standards)\b|"
    r".{0,80}\b(?:(?:with )?(?:the )?support(?:ed)? (?:of|by)|funded by|financed by|sponsored by|"
    r"gefördert|unterstützt|"
    r"unterstützung|förderung|soutien|soutenue?|financée?|apoyo|apoyad[oa]|financiad[oa]|"
    r"patrocinad[oa]|sostegno|finanziat[oa]|steun|"
    r"authority|trading standards|every|each|(?-i:[Ss]tadthalle)|\w{1,20}behörde|landesamt)\b",
    re.IGNORECASE,
)
_MAX_ADDRESSES = 3
_MAX_PARTS = 4
_MAX_PART = 60
_MAX_WORDS = 7
#: words of a part such as `nave 12`, `ul. Olszyny 8`
_MAX_NUMBERED = 3
_MAX_BACK = 300
_MIN_WORD = 4
_MAX_TEXT = 100_000
_MAX_ENDS = 50


class _Part(NamedTuple):
    """A line, or a text between commas."""

    start: int
    end: int
    text: str


class _Address(NamedTuple):
    start: int
    end: int
    parts: tuple[str, ...]
    #: what stands before it; empty: nothing
    addressee: str
    #: its name, or a word of the domain, is right before
    is_own: bool


def claims(path: str, page: PageSources, names: Sequence[str]) -> list[Claim]:
    """Return the addresses of the organization with one of these names for the leaf `path`."""
    found = [one for one in _addresses(page, names) if _is_of_organization(one, page)]
    found.sort(key=lambda one: (not page.is_of_head_office(one.start), page.is_of_branch(one.start), not one.is_own))
    text = page.text.text
    return [
        Claim(
            path=path, value=", ".join(one.parts), rung=Rung.SELECTOR, source=page.text, quote=text[one.start : one.end]
        )
        for one in found[:_MAX_ADDRESSES]
    ]


def _is_of_organization(found: _Address, page: PageSources) -> bool:
    text = page.text.text
    line = text.rfind("\n", 0, found.start) + 1
    if page.is_headed_by_others(found.start, found.end) or page.is_of_others(found.start, found.end):
        return False
    if attribution.is_past(text[line : found.end]) or attribution.is_past(found.addressee):
        return False
    if found.is_own:
        return True
    if not page.roles & _OWN_PAGES or page.is_below_another(found.start):
        return False
    return not found.addressee or _HEADING.fullmatch(found.addressee) is not None or page.is_heading(found.addressee)


def _addresses(page: PageSources, names: Sequence[str]) -> Iterator[_Address]:
    text = page.text.text[:_MAX_TEXT]
    own = _own_words(page.url, names)
    for number, end in enumerate(_END.finditer(text)):
        if number == _MAX_ENDS:
            return
        found = _read(text, end.start(), end.end(), own)
        if found is not None:
            yield found


def _own_words(url: str, names: Sequence[str]) -> tuple[str, ...]:
    host = urlsplit(url).hostname or ""
    label = (registrable_domain(host) or host.removeprefix("www.")).partition(".")[0]
    return (_squeezed(label), *(_squeezed(name) for name in names if len(name) >= _MIN_WORD))


def _read(text: str, start: int, end: int, own: Sequence[str]) -> _Address | None:
    """Return the address that ends here, with its street; None if there is no street before it."""
    before = _parts_before(text, start)
    street: list[_Part] = []
    for at, part in enumerate(before):
        if _is_own(part.text, own):
            return _made(text, street, start, end, part.text, is_own=True) if street else None
        if not _is_street(part.text) or _HEADING.fullmatch(part.text.rstrip(" :：")):
            break  # the cell or line with the label: `Address`
        if _PERSON.match(part.text):
            continue
        street.append(part)
        if at + 1 == _MAX_PARTS:
            break
    digits = [at for at, part in enumerate(street[: _MAX_PARTS - 1]) if any(char.isdigit() for char in part.text)]
    kept = max(digits, default=0) + 1
    if not street:
        return None
    addressee = before[kept].text if kept < len(before) else ""
    return _made(text, street[:kept], start, end, addressee, is_own=False)


def _made(text: str, street: Sequence[_Part], start: int, end: int, addressee: str, *, is_own: bool) -> _Address:
    parts = (*(one.text for one in reversed(street)), " ".join(text[start:end].split()))
    return _Address(street[-1].start, end, parts, addressee.rstrip(" :："), is_own)


def _parts_before(text: str, at: int) -> list[_Part]:
    """Return the parts before a place, the nearest first; a label ends them, and is the last."""
    found: list[_Part] = []
    end, least = at, max(0, at - _MAX_BACK)
    while len(found) <= _MAX_PARTS:
        while end > least and text[end - 1] in " ,\n\t|·;–—-":
            end -= 1
        if end <= least:
            break
        begin = max(text.rfind(mark, least, end) for mark in (",", "\n", "\t", "|", "·", ";"))
        if _LEGAL.fullmatch(text[begin + 1 : end].strip()):
            begin = text.rfind("\n", least, end)
        begin = max(begin + 1, least)
        said = text[begin:end].strip()
        begin = text.index(said, begin)
        if label := _LABEL.match(said):
            rest = said[label.end() :]
            if rest:
                found.append(_Part(begin + label.end(), end, rest))
            found.append(_Part(begin, begin + label.end(), label.group().strip()))
            break
        lead = _LEAD.match(said)
        if lead is not None:
            found.append(_Part(begin + lead.end(), end, said[lead.end() :]))
            break
        found.append(_Part(begin, end, said))
        end = begin
    return found


def _is_street(part: str) -> bool:
    """A short part that begins as a name or a number; not a sentence."""
    if len(part) > _MAX_PART or "@" in part or part.endswith((".", "!", "?", ":", "：")) or not part:
        return False
    if is_prose(part):
        return False
    words = part.split()
    is_numbered = len(words) <= _MAX_NUMBERED and part[-1].isdigit()  # `nave 12`
    return len(words) <= _MAX_WORDS and (part[0].isupper() or part[0].isdigit() or is_numbered)


def is_prose(part: str) -> bool:
    """Return whether a text begins as prose about others does.

    >>> is_prose("With the support of the Region"), is_prose("Am Markt 4")
    (True, False)
    """
    return _PROSE.match(part) is not None


def _is_own(part: str, own: Sequence[str]) -> bool:
    """Return whether a part is the name of the organization, with what may follow it, or the beginning of its name."""
    said = _squeezed(part)
    if (
        any(char.isdigit() for char in part)
        or len(said) < _MIN_WORD
        or len(part.split()) > _MAX_WORDS
        or is_prose(part)
    ):
        return False
    return any(one in said or said in one for one in own if len(one) >= _MIN_WORD)


def _squeezed(text: str) -> str:
    return "".join(char for char in text.casefold() if char.isalnum())
