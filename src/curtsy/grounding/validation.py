"""Validation of a record's data against its JSON Schema, with messages that name the place.

Only the keywords in `_CHECKED` are checked. Others never took part: checking them would withhold records of running
crawls.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker, ValidationError, validators

from curtsy.core.errors import UsageError
from curtsy.grounding.json_pointer import step
from curtsy.grounding.json_schema import DATES, MAX_PATTERN
from curtsy.grounding.patterns import compiled

_MAX_PROBLEMS = 50


def problems(schema: dict[str, Any], data: Any) -> list[str]:
    """Return what is wrong with the data, sorted by place; at most 50 entries."""
    errors = sorted(
        islice(_Validator(schema, format_checker=_FORMATS).iter_errors(data), _MAX_PROBLEMS),
        key=lambda one: list(one.path),
    )
    mistyped = [error.path for error in errors if error.validator == "type"]
    relevant = [error for error in errors if error.validator == "type" or error.path not in mistyped]
    return list(dict.fromkeys(problem for error in relevant for problem in _described(error)))[:_MAX_PROBLEMS]


def _is_date(value: Any) -> bool:
    return not isinstance(value, str) or bool(datetime.datetime.fromisoformat(value))


def _check_pattern(validator: Any, pattern: str, value: Any, schema: Any) -> Iterator[Any]:
    """A pattern comes from outside: `re`, which jsonschema uses, could take exponential time."""
    if not isinstance(value, str):
        return
    try:
        if compiled(pattern, max_length=MAX_PATTERN).search(value) is None:
            yield ValidationError("does not match {0}")
    except UsageError:  # a crawl of an earlier version, which accepted such a schema
        yield ValidationError("the pattern {0} cannot be checked")


#: keyword -> what is wrong, with the keyword's value; jsonschema's own messages repeat the whole value
_MESSAGES = {
    "type": "not {0}",
    "enum": "not one of {0}",
    "const": "not one of [{0}]",
    "minItems": "fewer than {0} items",
    "maxItems": "more than {0} items",
    "minLength": "shorter than {0} characters",
    "maxLength": "longer than {0} characters",
    "format": "not a date such as 2024-05-31",
    **{name: f"beyond {name} {{0}}" for name in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")},
}
_CHECKED = {*_MESSAGES, "required", "properties", "additionalProperties", "items"}


def _described(error: Any) -> Iterator[str]:
    path = "".join(step("", str(key)) for key in error.path)
    if error.validator == "required":
        yield from (f"{step(path, name)}: missing" for name in error.validator_value if name not in error.instance)
    elif error.validator == "additionalProperties":
        named = error.schema.get("properties") or {}
        yield from (f"{step(path, name)}: not in the schema" for name in error.instance if name not in named)
    else:
        wanted = error.validator_value
        if error.validator == "type":
            wanted = " or ".join(wanted if isinstance(wanted, list) else [wanted])
        elif error.validator in ("enum", "const"):
            wanted = json.dumps(wanted)[:200]
        yield f"{path or '/'}: {_MESSAGES.get(error.validator, error.message).format(wanted)}"


_FORMATS = FormatChecker(formats=())
for _name in DATES:
    _FORMATS.checks(_name, ValueError)(_is_date)
_Validator = validators.create(
    {},
    {name: check for name, check in Draft202012Validator.VALIDATORS.items() if name in _CHECKED}
    | {"pattern": _check_pattern},
)
