"""The outcome of a request, its effect on the host, and the decision about the URL."""

from __future__ import annotations

from enum import StrEnum

from curtsy.core.model import hot_value


class Fault(StrEnum):
    """Why a transfer gave no complete response. A complete response has no fault, whatever its status."""

    DNS_NONE = "no_such_host"  # the name does not exist
    DNS_FAIL = "dns_failed"  # SERVFAIL, time-out of the resolver
    CONNECT = "connect_failed"  # refused, unreachable
    TLS = "tls_failed"  # certificate or handshake
    TIMEOUT = "timeout"  # total time is up
    RESET = "connection_lost"  # closed or reset before the response was complete
    PROTOCOL = "bad_response"  # not HTTP, broken framing, broken content coding
    TOO_LARGE = "too_large"  # body over the limit after decompression: aborted
    WRONG_TYPE = "type"  # content type not in keep_types: aborted after the headers
    DOCUMENT_TOO_LARGE = "document_too_large"  # a document over max_document_mb: aborted
    DOCUMENT_TYPE = "document_type"  # a document of a kind that document_types lacks: aborted after the headers
    NO_ROOM = "no_room"  # documents of this process use document_memory_mb already: aborted, tried again
    FORBIDDEN_ADDRESS = "forbidden_address"  # the guard refused the address or scheme
    SLOT_EXPIRED = "slot_expired"  # the slot expired before bytes left: nothing was sent
    ADDRESS_BUSY = "address_busy"  # per_address requests are already in flight: nothing was sent
    RESENT = "resent"  # libcurl wanted to send a second time: aborted
    CANCELLED = "cancelled"  # the shift is ending, or the crawl was paused
    PROXY = "proxy_failed"  # no proxy of the pool answers
    BROWSER = "browser_failed"  # the response came, but the browser crashed or hung on it


#: faults of transfers that we ended ourselves: the delay runs from the closing of their connection
BROKEN_OFF = frozenset(
    {Fault.TIMEOUT, Fault.TOO_LARGE, Fault.WRONG_TYPE, Fault.DOCUMENT_TOO_LARGE, Fault.DOCUMENT_TYPE, Fault.NO_ROOM,
     Fault.CANCELLED, Fault.PROTOCOL, Fault.RESENT}
)  # fmt: skip


#: stored of the body of a redirect or an error
BEGINNING_BYTES = 64 * 1024


@hot_value()
class Subresource:
    """A request of a browser visit other than the page itself. Times are the worker's boot-time clock in seconds."""

    url: str
    #: unit of politeness
    host: str
    #: when its first byte was about to leave
    started: float
    ended: float
    #: 0 if no status line came
    status: int
    #: `document` (a frame), `script`, `stylesheet`, `xhr`, `fetch`, `robots`
    kind: str


@hot_value()
class Outcome:
    """The result of one request. Times are the worker's boot-time clock in seconds."""

    url: str
    #: 0 if no status line came
    status: int = 0
    #: header lines as received, latin-1 decoded, in order; without the status line
    headers: tuple[tuple[str, str], ...] = ()
    #: after content decoding; empty if not kept
    body: bytes = b""
    #: the body as it arrived, if it is one gzip member and was to be kept
    gzipped: bytes = b""
    #: what arrived of an incomplete redirect or error, at most BEGINNING_BYTES: for archives only, never read
    beginning: bytes = b""
    fault: Fault | None = None
    #: for display: the message of libcurl
    detail: str = ""
    #: when the first byte was about to leave (PREREQFUNCTION); None: nothing was sent
    started: float | None = None
    #: when the response ended or its connection was closed by us
    ended: float
    #: we aborted the transfer (time, size, type, cancelled): the delay counts from `ended`
    broken_off: bool = False
    address: str | None = None
    http_version: str = ""
    #: header lines that were sent, for the WARC request record (credentials removed)
    request_head: bytes = b""
    #: when the response itself was complete, if the browser's visit lasted longer
    answered: float | None = None
    #: requests of the visit for subresources
    subresources: tuple[Subresource, ...] = ()
    #: PNG
    screenshot: bytes | None = None
    #: the browser whose document the body is
    rendered_by: str = ""

    def header(self, name: str) -> str | None:
        """The first header line of that name (lower case), or None."""
        length = len(name)
        for key, value in self.headers:
            if len(key) == length and key.lower() == name:
                return value
        return None

    def header_all(self, name: str) -> list[str]:
        length = len(name)
        return [value for key, value in self.headers if len(key) == length and key.lower() == name]


@hot_value()
class HostEffect:
    """The effect of an outcome on its host, decided from status and headers alone."""

    #: no request before `now + this`
    block_ms: int = 0
    #: new adaptive delay; None: unchanged
    adaptive_ms: int | None = None
    #: consecutive failures of the host after this outcome
    failures: int = 0
    #: the host is slow or failing and belongs in the slow lane
    slow: bool = False


class Action(StrEnum):
    DONE = "done"
    SKIP = "skip"
    RETRY = "retry"  # again at `delay_ms` from now
    DEAD = "dead"  # dead letter
    RENDER = "render"  # the plain HTML has no useful content: render it


@hot_value()
class Decision:
    """The decision about a URL, which the shift carries out."""

    action: Action
    #: reason or cause, a stable word: `gone`, `redirect`, `refused`, `too_large`, ...
    reason: str = ""
    #: for RETRY: not before this long from now
    delay_ms: int = 0
    #: this try counts as an attempt
    counts: bool = True
    #: where a redirect leads, normalized
    location: str | None = None
