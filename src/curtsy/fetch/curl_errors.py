"""libcurl's error codes as faults: which side failed, and whether a retry makes sense."""

from __future__ import annotations

import pycurl

from curtsy.core.outcome import Fault

#: pycurl has no name for this code
_E_PROXY = 97

_FAULT_OF: dict[int, Fault] = {
    pycurl.E_COULDNT_RESOLVE_HOST: Fault.DNS_FAIL,
    pycurl.E_COULDNT_CONNECT: Fault.CONNECT,
    pycurl.E_INTERFACE_FAILED: Fault.CONNECT,
    pycurl.E_OPERATION_TIMEDOUT: Fault.TIMEOUT,
    pycurl.E_GOT_NOTHING: Fault.RESET,
    pycurl.E_RECV_ERROR: Fault.RESET,
    pycurl.E_SEND_ERROR: Fault.RESET,
    pycurl.E_PARTIAL_FILE: Fault.RESET,
    pycurl.E_URL_MALFORMAT: Fault.FORBIDDEN_ADDRESS,
    pycurl.E_COULDNT_RESOLVE_PROXY: Fault.PROXY,
    _E_PROXY: Fault.PROXY,
    **dict.fromkeys(
        (
            pycurl.E_SSL_CONNECT_ERROR,
            pycurl.E_SSL_CERTPROBLEM,
            pycurl.E_SSL_CIPHER,
            pycurl.E_SSL_CACERT,
            pycurl.E_SSL_CACERT_BADFILE,
            pycurl.E_SSL_CRL_BADFILE,
            pycurl.E_SSL_ISSUER_ERROR,
            pycurl.E_SSL_INVALIDCERTSTATUS,
            pycurl.E_SSL_PINNEDPUBKEYNOTMATCH,
            pycurl.E_PEER_FAILED_VERIFICATION,
            pycurl.E_SSL_ENGINE_INITFAILED,
            pycurl.E_USE_SSL_FAILED,
        ),
        Fault.TLS,
    ),
}

#: how libcurl says that one line of a head is malformed in a way that browsers accept: it gives up the whole response
_BAD_LINES = ("Header without colon", "Invalid Content-Length")

#: with a proxy, these are errors of the proxy: it was not reached, or it refused the tunnel
_PROXY_FAULTS = (Fault.CONNECT, Fault.DNS_FAIL)


def fault_of(code: int, message: str, *, sent: bool, proxied: bool) -> Fault:
    """`sent`: the request had been sent; `proxied`: through a proxy."""
    fault = _FAULT_OF.get(code, Fault.PROTOCOL)
    if not sent and fault is Fault.TIMEOUT:
        fault = Fault.CONNECT
    if proxied and not sent and (fault in _PROXY_FAULTS or "CONNECT" in message or "proxy" in message.lower()):
        return Fault.PROXY
    if code == pycurl.E_RECV_ERROR and _is_malformed(message):
        return Fault.PROTOCOL
    return fault


def is_bad_line(code: int, message: str) -> bool:
    """Whether a response was refused for one line of its head. fetch/raw_response.py can read it."""
    return code != 0 and message.startswith(_BAD_LINES)


def _is_malformed(message: str) -> bool:
    """libcurl reports broken framing with the code of a broken connection; only the message differs."""
    lower = message.lower()
    return "header" in lower or "chunk" in lower or "invalid" in lower or "malformed" in lower
