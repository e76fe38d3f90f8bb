"""The organizations of the tiny web: `truth(host)` returns every fact that a site states, and where.

A fact that a site does not state is None (or empty): an extracted value for it is an invention.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from curtsy.tinyweb import words

DOMAIN = "tinyweb.test"


class Kind(StrEnum):
    """How a site states its facts."""

    JSONLD = "jsonld"  # JSON-LD beside prose; founding year and phone are only in the JSON-LD
    PROSE = "prose"  # sentences only
    THIN = "thin"  # under 100 words a page: name and e-mail, nothing else
    SCRIPT = "script"  # an empty root element, filled by an inline script
    FETCHED = "fetched"  # an empty root element, filled by a script that fetches JSON
    PDF = "pdf"  # prose; some facts are only in a PDF
    PDF_TABLE = "pdf_table"  # ... only in a table of a PDF
    XLSX = "xlsx"  # ... only in a workbook
    SCANNED = "scanned"  # ... only in a PDF of pictures
    BROKEN = "broken"  # ... only in a PDF that is cut off: no reader can read them


#: host number modulo 20 -> kind
_KINDS = (
    Kind.JSONLD, Kind.PROSE, Kind.JSONLD, Kind.PROSE, Kind.SCRIPT, Kind.JSONLD, Kind.THIN, Kind.PROSE, Kind.JSONLD,
    Kind.FETCHED, Kind.PDF, Kind.PDF_TABLE, Kind.XLSX, Kind.PROSE, Kind.SCRIPT, Kind.SCANNED, Kind.THIN, Kind.BROKEN,
    Kind.JSONLD, Kind.FETCHED,
)  # fmt: skip
_OF_TABLES = ("founded_year", "headquarters", "contact.phone", "contact.address")
#: kind -> the facts that are only in its document
IN_DOCUMENT = {
    Kind.PDF: ("founded_year", "headquarters", "sustainability_claims"),
    Kind.PDF_TABLE: _OF_TABLES,
    Kind.XLSX: _OF_TABLES,
    Kind.SCANNED: ("founded_year", "headquarters"),
    Kind.BROKEN: ("founded_year", "headquarters"),
}
#: kind -> the path of its document
DOCUMENTS = {
    Kind.PDF: "/files/sustainability-report.pdf",
    Kind.PDF_TABLE: "/files/fact-sheet.pdf",
    Kind.XLSX: "/files/key-figures.xlsx",
    Kind.SCANNED: "/files/annual-report.pdf",
    Kind.BROKEN: "/files/annual-report.pdf",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sustainability claim, word for word as the site states it, with its figure."""

    text: str
    value: int
    unit: str
    year: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contact:
    email: str
    phone: str | None
    address: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    name: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    name: str
    slug: str
    started_year: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of a fact. `text`: the quote is in the page's visible text (for script kinds, once rendered);
    `structured`: the quote is the value at `pointer` of the page's JSON-LD; `document`: the quote is in the document,
    on the page or sheet `part` (of a scan, once its text is recognized)."""

    fact: str
    path: str
    source: str
    quote: str
    pointer: str | None = None
    part: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Organization:
    """The facts of one site."""

    host: str
    kind: Kind
    name: str
    mission: str | None
    founded_year: int | None
    #: "City, Country"
    headquarters: str | None
    sustainability_claims: tuple[Claim, ...]
    contact: Contact
    people: tuple[Person, ...]
    projects: tuple[Project, ...]
    places: tuple[Place, ...]

    def where(self, fact: str) -> tuple[Place, ...]:
        return tuple(place for place in self.places if place.fact == fact)


def org_host(number: int) -> str:
    return f"org-{number:04d}.{DOMAIN}"


def org_number(host: str) -> int | None:
    """Return the number of an organization's host, or None for any other host."""
    match = re.fullmatch(rf"org-(\d{{4,7}})\.{re.escape(DOMAIN)}", host)
    return int(match[1]) if match else None


def kind_of(number: int, *, plain: bool = False) -> Kind:
    """Return how host `number` states its facts; `plain` allows only kinds with links in the HTML."""
    kind = _KINDS[number % len(_KINDS)]
    if plain and kind not in (Kind.JSONLD, Kind.PROSE):
        return Kind.PROSE
    return kind


@lru_cache(maxsize=4096)
def truth(host: str, seed: int = 1, *, plain: bool = False) -> Organization:
    """Return every fact that the site of `host` states about its organization, and where.

    >>> truth("org-0000.tinyweb.test").kind
    <Kind.JSONLD: 'jsonld'>
    """
    written = organization(host, seed, plain=plain)
    return replace(written, founded_year=None, headquarters=None) if written.kind is Kind.BROKEN else written


