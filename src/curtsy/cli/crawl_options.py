"""What one may wish of a crawl: options of `crawl`, `submit` and `schedules add`, each with one text."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.core.errors import UsageError

#: what stands for the value, and what the option does
_TEXTS = {
    "--scope": ("host|domain|any", "Which links belong to it."),
    "--include": ("RE", "Only URLs that match one of these (RE2)."),
    "--exclude": ("RE", "No URLs that match one of these (RE2)."),
    "--max-pages": ("N", "End after N pages."),
    "--max-depth": ("N", "At most N links from a seed."),
    "--delay": ("S", "Seconds between requests to a host."),
    "--per-host": ("N", "Requests under way at once to a host."),
    "--sitemaps/--no-sitemaps": (None, "Use the sitemaps that robots.txt names."),
    "--cookies": (None, "Keep a cookie jar per host."),
    "--render": ("never|auto|always", "Show pages in a browser: all, or those that need it."),
}


def _told(flags: str, **more: Any) -> Any:
    metavar, text = _TEXTS[flags]
    return typer.Option(flags, **{"metavar": metavar, "help": text} | more)


# Seeds

Urls = Annotated[list[str] | None, typer.Argument(metavar="URL...", help="Where to begin.", show_default=False)]
UrlsOfRuns = Annotated[
    list[str] | None, typer.Argument(metavar="URL...", help="Where each run begins.", show_default=False)
]
From = Annotated[Path | None, typer.Option("--from", metavar="FILE", help="Seeds, one per line; - for standard input.")]

# What a crawl is handed in with: whoever takes it judges the values.

Lane = Annotated[str, typer.Option("--lane", metavar="high|batch", help="`high` is served at once.")]
Scope = Annotated[str, _told("--scope")]
Include = Annotated[list[str] | None, _told("--include")]
Exclude = Annotated[list[str] | None, _told("--exclude")]
MaxPages = Annotated[int | None, _told("--max-pages")]
MaxDepth = Annotated[int | None, _told("--max-depth")]
Delay = Annotated[float | None, _told("--delay")]
PerHost = Annotated[int | None, _told("--per-host")]
Sitemaps = Annotated[bool, _told("--sitemaps/--no-sitemaps")]
Cookies = Annotated[bool, _told("--cookies")]
Render = Annotated[str, _told("--render")]
ProxyPool = Annotated[str | None, typer.Option("--proxy-pool", metavar="NAME", help="A pool of the setting `proxies`.")]
Webhook = Annotated[
    str | None, typer.Option("--webhook", metavar="URL", help="Gets a signed POST when the crawl has ended.")
]
WebhookOfRuns = Annotated[
    str | None, typer.Option("--webhook", metavar="URL", help="Gets a signed POST when a run has ended.")
]

# `crawl` does the work itself. It judges numbers at once, and its defaults are told and not set: a crawl that is
# resumed keeps what it has, and only what was really given may change it.

GivenScope = Annotated[str | None, _told("--scope", show_default="host")]
GivenPages = Annotated[int | None, _told("--max-pages", min=1, max=10**12)]
GivenDepth = Annotated[int | None, _told("--max-depth", min=0, max=10**6)]
GivenDelay = Annotated[float | None, _told("--delay", min=0, max=86400)]
GivenPerHost = Annotated[int | None, _told("--per-host", min=1, max=64)]
GivenLane = Annotated[
    str | None, typer.Option("--lane", metavar="high|batch|slow", help="Pool of work.", show_default="batch")
]
GivenRender = Annotated[
    str | None,
    _told(
        "--render",
        help="Show pages in a browser: those that say nothing without one (auto), or all.",
        show_default="never",
    ),
]
GivenSitemaps = Annotated[bool | None, _told("--sitemaps/--no-sitemaps", show_default="sitemaps")]
GivenCookies = Annotated[bool | None, _told("--cookies")]
DemoRender = Annotated[str | None, _told("--render", help="Show pages in a browser.")]

_CHOICES = {
    "scope": ("host", "domain", "any"),
    "lane": ("high", "batch", "slow"),
    "render": ("never", "auto", "always"),
}


def fields(**given: Any) -> dict[str, Any]:
    """The crawl's fields that options name; what was left out is not among them."""
    return {name: value for name, value in given.items() if value is not None}


def possible(wishes: dict[str, Any]) -> dict[str, Any]:
    """The same fields, if a process that crawls by itself can heed them."""
    if not wishes.get("delay_s", 0) >= 0:  # also what is no number at all
        raise UsageError("--delay takes a number of seconds, for example 0.5.")
    for name, allowed in _CHOICES.items():
        if wishes.get(name, allowed[0]) not in allowed:
            raise UsageError(f"--{name} {wishes[name]} is not possible here. Use {' or '.join(allowed)}.")
    return wishes
