"""The server, and the two ways to reach it: standard input and output, or HTTP.

Over HTTP, only this machine is answered, and no web page in its browser (Host and Origin are checked). Requests from
other machines need the key.
"""

from __future__ import annotations

import asyncio
import hmac
import socket
import sys
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings

from curtsy import __version__
from curtsy.client.backend import Backend
from curtsy.core.errors import UsageError
from curtsy.mcp import reading
from curtsy.mcp.tools import Limits, tools_of

Scope = MutableMapping[str, Any]

_ABOUT = (
    "Crawl websites politely and read the stored pages. `scrape` fetches one page, `map` lists the URLs of a site, "
    "`crawl` fetches pages at the pace of their site: it takes seconds per page, so request few, and continue with "
    "`resume`. `search_pages`, `read_page` and `extract` use stored pages and send no requests: try them first. "
    + reading.UNTRUSTED
)


def build(backend: Backend, limits: Limits) -> MCPServer[Any]:
    tools = tools_of(backend, limits)
    return MCPServer("curtsy", instructions=_ABOUT, version=__version__, log_level="WARNING", tools=tools)


def run_stdio(server: MCPServer[Any]) -> None:
    asyncio.run(server.run_stdio_async())


def run_http(server: MCPServer[Any], host: str, port: int, names: tuple[str, ...], key: str | None) -> None:
    """Serve until a signal. `names` are further host names of this server."""
    import uvicorn

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listening = socket.create_server((host, port), family=family)
    except OSError as error:
        raise UsageError(f"{host}:{port} is not available: {error.strerror}. Choose another --port.") from error
    with listening:
        bound = listening.getsockname()[1]
        app = http_app(server, host, bound, names, key)
        print(f"Serving MCP on http://{f'[{host}]' if ':' in host else host}:{bound}/mcp", file=sys.stderr, flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on")).run(sockets=[listening])


def http_app(server: MCPServer[Any], host: str, port: int, names: tuple[str, ...], key: str | None) -> Any:
    shown = f"[{host}]" if ":" in host else host
    hosts = [name for one in ("localhost", "127.0.0.1", "[::1]", shown, *names) for name in (one, f"{one}:{port}")]
    origins = [f"{scheme}://{name}" for scheme in ("http", "https") for name in hosts]
    security = TransportSecuritySettings(allowed_hosts=hosts, allowed_origins=origins)
    app = server.streamable_http_app(host=host, transport_security=security)
    return _Keyed(app, key)


#: headers of requests that a proxy forwards from other machines
_FORWARDED = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via")


class _Keyed:
    """Accepts requests with the key; without a key, only requests from this machine."""

    def __init__(self, app: Callable[..., Awaitable[None]], key: str | None) -> None:
        self._app, self._given = app, None if key is None else f"Bearer {key}".encode()

    def _passes(self, headers: dict[bytes, bytes]) -> bool:
        if self._given is None:
            return not any(name in headers for name in _FORWARDED)
        return hmac.compare_digest(headers.get(b"authorization", b""), self._given)

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] == "http" and not self._passes(dict(scope["headers"])):
            headers = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            said = b"A key is required (CURTSY_MCP_KEY): Authorization: Bearer ..."
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            await send({"type": "http.response.body", "body": said})
            return
        await self._app(scope, receive, send)


__all__ = ["Limits", "build", "http_app", "run_http", "run_stdio"]
