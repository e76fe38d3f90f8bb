"""Rubrics, and functions that score: read, checked, and given a version.

`load` takes a name that comes with the package (`esg`), a TOML file or, where the caller allows code, a function
`module:function`. docs/explanation/records.md describes every key.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import re2

from curtsy.core.errors import UsageError

MAX_FILE_BYTES = 256 << 10
_MAX_CRITERIA = 200
_MAX_PATTERN = 500
_PATTERN_MEMORY_BYTES = 4 << 20
_BUILT_IN = Path(__file__).parent / "builtin" / "rubrics"
_FUNCTION = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")
_TOP = frozenset(("title", "fields", "groups", "criteria"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One thing that is looked for."""

    name: str
    group: str
    weight: float = 1.0
    #: globs over the paths of fields; with `!` those that are not looked at; empty: as the rubric says
    fields: tuple[str, ...] = ()
    #: google-re2, case ignored; a quote counts if one matches
    patterns: tuple[str, ...] = ()
    #: a quote that one of these matches does not count
    against: tuple[str, ...] = ()
    #: so many quotes give the full score
    enough: int = 1
    #: a quote without a figure counts half
    figures: bool = False
    #: for a language model, about the quotes that match (all, without patterns)
    question: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """Criteria and what they weigh."""

    name: str
    #: 16 hex digits over its content; comments do not count
    version: str
    criteria: tuple[Criterion, ...]
    #: group -> weight
    groups: Mapping[str, float]

    @classmethod
    def parse(cls, text: str, name: str) -> Rubric:
        """UsageError, with the place, where it is not a rubric."""
        try:
            document = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"the rubric {name} is not TOML: {error}") from error
        try:
            return _rubric(document, name)
        except UsageError as error:
            raise UsageError(f"the rubric {name}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Function:
    """A scorer in Python. It is given `schema`, `data` and `quotes` ([{path, quote, url, start, end}, ...]) and gives a
    number from 0 to 100, or a result as rubrics make it; quotes that are not evidence are dropped from it."""

    name: str
    #: over the source of its module
    version: str
    call: Callable[..., Any]


Scorer: TypeAlias = Rubric | Function


# Where rubrics come from

#: functions of whoever calls, by name (functions.py)
scorers: dict[str, Callable[..., Any]] = {}


def load(spec: str, *, folder: Path | None = None, code: bool = False) -> Scorer:
    """The rubric of that name or file, or with `code` the function `module:function`; UsageError if there is none.
    Files and modules are looked for in `folder`, else in the working directory."""
    if spec in built_in():
        return Rubric.parse(text_of(spec), spec)
    if code and spec in scorers:
        return Function(name=spec, version=_hash([spec, "here"]), call=partial(_newest, spec))
    if spec.endswith(".toml"):
        return _from_file((folder or Path()) / spec)
    if _FUNCTION.fullmatch(spec):
        if not code:
            raise UsageError(f"{spec}: a function can score only if the command line or the settings name it")
        return _function(spec, folder or Path())
    raise _none(spec)


def _newest(name: str, **given: Any) -> Any:
    """Looked up at each call: in a notebook a function is often defined again."""
    return scorers[name](**given)


def text_of(name: str) -> str:
    """The TOML of a rubric that comes with the package."""
    if name not in built_in():
        raise _none(name)
    return (_BUILT_IN / f"{name}.toml").read_text("utf-8")


def _none(spec: str) -> UsageError:
    return UsageError(
        f"there is no rubric {spec!r}: give one of {', '.join(built_in())}, a TOML file such as rubric.toml, "
        "or a function such as scoring:rate"
    )


def built_in() -> tuple[str, ...]:
    """The rubrics that come with the package."""
    return tuple(sorted(path.stem for path in _BUILT_IN.glob("*.toml")))


def _from_file(path: Path) -> Rubric:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
        return Rubric.parse(path.read_text("utf-8"), path.stem)
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"the rubric {path} cannot be read: {error}") from error


def _function(spec: str, folder: Path) -> Function:
    module_name, _, name = spec.partition(":")
    where = str(folder.resolve())
    sys.path.insert(0, where)
    try:
        module = importlib.import_module(module_name)
    except SystemExit as error:
        raise UsageError(f"the scorer {spec}: {module_name} cannot be imported: it ends the process") from error
    except Exception as error:  # whatever a module of the user's does while it is imported
        raise UsageError(f"the scorer {spec}: {module_name} cannot be imported: {error}") from error
    finally:
        if where in sys.path:
            sys.path.remove(where)
    call = getattr(module, name, None)
    if not callable(call):
        raise UsageError(f"the scorer {spec}: there is no function {name} in {module_name}")
    try:
        source = inspect.getsource(module)
    except (OSError, TypeError):
        source = spec
    return Function(name=spec, version=_hash([spec, source]), call=call)


