"""The schema of a record: its leaves, the pages it applies to, and hints for finding its values.

    Leaf        one value of a record, by its path
    Selector    where to find a leaf: CSS, XPath, or a pattern over the page's text
    Schema      all of it; its hash identifies the version, so that records of several versions can coexist

`load` accepts the name of a built-in schema, a JSON Schema file (`*.json`, with a `*.toml` next to it for selectors) or
a Pydantic model `module:Class`. `inline` accepts an untrusted JSON Schema: it reads no file and imports nothing.
docs/reference/schemas.md describes every key.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import TypeAdapter

from curtsy.core.errors import UsageError
from curtsy.grounding import json_pointer, json_schema, schema_hints
from curtsy.grounding.schema_hints import Hints, Selector
from curtsy.grounding.user_code import SPEC, imported

MAX_INLINE_BYTES = 64 << 10
MAX_FILE_BYTES = 1 << 20
_MAX_NAME = 100
_BUILT_IN = Path(__file__).parent / "builtin" / "schemas"
#: a text that may be this long is compared with its quote less strictly
_LONG = 100

LeafType = Literal["string", "integer", "number", "boolean", "enum", "date"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One value of a record."""

    #: JSON pointer with `*` for the items of a list: `/contact/email`, `/sustainability_claims/*`
    path: str
    type: LeafType
    description: str = ""
    #: it and all its parents are required
    required: bool = False
    #: the allowed values; only for type `enum`
    enum: tuple[Any, ...] = ()
    #: a boolean or an enum is published although it is a judgment
    allow_judged: bool = False
    #: sentences rather than names: `long`, or `maxLength` of 100 and more
    long: bool = False
    #: a date with a time: `format` is `date-time`
    timed: bool = False
    #: words that relate a quote to it, or their beginnings, in any language
    hints: tuple[str, ...] = ()
    #: a sentence that must be a statement of the organization about itself
    own: bool = False

    @property
    def many(self) -> bool:
        """Return whether it is, or is inside of, an item of a list."""
        return "/*" in self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """The schema of a record. `x-curtsy` of the JSON Schema was read into the other fields."""

    name: str
    #: references resolved
    json_schema: dict[str, Any]
    #: 16 hex digits of a hash of everything that determines what is extracted
    hash: str
    #: the subject of a record
    per: Literal["page", "site"]
    leaves: tuple[Leaf, ...]
    #: which pages: roles (`about`), or globs over the path (`/about*`) or the whole URL; empty: all
    pages: tuple[str, ...] = ()
    #: leaf -> where to find it, best first
    selectors: Mapping[str, tuple[Selector, ...]] = field(default_factory=dict)
    #: leaf -> keys of structured data, best first: `legalName`, `address.email`, `{address.city}, {address.country}`
    structured: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: types of the entity that the record is about, in structured data: `Organization`; empty: any
    types: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        return str(self.json_schema.get("description") or "")

    def leaf_for(self, path: str) -> Leaf:
        """Return the leaf of a path in a record, such as `/claims/*` for `/claims/3`; raise KeyError if unknown."""
        for leaf in self.leaves:
            if leaf.path == path or _covers(leaf.path, path):
                return leaf
        raise KeyError(f"the schema {self.name} has no {path}")

    def validate(self, data: Any) -> list[str]:
        """Return what is wrong with a record's data, such as `/founded_year: not integer`; empty if it is valid."""
        # Imported late: jsonschema takes 90 ms to import, and only the record stage validates.
        from curtsy.grounding.validation import problems

        return problems(self.json_schema, data)

    def dump(self) -> dict[str, Any]:
        """Return all of it for `restore`: a crawl keeps the schema that it was started with."""
        return asdict(self)


def _covers(leaf: str, path: str) -> bool:
    ours, theirs = leaf.split("/"), path.split("/")
    return len(ours) == len(theirs) and all(
        a == b or (a == "*" and b.isascii() and b.isdigit()) for a, b in zip(ours, theirs, strict=True)
    )


# Loading


