"""Judge whether a crawler was polite, from the server's access log only, with the generator's facts about its hosts.

`python -m curtsy.tinyweb.politeness_check LOG --delay 0.5` prints the verdict and exits with 1 if there are violations.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from heapq import heappop, heappush
from itertools import pairwise
from pathlib import Path
from typing import Any

from curtsy.tinyweb import web
from curtsy.tinyweb.accesslog import Line, read

#: with several requests in flight, those that were granted when the host asks for a pause may start this much later
_GRANTED_US = 300_000


@dataclass(frozen=True, slots=True, kw_only=True)
class HostVerdict:
    """The requests of one host. Counts exclude what is within the tolerance; the largest values are as measured."""

    host: str
    requests: int
    #: the required delay: of the crawl, or of robots.txt if that is longer
    delay_s: float
    #: requests that began while as many others as are allowed had not ended
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
    #: subresources requested during a visit of another page, or without a visit
    strays: tuple[str, ...]
    #: requests before robots.txt was answered; not a violation, because a crawler may know it from before
    before_robots: int

    @property
    def ok(self) -> bool:
        counted = self.overlaps or self.shortfalls or self.too_soon
        return not (counted or self.robots_violations or self.unwanted or self.strays)


def _sum(name: str) -> Any:
    return property(lambda self: sum(getattr(host, name) for host in self.hosts))


def _count(name: str) -> Any:
    return property(lambda self: sum(len(getattr(host, name)) for host in self.hosts))


def _max(name: str) -> Any:
    return property(lambda self: max((getattr(host, name) for host in self.hosts), default=0.0))


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The verdict over a whole log."""

    hosts: tuple[HostVerdict, ...]

    requests = _sum("requests")
    overlaps = _sum("overlaps")
    shortfalls = _sum("shortfalls")
    too_soon = _sum("too_soon")
    before_robots = _sum("before_robots")
    robots_violations = _count("robots_violations")
    unwanted = _count("unwanted")
    strays = _count("strays")
    largest_overlap_ms = _max("largest_overlap_ms")
    largest_shortfall_ms = _max("largest_shortfall_ms")

    @property
    def ok(self) -> bool:
        return all(host.ok for host in self.hosts)

    def summary(self) -> dict[str, object]:
        """For display and for --json: totals, and the hosts with violations."""
        totals = (
            "ok", "requests", "overlaps", "largest_overlap_ms", "shortfalls", "largest_shortfall_ms", "too_soon",
            "robots_violations", "unwanted", "strays", "before_robots",
        )  # fmt: skip
        guilty = [asdict(host) for host in self.hosts if not host.ok]
        return {name: getattr(self, name) for name in totals} | {"hosts": len(self.hosts), "guilty": guilty}


def judge(
    log: Path | str | Iterable[Line], delay_s: float, tolerance_ms: float = 50.0, *, starts_only: bool = False,
    per_host: int = 1,
) -> Verdict:  # fmt: skip
    """Return the verdict over a log (a file, or its lines).

    `per_host` requests may be in flight at once. With more than one, other requests may have been granted when the host
    asks for a pause: those count from 0.3 s after that answer.

    With `starts_only`, overlaps are not counted: a crawler stopped by SIGSTOP cannot close a connection that a hanging
    server keeps open, so only what was sent can be judged.
    """
    lines = read(log) if isinstance(log, Path | str) else log
    by_host: defaultdict[str, list[Line]] = defaultdict(list)
    for line in lines:
        if line.host != "-":
            by_host[line.host].append(line)
    return Verdict(
        hosts=tuple(
            _judge_host(
                host, sorted(found, key=lambda line: line.start_us), delay_s, tolerance_ms, starts_only, per_host
            )
            for host, found in sorted(by_host.items())
        )
    )


def _judge_host(
    host: str, lines: list[Line], delay_s: float, tolerance_ms: float, starts_only: bool, per_host: int
) -> HostVerdict:
    name = lines[0].name
    delay_s = max(delay_s, web.crawl_delay_s(name) or 0.0)
    overlaps = [] if starts_only else _overlaps_ms(lines, per_host)
    shortfalls = _shortfalls_ms(lines, delay_s, starts_only)
    too_soon = _too_soon_ms(lines, _GRANTED_US if per_host > 1 else 0)
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


def _overlaps_ms(lines: list[Line], per_host: int) -> list[float]:
    """By how much each request began before one of the allowed number had ended."""
    found: list[float] = []
    latest_us: list[int] = []
    for line in lines:
        if len(latest_us) == per_host:
            free_us = heappop(latest_us)
            if line.start_us < free_us:
                found.append((free_us - line.start_us) / 1000)
                heappush(latest_us, max(free_us, line.end_us))
                continue
        heappush(latest_us, line.end_us)
    return found


def _shortfalls_ms(lines: list[Line], delay_s: float, starts_only: bool) -> list[float]:
    """A visit and its subresources are one request: the delay runs from the end of the last subresource."""
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
    """A visit that has ended, by its worker's crash or its slot's expiry, must load nothing more."""
    found, visited = [], None
    for line in lines:
        page = _page_of(line)
        if page is None:
            visited = line.path
        elif visited is None or (page != "*" and page != visited):
            found.append(f"{line.method} {line.path} after {visited or 'nothing'}")
    return tuple(found)


def _too_soon_ms(lines: list[Line], granted_us: int) -> list[float]:
    found, until_us, asked_us = [], 0, 0
    for line in lines:
        # A request that was in flight when the host asked for a pause is an overlap, not a violation.
        if asked_us + granted_us <= line.start_us < until_us:
            found.append((until_us - line.start_us) / 1000)
        if line.hold_until_us > until_us:
            until_us, asked_us = line.hold_until_us, line.end_us
    return found


def _before_robots(lines: list[Line]) -> int:
    """Count requests that began before the first answer to robots.txt that determines the rules."""
    answered = [line.end_us for line in lines if line.path == "/robots.txt" and _determines_rules(line.status)]
    known_us = min(answered, default=None)
    asked = [line for line in lines if not web.holds_rules(line.name, line.path)]
    return sum(known_us is None or line.start_us < known_us for line in asked)


def _determines_rules(status: int) -> bool:
    return 200 <= status < 500 and status != 429


def main(argv: Sequence[str] | None = None) -> int:
    """Return exit code 0 for a clean log, 1 for violations or an empty log, 2 if the log cannot be read."""
    parser = argparse.ArgumentParser(
        prog="python -m curtsy.tinyweb.politeness_check", description="Was the crawler polite?"
    )
    parser.add_argument("log", type=Path)
    parser.add_argument("--delay", type=float, required=True, help="seconds between two starts on a host")
    parser.add_argument("--tolerance-ms", type=float, default=50.0)
    parser.add_argument("--per-host", type=int, default=1, help="requests that may be in flight to a host at once")
    parser.add_argument("--starts-only", action="store_true", help="judge what was sent, not open connections")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(argv)
    try:
        verdict = judge(
            options.log, options.delay, options.tolerance_ms, starts_only=options.starts_only,
            per_host=options.per_host,
        )  # fmt: skip
    except OSError as error:
        print(f"{options.log} cannot be read: {error.strerror}.", file=sys.stderr)
        return 2
    # An empty log proves nothing.
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
    print(f"subresources without their visit {verdict.strays}")
    print(f"requests before robots.txt was answered {verdict.before_robots}")
    for host in verdict.hosts:
        if not host.ok:
            print(f"  {host}")
    print("NOTHING TO JUDGE" if not verdict.requests else "clean" if verdict.ok else "NOT CLEAN")


if __name__ == "__main__":
    sys.exit(main())
