"""The options of a crawl, declared once for `crawl`, `submit` and `schedules add`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from copy import copy
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

import typer

from curtsy.cli.commands import replaced
from curtsy.control.crawl_request import FIELDS, CrawlRequest, request_from
from curtsy.core.errors import UsageError
from curtsy.core.settings_loading import crawl_table

Urls = Annotated[list[str] | None, typer.Argument(metavar="URL", help="Seeds: the first URLs of the crawl.")]
From = Annotated[Path | None, typer.Option("--from", metavar="FILE", help="Seeds, one per line; - reads stdin.")]


def _option(kind: Any, flag: str, panel: str, metavar: str | None, text: str, default: str | bool = True) -> Any:
    return Annotated[kind, typer.Option(flag, metavar=metavar, help=text, show_default=default, rich_help_panel=panel)]


_TEXTS, _TEXT, _NUMBER, _SECONDS, _FLAG = list[str] | None, str | None, int | None, float | None, bool | None
#: field of a CrawlRequest -> its option. All default to None: only options that were used are sent, or change a crawl
#: that is resumed.
_OPTIONS = {
    "scope": _option(_TEXT, "--scope", "Scope", "NAME", "Follow links: host, domain or any.", "host"),
    "include": _option(_TEXTS, "--include", "Scope", "REGEX", "Only URLs that match (RE2); may be repeated."),
    "exclude": _option(_TEXTS, "--exclude", "Scope", "REGEX", "No URLs that match (RE2); may be repeated."),
    "max_pages": _option(_NUMBER, "--max-pages", "Scope", "N", "Stop after N pages.", "no limit"),
    "max_depth": _option(_NUMBER, "--max-depth", "Scope", "N", "Follow links at most N steps from a seed.", "no limit"),
    "sitemaps": _option(_FLAG, "--sitemaps/--no-sitemaps", "Scope", None, "Read sitemaps.", "--sitemaps"),
    "delay_s": _option(
        _SECONDS, "--delay", "Politeness", "SECONDS", "Minimum seconds between requests to a host.", "1"
    ),
    "per_host": _option(_NUMBER, "--per-host", "Politeness", "N", "Maximum concurrent requests to a host.", "1"),
    "lane": _option(_TEXT, "--lane", "Politeness", "LANE", "Priority: high, batch or slow.", "batch"),
    "render": _option(_TEXT, "--render", "Rendering", "WHEN", "Use a browser: never, auto or always.", "never"),
    "cookies": _option(_FLAG, "--cookies", "Network", None, "Keep a cookie jar per host."),
    "proxy_pool": _option(_TEXT, "--proxy-pool", "Network", "NAME", "Use this pool of the setting `proxies`."),
    "schema": _option(_TEXT, "--schema", "Records", "SCHEMA", "Extract records: a name, module:Class or FILE.json."),
    "rubric": _option(_TEXT, "--rubric", "Records", "RUBRIC", "Score records: a name, FILE.toml or module:function."),
    "llm": _option(_TEXT, "--llm", "Records", "MODEL", "Language model: none, local or endpoint.", "from settings"),
    "verify": _option(
        _FLAG, "--verify/--no-verify", "Records", None, "Let the model verify values that patterns found."
    ),
    "judge_model": _option(
        _TEXT, "--judge-model", "Records", "NAME", "A second model that checks whom values are about, or none."
    ),
    "name": _option(_TEXT, "--name", "Output", "TEXT", "Name of the crawl."),
    "tags": _option(_TEXTS, "--tag", "Output", "TAG", "Tag of the crawl, for searching; may be repeated."),
    "webhook": _option(_TEXT, "--webhook", "Output", "URL", "Send a signed POST to URL when the crawl ends."),
}
_NAMES = {"delay_s": "--delay", "max_pages": "--max-pages", "max_depth": "--max-depth", "per_host": "--per-host",
          "proxy_pool": "--proxy-pool", "judge_model": "--judge-model", "tags": "--tag"}  # fmt: skip


def with_crawl_options(command: Callable[..., None], *, defaults: bool = True) -> Callable[..., None]:
    """Adds the options of a crawl to a command, which gets those that were used as its argument `options`.

    An option whose name is a parameter of the command is left out: a schedule has a name of its own. The help has no
    defaults if the command changes an existing crawl or schedule.
    """
    own = inspect.signature(command).parameters
    offered = {
        name: (note if defaults else _without_default(note), None) for name, note in _OPTIONS.items() if name not in own
    }

    def used(**values: Any) -> dict[str, Any]:
        return {name: value for name, value in values.items() if value not in (None, [])}

    return replaced(command, "options", offered, used)


def _without_default(note: Any) -> Any:
    kind, option = get_args(note)
    option = copy(option)
    option.show_default = False
    return Annotated[kind, option]


class Project(NamedTuple):
    """What the table [crawl] of the settings file says."""

    options: dict[str, Any]
    seeds: Path | None
    out: str | None


def project_of(config: Path | None) -> Project:
    """The project of this folder, or of --config; UsageError for a name that is not an option of a crawl."""
    table = crawl_table(config)
    known = {"seeds", "out", *FIELDS}
    for name in table:
        if name not in known:
            raise UsageError(f"[crawl] of the settings file has no option {name!r}. Use: {', '.join(sorted(known))}.")
    options = {name: value for name, value in table.items() if name not in ("seeds", "out")}
    return Project(options, Path(table["seeds"]) if "seeds" in table else None, table.get("out"))


def request_of(options: dict[str, Any]) -> CrawlRequest:
    """The request of these options; an error names the option as it is written."""
    return request_from(options, "--{}", **_NAMES)
