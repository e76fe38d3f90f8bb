"""The examples in docs/how-to/airflow.md need nothing but what its install line installs."""

from __future__ import annotations

import ast
import builtins
import re
import sys
import tomllib
from importlib.metadata import requires
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "how-to" / "airflow.md").read_text("utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
#: modules of a package that Curtsy requires, and the part of the install line that brings each of the others
BROUGHT = {"curtsy": "", "airflow": "airflow", "pyarrow": "parquet", "psycopg": "postgres"}


def extras() -> set[str]:
    (line,) = re.findall(r"pip install 'curtsy\[(.*?)\]'", PAGE)
    known = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    assert set(line.split(",")) <= set(known)
    return set(line.split(","))


@pytest.mark.parametrize("block", BLOCKS)
def test_an_example_imports_what_it_uses(block: str) -> None:
    tree = ast.parse(block)
    imported = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
    made = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    made |= {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    used = {node.id for node in names if isinstance(node.ctx, ast.Load)}
    assert used - made - imported - set(dir(builtins)) == set()


@pytest.mark.parametrize("block", BLOCKS)
def test_the_install_line_brings_what_an_example_needs(block: str) -> None:
    modules = {
        (node.module or "").partition(".")[0] if isinstance(node, ast.ImportFrom) else node.names[0].name
        for node in ast.walk(ast.parse(block))
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    # tldextract, which Curtsy requires, requires it.
    assert any(one.startswith("requests>") for one in requires("tldextract") or ())
    assert modules - set(sys.stdlib_module_names) <= {*BROUGHT, "requests"}
    needed = {BROUGHT.get(module, "") for module in modules} | ({"parquet"} if ".parquet" in block else set())
    assert needed - {""} <= extras()


def test_the_database_of_a_fleet_can_be_reached() -> None:
    assert "`store_url`" in PAGE
    assert "postgres" in extras()
