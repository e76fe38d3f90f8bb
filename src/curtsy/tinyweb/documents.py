"""The documents of organizations that state facts only there: in a PDF, in a table of a PDF, in a workbook, in a scan.

A broken PDF is cut off before its facts: no reader can read them, so they are no part of the truth.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from curtsy.tinyweb import facts, words
from curtsy.tinyweb.facts import Kind, Organization
from curtsy.tinyweb.files import PdfPage, pdf, scanned, xlsx

PDF = "application/pdf"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"

#: a broken file ends after this share of its bytes
_BROKEN_SHARE = 0.4


def body(org: Organization, chatter: Callable[[int], list[str]]) -> tuple[bytes, str]:
    """Return the document of an organization that has one, and its content type. `chatter` makes paragraphs."""
    match org.kind:
        case Kind.PDF_TABLE:
            return pdf("Fact sheet", _fact_sheet(org, chatter)), PDF
        case Kind.XLSX:
            notes: list[list[str | int]] = [["Key facts", "see the next sheets"]]
            return xlsx({"Notes": notes, "Key facts": _facts(org), "Partners": _partners(org)}), XLSX
        case Kind.SCANNED:
            return scanned("", _report(org, chatter)), PDF
        case Kind.BROKEN:
            whole = pdf("Annual report", _report(org, chatter))
            return whole[: int(_BROKEN_SHARE * len(whole))], PDF
    return pdf(f"Sustainability report of {org.name}", _report(org, chatter)), PDF


def _report(org: Organization, chatter: Callable[[int], list[str]]) -> list[PdfPage]:
    said = [f"{facts.founded_sentence(org)}. {facts.headquarters_sentence(org)}.", f"{facts.mission_sentence(org)}."]
    claims = [f"{claim.text}." for claim in org.sustainability_claims] if org.kind is Kind.PDF else []
    opening = "Sustainability report" if org.kind is Kind.PDF else "Annual report"
    return [
        PdfPage(heading=opening, paragraphs=[f"A report of {org.name}.", *chatter(4)]),
        PdfPage(heading="Who we are", paragraphs=[*said, *chatter(3)]),
        PdfPage(heading="Our impact", paragraphs=[*claims, *chatter(3)]),
    ]


def _fact_sheet(org: Organization, chatter: Callable[[int], list[str]]) -> list[PdfPage]:
    rows = [[str(cell) for cell in row] for row in _facts(org)]
    partners = [[str(cell) for cell in row] for row in _partners(org)]
    return [
        PdfPage(heading=f"{org.name} in figures", paragraphs=chatter(2), rows=rows),
        PdfPage(heading="Our partners", paragraphs=chatter(1), rows=partners),
    ]


def _facts(org: Organization) -> list[list[str | int]]:
    return [
        ["Fact", "Value"],
        ["Founded", org.founded_year or 0],
        ["Headquarters", org.headquarters or ""],
        ["Telephone", org.contact.phone or ""],
        ["Address", org.contact.address or ""],
    ]


def _partners(org: Organization) -> list[list[str | int]]:
    """Decoys: the same facts of others."""
    dice = random.Random(f"{org.host}:partners")
    rows: list[list[str | int]] = [["Partner", "Founded", "Headquarters"]]
    for given in dice.sample(words.FAMILY, 3):
        city, country, _ = dice.choice(words.CITIES)
        rows.append([f"{given} Brothers", dice.randint(1880, 1999), f"{city}, {country}"])
    return rows
