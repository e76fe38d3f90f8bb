"""Where a crawl's CPU goes: `python -m bench.profile [--hosts 40] [--functions 40]`.

First the crawl as it is: CPU per page by process and by thread. Then the same crawl under cProfile by CPU time, every
thread of the process counted; times are milliseconds per page. cProfile makes Python functions look dearer than they
are and native ones not at all: read the order and the call counts, not the sum.
"""

from __future__ import annotations

import argparse
import io
import pstats
import shutil
import sys
import tempfile
from pathlib import Path

from bench import contestants
from bench.measure import run
from bench.plan import serve
from bench.site import Site


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.profile", description=__doc__)
    parser.add_argument("--hosts", type=int, default=40)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--functions", type=int, default=40)
    parser.add_argument("--sort", default="tottime", choices=["tottime", "cumulative"])
    parser.add_argument("--port", type=int, default=18476)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="curtsy-profile-"))
    try:
        with serve(options.hosts, options.pages, options.port) as web:
            _plain(web, folder)
            _profiled(web, folder, options.functions, options.sort)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _plain(web: Site, folder: Path) -> None:
    result = contestants.crawl_once(contestants.curtsy(), web, folder / "plain")
    split = ", ".join(f"{name} {cpu * 1000 / result.pages:.3f}" for name, cpu in result.run.by_name.items())
    print(
        f"without profiler: {result.cpu_ms_per_page:.3f} ms of CPU per page ({split}), {result.pages_per_s:.0f} pages/s"
    )
    threads = sorted(result.run.by_thread.values(), reverse=True)
    print("by thread:", ", ".join(f"{cpu * 1000 / result.pages:.3f}" for cpu in threads if cpu > 0))
    print(f"counters: {result.said.get('counters')}")


def _profiled(web: Site, folder: Path, functions: int, sort: str) -> None:
    folder = folder / "profiled"
    folder.mkdir()
    (folder / "seeds.txt").write_text("\n".join(web.seeds))
    command = contestants.curtsy().command(web, folder)
    behind_program = command[command.index("crawl") :]
    argv = [sys.executable, "-m", "bench.profile_child", str(folder / "profile"), *behind_program]
    here = str(Path(__file__).parent.parent)
    run(argv, folder=folder, env=contestants.environment(folder) | {"PYTHONPATH": here}, timeout_s=600)
    text = io.StringIO()
    stats = pstats.Stats(str(folder / "profile"), stream=text)
    scale_to_pages(stats, web.total_pages)
    stats.strip_dirs().sort_stats(sort).print_stats(functions)
    print(text.getvalue().partition("\n\n")[2])
    print("times are milliseconds per page, calls are in all")


def scale_to_pages(stats: pstats.Stats, pages: int) -> None:
    """Seconds in all become milliseconds per page, so that costs can be added up against the budget."""
    table = stats.stats  # type: ignore[attr-defined]
    for key, (calls, recursive, own_s, total_s, callers) in list(table.items()):
        table[key] = (calls, recursive, own_s * 1000 / pages, total_s * 1000 / pages, callers)


if __name__ == "__main__":
    main()
