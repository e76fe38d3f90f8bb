"""What one organisation of the tiny web states is an invention on the pages of another: none of it is published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from curtsy.content.document import Document
from curtsy.core.claims import Claim, Rung, Source, SourceKind, Verdict
from curtsy.grounding import judge, schema
from curtsy.grounding.folded_text import plain
from curtsy.tinyweb import facts
from curtsy.tinyweb.facts import Kind, Organization
from curtsy.tinyweb.pages import OrgSite, Shape

SCHEMA = schema.load("organization")
PATHS = ("/", "/about", "/contact", "/claims")


def stated(org: Organization) -> Iterator[tuple[str, Any, str]]:
    """(leaf, value, the sentence that states it)"""
    yield "/name", org.name, f"Welcome to {org.name}."
    yield "/mission", org.mission, f"{facts.mission_sentence(org)}."
    yield "/founded_year", org.founded_year, f"{facts.founded_sentence(org)}."
    yield "/headquarters", org.headquarters, f"{facts.headquarters_sentence(org)}."
    yield "/contact/email", org.contact.email, f"Write to us: {org.contact.email}."
    yield "/contact/phone", org.contact.phone, f"Telephone: {org.contact.phone}."
    yield "/contact/address", org.contact.address, f"Visit us: {org.contact.address}."
    for number, claim in enumerate(org.sustainability_claims):
        yield f"/sustainability_claims/{number}", claim.text, f"{claim.text}."


def text_of(org: Organization) -> str:
    site = OrgSite(org.host, Shape())
    pages = (Document.parse(site.html(path).encode(), "text/html", f"http://{org.host}{path}") for path in PATHS)
    return "\n".join(page.text() for page in pages)


def organisations(count: int) -> list[Organization]:
    found = (facts.truth(facts.org_host(number)) for number in range(count))
    return [org for org in found if org.kind in (Kind.PROSE, Kind.JSONLD)]


ORGS = organisations(40)


@pytest.mark.parametrize("at", range(len(ORGS) - 1))
def test_what_another_states_is_withheld_whatever_is_quoted_for_it(at: int) -> None:
    own, other = ORGS[at], ORGS[at + 1]
    text = text_of(own)
    source = Source(SourceKind.TEXT, "page", f"http://{own.host}/", text)
    true_sentences = [sentence for _, _, sentence in stated(own)]
    tried = 0
    for path, value, sentence in stated(other):
        if value is None or plain(str(value)) in plain(text):
            continue
        for quote in (None, sentence, str(value), text[:300], *true_sentences):
            claim = Claim(path=path, value=value, rung=Rung.LLM, source=source, quote=quote)
            field = judge.judge(claim, SCHEMA.leaf_for(path))
            assert field.verdict is Verdict.UNSUPPORTED, (value, quote, field)
            tried += 1
    assert tried >= 50


@pytest.mark.parametrize("at", range(len(ORGS)))
def test_what_it_states_itself_is_published_with_the_sentence_that_states_it(at: int) -> None:
    org = ORGS[at]
    text = text_of(org)
    source = Source(SourceKind.TEXT, "page", f"http://{org.host}/", text)
    for path, value, sentence in stated(org):
        if plain(sentence) not in plain(text):
            continue  # the kinds that have it in their JSON-LD only
        claim = Claim(path=path, value=value, rung=Rung.LLM, source=source, quote=sentence)
        field = judge.judge(claim, SCHEMA.leaf_for(path))
        assert field.verdict is Verdict.SUPPORTED, (path, value, field)
        assert field.evidence[0].quote in text


@pytest.mark.parametrize(
    "org", [facts.truth(facts.org_host(number)) for number in (6, 16, 26)], ids=lambda org: org.host
)
def test_on_thin_pages_only_name_and_address_for_mail_are_published(org: Organization) -> None:
    site = OrgSite(org.host, Shape())
    text = "\n".join(
        Document.parse(site.html(path).encode(), "text/html", "http://x.test/").text() for path in site.paths
    )
    source = Source(SourceKind.TEXT, "page", f"http://{org.host}/", text)
    invented = [
        ("/mission", f"{org.name} exists to make the world a better place for everyone", text),
        ("/founded_year", 2024, "© 2024"),
        ("/founded_year", 2024, text[-200:]),
        ("/founded_year", 1998, f"{org.name} was founded in 1998"),
        ("/headquarters", "London, United Kingdom", text[:200]),
        ("/headquarters", "Bergen, Norway", "Our headquarters are in Bergen, Norway"),
        ("/sustainability_claims/0", "We are carbon neutral since 2020", "More soon."),
        ("/contact/phone", "+47 55 01 23 45", text),
        ("/contact/address", f"Mill Road 12, {org.name}", org.name),
    ]
    true = [("/name", org.name, org.name), ("/contact/email", org.contact.email, org.contact.email)]
    claims = [
        Claim(path=path, value=value, rung=Rung.LLM, source=source, quote=quote)
        for path, value, quote in invented + true
    ]
    fields = judge.settle(SCHEMA, claims)
    assert judge.assemble(SCHEMA, fields) == {"name": org.name, "contact": {"email": org.contact.email}}
    assert judge.confidence(SCHEMA, fields, len(text.split())).reasons == ("thin", "unsupported")
