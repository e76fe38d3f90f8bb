"""A slogan in every title of a site, and in `og:site_name`, is not the name of its organization."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from curtsy.grounding import schema as schemas
from curtsy.records import truth


def name_of(host: str, titles: Sequence[str], body: str = "", site_name: str = "") -> str | None:
    meta = f'<meta property="og:site_name" content="{site_name}">' if site_name else ""
    paths = ("/", "/about", "/contact")
    pages = [
        (f"https://{host}{path}", f"<title>{title}</title>{meta}{body}")
        for path, title in zip(paths, titles, strict=False)
    ]
    case = truth.Case(id="x", schema=schemas.load("organization"), pages=tuple(pages), truth={}, decoys={})
    fields, _ = truth.extracted(case)
    return next((one.value for one in fields if one.path == "/name"), None)


@pytest.mark.parametrize(
    ("host", "titles", "site_name"),
    [
        ("brightsail.example", ("Boats for everyone", "About – Boats for everyone"), ""),
        ("lumenco.example", ("Light for all", "About – Light for all"), "Light for all"),
        ("lumenco.example", ("Just another WordPress site", "About"), "Just another WordPress site"),
        ("falkner-uhren.example", ("Zeit, die bleibt", "Impressum – Zeit, die bleibt"), ""),
        ("rocaviva.example", ("Escalada para todos", "Contacto | Escalada para todos"), ""),
        ("vauzelle.example", ("La chaise, autrement", "Contact | La chaise, autrement"), ""),
        ("minatogarasu.example", ("光をかたちに", "会社概要｜光をかたちに"), ""),
    ],
)
def test_a_repeated_slogan_is_no_name(host: str, titles: Sequence[str], site_name: str) -> None:
    assert name_of(host, titles, site_name=site_name) is None


@pytest.mark.parametrize(
    ("host", "name", "body"),
    [
        ("wrenfield.example", "Wren & Field", ""),  # words of the domain
        ("ffw.example", "Friends of Fenland Waters", ""),  # its initials
        ("waermewerk-sued.example", "Wärmewerk Süd", ""),  # another spelling
        ("grown-here.example", "Tilda & Sons", "<p>© 2026 Tilda & Sons</p>"),  # stated on the page
        ("grown-here.example", "Tilda & Sons", "<p>Tilda & Sons was founded in 1954.</p>"),
        ("minatogarasu.example", "みなと硝子", ""),  # the domain has other letters
    ],
)
def test_a_name_of_titles_needs_the_domain_or_a_sentence(host: str, name: str, body: str) -> None:
    assert name_of(host, (name, f"About | {name}"), body) == name
