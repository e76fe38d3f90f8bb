"""What a record is to hold: a schema, its leaves, on which pages it applies, and hints for finding its values.

    Leaf        one value of a record, by its path
    Selector    where a leaf stands: CSS, XPath, or a pattern over the page's text
    Schema      all of it; its hash names the form, so that records of another form stand beside each other

`load` takes a name that comes with the package, a JSON Schema file (`*.json`, with a `*.toml` beside it for selectors)
or a Pydantic model `module:Class`; `inline` takes a JSON Schema from somebody whom we do not trust: it reads no file
and imports nothing. docs/reference/schemas.md describes every key.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from curtsy.core.errors import UsageError
from curtsy.grounding import json_pointer, json_schema, schema_hints
from curtsy.grounding.schema_hints import Hints, Selector

MAX_INLINE_BYTES = 64 << 10
MAX_FILE_BYTES = 1 << 20
_MAX_NAME = 100
_BUILT_IN = Path(__file__).parent / "builtin" / "schemas"
#: of a selector
_LISTS = ("pages", "also", "without")
#: a text that may be longer counts as long: it is compared with its quote less strictly
_LONG = 100
_MODEL = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")

LeafType = Literal["string", "integer", "number", "boolean", "enum", "date"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One value of a record."""

    #: JSON pointer with `*` for the items of a list: `/contact/email`, `/sustainability_claims/*`
    path: str
    type: LeafType
    description: str = ""
    #: it and everything above it
    required: bool = False
    #: the values that it may have; only of type `enum`
    enum: tuple[Any, ...] = ()
    #: a boolean or an enum is published although it is somebody's judgement
    allow_judged: bool = False
    #: sentences rather than names: `long`, or `maxLength` of 100 and more
    long: bool = False
    #: a date with its time: `format` is `date-time`
    timed: bool = False

    @property
    def many(self) -> bool:
        """It is, or is within, an item of a list."""
        return "/*" in self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """What a record is to hold. `x-curtsy` of the JSON Schema has been read into the fields beside it."""

    name: str
    #: references resolved
    json_schema: dict[str, Any]
    #: 16 hex digits over all that decides what is extracted
    hash: str
    #: what a record is about
    per: Literal["page", "site"]
    leaves: tuple[Leaf, ...]
    #: which pages: roles (`about`), or globs over the path (`/about*`) or the whole URL; empty: all
    pages: tuple[str, ...] = ()
    #: leaf -> where it stands, best first
    selectors: Mapping[str, tuple[Selector, ...]] = field(default_factory=dict)
    #: leaf -> keys of structured data, best first: `legalName`, `address.email`, `{address.city}, {address.country}`
    structured: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    #: types of the thing that the record is about, as structured data names them: `Organization`; empty: any
    types: tuple[str, ...] = ()

    @property
    def description(self) -> str:
        return str(self.json_schema.get("description") or "")

    def leaf_for(self, path: str) -> Leaf:
        """The leaf of a place in a record: `/claims/3` is one of `/claims/*`; KeyError if there is none."""
        for leaf in self.leaves:
            if leaf.path == path or _covers(leaf.path, path):
                return leaf
        raise KeyError(f"{path} is not in the schema {self.name}")

    def validate(self, data: Any) -> list[str]:
        """Return what is wrong with a record's data, such as `/founded_year: not integer`; empty if it is valid."""
        # Imported late: jsonschema takes 90 ms to import, and only the record stage validates.
        from curtsy.grounding.validation import problems

        return problems(self.json_schema, data)

    def dump(self) -> dict[str, Any]:
        """All of it as JSON, for `restore`: a crawl keeps the schema that it was begun with."""
        return {
            "name": self.name,
            "json_schema": self.json_schema,
            "hash": self.hash,
            "per": self.per,
            "leaves": [asdict(leaf) for leaf in self.leaves],
            "pages": list(self.pages),
            "selectors": {path: [asdict(one) for one in found] for path, found in self.selectors.items()},
            "structured": {path: list(found) for path, found in self.structured.items()},
            "types": list(self.types),
        }


def _covers(leaf: str, path: str) -> bool:
    ours, theirs = leaf.split("/"), path.split("/")
    return len(ours) == len(theirs) and all(
        a == b or (a == "*" and b.isascii() and b.isdigit()) for a, b in zip(ours, theirs, strict=True)
    )


# Where schemas come from


