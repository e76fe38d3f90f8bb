"""Statements on a small site of Larkholm Pottery: those about itself are published, those about others are not.

Every decoy is alone on its site, so that no better candidate hides a wrong one.
"""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.grounding import schema as schemas
from curtsy.records import truth

NAME = "Larkholm Pottery"
HOST = "https://larkholmpottery.example"
PAGES = {"home": "/", "about": "/about", "contact": "/contact", "claims": "/sustainability"}
SCHEMA = schemas.load("organization")


def published(page: str, fragment: str) -> dict[str, Any]:
    """Return the values of the site with this fragment on one of its pages, without the name."""
    pages = []
    for key, path in PAGES.items():
        title = NAME if key == "home" else f"{key.capitalize()} | {NAME}"
        body = f"<h1>{key.capitalize()}</h1>{fragment if key == page else ''}"
        head = f'<title>{title}</title><meta property="og:site_name" content="{NAME}">'
        html = f"<html><head>{head}</head><body><main>{body}</main><footer><p>© 2026 {NAME}</p></footer></body></html>"
        pages.append((HOST + path, html))
    case = truth.Case(id="site", schema=SCHEMA, pages=tuple(pages), truth={}, decoys={})
    fields, _ = truth.extracted(case)
    return {one.path: one.value for one in fields if one.path != "/name"}


@pytest.mark.parametrize(
    "said",
    [
        "Many guidebooks claim we were founded in 1702; that is not so.",  # what is only said
        "Contrary to the guidebooks, Larkholm Pottery was founded in 1702 only in legend.",
        "Had we been founded in 1850, we would be older than the railway.",  # a hypothesis
        "The Museum of Clay writes: we were founded in 1955 and show jugs.",  # another speaker
        '"We were founded in 1955," says the director of the museum.',
        "They told us: we were founded in 1955.",
        "Our supplier says: our mission is to bring clay to the people of the north.",
        "If our mission is to sell more plates, why do we repair them?",
        "Some say our mission is to sell expensive mugs to tourists.",
        "The Clay Trust, which we support: we exist to protect clay pits in Britain.",
        "The guild's website says: we exist to protect the craft of potters.",
        "Man erzählt, wir wurden 1702 gegründet.",
        "On raconte que nous avons été fondés en 1702.",
    ],
)
def test_what_frames_a_fact_says_whose_it_is(said: str) -> None:
    assert published("about", f"<p>{said}</p>") == {}


def test_a_mission_is_read_only_where_the_organization_speaks() -> None:
    mission = "<p>Our mission is to serve coffee in good bowls.</p>"
    assert published("about", f"<blockquote>{mission}</blockquote>") == {}
    assert published("about", f"<h2>Our partner</h2>{mission}") == {}
    assert published("about", mission) == {"/mission": "to serve coffee in good bowls"}


@pytest.mark.parametrize(
    ("said", "mission"),
    [
        ("Our mission is to help potters who cannot pay.", "to help potters who cannot pay"),  # not a denial
        ("The mission is to keep the kilns of the valley burning.", "to keep the kilns of the valley burning"),
        ("Our year in brief: we exist to make bowls for all.", "to make bowls for all"),
        ("Unsere Aufgabe ist es, gute Schalen zu machen.", "gute Schalen zu machen"),
        ("Notre mission est de faire de bons bols pour tous.", "de faire de bons bols pour tous"),
    ],
)
def test_the_text_of_a_mission_may_be_a_plan_or_a_negation(said: str, mission: str) -> None:
    assert published("about", f"<p>{said}</p>") == {"/mission": mission}
