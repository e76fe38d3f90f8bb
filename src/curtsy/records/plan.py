"""What is to be made of a crawl's pages: schema, rubric and model, as they are wished for and as they are stored.

The definitions are stored with the crawl, word for word: workers on other machines and replays next month use the very
same ones, whatever became of the files and modules they came from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, Definition
from curtsy.grounding import schema as schemas
from curtsy.grounding.page_schema import extractors
from curtsy.grounding.schema import Schema
from curtsy.store import definitions
from curtsy.store.engine import Store

if TYPE_CHECKING:
    from curtsy.grounding.scoring import Scorer

#: how a crawl may wish for a model
MODELS = ("none", "local", "endpoint")
#: begins the definition of a scorer that is a function: whoever runs it must have its module
_FUNCTION = "# function "


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a crawl's records are made by."""

    schema: Schema
    rubric: Scorer | None = None
    #: name of a function in `page_facts.extractors` that makes the items instead of the ladder
    function: str | None = None


def wished(
    schema: str | dict[str, Any] | None,
    rubric: str | None = None,
    llm: str | None = None,
    *,
    folder: Path | None = None,
) -> dict[str, Any]:
    """The fields of a Crawl that say what is made of its pages; an error tells what there is not.

    A schema is named, or given as a JSON Schema: then nothing of it reaches beyond itself.
    """
    check_model(llm)
    if schema is None:
        if rubric is not None:
            raise UsageError("A rubric scores the records of a schema: name one too.")
        return {"llm": llm}
    fields, kept = by_schema(schema, folder), []
    kept += fields["definitions"]
    if rubric is not None:
        fields |= by_rubric(rubric, folder)
        kept += fields["definitions"]
    return {**fields, "llm": llm, "definitions": tuple(kept)}


def check_model(llm: str | None) -> None:
    if llm is not None and llm not in MODELS:
        raise UsageError(f"There is no kind of model {llm!r}. Use one of: {', '.join(MODELS)}.")


def by_schema(schema: str | dict[str, Any], folder: Path | None = None) -> dict[str, Any]:
    """Those of the fields that a schema decides."""
    found = schemas.inline(schema) if isinstance(schema, dict) else _schema(schema, folder)
    kept = Definition(hash=found.hash, kind="schema", name=found.name, body=_json(found.dump()))
    return {"schema": found.name, "schema_hash": found.hash, "per": found.per, "definitions": (kept,)}


def by_rubric(rubric: str, folder: Path | None = None) -> dict[str, Any]:
    """Those of the fields that a rubric decides."""
    body = _rubric_body(rubric, folder)
    made = _rubric(body)
    kept = Definition(hash=_rubric_key(made), kind="rubric", name=made.name, body=body)
    return {"rubric": made.name, "rubric_hash": kept.hash, "definitions": (kept,)}


def _schema(spec: str, folder: Path | None) -> Schema:
    if spec in extractors and spec not in schemas.built_in():
        # A function of the user's own: the process that runs it must have it.
        return Schema(name=spec, json_schema={"type": "object"}, hash=_function_hash(spec), per="page", leaves=())
    return schemas.load(spec, folder=folder)


def _function_hash(name: str) -> str:
    """Of the schema that stands for a function. No other has it: theirs are made over a JSON Schema."""
    return hashlib.sha256(json.dumps([name, None]).encode()).hexdigest()[:16]


def missing_extractor(crawl: Crawl) -> str | None:
    """The name of the function that makes the crawl's records, if this process does not know it."""
    name = crawl.schema
    if name is None or name in extractors or crawl.schema_hash != _function_hash(name):
        return None
    return name


def missing_scorer(store: Store, crawl: Crawl) -> str | None:
    """The same of the function that scores them; one with a module is found by that."""
    from curtsy.grounding.rubrics import scorers

    first = (_body(store, crawl.rubric_hash) or "").partition("\n")[0] if crawl.rubric_hash is not None else ""
    name = first.removeprefix(_FUNCTION)
    return name if first.startswith(_FUNCTION) and ":" not in name and name not in scorers else None


def missing_functions(store: Store, crawl: Crawl) -> dict[str, str]:
    """What makes the crawl's records and is not known in this process: argument of `curtsy.api` -> name."""
    found = {"extract": missing_extractor(crawl), "score": missing_scorer(store, crawl)}
    return {word: name for word, name in found.items() if name is not None}


def resumed_from_python(crawl: Crawl, missing: Mapping[str, str]) -> str:
    return f'curtsy.api.resume("{crawl.id}"{"".join(f", {word}={name}" for word, name in missing.items())})'


def check_functions(store: Store, crawl: Crawl) -> None:
    """A crawl whose records are made by functions goes on only where they are known."""
    if missing := missing_functions(store, crawl):
        names = " and ".join(f"`{name}`" for name in missing.values())
        raise UsageError(
            f"The records of crawl {crawl.id} are made by {names} of a Python program, which is not known here. Go on "
            f"with it there: {resumed_from_python(crawl, missing)}."
        )


def of(store: Store, crawl: Crawl) -> Plan | None:
    """The plan of a crawl as it was stored with it; None if it has none, or its schema is not there."""
    if crawl.schema is None:
        return None
    return of_hashes(store, crawl.schema, crawl.schema_hash, crawl.rubric_hash)


def of_hashes(store: Store, name: str, schema_hash: str | None, rubric_hash: str | None = None) -> Plan | None:
    schema = _stored_schema(store, schema_hash) if schema_hash is not None else None
    if schema is None:
        # Crawls of earlier versions name their schema only.
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
    """A rubric as it is stored: its name on the first line, then its TOML. Of a function only the name can be."""
    from curtsy.grounding import scoring

    made = scoring.load(spec, folder=folder, code=True)
    if isinstance(made, scoring.Function):
        return f"{_FUNCTION}{spec}\n"
    text = scoring.text_of(spec) if spec in scoring.built_in() else ((folder or Path()) / spec).read_text("utf-8")
    return f"# {made.name}\n{text}"


@lru_cache(maxsize=32)
def _rubric(body: str) -> Scorer:
    from curtsy.grounding import scoring

    first, _, text = body.partition("\n")
    if first.startswith(_FUNCTION):
        return scoring.load(first.removeprefix(_FUNCTION), code=True)
    return scoring.Rubric.parse(text, first.removeprefix("# "))


def _body(store: Store, hash: str) -> str | None:
    with store.read() as tx:
        found = definitions.get(tx, hash)
    return None if found is None else found.body


@lru_cache(maxsize=32)
def _restored(body: str) -> Schema:
    return schemas.restore(json.loads(body))


def _rubric_key(rubric: Scorer) -> str:
    return f"rubric-{rubric.version}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
