"""Schemas of one's own for organizations use the rules of the built-in schema `organization`.

A schema is one of organizations if it makes one record per site, names no type, and its title says so: `Company`. Then
structured data must describe an organization, and values that are called like those of the built-in schema and have
their type are searched with its selectors, unless the schema has selectors or keys for them.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache

from curtsy.grounding import schema as schemas
from curtsy.grounding.json_pointer import keys
from curtsy.grounding.schema import Leaf, Schema

_TITLE = re.compile(
    r"organi[sz]ation|compan(?:y|ies)\b|firm\b|charity|unternehmen|entreprise|empresa|azienda|bedrijf|会社|企業",
    re.IGNORECASE,
)
#: other names of the values of the built-in schema
_NAMES = {
    "founded": "founded_year", "founding_year": "founded_year", "year_founded": "founded_year",
    "year_of_foundation": "founded_year", "head_office": "headquarters", "hq": "headquarters",
    "telephone": "phone", "phone_number": "phone", "tel": "phone", "e_mail": "email", "mail": "email",
    "mission_statement": "mission", "claims": "sustainability_claims",
}  # fmt: skip


@cache
def _built_in() -> Schema:
    return schemas.load("organization")


def adopted(schema: Schema) -> Schema:
    """Return the schema with the type and the selectors of the built-in one, if it is about organizations."""
    title = f"{schema.name} {schema.json_schema.get('title') or ''}".replace("_", " ")
    if schema.per != "site" or schema.types or not _TITLE.search(title):
        return schema
    rules = {(_name(leaf), leaf.type, leaf.many): leaf.path for leaf in _built_in().leaves}
    lent = {
        leaf.path: _built_in().selectors.get(path, ())
        for leaf in schema.leaves
        if leaf.path not in schema.selectors and leaf.path not in schema.structured
        if (path := rules.get((_name(leaf), leaf.type, leaf.many))) is not None
    }
    return replace(schema, types=_built_in().types, selectors={**lent, **schema.selectors})


def has_lent(schema: Schema, leaf: Leaf, path: str) -> bool:
    """Return whether a leaf uses the selectors of a leaf of the built-in schema."""
    return leaf.path in schema.selectors and schema.selectors[leaf.path] == _built_in().selectors.get(path)


def _name(leaf: Leaf) -> str:
    names = [name for name in keys(leaf.path) if name != "*"]
    last = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", names[-1]).lower() if names else ""
    return _NAMES.get(last, last)
