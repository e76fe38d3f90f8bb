"""Whose deed a sentence states, in several languages; tests/golden/judge/organizations.toml has whole sites."""

from __future__ import annotations

import pytest

from curtsy.core.claims import Evidence, Field, Rung, SourceKind, Verdict
from curtsy.grounding import attribution, scoring


@pytest.mark.parametrize(
    "sentence",
    [
        "In 2022 we cut our own electricity use by 12 percent.",
        "Our vans drive with 70 percent renewable electricity.",
        "83 percent of our suppliers have signed our code of fair work.",
        "2022 haben wir unsere Emissionen um 18 Prozent gesenkt.",
        "En 2021, nous avons réduit nos déchets de 15 pour cent.",
        "En 2022 plantamos 500 árboles en nuestra finca.",
        "当社は2022年にCO2を12%削減しました。",
        "We increased our recycling of waste by 20 percent.",
    ],
)
def test_deeds_of_ones_own_are_accepted(sentence: str) -> None:
    assert attribution.why_not_own(sentence) == ""


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("Our customer Northfoods cut its energy use by 30 percent.", "other_subject"),
        ("Last year, our suppliers reduced their water use.", "other_subject"),
        ("We help cities save 20 percent of their energy.", "other_subject"),
        ("Unsere Kunden sparen 30 Prozent Strom.", "other_subject"),
        ("Nos fournisseurs ont réduit leurs émissions.", "other_subject"),
        ("Nuestros clientes ahorran 40 por ciento.", "other_subject"),
        ("当社のお客様はCO2を20%削減しました。", "other_subject"),
        ("“We cut our emissions by 60 percent.”", "quotation"),
        ("If we switched, we saved 90 tonnes.", "hypothetical"),
        ("Nous pourrions économiser 300 tonnes.", "hypothetical"),
        ("By 2035 we will cut our emissions by 80 percent.", "plan"),
        ("Bis 2035 senken wir unsere Emissionen um 90 Prozent.", "plan"),
        ("2035年までに当社のCO2を50%削減します。", "plan"),
        ("We do not use 100 percent renewable electricity.", "negated"),
        ("We used to recycle 90 percent of our glass waste.", "past"),
        ("Our emissions rose by 9 percent.", "failure"),
        ("In 2021 we were fined 20,000 euros.", "failure"),
        ("Unsere Emissionen sind um 7 Prozent gestiegen.", "failure"),
    ],
)
def test_everything_else_is_refused_with_its_reason(sentence: str, reason: str) -> None:
    assert attribution.why_not_own(sentence) == reason


def _score(*quotes: str) -> float:
    fields = [
        Field(
            path=f"/sustainability_claims/{number}", value=quote, rung=Rung.LLM, verdict=Verdict.SUPPORTED,
            evidence=(Evidence(page="1", url="http://a.test/", source=SourceKind.TEXT, locator="", sha256="0", start=0,
                               end=len(quote), quote=quote),),
        )
        for number, quote in enumerate(quotes)
    ]  # fmt: skip
    found = scoring.score(scoring.load("esg"), "organization", {"sustainability_claims": list(quotes)}, fields)
    return float(next(one["score"] for one in found["criteria"] if one["name"] == "emissions"))


