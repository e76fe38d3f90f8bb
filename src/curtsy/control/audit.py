"""Was the crawl polite? The request log judged row by row, one host's open requests in memory at a time.

What is judged, for each unit of politeness (host):
    overlaps           requests that began while as many as `per_host` were under way
    early              requests that began sooner than the delay in force after the one before: after its start, or,
                       where one at a time is allowed, after its end if we broke it off or only presume that it was sent
    robots_violations  pages or sitemaps asked for although the rules in force forbid them, or before any were asked for
A browser's visit is one request, and the delay runs from its end. What it loads (`subresources`, those of other hosts
than its own apart) is counted, and judged by the robots rules that are stored; it is neither early nor an overlap.
Requests of guests (`guests`: Scrapy's, Airflow's) overlap and are early like all others; robots.txt is the guests' own
business, so it is not judged.
What cannot be judged is counted as `unaccounted` (the rules in force then are no longer stored, or a page has no row in
the log); `gaps` are losses of Valkey, whose requests under way are not in the log: the quiet time after each keeps them
apart from what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import attrgetter

from curtsy.core.model import SUBRESOURCE, Kind, Request, RobotsState
from curtsy.core.outcome import BROKEN_OFF
from curtsy.rules.robots import Robots
from curtsy.rules.urls import origin

#: kind of what guests asked for; as in `curtsy.crawl.external_slots`, which would bring the whole frontier along
GUEST = "g"
#: findings kept to show; all are counted
MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violation, for people."""

    what: str
    host: str
    url: str
    start_ms: int
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What `curtsy audit` found."""

    requests: int
    hosts: int
    overlaps: int
    early: int
    robots_violations: int
    presumed: int
    unaccounted: int
    gaps: int
    #: shortest time between the starts of two requests to one host; None if no host was asked twice
    min_gap_s: float | None
    #: pages that a browser visited, what it loaded for them, and how much of that from other hosts than the page's own
    visits: int = 0
    subresources: int = 0
    third_party: int = 0
    third_hosts: int = 0
    #: requests that others made in a turn of ours: their robots rules are not ours to judge
    guests: int = 0
    findings: tuple[Finding, ...] = ()

    @property
    def polite(self) -> bool:
        return not (self.overlaps or self.early or self.robots_violations)

    def document(self) -> dict[str, object]:
        """The fields of `audit --json`."""
        fields = asdict(self)
        del fields["findings"]
        return fields


@dataclass(slots=True)
class _Tally:
    requests: int = 0
    hosts: int = 0
    overlaps: int = 0
    early: int = 0
    robots_violations: int = 0
    presumed: int = 0
    unaccounted: int = 0
    gaps: int = 0
    visits: int = 0
    subresources: int = 0
    third_party: int = 0
    third_hosts: int = 0
    guests: int = 0
    min_gap_ms: int | None = None
    findings: list[Finding] = field(default_factory=list)

    def find(self, what: str, row: Request, detail: str) -> None:
        setattr(self, what, getattr(self, what) + 1)
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(what=what, host=row.host, url=row.url, start_ms=row.start_ms, detail=detail))


class _Times:
    """The open requests of one host, and the moment its delay counts from."""

    def __init__(self) -> None:
        #: fence -> (end_ms, delay counts from the end)
        self._under_way: dict[int, tuple[int, bool]] = {}
        self._last_start_ms: int | None = None
        self._counts_from_ms: int | None = None

    def judge(self, row: Request, tally: _Tally) -> None:
        self._forget_ended(row.start_ms)
        known = self._under_way.get(row.fence)
        from_end = row.nature == "presumed" or row.fault in BROKEN_OFF or row.kind == Kind.BROWSER
        if known is not None:
            # A slot that expired and what its worker told later: one request in two rows.
            self._under_way[row.fence] = (max(known[0], row.end_ms), known[1] or from_end)
            return
        if len(self._under_way) >= row.per_host:
            tally.find("overlaps", row, f"{len(self._under_way)} under way, {row.per_host} allowed")
        self._judge_delay(row, tally)
        self._under_way[row.fence] = (row.end_ms, from_end)
        self._last_start_ms = row.start_ms
        self._count_from(row.start_ms)

    def _judge_delay(self, row: Request, tally: _Tally) -> None:
        if self._last_start_ms is None or self._counts_from_ms is None:
            return
        gap_ms = row.start_ms - self._last_start_ms
        tally.min_gap_ms = gap_ms if tally.min_gap_ms is None else min(gap_ms, tally.min_gap_ms)
        # Where several are allowed, the turn after one that was broken off may have been given out before its end.
        waited_ms = row.start_ms - (self._counts_from_ms if row.per_host == 1 else self._last_start_ms)
        if waited_ms < row.delay_ms:
            tally.find("early", row, f"{waited_ms} ms after the one before, {row.delay_ms} ms asked for")

    def _forget_ended(self, now_ms: int) -> None:
        for fence in [fence for fence, (end_ms, _) in self._under_way.items() if end_ms <= now_ms]:
            end_ms, from_end = self._under_way.pop(fence)
            if from_end:
                self._count_from(end_ms)

    def _count_from(self, at_ms: int) -> None:
        self._counts_from_ms = at_ms if self._counts_from_ms is None else max(at_ms, self._counts_from_ms)


class _Rules:
    """The robots rules of one host's origins, as far as the store still has them."""

    def __init__(self, stored: Callable[[str], RobotsState | None], agent: str) -> None:
        self._stored = stored
        self._agent = agent
        self._asked: set[str] = set()
        self._known: dict[str, tuple[RobotsState | None, Robots | None]] = {}

    def judge(self, row: Request, tally: _Tally) -> None:
        if not row.url:  # a slot that expired: what it was used for, if anything, is not known
            return
        where = origin(row.url)
        if row.kind == Kind.ROBOTS:
            if row.url == f"{where}/robots.txt":  # not where a redirected one led to
                self._asked.add(where)
            return
        if row.nature != "sent":
            return
        state, rules = self._of(where)
        # Of other hosts a visit asks for the rules by itself: what is not stored is not judged.
        unknown = state is None or rules is None or state.fetched_ms > row.start_ms
        if row.kind == SUBRESOURCE and (unknown or row.url == f"{where}/robots.txt"):
            return
        if state is None or state.fetched_ms > row.start_ms:
            if where in self._asked:
                tally.unaccounted += 1
            else:
                tally.find("robots_violations", row, f"{where}/robots.txt had not been asked for")
        elif state.verdict == "forbid" or (rules is not None and not rules.allows(row.url, self._agent)):
            tally.find("robots_violations", row, f"forbidden by {where}/robots.txt")

    def _of(self, where: str) -> tuple[RobotsState | None, Robots | None]:
        if where not in self._known:
            state = self._stored(where)
            rules = Robots.parse(state.body) if state is not None and state.verdict == "rules" else None
            self._known[where] = (state, rules)
        return self._known[where]


