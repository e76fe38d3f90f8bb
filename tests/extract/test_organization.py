"""The built-in schema on pages as people write them, in several languages, and what it must leave alone."""

from __future__ import annotations

from typing import Any

import pytest

from curtsy.extract import record_claims
from curtsy.grounding import judge, schema, scoring

SCHEMA = schema.load("organization")


def record(pages: dict[str, str], form: schema.Schema = SCHEMA) -> dict[str, Any]:
    sources = [
        record_claims.sources_of(path, f"http://x.test/{path}", html.encode(), "text/html; charset=utf-8")
        for path, html in pages.items()
    ]
    data = judge.assemble(form, judge.settle(form, record_claims.extract(form, sources).claims))
    return {key: value for key, value in data.items() if value}


GERMAN = {
    "impressum": """<title>Impressum – Solarwerk Süd e.V.</title><h1>Impressum</h1><p>Angaben gemäß § 5</p>
        <p>Telefon: 0761 / 123 45 67<br>E-Mail: info@solarwerk.test</p>""",
    "ueber-uns": """<title>Über uns – Solarwerk Süd e.V.</title><h1>Über uns</h1>
        <p>Wir wurden 1994 von zwölf Nachbarn gegründet. Unser Sitz ist in Freiburg, Deutschland. Unsere Mission ist es,
        Strom vom Dach für alle bezahlbar zu machen. Seit 2019 stammen 85 Prozent unseres Stroms vom eigenen Dach.</p>
        <p>Die Stadtwerke wurden 1898 gegründet.</p>""",
}
FRENCH = {
    "a-propos": """<title>À propos | Atelier du Fil</title><h1>Qui sommes-nous</h1>
        <p>L'Atelier du Fil a été fondé en 1987. Notre mission est de réparer ce qui peut l'être.
        Notre siège social est situé à Nantes, France.</p>""",
    "contact": """<title>Contact | Atelier du Fil</title><p>Tél. : +33 2 40 12 34 56</p>
        <p>Adresse : 4 rue du Port, 44000 Nantes</p><a href="mailto:bonjour@fil.test?subject=x">écrivez-nous</a>""",
}
ENGLISH = {
    "": """<title>Acme Widgets - Better widgets</title><h1>Better widgets for a better world</h1>
        <p>© 2011–2024 Acme Widgets Ltd. All rights reserved.</p>""",
    "about": """<title>About us - Acme Widgets</title><h1>About us</h1><p>Founded in 1998, Acme Widgets makes widgets.
        Headquartered in Leeds, United Kingdom, we employ 300 people. In 2022
        we sent 40 % less waste to landfill.</p>""",
    "contact": '<title>Contact</title><p>Call us on <a href="tel:+441134960000">+44 113 496 0000</a></p>',
}


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        (
            GERMAN,
            {
                "name": "Solarwerk Süd e.V.",
                "mission": "Strom vom Dach für alle bezahlbar zu machen",
                "founded_year": 1994,
                "headquarters": "Freiburg, Deutschland",
                "sustainability_claims": ["Seit 2019 stammen 85 Prozent unseres Stroms vom eigenen Dach"],
                "contact": {"email": "info@solarwerk.test", "phone": "0761 / 123 45 67"},
            },
        ),
        (
            FRENCH,
            {
                "name": "Atelier du Fil",
                "mission": "de réparer ce qui peut l'être",
                "founded_year": 1987,
                "headquarters": "Nantes, France",
                "contact": {
                    "email": "bonjour@fil.test",
                    "phone": "+33 2 40 12 34 56",
                    "address": "4 rue du Port, 44000 Nantes",
                },
            },
        ),
        (
            ENGLISH,
            {
                "name": "Acme Widgets",
                "founded_year": 1998,
                "headquarters": "Leeds, United Kingdom",
                "sustainability_claims": ["In 2022 we sent 40 % less waste to landfill"],
                "contact": {"phone": "+44 113 496 0000"},
            },
        ),
    ],
    ids=["German", "French", "English"],
)
def test_an_organization_is_found_on_its_pages(pages: dict[str, str], expected: dict[str, Any]) -> None:
    assert record(pages) == expected


