"""A FileText as bytes between two processes: a line of JSON, then the boxes. The reader does not trust the bytes."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from curtsy.content.documents.model import Boxes, FileText, Heading, Merged, Part, Table

_BOX_BYTES = 28
_ROWS = {"parts": Part, "headings": Heading}
_FIELDS = frozenset(field.name for field in fields(FileText))


def to_wire(read: FileText) -> bytes:
    values = {name: getattr(read, name) for name in _FIELDS if name != "boxes"}
    return json.dumps({**values, "boxes": len(read.boxes)}).encode() + b"\n" + read.boxes.to_bytes()


def box_bytes(line: bytes) -> int:
    """How many bytes follow the line."""
    return int(json.loads(line)["boxes"]) * _BOX_BYTES


def from_wire(line: bytes, packed: bytes) -> FileText:
    """ValueError, TypeError or KeyError if the bytes are not those of `to_wire`."""
    values: dict[str, Any] = json.loads(line)
    for name, shape in _ROWS.items():
        values[name] = tuple(shape(*row) for row in values[name])
    values["tables"] = tuple(map(_table, values["tables"]))
    values["page_sizes"] = tuple((float(width), float(height)) for width, height in values["page_sizes"])
    return FileText(**{**values, "links": tuple(values["links"]), "boxes": Boxes.from_bytes(packed)})


def _table(row: list[Any]) -> Table:
    start, end, header_rows, header_columns, merged = row
    return Table(start, end, header_rows, header_columns, tuple(Merged(*area) for area in merged))
