"""From claims to a record: which claim wins, how lists are merged, confidence, and what is published."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.core.claims import Claim, Field, Rung, Source, SourceKind, Verdict
from curtsy.grounding import judge, schema

SCHEMA = schema.inline(
    {
        "title": "thing",
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "mission": {"type": "string", "maxLength": 400},
            "founded_year": {"type": "integer", "description": "The year of its founding"},
            "founded_on": {"type": "string", "format": "date"},
            "share": {"type": "number"},
            "open": {"type": "boolean"},
            "sector": {"enum": ["energy", "water"], "x-curtsy": {"allow_judged": True}},
            "claims": {"type": "array", "items": {"type": "string"}},
            "contact": {"type": "object", "properties": {"email": {"type": "string"}}},
            "people": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "name": {"type": "string"},
                        "role": {"type": "string"},
                        "tasks": {"type": "array", "items": {"type": "string"}},
                    },
                },
            },
        },
    }
)
ABOUT = (
    "Alder Energy Cooperative was founded in 1974 by a small group of people. We planted 12,450 native trees in 2020. "
    "Ada Kimani, Head of Operations, looks after the boats. Jonas Dahl, Finance Lead, keeps the books. "
    "Write to hello@alder.example, and we open our doors to everybody on Sundays."
)
HOME = "Welcome to Alder Energy Cooperative. ADA KIMANI, Head of Operations, says hello."


def source(text: str = ABOUT, page: str = "about") -> Source:
    return Source(SourceKind.TEXT, page, f"http://alder.test/{page}", text)


def claim(
    path: str, value: Any, quote: str | None = None, rung: Rung = Rung.FUNCTION, of: Source | None = None
) -> Claim:
    return Claim(path=path, value=value, rung=rung, source=of or source(), quote=quote)


def told(fields: list[Field]) -> list[tuple[str, Any, str]]:
    return [(field.path, field.value, field.verdict.value) for field in fields]


# Which claim wins


def test_of_a_leaf_the_first_grounded_claim_wins() -> None:
    fields = judge.settle(
        SCHEMA,
        [
            claim("/name", "Alder Power", "Alder Power was founded"),
            claim("/name", "Alder Energy Cooperative", "Alder Energy Cooperative was founded in 1974"),
            claim("/name", "Ada Kimani", "Ada Kimani, Head of Operations"),
        ],
    )
    assert told(fields) == [("/name", "Alder Energy Cooperative", "supported")]


def test_claims_that_agree_add_their_evidence() -> None:
    (field,) = judge.settle(
        SCHEMA,
        [
            claim("/name", "Alder Energy Cooperative"),
            claim("/name", "ALDER ENERGY COOPERATIVE", of=source(HOME, "home")),
            claim("/name", "Jonas Dahl", "Jonas Dahl, Finance Lead"),
        ],
    )
    assert field.value == "Alder Energy Cooperative"
    assert [one.page for one in field.evidence] == ["about", "home"]


def test_withheld_values_stay_where_nothing_is_grounded() -> None:
    fields = judge.settle(
        SCHEMA,
        [
            claim("/name", "Alder Power", "Alder Power was founded"),
            claim("/name", "ALDER POWER", "Alder Power is here"),
            claim("/name", "Birch Power", "Birch Power is here"),
        ],
    )
    assert told(fields) == [("/name", "Alder Power", "unsupported"), ("/name", "Birch Power", "unsupported")]
    assert fields[0].claimed_quote == "Alder Power was founded"
    assert judge.assemble(SCHEMA, fields) == {}


def test_claims_of_nothing_and_of_no_leaf_are_left_out() -> None:
    claims = [claim("/name", None), claim("/name", " N/A "), claim("/nowhere", "Alder"), claim("/claims/x", "Alder")]
    assert judge.settle(SCHEMA, claims) == []


def test_fields_come_in_the_order_of_the_schema() -> None:
    fields = judge.settle(
        SCHEMA,
        [
            claim("/contact/email", "hello@alder.example"),
            claim("/claims/0", "We planted 12,450 native trees in 2020"),
            claim("/founded_year", 1974, "Alder Energy Cooperative was founded in 1974 by a small group"),
            claim("/name", "Alder Energy Cooperative"),
        ],
    )
    assert [field.path for field in fields] == ["/name", "/founded_year", "/claims/0", "/contact/email"]


def test_what_the_schema_says_of_a_leaf_is_no_evidence_for_it() -> None:
    page = source("The year of its founding is not known to us, nor to anybody else.")
    (field,) = judge.settle(
        SCHEMA, [claim("/name", "The year of its founding", "The year of its founding", Rung.LLM, page)]
    )
    assert (field.verdict, field.note) == (Verdict.UNSUPPORTED, "echo")


# Lists


def test_items_of_several_pages_are_merged_and_renumbered() -> None:
    fields = judge.settle(
        SCHEMA,
        [
            claim("/claims/3", "We planted 12,450 native trees in 2020"),
            claim("/claims/0", "WE PLANTED 12,450 NATIVE TREES IN 2020."),
            claim("/claims/0", "Welcome to Alder Energy Cooperative", of=source(HOME, "home")),
            claim("/claims/1", "We saved 900 whales", "We saved 900 whales"),
        ],
    )
    assert told(fields) == [
        ("/claims/0", "We planted 12,450 native trees in 2020", "supported"),
        ("/claims/1", "Welcome to Alder Energy Cooperative", "supported"),
        ("/claims/2", "We saved 900 whales", "unsupported"),
    ]
    assert judge.assemble(SCHEMA, fields) == {
        "claims": ["We planted 12,450 native trees in 2020", "Welcome to Alder Energy Cooperative"]
    }


def test_items_that_are_objects_are_one_if_they_agree() -> None:
    home = source(HOME, "home")
    fields = judge.settle(
        SCHEMA,
        [
            claim("/people/0/name", "Ada Kimani"),
            claim("/people/0/tasks/0", "looks after the boats"),
            claim("/people/1/name", "Jonas Dahl"),
            claim("/people/1/role", "Finance Lead"),
            claim("/people/0/name", "Ada Kimani", of=home),
            claim("/people/0/role", "Head of Operations", of=home),
        ],
    )
    assert judge.assemble(SCHEMA, fields) == {
        "people": [
            {"name": "Ada Kimani", "role": "Head of Operations", "tasks": ["looks after the boats"]},
            {"name": "Jonas Dahl", "role": "Finance Lead"},
        ]
    }


def test_items_that_share_what_many_share_stay_two() -> None:
    """A job title tells nobody apart: what stands beside it on another page is somebody else's."""
    about = source("Head of Operations, looks after the boats.", "other")
    fields = judge.settle(
        SCHEMA,
        [
            claim("/people/0/name", "Ada Kimani"),
            claim("/people/0/role", "Head of Operations"),
            claim("/people/0/role", "Head of Operations", of=about),
            claim("/people/0/tasks/0", "looks after the boats", of=about),
        ],
    )
    assert judge.assemble(SCHEMA, fields)["people"] == [
        {"name": "Ada Kimani", "role": "Head of Operations"},
        {"role": "Head of Operations", "tasks": ["looks after the boats"]},
    ]


