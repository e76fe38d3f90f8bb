"""Checks seeds while they are typed: which ones are valid, why others are not, and how long the crawl takes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from curtsy.control import seeds
from curtsy.core.errors import RefusedSeeds
from curtsy.core.settings import Settings
from curtsy.rules.urls import host_key
from curtsy.web.dashboard import words

#: the API accepts more, as NDJSON
MOST = 100_000
#: refused seeds listed on the page
_NAMED = 12


@dataclass(slots=True, kw_only=True)
class Checked:
    """The result of a check."""

    urls: list[str] = field(default_factory=list)
    #: (line, seed, why)
    refused: list[tuple[int, str, str]] = field(default_factory=list)
    refused_in_all: int = 0
    #: refused lines after the first MOST seeds, which were not checked
    beyond: int = 0
    #: (line, URL)
    twice: list[tuple[int, str]] = field(default_factory=list)
    twice_in_all: int = 0
    hosts: Counter[str] = field(default_factory=Counter)
    #: request rate and duration, in words
    pace: str = ""


def lines_of(text: str) -> list[str]:
    """One seed per line. `check` ignores blank lines and lines that start with #."""
    return [line.strip() for line in text.splitlines()]


def check(lines: Iterable[str], settings: Settings) -> Checked:
    """Check each line; line numbers refer to the text."""
    found = Checked()
    seen: set[str] = set()
    for at, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            continue
        if len(found.urls) >= MOST:
            found.refused_in_all += 1
            found.beyond += 1
            if len(found.refused) < _NAMED:
                found.refused.append((at, line, f"more than {MOST:,} seeds: send them to the API as NDJSON"))
            continue
        try:
            (url,) = seeds.checked([line if "://" in line else f"https://{line}"], settings, "{}")
        except RefusedSeeds as error:
            found.refused_in_all += 1
            if len(found.refused) < _NAMED:
                found.refused.append((at, line, error.refused[0][1]))
            continue
        if url in seen:
            found.twice_in_all += 1
            if len(found.twice) < _NAMED:
                found.twice.append((at, url))
            continue
        seen.add(url)
        found.urls.append(url)
        found.hosts[host_key(url, settings.politeness_unit)] += 1
    return found


def pace(found: Checked, delay_s: float, per_host: int, max_pages: int | None) -> str:
    """`About 1 request per second to each of 312 sites: 40 minutes for 10,000 pages.`"""
    sites = len(found.hosts)
    if not sites:
        return ""
    each = "to this site" if sites == 1 else f"to each of {sites:,} sites"
    if not delay_s:
        rate = f"As fast as the sites answer, {words.count(per_host, 'request')} at a time {each}"
        return f"{rate}. Use this for your own sites only."
    if delay_s >= 1:
        often = "About 1 request per second" if delay_s == 1 else f"About 1 request every {words.span(delay_s)}"
    else:
        often = f"About {words.rate(1 / delay_s).rstrip('0').rstrip('.')} requests per second"
    seconds_s = max(found.hosts.values()) * delay_s
    text = f"{often} {each}: {words.span(max(1, seconds_s))} for the seeds alone"
    if max_pages is None:
        return f"{text}. Every further page adds the delay of its site. Without a limit, it ends with the last link."
    whole_s = max(seconds_s, max_pages * delay_s / sites)
    return f"{often} {each}: {words.span(max(1, whole_s))} for {max_pages:,} pages, if the pages are spread evenly."