@lru_cache(maxsize=4096)
def organization(host: str, seed: int = 1, *, plain: bool = False) -> Organization:
    """Return what the site of `host` is made from: the truth, and facts in a file that no reader can read."""
    number = org_number(host)
    if number is None:
        raise ValueError(f"{host!r} is not an organization of the tiny web, such as {org_host(7)!r}")
    dice = random.Random(f"{seed}:{host}")
    kind = kind_of(number, plain=plain)
    first = words.FIRST[number % len(words.FIRST)]
    field_of_work = words.SECOND[number % len(words.SECOND)]
    form = words.FORM[number % len(words.FORM)]
    round_number = number // (len(words.FIRST) * len(words.SECOND) * len(words.FORM))
    name = f"{first} {field_of_work} {form}" + (f" {round_number + 1}" if round_number else "")
    city, country, prefix = dice.choice(words.CITIES)
    phone = f"{prefix} {dice.randrange(10, 100)} {dice.randrange(10, 100)}"
    address = f"{dice.choice(words.STREETS)} {dice.randrange(2, 180)}, {city}"
    email = f"{dice.choice(('hello', 'contact', 'office', 'info'))}@{host}"
    founded = dice.randrange(1921, 2016)
    mission = f"to {dice.choice(words.MISSION_VERBS)} {words.MISSIONS[field_of_work]}"
    claims = tuple(_claim(dice, template) for template in dice.sample(words.CLAIMS, 4))
    people = tuple(_people(dice))
    projects = tuple(_project(dice, title) for title in dice.sample(words.PROJECTS, 4))
    if kind is Kind.THIN:
        return Organization(
            host=host, kind=kind, name=name, mission=None, founded_year=None, headquarters=None,
            sustainability_claims=(), contact=Contact(email=email, phone=None, address=None), people=(), projects=(),
            places=_thin_places(name, email),
        )  # fmt: skip
    organization = Organization(
        host=host, kind=kind, name=name, mission=mission, founded_year=founded, headquarters=f"{city}, {country}",
        sustainability_claims=claims, contact=Contact(email=email, phone=phone, address=address), people=people,
        projects=projects, places=(),
    )  # fmt: skip
    return _with_places(organization)


def _claim(dice: random.Random, template: tuple[str, str, int, int]) -> Claim:
    text, unit, low, high = template
    value, year = dice.randint(low, high), dice.randint(2019, 2024)
    return Claim(text=text.format(value=f"{value:,}", year=year), value=value, unit=unit, year=year)


def _people(dice: random.Random) -> list[Person]:
    names = [
        f"{given} {family}"
        for given, family in zip(dice.sample(words.GIVEN, 5), dice.sample(words.FAMILY, 5), strict=True)
    ]
    return [Person(name=name, role=role) for name, role in zip(names, dice.sample(words.ROLES, 5), strict=True)]


def _project(dice: random.Random, title: str) -> Project:
    return Project(name=title, slug=title.lower().replace(" ", "-"), started_year=dice.randint(2008, 2023))


# The sentences that state facts: pages print them, places quote them.


def founded_sentence(org: Organization) -> str:
    return f"{org.name} was founded in {org.founded_year} by a small group of people who lived nearby"


def headquarters_sentence(org: Organization) -> str:
    return f"Our headquarters are in {org.headquarters}"


def mission_sentence(org: Organization) -> str:
    return f"Our mission is {org.mission}"


def _thin_places(name: str, email: str) -> tuple[Place, ...]:
    return (
        Place(fact="name", path="/", source="text", quote=name),
        Place(fact="contact.email", path="/contact", source="text", quote=email),
    )


def _with_places(org: Organization) -> Organization:
    said = [
        ("name", "/", org.name),
        ("mission", "/", mission_sentence(org)),
        ("mission", "/about", mission_sentence(org)),
        ("headquarters", "/about", headquarters_sentence(org)),
        ("contact.email", "/contact", org.contact.email),
        ("contact.address", "/contact", org.contact.address or ""),
        *(("sustainability_claims", "/claims", claim.text) for claim in org.sustainability_claims),
        *(("people", "/people", f"{person.name}, {person.role}") for person in org.people),
        *(("projects", "/projects", project.name) for project in org.projects),
    ]
    if org.kind is not Kind.JSONLD:
        said.append(("founded_year", "/about", founded_sentence(org)))
        said.append(("contact.phone", "/contact", org.contact.phone or ""))
    elsewhere = IN_DOCUMENT.get(org.kind, ())
    places = [
        Place(fact=fact, path=path, source="text", quote=quote) for fact, path, quote in said if fact not in elsewhere
    ]
    if org.kind is Kind.JSONLD:
        places += _structured_places(org)
    return replace(org, places=(*places, *_document_places(org)))


def _document_places(org: Organization) -> list[Place]:
    """The places of facts in a document that can be read."""
    if org.kind in (Kind.PDF_TABLE, Kind.XLSX):
        values = (str(org.founded_year), org.headquarters, org.contact.phone, org.contact.address)
        said = [(fact, value or "") for fact, value in zip(_OF_TABLES, values, strict=True)]
        part = 1 if org.kind is Kind.PDF_TABLE else 2
        return [_in_document(org, fact, quote, part) for fact, quote in said]
    if org.kind not in (Kind.PDF, Kind.SCANNED):
        return []
    found = [("founded_year", founded_sentence(org)), ("headquarters", headquarters_sentence(org))]
    places = [_in_document(org, fact, quote, 2) for fact, quote in found]
    if org.kind is Kind.PDF:
        places += [_in_document(org, "sustainability_claims", one.text, 3) for one in org.sustainability_claims]
    return places


def _in_document(org: Organization, fact: str, quote: str, part: int) -> Place:
    return Place(fact=fact, path=DOCUMENTS[org.kind], source="document", quote=quote, part=part)


def _structured_places(org: Organization) -> list[Place]:
    city, _, country = (org.headquarters or "").partition(", ")
    stated = [
        ("name", "/name", org.name),
        ("founded_year", "/foundingDate", str(org.founded_year)),
        ("headquarters", "/address/addressLocality", city),
        ("headquarters", "/address/addressCountry", country),
        ("contact.email", "/email", org.contact.email),
        ("contact.phone", "/telephone", org.contact.phone or ""),
    ]
    return [
        Place(fact=fact, path=path, source="structured", quote=quote, pointer=pointer)
        for path in ("/", "/about")
        for fact, pointer, quote in stated
    ]
