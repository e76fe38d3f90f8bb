"""What --help shows: short, grouped, and readable at 80 columns."""

from __future__ import annotations

import subprocess
import sys

import pytest

from curtsy.cli.commands import PANELS


def shown(*words: str) -> list[str]:
    run = subprocess.run(
        [sys.executable, "-m", "curtsy.cli", *words, "--help"], text=True, capture_output=True, check=True,
        env={"COLUMNS": "80", "PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    return run.stdout.splitlines()


def test_help_of_crawl_fits_two_screens_and_groups_its_options() -> None:
    lines = shown("crawl")
    assert len(lines) <= 80
    assert [line.rstrip(":") for line in lines if line.rstrip(":") in PANELS] == list(PANELS)
    assert not [line for line in lines if "<=" in line or "<bool>" in line], "no ranges, no type of a flag"
    assert any(line.startswith("  --scope") and "[default:" in " ".join(lines) for line in lines)


@pytest.mark.parametrize("words", [("crawl",), ("submit",), ("schedules", "add"), ("export",), ("records",), ("up",)])
def test_nothing_is_wrapped_to_a_narrow_column(words: tuple[str, ...]) -> None:
    lines = shown(*words)
    assert all(len(line) <= 80 for line in lines)
    # A description begins in column 45 at the latest, so it has at least 35 characters.
    assert all(len(line) - len(line.lstrip()) <= 45 for line in lines)


def test_the_overview_lists_a_command_per_line() -> None:
    lines = shown()
    assert len(lines) <= 40
    assert not [line for line in lines if line.startswith("  ") and line.endswith("...")], "summaries are not cut"
