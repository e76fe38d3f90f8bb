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


@pytest.mark.parametrize(
    "html",
    [
        "<p>Bookings for the cafe next door: Tel. 01904 555 333</p>",
        "<p>Our accountant is at ledger@merrow.example.</p>",
        "<p>Complaints: Trading Standards, Tel. 01904 555 444.</p>",
        "<h2>Taxi</h2><p>Tel. 01904 555 666</p>",
        "<h2>Where to stay</h2><p>Rose Inn<br>4 High Street<br>Tel. 01904 555 888<br>stay@roseinn.example</p>",
        "<h2>Photographs</h2><p>Jan Holt, jan@holtphoto.example</p>",
        "<p>Example: name@mail.example</p>",
        "<p>For parcels, contact our courier: desk@rushline.example, tel. 01904 555 222.</p>",
        "<p>Our old address: 12 Clay Lane, YO1 9ZZ York</p>",
        "<p>We will move: from May 2092 our address: 77 New Road, YO5 5AA York</p>",
        "<p>Bahnauskunft: Tel. 0451 555 333</p>",
        "<h2>Unterkunft</h2><p>Hotel Rose<br>Marktstraße 4<br>23552 Lübeck<br>Tel. 0451 555 444</p>",
        "<p>Verbraucherzentrale: Tel. 0451 555 666, mail@vz.example</p>",
        "<p>Unsere alte Adresse: Altweg 3, 23552 Lübeck</p>",
        "<h2>Où dormir</h2><p>Hôtel Rose<br>4 rue du Marché<br>69001 Lyon<br>Tél. 04 55 52 33 00</p>",
        "<p>Médiateur de la consommation : cm2c@mail.example, Tél. 04 55 52 55 00</p>",
        "<h2>Puntos de venta</h2><p>Tienda Holt, Calle Nueva 3, 28002 Madrid, Tel. 915 552 244</p>",
        "<p>Taxi: Tel. 955 522 200</p>",
        "<h2>宿泊</h2><p>ローズホテル<br>電話：03-5555-3333</p>",
    ],
)
def test_a_contact_needs_a_place_of_the_organization(html: str) -> None:
    assert published("contact", html) == {}


@pytest.mark.parametrize(
    "html",
    [
        "<blockquote>Call us on Tel. 01904 555 121 – Cafe Rosa</blockquote>",
        "<p>Cafe Rosa serves in our bowls. Tel. 01904 555 122</p>",
        '<p>Site by Pixelbarn, <a href="tel:+441904555119">01904 555 119</a></p>',  # written in another way
        "<aside><h3>Partner of the month</h3><p>Cafe Rosa, Tel. 01904 555 120</p></aside>",
    ],
)
def test_a_contact_on_another_page_is_not_beside_others(html: str) -> None:
    assert published("home", html) == {}


@pytest.mark.parametrize(
    "html",
    [
        "<p>Tel. 01904 555 100</p>",
        "<h2>Workshop and shop</h2><p>Kiln Lane 3, Larkholm<br>Tel. 01904 555 100</p>",
        "<h2>The kiln</h2><p>Larkholm Pottery, Kiln Lane 3<br>Tel. 01904 555 100</p>",  # its name
        "<p>Questions about your order? Ring the pottery on Tel. 01904 555 100</p>",  # a noun of its domain
        "<p>Anna Holt, info@larkholmpottery.example, Tel. 01904 555 100</p>",  # its address
        "<h2>So erreichen Sie uns</h2><p>Telefon: 01904 555 100</p>",
        "<h2>Nous joindre</h2><p>Tél. 01904 555 100</p>",
        "<h2>Contáctanos</h2><p>Teléfono: 01904 555 100</p>",
    ],
)
def test_a_contact_beside_labels_is_its_own(html: str) -> None:
    assert published("contact", html)["/contact/phone"] == "01904 555 100"


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ("<h2>The mill</h2><dl><dt>Founded</dt><dd>1847</dd></dl>", {}),
        ("<h2>Our clay</h2><p>Headquarters: Oslo, Norway</p>", {}),
        ("<h2>Nachbarn</h2><p>Gegründet: 1921</p>", {}),
        ("<h2>Facts and figures</h2><dl><dt>Founded</dt><dd>1954</dd></dl>", {"/founded_year": 1954}),
        ("<h2>Zahlen und Fakten</h2><p>Gründungsjahr: 1954</p>", {"/founded_year": 1954}),
        ("<h2>会社概要</h2><table><tr><th>設立</th><td>1954年</td></tr></table>", {"/founded_year": 1954}),
    ],
)
def test_a_labelled_fact_is_of_the_thing_in_the_heading(html: str, found: dict[str, Any]) -> None:
    assert published("about", html) == found