def _hash(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


# Reading one


def _rubric(document: dict[str, Any], name: str) -> Rubric:
    _no_others(document, _TOP, "the rubric")
    listed = document.get("criteria")
    if not isinstance(listed, list) or not listed:
        raise UsageError("it has no [[criteria]]")
    if len(listed) > _MAX_CRITERIA:
        raise UsageError(f"it has more than {_MAX_CRITERIA} criteria")
    fields = _texts(document, "fields", "the rubric")
    criteria = tuple(_criterion(one, fields) for one in listed)
    names = [criterion.name for criterion in criteria]
    for one in names:
        if names.count(one) > 1:
            raise UsageError(f"the criterion {one!r} is there twice")
    return Rubric(name=name, version=_hash(document), criteria=criteria, groups=_groups(document, criteria))


def _groups(document: dict[str, Any], criteria: tuple[Criterion, ...]) -> dict[str, float]:
    used = list(dict.fromkeys(criterion.group for criterion in criteria))
    given = document.get("groups")
    if given is None:
        return dict.fromkeys(used, 1.0)
    if not isinstance(given, dict):
        raise UsageError("[groups] is not a table of weights")
    for group in used:
        if group not in given:
            raise UsageError(f"[groups] has no weight for {group!r}")
    return {group: _number(given, group, "[groups]") for group in used}


def _criterion(given: Any, fields: tuple[str, ...]) -> Criterion:
    if not isinstance(given, dict) or not isinstance(given.get("name"), str) or not given["name"].strip():
        raise UsageError("a criterion has no name")
    where = f"the criterion {given['name']!r}"
    _no_others(given, frozenset(Criterion.__slots__), where)
    question = given.get("question")
    if question is not None and not (isinstance(question, str) and question.strip()):
        raise UsageError(f"{where}: `question` is not a text")
    enough = given.get("enough", 1)
    if not isinstance(enough, int) or isinstance(enough, bool) or enough < 1:
        raise UsageError(f"{where}: `enough` is not a number of quotes")
    if not isinstance(given.get("figures", False), bool):
        raise UsageError(f"{where}: `figures` is neither true nor false")
    made = Criterion(
        name=given["name"],
        group=str(given.get("group", "all")),
        weight=_number(given, "weight", where, 1.0),
        fields=_texts(given, "fields", where) or fields,
        patterns=_texts(given, "patterns", where),
        against=_texts(given, "against", where),
        enough=enough,
        figures=given.get("figures", False),
        question=question,
    )
    if not made.patterns and made.question is None:
        raise UsageError(f"{where} has neither `patterns` nor a `question`")
    for pattern in (*made.patterns, *made.against):
        try:
            compiled(pattern)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from error
    return made


def _no_others(given: dict[str, Any], known: frozenset[str], where: str) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{where}: there is no key `{key}`; there are {', '.join(sorted(known))}")


def _texts(given: dict[str, Any], key: str, where: str) -> tuple[str, ...]:
    texts = given.get(key, [])
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise UsageError(f"{where}: `{key}` is not a list of texts")
    return tuple(texts)


def _number(given: dict[str, Any], key: str, where: str, default: float | None = None) -> float:
    number = given.get(key, default)
    if not isinstance(number, int | float) or isinstance(number, bool) or not 0 <= number < float("inf"):
        raise UsageError(f"{where}: the weight `{key}` is not a number from 0 on")
    return float(number)


@lru_cache(maxsize=2048)
def compiled(pattern: str) -> Any:
    """The pattern, case ignored; UsageError where google-re2 does not take it."""
    if len(pattern) > _MAX_PATTERN:
        raise UsageError(f"the pattern {pattern[:60]!r}... has more than {_MAX_PATTERN} characters")
    options = re2.Options()
    options.max_mem = _PATTERN_MEMORY_BYTES
    options.log_errors = False
    options.case_sensitive = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        reason = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else reason
        raise UsageError(f"the pattern {pattern!r} is not one that RE2 understands: {reason}") from error