def load(spec: str, *, folder: Path | None = None) -> Schema:
    """The schema of that name, file or model; UsageError if there is none.

    Files and modules are looked for in `folder`, else in the working directory.
    """
    if spec in built_in():
        text = (_BUILT_IN / f"{spec}.json").read_text()
        return _made(spec, json.loads(text), _toml(_BUILT_IN / f"{spec}.toml"), open_objects=True)
    if spec.endswith(".json"):
        return _from_file((folder or Path()) / spec)
    if _MODEL.fullmatch(spec):
        return _made(spec, _model_schema(spec, folder or Path()), {})
    raise UsageError(
        f"there is no schema {spec!r}: give one of {', '.join(built_in())}, a JSON Schema file such as orgs.json, "
        "or a Pydantic model such as models:Organisation"
    )


def inline(document: Any) -> Schema:
    """The schema of a JSON Schema from outside: bounded, no references out of it, no XPath."""
    document = json_schema.bounded(document, MAX_INLINE_BYTES)
    title = document.get("title")
    name = " ".join(title.split()) if isinstance(title, str) and title.isprintable() else ""
    return _made(name if name and name not in built_in() else "inline", document, {}, trusted=False)


def restore(dumped: Mapping[str, Any]) -> Schema:
    """What `Schema.dump` gave, also after it was JSON."""
    selectors = {
        path: tuple(Selector(**{**one, **{name: tuple(one.get(name, ())) for name in _LISTS}}) for one in many)
        for path, many in dumped["selectors"].items()
    }
    return Schema(
        name=dumped["name"],
        json_schema=dumped["json_schema"],
        hash=dumped["hash"],
        per=dumped["per"],
        leaves=tuple(Leaf(**{**leaf, "enum": tuple(leaf["enum"])}) for leaf in dumped["leaves"]),
        pages=tuple(dumped["pages"]),
        selectors=selectors,
        structured={path: tuple(many) for path, many in dumped["structured"].items()},
        types=tuple(dumped["types"]),
    )


def built_in() -> tuple[str, ...]:
    """The schemas that come with the package."""
    return tuple(sorted(path.stem for path in _BUILT_IN.glob("*.json")))


def _from_file(path: Path) -> Schema:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
        document = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UsageError(f"the schema {path} cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"the schema {path} is not JSON: {error}") from error
    try:
        # Not the name of a schema of ours, for which others may have a function.
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
        raise UsageError(f"{path.name} is not TOML: {error}") from error


def _model_schema(spec: str, folder: Path) -> dict[str, Any]:
    module_name, _, class_name = spec.partition(":")
    with _importing_from(folder):
        try:
            module = importlib.import_module(module_name)
        except SystemExit as error:
            raise UsageError(f"the schema {spec}: {module_name} cannot be imported: it ends the process") from error
        except Exception as error:  # whatever a module of the user's does while it is imported
            raise UsageError(f"the schema {spec}: {module_name} cannot be imported: {error}") from error
    model = getattr(module, class_name, None)
    if not callable(getattr(model, "model_json_schema", None)):
        raise UsageError(f"the schema {spec}: {class_name} is not a Pydantic model in {module_name}")
    try:
        found: dict[str, Any] = model.model_json_schema()  # type: ignore[union-attr]
    except Exception as error:
        raise UsageError(f"the schema {spec} cannot be written as JSON Schema: {error}") from error
    return found


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    where = str(folder.resolve())
    sys.path.insert(0, where)
    try:
        yield
    finally:
        if where in sys.path:
            sys.path.remove(where)


# Making one


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
    """What is said of a value, behind what is said of the lists and objects that it is in."""
    said: dict[str, None] = {}
    for key in json_pointer.keys(path):
        schema = schema["items"] if key == "*" else schema["properties"][key]
        said[str(schema.get("description") or "")] = None
    texts = [text for text in said if text]
    return " ".join(texts) if texts else str(schema.get("title") or "")


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
    )


def _marks(schema: dict[str, Any], path: str = "") -> dict[str, Any]:
    """Place -> its `x-curtsy`."""
    found = {path: schema["x-curtsy"]} if "x-curtsy" in schema else {}
    for name, inner in (schema.get("properties") or {}).items():
        found |= _marks(inner, json_pointer.step(path, name))
    if "items" in schema:
        found |= _marks(schema["items"], f"{path}/*")
    return found