@pytest.mark.parametrize(
    "said",
    [
        "Brenholt is our oldest client. The company was founded in 1964.",  # the company is the other
        "Brenholt ist unser Lieferant. Das Unternehmen wurde 1964 gegründet.",
        "Brenholt est notre fournisseur. L'entreprise a été fondée en 1964.",
        "Brenholt es nuestro proveedor. La empresa fue fundada en 1964.",
        "Nuestra fundación se creó en 2011.",  # another body, which the name does not have
        "Our foundation was founded in 2011.",
        "La poterie qui se trouvait ici avant nous a été fondée en 1801.",
        "当社が加盟する組合は1889年に設立されました。",  # the guild
        "Our agency is based in London, England.",
    ],
)
def test_the_company_may_be_another(said: str) -> None:
    assert published("about", f"<p>{said}</p>") == {}


@pytest.mark.parametrize(
    "said",
    [
        "The company was founded in 1954.",
        "Ida Lark made bowls in a shed. The company was founded in 1954.",
        "当社は1954年に設立されました。",
        "Until 1990 we were a club; Larkholm Pottery was founded in 1954.",
    ],
)
def test_the_company_is_the_organization_where_no_other_comes_before(said: str) -> None:
    assert published("about", f"<p>{said}</p>") == {"/founded_year": 1954}


@pytest.mark.parametrize(
    "html",
    [
        "<h2>What others do</h2><p>Recycled 90 percent of waste in 2022</p>",
        "<h2>Voices</h2><p>We saved 40 kg of packaging with these bowls.</p>",
        "<h2>The Clay Museum</h2><p>We cut our gas use by 30 percent in 2022.</p>",
        "<h2>In our industry</h2><p>All clay waste is recycled, 12 tonnes a year.</p>",
        "<p>Our customers report:</p><p>We cut our waste by 40 percent in 2023.</p>",
        "<p>Mia Holt, Cafe Rosa:</p><p>We cut our waste by 40 percent in 2023.</p>",
        "<h2>Goals for 2035</h2><ul><li>All kilns electric</li><li>90 percent less waste</li></ul>",
        "<p>Targets:</p><ul><li>Reduce water by 9 percent</li><li>Reduce waste by 40 percent</li></ul>",
        "<h2>Setbacks</h2><p>Recycling share: 12 percent</p>",
        "<p>Unsere Kunden berichten:</p><p>Wir haben unseren Abfall 2023 um 40 Prozent gesenkt.</p>",
        "<h2>Was andere tun</h2><p>Wir haben unseren Abfall 2023 um 40 Prozent gesenkt.</p>",
        "<h2>Objectifs</h2><p>Émissions réduites de 40 %</p>",
        "<p>Nos clients racontent :</p><p>Nous avons réduit nos déchets de 40 % en 2023.</p>",
        "<p>Nuestros clientes cuentan:</p><p>Redujimos nuestros residuos un 40 % en 2023.</p>",
        "<h2>今後の取り組み</h2><p>廃棄物を40%削減します。</p>",
    ],
)
def test_what_announces_a_statement_says_whose_it_is(html: str) -> None:
    assert published("claims", html) == {}


@pytest.mark.parametrize(
    "html",
    [
        "<h2>Goals and results</h2><p>We cut our waste by 40 percent in 2023.</p>",  # a whole sentence about the past
        "<h2>Waste</h2><p>In short:</p><p>We cut our waste by 40 percent in 2023.</p>",
        "<h2>Goals</h2><p>Less gas.</p><h2>Done</h2><p>We cut our waste by 40 percent in 2023.</p>",  # its own part
        "<p>Targets:</p><ul><li>Less gas.</li></ul><p>We cut our waste by 40 percent in 2023.</p>",
    ],
)
def test_a_deed_below_goals_is_still_a_deed(html: str) -> None:
    assert list(published("claims", html).values()) == ["We cut our waste by 40 percent in 2023"]


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("Der Sitz des Unternehmens ist Lübeck, Deutschland.", {"/headquarters": "Lübeck, Deutschland"}),
        ("Le siège de l'entreprise est à Lyon, France.", {"/headquarters": "Lyon, France"}),
        ("La sede de la empresa está en Vigo, España.", {"/headquarters": "Vigo, España"}),
        ("Ida Lark and Joe Holt started Larkholm Pottery in 1954 after the war.", {"/founded_year": 1954}),
        ("In 1954 a group led by Ida Lark (born 1931) set up Larkholm Pottery.", {"/founded_year": 1954}),
        ("Ida Lark fundó Larkholm Pottery en 1954.", {"/founded_year": 1954}),
        ("Der Sitz der Firma Brenholt ist Oslo, Norwegen.", {}),  # the same sentences about others
        ("Le siège du fournisseur est à Oslo, Norvège.", {}),
        ("Ida Lark started Stackly in 1949.", {}),
        ("In 1964 two brothers founded Brenholt, our supplier.", {}),
        ("Joe Holt founded Larkholm Pottery Friends in 1999.", {}),
        ("In 1990 Ida's son founded Larkholm Tiles.", {}),
    ],
)
def test_the_object_of_a_foundation_and_the_owner_of_a_seat_decide(said: str, found: dict[str, Any]) -> None:
    assert published("about", f"<p>{said}</p>") == found


