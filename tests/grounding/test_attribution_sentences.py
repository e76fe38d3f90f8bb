"""Sentences about an organization's deeds, and sentences that only look so, in five languages.

Decision 72 has the figures of the first contact of the rules with each part.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from curtsy.core.claims import Claim, Rung, Source, SourceKind
from curtsy.grounding import attribution, judge, own_names, schema

ROWS = [
    line.split("\t")
    for line in (Path(__file__).parent / "attribution.tsv").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
NAMES = ("Norvale", "ノルベール")


@pytest.mark.parametrize("sentence", [text for _, kind, text in ROWS if kind == "own"])
def test_own_deeds_are_accepted(sentence: str) -> None:
    assert attribution.why_not_own(sentence, NAMES) == ""


@pytest.mark.parametrize("sentence", [text for _, kind, text in ROWS if kind != "own"])
def test_everything_else_is_refused(sentence: str) -> None:
    assert attribution.why_not_own(sentence, NAMES) != ""


def test_a_name_is_known_by_the_domain() -> None:
    said = "Norvale holds the EcoVadis gold medal."
    assert attribution.why_not_own(said, own_names.names_in(said, "https://www.norvale.test/about")) == ""
    assert attribution.why_not_own(said, own_names.names_in(said, "https://tessler.test/about")) == "other_subject"


@pytest.mark.parametrize(
    ("said", "worse"),
    [
        ("Our landfill waste went from 20 to 31 tonnes.", True),
        ("Our landfill waste went from 31 to 20 tonnes.", False),
        ("Our recycling rate went from 80 to 61 percent.", True),
        ("Our emissions of 2015 to 2019 are in the report.", False),
        ("当社の廃棄物は31トンから20トンになりました。", False),
    ],
)
def test_two_figures_show_the_direction(said: str, worse: bool) -> None:
    assert attribution.is_failure(said) is worse


@pytest.mark.parametrize(
    ("sentence", "quote", "published"),
    [
        ("Our customer Tessler reduced waste by 41 percent.", "reduced waste by 41 percent", False),
        ("We reduced waste by 41 percent.", "reduced waste by 41 percent", True),
    ],
)
def test_a_part_of_a_sentence_is_judged_with_the_whole_sentence(sentence: str, quote: str, published: bool) -> None:
    source = Source(SourceKind.TEXT, "1", "https://norvale.test/", f"Our work. {sentence} More.")
    claim = Claim(path="/sustainability_claims/0", value=quote, rung=Rung.LLM, source=source, quote=quote)
    leaf = schema.load("organization").leaf_for(claim.path)
    assert judge.is_published(judge.judge(claim, leaf), leaf) is published


@pytest.mark.parametrize(
    ("said", "name", "names"),
    [
        ("The hotel cut its gas use by 20 %.", "The Heron Inn", ["The hotel"]),
        ("Die Schule heizt mit Holz.", "Musikschule Lindau", ["Die Schule"]),
        ("The mill cut its gas use by 20 %.", "The Heron Inn", []),
        ("Die Gemeinde Unterahlen hat 30 Bäume gepflanzt.", "Gemeinde Oberahlen", []),
        ("2023 hat die Gemeinde Solaranlagen errichtet.", "Gemeinde Oberahlen", ["die Gemeinde"]),
        ("Museum De Haven heeft 200 zonnepanelen.", "Museum De Werf", []),
    ],
)
def test_the_noun_of_a_name_means_the_organization(said: str, name: str, names: list[str]) -> None:
    assert own_names.names_in(said, "https://x.test/", [name]) == names


def test_another_of_the_kind_is_noticed() -> None:
    assert own_names.names_like("Norbury Town Council cut its bill.", ["Aldermoor Town Council"])
    assert own_names.names_like("Wir teilen die Halle mit dem Schützenverein Eichen.", ["Turnverein Wolkau"])
    assert not own_names.names_like("Ruth Hollins founded the firm.", ["Hollins Joinery"])
