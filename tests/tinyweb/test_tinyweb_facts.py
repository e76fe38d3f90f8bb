"""The organisations of the tiny web: what they state is on their pages, word for word, where `truth` says."""

from __future__ import annotations

import html
import json
import re

import pytest

from curtsy.content.documents.model import FileText
from curtsy.services import stored_files
from curtsy.tinyweb.facts import Kind, Organization, Place, org_host, org_number, truth
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
        elif place.source == "document":
            assert site.org.kind is Kind.SCANNED or place.quote in document_text(site, place), place
        else:
            assert place.quote in text_of(site, place.path), place


def document_text(site: OrgSite, place: Place) -> str:
    """The text of the page or sheet of a document; lines that were wrapped are joined."""
    file = document_of(site)
    part = file.parts[(place.part or 0) - 1]
    return " ".join(file.text[part.start : part.end].split())


def document_of(site: OrgSite) -> FileText:
    answer = site.answer(site.document or "")
    assert answer.status == 200
    found = stored_files.file_of(answer.wire[len(answer.head) :], None, f"http://{site.host}{site.document}")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "problem"),
    [(Kind.PDF, ""), (Kind.PDF_TABLE, ""), (Kind.XLSX, ""), (Kind.SCANNED, "no_text"), (Kind.BROKEN, "malformed")],
)
def test_documents_hold_facts_that_no_page_states(kind: Kind, problem: str) -> None:
    site = next(site for site in map(OrgSite, HOSTS, [Shape()] * 20) if site.org.kind is kind)
    assert document_of(site).problem == problem
    pages = " ".join(text_of(site, path) for path in site.paths if path != site.document)
    assert str(site.org.founded_year) not in pages
    assert str(site.org.headquarters) not in pages
    if kind is Kind.PDF:
        assert not any(claim.text in pages for claim in site.org.sustainability_claims)


def test_nobody_can_read_the_facts_of_a_broken_file() -> None:
    known = truth(org_host(17))
    assert known.kind is Kind.BROKEN
    assert known.founded_year is known.headquarters is None
    assert known.where("founded_year") == ()


def facts_of(org: Organization) -> dict[str, list[str]]:
    """Each stated fact as the strings that its quotes must contain."""
    city, _, country = (org.headquarters or "").partition(", ")
    return {
        "name": [org.name],
        "mission": [org.mission or ""],
        "founded_year": [str(org.founded_year or "")],
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
