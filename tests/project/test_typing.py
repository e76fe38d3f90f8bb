"""Programs that use the public API are checked against its types."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
from collections.abc import Iterator

import curtsy.api as curtsy

crawling: curtsy.Crawling = curtsy.crawl("https://example.com/", max_pages=3)
stored: Iterator[curtsy.Page] = curtsy.pages("last")
titles: list[str | None] = [page.title for page in stored]
server = curtsy.connect("http://127.0.0.1:8080")
state: str = server.crawl("last")["state"]
"""
WRONG = ('curtsy.crawl("https://example.com/", max_pages="three")', "curtsy.pages(3)")


def mypy(folder: Path, program: str) -> str:
    (folder / "program.py").write_text(program)
    words = ["-m", "mypy", "--strict", "--no-incremental", "--python-executable", sys.executable, "program.py"]
    return subprocess.run([sys.executable, *words], cwd=folder, capture_output=True, text=True, check=False).stdout


def test_the_package_says_that_it_has_types() -> None:
    assert (Path(__file__).parents[2] / "src" / "curtsy" / "py.typed").is_file()


@pytest.mark.timeout(300)
def test_mypy_sees_the_types_of_the_public_api(tmp_path: Path) -> None:
    program = PROGRAM + "\n".join(WRONG) + "\n"
    said = mypy(tmp_path, program)
    first = len(PROGRAM.splitlines()) + 1
    errors = [int(line.split(":")[1]) for line in said.splitlines() if " error: " in line]
    assert errors == [*range(first, first + len(WRONG))], said
