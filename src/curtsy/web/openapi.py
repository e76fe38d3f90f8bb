"""The OpenAPI 3.1 document, generated from the declared endpoints.

`python -m curtsy.web.openapi > docs/openapi.json` writes the copy in the repository, from which the build generates the
HTTP client (`make client` does both). A test fails when the copy differs from the endpoints.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from typing import Any

from pydantic.json_schema import JsonSchemaMode, models_json_schema

from curtsy import __version__
from curtsy.web.problems import MEDIA_TYPE, ProblemDocument
from curtsy.web.routing import ENDPOINTS, JSON, Endpoint, Media

_REF = "#/components/schemas/{model}"
_ABOUT = (
    "Control crawls over HTTP. Errors are RFC 9457 problem documents. Lists have pages: send `next` of one page as "
    "`cursor` of the next request. The `X-Request-Id` of a request appears in its answer, the logs and the resulting "
    "pages."
)
_REQUEST_ID = {
    "name": "X-Request-Id",
    "in": "header",
    "required": False,
    "description": "Your id for this request: 1 to 128 visible ASCII characters. An invalid id is replaced.",
    "schema": {"type": "string"},
}
_HEADERS = {"X-Request-Id": {"$ref": "#/components/headers/X-Request-Id"}}
#: headers whose invalid values are refused; invalid values of others are ignored
_PATTERNS = {"Idempotency-Key": "^[!-~]{1,255}$"}

Mode = tuple[Any, JsonSchemaMode]


def document() -> dict[str, Any]:
    """Generated at each call; it does not change while the process runs."""
    refs, definitions = _schemas()
    statuses = sorted({status for one in ENDPOINTS for status in one.all_problems})
    paths: dict[str, dict[str, Any]] = {}
    for one in ENDPOINTS:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, refs, definitions)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Curtsy",
            "version": __version__,
            "description": _ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in sorted(definitions.items()) if not name.endswith("Query")},
            "responses": {str(status): _problem(status, refs) for status in statuses},
            "parameters": {"X-Request-Id": _REQUEST_ID},
            "headers": {"X-Request-Id": {"description": "Id of this request.", "schema": {"type": "string"}}},
            "securitySchemes": {
                "key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "`Authorization: Bearer curtsy_<id>_<secret>`; `curtsy keys create` creates one. "
                    "Requests from the server's own machine need no key.",
                }
            },
        },
    }


def _schemas() -> tuple[dict[Mode, Any], dict[str, Any]]:
    wanted: list[Mode] = [(ProblemDocument, "serialization")]
    for one in ENDPOINTS:
        wanted += [(model, "validation") for model in (one.query, one.body) if model is not None]
        wanted += [(model, "serialization") for model in one.answers.values() if isinstance(model, type)]
    refs, schema = models_json_schema(list(dict.fromkeys(wanted)), ref_template=_REF)
    return {**refs}, dict(schema.get("$defs", {}))


def _operation(one: Endpoint, refs: dict[Mode, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.summary,
        "description": one.description,
        "tags": list(one.tags),
        "parameters": [*_parameters(one, refs, definitions), {"$ref": "#/components/parameters/X-Request-Id"}],
        "responses": _responses(one, refs),
        "security": [] if one.scope is None else [{"key": [one.scope]}, {}],
    }
    if one.media_types:
        content: dict[str, Any] = {} if one.body is None else {JSON: {"schema": refs[one.body, "validation"]}}
        content |= {
            kind: {"schema": {"type": "string", "description": description}}
            for kind, description in one.streams.items()
        }
        found["requestBody"] = {"required": True, "content": content}
    return found


def _parameters(one: Endpoint, refs: dict[Mode, Any], definitions: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in one.parameters
    ]
    if one.query is not None:
        schema = _resolved(refs[one.query, "validation"], definitions)
        for name, part in schema.get("properties", {}).items():
            found.append(
                {
                    "name": name,
                    "in": "query",
                    "required": name in schema.get("required", ()),
                    "description": part.get("description", ""),
                    "schema": _without_null(part),
                }
            )
    for name, said in one.headers.items():
        schema = {"type": "string"} | ({"pattern": _PATTERNS[name]} if name in _PATTERNS else {})
        found.append({"name": name, "in": "header", "required": False, "description": said, "schema": schema})
    return found


def _resolved(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    name = str(schema.get("$ref", "")).rpartition("/")[2]
    return dict(definitions[name]) if name else schema


def _without_null(schema: dict[str, Any]) -> dict[str, Any]:
    """A query has no null: an optional parameter is omitted instead."""
    kept = {key: value for key, value in schema.items() if key not in ("anyOf", "default", "title", "description")}
    if schema.get("default") is not None:
        kept["default"] = schema["default"]
    choices = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    if len(choices) == 1:
        return {**kept, **choices[0]}
    return kept | {"anyOf": choices} if choices else kept


def _responses(one: Endpoint, refs: dict[Mode, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, answer in one.answers.items():
        found[str(status)] = {"description": HTTPStatus(status).phrase, "headers": _HEADERS}
        if isinstance(answer, Media):
            schema = {} if answer.type == JSON else {"type": "string"}
            found[str(status)] |= {"description": answer.description, "content": {answer.type: {"schema": schema}}}
            found[str(status)] |= {"x-streamed": True} if answer.streamed else {}
        elif answer is not None:
            found[str(status)] |= {"content": {JSON: {"schema": refs[answer, "serialization"]}}}
    for status in one.all_problems:
        found.setdefault(str(status), {"$ref": f"#/components/responses/{status}"})
    return found


def _problem(status: int, refs: dict[Mode, Any]) -> dict[str, Any]:
    content = {MEDIA_TYPE: {"schema": refs[ProblemDocument, "serialization"]}}
    return {"description": HTTPStatus(status).phrase, "headers": _HEADERS, "content": content}


def file_text() -> str:
    """docs/openapi.json: one line for each operation and component, so that a diff shows what changed."""

    def lines(part: Any, depth: int) -> str:
        if depth == 0 or not isinstance(part, dict):
            return json.dumps(part, ensure_ascii=False)
        items = [f"{json.dumps(key)}: {lines(value, depth - 1)}" for key, value in part.items()]
        return "{\n" + ",\n".join(items) + "\n}"

    return lines(document(), 3) + "\n"
