"""decide(outcome, attempts): the next state of a URL. No I/O. Time and random source are optional
arguments: without them, the system clock and one random source of the process are used.

The stable words it uses:
    done      "" (a page), redirect, gone, type, document_type, not_modified
    skipped   too_large, document_too_large, redirect_loop, too_many_redirects, bad_redirect, forbidden_address
    dead      refused, no_such_host, rate_limited, server_error, partial, http_<status>, and the faults' own words:
              dns_failed, connect_failed, tls_failed, timeout, connection_lost, bad_response, proxy_failed,
              browser_failed; and parse_timeout (reading the page took too long)
    retry     the same words, `cookie` (the page wants its cookie back), and for causes other than the URL:
              slot_expired, address_busy, resent, cancelled, no_room
"""

from __future__ import annotations

from random import Random

from curtsy.core.model import Chain
from curtsy.core.outcome import Action, Decision, Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.rules.cookies import brings_cookie, next_cookies
from curtsy.rules.politeness import MISSING_AGAIN_MS, backoff_ms, wait_ms
from curtsy.rules.urls import fingerprint, normalise, short

_RNG = Random()

_GONE = (404, 410)
#: The site refuses: no retry.
_REFUSED = (401, 403, 451)
_TRY_AGAIN = (408, 425, 429)
_REDIRECTS = (301, 302, 303, 307, 308)
#: 305 would make us use a proxy that the server names; 306 is its unused sibling
_NOT_FOLLOWED = (305, 306)

#: the status line and headers arrived; only the body is missing or not needed
_BODY_FAULTS = (Fault.RESET, Fault.PROTOCOL, Fault.TIMEOUT, Fault.TOO_LARGE, Fault.WRONG_TYPE)
#: documents that fit into memory later, when earlier ones are stored
_ROOM_MS = 2_000
#: not caused by the URL, so not an attempt
UNCOUNTED = {
    Fault.SLOT_EXPIRED: 0, Fault.ADDRESS_BUSY: 250, Fault.RESENT: 0, Fault.CANCELLED: 0, Fault.NO_ROOM: _ROOM_MS,
}  # fmt: skip
#: a name may be missing for a moment while its zone is being changed
_NXDOMAIN_TRIES = 2

_PAGE = Decision(action=Action.DONE)


def decide(
    outcome: Outcome,
    attempts: int,
    settings: Settings,
    *,
    chain: Chain | None = None,
    now_s: float | None = None,
    rng: Random = _RNG,
) -> Decision:
    """The decision about the URL after this outcome; `attempts` were counted before it.

    A status other than 2xx needs no body, so it decides even if the body was lost. A 2xx needs its body.
    """
    status = outcome.status
    fault = outcome.fault
    if fault is None:
        if status == 200:
            return _PAGE
        return _by_status(outcome, attempts, settings, chain, now_s, rng)
    if status and not 200 <= status < 300 and fault in _BODY_FAULTS:
        return _by_status(outcome, attempts, settings, chain, now_s, rng)
    return _by_fault(fault, attempts, settings, rng)


def _by_status(
    outcome: Outcome, attempts: int, settings: Settings, chain: Chain | None, now_s: float | None, rng: Random
) -> Decision:
    status = outcome.status
    if 300 <= status < 400:
        return _by_redirect(outcome, attempts, settings, chain, rng)
    if status in _GONE:
        return Decision(action=Action.DONE, reason="gone")
    if status in _REFUSED:
        return Decision(action=Action.DEAD, reason="refused")
    if 400 <= status < 500 and status not in _TRY_AGAIN:
        return Decision(action=Action.DEAD, reason=f"http_{status}")
    if 200 <= status < 300 and status != 206:
        return _PAGE
    cause = cause_of(status)
    asked_ms = wait_ms(outcome, settings, now_s) if status in (429, 503) else None
    return _retry_or_die(cause, attempts, settings.max_attempts, settings, rng, asked_ms or 0)


def cause_of(status: int) -> str:
    """The word for a status that is tried again."""
    if status == 206:
        return "partial"  # no range was requested, so this is not the page
    if status == 429:
        return "rate_limited"
    if status in _TRY_AGAIN:
        return f"http_{status}"
    # Codes outside 100 to 599 count as errors of the server; 1xx never ends a response.
    return "server_error" if status >= 500 else "bad_response"


