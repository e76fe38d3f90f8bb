"""Load rubrics and scoring functions: parsed, checked, and versioned.

`load` accepts the name of a built-in rubric (`esg`), a TOML file or, if the caller allows code, a function
`module:function`. docs/explanation/records.md describes every key.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from curtsy.core.errors import UsageError
from curtsy.grounding import patterns
from curtsy.grounding.user_code import SPEC, imported

MAX_FILE_BYTES = 256 << 10
_MAX_CRITERIA = 200
_MAX_PATTERN = 500
_BUILT_IN = Path(__file__).parent / "builtin" / "rubrics"


Text = Annotated[str, Field(min_length=1)]
Weight = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


class Criterion(BaseModel):
    """One criterion."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"\S")]
    group: str = "all"
    weight: Weight = 1.0
    #: globs over the paths of fields; `!` excludes; empty: those of the rubric
    fields: list[Text] = []
    #: google-re2, case-insensitive; a quote counts if one matches
    patterns: list[Text] = []
    #: a quote that matches one of these does not count
    against: list[Text] = []
    #: number of quotes for the full score
    enough: Annotated[int, Field(strict=True, ge=1)] = 1
    #: a quote without a figure counts half
    figures: Annotated[bool, Field(strict=True)] = False
    #: only statements of the organization about its own deeds count; denials and failures lower the score
    own: Annotated[bool, Field(strict=True)] | None = None
    #: for a language model, about the matching quotes (without patterns: all)
    question: Annotated[str, Field(pattern=r"\S")] | None = None

    @model_validator(mode="after")
    def _check(self) -> Criterion:
        if not self.patterns and self.question is None:
            raise ValueError("it has neither `patterns` nor a `question`")
        for pattern in (*self.patterns, *self.against):
            try:
                compiled(pattern)
            except UsageError as error:
                raise ValueError(str(error)) from error
        return self


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid")

    title: Any = None
    fields: list[Text] = []
    own: Annotated[bool, Field(strict=True)] = False
    groups: dict[str, Weight] | None = None
    criteria: Annotated[list[Criterion], Field(min_length=1, max_length=_MAX_CRITERIA)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """Criteria and their weights."""

    name: str
    #: 16 hex digits of a hash of its content without comments
    version: str
    criteria: tuple[Criterion, ...]
    #: group -> weight
    groups: Mapping[str, float]

    @classmethod
    def parse(cls, text: str, name: str) -> Rubric:
        """Raise UsageError, with the place, if it is not a rubric."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"the rubric {name} is not valid TOML: {error}") from error
        try:
            return _rubric(document, name)
        except UsageError as error:
            raise UsageError(f"the rubric {name}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A scorer in Python. It receives `schema`, `data` and `quotes` ([{path, quote, url, start, end}, ...]) and returns
    a number from 0 to 100, or a result like that of a rubric; quotes that are not evidence are removed from it."""

    name: str
    #: hash of its module's source
    version: str
    call: Callable[..., Any]


Scorer: TypeAlias = Rubric | Function


# Where rubrics come from

#: functions of the calling program, by name (records/user_functions.py)
scorers: dict[str, Callable[..., Any]] = {}


def load(spec: str, *, folder: Path | None = None, code: bool = False) -> Scorer:
    """Return the rubric of that name or file, or with `code` the function `module:function`; UsageError if unknown.
    Files and modules are searched in `folder`, else in the working directory."""
    if spec in built_in():
        return Rubric.parse(text_of(spec), spec)
    if code and spec in scorers:
        return Function(name=spec, version=_hash([spec, "here"]), call=partial(_newest, spec))
    if spec.endswith(".toml"):
        return _from_file((folder or Path()) / spec)
    if SPEC.fullmatch(spec):
        if not code:
            raise UsageError(f"{spec}: functions are allowed only on the command line and in the settings")
        return _function(spec, folder or Path())
    raise _none(spec)


def _newest(name: str, **given: Any) -> Any:
    """Look up at each call: in a notebook, functions are often redefined."""
    return scorers[name](**given)


def text_of(name: str) -> str:
    """Return the TOML of a built-in rubric."""
    if name not in built_in():
        raise _none(name)
    return (_BUILT_IN / f"{name}.toml").read_text("utf-8")


def _none(spec: str) -> UsageError:
    return UsageError(
        f"unknown rubric: {spec!r}. Use one of {', '.join(built_in())}, a TOML file such as rubric.toml, or a function "
        "such as scoring:rate"
    )


def built_in() -> tuple[str, ...]:
    """Return the names of the built-in rubrics."""
    return tuple(sorted(path.stem for path in _BUILT_IN.glob("*.toml")))


def _from_file(path: Path) -> Rubric:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
        return Rubric.parse(path.read_text("utf-8"), path.stem)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the rubric {path} cannot be read: {error}") from error


def _function(spec: str, folder: Path) -> Function:
    module, call = imported(spec, folder, "scorer")
    if not callable(call):
        raise UsageError(f"the scorer {spec}: {module.__name__} has no such function")
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        source = spec
    return Function(name=spec, version=_hash([spec, source]), call=call)


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


# Parsing


def _rubric(document: dict[str, Any], name: str) -> Rubric:
    try:
        parsed = _Document.model_validate(document)
    except ValidationError as error:
        raise UsageError(_first_problem(error, document)) from error
    criteria = tuple(_inheriting(one, parsed) for one in parsed.criteria)
    for one, count in Counter(criterion.name for criterion in criteria).items():
        if count > 1:
            raise UsageError(f"there are two criteria {one!r}")
    used = dict.fromkeys((criterion.group for criterion in criteria), 1.0)
    for group in used if parsed.groups is not None else ():
        weight = (parsed.groups or {}).get(group)
        if weight is None:
            raise UsageError(f"[groups] has no weight for {group!r}")
        used[group] = weight
    return Rubric(name=name, version=_hash(document), criteria=criteria, groups=used)


def _inheriting(criterion: Criterion, document: _Document) -> Criterion:
    """Fill what a criterion leaves to its rubric."""
    own = document.own if criterion.own is None else criterion.own
    return criterion.model_copy(update={"fields": criterion.fields or document.fields, "own": own})


def _first_problem(error: ValidationError, document: dict[str, Any]) -> str:
    first = error.errors(include_url=False)[0]
    where, place = "", list(first["loc"])
    if place[0] == "criteria" and len(place) > 1:
        given = document["criteria"][int(place[1])]
        number, place = int(place[1]) + 1, place[2:]
        where = f"the criterion {given.get('name', number) if isinstance(given, dict) else number!r}: "
    field = f"`{'.'.join(map(str, place))}`: " if place else ""
    message = "unknown key" if first["type"] == "extra_forbidden" else first["msg"].removeprefix("Value error, ")
    return f"{where}{field}{message}"


def compiled(pattern: str) -> Any:
    return patterns.compiled(pattern, max_length=_MAX_PATTERN, case_sensitive=False)
