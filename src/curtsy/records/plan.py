"""What to make of a crawl's pages: schema, rubric and model, as requested and as stored.

The definitions are stored with the crawl in full: workers on other machines and later replays use exactly the same
ones, even if the files and modules they came from have changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Definition
from curtsy.grounding import rubrics, scoring
from curtsy.grounding import schema as schemas
from curtsy.grounding.page_schema import extractors
from curtsy.grounding.schema import Schema
from curtsy.grounding.scoring import Scorer
from curtsy.store import definitions
from curtsy.store.engine import Store

#: the kinds of model that a crawl may request
MODELS = ("none", "local", "endpoint")
#: begins the definition of a scorer that is a function: the process that runs it must have its module
_FUNCTION = "# function "


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a crawl's records are made."""

    schema: Schema
    rubric: Scorer | None = None
    #: name of a function in `page_schema.extractors` that makes the items instead of `record_claims.extract`
    function: str | None = None


def crawl_fields(
    schema: str | dict[str, Any] | None,
    rubric: str | None = None,
    llm: str | None = None,
    *,
    folder: Path | None = None,
) -> dict[str, Any]:
    """Return the fields of a Crawl that say what to make of its pages; raise UsageError for an unknown name.

    A schema is a name or a JSON Schema, which must not refer to anything outside of itself.
    """
    check_model(llm)
    if schema is None:
        if rubric is not None:
            raise UsageError("A rubric scores the records of a schema. Name a schema too.")
        return {"llm": llm}
    fields, kept = schema_fields(schema, folder), []
    kept += fields["definitions"]
    if rubric is not None:
        fields |= rubric_fields(rubric, folder)
        kept += fields["definitions"]
    return {**fields, "llm": llm, "definitions": tuple(kept)}


def check_model(llm: str | None) -> None:
    if llm is not None and llm not in MODELS:
        raise UsageError(f"Unknown kind of model: {llm!r}. Use one of: {', '.join(MODELS)}.")


def schema_fields(schema: str | dict[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """Return the fields that depend on the schema."""
    found = schemas.inline(schema) if isinstance(schema, dict) else _schema(schema, folder)
    kept = Definition(hash=found.hash, kind="schema", name=found.name, body=_json(found.dump()))
    return {"schema": found.name, "schema_hash": found.hash, "per": found.per, "definitions": (kept,)}


def rubric_fields(rubric: str, folder: Path | None = None) -> dict[str, Any]:
    """Return the fields that depend on the rubric."""
    body = _rubric_body(rubric, folder)
    made = _rubric(body)
    kept = Definition(hash=_rubric_key(made), kind="rubric", name=made.name, body=body)
    return {"rubric": made.name, "rubric_hash": kept.hash, "definitions": (kept,)}


def _schema(spec: str, folder: Path | None) -> Schema:
    if spec in extractors and spec not in schemas.built_in():
        # A user's function: the process that runs it must have it.
        return Schema(name=spec, json_schema={"type": "object"}, hash=_function_hash(spec), per="page", leaves=())
    return schemas.load(spec, folder=folder)


def _function_hash(name: str) -> str:
    """The hash of a schema that represents a function. It is unique: other hashes cover a JSON Schema."""
    return hashlib.sha256(json.dumps([name, None]).encode()).hexdigest()[:16]


def missing_extractor(crawl: Crawl) -> str | None:
    """Return the name of the function that extracts the crawl's records, if it is unknown in this process."""
    name = crawl.schema
    if name is None or name in extractors or crawl.schema_hash != _function_hash(name):
        return None
    return name


def missing_scorer(store: Store, crawl: Crawl) -> str | None:
    """The same for the function that scores them; one with a module is found by that."""
    first = (_body(store, crawl.rubric_hash) or "").partition("\n")[0] if crawl.rubric_hash is not None else ""
    name = first.removeprefix(_FUNCTION)
    return name if first.startswith(_FUNCTION) and ":" not in name and name not in rubrics.scorers else None


def missing_functions(store: Store, crawl: Crawl) -> dict[str, str]:
    """Return the functions that are unknown in this process: argument of `curtsy.api` -> name."""
    found = {"extract": missing_extractor(crawl), "score": missing_scorer(store, crawl)}
    return {argument: name for argument, name in found.items() if name is not None}


def resume_call(crawl: Crawl, missing: Mapping[str, str]) -> str:
    return f'curtsy.api.resume("{crawl.id}"{"".join(f", {argument}={name}" for argument, name in missing.items())})'


def check_functions(store: Store, crawl: Crawl) -> None:
    """Raise UsageError if the crawl's records need functions that are unknown in this process."""
    if missing := missing_functions(store, crawl):
        names = " and ".join(f"`{name}`" for name in missing.values())
        raise UsageError(
            f"The records of crawl {crawl.id} are made by {names} of a Python program, which is unknown here. "
            f"Resume it from that program: {resume_call(crawl, missing)}."
        )


def of(store: Store, crawl: Crawl) -> Plan | None:
    """Return the stored plan of a crawl; None if it has none, or its schema is missing."""
    if crawl.schema is None:
        return None
    return of_hashes(store, crawl.schema, crawl.schema_hash, crawl.rubric_hash)


def of_hashes(store: Store, name: str, schema_hash: str | None, rubric_hash: str | None = None) -> Plan | None:
    schema = _stored_schema(store, schema_hash) if schema_hash is not None else None
    if schema is None:
        # Crawls of earlier versions store only the name of their schema.
        try:
            schema = _schema(name, None)
        except UsageError:
            return None
    rubric = _stored_rubric(store, rubric_hash) if rubric_hash is not None else None
    return Plan(schema=schema, rubric=rubric, function=schema.name if schema.name in extractors else None)


def _stored_schema(store: Store, hash: str) -> Schema | None:
    body = _body(store, hash)
    return None if body is None else _restored(body)


def _stored_rubric(store: Store, hash: str) -> Scorer | None:
    body = _body(store, hash)
    return None if body is None else _rubric(body)


def _rubric_body(spec: str, folder: Path | None) -> str:
    """Return a rubric as it is stored: its name in the first line, then its TOML; of a function only the name."""
    made = scoring.load(spec, folder=folder, code=True)
    if isinstance(made, scoring.Function):
        return f"{_FUNCTION}{spec}\n"
    text = scoring.text_of(spec) if spec in scoring.built_in() else ((folder or Path()) / spec).read_text("utf-8")
    return f"# {made.name}\n{text}"


@lru_cache(maxsize=32)
def _rubric(body: str) -> Scorer:
    first, _, text = body.partition("\n")
    if first.startswith(_FUNCTION):
        return scoring.load(first.removeprefix(_FUNCTION), code=True)
    return scoring.Rubric.parse(text, first.removeprefix("# "))


#: hash -> definition; a definition never changes
_bodies: dict[str, str] = {}
_MAX_BODIES = 64


def _body(store: Store, hash: str) -> str | None:
    if (known := _bodies.get(hash)) is not None:
        return known
    with store.read() as tx:
        found = definitions.get(tx, hash)
    if found is None:
        return None
    if len(_bodies) >= _MAX_BODIES:
        _bodies.clear()
    _bodies[hash] = found.body
    return found.body


@lru_cache(maxsize=32)
def _restored(body: str) -> Schema:
    return schemas.restore(json.loads(body))


def _rubric_key(rubric: Scorer) -> str:
    return f"rubric-{rubric.version}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