@pytest.mark.parametrize(
    "sentence",
    [
        "Our partner Foo was established in 1955.",
        "Acme Widgets' partner Foo was founded in 1955.",
        "We believe that Foo was founded in 1954.",
        "The Widget Museum was founded in 1871.",
        "The hall, established in 1871, is shared by Acme Widgets.",
        "© 1998 Acme Widgets",
        "Since 1998 we have shipped to 40 countries.",
        "Our partner Foo is headquartered in Oslo, Norway.",
        "We visited the headquarters in Oslo, Norway.",
        "We bought 3 energy drinks for our climate meeting.",
        "Our suppliers number 40.",
        "Our mission statement is long.",
        "Our phone has 12 keys.",
        "Their mission is to sell more.",
        "The mill that we rent was founded in 1871.",
        "Our competitor, whom we admire, was founded in 1900.",
        "We have never planted 500 trees.",
        "Unlike others we do not use 100% renewable electricity.",
        "Find us: we are open Monday 9 to 17.",
        "© 2024 All rights reserved.",
        "© 2024 Powered by WordPress",
    ],
)
def test_what_is_said_of_others_or_in_passing_is_left_alone(sentence: str) -> None:
    assert record({"about": f"<title>About | Acme Widgets</title><p>{sentence}</p>"}) == {"name": "Acme Widgets"}


@pytest.mark.parametrize("line", ["© 2024 All rights reserved.", "© 2024 Powered by WordPress", "© 2024. Imprint"])
def test_a_copyright_line_without_an_owner_is_no_name(line: str) -> None:
    found = record({"": f"<title>Acme Foods | Home</title><h1>Acme Foods</h1><p>{line}</p>"})
    assert found == {"name": "Acme Foods"}


@pytest.mark.parametrize(
    ("links", "phone"),
    [
        ('<a href="tel:+4722334455">Call us</a>', "+4722334455"),
        ('<a href="tel:+4722334455">☎</a> <a href="tel:+4722334455">+47 22 33 44 55 (9-17h)</a>', "+47 22 33 44 55"),
        ('<a href="tel:call">Call us</a>', None),
    ],
)
def test_a_telephone_number_is_one(links: str, phone: str | None) -> None:
    found = record({"contact": f"<title>Contact | Acme Widgets</title><p>{links}</p>"})
    assert found.get("contact", {}).get("phone") == phone


@pytest.mark.parametrize(
    "home",
    [
        "<title>Fresh every morning</title><h1>Fresh every morning</h1>",
        "<title>Start</title><p>© 2024 ShopEngine Inc. All rights reserved.</p>",
        "<title>Start</title><footer>Website by Pixel House</footer>",
    ],
)
def test_one_sign_is_not_enough_for_a_name(home: str) -> None:
    assert record({"": home}) == {}


def test_a_contact_of_others_is_not_the_organizations() -> None:
    page = "<title>Home | Acme Widgets</title><p>Tickets: <a href='mailto:a@tickets.test'>a@tickets.test</a></p>"
    assert record({"": page}) == {"name": "Acme Widgets"}
    own = "<title>Contact | Acme Widgets</title><p>Hosting: a@host.test</p><p>us@acme.test</p>"
    assert record({"contact": own})["contact"] == {"email": "us@acme.test"}


def test_values_that_contradict_each_other_are_withheld_with_both_quotes() -> None:
    pages = {
        "": "<title>Home | Acme Widgets</title><p>Acme Widgets was founded in 1984.</p>",
        "about": "<title>About | Acme Widgets</title><p>Acme Widgets was founded in 1986.</p>",
    }
    sources = [
        record_claims.sources_of(path, f"http://x.test/{path}", html.encode(), "text/html")
        for path, html in pages.items()
    ]
    fields = judge.settle(SCHEMA, record_claims.extract(SCHEMA, sources).claims)
    rivals = [field for field in fields if field.path == "/founded_year"]
    assert [(one.value, one.note) for one in rivals] == [(1984, "contradicted"), (1986, "contradicted")]
    assert all(one.evidence[0].quote.startswith("Acme Widgets was founded") for one in rivals)
    sure = judge.confidence(SCHEMA, fields, 500)
    assert "contradicted" in sure.reasons
    assert sure.share < 1.0


@pytest.mark.parametrize(
    ("text", "mission"),
    [
        (
            "Our mission is to keep the <b>U.S. Coast</b> clean for everyone. We began small.",
            "to keep the U.S. Coast clean for everyone",
        ),
        (
            "Unsere Mission ist es, Wasser nach <b>St. Gallen</b> zu bringen. Seit je.",
            "Wasser nach St. Gallen zu bringen",
        ),
        ("Notre mission est de servir <i>St. Malo</i> et ses îles. Venez.", "de servir St. Malo et ses îles"),
        ("Our mission is to bring water to all. We began small.", "to bring water to all"),
    ],
)
def test_a_full_stop_of_an_abbreviation_does_not_end_the_mission(text: str, mission: str) -> None:
    home = f"<title>Home | Acme Widgets</title><meta property=og:site_name content='Acme Widgets'><p>{text}</p>"
    assert record({"": home})["mission"] == mission


