"""The structured data of the golden pages: Curtsy beside extruct and mf2py."""

from __future__ import annotations

import json
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structured_pages
from structured_pages import URL, Page, leaves

from tests.judge import floors, places

_SCRIPT = Path(__file__).parent / "peers_structured.py"
#: what a library reads of a page, and the CPU seconds of it
Read = dict[str, tuple[Any, float]]


def judge(python: Path | None, show_worst: int, raise_floors: bool) -> list[str]:
    pages = structured_pages.pages()
    mine = {page.name: _timed(lambda page=page: structured_pages.found(page.body)) for page in pages}
    readers: dict[str, Read] = {"Curtsy": mine, **(_peers(python) if python else {})}
    whole = sum(mine[page.name][0] == page.expected for page in pages) / len(pages)
    head = "| values found | " + " | ".join(readers) + " |"
    kinds = list(structured_pages.KINDS)
    rows = [
        f"| {kind} | " + " | ".join(_share(_found(pages, read, kind)) for read in readers.values()) + " |"
        for kind in kinds
    ]
    cpu = " | ".join(f"{1000 * sum(s for _, s in read.values()) / len(pages):.2f}" for read in readers.values())
    return [
        f"## Structured data: {len(pages)} pages, of which Curtsy reads {whole:.1%} exactly as expected",
        "",
        head,
        places.rule(head),
        *rows,
        f"| CPU ms per page | {cpu} |",
        *floors.compare({"structured": {"whole": whole}}, raise_floors),
    ]


def _timed(read: Callable[[], Any]) -> tuple[Any, float]:
    read()
    started = time.process_time()
    data = read()
    return data, time.process_time() - started


def _peers(python: Path) -> dict[str, Read]:
    # -P: a module of this folder must not replace one of the standard library.
    run = subprocess.run([python, "-P", _SCRIPT, structured_pages.FOLDER, URL], stdout=subprocess.PIPE, check=True)
    found: dict[str, Read] = json.loads(run.stdout)
    return found


def _found(pages: list[Page], read: Read, kind: str) -> tuple[int, int]:
    """(values found, values expected) of a kind. A reader may give a value under any kind."""
    counts: dict[str, int] = defaultdict(int)
    for page in pages:
        expected = Counter(_plain(value) for value in leaves(page.expected.get(kind, [])))
        given = Counter(_plain(value) for value in leaves(read[page.name][0]))
        counts["found"] += (expected & given).total()
        counts["expected"] += expected.total()
    return counts["found"], counts["expected"]


def _plain(value: str) -> str:
    return " ".join(value.split())


def _share(counts: tuple[int, int]) -> str:
    return f"{counts[0]} of {counts[1]}"