def judge(
    rows: Iterable[Request],
    rules: Callable[[str], RobotsState | None],
    agent: str,
    *,
    pages_without_request: int = 0,
) -> Verdict:
    """Judge rows that come ordered by host, then start."""
    tally = _Tally(unaccounted=pages_without_request)
    for _host, of_host in groupby(rows, key=attrgetter("host")):
        if _judge_host(of_host, _Rules(rules, agent), tally):
            tally.hosts += 1
    gap_s = None if tally.min_gap_ms is None else tally.min_gap_ms / 1000
    return Verdict(
        requests=tally.requests,
        hosts=tally.hosts,
        overlaps=tally.overlaps,
        early=tally.early,
        robots_violations=tally.robots_violations,
        presumed=tally.presumed,
        unaccounted=tally.unaccounted,
        gaps=tally.gaps,
        min_gap_s=gap_s,
        visits=tally.visits,
        subresources=tally.subresources,
        third_party=tally.third_party,
        third_hosts=tally.third_hosts,
        guests=tally.guests,
        findings=tuple(tally.findings),
    )


def _judge_host(rows: Iterator[Request], rules: _Rules, tally: _Tally) -> bool:
    """True if the host was asked at all."""
    times = _Times()
    before, others_before = tally.requests, tally.third_party
    visits: set[int] = set()
    for row in rows:
        if row.nature == "gap":
            tally.gaps += 1
            continue
        if row.kind == SUBRESOURCE:
            tally.subresources += 1
            tally.third_party += row.fence not in visits
            rules.judge(row, tally)
            continue
        if row.kind == Kind.BROWSER:
            tally.visits += 1
            visits.add(row.fence)
        tally.requests += 1
        tally.presumed += row.nature == "presumed"
        times.judge(row, tally)
        if row.kind == GUEST:
            tally.guests += 1
        else:
            rules.judge(row, tally)
    tally.third_hosts += tally.third_party > others_before
    return tally.requests > before


def coverage(verdict: Verdict) -> list[str]:
    """What the verdict covers and what it does not, in sentences."""
    lines = [
        f"Judged: {verdict.requests} requests to {verdict.hosts} hosts, by the times that set the hosts' next turn."
    ]
    if verdict.visits:
        lines.append(
            f"Visits of a browser among them: {verdict.visits}, which loaded {verdict.subresources} subresources, "
            f"{verdict.subresources - verdict.third_party} from the visited hosts, one at a time within the visit, and "
            f"{verdict.third_party} from {verdict.third_hosts} other hosts."
        )
    if verdict.guests:
        lines.append(
            f"By guests among them: {verdict.guests} (Scrapy, Airflow), judged by their times: robots.txt is their own "
            "business."
        )
    if verdict.presumed:
        lines.append(
            f"{verdict.presumed} of them are presumed: their worker vanished, so they count from lease to expiry."
        )
    if verdict.gaps:
        lines.append(
            f"Valkey was lost {verdict.gaps} times: requests under way then may be missing here; the quiet time after "
            "each loss keeps them apart from later ones."
        )
    if verdict.unaccounted:
        lines.append(f"Not judged: {verdict.unaccounted} requests whose robots rules or log rows are no longer stored.")
    return lines
