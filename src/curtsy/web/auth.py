"""Authorization: API keys with scopes; without a key only requests from this machine that no web page sent.

A key is `curtsy_<id>_<secret>`, sent as `Authorization: Bearer ...`. Lists and logs show the id; the secret has 256
random bits, and only its digest is stored.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from flask import Request

from curtsy.core import clock
from curtsy.core.observe import log
from curtsy.store import keys
from curtsy.store.engine import Store
from curtsy.store.keys import ApiKey
from curtsy.web.backend_thread import BackendThread
from curtsy.web.forwarding import is_forwarded
from curtsy.web.problems import Problem

#: scope -> the scopes it includes
IMPLIED = {
    "read": ("read",),
    "write": ("read", "write"),
    "fast": ("read", "write", "fast"),
    "admin": ("read", "write", "fast", "admin"),
}
SCOPES = tuple(IMPLIED)
_KEY = re.compile(r"curtsy_([0-9a-f]{12})_([A-Za-z0-9-]{43})")
_LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")
#: the last use of a key is written at most this often
_USED_MS = 60_000
_NO_DIGEST = "0" * 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """The authenticated caller: a key, or this machine."""

    #: id of the key, or the address; for the rate limit, Idempotency-Keys and the log
    name: str
    #: id of the key; None: this machine, without a key
    key_id: str | None = None
    scopes: tuple[str, ...] = ()

    def may(self, scope: str) -> bool:
        return any(scope in IMPLIED[own] for own in self.scopes)


def new_key(name: str, scopes: Iterable[str], now_ms: int, expires_ms: int | None) -> tuple[str, ApiKey]:
    """(the key for its owner, the key as stored)."""
    id = secrets.token_hex(6)
    secret = secrets.token_urlsafe(32).replace("_", "-")
    digest = hashlib.sha256(secret.encode()).hexdigest()
    stored = ApiKey(id=id, name=name, digest=digest, scopes=tuple(scopes), created_ms=now_ms, expires_ms=expires_ms)
    return f"curtsy_{id}_{secret}", stored


class Gate:
    """Authenticates requests. One per application."""

    def __init__(self, backend: BackendThread, host: str) -> None:
        self._backend = backend
        self._local = is_loopback(host) and not backend.settings.api_require_key
        self._names = {*_LOCAL_NAMES, host, *backend.settings.api_hosts}

    def admit(self, request: Request, scope: str | None) -> Caller:
        """The caller, if it has the scope; else raises 401 (not authenticated) or 403 (not allowed)."""
        given = request.headers.get("Authorization")
        address = request.remote_addr or ""
        if scope is None:
            return Caller(name=address)
        if given is None:
            self._check_local(request)
            return Caller(name=address, scopes=("admin",))
        caller = self._by_key(given, address)
        if not caller.may(scope):
            raise Problem(403, "scope-missing", f"This key needs the scope {scope}.")
        return caller

    def of_key(self, text: str, address: str = "") -> Caller:
        """The caller with this key."""
        return self._by_key(f"Bearer {text}", address)

    def of_session(self, id: str) -> Caller:
        """The caller of a session that was signed in with this key, while the key is valid."""
        with self._backend.store.read() as tx:
            found = keys.get(tx, id)
        if found is None or not found.is_valid(clock.now_ms()):
            raise _unknown("The key of this session has expired or was revoked.")
        return Caller(name=found.id, key_id=found.id, scopes=found.scopes)

    def _by_key(self, given: str, address: str) -> Caller:
        kind, _, text = given.partition(" ")
        match = _KEY.fullmatch(text.strip()) if kind.lower() == "bearer" else None
        if match is None:
            raise _unknown("Send the key as 'Authorization: Bearer curtsy_...'.")
        found = check_key(self._backend.store, match[1], match[2], clock.now_ms())
        if found is None:
            log("key_refused", level="warning", key=match[1], address=address)
            raise _unknown("This key is unknown, has expired or was revoked.")
        return Caller(name=found.id, key_id=found.id, scopes=found.scopes)

    def _check_local(self, request: Request) -> None:
        """A request without a key must come from this machine, and not from a web page in a local browser.

        nginx speaks HTTP/1.0 to its backend by default, and then adds no header that names the client.
        """
        forwarded = is_forwarded(request.headers.keys()) or request.environ.get("SERVER_PROTOCOL") == "HTTP/1.0"
        if not self._local or forwarded or not is_loopback(request.remote_addr or ""):
            raise _unknown("This server needs an API key: `curtsy keys create` creates one.")
        host = request.headers.get("Host", "")
        if _name_of(host) not in self._names:
            raise Problem(
                403, "host-not-allowed", "Requests to this host name need a key. The setting api_hosts adds host names."
            )
        origin = request.headers.get("Origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            raise Problem(403, "origin-not-allowed", "Requests from other web pages need a key.")
        if request.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            raise Problem(403, "origin-not-allowed", "Requests from other web pages need a key.")


def check_key(store: Store, id: str, secret: str, now_ms: int) -> ApiKey | None:
    """The key, if the secret matches and the key is valid now."""
    with store.read() as tx:
        found = keys.get(tx, id)
    digest = hashlib.sha256(secret.encode()).hexdigest()
    matches = hmac.compare_digest(digest, _NO_DIGEST if found is None else found.digest)
    if found is None or not matches or not found.is_valid(now_ms):
        return None
    if now_ms - (found.used_ms or 0) >= _USED_MS:
        store.run(keys.mark_used, found.id, now_ms)
    return found


def _unknown(detail: str) -> Problem:
    return Problem(401, "key-needed", detail, headers={"WWW-Authenticate": "Bearer"})


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _name_of(host: str) -> str:
    """The host name in a Host header, without port and brackets."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