def _by_fault(fault: Fault, attempts: int, settings: Settings, rng: Random) -> Decision:
    if fault in UNCOUNTED:
        return Decision(action=Action.RETRY, reason=str(fault), delay_ms=UNCOUNTED[fault], counts=False)
    if fault in (Fault.WRONG_TYPE, Fault.DOCUMENT_TYPE):
        return Decision(action=Action.DONE, reason=str(fault))
    if fault in (Fault.TOO_LARGE, Fault.DOCUMENT_TOO_LARGE, Fault.FORBIDDEN_ADDRESS):
        return Decision(action=Action.SKIP, reason=str(fault))
    tries = min(_NXDOMAIN_TRIES, settings.max_attempts) if fault is Fault.DNS_NONE else settings.max_attempts
    at_least_ms = MISSING_AGAIN_MS if fault is Fault.DNS_NONE else 0
    return _retry_or_die(str(fault), attempts, tries, settings, rng, at_least_ms)


def _retry_or_die(
    cause: str, attempts: int, tries: int, settings: Settings, rng: Random, at_least_ms: int = 0
) -> Decision:
    if attempts + 1 >= tries:
        return Decision(action=Action.DEAD, reason=cause)
    return Decision(action=Action.RETRY, reason=cause, delay_ms=max(at_least_ms, backoff_ms(attempts, settings, rng)))


# Redirects.


def _by_redirect(outcome: Outcome, attempts: int, settings: Settings, chain: Chain | None, rng: Random) -> Decision:
    status = outcome.status
    if status == 304:
        # Without a condition in the request there is nothing that could be unchanged.
        if b"\r\nif-" in outcome.request_head.lower():
            return Decision(action=Action.DONE, reason="not_modified")
        return _retry_or_die("http_304", attempts, settings.max_attempts, settings, rng)
    location = redirect_target(outcome)
    if location is None:
        # A list of choices may be a page; any other redirect without a target is an error of the site.
        is_page = status not in _REDIRECTS and status not in _NOT_FOLLOWED and not outcome.header("location")
        if is_page and outcome.fault is None and outcome.body:
            return _PAGE
        return Decision(action=Action.SKIP, reason="bad_redirect")
    return _follow(outcome, location, settings, chain)


def _follow(outcome: Outcome, location: str, settings: Settings, chain: Chain | None) -> Decision:
    trail = chain.trail if chain is not None else ()
    own = short(fingerprint(outcome.url))
    if len(trail) >= settings.max_redirects:
        return Decision(action=Action.SKIP, reason="too_many_redirects")
    if location == outcome.url:
        if own not in trail and brings_cookie(outcome, chain):
            return Decision(action=Action.RETRY, reason="cookie", counts=False)
        return Decision(action=Action.SKIP, reason="redirect_loop")
    if short(fingerprint(location)) in trail:
        return Decision(action=Action.SKIP, reason="redirect_loop")
    return Decision(action=Action.DONE, reason="redirect", location=location)


def redirect_target(outcome: Outcome) -> str | None:
    """The normalized target of a redirect; None if it cannot be requested."""
    value = outcome.header("location")
    if not value or outcome.status in _NOT_FOLLOWED:
        return None
    # The header's bytes are taken literally: those beyond ASCII are escaped, whatever encoding they were meant in.
    raw = value.encode("latin-1", "replace")
    text = "".join(chr(byte) if byte < 0x80 else f"%{byte:02X}" for byte in raw)
    return normalise(text, outcome.url)


def next_chain(chain: Chain | None, outcome: Outcome, seed: bool = False) -> Chain:
    """What the target of a redirect, or a page that is fetched again with its cookie, inherits.

    `seed`: the redirecting URL is a seed, so its chain's final host joins the scope.
    """
    chain = chain or Chain(seed=seed)
    cookies, cookie_host = next_cookies(chain, outcome)
    return Chain(
        trail=(*chain.trail, short(fingerprint(outcome.url))),
        seed=chain.seed,
        cookies=cookies,
        cookie_host=cookie_host,
        robots_of=chain.robots_of,
    )
