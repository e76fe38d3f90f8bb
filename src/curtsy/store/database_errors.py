"""What an error of the database or its driver means for the caller.

    Passing           a restart, a deadlock, a busy file: the same transaction may succeed a moment later
    Full              no space left: reported to the user soon, and retried later
    StoreUnwritable   read-only, no rights: a person must act; running crawls wait
    Damaged           the data does not read back

An error that is a bug of Curtsy, such as a rejected statement or value, is raised unchanged.
"""

from __future__ import annotations

from curtsy.core.errors import CurtsyError, Damaged, StoreUnavailable, StoreUnwritable


class Passing(StoreUnavailable):
    """A temporary error: the same transaction may succeed a moment later."""

    def __init__(self, message: str, *, deadlock: bool = False) -> None:
        super().__init__(message)
        self.cause = "deadlock" if deadlock else "unavailable"


class Full(StoreUnwritable):
    """The disk is full. Space may be freed at any moment, or never, so retries end soon."""

    cause = "disk_full"


class ReadOnly(StoreUnwritable):
    """The server accepts no writes now. New connections may reach another server, or this one after its repair."""


_DEADLOCK = "40P01"
#: PostgreSQL's codes by their beginning: connection, rollback, resources, state of an object, intervention, system
_PASSING = ("08", "40", "53", "55", "57", "58", "72", "F0", "XX000", "25P02", "25P03", "25P04")
_FULL, _READ_ONLY = "53100", "25006"
#: wrong user or password, no such database or schema, no rights, database dropped
_SHUT = ("28", "3D", "3F", "42501", "57P04")
#: prepared statements that a connection pooler lost or mixed up
_POOLED = ("26000", "42P05")
_DAMAGED = ("XX001", "XX002")

#: SQLite: abort, busy, locked, no memory, interrupt, I/O error, locking protocol, schema changed
_SQLITE_PASSING = frozenset({4, 5, 6, 7, 9, 10, 15, 17})
_SQLITE_FULL = 13
#: permissions, read-only, cannot open, no large files, authorization
_SQLITE_SHUT = frozenset({3, 8, 14, 22, 23})
#: corrupt, not a database
_SQLITE_DAMAGED = frozenset({11, 26})


def translated(where: str, error: BaseException | None, disconnected: bool = False) -> CurtsyError | None:
    """The driver's error as an error for the user; None if it is a bug of Curtsy."""
    said = next(iter(str(error).strip().splitlines()), type(error).__name__)
    state: str | None = getattr(error, "sqlstate", None)
    known = _by_state(where, state, said) if state else _by_sqlite_code(where, error, said)
    if known is not None:
        return known
    if disconnected or _is_passing(error, state):
        return Passing(
            f"The database {where} does not answer: {said}. Check that it is running, reachable and has disk space; "
            "a crawl can be resumed when it is back.",
            deadlock=state == _DEADLOCK,
        )
    return None


def _by_state(where: str, state: str, said: str) -> CurtsyError | None:
    if state == _READ_ONLY:
        return ReadOnly(
            f"The database {where} is read-only ({said}). Make it writable (default_transaction_read_only, standby); "
            "nothing is lost, crawls continue by themselves."
        )
    if state == _FULL:
        return _full(where, said)
    if state in _DAMAGED:
        return Damaged(f"{where} is damaged ({said}). Restore it from a copy.")
    if state.startswith(_SHUT):
        return StoreUnwritable(f"The database {where} refuses: {said}. Check user, password, database name and rights.")
    if state in _POOLED:
        return StoreUnwritable(
            f"The database {where} lost a prepared statement ({said}). Use a pooler in session mode, or none."
        )
    return None


def _by_sqlite_code(where: str, error: BaseException | None, said: str) -> CurtsyError | None:
    code = _code(error)
    if code in _SQLITE_DAMAGED:
        return Damaged(
            f"{where} is damaged or not a database ({said}). Restore it from a copy, or use another --data-dir."
        )
    if code in _SQLITE_SHUT:
        return StoreUnwritable(f"The database {where} cannot be opened for writing: {said}. Fix its permissions.")
    return _full(where, said) if code == _SQLITE_FULL else None


def _full(where: str, said: str) -> Full:
    return Full(f"The disk of the database {where} is full ({said}). Free some space; nothing is lost.")


def _code(error: BaseException | None) -> int:
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def _is_passing(error: BaseException | None, state: str | None) -> bool:
    if state:
        return state.startswith(_PASSING)
    if code := _code(error):
        return code in _SQLITE_PASSING
    # psycopg: the connection could not be made, or broke before the server could say why
    return any(kind.__name__ in ("OperationalError", "InterfaceError") for kind in type(error).__mro__)
