"""Whatever a page holds, reading it takes time in proportion to its size: every pattern, and every reader.

The patterns are found, not listed: all that the package's modules hold when they are imported. With which methods one
is used is read from the source of its module; where that cannot be told, it is tried with all of them.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from adversary import inputs, is_steep

import curtsy

#: no page, header or answer of a site reaches them: the operator's own words, the test web, programs beside
_ELSEWHERE = (
    "curtsy.tinyweb", "curtsy.cli", "curtsy.airflow", "curtsy.scrapy", "curtsy.__main__", "curtsy.core.settings",
    "curtsy.store.migrations", "curtsy.services.local_model_server", "curtsy.web.client_generator",
)  # fmt: skip
_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "sub", "split")


def _modules() -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(curtsy.__path__, "curtsy."):
        if not found.name.startswith(_ELSEWHERE):
            try:
                yield importlib.import_module(found.name)
            except ImportError:  # of an extra that is not installed
                continue


def _held(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict) and depth < 4:
        for inner in (*value.keys(), *value.values()):
            yield from _held(inner, depth + 1)
    elif isinstance(value, list | tuple | set | frozenset) and depth < 4:
        for inner in value:
            yield from _held(inner, depth + 1)


def _uses(tree: ast.Module, name: str) -> frozenset[str]:
    """The methods of a pattern that its module calls; all, if it is also used in another way."""
    found: set[str] = set()
    plain = used = 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            found.add(node.attr)
            plain += 1
        if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load):
            used += 1
    return frozenset(found & set(_METHODS)) if plain == used and found else frozenset(_METHODS)


def _patterns() -> dict[str, tuple[re.Pattern[Any], frozenset[str]]]:
    found: dict[re.Pattern[Any], tuple[str, set[str]]] = {}
    for module in _modules():
        tree = ast.parse(Path(module.__file__ or "").read_text())
        for name, value in vars(module).items():
            for pattern in _held(value):
                # A container's patterns, and those that another module imports, are used in ways not seen here.
                is_own = isinstance(value, re.Pattern)
                methods = _uses(tree, name) if is_own else frozenset(_METHODS)
                known = found.setdefault(pattern, (f"{module.__name__}.{name}", set()))
                known[1].update(methods)
        for literal in _inline(tree):
            found.setdefault(literal[0], (f"{module.__name__}:{literal[2]}", set()))[1].add(literal[1])
    return {
        f"{name} {pattern.pattern!r:.60}": (pattern, frozenset(methods)) for pattern, (name, methods) in found.items()
    }


def _inline(tree: ast.Module) -> Iterator[tuple[re.Pattern[Any], str, int]]:
    """`re.sub(r"...", ...)` with a pattern that stands there."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "re"
            and node.func.attr in _METHODS
            and node.args
            and isinstance(node.args[0], ast.Constant)
        ):
            yield re.compile(node.args[0].value), node.func.attr, node.lineno


PATTERNS = _patterns()


def _run(pattern: re.Pattern[Any], method: str, text: Any) -> Callable[[], object]:
    if method == "finditer":
        return lambda: sum(1 for _ in pattern.finditer(text))
    if method == "sub":
        return lambda: pattern.sub(text[:0], text)
    return lambda: getattr(pattern, method)(text)


def test_the_patterns_are_found() -> None:
    names = " ".join(PATTERNS)
    assert len(PATTERNS) > 100
    for one in ("charset._USUAL_START", "links._TEXT_URL", "ground_dates.", "extract.chunks.", "robots._LINE_END"):
        assert f"curtsy.{one}" in names


@pytest.mark.parametrize("name", PATTERNS)
def test_a_pattern_takes_time_in_proportion_to_its_input(name: str) -> None:
    pattern, methods = PATTERNS[name]
    # What searches finds all that the others do: one pass over the input tells as much as three.
    tried = methods - {"findall", "sub", "split"} | ({"finditer"} if methods & {"findall", "sub", "split"} else set())
    if "finditer" in tried:
        tried -= {"search"}
    steep = []
    for make in inputs(pattern):
        for method in sorted(tried):

            def work(size: int, make: Any = make, method: str = method) -> Callable[[], object]:
                text = make(size)
                given = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
                return _run(pattern, method, given)

            if (said := is_steep(work, 1 << 13)) is not None:
                steep.append(f"{method} of {make(40)!r}: {said}")
                break
        if len(steep) == 3:
            break
    assert not steep, "\n".join(steep)
