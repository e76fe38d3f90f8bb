"""`up`: runs all parts of a fleet on this machine."""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from curtsy.cli.child_processes import environment
from curtsy.cli.options import AsJson, Config, DataDir, service_settings
from curtsy.cli.show import document
from curtsy.cli.workers import ALWAYS, SERVED, bind, celery_command, render_command, worker_command
from curtsy.core.errors import MissingPart
from curtsy.core.observe import all_json, announce
from curtsy.core.settings import Settings
from curtsy.fetch import chromium
from curtsy.fleet.coordination import shards_text
from curtsy.fleet.supervisor import Part, Supervisor, free_port, only_one, reachable


def up(
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDR", help="Address of the API.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port",
            min=0,
            max=65535,
            metavar="PORT",
            help="Port of the API; 0 chooses a free one.",
            show_default="8080",
        ),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", min=1, max=256, metavar="N", help="Number of worker processes.", show_default="number of cores"
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, max=64, metavar="N", help="Number of API processes.", show_default="2"),
    ] = None,
    flower: Annotated[
        int | None,
        typer.Option("--flower", min=1, max=65535, metavar="PORT", help="Also run Flower, on this port of 127.0.0.1."),
    ] = None,
    require_key: Annotated[
        bool | None,
        typer.Option("--require-key", help="Require a key also for requests from this machine.", show_default=False),
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Run Valkey, workers, Beat and the API on this machine.

    It restarts parts that exit. Press Ctrl-C to stop everything.
    """
    loaded = service_settings(
        config, data_dir, stdout=False, api_host=host, api_port=port, api_processes=processes, worker_processes=workers,
        api_require_key=require_key,
    )  # fmt: skip
    loaded.data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    with only_one(loaded.data_dir):
        settings = loaded.model_copy(update={"api_port": free_port(loaded.api_host, loaded.api_port)})
        parts = parts_of(settings, config, flower)
        variables = environment(settings, config)
        if "api_renderers" not in settings.model_fields_set and any(part.name == "render" for part in parts):
            # Clients may request what a worker can render.
            variables["CURTSY_API_RENDERERS"] = json.dumps([settings.renderer])
        if flower is not None and settings.flower_url is None:
            variables["CURTSY_FLOWER_URL"] = f"http://127.0.0.1:{flower}/"
        Supervisor(settings, parts, variables).run(lambda: _ready(settings, flower, as_json))


def parts_of(settings: Settings, config: Path | None, flower: int | None) -> list[Part]:
    bound = shards_text(settings.bind_shards)
    served = [bind(queue, bound) for queue in SERVED]
    parts = [
        Part(name="beat", command=(*celery_command("beat", quiet=True),)),
        Part(name="api", command=(*_serve(settings, config),)),
        Part(
            name="worker", works=True, command=(*worker_command("worker@%h", served, settings.worker_processes, True),)
        ),
        Part(name="high", works=True, command=(*worker_command("high@%h", [bind(ALWAYS, bound)], 1, True),)),
    ]
    if chromium.is_installed(settings):
        alone = settings.model_copy(update={"worker_processes": 1})
        parts.append(Part(name="render", works=True, command=(*render_command("render@%h", alone, bound, True),)))
    if flower is not None:
        parts.append(Part(name="flower", command=(*_flower(flower),)))
    return parts


def _serve(settings: Settings, config: Path | None) -> list[str]:
    words = ["--host", settings.api_host, "--port", str(settings.api_port), "--processes", str(settings.api_processes)]
    words += ["--require-key"] if settings.api_require_key else []
    return [sys.executable, "-m", "curtsy", "serve", *words, *(["--config", str(config)] if config else [])]


def _flower(port: int) -> list[str]:
    if find_spec("flower") is None:
        raise MissingPart("Flower is not installed: pip install 'curtsy[flower]', or remove --flower.")
    quiet = ["--logging=none"] if all_json() else []  # its own handler would write plain lines
    return celery_command("flower", "--address=127.0.0.1", f"--port={port}", *quiet)


def _ready(settings: Settings, flower: int | None, as_json: bool) -> None:
    host = reachable(settings.api_host)
    api = f"http://{f'[{host}]' if ':' in host else host}:{settings.api_port}"
    submit = f"curtsy submit --api {api} https://example.com/"
    watched = f"http://127.0.0.1:{flower}/" if flower is not None else None
    if as_json:
        document({"api": api, "docs": f"{api}/docs", "flower": watched, "submit": submit})
    else:
        more = f"; Flower: {watched}" if watched else ""
        announce(f"Ready. Dashboard and API: {api}/ (docs at /docs){more}. Submit: {submit}", sys.stdout)
    sys.stdout.flush()
