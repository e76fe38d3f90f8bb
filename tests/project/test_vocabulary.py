"""Phrases that readers must read twice do not occur in the documentation, the help texts or the messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from curtsy.cli.app import app

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "curtsy"

#: text of the synthetic sites, not text for readers of this project
CONTENT = ("tinyweb/pages.py", "tinyweb/words.py", "tinyweb/facts.py", "tinyweb/faults/", "grounding/vocabulary.py",
           "extract/chunks.py")  # fmt: skip
_LINES = (ROOT / "tests" / "project" / "banned_phrases.txt").read_text("utf-8").splitlines()
BANNED = [line for line in _LINES if line and not line.startswith("#")]
_PATTERN = re.compile(r"(?<![\w/.-])(?:" + "|".join(BANNED) + r")(?![\w/-])", re.IGNORECASE)
#: what is not prose: code blocks, inline code, link targets
_NOT_PROSE = re.compile(r"```.*?```|^(?: {4}|\t|## curtsy ).*?$|`[^`]*`|\]\([^)]*\)", re.DOTALL | re.MULTILINE)


def found(text: str) -> list[str]:
    return sorted({match[0].lower() for match in _PATTERN.finditer(text)})


def documents() -> Iterator[Path]:
    yield ROOT / "README.md"
    yield ROOT / "CONTRIBUTING.md"
    yield ROOT / "CHANGELOG.md"
    yield from sorted(path for path in (ROOT / "docs").rglob("*.md") if "decisions" not in path.parts)


@pytest.mark.parametrize("path", list(documents()), ids=lambda path: str(path.relative_to(ROOT)))
def test_the_documentation_is_free_of_banned_phrases(path: Path) -> None:
    assert found(_NOT_PROSE.sub(" ", path.read_text("utf-8"))) == []


def helps(command: Any, name: str = "curtsy") -> Iterator[tuple[str, str]]:
    command = command.load() if hasattr(command, "load") else command
    yield name, command.help or ""
    for parameter in command.params:
        yield f"{name} {parameter.name}", getattr(parameter, "help", None) or ""
    for sub in getattr(command, "commands", {}).values():
        yield from helps(sub, f"{name} {sub.name}")


def test_the_help_texts_are_free_of_banned_phrases() -> None:
    assert {name: said for name, text in helps(app) if (said := found(text))} == {}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """String literals of a module that hold more than one word: messages, help texts and docstrings."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            if node.value.lstrip().startswith(("SELECT ", "INSERT ", "UPDATE ", "DELETE ", "WITH ")):
                continue  # SQL
            yield node.lineno, re.sub(r"`[^`]*`|\{[^}]*\}(?::\w+)?", " ", node.value)


@pytest.mark.parametrize("folder", sorted({path.name for path in SOURCE.iterdir() if path.is_dir()} - {"__pycache__"}))
def test_messages_and_docstrings_are_free_of_banned_phrases(folder: str) -> None:
    said = {
        f"{path.relative_to(SOURCE)}:{line}": phrases
        for path in sorted((SOURCE / folder).rglob("*.py"))
        if not str(path.relative_to(SOURCE)).startswith(CONTENT)
        for line, text in texts(path)
        if (phrases := found(text))
    }
    assert said == {}


@pytest.mark.parametrize("path", sorted((SOURCE / "web" / "templates").rglob("*.html")), ids=lambda path: path.name)
def test_the_dashboard_is_free_of_banned_phrases(path: Path) -> None:
    text = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<[^>]*>", " ", path.read_text("utf-8"), flags=re.DOTALL)
    assert found(text) == []