def test_items_that_a_page_lists_side_by_side_stay_two() -> None:
    page = source("Ada Kimani\nSinger\nSinger\nlives in Oslo", "list")
    fields = judge.settle(
        SCHEMA,
        [
            claim("/people/0/name", "Ada Kimani", of=page),
            claim("/people/1/name", "Ada Kimani", of=page),
            claim("/people/1/tasks/0", "lives in Oslo", of=page),
        ],
    )
    assert judge.assemble(SCHEMA, fields)["people"] == [
        {"name": "Ada Kimani"},
        {"name": "Ada Kimani", "tasks": ["lives in Oslo"]},
    ]


def test_an_item_that_says_no_more_than_another_is_that_one() -> None:
    home = source(HOME, "home")
    fields = judge.settle(
        SCHEMA,
        [
            claim("/people/0/name", "Ada Kimani"),
            claim("/people/0/role", "Head of Operations"),
            claim("/people/0/role", "Head of Operations", of=home),
        ],
    )
    assert judge.assemble(SCHEMA, fields) == {"people": [{"name": "Ada Kimani", "role": "Head of Operations"}]}
    assert [one.page for one in fields[1].evidence] == ["about", "home"]


def test_what_a_page_says_is_no_models_word_for_nothing() -> None:
    page = Source(SourceKind.ATTRIBUTE, "p", "http://alder.test/p", "NA", "css:.country")
    (field,) = judge.settle(SCHEMA, [claim("/name", "NA", "NA", Rung.SELECTOR, page)])
    assert (field.value, field.verdict) == ("NA", Verdict.SUPPORTED)
    stars = Source(SourceKind.ATTRIBUTE, "p", "http://alder.test/p", "5*", "css:.stars")
    (field,) = judge.settle(SCHEMA, [claim("/name", "5*", "5*", Rung.SELECTOR, stars)])
    assert (field.value, field.verdict) == ("5*", Verdict.SUPPORTED)


