"""A project folder: settings, seeds, a schema and a .gitignore, made from four answers. Pure except for `write`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from curtsy.core.errors import UsageError

_COLUMN = re.compile(r"([a-z][a-z0-9_]{0,60})(?::([a-z]{1,10}))?")
_TYPES: dict[str, dict[str, Any]] = {
    "text": {"type": ["string", "null"]},
    "integer": {"type": ["integer", "null"]},
    "number": {"type": ["number", "null"]},
    "boolean": {"type": ["boolean", "null"]},
    "date": {"type": ["string", "null"], "format": "date"},
    "list": {"type": "array", "items": {"type": "string"}},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What a common job needs."""

    about: str
    #: name of a built-in schema; None: pages only
    schema: str | None = None
    #: options of the table [crawl] with a comment for each
    options: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    #: settings with a comment for each
    settings: Mapping[str, tuple[Any, str]] = field(default_factory=dict)


PROFILES = {
    "documentation": Profile(
        about="the pages of one documentation site",
        options={
            "out": ("pages.jsonl", "the file for the pages; it grows while the crawl runs"),
            "max_pages": (5000, "stop after this many pages"),
        },
    ),
    "organizations": Profile(
        about="one record for each of many organizations",
        schema="organization",
        options={"max_depth": (2, "follow links at most this many steps from the home page")},
        settings={
            "max_urls_per_host": (
                200,
                "at most this many URLs of one site, so that a large site does not take all the time",
            )
        },
    ),
    "news": Profile(
        about="articles with author and date",
        schema="article",
        options={
            "max_depth": (2, "follow links at most this many steps from the front page"),
            "max_pages": (5000, "stop after this many pages"),
        },
    ),
    "products": Profile(
        about="products with prices",
        schema="product",
        options={"max_pages": (5000, "stop after this many pages")},
    ),
}


def schema_of(columns: str, per: str = "page") -> dict[str, Any]:
    """The JSON Schema of `name, founded:integer, tags:list`; UsageError names a column that is wrong."""
    properties: dict[str, Any] = {}
    for text in filter(None, (part.strip() for part in columns.split(","))):
        found = _COLUMN.fullmatch(text)
        kind = "text" if found is None else found[2] or "text"
        if found is None or kind not in _TYPES:
            raise UsageError(
                f"Invalid column {text!r}. Write names in lower case, with a type if it is not text: founded:integer. "
                f"Types: {', '.join(_TYPES)}."
            )
        properties[found[1]] = dict(_TYPES[kind])
    if not properties:
        raise UsageError("Name at least one column, such as: name, founded:integer, email")
    return {"title": "columns", "type": "object", "properties": properties, "x-curtsy": {"per": per}}


def files_of(
    profile: Profile, sites: Sequence[str], contact: str, schema: Mapping[str, Any] | None = None
) -> dict[str, str]:
    """The files of a project, by name."""
    files = {
        "curtsy.toml": _toml(profile, contact, "schema.json" if schema is not None else profile.schema),
        "seeds.txt": "# The first URLs of the crawl, one per line.\n" + "".join(f"{site}\n" for site in sites),
        ".gitignore": "/.curtsy/\n/exports/\n/pages.*\n",
    }
    if schema is not None:
        files["schema.json"] = json.dumps(schema, indent=2) + "\n"
    return files


def _toml(profile: Profile, contact: str, schema: str | None) -> str:
    lines = [
        "# Settings of this project. docs/reference/settings.md describes all settings.",
        "",
        "# Where the owner of a site can reach you: an e-mail address, or a web page about the crawl.",
        f"contact = {_value(contact)}",
    ]
    for name, (value, about) in profile.settings.items():
        lines += ["", f"# {about[0].upper()}{about[1:]}.", f"{name} = {_value(value)}"]
    lines += [
        "",
        f"# Options of `curtsy crawl` in this folder. They give {profile.about}.",
        "[crawl]",
        'seeds = "seeds.txt"',
    ]
    if schema is not None:
        lines += [
            "# The values to extract: the name of a built-in schema, or your own file.",
            f"schema = {_value(schema)}",
        ]
    for name, (value, about) in profile.options.items():
        lines += [f"# {about[0].upper()}{about[1:]}.", f"{name} = {_value(value)}"]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """A JSON string or number is also TOML, except for DEL."""
    return json.dumps(value).replace("\x7f", "\\u007f")


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Write the files; UsageError if one of them exists already, or the folder is a file."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file. Use another folder.")
    taken = [name for name in files if (folder / name).exists() and name != ".gitignore"]
    if taken:
        raise UsageError(f"{folder} already has {' and '.join(taken)}. Use another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        if name != ".gitignore" or not (folder / name).exists():
            (folder / name).write_text(text, "utf-8")
