"""The Airflow connection: the control plane, and the frontier and store for host slots and exports."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow.sdk import BaseHook

from curtsy.client.server import Server
from curtsy.core.errors import CurtsyError, UsageError
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load

DEFAULT = "curtsy_default"
_PLACES = ("frontier_url", "store_url", "segments_url", "data_dir")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The content of a connection."""

    #: address of the API
    url: str
    key: str | None = field(repr=False)
    #: address of the dashboard for people
    dashboard: str
    extra: dict[str, Any] = field(repr=False)

    def crawl_url(self, id: str) -> str:
        return f"{self.dashboard}/crawls/{id}"

    def settings(self) -> Settings:
        """Settings for direct access to the frontier and store. The environment (CURTSY_*) provides missing values."""
        given = {name: self.extra.get(name) or None for name in _PLACES}
        if given["data_dir"] is not None:
            given["data_dir"] = Path(given["data_dir"])
        more = self.extra.get("settings") or {}
        if isinstance(more, str):
            try:
                more = json.loads(more)
            except ValueError:
                more = None
        if not isinstance(more, dict):
            raise UsageError('The connection\'s other settings are no JSON object. Write them as {"delay_s": 2}.')
        return load(None, None, **{**more, **given})


def place_of(connection: Any) -> Place:
    """`host` may be a complete URL; otherwise scheme, host and port form one."""
    host = connection.host or "127.0.0.1"
    url = host if "://" in host else f"{connection.schema or 'http'}://{f'[{host}]' if host.count(':') > 1 else host}"
    if connection.port and not url.rpartition("//")[2].rpartition("]")[2].partition("/")[0].partition(":")[2]:
        url = f"{url.rstrip('/')}:{connection.port}"
    extra = dict(connection.extra_dejson or {})
    url = url.rstrip("/")
    dashboard = str(extra.get("dashboard_url") or url).rstrip("/")
    return Place(url=url, key=connection.password or None, dashboard=dashboard, extra=extra)


class CurtsyHook(BaseHook):
    """`CurtsyHook().get_conn()` is the typed client of docs/how-to/python.md: `.submit(...)`, `.crawl(id)`, ..."""

    conn_name_attr = "curtsy_conn_id"
    default_conn_name = DEFAULT
    conn_type = "curtsy"
    hook_name = "Curtsy"

    def __init__(self, curtsy_conn_id: str = DEFAULT) -> None:
        super().__init__()
        self.curtsy_conn_id = curtsy_conn_id

    def place(self) -> Place:
        return place_of(self.get_connection(self.curtsy_conn_id))

    async def aplace(self) -> Place:
        """The same for asyncio."""
        return place_of(await self.aget_connection(self.curtsy_conn_id))

    def get_conn(self) -> Server:
        place = self.place()
        return Server(place.url, place.key)

    def test_connection(self) -> tuple[bool, str]:
        """Whether the API is ready and accepts the key."""
        try:
            server = self.get_conn()
            ready = server.readyz()
            server.list_crawls(limit=1)
        except CurtsyError as error:
            return False, str(error)
        if not ready["ready"]:
            failing = [f"{name}: {text}" for name, text in ready["parts"].items() if text != "ok"]
            return False, f"The API answers but is not ready: {'; '.join(failing)}."
        return True, "The API is ready and accepts the key."
