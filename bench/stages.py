"""CPU of the stages that make records, beside the fetch of the same pages."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.contestants import Contestant, Result, compete
from bench.plan import Plan, serve
from bench.report import Section
from bench.site import Site

STAGES = ("extract", "score", "store")
#: name of the row, options
CRAWLS = (
    ("no records", ()),
    ("`page`: one record per page", ("--schema", "page")),
    ("`organization`: one record per site", ("--schema", "organization")),
    ("`organization` and the rubric `esg`", ("--schema", "organization", "--rubric", "esg")),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """CPU ms per page of one crawl."""

    total: float
    #: by stage; its thread only, not a process that reads documents
    stages: dict[str, float]

    @property
    def rest(self) -> float:
        """The fetch, with everything else of the crawl."""
        return self.total - sum(self.stages.values())


def costs_of(result: Result) -> Costs:
    counters = result.said.get("counters", {})
    stages = {stage: counters.get(f"stage_{stage}_cpu_us", 0) / 1000 / result.pages for stage in STAGES}
    return Costs(total=result.cpu_ms_per_page, stages=stages)


def figures(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    field = [_contestant(name, options) for name, options in CRAWLS]
    with serve(plan.stage_hosts, plan.pages, plan.port) as web:
        results = compete(field, web, repeats=plan.repeats, say=say)
    rows = tuple((name, *_cells([costs_of(one) for one in results[name]])) for name, _ in CRAWLS)
    text = (
        f"Crawls of {plan.stage_hosts} hosts x {plan.pages} synthetic pages, with and without records. Values are CPU "
        f"ms per page, medians of {plan.repeats} interleaved repeats. A stage of a site is divided by all of its "
        "pages. The fetch is everything else: it includes start-up, WARC, database and frontier."
    )
    head = ("records", "total", "fetch and start-up", *STAGES)
    return [Section(title="Stages of records: CPU per page", text=text, head=head, rows=rows)]


def _contestant(name: str, options: Sequence[str]) -> Contestant:
    def command(site: Site, folder: Path) -> Sequence[str]:
        plain = ["--from", "seeds.txt", "--delay", "0", "--resolve", site.resolve_rule, "--json"]
        return [sys.executable, "-m", "curtsy.cli", "crawl", *plain, *options]

    return Contestant(name=name, command=command)


def _cells(costs: Sequence[Costs]) -> list[str]:
    columns = [[one.total for one in costs], [one.rest for one in costs]]
    columns += [[one.stages[stage] for one in costs] for stage in STAGES]
    return [f"{statistics.median(values):.3f}" for values in columns]