def test_esg_counts_own_deeds_only_and_failures_lower_the_score() -> None:
    deed = "In 2022 we cut our carbon emissions by 12 percent."
    assert _score(deed) == 100.0
    assert _score("Our customer Dairy Co cut its carbon emissions by 40 percent.") == 0.0
    assert _score("By 2040 we will cut our carbon emissions by 90 percent.") == 0.0
    assert _score(deed, "In 2023 our carbon emissions rose by 30 percent.") == 0.0


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("We have read that steel makers cut their emissions by 20 percent.", "other_subject"),
        ("Wir haben gehört, dass Spediteure 12 Prozent Diesel sparten.", "other_subject"),
        ("Creemos que las tostadoras redujeron sus residuos un 30 %.", "other_subject"),
        ("We planted 1,200 trees in 2022, says rancher Bill Dunmore.", "quotation"),
        ("A client tells us that we saved 20 percent.", "quotation"),
        ("地域全体で化学肥料が15％減ったそうです。", "quotation"),
        ("Il nostro corriere ha risparmiato 30 tonnellate di CO2.", "other_subject"),
        ("Unser Gasverbrauch stieg 2022 um 11 Prozent.", "failure"),
        ("»Wir haben 30 Prozent Strom gespart.« – Hotel Elbblick", "quotation"),
        ("On nous dit que le transport a émis 12 % de CO2 en moins", "other_subject"),
        ("Nous ne recyclons que 12 % de nos eaux usées.", "negated"),
        ("Each of us uses 150 litres of water a day.", "other_subject"),
        ("We are applying for FSC certification in 2024.", "plan"),
        ("当社の製品を使えば、CO2を10％減らせます。", "hypothetical"),
        ("Only 12 percent is our share of renewable electricity.", "failure"),
        ("All mills in the region have been certified since 2020.", "other_subject"),
        ("We were told that our heating emits 30 tonnes of CO2 per year.", "quotation"),
        ("Angeblich sparen wir 30 Prozent Strom.", "quotation"),
        ("Reduced its water use by 9% in 2023.", "other_subject"),
        ("Unser Müllaufkommen hat sich 2023 verdoppelt.", "failure"),
    ],
)
def test_what_is_only_reported_about_others_is_refused(sentence: str, reason: str) -> None:
    assert attribution.why_not_own(sentence) == reason


@pytest.mark.parametrize(
    "sentence",
    [
        "We are proud that we cut our emissions by 20 percent.",
        "Wir sind stolz darauf, dass wir 30 Prozent gespart haben.",
        "We planted 1,200 trees in 2022, says our director.",
        "Alle Garnreste werden seit 2021 recycelt.",
        "Todo nuestro empaque es compostable desde 2021.",
        "Sinds 2020 rijden al onze bestelwagens elektrisch.",
    ],
)
def test_what_the_organization_reports_about_itself_is_accepted(sentence: str) -> None:
    assert attribution.why_not_own(sentence) == ""


@pytest.mark.parametrize(
    "phrase",
    [
        "we",
        "the trust",
        "Heute unser Betrieb",
        "La cooperativa",
        "l’entreprise",
        "Marlow Land Trust",
        "our small firm",
        "当社",
    ],
)
def test_a_phrase_for_the_organization_is_recognized(phrase: str) -> None:
    assert attribution.is_organization(phrase, ["Marlow Land Trust"])


@pytest.mark.parametrize(
    "phrase",
    [
        "the mill that we rent",
        "the mill of our company",
        "Das Handwerk",
        "Alder Trust",
        "the old trust",
        "trust",
        "our mill",
    ],
)
def test_a_phrase_for_another_thing_is_not_the_organization(phrase: str) -> None:
    assert not attribution.is_organization(phrase, ["Marlow Land Trust"])


def test_the_company_is_another_on_pages_of_a_city_or_a_school() -> None:
    assert attribution.is_organization("the company", ["Marlow Tools"])
    assert attribution.is_organization("die Firma", ["Cityline"])
    for name in ("City of Marlow", "Marlow School", "Stadt Marlow"):
        assert not attribution.is_organization("the company", [name])
        assert not attribution.is_organization("die Firma", [name])
    assert attribution.is_organization("our company", ["Marlow Museum"])


def test_the_kind_of_the_organization_in_its_domain_names_it() -> None:
    url = "https://www.marlowmuseum.test/planet"
    own = "The museum replaced 1,100 lamps with LEDs in 2021."
    assert attribution.why_not_own(own, attribution.names_in(own, url)) == ""
    other = "The museum of Bath replaced 1,100 lamps with LEDs in 2021."
    assert attribution.why_not_own(other, attribution.names_in(other, url)) == "other_subject"
