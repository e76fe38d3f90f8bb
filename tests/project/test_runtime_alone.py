"""Crawling needs the package's own dependencies and nothing else: `make crawl` installs no extras and no tools."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from curtsy.tinyweb import TinyWeb

ROOT = Path(__file__).parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
#: Python imports it at its start, in child processes too
HIDE = """
import importlib.machinery, sys

HIDDEN = {hidden!r}

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in HIDDEN else super().find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(importlib.machinery.PathFinder)] = Finder
"""


def dependencies() -> set[str]:
    """What `pip install curtsy` installs beside it."""
    # Not the metadata of the installed package: an editable install does not follow changes of this file.
    own = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["dependencies"]
    found: dict[tuple[str, str], None] = {}
    waiting = [("curtsy", "")]
    while waiting:
        name, extra = waiting.pop()
        for wanted in map(Requirement, own if name == "curtsy" else metadata.requires(name) or ()):
            if wanted.marker is None or wanted.marker.evaluate({"extra": extra}):
                new = {(canonicalize_name(wanted.name), each) for each in ("", *wanted.extras)} - found.keys()
                found |= dict.fromkeys(new)
                waiting += new
    return {name for name, _ in found}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CrawlFolder]:
    """Where commands find no module of an extra or a tool."""
    needed = dependencies() | {"curtsy"}
    hidden = {
        module
        for module, owners in metadata.packages_distributions().items()
        if not needed & {canonicalize_name(owner) for owner in owners}
    }
    assert {"openai", "playwright", "psycopg", "pyarrow", "pytest"} <= hidden
    assert not {"curtsy", "lxml", "pydantic"} & hidden
    (tmp_path / "hide").mkdir()
    (tmp_path / "hide" / "sitecustomize.py").write_text(HIDE.format(hidden=hidden))
    with TinyWeb.start(hosts=1, pages=8, faults=False) as web:
        monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'hide'}:{ROOT / 'src'}")
        made = CrawlFolder(tmp_path, web)
        yield made
        made.close()


def test_a_crawl_makes_pages_and_records_without_extras_and_tools(folder: CrawlFolder) -> None:
    words = ("crawl", "http://org-0000.tinyweb.test/", "--delay", "0.02", "--out", "pages.jsonl")
    told = folder.run(*words, "--schema", "organization", "--rubric", "esg")
    assert told["pages"] >= 8
    assert told["records"] == {"published": 1}


@pytest.mark.usefixtures("folder")
def test_the_parts_of_a_fleet_start_without_extras_and_tools() -> None:
    modules = "curtsy.fleet.celery_app, curtsy.fleet.beat, curtsy.fleet.worker_process, curtsy.web.factory"
    ran = subprocess.run([sys.executable, "-c", f"import {modules}"], text=True, capture_output=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_what_needs_an_extra_names_it(folder: CrawlFolder) -> None:
    process = folder.start("crawl", "http://org-0000.tinyweb.test/", "--out", "pages.parquet")
    _, said = process.communicate(timeout=60)
    assert process.returncode != 0
    assert "curtsy[parquet]" in said


@pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="constraints.txt is made with Python 3.11")
def test_everything_that_a_crawl_needs_is_pinned_by_name_and_version_alone() -> None:
    lines = CONSTRAINTS.read_text("utf-8").splitlines()
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines}
    assert dependencies() - pinned == set()
