"""`serve`: the API and the dashboard, in several processes."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli.options import Config, DataDir, service_settings
from curtsy.web.serving import serve as run


def serve(
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDR", help="Address to listen on.", show_default="127.0.0.1")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            "--port", min=0, max=65535, metavar="PORT", help="Port; 0 chooses a free one.", show_default="8080"
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("--processes", min=1, max=64, metavar="N", help="Number of processes.", show_default="2"),
    ] = None,
    threads: Annotated[
        int | None,
        typer.Option(
            "--threads", min=1, max=512, metavar="N", help="Concurrent requests per process.", show_default="80"
        ),
    ] = None,
    require_key: Annotated[
        bool | None,
        typer.Option("--require-key", help="Require a key also for requests from this machine.", show_default=False),
    ] = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Run the API and the dashboard.

    They accept crawls and report on them; workers do the crawling.
    """
    settings = service_settings(
        config, data_dir, api_host=host, api_port=port, api_processes=processes, api_threads=threads,
        api_require_key=require_key,
    )  # fmt: skip

    run(settings, settings.api_host, settings.api_port, settings.api_processes, settings.api_threads)