@pytest.mark.parametrize(
    "said",
    [
        "Our pottery · Member of the Water Guild · Template by Solarpixel 24",  # fragments are no statement
        "Larkholm Pottery · 100 % renewable hosting by Greenhost",
        "Larkholm Pottery – Mitglied im Klimabündnis – Gestaltung: Waldstudio 24",
        "Larkholm Pottery · Mitglied der Bio-Innung 12 · Umsetzung Holzweg 24",
        "Larkholm Pottery · Membre du réseau énergie 44 · Conception Atelier Bois 24",
        "Larkholm Pottery | Miembro de la red agua 2020 | Diseño: Papel 24",
        "日本の森林は国土の約67％を占めています。",  # facts about the world
        "2022年、日本の排出量は2.5％減少しました。",
        "木は1年に22kgのCO2を吸収します。",
        "私たちの地球の森林は31％です。",
        "中国的森林覆盖率达到24%。",
        "塑料废弃物每年达到3亿吨CO2。",
        "Forests cover 31 % of our planet.",
        "Recycled paper saves 60 percent of water.",
        "Plastic waste in the sea: 8 million tonnes",
        "Alle Verpackungen in Deutschland werden zu 67 % recycelt.",
    ],
)
def test_credits_and_facts_about_the_world_are_no_claims(said: str) -> None:
    assert published("claims", f"<p>{said}</p>") == {}


@pytest.mark.parametrize(
    "html",
    [
        "<h2>Brenholt</h2><p>We cut our waste by 40 percent in 2023.</p>",
        "<h2>Weingut Moser</h2><p>Wir haben unseren Abfall 2023 um 40 Prozent gesenkt.</p>",
        "<h2>森田農園</h2><p>私たちは2023年に廃棄物を40％削減しました。</p>",
        "<dl><dt>Brenholt</dt><dd>We cut our waste by 40 percent in 2023.</dd></dl>",
        "<p>What have you done, Ms Holt?</p><p>We cut our waste by 40 percent in 2023.</p>",
        "<h2>Five questions to Mia Holt</h2><h3>Waste</h3><p>We cut our waste by 40 percent in 2023.</p>",
        "<h2>Interview mit Jan Moser</h2><p>Wir haben unseren Abfall 2023 um 40 Prozent gesenkt.</p>",
        "<h2>Entretien avec Jean Moser</h2><p>Nous avons réduit nos déchets de 40 % en 2023.</p>",
        "<h2>Entrevista a Juan Mora</h2><p>Redujimos nuestros residuos un 40 % en 2023.</p>",
    ],
)
def test_the_first_person_below_another_name_is_another(html: str) -> None:
    assert published("claims", html) == {}


@pytest.mark.parametrize("heading", ["Waste", "Packaging", "Abfall", "Interview with our director", "Larkholm"])
def test_a_common_word_is_no_name_of_a_speaker(heading: str) -> None:
    html = f"<h2>{heading}</h2><p>We cut our waste by 40 percent in 2023.</p>"
    assert list(published("claims", html).values()) == ["We cut our waste by 40 percent in 2023"]


@pytest.mark.parametrize(
    "lines",
    [
        "With the support of the Region, 1 Town Hall Square, 37000 Tours",
        "Gefördert durch das Land, Marktplatz 1, 23552 Lübeck",
        "Avec le soutien de la Région, 1 place de la Mairie, 37000 Tours",
        "Con el apoyo del Ayuntamiento, Plaza Mayor 1, 28002 Madrid",
        "Venue of the fair, 4 High Street, York YO1 9ZZ",
    ],
)
@pytest.mark.parametrize("before", ["Larkholm Pottery<br>", "Address: "])
def test_prose_before_an_address_says_that_it_is_of_others(before: str, lines: str) -> None:
    assert published("contact", f"<p>{before}{lines}</p>") == {}
