"""`mcp`: the Model Context Protocol server, over standard input and output or HTTP."""

from __future__ import annotations

from typing import Annotated

import typer

from curtsy.cli.backends import Api, backend
from curtsy.cli.options import Config, DataDir, settings_from
from curtsy.core import secret_files
from curtsy.core.errors import MissingPart, UsageError
from curtsy.web.auth import is_loopback


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option("--host", metavar="ADDR", help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="Port; 0 chooses a free one.")
    ] = 8090,
    max_pages: Annotated[
        int, typer.Option("--max-pages", min=1, max=100_000, metavar="N", help="Maximum pages of one call.")
    ] = 100,
    max_seconds: Annotated[
        float, typer.Option("--max-seconds", min=1, max=3600, metavar="S", help="Maximum seconds of one call.")
    ] = 120,
    api: Api = None,
    config: Config = None,
    data_dir: DataDir = None,
) -> None:
    """Run a Model Context Protocol server.

    Its tools crawl, report status, and read, search and extract from stored pages.
    """

    settings = settings_from(config, data_dir)
    key = secret_files.variable("CURTSY_MCP_KEY") or None
    if http and not is_loopback(host) and key is None:
        raise UsageError(f"{host} is reachable from other machines: set CURTSY_MCP_KEY, or remove --host.")
    try:
        from curtsy.mcp import server
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != "mcp":
            raise
        raise MissingPart("The Model Context Protocol needs its SDK: pip install 'curtsy[mcp]'.") from None
    built = server.build(backend(api, config, data_dir), server.Limits(max_pages=max_pages, max_seconds=max_seconds))
    if http:
        server.run_http(built, host, port, settings.api_hosts, key)
    else:
        server.run_stdio(built)
