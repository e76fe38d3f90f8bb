"""Phrases that readers must read twice do not occur in the documentation, help texts, messages or comments."""

from __future__ import annotations

import ast
import io
import re
import tokenize
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
#: suffix or name of a file -> how its comments begin
COMMENT_MARKS = dict.fromkeys(
    (".toml", ".yaml", ".yml", ".service", ".target", ".sh", ".example", "Dockerfile", ".render", ".dockerignore"),
    r"(?:^|\s)#",
) | {
    ".lua": "--",
    ".sql": "--",
}
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
    yield from sorted((ROOT / "docs").rglob("*.md"))


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


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """The comments of a file: of a Python module by its tokens, of other files by the mark of their language."""
    text = path.read_text("utf-8")
    if path.suffix == ".py":
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        found = [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]
    else:
        mark = re.compile(COMMENT_MARKS[path.suffix or path.name] + ".*")
        lines = enumerate(text.splitlines(), 1)
        found = [(number, match[0]) for number, line in lines if (match := mark.search(line))]
    for number, comment in found:
        yield number, re.sub(r"`[^`]*`", " ", comment)


def with_comments() -> Iterator[Path]:
    for folder in (SOURCE, ROOT / "deploy"):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and (path.suffix == ".py" or (path.suffix or path.name) in COMMENT_MARKS):
                yield path


def test_comments_are_free_of_banned_phrases() -> None:
    paths = list(with_comments())
    assert {".py", ".lua", ".toml", ".yaml", ".service"} <= {path.suffix for path in paths}
    said = {
        f"{path.relative_to(ROOT)}:{line}": phrases
        for path in paths
        for line, comment in comments(path)
        if (phrases := found(comment))
    }
    assert said == {}


def test_a_banned_phrase_in_a_comment_is_found(tmp_path: Path) -> None:
    for name, text in (("a.py", "x = 1  # whoever\n"), ("a.lua", "local x -- whoever\n"), ("a.sql", "-- whoever\n")):
        (tmp_path / name).write_text(text)
        assert [found(comment) for _, comment in comments(tmp_path / name)] == [["whoever"]]
    (tmp_path / "b.py").write_text("x = 'whoever'  # `whoever`\n")
    assert [found(comment) for _, comment in comments(tmp_path / "b.py")] == [[]]


@pytest.mark.parametrize("path", sorted((SOURCE / "web" / "templates").rglob("*.html")), ids=lambda path: path.name)
def test_the_dashboard_is_free_of_banned_phrases(path: Path) -> None:
    text = re.sub(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}|<[^>]*>", " ", path.read_text("utf-8"), flags=re.DOTALL)
    assert found(text) == []
