"""Records as flat tables, by their schema. Pure: no store, no files.

records               one row per record: facts about the record, then a column per value, `contact.email`
records_<list>        one row per item of a list; with lists as JSON, the list is a column instead
evidence              one row per quote of a value; a value without a quote has one row too
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from curtsy.core.record import Record
from curtsy.core.text_layout import Part
from curtsy.export.tables import iso, json_text
from curtsy.grounding import field_confidence, json_pointer
from curtsy.grounding.schema import Leaf, Schema

Row = dict[str, Any]

#: of every record, before its values
ABOUT = {
    "record": "int64!",
    "record_url": "string!",
    "record_kind": "string!",
    "record_confidence": "double",
    "record_low_confidence": "bool!",
    "record_contradicted": "json!",
    "record_score": "double",
    "record_created": "timestamp!",
    "record_reviewed": "timestamp",
}
#: of every item of a list
ITEM = {"record": "int64!", "item": "int32!"}
EVIDENCE = {
    "record": "int64!",
    "field": "string!",
    "value": "string!",
    "verdict": "string!",
    "found_by": "string!",
    "confidence": "double",
    "quote": "string",
    "url": "string",
    "page": "string",
    "document_page": "int32",
    "part": "string",
    "source": "string",
    "locator": "string",
    "labels": "string",
    "visibility": "string",
    "start": "int64",
    "end": "int64",
    "note": "string",
}
_KINDS = {"string": "string", "date": "string", "integer": "int64", "number": "double", "boolean": "bool"}


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    kind: str
    #: where the value is: in the record, or in the item of the list
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ListTable:
    """The items of one list of the schema."""

    name: str
    keys: tuple[str, ...]
    columns: tuple[Column, ...]

    @property
    def kinds(self) -> dict[str, str]:
        return ITEM | {column.name: column.kind for column in self.columns}

    def rows(self, record: Record) -> Iterator[Row]:
        found = value_at(record.data, self.keys)
        for number, item in enumerate(found if isinstance(found, list) else ()):
            values = {column.name: value_at(item, column.keys) for column in self.columns}
            yield {"record": record.n, "item": number} | values


@dataclass(frozen=True, slots=True)
class Layout:
    """The tables of a schema."""

    columns: tuple[Column, ...]
    lists: tuple[ListTable, ...]

    @property
    def kinds(self) -> dict[str, str]:
        return ABOUT | {column.name: column.kind for column in self.columns}

    def row(self, record: Record) -> Row:
        return about(record) | {column.name: value_at(record.data, column.keys) for column in self.columns}


def layout_of(schema: Schema, lists_as_json: bool = False) -> Layout:
    """Return the tables of a schema: a list is a table of its own, or a column with JSON."""
    plain = [leaf for leaf in schema.leaves if not leaf.many]
    lists: dict[str, list[Leaf]] = {}
    for leaf in schema.leaves:
        if leaf.many:
            lists.setdefault(leaf.path.partition("/*")[0], []).append(leaf)
    columns = [(tuple(json_pointer.keys(leaf.path)), _kind(leaf)) for leaf in plain]
    if lists_as_json:
        columns += [(tuple(json_pointer.keys(path)), "json") for path in lists]
        return Layout(_named(columns, ABOUT), ())
    tables = tuple(_list_table(path, leaves) for path, leaves in lists.items())
    return Layout(_named(columns, ABOUT), tables)


def _list_table(path: str, leaves: Sequence[Leaf]) -> ListTable:
    columns: dict[tuple[str, ...], str] = {}
    for leaf in leaves:
        inner = leaf.path[len(path) + len("/*") :]
        nested = "/*" in inner
        keys = tuple(json_pointer.keys(inner.partition("/*")[0]))
        columns[keys] = "json" if nested else _kind(leaf)
    keys = tuple(json_pointer.keys(path))
    return ListTable("records_" + "_".join(keys), keys, _named(list(columns.items()), ITEM))


def _named(columns: Sequence[tuple[tuple[str, ...], str]], taken: dict[str, str]) -> tuple[Column, ...]:
    """Columns with dotted names, each different also without regard to case: databases want that."""
    used = {name.lower() for name in taken}
    made = []
    for keys, kind in columns:
        name = ".".join(keys) or "value"
        while name.lower() in used:
            name += "_"
        used.add(name.lower())
        made.append(Column(name, kind, keys))
    return tuple(made)


def _kind(leaf: Leaf) -> str:
    if leaf.type != "enum":
        return _KINDS[leaf.type]
    return "string" if all(isinstance(one, str) for one in leaf.enum) else "json"


def value_at(data: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def about(record: Record) -> Row:
    """The columns of every record."""
    return {
        "record": record.n,
        "record_url": record.url,
        "record_kind": record.kind,
        "record_confidence": record.confidence.get("share"),
        "record_low_confidence": record.low_confidence,
        "record_contradicted": [dotted(path) for path in record.contradicted],
        "record_score": record.scores.get("total"),
        "record_created": iso(record.created_ms),
        "record_reviewed": iso(record.reviewed_ms),
    }


def evidence(record: Record) -> Iterator[Row]:
    """Published values only: what is withheld never leaves the store."""
    for field in record.fields:
        told = {
            "record": record.n, "field": dotted(field["path"]), "value": _text(field["value"]),
            "verdict": field["verdict"], "found_by": field["rung"], "note": field.get("note") or None,
            "confidence": field_confidence.of_field(field["rung"], field["verdict"], field.get("evidence") or ()),
        }  # fmt: skip
        quotes: list[Row] = field.get("evidence") or [{}]
        for quote in quotes:
            yield dict.fromkeys(EVIDENCE) | told | _place(quote)


def _place(quote: Row) -> Row:
    part = None if quote.get("part") is None else Part(**quote["part"])
    names = ("quote", "url", "page", "source", "locator", "start", "end")
    labels = " | ".join(" ".join(one["text"].split()) for one in quote.get("labels", ()))
    found = {name: quote.get(name) for name in names}
    return found | {
        "locator": quote.get("locator") or None,
        "labels": labels or None,
        "visibility": quote.get("visibility", "visible") if quote else None,
        "document_page": part.number if part is not None and part.kind == "page" else None,
        "part": None if part is None else str(part),
    }


def dotted(path: str) -> str:
    """`/contact/email` as `contact.email`, `/claims/0/text` as `claims[0].text`."""
    name = ""
    for key in json_pointer.keys(path):
        name += f"[{key}]" if key.isascii() and key.isdigit() else f".{key}" if name else key
    return name


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)
