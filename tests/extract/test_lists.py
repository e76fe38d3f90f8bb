"""Items of lists: the values of one item come from one place of the page, or are not claimed."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from curtsy.core.claims import Claim
from curtsy.extract import elements, record_claims, selectors, structured
from curtsy.extract.record_claims import PageSources
from curtsy.grounding import judge
from curtsy.grounding import schema as schemas
from curtsy.grounding.schema import Schema

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
PRODUCT = {"name": TEXT, "price": NUMBER}
NAME, PRICE = "span.n", "span.c"


@pytest.fixture(autouse=True)
def _ended() -> Iterator[None]:
    yield
    elements.close()


def schema_of(hints: dict[str, Any], item: dict[str, Any] | None = None) -> Schema:
    items = {"type": "object", "properties": item or PRODUCT}
    document = {"type": "object", "properties": {"products": {"type": "array", "items": items}}, "x-curtsy": hints}
    return schemas.inline(document)


def page(html: str, name: str = "p1") -> PageSources:
    return record_claims.sources_of(name, f"http://a.test/{name}", html.encode(), "text/html; charset=utf-8")


def jsonld(*data: Any, name: str = "p1") -> PageSources:
    return page("".join(f'<script type="application/ld+json">{json.dumps(one)}</script>' for one in data), name)


def items(claims: list[Claim]) -> list[dict[str, Any]]:
    """The first value of each leaf, item by item."""
    found: dict[int, dict[str, Any]] = {}
    for claim in claims:
        _, _, number, leaf = claim.path.split("/")
        found.setdefault(int(number), {}).setdefault(leaf, claim.value)
    assert list(found) == list(range(len(found)))
    return list(found.values())


def selected(html: str, item: dict[str, Any] | None = None, **places: Any) -> list[dict[str, Any]]:
    hints = {f"products.*.{name}": place for name, place in (places or {"name": NAME, "price": PRICE}).items()}
    return items(selectors.claims(schema_of({"selectors": hints}, item), page(html)))


def product(name: str | None, price: str | None, tag: str = "li") -> str:
    said = [f"<span class=n>{name}</span>"] * (name is not None) + [f"<p><span class=c>{price}</span></p>"] * (
        price is not None
    )
    return f"<{tag}>{''.join(said)}</{tag}>"


def listed(*products: tuple[str | None, str | None]) -> str:
    return f"<main><ul>{''.join(product(*one) for one in products)}</ul></main>"


# Selectors

LAMP, TABLE = {"name": "Lamp", "price": 10}, {"name": "Table", "price": 99.5}
STOOL, BED = {"name": "Stool", "price": 10}, {"name": "Bed", "price": 500}
SHOP = [("Lamp", "10.00"), ("Chair", "price on request"), ("Table", "99.50"), ("Stool", "10.00"), ("Bed", "500")]


@pytest.mark.parametrize("asked", ["price on request", None, ""], ids=["words", "nothing", "empty"])
@pytest.mark.parametrize("places", [(NAME, PRICE), ("li span.n", PRICE), (NAME, "li p > span.c")])
def test_a_price_stays_with_its_product(asked: str | None, places: tuple[str, str]) -> None:
    html = listed(*(one if one[0] != "Chair" else ("Chair", asked) for one in SHOP))
    assert selected(html, name=places[0], price=places[1]) == [LAMP, {"name": "Chair"}, TABLE, STOOL, BED]


def test_a_product_without_a_name_keeps_its_price() -> None:
    html = listed(("Lamp", "10"), (None, "99.50"), ("", "12"), ("Bed", "500"))
    assert selected(html) == [LAMP, {"price": 99.5}, {"price": 12}, BED]


def test_what_is_published_is_what_the_page_says() -> None:
    schema = schema_of({"selectors": {"products.*.name": NAME, "products.*.price": PRICE}})
    claims = record_claims.extract(schema, [page(listed(*SHOP))]).claims
    data = judge.assemble(schema, judge.settle(schema, claims))
    assert data == {"products": [LAMP, {"name": "Chair"}, TABLE, STOOL, BED]}


def test_items_of_two_pages_stay_apart() -> None:
    schema = schema_of({"selectors": {"products.*.name": NAME, "products.*.price": PRICE}})
    pages = [page(listed(("Lamp", None), ("Table", "99.5")), "p1"), page(listed(("Boat", "9000"), ("Car", None)), "p2")]
    assert items(list(record_claims.extract(schema, pages).claims)) == [
        {"name": "Lamp"},
        TABLE,
        {"name": "Boat", "price": 9000},
        {"name": "Car"},
    ]


def test_what_stands_in_no_item_is_not_claimed() -> None:
    html = listed(("Lamp", None), ("Table", None)) + "<footer><span class=c>10</span></footer>"
    assert selected(html) == [{"name": "Lamp"}, {"name": "Table"}]
    flat = "<span class=n>Lamp</span><span class=n>Table</span><span class=c>99.5</span>"
    assert selected(flat) == [{"name": "Lamp"}, {"name": "Table"}]


def test_items_without_elements_of_their_own_are_paired_if_they_are_equally_many() -> None:
    rows = "<span class=n>Lamp</span><span class=c>10</span><span class=n>Table</span><span class=c>99.5</span>"
    assert selected(f"<p>{rows}</p>") == [LAMP, TABLE]


def test_the_nearest_and_then_the_first_that_can_be_read_counts() -> None:
    two = "<span class=c>sale</span><span class=c>10</span><span class=c>8</span>"
    html = f"<ul><li><span class=n>Lamp</span>{two}</li>{product('Table', '99.5')}{product('Bed', '500')}</ul>"
    assert selected(html) == [LAMP, TABLE, BED]
    rooms = f"<div>{listed(('Lamp', '10'))}</div><div>{listed((None, '7'), ('Table', '99.5'))}</div>"
    assert LAMP in selected(rooms)
    assert TABLE in selected(rooms)


def test_two_links_to_one_product_are_one_product() -> None:
    def linked(name: str, price: int) -> str:
        links = f'<a href="/{name}"><img></a><a href="/{name}"><span class=n>{name}</span></a>'
        return f"<li>{links}<span class=c>{price}</span></li>"

    html = f"<ul>{linked('Lamp', 10)}{linked('Bed', 500)}</ul>"
    link = {"css": "li > a", "attribute": "href"}
    assert selected(html, {**PRODUCT, "url": TEXT}, name=NAME, price=PRICE, url=link) == [
        {**LAMP, "url": "/Lamp"},
        {**BED, "url": "/Bed"},
    ]


def test_an_attribute_of_what_holds_an_item_is_of_that_item() -> None:
    html = "<ul><li data-price=10><span class=n>Lamp</span></li><li><span class=n>Chair</span></li></ul>"
    price = {"css": "li", "attribute": "data-price"}
    assert selected(html, name=NAME, price=price) == [LAMP, {"name": "Chair"}]


def test_selectors_that_find_nothing_leave_the_place_to_the_next() -> None:
    assert selected(listed(*SHOP), name=["h9", NAME], price=[{"css": NAME}, PRICE])[2] == TABLE


def test_a_single_product_may_be_anywhere_on_its_page() -> None:
    html = "<header><span class=n>Lamp</span></header><main><div><span class=c>10</span></div></main>"
    assert selected(html) == [LAMP]


def test_lists_of_texts_are_told_apart_by_their_values() -> None:
    document = {"type": "object", "properties": {"tags": {"type": "array", "items": TEXT}}}
    schema = schemas.inline({**document, "x-curtsy": {"selectors": {"tags": "li"}}})
    claims = selectors.claims(schema, page("<li>wind<li>sun<li>wind"))
    assert [(claim.path, claim.value) for claim in claims] == [("/tags/0", "wind"), ("/tags/1", "sun")]


PRICES = r"costs (?P<value>[\w.]+)"


def test_patterns_over_the_text_are_paired_only_if_all_are_equally_many() -> None:
    pattern: dict[str, Any] = {"name": {"pattern": r"The (\w+)"}, "price": {"pattern": PRICES}}
    html = "<p>The Lamp costs 10 today.</p><p>The Chair costs nothing.</p><p>The Bed costs 500 today.</p>"
    assert selected(html, **pattern) == [LAMP, {"name": "Chair"}, BED]
    assert selected("<p>The Sofa.</p>" + html, **pattern) == [
        {"name": name} for name in ("Sofa", "Lamp", "Chair", "Bed")
    ]


def test_css_and_a_pattern_over_the_text_are_paired_only_if_all_are_equally_many() -> None:
    mixed: dict[str, Any] = {"name": NAME, "price": {"pattern": PRICES}}
    html = listed(("Lamp", None), ("Bed", None)) + "<p>One costs 10, one costs 500 today.</p>"
    assert selected(html, **mixed) == [LAMP, BED]
    assert selected(html + "<p>One costs 7 now.", **mixed) == [{"price": 10}, {"price": 500}, {"price": 7}]


def test_of_leaves_that_cannot_be_compared_those_that_can_stay_together() -> None:
    kinds = {**PRODUCT, "code": TEXT}
    code = {"pattern": r"No\. (\d+)"}
    html = listed(*SHOP) + "<p>No. 1, No. 2"
    assert selected(html, kinds, name=NAME, price=PRICE, code=code)[:3] == [LAMP, {"name": "Chair"}, TABLE]


def test_items_within_one_element_are_paired_by_their_number() -> None:
    lines: dict[str, Any] = {
        "name": {"css": "pre", "pattern": r"(\w+):"},
        "price": {"css": "pre", "pattern": r": ([\d.]+)"},
    }
    assert selected("<pre>Lamp: 10\nBed: 500</pre>", **lines) == [LAMP, BED]
    assert selected("<pre>Lamp: ask\nTable: 99.50\nBed: 500</pre>", **lines) == [
        {"name": name} for name in ("Lamp", "Table", "Bed")
    ]


@pytest.mark.parametrize("price", ["//span[@class='c']", "//span[@class='c']/text()"])
def test_xpath_tells_items_apart_too(price: str, tmp_path: Any) -> None:
    (tmp_path / "shop.json").write_text(json.dumps(schema_of({}).json_schema | {"x-curtsy": {}}))
    (tmp_path / "shop.toml").write_text(
        f"""[selectors]\n"products.*.name" = {{xpath = "//li/span"}}\n"products.*.price" = {{xpath = "{price}"}}\n"""
    )
    schema = schemas.load("shop.json", folder=tmp_path)
    assert items(selectors.claims(schema, page(listed(*SHOP)))) == [LAMP, {"name": "Chair"}, TABLE, STOOL, BED]
    mixed = tmp_path / "shop.toml"
    mixed.write_text(mixed.read_text().replace('xpath = "//li/span"', 'css = "span.n"'))
    schema = schemas.load("shop.json", folder=tmp_path)
    html = listed(("Lamp", "10.00"), ("Chair", None), ("Bed", "500"))
    assert items(selectors.claims(schema, page(html))) == [{"name": name} for name in ("Lamp", "Chair", "Bed")]
    assert items(selectors.claims(schema, page(listed(("Lamp", "10"), ("Bed", "500"))))) == [LAMP, BED]


def test_leaves_that_others_are_about_stay_in_their_items() -> None:
    price = {"pattern": PRICES, "subject": "products.*.name"}
    schema = schema_of(
        {"selectors": {"products.*.name": NAME, "products.*.price": price}}, {"price": NUMBER, "name": TEXT}
    )
    html = "<p>A <span class=n>Chair</span> costs nothing.</p><p>A <span class=n>Lamp</span> costs 10 today.</p>"
    assert items(list(record_claims.extract(schema, [page(html)]).claims)) == [{"name": "Chair"}, LAMP]


def test_there_are_no_more_items_than_are_of_use() -> None:
    found = selected(listed(*((f"n{at}", str(at)) for at in range(400))))
    assert found == [{"name": f"n{at}", "price": at} for at in range(50)]


WILD = {
    "deep": "<div>" * 5_000 + "<span class=n>Lamp</span><span class=c>1</span>" * 300,
    "chains": ("<div>" * 200 + "<span class=n>Lamp</span><span class=c>1</span>") * 200,
    "nested": "<span class=n>a<span class=c>1" * 400,
    "flat": "<span class=n>a</span><span class=c>1</span>" * 50_000,
}


@pytest.mark.parametrize("name", WILD)
def test_wild_pages_take_bounded_time(name: str) -> None:
    wild = page(WILD[name])
    for places in ((NAME, PRICE), (NAME, "body span.c")):
        schema = schema_of({"selectors": {"products.*.name": places[0], "products.*.price": places[1]}})
        started = time.process_time()
        assert len(selectors.claims(schema, wild)) <= 100
        assert time.process_time() - started < 3


# Structured data


def stated(found: PageSources, item: dict[str, Any] | None = None, **keys: Any) -> list[dict[str, Any]]:
    hints = {f"products.*.{name}": key for name, key in keys.items()}
    return items(structured.claims(schema_of({"structured": hints}, item), found))


def item_list(*products: dict[str, Any]) -> dict[str, Any]:
    return {"@type": "ItemList", "itemListElement": [{"@type": "ListItem", "item": one} for one in products]}


def offered(name: str, price: float | None = None) -> dict[str, Any]:
    return {"@type": "Product", "name": name} | ({} if price is None else {"offers": {"price": price}})


IN_LISTS: dict[str, Any] = {"name": "itemListElement.item.name", "price": "itemListElement.item.offers.price"}
FURNITURE = item_list(offered("Lamp"), offered("Chair", 20))
VEHICLES = item_list(offered("Boat", 9000), offered("Car", 7000))
ALL = [
    {"name": "Lamp"},
    {"name": "Chair", "price": 20},
    {"name": "Boat", "price": 9000},
    {"name": "Car", "price": 7000},
]


def test_items_of_two_lists_stay_apart() -> None:
    assert stated(jsonld(FURNITURE, VEHICLES), **IN_LISTS) == ALL
    assert stated(jsonld({"@graph": [FURNITURE, VEHICLES]}), **IN_LISTS) == ALL


def test_items_of_two_lists_and_two_pages_are_published_apart() -> None:
    schema = schema_of({"structured": {f"products.*.{name}": key for name, key in IN_LISTS.items()}})
    for pages in (
        [jsonld(FURNITURE, VEHICLES)],
        [jsonld(FURNITURE, name="p1"), jsonld(VEHICLES, name="p2")],
    ):
        claims = record_claims.extract(schema, pages).claims
        assert judge.assemble(schema, judge.settle(schema, claims)) == {"products": ALL}


def test_an_item_that_lacks_a_key_shifts_no_others() -> None:
    found = jsonld(item_list(offered("Lamp"), offered("Chair", 20), {"offers": {"price": 3}}, offered("Car", 20)))
    assert stated(found, **IN_LISTS) == [
        {"name": "Lamp"},
        {"name": "Chair", "price": 20},
        {"price": 3},
        {"name": "Car", "price": 20},
    ]


def test_each_of_several_things_is_an_item() -> None:
    found = jsonld(offered("Lamp"), offered("Chair", 20), offered("Boat", 20))
    assert stated(found, name="name", price="offers.price") == [
        {"name": "Lamp"},
        {"name": "Chair", "price": 20},
        {"name": "Boat", "price": 20},
    ]


def test_a_thing_is_one_item_however_many_offers_it_has() -> None:
    lamp = {"@type": "Product", "name": "Lamp", "offers": [{"price": 10}, {"price": 12}]}
    assert stated(jsonld(lamp, offered("Chair")), name="name", price="offers.price") == [LAMP, {"name": "Chair"}]


def test_two_lists_of_one_thing_are_not_zipped() -> None:
    found = jsonld({"employee": [{"name": "Ada"}], "member": [{"name": "x", "fee": 3}, {"fee": 4}]})
    assert stated(found, name="employee.name", price="member.fee") == [{"name": "Ada"}, {"price": 3}, {"price": 4}]


def test_what_a_thing_says_beside_its_list_is_of_no_item() -> None:
    found = jsonld({**VEHICLES, "cost": 5})
    assert stated(found, name=IN_LISTS["name"], price="cost") == [{"name": "Boat"}, {"name": "Car"}]
    assert stated(jsonld({**item_list(offered("Lamp")), "cost": 10}), name=IN_LISTS["name"], price="cost") == [LAMP]


def test_a_template_is_filled_from_one_item() -> None:
    found = jsonld(
        {"branch": [{"city": "Bergen"}, {"city": "Ghent", "land": "Belgium"}, {"land": "Norway", "name": "N"}]}
    )
    kinds = {"name": TEXT, "place": TEXT}
    assert stated(found, kinds, name="branch.name", place="{branch.city}, {branch.land}") == [
        {"place": "Ghent, Belgium"},
        {"name": "N"},
    ]


def test_meta_elements_are_paired_only_if_they_are_equally_many() -> None:
    def metas(name: str, *contents: str) -> str:
        return "".join(f'<meta property="{name}" content="{one}">' for one in contents)

    names = metas("og:x", "Lamp", "Bed")
    found = stated(page(names + metas("og:y", "10", "500")), name="og:x", price="og:y")
    assert found == [LAMP, BED]
    found = stated(page(names + metas("og:y", "10", "500", "7")), name="og:x", price="og:y")
    assert not any(len(one) > 1 for one in found)
