"""Crawls under kills and losses: `python -m tests.chaos --rounds 60`. Exits with 1 if anything was lost or impolite.

`python -m tests.chaos fleet` does it to fleets.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from curtsy.core.failpoints import POINTS
from tests.chaos import browsers
from tests.chaos.fleet import main as fleet
from tests.chaos.rounds import BROWSER_NAMES, RENDER_EVERY, Arena, Plan, Round, fast_turn, plan
from tests.chaos.site import FAST, Site
from tests.chaos.troubles import TROUBLES
from tests.support.postgres_server import start_postgres

STORES = {"sqlite": ("sqlite",), "postgres": ("postgres",), "both": ("sqlite", "postgres")}
HEAD = (
    f"{'round':>5}  {'store':8} {'pages':>5} {'resumes':>7} {'lost':>4} {'dup':>3} {'impolite':>8} {'s':>5}  troubles"
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--rounds", type=int, default=60, help="in all; with both stores they take turns (60)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same plans")
    parser.add_argument("--store", choices=sorted(STORES), default="both")
    parser.add_argument("--only", type=int, nargs="+", metavar="ROUND", help="play only these rounds of the seed")
    parser.add_argument("--keep", action="store_true", help="keep the data of clean rounds too")
    parser.add_argument(
        "--short", action="store_true", help="a smaller web in rounds with a browser, no undisturbed crawl"
    )
    parser.add_argument(
        "--per-host", type=int, choices=sorted(FAST), nargs="+", dest="per_host", metavar="N",
        help="every round without a delay, with 1, 4 or 16 requests in flight per host in turn (one round in four)",
    )  # fmt: skip
    parser.add_argument("--troubles", choices=sorted(TROUBLES), nargs="+", help="these, instead of those of the seed")
    browsers.add_option(parser)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="curtsy-chaos-"))
    folder.chmod(0o755)
    arena = Arena(folder, options.seed)
    plans = _plans(options)
    try:
        if any(one.store == "postgres" for one in plans):
            arena.postgres = start_postgres(folder / "pg")
        if any(not one.render for one in plans) and not options.short:
            print(f"An undisturbed crawl of the same web took {arena.undisturbed(Site()):.1f} s.", flush=True)
        # One round alone is judged by what the generator has.
        if len(rendered := [one for one in plans if one.render]) > 1:
            print(f"With a browser it took {arena.undisturbed(rendered[0].site):.1f} s.", flush=True)
        print(HEAD, flush=True)
        rounds = [_play(arena, one, options) for one in plans]
    finally:
        if arena.postgres is not None:
            arena.postgres.stop()
    clean = all(one.clean for one in rounds)
    _summary(rounds)
    if clean and not options.keep:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if clean else 1


def _plans(options: argparse.Namespace) -> list[Plan]:
    stores = STORES[options.store]
    numbers = options.only or range(1, options.rounds + 1)
    rendered = browsers.chosen(options.render, numbers, RENDER_EVERY)
    return [
        plan(
            options.seed, n, stores[(n - 1) % len(stores)], (n - 1) // len(stores), render=n in rendered,
            short=options.short, per_host=_per_host(options, n), named=tuple(options.troubles or ()),
        )
        for n in numbers
    ]  # fmt: skip


def _per_host(options: argparse.Namespace, n: int) -> int:
    """0: a round with a delay."""
    return options.per_host[n % len(options.per_host)] if options.per_host else fast_turn(n)


def _play(arena: Arena, one: Plan, options: argparse.Namespace) -> Round:
    result = arena.round(one)
    found = result.found
    troubles = [f"{one.fault}" + ("" if result.fault_hit else " (not reached)"), *result.done]
    if one.processes > 1:
        troubles.append(f"{one.processes} processes")
    if one.per_host and not one.render:
        troubles.append(f"no delay, {one.per_host} per host")
    if one.render:
        troubles.append(f"{found.rendered} pages by a browser")
    print(
        f"{one.number:>5}  {one.store:8} {found.pages:>5} {result.resumes:>7} {len(found.lost):>4} "
        f"{len(found.duplicates):>3} {len(found.violations):>8} {result.seconds:>5.1f}  {', '.join(troubles)}",
        flush=True,
    )
    if result.clean:
        if result.folder is not None and not options.keep:
            shutil.rmtree(result.folder, ignore_errors=True)
        return result
    for line in ([result.unfinished] if result.unfinished else []) + result.left + found.lines()[:20]:
        print(f"       {line}")
    again = (
        f"python -m tests.chaos --seed {options.seed} --store {options.store} --render {options.render} "
        f"{'--short ' if options.short else ''}"
        f"{f'--per-host {one.per_host} ' if options.per_host else ''}--only {one.number}"
        f"{' --troubles ' + ' '.join(options.troubles) if options.troubles else ''}"
    )
    print(f"       data: {result.folder}; again: {again}", flush=True)
    return result


def _summary(rounds: list[Round]) -> None:
    stores = Counter(one.plan.store for one in rounds)
    done = Counter(name.replace("db-", "database ") for one in rounds for name in one.done if "refused" not in name)
    hit = Counter(one.plan.point for one in rounds if one.fault_hit)
    print(f"rounds      {len(rounds)} ({', '.join(f'{n} on {store}' for store, n in stores.items())})")
    print(f"unfinished  {sum(one.unfinished is not None for one in rounds)}")
    print(f"lost        {sum(len(one.found.lost) for one in rounds)}")
    print(f"duplicates  {sum(len(one.found.duplicates) for one in rounds)}")
    largest = max((one.found.largest_shortfall_ms for one in rounds), default=0.0)
    overlap = max((one.found.largest_overlap_ms for one in rounds), default=0.0)
    print(
        f"impolite    {sum(len(one.found.violations) for one in rounds)} (largest shortfall of the delay "
        f"{largest:.1f} ms, largest overlap {overlap:.1f} ms, by the server's log)"
    )
    stall = max((one.found.longest_stall_ms for one in rounds), default=0.0)
    print(
        f"of them      {sum(len(one.found.stalled) for one in rounds)} while this machine stood still (longest "
        f"{stall:.0f} ms)"
    )
    print(f"damaged     {sum(len(one.found.damage) for one in rounds)} (bodies, WARC files, ledger, export, audit)")
    if rendered := [one for one in rounds if one.plan.render]:
        print(
            f"browsers    {len(rendered)} rounds, {sum(one.found.rendered for one in rendered)} pages, "
            f"{sum(len(one.left) for one in rendered)} processes left behind"
        )
    print(f"troubles    {', '.join(f'{name} {n}' for name, n in sorted(done.items()))}")
    print(f"stops       {', '.join(f'{name} {hit[name]}' for name in POINTS)}")
    names = [*TROUBLES, *(BROWSER_NAMES if rendered else ())]
    if missed := [name for name in names if not any(name in one.plan.troubles for one in rounds)]:
        print(f"not tried   {', '.join(missed)}")
    print("clean" if all(one.clean for one in rounds) else "NOT CLEAN")


if __name__ == "__main__":
    sys.exit(fleet.main(sys.argv[2:]) if sys.argv[1:2] == ["fleet"] else main())
