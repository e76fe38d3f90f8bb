"""What --help shows: short, grouped, and readable at 80 columns."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from typer import Context

from curtsy.cli.app import app
from curtsy.cli.commands import PANELS, LazyCommand
from curtsy.core.settings import Settings


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


def test_help_of_a_change_names_no_defaults_of_a_new_crawl() -> None:
    added, changed = "\n".join(shown("schedules", "add")), "\n".join(shown("schedules", "edit"))
    assert "--per-host" in changed
    assert "[default: no limit]" in added
    assert "[default:" not in changed.partition("Storage:")[0]


@pytest.mark.parametrize("words", [("crawl",), ("submit",), ("schedules", "add"), ("export",), ("records",), ("up",)])
def test_nothing_is_wrapped_to_a_narrow_column(words: tuple[str, ...]) -> None:
    lines = shown(*words)
    assert all(len(line) <= 80 for line in lines)
    # A description begins in column 45 at the latest, so it has at least 35 characters.
    assert all(len(line) - len(line.lstrip()) <= 45 for line in lines)


def test_the_overview_lists_a_command_per_line() -> None:
    lines = shown()
    assert len(lines) <= 45
    assert not [line for line in lines if line.startswith("  ") and line.endswith("...")], "summaries are not cut"


def helps(command: Any, name: str) -> Iterator[tuple[str, str]]:
    command = command.load() if isinstance(command, LazyCommand) else command
    yield name, command.get_help(Context(command, info_name=name, terminal_width=80, max_content_width=80))
    for sub in getattr(command, "commands", {}).values():
        yield from helps(sub, f"{name} {sub.name}")


def test_no_help_shows_a_type_an_empty_default_or_a_cut_summary() -> None:
    shown_to_users = [
        one for command in app.commands.values() if not command.hidden for one in helps(command, "curtsy")
    ]
    assert len(shown_to_users) > 40
    for name, text in shown_to_users:
        assert "range>" not in text, name
        assert "[default: ]" not in text, name
        assert not [line for line in text.partition("Commands:")[2].splitlines() if line.endswith("...")], name


def test_an_option_that_stands_for_a_setting_shows_its_default() -> None:
    settings = Settings.model_fields
    shown_of = {
        ("serve", "--host"): settings["api_host"].default,
        ("serve", "--port"): settings["api_port"].default,
        ("serve", "--processes"): settings["api_processes"].default,
        ("serve", "--threads"): settings["api_threads"].default,
        ("up", "--host"): settings["api_host"].default,
        ("up", "--port"): settings["api_port"].default,
        ("up", "--processes"): settings["api_processes"].default,
        ("crawl", "--delay"): f"{settings['delay_s'].default:g}",
        ("crawl", "--per-host"): settings["per_host"].default,
        ("crawl", "--llm"): "from settings",
        ("extract", "--llm"): "that of the crawl",
        ("demo", "--out"): "out/pages.jsonl",
    }
    for (command, option), default in shown_of.items():
        text = next(text for name, text in helps(app.commands[command], command) if name == command)
        row = text.partition(f"\n  {option} ")[2].partition("\n\n")[0].partition("\n  -")[0]
        assert " ".join(row.split()).endswith(f"[default: {default}]"), (command, option)
    assert any(line.endswith("pages per organization (default: 30)") for line in shown("tinyweb"))
