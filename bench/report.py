"""Tables and bars: what the benchmarks print, and docs/explanation/benchmarks.md."""

from __future__ import annotations

import math
import os
import platform
import statistics
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench import nginx
from bench.contestants import Contestant, Result

DOCUMENT = Path(__file__).parent.parent / "docs" / "explanation" / "benchmarks.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A figure with a limit."""

    what: str
    value: float
    limit: float
    #: the value must reach the limit; else it must not exceed it
    at_least: bool = False
    unit: str = ""

    @property
    def holds(self) -> bool:
        # Every figure here is positive: anything else is a broken measurement, and that holds nothing.
        if not 0 < self.value < math.inf:
            return False
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        return (
            f"{'held    ' if self.holds else 'NOT HELD'} {self.what}: {number(self.value)}{self.unit} "
            f"({sign} {number(self.limit)}{self.unit})"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One part of the report: prose, a table, bars."""

    title: str
    text: str = ""
    head: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    bars: tuple[Bar, ...] = ()

    def markdown(self) -> str:
        parts = [f"## {self.title}", self.text]
        if self.rows:
            parts.append("\n".join([_row(self.head), _row(["---"] * len(self.head)), *map(_row, self.rows)]))
        if self.bars:
            parts.append("\n".join(f"- {bar}" for bar in self.bars))
        return "\n\n".join(part for part in parts if part)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def number(value: float) -> str:
    """Three significant figures, thousands with commas."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def crawl_section(
    title: str, text: str, field: Sequence[Contestant], results: Mapping[str, Sequence[Result]]
) -> Section:
    """Medians of one competition; the figures in brackets are the smallest and the largest."""
    head = (
        "crawler",
        "CPU ms per page",
        "of it Valkey",
        "web server, ms per page",
        "pages/s",
        "memory, MB",
        "frontier calls per page",
        "commits per page",
        "what it does",
    )
    return Section(
        title=title,
        text=text,
        head=head,
        rows=tuple(_crawler(contestant, results[contestant.name]) for contestant in field),
    )


def _crawler(contestant: Contestant, results: Sequence[Result]) -> tuple[str, ...]:
    cpu = sorted(result.cpu_ms_per_page for result in results)
    server = statistics.median(result.server_ms_per_page for result in results)
    return (
        contestant.name,
        f"**{statistics.median(cpu):.3f}** ({cpu[0]:.3f} to {cpu[-1]:.3f})",
        f"{server:.3f}" if server else "-",
        f"{statistics.median(result.web_ms_per_page for result in results):.3f}",
        number(statistics.median(result.pages_per_s for result in results)),
        number(statistics.median(result.run.max_rss_mb for result in results)),
        _per_page(results, "frontier_calls"),
        _per_page(results, "commits"),
        contestant.note,
    )


def _per_page(results: Sequence[Result], counter: str) -> str:
    counts = [result.said.get("counters", {}).get(counter) for result in results]
    found = [count / result.pages for count, result in zip(counts, results, strict=True) if count is not None]
    return f"{statistics.median(found):.4f}" if found else "-"


def machine() -> str:
    """What the figures were measured on; no names of machines."""
    memory_gb = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9
    version = subprocess.run([nginx.find(), "-v"], capture_output=True, text=True, check=True).stderr
    return (
        f"{os.cpu_count()} cores ({_cpu_model()}), {memory_gb:.0f} GB of memory, {platform.system()} "
        f"{platform.release().partition('-')[0]}, Python {platform.python_version()}, nginx "
        f"{version.strip().rpartition('/')[2]} with one worker on the same cores, plain HTTP over loopback."
    )


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return " ".join(line.partition(":")[2].split())
    return platform.machine()


def document(command: str, sections: Sequence[Section], versions: str) -> str:
    """docs/explanation/benchmarks.md as a whole."""
    return (
        "\n\n".join(
            [
                "# Benchmarks",
                f"`{command}` wrote this page; run it to get your own numbers. Absolute numbers depend on the "
                "machine; ratios are more portable. [Performance](performance.md) explains what to expect on "
                "real sites.",
                f"Machine: {machine()}\n\n{versions}",
                *(section.markdown() for section in sections),
            ]
        )
        + "\n"
    )


def with_sections(text: str, sections: Sequence[Section]) -> str:
    """A document with these sections in the place of those of the same title; new ones stand at its end."""
    head, *blocks = text.rstrip("\n").split("\n\n## ")
    by_title = {block.partition("\n")[0]: f"## {block}" for block in blocks}
    by_title |= {section.title: section.markdown() for section in sections}
    return "\n\n".join([head, *by_title.values()]) + "\n"
