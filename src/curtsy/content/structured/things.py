"""Things with types and properties, as microdata, RDFa and microformats describe them, and their form as data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

MAX_ITEMS = 1_000
_MAX_NAMES = 16
_MAX_VALUES = 20_000
_MAX_DEPTH = 24


@dataclass(slots=True, eq=False)
class Thing:
    """An item of a page."""

    types: list[str] = field(default_factory=list)
    #: its URL
    id: str | None = None
    #: of its property names, if that is not schema.org
    vocabulary: str | None = None
    properties: dict[str, list[Any]] = field(default_factory=dict)
    #: of an item without properties
    value: str | None = None
    #: items in it that are not the value of a property
    children: list[Thing] = field(default_factory=list)

    def add(self, names: Iterable[str], value: Any) -> None:
        """Add a value of properties; None is no value."""
        if value is not None:
            for name in list(names)[:_MAX_NAMES]:
                self.properties.setdefault(name, []).append(value)


def as_data(things: Iterable[Thing]) -> list[dict[str, Any]]:
    """Return the things as JSON-like data: {"type", "id", "properties", "value", "children"}, as far as they are known.

    A thing that is the value of two properties is in both. Where a thing would contain itself, it is left out.
    """
    writer = _Writer()
    return [found for thing in list(things)[:MAX_ITEMS] if (found := writer.thing(thing)) is not None]


class _Writer:
    def __init__(self) -> None:
        self._left = _MAX_VALUES
        self._open: set[int] = set()

    def thing(self, thing: Thing) -> dict[str, Any] | None:
        """Return None for a thing of which nothing can be said here."""
        if id(thing) in self._open or len(self._open) >= _MAX_DEPTH or self._left <= 0:
            return None
        self._open.add(id(thing))
        found: dict[str, Any] = {}
        if thing.types:
            found["type"] = thing.types[0] if len(thing.types) == 1 else thing.types
        if thing.id:
            found["id"] = thing.id
        if thing.vocabulary:
            found["vocab"] = thing.vocabulary
        self._contents(thing, found)
        self._open.discard(id(thing))
        return found

    def _contents(self, thing: Thing, found: dict[str, Any]) -> None:
        if thing.value is not None and not thing.properties:
            found["value"] = thing.value
        else:
            properties = {name: self._values(values) for name, values in thing.properties.items()}
            found["properties"] = {
                name: values[0] if len(values) == 1 else values for name, values in properties.items() if values
            }
        if children := self._values(thing.children):
            found["children"] = children

    def _values(self, values: Iterable[Any]) -> list[Any]:
        found: list[Any] = []
        for value in values:
            self._left -= 1
            if self._left <= 0:
                break
            written = self._written(value) if isinstance(value, Thing) else value
            if written is not None:
                found.append(written)
        return found

    def _written(self, thing: Thing) -> Any:
        if thing.types or thing.properties or thing.children or thing.value is not None:
            return self.thing(thing)
        return None if thing.id is None or thing.id.startswith("_:") else thing.id