def test_items_that_contradict_each_other_stay_two() -> None:
    other = source("Ada Kimani, Finance Lead, is somebody else.", "other")
    fields = judge.settle(
        SCHEMA,
        [
            claim("/people/0/name", "Ada Kimani"),
            claim("/people/0/role", "Head of Operations"),
            claim("/people/0/name", "Ada Kimani", of=other),
            claim("/people/0/role", "Finance Lead", of=other),
        ],
    )
    data = judge.assemble(SCHEMA, fields)
    assert [person["role"] for person in data["people"]] == ["Head of Operations", "Finance Lead"]


def test_an_invented_value_of_an_item_is_withheld_and_the_rest_stays() -> None:
    fields = judge.settle(
        SCHEMA,
        [
            claim("/people/0/name", "Ada Kimani"),
            claim("/people/0/role", "Queen of Norway", "Ada Kimani, Queen of Norway"),
        ],
    )
    assert judge.assemble(SCHEMA, fields) == {"people": [{"name": "Ada Kimani"}]}
    assert told(fields)[1] == ("/people/0/role", "Queen of Norway", "unsupported")


# Publishing


def test_judgements_are_published_only_where_the_schema_allows_them() -> None:
    quote = "we open our doors to everybody on Sundays"
    fields = judge.settle(SCHEMA, [claim("/open", True, quote), claim("/sector", "energy", "Alder Energy Cooperative")])
    assert told(fields) == [("/open", True, "judged"), ("/sector", "energy", "judged")]
    assert judge.assemble(SCHEMA, fields) == {"sector": "energy"}
    confidence = judge.confidence(SCHEMA, fields, 500)
    assert confidence.low
    assert confidence.reasons == ("judged",)


def test_a_value_of_a_person_is_published() -> None:
    fields = judge.settle(
        SCHEMA, [claim("/name", "Alder Power Limited", rung=Rung.PERSON), claim("/open", False, rung=Rung.PERSON)]
    )
    assert judge.assemble(SCHEMA, fields) == {"name": "Alder Power Limited", "open": False}
    assert not judge.confidence(SCHEMA, fields, 500).low


def test_data_made_of_published_fields_fit_the_schema() -> None:
    fields = judge.settle(
        SCHEMA,
        [
            claim("/founded_year", "1974", "Alder Energy Cooperative was founded in 1974 by a small group"),
            claim("/share", "12,450", "We planted 12,450 native trees in 2020."),
            claim("/contact/email", "hello@alder.example"),
        ],
    )
    data = judge.assemble(SCHEMA, fields)
    assert data == {"founded_year": 1974, "share": 12450, "contact": {"email": "hello@alder.example"}}
    assert SCHEMA.validate(data) == []


# Confidence


@pytest.mark.parametrize(("path", "value"), [("/open", True), ("/open", False), ("/sector", "energy"), ("/name", "")])
def test_an_empty_attribute_supports_no_value(path: str, value: object) -> None:
    source = Source(SourceKind.ATTRIBUTE, page="page", url="http://alder.test/", text="", locator="css:a")
    for quote in (None, ""):
        claim = Claim(path=path, value=value, rung=Rung.SELECTOR, source=source, quote=quote)
        assert [(one.verdict, one.evidence) for one in judge.settle(SCHEMA, [claim])] in (
            [],
            [(Verdict.UNSUPPORTED, ())],
        )


def field(path: str, grounded: bool) -> Field:
    verdict = Verdict.SUPPORTED if grounded else Verdict.UNSUPPORTED
    return Field(path=path, value="x", rung=Rung.LLM, verdict=verdict)


