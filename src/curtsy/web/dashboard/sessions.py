"""Browser sessions: a signed cookie that names a key, a token for every form, and notes that survive a redirect.

The cookie is `<id of the key or ->.<nonce>.<expiry>.<signature>`. It names the key that signed in; every request checks
in the store whether that key is still valid and the session was not signed out. On loopback, where no key is needed, it
contains only the nonce.
The signature includes the digest of the key: the secret of the deployment alone cannot create a session of a key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import threading
import time
from dataclasses import dataclass

from flask import Request, Response

from curtsy.store import keys, meta, sessions
from curtsy.web.backend_thread import BackendThread

COOKIE = "curtsy_session"
#: a session expires after this long
LIFE_S = 12 * 3600
#: a note expires after this long
_NOTE_S = 60
_SECRET = "session_secret"
_FORM = re.compile(r"([0-9a-f]{12}|-)\.([0-9a-f]{32})\.([0-9]{1,12})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    #: id of the key that signed in; None: not signed in
    key: str | None
    nonce: str
    expires_s: int


class Sessions:
    """One per application. The deployment shares one secret, so every process accepts the sessions of the others."""

    def __init__(self, backend: BackendThread) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._secret: bytes | None = None

    def _sign(self, what: str) -> str:
        with self._lock:
            if self._secret is None:
                found = self._backend.store.run(meta.keep, _SECRET, secrets.token_hex(32))
                self._secret = bytes.fromhex(found)
            secret = self._secret
        return hmac.new(secret, what.encode(), hashlib.sha256).hexdigest()

    def new(self, key: str | None = None) -> Session:
        return Session(key=key, nonce=secrets.token_hex(16), expires_s=int(time.time()) + LIFE_S)

    def of(self, request: Request) -> Session | None:
        """The session of a request, if its cookie is valid and has not expired."""
        found = _FORM.fullmatch(request.cookies.get(COOKIE, ""))
        if found is None or int(found[3]) <= time.time():
            return None
        session = Session(key=None if found[1] == "-" else found[1], nonce=found[2], expires_s=int(found[3]))
        if not hmac.compare_digest(found[4], self._signature(session)) or self._has_ended(session):
            return None
        return session

    def end(self, session: Session) -> None:
        """No process accepts the cookie of this session any more."""
        self._backend.store.run(sessions.end, session.nonce, session.expires_s, int(time.time()))

    def _has_ended(self, session: Session) -> bool:
        """Only sessions of keys can be signed out."""
        if session.key is None:
            return False
        with self._backend.store.read() as tx:
            return sessions.has_ended(tx, session.nonce)

    def _signature(self, session: Session) -> str:
        return self._sign(f"session {_value(session)} {'' if session.key is None else self._digest(session.key)}")

    def _digest(self, id: str) -> str:
        with self._backend.store.read() as tx:
            key = keys.get(tx, id)
        return "" if key is None else key.digest  # an unknown key is refused later

    def put(self, response: Response, session: Session, request: Request) -> None:
        # Behind a TLS proxy we get plain HTTP. The browser itself says in Origin how it reached the form.
        secure = request.is_secure or request.headers.get("Origin", "").startswith("https://")
        response.set_cookie(
            COOKIE,
            f"{_value(session)}.{self._signature(session)}",
            max_age=max(0, session.expires_s - int(time.time())),
            path="/",
            httponly=True,
            samesite="Strict",
            secure=secure,
        )

    def drop(self, response: Response) -> None:
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="Strict")

    def token(self, session: Session) -> str:
        """The CSRF token of the forms of this session."""
        return self._sign(f"form {session.key or '-'} {session.nonce}")

    def is_token(self, session: Session, given: str) -> bool:
        return hmac.compare_digest(self.token(session).encode(), given.encode())

    # Notes

    def note(self, text: str) -> str:
        """A signed text that the next page shows."""
        body = base64.urlsafe_b64encode(f"{int(time.time())} {text}".encode()).decode()
        return f"{body}.{self._sign(f'note {body}')[:32]}"

    def noted(self, given: str) -> str | None:
        body, _, mark = given.rpartition(".")
        if not body or not hmac.compare_digest(self._sign(f"note {body}")[:32].encode(), mark.encode()):
            return None
        try:
            at, _, text = base64.urlsafe_b64decode(body).decode().partition(" ")
        except (ValueError, binascii.Error):
            return None
        return text if time.time() - int(at) < _NOTE_S else None


def _value(session: Session) -> str:
    return f"{session.key or '-'}.{session.nonce}.{session.expires_s}"
