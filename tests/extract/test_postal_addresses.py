"""Postal addresses without a label: whose they are is said by what stands before them."""

from __future__ import annotations

import pytest

from curtsy.extract import postal_addresses, record_claims


def found(html: str, path: str = "contact", host: str = "alderpumps.test") -> list[str]:
    page = record_claims.sources_of("1", f"https://{host}/{path}", html.encode(), "text/html; charset=utf-8")
    return [str(claim.value) for claim in postal_addresses.claims("/contact/address", page, ["Alder Pumps"])]


@pytest.mark.parametrize(
    ("html", "address"),
    [
        (
            "<p>Alder Pumps Ltd<br>Unit 7, Caton Way<br>Leeds LS1 1AA</p>",
            "Unit 7, Caton Way, Leeds LS1 1AA",
        ),
        (
            "<h2>Head office</h2><p>Mühlstraße 44<br>88400 Biberach am See</p>",
            "Mühlstraße 44, 88400 Biberach am See",
        ),
        ("<p>Alder Pumps, Inc., 311 State Street, Madison, WI 53703</p>", "311 State Street, Madison, WI 53703"),
        ("<p>Alder Pumps · 14 quai Carnot · 29900 Concarneau</p>", "14 quai Carnot, 29900 Concarneau"),
        ("<p>Alder Pumps, Polígono Sepes, nave 12, 22006 Huesca</p>", "Polígono Sepes, nave 12, 22006 Huesca"),
        ("<p>Adres: Waalkade 90, 6511 XR Nijmegen</p>", "Waalkade 90, 6511 XR Nijmegen"),
    ],
)
def test_an_address_after_the_name_or_a_heading_is_the_organizations(html: str, address: str) -> None:
    assert found(html) == [address]


@pytest.mark.parametrize(
    "html",
    [
        "<p>Corrib Flow Systems<br>18 Dock Road, Galway H91 X2Y3</p>",
        "<p>Lumière Cristal: 5 rue du Four, 54000 Nancy</p>",
        "<p>Weddings are held at Alder Hall, 12 Park Lane, Alnwick NE66 9ZZ.</p>",
        "<h2>Our subsidiary Lumière Cristal</h2><p>5 rue du Four<br>54000 Nancy</p>",
        "<p>Our former address</p><p>5 Mill Road<br>Leeds LS1 1AA</p>",
        "<p>We sold 300 pumps in 2019, 12500 Pumps in all.</p>",
    ],
)
def test_the_address_of_others_is_left_out(html: str) -> None:
    assert found(html) == []


def test_on_other_pages_the_name_must_be_before_it() -> None:
    assert found("<h2>Head office</h2><p>5 Mill Road<br>Leeds LS1 1AA</p>", "news") == []
    assert found("<p>Alder Pumps<br>5 Mill Road<br>Leeds LS1 1AA</p>", "news") == ["5 Mill Road, Leeds LS1 1AA"]


def test_the_own_address_comes_before_others_of_the_page() -> None:
    html = "<h1>Contact</h1><p>2 Quay Road<br>Hull HU1 2BB</p><p>Alder Pumps<br>5 Mill Road<br>Leeds LS1 1AA</p>"
    assert found(html) == ["5 Mill Road, Leeds LS1 1AA", "2 Quay Road, Hull HU1 2BB"]
