"""What Curtsy must reach: tests/golden/floors.toml. Floors only rise."""

from __future__ import annotations

import math
import re
import tomllib
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "golden" / "floors.toml"
#: how far a number may be below its floor, except F1 and accuracy of all pages (tests/golden/test_main_content.py)
_SLACK = 0.02
_STRICT = ("main_content.total.f1", "main_content.total.accuracy", "structured.whole")


def compare(measured: dict[str, dict[str, float]], raise_floors: bool) -> list[str]:
    """Say which floors are not reached and which are beaten; raise the beaten ones if asked."""
    text = FILE.read_text("utf-8")
    known = tomllib.loads(text)
    lines = [""]
    for table, values in measured.items():
        floors = _table(known, table)
        for name, found in values.items():
            value = math.floor(found * 1000) / 1000
            if value > floors[name]:
                lines.append(f"- beaten  {table}.{name}: {found:.4f} (floor {floors[name]})")
                text = raised(text, table, name, value)
            elif found < floors[name] - (0 if f"{table}.{name}" in _STRICT else _SLACK):
                lines.append(f"- FELL    {table}.{name}: {found:.4f} (floor {floors[name]})")
    if raise_floors:
        FILE.write_text(text, "utf-8")
    return lines


def _table(known: dict[str, Any], name: str) -> dict[str, float]:
    for part in name.split("."):
        known = known[part]
    return known


def raised(text: str, table: str, name: str, value: float) -> str:
    """Return the file with one number of one table replaced."""
    start = text.index(f"[{table}]")
    end = text.find("\n[", start)
    end = len(text) if end < 0 else end
    part = re.sub(rf"(?m)^{re.escape(name)} = .*$", f"{name} = {value}", text[start:end])
    return text[:start] + part + text[end:]