def about(text: str, title: str = "About us | Alder Joinery") -> dict[str, Any]:
    home = "<title>Alder Joinery | Stairs</title><p>© Alder Joinery</p>"
    return record({"": home, "about": f"<title>{title}</title><h1>About us</h1>{text}"})


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("<p>Ruth Alder founded the firm in 1987 in a shed.</p>", 1987),
        ("<p>The joinery was set up by two sisters in 1987.</p>", 1987),
        ("<p>In 1987, Ruth Alder started our company with two friends.</p>", 1987),
        ("<p>Unser Betrieb wurde 1893 von Meent Alder gegründet.</p>", 1893),
        ("<p>1893 gründete Meent Alder die Firma.</p>", 1893),
        ("<p>L’entreprise a été créée en 1974 par six voisins.</p>", 1974),
        ("<p>La empresa nació en 1958.</p>", 1958),
        ("<p>L’azienda è stata fondata da Pietro nel 1904.</p>", 1904),
        ("<p>Gerrit Alder richtte het bedrijf op in 1934.</p>", 1934),
        ("<p>当社は1988年に設立されました。</p>", 1988),
        ("<p>Founded: 1987</p>", 1987),
        ("<div>Founded</div><div>1987</div>", 1987),
    ],
)
def test_the_year_of_foundation_is_found_in_sentences_and_labeled_lines(text: str, year: int) -> None:
    assert about(text)["founded_year"] == year


@pytest.mark.parametrize(
    "text",
    [
        "<p>The mill that we rent was founded in 1889.</p>",
        "<p>The mill of our company was founded in 1889.</p>",
        "<p>Since 2020 we have belonged to Oak Holdings plc. The company was founded in 1921.</p>",
        "<p>Ruth Alder founded the choir in 1987.</p>",
        "<h2>Our parent company</h2><p>The company was founded in 1921.</p><p>Founded: 1921</p>",
        "<h2>Oak Timber GmbH</h2><p>Founded: 1921</p>",
        "<blockquote><p>The company was founded in 1921.</p></blockquote>",
        "<p>Founded: 1921</p><p>Founded: 1935</p>",
    ],
)
def test_the_foundation_of_something_else_is_left_out(text: str) -> None:
    assert "founded_year" not in about(text)


def test_labels_below_the_heading_of_another_company_do_not_hide_the_own() -> None:
    own = "<table><tr><th>Founded</th><td>1949</td></tr></table>"
    other = "<h2>Group companies</h2><table><tr><th>Founded</th><td>1996</td></tr></table>"
    assert about(own + other)["founded_year"] == 1949


def test_an_answer_of_others_in_an_interview_is_not_a_claim() -> None:
    title = "Sustainability | Alder Joinery"
    asked = "<p>What does The Pedal do? We cut our emissions by 30 percent in 2022.</p>"
    own = "<p>What have we done? We cut our waste by 12 percent in 2021.</p>"
    found = record({"sustainability": f"<title>{title}</title><h1>Sustainability</h1>{asked}{own}"})
    assert found["sustainability_claims"] == ["We cut our waste by 12 percent in 2021"]


def test_a_sentence_without_we_is_a_claim_on_the_page_about_them() -> None:
    page = "<title>Compromiso | Alder</title><h1>Compromiso</h1><p>En 2023 reciclamos el 97 % de los restos.</p>"
    assert record({"compromiso": page})["sustainability_claims"] == ["En 2023 reciclamos el 97 % de los restos"]


def test_japanese_pages_are_recognized_by_their_titles() -> None:
    page = "<title>環境への取り組み｜三浦和紙</title><p>当社は2023年に廃棄物を22％削減しました。</p>"
    assert record({"p3.html": page})["sustainability_claims"] == ["当社は2023年に廃棄物を22％削減しました"]


OWN = {
    "title": "Company", "type": "object",
    "properties": {
        "name": {"type": "string"}, "founded": {"type": "integer"}, "email": {"type": "string"},
        "sustainability_claims": {"type": "array", "items": {"type": "string"}},
    },
    "x-curtsy": {"per": "site"},
}  # fmt: skip
SITE = {
    "": """<title>Alder Joinery | Stairs</title><script type="application/ld+json">{"@type": "WebSite",
        "name": "Alder Joinery",
        "publisher": {"@type": "Organization", "name": "Studio Lime", "email": "hi@lime.test"}}</script>""",
    "about": "<title>About us | Alder Joinery</title><p>Ruth Alder founded the firm in 1987.</p>",
    "sustainability": "<title>Sustainability</title><p>In 2023 we recycled 90 percent of our waste.</p>",
    "contact": "<title>Contact</title><p>desk@x.test</p>",
}


