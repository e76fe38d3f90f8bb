"""Where a command works: this machine's store, or an API (--api URL or CURTSY_API_URL, with CURTSY_API_KEY)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from curtsy.cli import next_commands
from curtsy.cli.options import LocalOptions, settings_from
from curtsy.client.backend import Backend
from curtsy.client.http import Client, key_from_environment
from curtsy.client.local import LocalBackend
from curtsy.client.remote import RemoteBackend

Api = Annotated[
    str | None,
    typer.Option(
        "--api",
        metavar="URL",
        envvar="CURTSY_API_URL",
        help="Use this API server; set its key in CURTSY_API_KEY.",
        rich_help_panel="Storage",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SharedOptions(LocalOptions):
    """The same, and --api."""

    OPTIONS: ClassVar[Mapping[str, Any]] = {"api": Api, **LocalOptions.OPTIONS}
    api: str | None = None

    def backend(self) -> Backend:
        return backend(self.api, self.config, self.data_dir)


def backend(api: str | None, config: Path | None, data_dir: Path | None) -> Backend:
    if api:
        return RemoteBackend(Client(api, key_from_environment()))
    settings = settings_from(config, data_dir)
    return LocalBackend(settings, next_commands.beginning(), next_commands.ending())
