"""A setting, command or option that is not documented fails here."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curtsy.cli.app import app
from curtsy.cli.commands import LazyCommand
from curtsy.core.settings import HostRule, Settings

DOCS = Path(__file__).parents[2] / "docs"
#: documented once, at the top of docs/reference/commands.md
SHARED = {"--config", "--data-dir", "--json", "--api", "--help", "-h", "--version"}


def commands() -> Iterator[tuple[str, Any]]:
    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(command, LazyCommand):
            if not command.hidden:
                yield from walk(name, command.load())
        elif hasattr(command, "commands"):
            for sub in command.commands.values():
                yield from walk(f"{name} {sub.name}", sub)
        elif not command.hidden:
            yield name, command

    yield from walk("curtsy", app)


def section(name: str) -> str:
    """The part of docs/reference/commands.md under the command's heading."""
    text = (DOCS / "reference" / "commands.md").read_text("utf-8")
    found = re.search(rf"^## {re.escape(name)}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference/commands.md has no section '## {name}'"
    return found[1]


@pytest.mark.parametrize("name", [*Settings.model_fields, *HostRule.model_fields])
def test_every_setting_is_documented(name: str) -> None:
    assert f"`{name}`" in (DOCS / "reference" / "settings.md").read_text("utf-8")


def test_every_documented_setting_exists() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", (DOCS / "reference" / "settings.md").read_text("utf-8"), re.MULTILINE)
    assert set(documented) == set(Settings.model_fields)


@pytest.mark.parametrize(
    ("name", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_command_and_option_is_documented(name: str, command: Any) -> None:
    text = section(name)
    for parameter in command.params:
        for option in (*parameter.opts, *parameter.secondary_opts):
            if option.startswith("-") and option not in SHARED:
                assert f"`{option}" in text, f"{name} {option} is missing in docs/reference/commands.md"
    assert command.help, f"{name} does not say what it does"


def test_the_table_of_commands_says_what_their_own_help_says() -> None:
    for command in app.commands.values():
        loaded = command.load()
        assert (loaded.help or "").partition("\n")[0] == command.help or command.hidden, command.name


def test_every_documented_command_exists() -> None:
    documented = re.findall(r"^## (curtsy .+)$", (DOCS / "reference" / "commands.md").read_text("utf-8"), re.MULTILINE)
    assert documented
    assert set(documented) == {name for name, _ in commands()}


def test_every_shared_option_is_documented() -> None:
    head = (DOCS / "reference" / "commands.md").read_text("utf-8").partition("\n## ")[0]
    assert all(f"`{option}" in head for option in SHARED)


@pytest.mark.parametrize("code", ["0", "1", "2", "3", "4", "70"])
def test_every_exit_code_is_documented(code: str) -> None:
    assert re.search(rf"\b{code} [a-z]", (DOCS / "reference" / "commands.md").read_text("utf-8"))
