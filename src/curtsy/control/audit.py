"""Judge whether a crawl was polite, from its request log, row by row. Memory holds one host's open requests at a time.

For each unit of politeness (host) it counts:
    overlaps           requests that began while `per_host` others were in flight
    early              requests that began before the delay in force had passed since the previous one: since its start,
                       or, with one request at a time, since its end if we aborted it or only presume that it was sent
    robots_violations  pages or sitemaps requested although the rules in force disallow them, or before robots.txt
A browser visit is one request, and the delay runs from its end. The subresources that it loads are counted, and judged
by the stored robots rules; they are neither early nor overlaps.
Requests of external clients (`external_requests`: Scrapy, Airflow) are judged by their times only, because these
clients apply robots.txt themselves.
`unaccounted` counts what cannot be judged: the rules in force then are no longer stored, or a page has no row in the
log. `gaps` counts losses of Valkey: requests in flight at that moment are not in the log, and the quiet period after
each loss separates them from later requests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from itertools import groupby
from operator import attrgetter

from curtsy.core.model import SUBRESOURCE, Kind, Request, RobotsState
from curtsy.core.outcome import BROKEN_OFF
from curtsy.rules import robots_policy
from curtsy.rules.robots import Robots
from curtsy.rules.urls import origin

#: the request kind of external clients, as in `curtsy.crawl.external_slots`, which would import the whole frontier
EXTERNAL = "g"
#: findings kept for display; all are counted
MAX_FINDINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One violation, for display."""

    what: str
    host: str
    url: str
    start_ms: int
    detail: str


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What `curtsy audit` found."""

    requests: int = 0
    hosts: int = 0
    overlaps: int = 0
    early: int = 0
    robots_violations: int = 0
    presumed: int = 0
    unaccounted: int = 0
    gaps: int = 0
    #: shortest time between the starts of two requests to one host; None if no host was requested twice
    min_gap_s: float | None = None
    #: pages that a browser visited, the subresources it loaded, and how many of these came from other hosts
    visits: int = 0
    subresources: int = 0
    third_party: int = 0
    third_hosts: int = 0
    #: requests of external clients, whose robots rules are not judged
    external_requests: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def polite(self) -> bool:
        return not (self.overlaps or self.early or self.robots_violations)

    def document(self) -> dict[str, object]:
        """The fields of `audit --json`."""
        fields = asdict(self)
        del fields["findings"]
        return fields | {"guests": self.external_requests}  # the deprecated name of `external_requests`

    def find(self, what: str, row: Request, detail: str) -> None:
        setattr(self, what, getattr(self, what) + 1)
        if len(self.findings) < MAX_FINDINGS:
            self.findings.append(Finding(what=what, host=row.host, url=row.url, start_ms=row.start_ms, detail=detail))


class _Times:
    """The open requests of one host, and the time from which its delay counts."""

    def __init__(self) -> None:
        #: fence -> (end_ms, delay counts from the end)
        self._under_way: dict[int, tuple[int, bool]] = {}
        self._last_start_ms: int | None = None
        self._counts_from_ms: int | None = None

    def judge(self, row: Request, verdict: Verdict) -> None:
        self._forget_ended(row.start_ms)
        known = self._under_way.get(row.fence)
        from_end = row.nature == "presumed" or row.fault in BROKEN_OFF or row.kind == Kind.BROWSER
        if known is not None:
            # The slot expired and its worker reported later: one request in two rows.
            self._under_way[row.fence] = (max(known[0], row.end_ms), known[1] or from_end)
            return
        if len(self._under_way) >= row.per_host:
            verdict.find("overlaps", row, f"{len(self._under_way)} in flight, {row.per_host} allowed")
        self._judge_delay(row, verdict)
        self._under_way[row.fence] = (row.end_ms, from_end)
        self._last_start_ms = row.start_ms
        self._count_from(row.start_ms)

    def _judge_delay(self, row: Request, verdict: Verdict) -> None:
        if self._last_start_ms is None or self._counts_from_ms is None:
            return
        gap_s = (row.start_ms - self._last_start_ms) / 1000
        verdict.min_gap_s = gap_s if verdict.min_gap_s is None else min(gap_s, verdict.min_gap_s)
        # With several slots, the slot after an aborted request may have been granted before that request ended.
        waited_ms = row.start_ms - (self._counts_from_ms if row.per_host == 1 else self._last_start_ms)
        if waited_ms < row.delay_ms:
            verdict.find("early", row, f"{waited_ms} ms after the previous request, delay {row.delay_ms} ms")

    def _forget_ended(self, now_ms: int) -> None:
        for fence in [fence for fence, (end_ms, _) in self._under_way.items() if end_ms <= now_ms]:
            end_ms, from_end = self._under_way.pop(fence)
            if from_end:
                self._count_from(end_ms)

    def _count_from(self, at_ms: int) -> None:
        self._counts_from_ms = at_ms if self._counts_from_ms is None else max(at_ms, self._counts_from_ms)


class _Rules:
    """The robots rules of one host's origins, as far as they are still stored."""

    def __init__(self, stored: Callable[[str], RobotsState | None], agent: str) -> None:
        self._stored = stored
        self._agent = agent
        self._asked: set[str] = set()
        self._known: dict[str, tuple[RobotsState | None, Robots | None]] = {}

    def judge(self, row: Request, verdict: Verdict) -> None:
        if not row.url:  # an expired slot: whether and for what it was used is unknown
            return
        where = origin(row.url)
        if row.kind == Kind.ROBOTS:
            if row.url == f"{where}/robots.txt":  # not the target of a redirect
                self._asked.add(where)
            return
        if row.nature != "sent":
            return
        state, rules = self._of(where)
        # A visit requests the rules of other hosts itself; what is not stored is not judged.
        unknown = state is None or rules is None or state.fetched_ms > row.start_ms
        if row.kind == SUBRESOURCE and (unknown or row.url == f"{where}/robots.txt"):
            return
        if state is None or state.fetched_ms > row.start_ms:
            if where in self._asked:
                verdict.unaccounted += 1
            else:
                verdict.find("robots_violations", row, f"{where}/robots.txt had not been requested")
        elif state.verdict == "forbid" or (rules is not None and not rules.allows(row.url, self._agent)):
            verdict.find("robots_violations", row, f"disallowed by {where}/robots.txt")

    def _of(self, where: str) -> tuple[RobotsState | None, Robots | None]:
        if where not in self._known:
            state = self._stored(where)
            rules = robots_policy.parsed(state)
            self._known[where] = (state, rules)
        return self._known[where]