def test_a_schema_of_ones_own_for_companies_uses_the_rules_of_the_built_in_one() -> None:
    assert record(SITE, schema.inline(OWN)) == {
        "name": "Alder Joinery",
        "founded": 1987,
        "email": "desk@x.test",
        "sustainability_claims": ["In 2023 we recycled 90 percent of our waste"],
    }


def test_a_schema_about_something_else_keeps_its_own_rules() -> None:
    assert "founded" not in record(SITE, schema.inline({**OWN, "title": "Building"}))


def test_the_phone_of_the_maker_of_the_site_is_left_out() -> None:
    footer = "<footer><p>Web desarrollada por Nube Norte, tel. 91 555 88 11</p></footer>"
    contact = f"<title>Contacto | Alder</title><p>Teléfono: 958 555 301</p>{footer}"
    assert record({"": f"<title>Alder | Quesos</title>{footer}", "contacto": contact})["contact"] == {
        "phone": "958 555 301"
    }


@pytest.mark.parametrize(
    ("text", "year"),
    [
        ("Alder Joinery is opgericht in 1976.", 1976),
        ("Im Jahr 1888 gründete Josef Mair die Alder Joinery.", 1888),
        ("1937 : fondation de Alder Joinery", 1937),
        ("A family firm founded in 1962, we make doors.", 1962),
        ("Seine Tochter gründete 1993 die Alder Joinery.", 1993),
        ("Alder Joinery Ltd was incorporated in 1995.", 1995),
    ],
)
def test_the_year_is_found_in_histories(text: str, year: int) -> None:
    assert about(f"<p>{text}</p>").get("founded_year") == year


@pytest.mark.parametrize(
    "text", ["Unlike Vitrona, which was founded in 1999, we blow by hand.", "Unlike Vitrona, founded in 1999, we work."]
)
def test_we_after_the_founding_of_another_is_not_its_subject(text: str) -> None:
    assert "founded_year" not in about(f"<p>{text}</p>")


def test_facts_below_the_heading_of_a_named_subsidiary_are_its_own() -> None:
    ours = "<dl><dt>Founded<dd>1933<dt>Headquarters<dd>Leeds, England</dl>"
    theirs = "<h2>Our subsidiary Lumière Cristal</h2><dl><dt>Founded<dd>1867<dt>Headquarters<dd>Nancy, France</dl>"
    found = about(ours + theirs)
    assert (found["founded_year"], found["headquarters"]) == (1933, "Leeds, England")


def test_the_place_of_the_head_office_ends_with_its_country() -> None:
    found = about("<p>We are based in Madison, Wisconsin ever since.</p>")
    assert found["headquarters"] == "Madison, Wisconsin"


@pytest.mark.parametrize(
    ("text", "mission"),
    [
        ("Alder Joinery exists to keep old doors open.", "to keep old doors open"),
        ("Notre raison d'être est de bâtir des portes sobres.", "de bâtir des portes sobres"),
        ("私たちの使命は、森を守りながら紙を届けることです。", "森を守りながら紙を届けること"),
        ("Unser Leitbild: heilen, ohne zu hetzen.", "heilen, ohne zu hetzen"),
    ],
)
def test_the_mission_is_found_in_other_words(text: str, mission: str) -> None:
    assert about(f"<p>{text}</p>")["mission"] == mission


def test_what_they_say_against_themselves_lowers_a_score_and_is_not_published() -> None:
    text = "<p>We cut our carbon emissions by 12 percent in 2022.</p><p>In 2023 our emissions rose by 9 percent.</p>"
    page = record_claims.sources_of("1", "http://x.test/sustainability", text.encode(), "text/html; charset=utf-8")
    fields = judge.settle(SCHEMA, record_claims.extract(SCHEMA, [page]).claims)
    data = judge.assemble(SCHEMA, fields)
    assert data["sustainability_claims"] == ["We cut our carbon emissions by 12 percent in 2022"]
    assert judge.confidence(SCHEMA, fields, 500).share == 1.0
    scored = scoring.score(scoring.load("esg"), "organization", data, fields)
    emissions = next(one for one in scored["criteria"] if one["name"] == "emissions")
    assert emissions["score"] == 0.0
    assert [one["quote"] for one in emissions["quotes"]] == [
        "In 2023 our emissions rose by 9 percent.", "We cut our carbon emissions by 12 percent in 2022."
    ]  # fmt: skip