@pytest.mark.parametrize(
    ("grounded", "withheld", "words", "share", "reasons"),
    [
        (3, 0, 100, 1.0, ()),
        (3, 2, 100, 0.6, ()),
        (2, 2, 100, 0.5, ("unsupported",)),
        (3, 0, 99, 1.0, ("thin",)),
        (1, 3, 20, 0.25, ("thin", "unsupported")),
        (0, 2, 500, 0.0, ("empty",)),
        (0, 0, 500, 0.0, ("empty",)),
    ],
)
def test_confidence_is_the_share_of_grounded_fields_and_the_words_behind_them(
    grounded: int, withheld: int, words: int, share: float, reasons: tuple[str, ...]
) -> None:
    fields = [field(f"/claims/{at}", at < grounded) for at in range(grounded + withheld)]
    found = judge.confidence(SCHEMA, fields, words)
    assert (found.share, found.words, found.low, found.reasons) == (share, words, bool(reasons), reasons)


def test_several_withheld_values_of_a_leaf_count_once() -> None:
    fields = [field("/mission", True), field("/name", False), field("/name", False)]
    assert judge.confidence(SCHEMA, fields, 100, threshold=0.5).share == 0.5


# Whatever a model says

PATHS = [
    *("/name", "/mission", "/founded_year", "/founded_on", "/share", "/open", "/sector", "/claims/0", "/claims/1"),
    *("/contact/email", "/people/0/name", "/people/0/tasks/1", "/people/1/role"),
]
WORDS = st.sampled_from(ABOUT.split())
SAID = st.one_of(
    st.text(max_size=30),
    st.lists(WORDS, max_size=8).map(" ".join),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.lists(st.text(max_size=3), max_size=2),
    st.sampled_from(
        [1974, 2020, 12450, "1974", "2020-01-01", "energy", "hello@alder.example", "Ada Kimani", 10**400, -0.0]
    ),
)
QUOTES = st.one_of(st.none(), st.text(max_size=40), st.lists(WORDS, max_size=12).map(" ".join), st.just(ABOUT))
CLAIMS = st.builds(
    Claim,
    path=st.sampled_from(PATHS),
    value=SAID,
    rung=st.sampled_from([Rung.LLM, Rung.LLM, Rung.SELECTOR, Rung.STRUCTURED]),
    source=st.builds(
        Source,
        st.sampled_from(list(SourceKind)),
        page=st.just("page"),
        url=st.just("http://alder.test/"),
        text=st.one_of(st.just(ABOUT), st.text(max_size=60)),
        locator=st.sampled_from(["", "/a", "css:h1"]),
    ),
    quote=QUOTES,
)


@given(st.lists(CLAIMS, max_size=8), st.lists(st.text(max_size=20), max_size=2))
def test_whatever_is_claimed_only_what_has_evidence_is_published(claims: list[Claim], prompts: list[str]) -> None:
    fields = judge.settle(SCHEMA, claims, prompts)
    sources = {one.source.sha256: one.source for one in claims}
    for one in fields:
        assert bool(one.evidence) == (one.verdict is not Verdict.UNSUPPORTED)
        for evidence in one.evidence:
            assert sources[evidence.sha256].text[evidence.start : evidence.end] == evidence.quote
            assert evidence.quote
    data = judge.assemble(SCHEMA, fields)
    assert SCHEMA.validate(data) == []
    confidence = judge.confidence(SCHEMA, fields, 100)
    assert 0 <= confidence.share <= 1
    grounded = [one for one in fields if one.verdict is not Verdict.UNSUPPORTED]
    assert len({one.path for one in grounded}) == len(grounded)


@given(st.lists(CLAIMS, max_size=6))
def test_settling_twice_gives_the_same(claims: list[Claim]) -> None:
    assert repr(judge.settle(SCHEMA, claims)) == repr(judge.settle(SCHEMA, claims))


@given(st.integers(min_value=0, max_value=10**6), st.text(alphabet="abcdefgh .,\n", max_size=60))
def test_a_number_is_never_supported_by_a_text_without_it(number: int, text: str) -> None:
    (found,) = judge.settle(SCHEMA, [claim("/share", number, text, of=source(text))])
    assert found.verdict is Verdict.UNSUPPORTED
