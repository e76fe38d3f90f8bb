"""Options that several commands share, and how they become settings and an open store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from curtsy.cli.show import note
from curtsy.control.hosts import resolve_host
from curtsy.core import observe
from curtsy.core.errors import SettingsError
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load, strays
from curtsy.store import crawls
from curtsy.store.engine import Store

Config = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Settings in TOML, or a built-in profile: tinyweb.toml."),
]
DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", metavar="DIR", help="Folder of database, segments and embedded server."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
WhichCrawl = Annotated[
    str, typer.Argument(metavar="CRAWL", help="Id of a crawl, its beginning, or `last` for the newest.")
]
SchemaName = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="NAME|module:Class|FILE.json",
        help="Make records of its pages or sites; built in: organization, page.",
    ),
]
RubricName = Annotated[
    str | None,
    typer.Option("--rubric", metavar="NAME|FILE.toml|module:function", help="Score the records by it; built in: esg."),
]
ModelKind = Annotated[
    str | None,
    typer.Option("--llm", metavar="none|local|endpoint", help="The language model that is asked for what is missing."),
]
OfCrawl = Annotated[str | None, typer.Option("--crawl", metavar="ID", help="Id of a crawl, its beginning, or `last`.")]


def settings_from(config: Path | None, data_dir: Path | None, **overrides: Any) -> Settings:
    """Settings as the command line changes them; logging is set up with them."""
    for stray in strays(os.environ):
        note(f"curtsy: {stray}")
    settings = load(config, data_dir=data_dir, **overrides)
    if settings.data_dir.exists() and not settings.data_dir.is_dir():
        raise SettingsError(f"{settings.data_dir} is a file; --data-dir (data_dir) names a folder.")
    observe.configure(settings.log_level, settings.log_format)
    return settings


@contextmanager
def stored(config: Path | None, data_dir: Path | None, looks: bool = True) -> Iterator[tuple[Settings, Store]]:
    """An existing store, for commands that look at what was crawled; unless `looks` is False they change nothing."""
    settings = settings_from(config, data_dir)
    with Store.open(settings.effective_store_url, create=False, looks=looks) as store:
        yield settings, store


def host_of(settings: Settings, store: Store, name: str | None) -> str | None:
    """The unit of politeness that an option names, if it names one."""
    if name is None:
        return None
    with store.read() as tx:
        return resolve_host(tx, name, settings.politeness_unit)


def number_of(store: Store, crawl: str | None) -> int | None:
    """The number of the crawl that an option names, if it names one."""
    if crawl is None:
        return None
    with store.read() as tx:
        return crawls.get(tx, crawl, members=False).n
