"""The organisations of the tiny web: what they state is on their pages, word for word, where `truth` says."""

from __future__ import annotations

import html
import json
import re

import pytest

from curtsy.tinyweb.facts import Kind, Organization, org_host, org_number, truth
from curtsy.tinyweb.pages import OrgSite, Shape

HOSTS = [org_host(number) for number in range(20)]


def visible_text(page: str) -> str:
    without = re.sub(r"<(script|style|noscript)\b.*?</\1>", " ", page, flags=re.S)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", without)))


def rendered_text(page: str) -> str:
    """What the inline script of a script-only page would draw."""
    found = re.search(r"draw\((\{.*\})\);</script>", page, re.S)
    assert found
    data = json.loads(found[1])
    return " ".join([data["heading"], *data["paragraphs"]])


def structured(page: str) -> dict[str, object]:
    found = re.search(r'<script type="application/ld\+json">(.*?)</script>', page, re.S)
    assert found
    data: dict[str, object] = json.loads(found[1])
    return data


def at_pointer(data: object, pointer: str) -> object:
    for key in pointer.strip("/").split("/"):
        assert isinstance(data, dict)
        data = data[key]
    return data


def text_of(site: OrgSite, path: str) -> str:
    if site.org.kind is Kind.SCRIPT:
        return rendered_text(site.html(path))
    if site.org.kind is Kind.FETCHED:
        data = json.loads(site.answer(f"/data{path}.json").wire.partition(b"\r\n\r\n")[2])
        return " ".join([data["heading"], *data["paragraphs"]])
    return visible_text(site.html(path))


@pytest.mark.parametrize("host", HOSTS)
def test_every_fact_stands_where_the_truth_says(host: str) -> None:
    site = OrgSite(host, Shape())
    for place in site.org.places:
        if place.source == "structured":
            assert place.pointer
            assert at_pointer(structured(site.html(place.path)), place.pointer) == place.quote
        else:
            assert place.quote in text_of(site, place.path), place


def facts_of(org: Organization) -> dict[str, list[str]]:
    """Each stated fact as the strings that its quotes must contain."""
    city, _, country = (org.headquarters or "").partition(", ")
    return {
        "name": [org.name],
        "mission": [org.mission or ""],
        "founded_year": [str(org.founded_year)],
        "headquarters": [city, country],
        "contact.email": [org.contact.email],
        "contact.phone": [org.contact.phone or ""],
        "people": [person.name for person in org.people],
        "sustainability_claims": [f"{claim.value:,}" for claim in org.sustainability_claims],
    }


@pytest.mark.parametrize("host", [host for host in HOSTS if truth(host).kind is not Kind.THIN])
def test_every_fact_has_a_quote_that_contains_it(host: str) -> None:
    org = truth(host)
    for fact, values in facts_of(org).items():
        quotes = " ".join(place.quote for place in org.where(fact))
        assert all(value in quotes for value in values), (fact, values, quotes)


def test_all_kinds_of_sites_occur() -> None:
    assert {truth(host).kind for host in HOSTS} == set(Kind)


def test_the_same_seed_makes_the_same_web_and_another_seed_another() -> None:
    first, again, other = (OrgSite(HOSTS[1], Shape(), seed) for seed in (1, 1, 2))
    assert [first.html(path) for path in first.paths] == [again.html(path) for path in again.paths]
    assert first.org.contact != other.org.contact


def test_names_are_unique() -> None:
    names = {truth(org_host(number)).name for number in range(4000)}
    assert len(names) == 4000


def test_a_thin_site_says_less_than_100_words_and_states_only_name_and_email() -> None:
    site = OrgSite(org_host(6), Shape())
    assert site.org.kind is Kind.THIN
    assert all(len(visible_text(site.html(path)).split()) < 100 for path in site.paths)
    assert (site.org.mission, site.org.founded_year, site.org.headquarters) == (None, None, None)
    assert site.org.contact.phone is None


@pytest.mark.parametrize("number", [4, 9])
def test_a_script_only_site_shows_nothing_without_its_script(number: int) -> None:
    site = OrgSite(org_host(number), Shape())
    page = site.html("/about")
    assert '<div id="root"></div>' in page
    assert not re.findall(r"<a ", re.sub(r"<script.*?</script>", "", page, flags=re.S))
    assert site.org.mission not in visible_text(page)


def test_the_founding_year_of_a_jsonld_site_does_not_stand_in_its_prose() -> None:
    site = OrgSite(org_host(0), Shape())
    stated = f"was founded in {site.org.founded_year}"
    assert not any(stated in visible_text(site.html(path)) for path in site.paths)


def test_pages_carry_years_and_places_that_belong_to_others() -> None:
    site = OrgSite(org_host(1), Shape())
    years = set(re.findall(r"\b(?:18|19|20)\d\d\b", visible_text(site.html("/about"))))
    assert len(years - {str(site.org.founded_year)}) >= 3


def test_host_names_are_numbered() -> None:
    assert org_number(org_host(7)) == 7
    assert org_number("robots-404.tinyweb.test") is None
    with pytest.raises(ValueError, match="org-0007"):
        truth("example.com")