def load(spec: str, *, folder: Path | None = None) -> Schema:
    """Return the schema of that name, file or model; raise UsageError if it is unknown.

    Files and modules are searched in `folder`, else in the working directory.
    """
    if spec in built_in():
        text = (_BUILT_IN / f"{spec}.json").read_text()
        return _made(spec, json.loads(text), _toml(_BUILT_IN / f"{spec}.toml"), open_objects=True)
    if spec.endswith(".json"):
        return _from_file((folder or Path()) / spec)
    if SPEC.fullmatch(spec):
        return _made(spec, _model_schema(spec, folder or Path()), {})
    raise UsageError(
        f"unknown schema: {spec!r}. Use one of {', '.join(built_in())}, a JSON Schema file such as orgs.json, "
        "or a Pydantic model such as models:Organization"
    )


def inline(document: Any) -> Schema:
    """Return the schema of an untrusted JSON Schema: limited, without external references and XPath."""
    document = json_schema.bounded(document, MAX_INLINE_BYTES)
    title = document.get("title")
    name = " ".join(title.split()) if isinstance(title, str) and title.isprintable() else ""
    return _made(name if name and name not in built_in() else "inline", document, {}, trusted=False)


def restore(dumped: Mapping[str, Any]) -> Schema:
    """The inverse of `Schema.dump`, also after a conversion to JSON."""
    return _adapter().validate_python(dumped)


@cache
def _adapter() -> TypeAdapter[Schema]:
    return TypeAdapter(Schema)


def built_in() -> tuple[str, ...]:
    """Return the names of the built-in schemas."""
    return tuple(sorted(path.stem for path in _BUILT_IN.glob("*.json")))


def _from_file(path: Path) -> Schema:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"the schema {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the schema {path} is not valid JSON: {error}") from error
    try:
        # Not the name of a built-in schema, for which there may be a function.
        name = path.name if path.stem in built_in() else path.stem
        return _made(name, json_schema.bounded(document, MAX_FILE_BYTES), _toml(path.with_suffix(".toml")))
    except UsageError as error:
        raise UsageError(f"{path.name}: {error}") from error


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{path.name} is not valid TOML: {error}") from error


def _model_schema(spec: str, folder: Path) -> dict[str, Any]:
    module, model = imported(spec, folder, "schema")
    if not callable(getattr(model, "model_json_schema", None)):
        raise UsageError(f"the schema {spec} is not a Pydantic model of {module.__name__}")
    try:
        found: dict[str, Any] = model.model_json_schema()
    except Exception as error:
        raise UsageError(f"the schema {spec} cannot be converted to JSON Schema: {error}") from error
    return found


# Construction


def _made(
    name: str, document: dict[str, Any], beside: dict[str, Any], *, trusted: bool = True, open_objects: bool = False
) -> Schema:
    resolved = json_schema.resolved(document)
    found = json_schema.leaves(resolved, open_objects)
    hints = schema_hints.read(_marks(resolved), beside, {leaf.path for leaf in found}, trusted=trusted)
    identity = [name, resolved, beside] if beside else [name, resolved]
    return Schema(
        name=name[:_MAX_NAME],
        json_schema=resolved,
        hash=hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16],
        per=hints.per,
        leaves=tuple(_leaf(one, hints, _described(resolved, one.path)) for one in found),
        pages=hints.pages,
        selectors=hints.selectors,
        structured=hints.structured,
        types=hints.types,
    )


def _described(schema: dict[str, Any], path: str) -> str:
    """Return the description of a value, after those of its parents."""
    texts: dict[str, None] = {}
    for key in json_pointer.keys(path):
        schema = schema["items"] if key == "*" else schema["properties"][key]
        texts[str(schema.get("description") or "")] = None
    return " ".join(text for text in texts if text) or str(schema.get("title") or "")


def _leaf(found: json_schema.Found, hints: Hints, description: str) -> Leaf:
    schema = found.schema
    allowed = [schema["const"]] if "const" in schema else schema.get("enum", [])
    return Leaf(
        path=found.path,
        type=cast(LeafType, found.type),
        description=description,
        required=found.required,
        enum=tuple(one for one in allowed if one is not None),
        allow_judged=found.path in hints.judged,
        long=found.path in hints.long or schema.get("maxLength", 0) >= _LONG,
        timed=found.type == "date" and schema.get("format") == "date-time",
        hints=hints.words.get(found.path, ()),
        own=found.path in hints.own,
    )


def _marks(schema: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Return the `x-curtsy` of each place."""
    found = {path: schema["x-curtsy"]} if "x-curtsy" in schema else {}
    for name, inner in (schema.get("properties") or {}).items():
        found |= _marks(inner, json_pointer.step(path, name))
    if "items" in schema:
        found |= _marks(schema["items"], f"{path}/*")
    return found
