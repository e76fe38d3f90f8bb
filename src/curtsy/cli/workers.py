"""`worker` and `beat`: the Celery processes of a fleet that crawl and that dispatch shifts."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from curtsy.cli.child_processes import keep
from curtsy.cli.options import Config, DataDir, service_settings
from curtsy.core.settings import Settings
from curtsy.fetch import chromium
from curtsy.fleet.coordination import shards_of, shards_text
from curtsy.frontier.servers import default_shards

#: queues of a worker by default; lane render needs a browser and has its own workers
SERVED = ("fetch.high", "fetch.batch", "fetch.slow", "inference", "default")
ALWAYS = "fetch.high"
RENDER = "render"


def worker(
    queues: Annotated[
        str | None, typer.Option("--queues", metavar="A,B", help="Queues to serve.", show_default="all except render")
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "--concurrency", min=1, max=256, metavar="N", help="Number of processes.", show_default="number of cores"
        ),
    ] = None,
    shards: Annotated[
        str | None, typer.Option("--shards", metavar="0-7", help="Crawl only hosts of these frontier shards.")
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of this worker, if a machine runs several.")
    ] = None,
    high: Annotated[bool, typer.Option("--high/--no-high", help="Add a process that serves only fetch.high.")] = True,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Run worker processes of a fleet.

    They fetch pages and make records. SIGTERM or Ctrl-C stops them cleanly.
    """
    settings = service_settings(config, data_dir, worker_processes=concurrency)
    bound = shards_text(shards_of(shards, _shards(settings))) if shards else shards_text(settings.bind_shards)
    served = [bind(queue, bound) for queue in (queues.split(",") if queues else SERVED)]
    me = name or "worker"
    if served == [bind(RENDER, bound)]:
        chromium.check_installed(settings)
        commands = [render_command(f"{me}@%h", settings, bound)]
    else:
        commands = [worker_command(f"{me}@%h", served, settings.worker_processes)]
    if high and served != [bind(ALWAYS, bound)]:
        commands.append(worker_command(f"{me}-high@%h", [bind(ALWAYS, bound)], 1))
    raise typer.Exit(keep(commands, settings, config))


def beat(config: Config = None, data_dir: DataDir = None) -> None:
    """Run the scheduler of a fleet.

    It gives work to the workers, ends crawls and starts scheduled crawls.
    Several may run at once.
    """
    settings = service_settings(config, data_dir)
    raise typer.Exit(keep([celery_command("beat")], settings, config))


def bind(queue: str, shards: str) -> str:
    """Workers that are bound to shards have their own queues."""
    return f"{queue}.{shards}" if shards and (queue == RENDER or queue.startswith("fetch.")) else queue


def _shards(settings: Settings) -> int:
    return settings.shards or default_shards(settings.frontier_url)


def worker_command(name: str, queues: list[str], processes: int | None, quiet: bool = False) -> list[str]:
    words = ["-n", name, "-Q", ",".join(queues), *(["-c", str(processes)] if processes else [])]
    return celery_command("worker", *words, "--without-gossip", "--without-mingle", quiet=quiet)


def render_command(name: str, settings: Settings, shards: str, quiet: bool = False) -> list[str]:
    """By default one process with one browser; the process and its browser are replaced after some shifts."""
    words = worker_command(name, [bind(RENDER, shards)], settings.worker_processes or 1, quiet)
    return [*words, "--max-tasks-per-child", str(settings.render_shifts_per_process)]


def celery_command(command: str, *words: str, quiet: bool = False) -> list[str]:
    return [
        sys.executable,
        "-m",
        "celery",
        *(["--quiet"] if quiet else []),
        "-A",
        "curtsy.fleet.celery_app",
        command,
        *words,
    ]