def judge(
    rows: Iterable[Request],
    rules: Callable[[str], RobotsState | None],
    agent: str,
    *,
    pages_without_request: int = 0,
) -> Verdict:
    """Judge rows, ordered by host and then by start."""
    verdict = Verdict(unaccounted=pages_without_request)
    for _host, of_host in groupby(rows, key=attrgetter("host")):
        verdict.hosts += _judge_host(of_host, _Rules(rules, agent), verdict)
    return verdict


def _judge_host(rows: Iterator[Request], rules: _Rules, verdict: Verdict) -> bool:
    """Return True if the host received any request."""
    times = _Times()
    before, others_before = verdict.requests, verdict.third_party
    visits: set[int] = set()
    for row in rows:
        if row.nature == "gap":
            verdict.gaps += 1
            continue
        if row.kind == SUBRESOURCE:
            verdict.subresources += 1
            verdict.third_party += row.fence not in visits
            rules.judge(row, verdict)
            continue
        if row.kind == Kind.BROWSER:
            verdict.visits += 1
            visits.add(row.fence)
        verdict.requests += 1
        verdict.presumed += row.nature == "presumed"
        times.judge(row, verdict)
        if row.kind == EXTERNAL:
            verdict.external_requests += 1
        else:
            rules.judge(row, verdict)
    verdict.third_hosts += verdict.third_party > others_before
    return verdict.requests > before


def coverage(verdict: Verdict) -> list[str]:
    """Say in sentences what the verdict covers and what it does not."""
    lines = [f"Checked: {verdict.requests} requests to {verdict.hosts} hosts."]
    if verdict.visits:
        lines.append(
            f"Browser visits among them: {verdict.visits}. They loaded {verdict.subresources} subresources: "
            f"{verdict.subresources - verdict.third_party} from the visited hosts, one at a time within the visit, and "
            f"{verdict.third_party} from {verdict.third_hosts} other hosts."
        )
    if verdict.external_requests:
        lines.append(
            f"Requests of external clients (Scrapy, Airflow) among them: {verdict.external_requests}. Only their "
            "times are judged; these clients apply robots.txt themselves."
        )
    if verdict.presumed:
        lines.append(
            f"Presumed requests among them: {verdict.presumed}. Their worker disappeared, so they count from lease to "
            "expiry."
        )
    if verdict.gaps:
        lines.append(
            f"Valkey was lost {verdict.gaps} times. Requests in flight at that moment may be missing here; the quiet "
            "time after each loss separates them from later requests."
        )
    if verdict.unaccounted:
        lines.append(f"Not judged: {verdict.unaccounted} requests whose robots rules or log rows are no longer stored.")
    return lines
