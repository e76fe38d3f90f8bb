"""Folders that the judge uses, and the form of its tables."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[2]
#: what the judge downloads
CACHE = ROOT / ".venv-judge" / "cache"


def rule(head: str) -> str:
    """The line under the head of a table."""
    return "|" + " --- |" * (head.count("|") - 1)
