"""The crawlers that are compared, as commands, and their interleaved repeats."""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.cores import fetching_s, on_cores, seconds_apart, web_servers
from bench.measure import Run, RunFailed, cpu_of, run
from bench.site import Site

PEERS = Path(__file__).parent / "peers"
#: of one crawl; the longest takes about 100 s
TIMEOUT_S = 400.0
CURTSY = "Curtsy"
CURTSY_TWO = "Curtsy, --processes 2"
ONE_CORE = "Curtsy, on one core"
TWO_CORES = "Curtsy, --processes 2, on two cores"
BARE = "bare loop"
BARE_TWO = "two bare loops"
BARE_STORE = "bare loop with segment and SQLite"
SCRAPY = "Scrapy"
CRAWLEE = "Crawlee HttpCrawler"
CRAWLEE_DEDUP = "Crawlee, links deduplicated by hand"


@dataclass(frozen=True, slots=True, kw_only=True)
class Contestant:
    """A crawler: how it is started for a file of seeds in a folder of its own."""

    name: str
    command: Callable[[Site, Path], Sequence[str]]
    #: what a reader must know to judge the figure
    note: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    #: it runs on so many cores, with the web server apart (`bench.cores`); None: both on all
    cores: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One crawl of one contestant."""

    pages: int
    run: Run
    #: the document the crawler printed
    said: Mapping[str, Any]
    #: CPU seconds of the web server meanwhile
    web_cpu_s: float = 0.0
    #: with a number of cores: seconds of fetching without the web server's part
    apart_s: float | None = None

    @property
    def cpu_ms_per_page(self) -> float:
        return self.run.cpu_s * 1000 / self.pages

    @property
    def server_ms_per_page(self) -> float:
        return self.run.server_cpu_s * 1000 / self.pages

    @property
    def web_ms_per_page(self) -> float:
        return self.web_cpu_s * 1000 / self.pages

    @property
    def pages_per_s(self) -> float:
        """From the start of the command to its end, or while it fetched."""
        return self.pages / (self.run.wall_s if self.apart_s is None else self.apart_s)


def bare_loops() -> list[Contestant]:
    """In Curtsy's own environment: the same libraries in the same versions."""
    loop = [sys.executable, str(PEERS / "bare_loop.py")]
    return [
        Contestant(
            name=BARE,
            command=lambda site, folder: [*loop, str(folder / "seeds.txt")],
            note="pycurl, lexbor, ada, a set; no robots, no frontier, no store",
        ),
        Contestant(
            name=BARE_TWO,
            command=lambda site, folder: [*loop, str(folder / "seeds.txt"), "--processes", "2"],
            note="the hosts are divided among two processes that share nothing but the web server",
        ),
        Contestant(
            name=BARE_STORE,
            command=lambda site, folder: [*loop, str(folder / "seeds.txt"), "--store", str(folder)],
            note="also SHA-256, isal, fsync and rows per 200 pages; its frontier is not durable",
        ),
    ]


def peers(python: str) -> list[Contestant]:
    def script(name: str, *more: str) -> Callable[[Site, Path], Sequence[str]]:
        return lambda site, folder: [python, str(PEERS / name), str(folder / "seeds.txt"), *more]

    return [
        Contestant(
            name=SCRAPY,
            command=script("scrapy_spider.py", "--robots"),
            note="broad-crawl settings of its manual, its LinkExtractor, robots.txt obeyed; stores nothing",
        ),
        Contestant(
            name=CRAWLEE,
            command=script("crawlee_crawler.py"),
            note="lexbor as parser, enqueue_links, memory storage, no sessions, robots off as by default",
        ),
        Contestant(
            name=CRAWLEE_DEDUP,
            command=script("crawlee_crawler.py", "--dedup"),
            note="the same, but the handler resolves links itself and enqueues only unseen URLs",
        ),
    ]


