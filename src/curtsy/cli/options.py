"""Options that several commands share, and the settings and store that they lead to."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from curtsy.cli.show import document, note
from curtsy.core import log_capture, observe
from curtsy.core.errors import SettingsError
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load_with_notes, unknown_variables
from curtsy.store import crawls
from curtsy.store.engine import Store

Config = Annotated[
    Path | None,
    typer.Option(
        "--config", metavar="FILE", help="Settings in TOML.", show_default="curtsy.toml", rich_help_panel="Storage"
    ),
]
DataDir = Annotated[
    Path | None,
    typer.Option(
        "--data-dir",
        metavar="DIR",
        help="Folder of the database and the pages.",
        show_default=".curtsy",
        rich_help_panel="Storage",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.", rich_help_panel="Output")]
Wide = Annotated[bool, typer.Option("--wide", help="Show the whole table, also if it is wider than the terminal.")]
WhichCrawl = Annotated[str, typer.Argument(metavar="CRAWL", help="Id of a crawl, the beginning of it, or `last`.")]
SchemaName = Annotated[
    str | None,
    typer.Option(
        "--schema",
        metavar="SCHEMA",
        help="Extract records: a name, module:Class or FILE.json.",
        rich_help_panel="Records",
    ),
]
RubricName = Annotated[
    str | None,
    typer.Option(
        "--rubric",
        metavar="RUBRIC",
        help="Score records: a name, FILE.toml or module:function.",
        rich_help_panel="Records",
    ),
]
ModelKind = Annotated[
    str | None,
    typer.Option(
        "--llm",
        metavar="MODEL",
        help="Language model: none, local or endpoint.",
        show_default="none",
        rich_help_panel="Records",
    ),
]
Verify = Annotated[
    bool | None,
    typer.Option(
        "--verify/--no-verify",
        help="Let the model verify values that patterns found.",
        show_default=False,
        rich_help_panel="Records",
    ),
]
JudgeModel = Annotated[
    str | None,
    typer.Option(
        "--judge-model",
        metavar="NAME",
        help="A second model that checks whom values are about, or none.",
        show_default=False,
        rich_help_panel="Records",
    ),
]
OfCrawl = Annotated[
    str | None, typer.Option("--crawl", metavar="ID", help="Only this crawl: its id, the beginning of it, or `last`.")
]


def settings_from(config: Path | None, data_dir: Path | None, **overrides: Any) -> Settings:
    """Settings with the changes of the command line; configures logging."""
    notes = unknown_variables(os.environ)
    settings = load_with_notes(notes.append, config, data_dir=data_dir, **overrides)
    for line in notes:
        note(f"curtsy: {line}")
    if settings.data_dir.exists() and not settings.data_dir.is_dir():
        raise SettingsError(f"{settings.data_dir} is a file; --data-dir (data_dir) must name a folder.")
    observe.configure(settings.log_level, settings.log_format)
    return settings


def service_settings(config: Path | None, data_dir: Path | None, stdout: bool = True, **overrides: Any) -> Settings:
    """Settings of a part of a fleet: with `log_format = "json"`, all that it writes is JSON lines, its notes and
    errors too. Without `stdout`, its standard output is left as it is."""
    if log_capture.wanted_by_environment():
        log_capture.install(stdout=stdout)
    settings = settings_from(config, data_dir, **overrides)
    if settings.log_format == "json":
        log_capture.install(stdout=stdout)
    return settings


def number_of(store: Store, crawl: str | None) -> int | None:
    """The number of the crawl that an option names, or None."""
    if crawl is None:
        return None
    with store.read() as tx:
        return crawls.get(tx, crawl, members=False).n


@dataclass(frozen=True, kw_only=True)
class LocalOptions:
    """What every command has: --config, --data-dir and --json. A command declares a parameter of this type."""

    OPTIONS: ClassVar[Mapping[str, Any]] = {"config": Config, "data_dir": DataDir, "as_json": AsJson}
    config: Path | None = None
    data_dir: Path | None = None
    as_json: bool = False

    def settings(self, **overrides: Any) -> Settings:
        return settings_from(self.config, self.data_dir, **overrides)

    @contextmanager
    def stored(self, looks: bool = True) -> Iterator[tuple[Settings, Store]]:
        """An existing store, read-only unless `looks` is False."""
        settings = self.settings()
        with Store.open(settings.effective_store_url, create=False, looks=looks) as store:
            yield settings, store

    def printed(self, fields: Mapping[str, Any]) -> bool:
        """Print the JSON document; False without --json."""
        if self.as_json:
            document(fields)
        return self.as_json
