"""The main content of the golden pages: Curtsy beside other libraries."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import main_content_score as judged
from main_content_ours import main_text
from main_content_score import Page, Score

from tests.judge import floors, places

_SCRIPT = Path(__file__).parent / "peers_main_content.py"
_COLUMNS = ("f1", "precision", "recall", "kept", "kept_out", "accuracy")


@dataclass(frozen=True)
class Result:
    reader: str
    scores: dict[str, Score]
    ms_per_page: float


def ours() -> Result:
    texts = {page.name: _timed(page) for page in judged.pages()}
    return _result("Curtsy", texts)


def _timed(page: Page) -> tuple[str, float]:
    main_text(page)
    started = time.process_time()
    text = main_text(page)
    return text, time.process_time() - started


def peers(python: Path) -> list[Result]:
    # -P: a module of this folder must not replace one of the standard library.
    run = subprocess.run([python, "-P", _SCRIPT, judged.FOLDER], stdout=subprocess.PIPE, check=True)
    return [_result(reader, texts) for reader, texts in json.loads(run.stdout).items()]


def _result(reader: str, texts: dict[str, tuple[str, float]]) -> Result:
    scores = {page.name: judged.score(page, texts[page.name][0]) for page in judged.pages()}
    return Result(reader, scores, 1000 * sum(seconds for _, seconds in texts.values()) / len(texts))


def report(results: list[Result]) -> list[str]:
    return [
        f"## Main content: {len(judged.pages())} pages",
        "",
        *_totals(results),
        "",
        *_groups(results, "type"),
        "",
        *_groups(results, "language"),
    ]


def _totals(results: list[Result]) -> list[str]:
    head = "| reader | F1 | precision | recall | segments kept | boilerplate kept out | accuracy | CPU ms per page |"
    rows = []
    for one in results:
        total = judged.mean(one.scores.values())
        cells = " | ".join(f"{getattr(total, name):.3f}" for name in _COLUMNS)
        rows.append(f"| {one.reader} | {cells} | {one.ms_per_page:.2f} |")
    return [head, places.rule(head), *rows]


def _groups(results: list[Result], group: str) -> list[str]:
    """F1 and accuracy by type or language."""
    found = {one.reader: judged.by(one.scores, group) for one in results}
    head = f"| {group}: F1 / accuracy | " + " | ".join(found) + " |"
    rows = [
        f"| {name} | " + " | ".join(f"{of[name].f1:.3f} / {of[name].accuracy:.3f}" for of in found.values()) + " |"
        for name in next(iter(found.values()))
    ]
    return [head, places.rule(head), *rows]


def worst(result: Result, count: int) -> list[str]:
    """The pages with the lowest F1."""
    lowest = sorted(result.scores.items(), key=lambda item: item[1].f1)[:count]
    return [f"- {name}: F1 {one.f1:.3f}, accuracy {one.accuracy:.3f}" for name, one in lowest]


def measured(result: Result) -> dict[str, dict[str, float]]:
    """Floors by their table in floors.toml."""
    total = judged.mean(result.scores.values())
    groups = {
        group: {name: one.f1 for name, one in judged.by(result.scores, group).items()} for group in ("type", "language")
    }
    return {f"main_content.{name}": values for name, values in (("total", vars_of(total)), *groups.items())}


def vars_of(score: Score) -> dict[str, float]:
    return {name: getattr(score, name) for name in _COLUMNS}


def judge(python: Path | None, show_worst: int, raise_floors: bool) -> list[str]:
    mine = ours()
    results = [mine, *(peers(python) if python else [])]
    lines = report(results)
    if show_worst:
        lines += ["", "Lowest F1:", "", *worst(mine, show_worst)]
    return lines + floors.compare(measured(mine), raise_floors)