def test_deeds_below_the_name_of_a_supplier_are_its_own() -> None:
    suppliers = "<title>About us</title><h1>About us</h1><p>We buy from our supplier Tidewell Salt.</p>"
    ours, theirs = (
        "<p>We planted 300 trees in 2022.</p>",
        "<h3>Tidewell Salt</h3><p>We cut our gas use by 20% in 2020.</p>",
    )
    pages = {"about": suppliers, "environment": f"<title>Environment</title><h1>Environment</h1>{ours}{theirs}"}
    assert record(pages)["sustainability_claims"] == ["We planted 300 trees in 2022"]


def test_a_row_of_figures_is_no_claim() -> None:
    table = "<table><tr><th>Electricity (MWh)<td>410<td>320</table><p>We use 20% less electricity.</p>"
    found = record({"sustainability": f"<title>Sustainability</title>{table}"})
    assert found["sustainability_claims"] == ["We use 20% less electricity"]


def test_a_page_called_the_house_is_about_them() -> None:
    pages = {"": "<title>Alder</title>", "la-maison": "<title>La maison</title><p>Nous avons été fondés en 1987.</p>"}
    others = [f"boutique/{number}" for number in range(10)]
    chosen = record_claims.choose(SCHEMA, [(f"http://x.test/{path}", None) for path in (*pages, *others)])
    assert chosen == ["http://x.test/", "http://x.test/la-maison"]


def test_a_phone_is_that_of_its_sentence() -> None:
    text = "Call 01628 555 033. Group bookings go through Thames Tours, groups@thames.test, 01628 555 900."
    pages = {"contact": f"<title>Contact</title><p>{text}</p><p>info@x.test</p>"}
    assert record(pages)["contact"] == {"email": "info@x.test", "phone": "01628 555 033"}


NOTES = {"type": "object", "properties": {"name": {"type": "string"}, "year": {"type": "integer"}}}


def _noted(*pages: str, **selector: object) -> list[object]:
    """The years that a fallback for notes finds, beside a selector for sentences."""
    many = [{"pattern": r"was founded in (\d{4})"}, {"pattern": r"(?m)^Since (\d{4})$", **selector}]
    made = schema.inline({**NOTES, "x-curtsy": {"per": "site", "selectors": {"year": many}}})
    sources = [
        record_claims.sources_of(str(number), f"http://x.test/{number}", html.encode(), "text/html; charset=utf-8")
        for number, html in enumerate(pages)
    ]
    return [claim.value for claim in record_claims.extract(made, sources).claims if claim.path == "/year"]


def test_a_fallback_counts_only_where_no_page_has_a_value() -> None:
    note, sentence = "<p>Since 1911</p>", "<p>Alder was founded in 1954.</p>"
    assert _noted(note, sentence) == [1911, 1954]
    assert _noted(note, sentence, fallback=True) == [1954]
    assert _noted(note, "<p>Alder</p>", fallback=True) == [1911]


def test_a_note_below_another_name_is_not_asserted_of_the_site() -> None:
    assert _noted("<h1>Rope and net</h1><p>Since 1911</p>", asserted=True) == [1911]
    assert _noted("<h1>Rope and net</h1><p>Brenholt Castle</p><p>Since 1911</p>", asserted=True) == []
    assert _noted("<h1>Rope and net</h1><p>Grand Hotel Elm</p><p>Since 1911</p>") == [1911]


def test_of_several_offices_the_head_office_counts() -> None:
    office = "<p>{}</p><p>Address: {}</p><p>Phone: {}</p>"
    leeds = office.format("Leeds branch", "4 Mill Lane, Leeds LS1 4DY", "0113 555 880")
    hull = office.format("Head office", "9 Dock Street, Hull HU1 1AA", "01482 555 900")
    found = record({"contact": f"<title>Contact</title><h1>Contact</h1>{leeds}{hull}"})["contact"]
    assert found == {"address": "9 Dock Street, Hull HU1 1AA", "phone": "01482 555 900"}


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("office (at) x (dot) test", "office@x.test"),
        ("office [at] x.test", "office@x.test"),
        ("office at x.test", None),
    ],
)
def test_a_spelled_address_is_written_as_one_sends_a_mail(said: str, value: str | None) -> None:
    found = record({"contact": f"<title>Contact</title><h1>Contact</h1><p>Write to {said}</p>"})
    assert found.get("contact", {}).get("email") == value
