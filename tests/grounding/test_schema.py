"""Schemas: where they come from, their leaves and hints, what is refused, what data they take."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from curtsy.core.errors import UsageError
from curtsy.extract import page_selection
from curtsy.grounding import schema as schemas
from curtsy.grounding import schema_hints
from curtsy.grounding.schema import Leaf

TEXT = {"type": "string"}


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


# Where they come from


def test_the_built_in_schemas_are_complete() -> None:
    assert schemas.built_in() == ("article", "event", "job", "organization", "page", "product")
    organization = schemas.load("organization")
    assert organization.per == "site"
    assert [leaf.path for leaf in organization.leaves] == [
        *("/name", "/mission", "/founded_year", "/headquarters", "/sustainability_claims/*"),
        *("/contact/email", "/contact/phone", "/contact/address"),
    ]
    assert [leaf.path for leaf in organization.leaves if leaf.required] == ["/name"]
    assert {leaf.path for leaf in organization.leaves if leaf.long} == {"/mission", "/sustainability_claims/*"}
    assert organization.leaf_for("/founded_year").type == "integer"
    # The name comes from several signs that agree (extract/site_name.py).
    assert {*organization.selectors, "/name"} == {leaf.path for leaf in organization.leaves}


def test_records_of_the_schema_page_keep_their_key() -> None:
    assert schemas.load("page").hash == "08c1ecbd9051d1ad"


def test_every_role_has_its_words() -> None:
    assert {"home", "other", *page_selection._PHRASES} == schema_hints.ROLES


MODELS = '''
from datetime import date
from enum import Enum
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Size(Enum):
    SMALL = "small"
    LARGE = "large"


class Address(BaseModel):
    city: str = Field(description="Where it is.")
    floor: int | None = None


class Shop(BaseModel):
    """A shop."""

    model_config = ConfigDict(json_schema_extra={"x-curtsy": {"per": "site", "pages": ["contact"], "types": ["Store"]}})
    name: str = Field(description="Its name.", json_schema_extra={"x-curtsy": {"structured": "legalName"}})
    size: Size | None = Field(None, json_schema_extra={"x-curtsy": {"allow_judged": True}})
    open: bool = False
    kind: Literal["shop"] = "shop"
    since: date | None = None
    addresses: list[Address] = []
    phone: str | None = Field(None, json_schema_extra={"x-curtsy": {"css": "a.phone", "pattern": "[0-9 ]+"}})
    story: str = Field("", json_schema_extra={"x-curtsy": {"long": True}})


class Tree(BaseModel):
    name: str
    children: list["Tree"] = []


class Free(BaseModel):
    values: dict[str, int]


class Either(BaseModel):
    value: int | str


not_a_model = 5
'''


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], schemas.Schema]:
    name = f"shop_models_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(MODELS)
    return lambda cls: schemas.load(f"{name}:{cls}", folder=tmp_path)


def test_a_pydantic_model_gives_its_leaves_and_hints(models: Callable[[str], schemas.Schema]) -> None:
    shop = models("Shop")
    assert shop.leaves == (
        Leaf(path="/name", type="string", description="Its name.", required=True),
        Leaf(path="/size", type="enum", description="Size", enum=("small", "large"), allow_judged=True),
        Leaf(path="/open", type="boolean", description="Open"),
        Leaf(path="/kind", type="enum", description="Kind", enum=("shop",)),
        Leaf(path="/since", type="date", description="Since"),
        Leaf(path="/addresses/*/city", type="string", description="Where it is."),
        Leaf(path="/addresses/*/floor", type="integer", description="Floor"),
        Leaf(path="/phone", type="string", description="Phone"),
        Leaf(path="/story", type="string", description="Story", long=True),
    )
    assert (shop.per, shop.pages, shop.types) == ("site", ("contact",), ("Store",))
    assert shop.structured == {"/name": ("legalName",)}
    assert shop.selectors == {"/phone": (schema_hints.Selector(css="a.phone", pattern="[0-9 ]+"),)}
    assert shop.description == "A shop."
    assert shop.validate({"name": "A", "size": None, "addresses": [{"city": "B"}]}) == []


@pytest.mark.parametrize(
    ("cls", "complaint"),
    [
        ("Tree", "refers to itself"),
        ("Free", "/values: an object needs `properties`"),
        ("Either", "/value: `anyOf` is supported only for one schema and null"),
        ("not_a_model", "is not a Pydantic model"),
        ("Nothing", "is not a Pydantic model"),
    ],
)
def test_a_model_that_cannot_be_extracted_is_refused(
    models: Callable[[str], schemas.Schema], cls: str, complaint: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        models(cls)


def test_a_module_that_cannot_be_imported_is_reported(tmp_path: Path) -> None:
    (tmp_path / "broken_models.py").write_text("1 / 0\n")
    with pytest.raises(UsageError, match="broken_models cannot be imported: division by zero"):
        schemas.load("broken_models:Shop", folder=tmp_path)
    with pytest.raises(UsageError, match="No module named 'no_such_module'"):
        schemas.load("no_such_module:Shop", folder=tmp_path)


def test_a_file_is_read_with_the_toml_beside_it(tmp_path: Path) -> None:
    (tmp_path / "orgs.json").write_text(json.dumps({**of(name=TEXT), "x-curtsy": {"per": "site", "pages": "home"}}))
    plain = schemas.load("orgs.json", folder=tmp_path)
    (tmp_path / "orgs.toml").write_text('pages = ["/about*"]\n[[selectors.name]]\ncss = "h1"\npages = ["about"]\n')
    hinted = schemas.load("orgs.json", folder=tmp_path)
    assert (plain.per, plain.pages, hinted.per, hinted.pages) == ("site", ("home",), "site", ("/about*",))
    assert hinted.selectors == {"/name": (schema_hints.Selector(css="h1", pages=("about",)),)}
    assert plain.hash != hinted.hash
    assert hinted.hash == schemas.load("orgs.json", folder=tmp_path).hash


def test_a_schema_does_not_take_the_name_of_one_of_ours(tmp_path: Path) -> None:
    (tmp_path / "page.json").write_text(json.dumps(of(name=TEXT)))
    assert schemas.load("page.json", folder=tmp_path).name == "page.json"
    assert schemas.inline({**of(name=TEXT), "title": "page"}).name == "inline"
    assert schemas.inline({**of(name=TEXT), "title": "a\nb"}).name == "inline"
    assert schemas.inline({**of(name=TEXT), "title": " Work  shop "}).name == "Work shop"
    assert schemas.inline(of(name=TEXT)).name == "inline"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "bad.json is not valid JSON"),
        ("[1]", "a schema must be a JSON object"),
        ("[" * 100_000, "is not valid JSON"),
        ('{"type": "string"}', "must be an object with named values"),
    ],
)
def test_a_file_that_is_no_schema_is_reported(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    with pytest.raises(UsageError, match=re.escape(complaint)):
        schemas.load("bad.json", folder=tmp_path)


@pytest.mark.parametrize("spec", ["nothing", "no/such.json", "../x", "", "a:b:c", "os;system"])
def test_what_names_no_schema_is_reported(tmp_path: Path, spec: str) -> None:
    with pytest.raises(UsageError):
        schemas.load(spec, folder=tmp_path)


def test_a_crawl_can_keep_its_schema_as_json() -> None:
    schema = schemas.load("organization")
    assert schemas.restore(json.loads(json.dumps(schema.dump()))) == schema


# References and bounds


def test_references_within_the_document_are_followed() -> None:
    schema = schemas.inline(
        {
            **of(home={"$ref": "#/$defs/Place", "description": "Here."}, shop={"allOf": [{"$ref": "#/$defs/Place"}]}),
            "$defs": {"Place": of(city={"$ref": "#/$defs/Name"}), "Name": {"type": "string", "description": "A name."}},
        }
    )
    assert [(leaf.path, leaf.description) for leaf in schema.leaves] == [
        ("/home/city", "Here. A name."),
        ("/shop/city", "A name."),
    ]
    assert "$ref" not in json.dumps(schema.json_schema)


def bomb(levels: int) -> dict[str, Any]:
    """Each definition repeats the one below ten times."""
    names = {f"n{at}": {"$ref": "#/$defs/d0"} for at in range(10)}
    found: dict[str, Any] = {"d0": TEXT}
    for level in range(1, levels):
        found[f"d{level}"] = of(**{name: {"$ref": f"#/$defs/d{level - 1}"} for name in names})
    return {**of(top={"$ref": f"#/$defs/d{levels - 1}"}), "$defs": found}


def deep(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = TEXT
    for _ in range(levels):
        schema = of(inner=schema)
    return schema


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ([], "a schema must be a JSON object"),
        (of(), "must be an object with named values"),
        (of(a={"$ref": "http://elsewhere.test/schema.json"}), "only references within the document"),
        (of(a={"$ref": "other.json#/x"}), "only references within the document"),
        (of(a={"$ref": "#/$defs/missing"}), "the schema has no #/$defs/missing"),
        (of(a={"$ref": "#"}), "refers to itself"),
        ({**of(a={"$ref": "#/$defs/x"}), "$defs": {"x": {"$ref": "#/$defs/x"}}}, "refers to itself"),
        (bomb(8), "more than 5,000 parts"),
        (deep(20), "more than 12 deep"),
        (deep(3000), "nested"),
        (of(**{f"v{at}": TEXT for at in range(201)}), "more than 200 values"),
        (of(a={"type": "string", "description": "x" * 70_000}), "larger than 65,536 bytes"),
        (of(a={"type": "array"}), "/a: a list needs `items`"),
        (of(a={"type": ["string", "integer"]}), "/a: a value needs exactly one `type`"),
        (of(a=True), "/a: a schema must be a JSON object"),
        ({**of(a=TEXT), "required": ["a", "b"]}, "the schema: `required` names b, which `properties` lacks"),
        (of(a={"enum": []}), "/a: `enum` is not a list"),
        (of(a={"type": "string", "minLength": "3"}), "/a: `minLength` is not a number"),
        (
            of(a={"type": "string", "pattern": "^(?!Mend).*$"}),
            "/a: the pattern '^(?!Mend).*$' is not valid in google-re2",
        ),
        (of(a={"type": "string", "minLength": 5, "maxLength": 2}), "/a: `minLength` is larger than `maxLength`"),
        (of(a={"type": "object", "patternProperties": {}}), "`patternProperties` is not supported"),
        ({**of(a=TEXT), "x-curtsy": {"per": "host"}}, "invalid per: 'host'"),
        ({**of(a=TEXT), "x-curtsy": {"perr": "host"}}, "unknown key 'perr'"),
        ({**of(a=TEXT), "x-curtsy": {"pages": ["abuot"]}}, "'abuot' is neither a role"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"b": {"css": "p"}}}}, "the schema has no value b"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"a": {"css": "p["}}}}, "/a: invalid css"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"a": {"pattern": "(?=x)"}}}}, "not valid in google-re2"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"a": {"pattern": "x" * 3001}}}}, "longer than 3000"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"a": {"pattern": "(((((a{100}){100}){100})))"}}}}, "google-re2"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"a": {"pattern": r"a.{1000}b.{900}c"}}}}, "is too expensive"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"a": {"pattern": r"a.{900}c"}}}}, "are too expensive for a schema"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"a": {"xpath": "//p"}}}}, "xpath is only allowed in schema files"),
        ({**of(a=TEXT), "x-curtsy": {"selectors": {"a": {"attribute": "href"}}}}, "needs css, xpath, label or pattern"),
        (of(a={**TEXT, "x-curtsy": {"css": "p", "colour": 1}}), "/a: unknown key 'colour'"),
        (of(a={**TEXT, "x-curtsy": []}), "/a is not a table"),
        (of(a={**TEXT, "x-curtsy": {"structured": "{a} of {b}"}}), "is not a template"),
        (of(a={**TEXT, "x-curtsy": {"structured": "{a"}}), "is not a template"),
    ],
)
def test_what_is_not_ours_to_follow_or_too_much_is_refused(document: Any, complaint: str) -> None:
    with pytest.raises(UsageError, match=re.escape(complaint)):
        schemas.inline(document)


def test_a_file_may_have_xpath_and_it_is_tried(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(of(a=TEXT)))
    (tmp_path / "a.toml").write_text('[[selectors.a]]\nxpath = "//p"\n')
    assert schemas.load("a.json", folder=tmp_path).selectors["/a"][0].xpath == "//p"
    (tmp_path / "a.toml").write_text('[[selectors.a]]\nxpath = "//p["\n')
    with pytest.raises(UsageError, match="invalid xpath"):
        schemas.load("a.json", folder=tmp_path)


# Leaves and data


def test_a_place_in_a_record_has_its_leaf() -> None:
    schema = schemas.inline(
        of(name=TEXT, tags={"type": "array", "items": TEXT}, people={"type": "array", "items": of(name=TEXT)})
    )
    assert schema.leaf_for("/name").path == "/name"
    assert schema.leaf_for("/tags/12").path == "/tags/*"
    assert schema.leaf_for("/people/0/name").path == "/people/*/name"
    for path in ("/tags", "/tags/x", "/people/0", "/people/0/age", "", "/"):
        with pytest.raises(KeyError):
            schema.leaf_for(path)


CHECKED = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name"],
    "properties": {
        "name": {"type": "string", "minLength": 2, "maxLength": 5, "pattern": "^[A-Z]"},
        "year": {"type": ["integer", "null"], "minimum": 1000, "exclusiveMaximum": 2100},
        "share": {"type": "number"},
        "kind": {"enum": ["a", 1]},
        "day": {"type": "string", "format": "date"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
}


@pytest.mark.parametrize(
    ("data", "problems"),
    [
        ({"name": "Abc", "year": None, "share": 1, "kind": 1, "day": "2024-02-29", "tags": ["x"]}, []),
        ([], ["/: not object"]),
        ({}, ["/name: missing"]),
        ({"name": "A"}, ["/name: shorter than 2 characters"]),
        ({"name": "abcdef"}, ["/name: longer than 5 characters", "/name: does not match ^[A-Z]"]),
        ({"name": None}, ["/name: not string"]),
        ({"name": "Ab", "year": True}, ["/year: not integer or null"]),
        ({"name": "Ab", "year": 999}, ["/year: beyond minimum 1000"]),
        ({"name": "Ab", "year": 2100}, ["/year: beyond exclusiveMaximum 2100"]),
        ({"name": "Ab", "year": 10.5}, ["/year: not integer or null"]),
        ({"name": "Ab", "kind": True}, ['/kind: not one of ["a", 1]']),
        ({"name": "Ab", "day": "2023-02-29"}, ["/day: not a date such as 2024-05-31"]),
        ({"name": "Ab", "tags": ["x", 1, "z"]}, ["/tags: more than 2 items", "/tags/1: not string"]),
        ({"name": "Ab", "a/b": 1}, ["/a~1b: not in the schema"]),
    ],
)
def test_data_is_checked_against_its_schema(data: Any, problems: list[str]) -> None:
    assert schemas.inline(CHECKED).validate(data) == problems


def test_problems_do_not_continue_without_end() -> None:
    schema = schemas.inline(of(tags={"type": "array", "items": TEXT}))
    assert len(schema.validate({"tags": [1] * 1000})) == 50


def test_a_module_that_ends_the_process_is_reported(tmp_path: Path) -> None:
    (tmp_path / "leaves_at_once.py").write_text("import sys\nsys.exit(0)\n")
    with pytest.raises(UsageError, match="leaves_at_once cannot be imported: it exits the process"):
        schemas.load("leaves_at_once:A", folder=tmp_path)


def test_what_is_said_of_a_list_or_an_object_is_said_of_its_values() -> None:
    person = {
        "type": "object",
        "description": "A human.",
        "properties": {"who": {"type": "string", "description": "Name."}},
    }
    found = schemas.inline(
        {
            "title": "firm",
            "type": "object",
            "description": "Not said again.",
            "properties": {
                "towns": {"type": "array", "description": "Towns with shops.", "items": {"type": "string"}},
                "staff": {"type": "array", "description": "Who works there.", "items": person},
                "plain": {"type": "string", "title": "Plain"},
            },
        }
    )
    assert {leaf.path: leaf.description for leaf in found.leaves} == {
        "/towns/*": "Towns with shops.",
        "/staff/*/who": "Who works there. A human. Name.",
        "/plain": "Plain",
    }
