"""Folders that the judge uses, and the form of its tables."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: what the judge downloads
CACHE = ROOT / ".venv-judge" / "cache"

sys.path[:0] = [str(ROOT / "tests" / name) for name in ("golden", "support")]


def rule(head: str) -> str:
    """The line under the head of a table."""
    return "|" + " --- |" * (head.count("|") - 1)
