"""The declarations are the document: OpenAPI, docs/reference/api.md and what the server really does agree."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, Phase, settings
from jsonschema import Draft202012Validator
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from curtsy.web import openapi
from curtsy.web.dashboard.site import VIEWS
from curtsy.web.factory import create_app
from curtsy.web.routing import ENDPOINTS, Media

DOCS = Path(__file__).parents[2] / "docs" / "reference" / "api.md"
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
)
#: how many cases `make fuzz-api` asks for; 0: few and always the same ones
CASES = int(os.environ.get("CURTSY_API_CASES", "0"))
#: a stream that does not end by itself; the document that is being read
LEFT_OUT = ("/v1/crawls/{id}/events", "/openapi.json")


def documented() -> dict[tuple[str, str], str]:
    rows = re.findall(r"^\| `(GET|POST|PUT|PATCH|DELETE) (\S+)` \| (\S+) \|", DOCS.read_text("utf-8"), re.MULTILINE)
    return {(method, path): scope for method, path, scope in rows}


def test_every_endpoint_is_documented_with_its_scope() -> None:
    assert documented() == {(one.method, one.path): one.scope or "-" for one in ENDPOINTS}


def test_every_endpoint_says_what_it_does_and_has_a_name_of_its_own() -> None:
    assert all(one.summary and one.tags for one in ENDPOINTS)
    names = [one.name for one in ENDPOINTS]
    assert len(names) == len(set(names))


def test_every_problem_that_the_code_raises_is_documented() -> None:
    source = Path(openapi.__file__).parent
    # The dashboard tells its own on a page, in words.
    text = "".join(path.read_text("utf-8") for path in source.rglob("*.py") if "dashboard" not in path.parts)
    raised = set(re.findall(r'Problem\(\s*\d{3},\s*"([a-z-]+)"', text))
    assert raised
    assert {name for name in raised if f"`{name}`" not in DOCS.read_text("utf-8")} == set()


def test_the_document_is_openapi_3_1_with_valid_schemas() -> None:
    document = openapi.document()
    assert document["openapi"] == "3.1.0"
    for schema in document["components"]["schemas"].values():
        Draft202012Validator.check_schema(schema)
    text = repr(document)
    for name in re.findall(r"#/components/schemas/([^']+)'", text):
        assert name in document["components"]["schemas"], name


def test_every_answer_is_in_the_document() -> None:
    document = openapi.document()
    for one in ENDPOINTS:
        responses = document["paths"][one.path][one.method.lower()]["responses"]
        assert set(responses) == {str(status) for status in (*one.answers, *one.all_problems)}
        for status, answer in one.answers.items():
            kinds = set(responses[str(status)].get("content", {}))
            expected = set() if answer is None else {answer.type if isinstance(answer, Media) else "application/json"}
            assert kinds == expected


@pytest.mark.slow
def test_schemathesis_finds_no_server_error_and_no_undocumented_answer(app: Flask, store_url: str) -> None:
    """Some hundred requests over all endpoints, always the same ones; `make fuzz-api` sends at least 10,000."""
    schema = schemathesis.openapi.from_wsgi("/openapi.json", app)
    asked: dict[str, int] = {}
    client = app.test_client()
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.path in LEFT_OUT:
            continue

        @settings(
            max_examples=CASES // 40 if CASES else 12 if store_url.startswith("sqlite") else 3,
            deadline=None,
            derandomize=not CASES,
            database=None,
            suppress_health_check=list(HealthCheck),
            phases=[Phase.explicit, Phase.generate],
        )
        @_given(operation)
        def ask(case: Any) -> None:
            asked[case.operation.label] = asked.get(case.operation.label, 0) + 1
            case.call_and_validate(checks=list(CHECKS))
            if case.operation.path.startswith("/v1/crawls/{id}") and isinstance(case.path_parameters.get("id"), str):
                case.path_parameters["id"] = "last"  # one that exists
                case.call_and_validate(checks=[check for check in CHECKS if check is not negative_data_rejection])

        client.post("/v1/crawls", json={"seeds": ["https://a.test/"]})
        ask()
    assert set(asked) == {f"{one.method} {one.path}" for one in ENDPOINTS if one.path not in LEFT_OUT}
    if CASES:
        print(f"{sum(asked.values()):,} cases over {len(asked)} endpoints")
        assert sum(asked.values()) >= CASES


def _given(operation: Any) -> Any:
    from hypothesis import given
    from schemathesis.generation import GenerationMode

    strategy = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    return given(case=strategy | operation.as_strategy(generation_mode=GenerationMode.NEGATIVE))


def test_the_application_is_made_from_the_declarations(tmp_path: Path) -> None:
    from curtsy.core.settings_loading import load

    app = create_app(load(data_dir=tmp_path))
    rules = {(method, rule.rule) for rule in app.url_map.iter_rules() for method in rule.methods or ()}
    declared = {(one.method, re.sub(r"{(\w+)}", r"<\1>", one.path)) for one in ENDPOINTS}
    declared |= {(view.method, view.rule) for view in VIEWS}
    assert {pair for pair in rules if pair[0] != "HEAD"} == declared
