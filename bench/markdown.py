"""CPU per page of `curtsy export` as Markdown, on real documentation sites that were crawled before."""

from __future__ import annotations

import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from bench import docs_sites, real
from bench.contestants import environment
from bench.measure import Run, run
from bench.plan import Plan
from bench.report import Bar, Section

TIMEOUT_S = 1800.0
#: CPU ms per page
LIMIT_MS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    pages: int
    run: Run

    @property
    def cpu_ms(self) -> float:
        return 1000 * self.run.cpu_s / self.pages


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    folder = Path(tempfile.mkdtemp(prefix="curtsy-bench-"))
    try:
        with real.serving(docs_sites.PACKAGES[: plan.real_sites], plan.port) as web:
            (folder / "seeds.txt").write_text("\n".join(web.seeds) + "\n")
            run(real.curtsy_command(web, folder), folder=folder, env=environment(folder), timeout_s=TIMEOUT_S)
        rows, bars = [], []
        for name, options in (("main content", ()), ("full pages (`--full-page`)", ("--full-page",))):
            done = [_export(folder, options) for _ in range(plan.repeats)]
            ms = statistics.median(one.cpu_ms for one in done)
            say(f"  {name}: {ms:.2f} ms of CPU per page, {done[0].pages} pages")
            rows.append(
                (name, str(done[0].pages), f"{ms:.2f}", f"{statistics.median(one.run.wall_s for one in done):.1f}")
            )
            if not options:
                bars.append(Bar(what="Markdown export, CPU per page", value=ms, limit=LIMIT_MS, unit=" ms"))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    text = (
        f"`curtsy export --out FOLDER` of {plan.real_sites} real manuals, crawled before. It reads every stored "
        "body, parses it, finds the main content and writes one Markdown file per page. CPU includes start-up. Medians "
        f"of {plan.repeats} exports."
    )
    head = ("export", "pages", "CPU, ms per page", "time, s")
    return [Section(title="Markdown export", text=text, head=head, rows=tuple(rows), bars=tuple(bars))]


def _export(folder: Path, options: tuple[str, ...]) -> Export:
    out = folder / "markdown"
    argv = [sys.executable, "-m", "curtsy.cli", "export", "--out", str(out), "--json", *options]
    done = run(argv, folder=folder, env=environment(folder), timeout_s=TIMEOUT_S)
    pages = int(json.loads(done.stdout)["pages"])
    shutil.rmtree(out)
    return Export(pages=pages, run=done)
