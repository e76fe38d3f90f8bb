"""Was the crawler polite? Judged from the server's access log alone, by what the generator knows about its hosts.

`python -m curtsy.tinyweb.judge LOG --delay 0.5` prints the verdict and exits 1 if it is not clean.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from curtsy.tinyweb import web
from curtsy.tinyweb.accesslog import Line, read


@dataclass(frozen=True, slots=True, kw_only=True)
class HostVerdict:
    """One host's requests. Counts are of what exceeds the tolerance; the largest values are as measured."""

    host: str
    requests: int
    #: the pause that was asked for: of the crawl, or robots.txt's where that is longer
    delay_s: float
    #: requests that began before an earlier one had ended
    overlaps: int
    largest_overlap_ms: float
    #: requests that began less than the delay after the start of the one before
    shortfalls: int
    largest_shortfall_ms: float
    #: requests before the end of a Retry-After
    too_soon: int
    largest_too_soon_ms: float
    #: "METHOD path" of requests that robots.txt forbids
    robots_violations: tuple[str, ...]
    #: requests that nofollow, the scope or the address guard rule out
    unwanted: tuple[str, ...]
    #: what a page loads, asked for when another page was visited, or none
    strays: tuple[str, ...]
    #: requests before robots.txt had been answered; told, not counted as a fault: a crawler may know it from before
    before_robots: int

    @property
    def ok(self) -> bool:
        counted = self.overlaps or self.shortfalls or self.too_soon
        return not (counted or self.robots_violations or self.unwanted or self.strays)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The judgement over a whole log."""

    hosts: tuple[HostVerdict, ...]

    @property
    def ok(self) -> bool:
        return all(host.ok for host in self.hosts)

    @property
    def requests(self) -> int:
        return sum(host.requests for host in self.hosts)

    @property
    def overlaps(self) -> int:
        return sum(host.overlaps for host in self.hosts)

    @property
    def shortfalls(self) -> int:
        return sum(host.shortfalls for host in self.hosts)

    @property
    def too_soon(self) -> int:
        return sum(host.too_soon for host in self.hosts)

    @property
    def robots_violations(self) -> int:
        return sum(len(host.robots_violations) for host in self.hosts)

    @property
    def unwanted(self) -> int:
        return sum(len(host.unwanted) for host in self.hosts)

    @property
    def strays(self) -> int:
        return sum(len(host.strays) for host in self.hosts)

    @property
    def before_robots(self) -> int:
        return sum(host.before_robots for host in self.hosts)

    @property
    def largest_overlap_ms(self) -> float:
        return max((host.largest_overlap_ms for host in self.hosts), default=0.0)

    @property
    def largest_shortfall_ms(self) -> float:
        return max((host.largest_shortfall_ms for host in self.hosts), default=0.0)

    def summary(self) -> dict[str, object]:
        """For people and for --json: totals, and the hosts that are not clean."""
        return {
            "ok": self.ok,
            "requests": self.requests,
            "hosts": len(self.hosts),
            "overlaps": self.overlaps,
            "largest_overlap_ms": self.largest_overlap_ms,
            "shortfalls": self.shortfalls,
            "largest_shortfall_ms": self.largest_shortfall_ms,
            "too_soon": self.too_soon,
            "robots_violations": self.robots_violations,
            "unwanted": self.unwanted,
            "strays": self.strays,
            "before_robots": self.before_robots,
            "guilty": [asdict(host) for host in self.hosts if not host.ok],
        }


def judge(
    log: Path | str | Iterable[Line], delay_s: float, tolerance_ms: float = 50.0, *, starts_only: bool = False
) -> Verdict:
    """The verdict over a log (a file, or its lines).

    With `starts_only` overlaps are not counted: a crawler stopped by SIGSTOP cannot close a connection that a hanging
    server keeps open, so there only what was sent can be judged.
    """
    lines = read(log) if isinstance(log, Path | str) else log
    by_host: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line.host != "-":
            by_host[line.host].append(line)
    return Verdict(
        hosts=tuple(
            _judge_host(host, sorted(found, key=lambda line: line.start_us), delay_s, tolerance_ms, starts_only)
            for host, found in sorted(by_host.items())
        )
    )


def _judge_host(host: str, lines: list[Line], delay_s: float, tolerance_ms: float, starts_only: bool) -> HostVerdict:
    name = lines[0].name
    delay_s = max(delay_s, web.crawl_delay_s(name) or 0.0)
    overlaps = [] if starts_only else _overlaps_ms(lines)
    shortfalls = _shortfalls_ms(lines, delay_s, starts_only)
    too_soon = _too_soon_ms(lines)
    return HostVerdict(
        host=host,
        requests=len(lines),
        delay_s=delay_s,
        overlaps=sum(ms > tolerance_ms for ms in overlaps),
        largest_overlap_ms=max(overlaps, default=0.0),
        shortfalls=sum(ms > tolerance_ms for ms in shortfalls),
        largest_shortfall_ms=max(shortfalls, default=0.0),
        too_soon=sum(ms > tolerance_ms for ms in too_soon),
        largest_too_soon_ms=max(too_soon, default=0.0),
        robots_violations=tuple(f"{line.method} {line.path}" for line in lines if web.forbidden(name, line.path)),
        unwanted=tuple(f"{line.method} {line.path}" for line in lines if web.unwanted(name, line.path)),
        strays=_strays(lines),
        before_robots=_before_robots(lines),
    )


def _overlaps_ms(lines: list[Line]) -> list[float]:
    found, latest_us = [], 0
    for line in lines:
        if line.start_us < latest_us:
            found.append((latest_us - line.start_us) / 1000)
        latest_us = max(latest_us, line.end_us)
    return found


def _shortfalls_ms(lines: list[Line], delay_s: float, starts_only: bool) -> list[float]:
    """A visit and what it loads are one request: the delay runs from the end of what was loaded."""
    delay_us = delay_s * 1_000_000
    pairs = [(before, after) for before, after in pairwise(lines) if _page_of(after) is None]
    gaps = [
        after.start_us - (before.start_us if starts_only or _page_of(before) is None else before.end_us)
        for before, after in pairs
    ]
    return [(delay_us - gap) / 1000 for gap in gaps if gap < delay_us]


def _page_of(line: Line) -> str | None:
    return web.loaded_by(line.name, line.path)


def _strays(lines: list[Line]) -> tuple[str, ...]:
    """A visit that was over, by its worker's death or its slot's end, loads nothing more."""
    found, visited = [], None
    for line in lines:
        page = _page_of(line)
        if page is None:
            visited = line.path
        elif visited is None or (page != "*" and page != visited):
            found.append(f"{line.method} {line.path} after {visited or 'nothing'}")
    return tuple(found)


def _too_soon_ms(lines: list[Line]) -> list[float]:
    found, until_us = [], 0
    for line in lines:
        # A request that was already under way when the host asked for rest is an overlap, not a disobedience.
        if line.start_us < until_us:
            found.append((until_us - line.start_us) / 1000)
        until_us = max(until_us, line.hold_until_us)
    return found


def _before_robots(lines: list[Line]) -> int:
    """Requests that began before the first answer to robots.txt from which rules, or their absence, can be read."""
    told = [line.end_us for line in lines if line.path == "/robots.txt" and _tells(line.status)]
    known_us = min(told, default=None)
    asked = [line for line in lines if not web.holds_rules(line.name, line.path)]
    return sum(known_us is None or line.start_us < known_us for line in asked)


def _tells(status: int) -> bool:
    return 200 <= status < 500 and status != 429


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 for a clean log, 1 for one that is not, or is empty, 2 where there is none."""
    parser = argparse.ArgumentParser(prog="python -m curtsy.tinyweb.judge", description="Was the crawler polite?")
    parser.add_argument("log", type=Path)
    parser.add_argument("--delay", type=float, required=True, help="seconds between two starts on a host")
    parser.add_argument("--tolerance-ms", type=float, default=50.0)
    parser.add_argument("--starts-only", action="store_true", help="judge what was sent, not what stayed open")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    try:
        verdict = judge(options.log, options.delay, options.tolerance_ms, starts_only=options.starts_only)
    except OSError as error:
        print(f"{options.log} cannot be read: {error.strerror}.", file=sys.stderr)
        return 2
    # Nothing was seen: that is no proof of anything.
    ok = verdict.ok and verdict.requests > 0
    if options.json:
        print(json.dumps(verdict.summary() | {"ok": ok}, indent=1))
    else:
        _print(verdict)
    return 0 if ok else 1


def _print(verdict: Verdict) -> None:
    print(f"{verdict.requests} requests on {len(verdict.hosts)} hosts")
    print(f"overlaps {verdict.overlaps}, largest {verdict.largest_overlap_ms:.1f} ms")
    print(f"shortfalls of the delay {verdict.shortfalls}, largest {verdict.largest_shortfall_ms:.1f} ms")
    print(f"before the end of Retry-After {verdict.too_soon}")
    print(f"robots violations {verdict.robots_violations}, otherwise unwanted {verdict.unwanted}")
    print(f"loaded apart from a visit {verdict.strays}")
    print(f"requests before robots.txt was answered {verdict.before_robots}")
    for host in verdict.hosts:
        if not host.ok:
            print(f"  {host}")
    print("NOTHING TO JUDGE" if not verdict.requests else "clean" if verdict.ok else "NOT CLEAN")


if __name__ == "__main__":
    sys.exit(main())
