"""`python -m tests.chaos fleet`: the rounds of fleets, and their table."""

from __future__ import annotations

import argparse
import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.chaos import browsers
from tests.chaos.fleet.rounds import BROWSER_NAMES, RENDER_EVERY, SMALL, Arena, Plan, Round, plan
from tests.chaos.fleet.troubles import TROUBLES
from tests.chaos.site import Site
from tests.support.postgres_server import start_postgres

STORES = {"sqlite": ("sqlite",), "postgres": ("postgres",), "both": ("sqlite", "postgres")}
#: with so many rounds, one of them has all workers away for a minute
LONG = 10
HEAD = (
    f"{'round':>5}  {'store':8} {'beats':>5} {'pages':>5} {'restarts':>8} {'lost':>4} {'dup':>3} {'impolite':>8} "
    f"{'flood':>5} {'left':>4} {'s':>5} {'end':>4}  troubles"
)


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos fleet", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="in all; with both stores they take turns (20)")
    parser.add_argument("--seed", type=int, default=1, help="the same seed makes the same plans")
    parser.add_argument("--store", choices=sorted(STORES), default="both")
    parser.add_argument("--only", type=int, nargs="+", metavar="ROUND", help="play only these rounds of the seed")
    parser.add_argument("--keep", action="store_true", help="keep the data of clean rounds too")
    parser.add_argument("--short", action="store_true", help="a smaller web, and no undisturbed fleet beforehand")
    parser.add_argument(
        "--kills", type=float, default=20.0, metavar="S", help="how long `kills` lasts, in seconds (20)"
    )
    parser.add_argument("--troubles", choices=sorted(TROUBLES), nargs="+", help="these, instead of those of the seed")
    browsers.add_option(parser)
    options = parser.parse_args(words)
    folder = Path(tempfile.mkdtemp(prefix="curtsy-chaos-"))
    folder.chmod(0o755)
    arena = Arena(folder, options.seed, SMALL if options.short else Site())
    plans = _plans(options)
    try:
        if any(one.store == "postgres" for one in plans):
            arena.postgres = start_postgres(folder / "pg")
        if not options.short:
            for render in sorted({one.render for one in plans}):
                word = " with a browser" if render else ""
                print(f"An undisturbed fleet{word} took {arena.undisturbed(render):.1f} s.", flush=True)
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
    long = options.rounds // 2 if options.rounds >= LONG else None
    rendered = browsers.chosen(options.render, numbers, RENDER_EVERY)
    plans = [
        plan(
            options.seed, n, stores[(n - 1) % len(stores)], (n - 1) // len(stores), n == long, render=n in rendered,
            short=options.short,
        )
        for n in numbers
    ]  # fmt: skip
    return [replace(one, kills_s=options.kills, **_chosen(options)) for one in plans]


def _chosen(options: argparse.Namespace) -> dict[str, Any]:
    names = tuple(options.troubles or ())
    return {"troubles": names, "pauses_s": (1.0,) * len(names)} if names else {}


def _play(arena: Arena, one: Plan, options: argparse.Namespace) -> Round:
    result = arena.round(one)
    found = result.found
    done = [*result.done, *([f"{found.rendered} pages by browsers"] if one.render else [])]
    print(
        f"{one.number:>5}  {one.store:8} {one.beats:>5} {found.pages:>5} {result.restarts:>8} {len(found.lost):>4} "
        f"{len(found.duplicates):>3} {len(found.violations):>8} {len(result.floods):>5} {len(result.left):>4} "
        f"{result.seconds:>5.1f} {result.ending_s:>4.1f}  {', '.join(done)}",
        flush=True,
    )
    if options.keep:
        for line in result.errors[:20]:
            print(f"       {line[:400]}", flush=True)
    if result.clean:
        if result.folder is not None and not options.keep:
            shutil.rmtree(result.folder, ignore_errors=True)
        return result
    for line in result.lines()[:20]:
        print(f"       {line}")
    again = f"python -m tests.chaos fleet --seed {options.seed} --store {options.store} --rounds {options.rounds}"
    short = f" --render {options.render}" + (" --short" if options.short else "")
    short += f" --troubles {' '.join(options.troubles)} --kills {options.kills:g}" if options.troubles else ""
    print(f"       data: {result.folder}; again: {again}{short} --only {one.number}", flush=True)
    return result


def _summary(rounds: list[Round]) -> None:
    stores = Counter(one.plan.store for one in rounds)
    done = Counter(name.partition(" (")[0] for one in rounds for name in one.done)
    print(f"rounds      {len(rounds)} ({', '.join(f'{n} on {store}' for store, n in stores.items())})")
    print(f"unfinished  {sum(one.unfinished is not None for one in rounds)}")
    print(f"lost        {sum(len(one.found.lost) for one in rounds)}")
    print(f"duplicates  {sum(len(one.found.duplicates) for one in rounds)} (pages, records, crawls)")
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
    print(f"damaged     {sum(len(one.found.damage) for one in rounds)} (bodies, WARC, ledger, export, audit, API)")
    most = max((one.most_queued for one in rounds), default=0)
    begun = max((one.most_begun for one in rounds), default=0)
    print(
        f"floods      {sum(len(one.floods) for one in rounds)} (most shifts that waited in a queue for absent workers: "
        f"{most}; that ended within 3 s of their return: {begun})"
    )
    ending = max((one.ending_s for one in rounds), default=0.0)
    print(
        f"left behind {sum(len(one.left) for one in rounds)} processes (all ended within {ending:.0f} s of being asked)"
    )
    print(f"log errors  {sum(len(one.errors) for one in rounds)}")
    print(f"restarts    {sum(one.restarts for one in rounds)}")
    print(f"troubles    {', '.join(f'{name} {n}' for name, n in sorted(done.items()))}")
    names = [*TROUBLES, *(BROWSER_NAMES if any(one.plan.render for one in rounds) else ())]
    if missed := [name for name in names if not any(name in one.plan.troubles for one in rounds)]:
        print(f"not tried   {', '.join(missed)}")
    print("clean" if all(one.clean for one in rounds) else "NOT CLEAN")
