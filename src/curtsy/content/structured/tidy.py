"""Limits on the size and depth of structured data."""

from __future__ import annotations

import math
from typing import Any

#: deeper or later values are omitted
_MAX_DEPTH = 24
_MAX_NODES = 20_000
_MAX_TEXT = 20_000
_MAX_KEY = 2_000


def tidy(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the same within bounds, and without numbers that JSON does not have."""
    return _Tidier().list(found, 0)


class _Tidier:
    def __init__(self) -> None:
        self._nodes = 0

    def list(self, values: list[Any], depth: int) -> list[Any]:
        return [self._value(one, depth + 1) for one in values if self._has_room(one, depth)]

    def _value(self, value: Any, depth: int) -> Any:
        if isinstance(value, dict):
            return {
                str(key)[:_MAX_KEY]: self._value(inner, depth + 1)
                for key, inner in value.items()
                if self._has_room(inner, depth)
            }
        if isinstance(value, list):
            return self.list(value, depth)
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, str):
            return value[:_MAX_TEXT].encode("utf-8", "replace").decode()
        return value if value is None or isinstance(value, bool) or abs(value) < 1 << 63 else None

    def _has_room(self, inner: Any, depth: int) -> bool:
        self._nodes += 1
        return self._nodes <= _MAX_NODES and not (depth >= _MAX_DEPTH and isinstance(inner, dict | list))