def curtsy(
    processes: int = 1, *, delay_s: float = 0, per_host: int | None = None, name: str | None = None,
    cores: int | None = None,
) -> Contestant:  # fmt: skip
    def command(site: Site, folder: Path) -> Sequence[str]:
        options = ["--delay", f"{delay_s:g}", "--resolve", site.resolve_rule, "--json"]
        several = ["--processes", str(processes)] if processes > 1 else []
        several += ["--per-host", str(per_host)] if per_host is not None else []
        return [sys.executable, "-m", "curtsy.cli", "crawl", "--from", "seeds.txt", *options, *several]

    return Contestant(
        name=name or (CURTSY if processes == 1 else CURTSY_TWO),
        command=command,
        note="full durability, politeness, robots.txt, WARC; includes its Valkey"
        + ("" if cores is None else "; pages/s while fetching, with the web server apart"),
        cores=cores,
    )


def crawl_once(contestant: Contestant, site: Site, folder: Path, *, timeout_s: float = TIMEOUT_S) -> Result:
    """One crawl in an empty folder; every page of the site must have been fetched."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "seeds.txt").write_text("\n".join(site.seeds) + "\n")
    web_cpu_s = _web_cpu_s()
    with on_cores(contestant.cores):
        measured = run(contestant.command(site, folder), folder=folder, env=environment(folder), timeout_s=timeout_s)
    web_cpu_s = _web_cpu_s() - web_cpu_s
    said = last_document(measured.stdout)
    pages = int(said.get("pages", 0))
    if pages != site.total_pages:
        raise RunFailed(f"{contestant.name} fetched {pages} of {site.total_pages} pages: {json.dumps(said)[:2000]}")
    apart_s = None
    if contestant.cores is not None:
        every = len(os.sched_getaffinity(0))
        apart_s = seconds_apart(fetching_s(folder / "data"), web_cpu_s, contestant.cores, every)
    return Result(pages=pages, run=measured, said=said, web_cpu_s=web_cpu_s, apart_s=apart_s)


def _web_cpu_s() -> float:
    """CPU seconds of the nginx that this benchmark started."""
    return sum(found[1] for found in map(cpu_of, web_servers()) if found is not None)


def environment(folder: Path) -> dict[str, str]:
    """Ours without settings that would change a crawl, and with a data folder of its own."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("CURTSY_", "SCRAPY_", "CRAWLEE_"))}
    # The others look for no sitemap: the same requests are compared.
    own = {"CURTSY_DATA_DIR": str(folder / "data"), "CURTSY_GUESS_SITEMAP": "false"}
    return kept | own | {"PYTHONDONTWRITEBYTECODE": ""}


def last_document(text: str) -> dict[str, Any]:
    """The JSON document at the end of what a crawler printed; Curtsy may spread it over lines."""
    try:
        document = json.loads(text)
    except ValueError:
        lines = text.strip().splitlines()
        document = json.loads(lines[-1]) if lines else {}
    return document if isinstance(document, dict) else {}


def compete(
    contestants: Sequence[Contestant], site: Site, *, repeats: int, say: Callable[[str], None]
) -> dict[str, list[Result]]:
    """Interleaved repeats: a slow minute of the machine meets every contestant."""
    results: dict[str, list[Result]] = {contestant.name: [] for contestant in contestants}
    for repeat in range(repeats):
        for contestant in contestants:
            folder = Path(tempfile.mkdtemp(prefix="curtsy-bench-"))
            try:
                result = crawl_once(contestant, site, folder)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            results[contestant.name].append(result)
            say(
                f"  {repeat + 1}/{repeats} {contestant.name}: {result.cpu_ms_per_page:.3f} ms of CPU per page, "
                f"{result.pages_per_s:.0f} pages/s"
            )
    return results


def median_ms(results: Sequence[Result]) -> float:
    return statistics.median(result.cpu_ms_per_page for result in results)


def median_rate(results: Sequence[Result]) -> float:
    return statistics.median(result.pages_per_s for result in results)
