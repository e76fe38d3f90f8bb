"""What an error of Valkey, Redis or the connection to it means for the caller.

    EpochLost             the keys are on another server, or those of another epoch: use the current one or rebuild
    FrontierUnavailable   the server does not answer now: wait
    FrontierRefused       the server answers and refuses: wait, and tell the operator what to do

An error of a script that is a bug of Curtsy is raised unchanged.
"""

from __future__ import annotations

import re

from curtsy.core.errors import CurtsyError, EpochLost, FrontierRefused, FrontierUnavailable
from curtsy.frontier.client import ServerError


class OtherRun(Exception):
    """The server behind this connection is not the run that the epoch belongs to."""


class NoMaster(Exception):
    """The server behind this connection refuses writes."""


#: the code of an error; Redis 6 reports errors of a command inside a script as "ERR ... -CODE text"
_CODE = re.compile(r"(?:^|\s-)([A-Z]{3,20})\b")
_FULL = "It has no memory left (maxmemory). Raise maxmemory, or free memory on it; the crawl continues by itself"
_KEY = "Check the password and user in frontier_url and the rights (ACL) of that user"
_REFUSED_CODES = {
    "OOM": _FULL,
    "MISCONF": "It cannot save to its disk. Free or repair that disk; the crawl continues by itself",
    "NOREPLICAS": "It has too few replicas (min-replicas-to-write). Start them; the crawl continues by itself",
    "NOAUTH": _KEY,
    "NOPERM": _KEY,
    "WRONGPASS": _KEY,
}
_PASSING_CODES = frozenset(
    {"BUSY", "LOADING", "MASTERDOWN", "UNKILLABLE", "CLUSTERDOWN", "TRYAGAIN", "INPROG", "NOSCRIPT", "EXECABORT"}
)
#: errors of the same kinds that have no code of their own
_FULL_HOUSE = "max number of clients reached"
_PASSWORD = re.compile(r"\bauth\b|password|LDAP", re.IGNORECASE)


def translated(error: Exception) -> CurtsyError | None:
    """The error for the caller; None if it is a bug of Curtsy."""
    if isinstance(error, OtherRun):
        return EpochLost(f"The frontier server was restarted ({error}).")
    if isinstance(error, NoMaster):
        return FrontierUnavailable(
            "The frontier server is a replica and refuses writes. Wait for the failover to end, or name the master "
            "in frontier_url."
        )
    return _by_code(error) if isinstance(error, ServerError) else _silent(error)


def _by_code(error: ServerError) -> CurtsyError | None:
    said = str(error)
    for code in _CODE.findall(said):
        if code == "EPOCH":
            return EpochLost(f"The frontier has another epoch ({said}).")
        if code in ("READONLY", "MOVED", "ASK"):
            return EpochLost(f"The frontier's keys have moved to another server ({said}).")
        if code in _REFUSED_CODES:
            return _refused(error, _REFUSED_CODES[code])
        if code in _PASSING_CODES:
            return _silent(error)
    if "user_script" in said or error.code == "WRONGTYPE":
        return None
    if _FULL_HOUSE in said:
        return _silent(error)
    if _PASSWORD.search(said):
        return _refused(error, _KEY)
    return _refused(
        error, "Run `curtsy doctor`: the server must be Valkey 7.2 or Redis 6.2, or newer, with all commands"
    )


def _refused(error: Exception, act: str) -> FrontierRefused:
    return FrontierRefused(f"The frontier server (Valkey/Redis) refuses commands: {_said(error)}. {act}.")


def _silent(error: Exception) -> FrontierUnavailable:
    return FrontierUnavailable(
        f"The frontier server (Valkey/Redis) does not answer: {_said(error)}. "
        "Check that it runs and that frontier_url is correct."
    )


def _said(error: Exception) -> str:
    return str(error).rstrip(".") or "it took too long"
