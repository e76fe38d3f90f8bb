"""One request on one pooled curl handle: its options, its callbacks, its outcome."""

from __future__ import annotations

import os
import re
import socket
import time
from collections.abc import Callable
from typing import Any, Protocol

import pycurl

from curtsy.content.documents.sniff import announced
from curtsy.core.model import hot_value
from curtsy.core.outcome import BEGINNING_BYTES, BROKEN_OFF, Fault, Outcome
from curtsy.fetch.content_codings import BadCoding, Decoder, TooLarge, decoder_for
from curtsy.fetch.curl_errors import fault_of, is_bad_line
from curtsy.fetch.document_limits import STEP, DocumentLimits
from curtsy.fetch.guard import Target
from curtsy.fetch.headers import (
    BASE_HEADERS,
    Head,
    body_headers,
    header_lines,
    raw_request,
    read_head,
    request_head,
    type_kept,
)
from curtsy.fetch.raw_response import RawResponse

#: an idle connection is kept for two minutes: longer than any usual delay
_MAX_IDLE_S = 120

#: libcurl rounds its timers to milliseconds and may be called late
_CLOCK_SLACK_S = 0.05
#: bytes that left within this time count as sent at once
_LATE_S = 0.02
_LOWER_ESCAPE = re.compile(r"%(?:[a-f][0-9a-fA-F]|[0-9A-F][a-f])")

Done = Callable[[int, Outcome], None]
Started = Callable[[int, float], None]


def boot_clock() -> float:
    """Seconds since boot, suspend counted."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


@hot_value()
class FetchJob:
    """One request to make."""

    id: int
    #: normalized
    url: str
    #: boot clock; nothing may be sent after it, and the transfer ends by then
    deadline: float
    timeout_s: float
    #: of the body, after decompression
    max_bytes: int
    #: content types to keep, whole (`text/html`) or by prefix (`text/`); None: any
    keep_types: tuple[str, ...] | None = None
    #: conditional headers, cookies, host rules
    headers: tuple[tuple[str, str], ...] = ()
    proxy_pool: str | None = None
    #: a body over the limit is truncated and returned with the fault, instead of dropped (robots.txt, sitemaps)
    keep_partial: bool = False
    #: a body that arrives as gzip is returned as it arrived, too
    keep_gzip: bool = False
    #: sent by POST; None: a GET
    body: bytes | None = None
    #: documents have limits of their own; None: they are bodies like others
    documents: DocumentLimits | None = None
    #: fence of the lease, which holds the bytes of a document in the budget
    fence: int = 0


def _nobody(_id: int, _outcome: Outcome) -> None: ...


_NO_JOB = FetchJob(id=-1, url="", deadline=0.0, timeout_s=0.0, max_bytes=0)
_NO_TARGET = Target("", "", 0, "")


class Watch(Protocol):
    """What a transfer calls in its fetcher before bytes leave."""

    def admit(self, transfer: Transfer, address: str) -> Fault | None:
        """Whether this transfer may send to this address. Counts it there."""

    def may_connect(self, transfer: Transfer, address: str) -> bool: ...

    def socket_opened(self, fd: int) -> None: ...

    def sending(self, transfer: Transfer) -> None:
        """Its bytes leave now; `sent` is called when they have left."""

    def callback_failed(self, error: Exception) -> None: ...


class _HandedOver:
    """A socket for libcurl, which duplicates it: ours is closed afterwards."""

    def __init__(self, connection: socket.socket):
        self._fd = connection.detach()

    def fileno(self) -> int:
        return self._fd

    def __del__(self) -> None:
        os.close(self._fd)


class Transfer:
    """A curl handle, used for one request after another."""

    __slots__ = (
        "_begun",
        "_bytes_left",
        "_chunks",
        "_decoder",
        "_detail",
        "_fault",
        "_fresh_connect",
        "_has_headers",
        "_head",
        "_limits",
        "_lines",
        "_on_started",
        "_opened",
        "_posts",
        "_sent_on_new_connection",
        "_sets_target",
        "_taken",
        "_user_agent",
        "_watch",
        "address",
        "addresses",
        "curl",
        "done",
        "job",
        "proxy",
        "reserved",
        "running",
        "started",
        "target",
    )

    def __init__(self, watch: Watch, user_agent: str, ca_file: str, connect_timeout_s: float):
        self._watch = watch
        self._user_agent = user_agent
        self._lines: list[bytes] = []
        self._chunks: list[bytes] = []
        # Options that the handle keeps from one request to the next.
        #: HTTPHEADER has headers of the last request
        self._has_headers = False
        #: POST is set
        self._posts = False
        #: REQUEST_TARGET is set: it cannot be unset, so each request sets it
        self._sets_target = False
        #: FRESH_CONNECT is set
        self._fresh_connect = False
        self.proxy: str | None = None
        self.curl = pycurl.Curl()
        self._set_up(user_agent, ca_file, connect_timeout_s)
        self.clear()

    def _set_up(self, user_agent: str, ca_file: str, connect_timeout_s: float) -> None:
        """Sets options that are the same for every request on this handle."""
        set_option = self.curl.setopt
        set_option(pycurl.NOSIGNAL, 1)
        set_option(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
        set_option(pycurl.FOLLOWLOCATION, 0)
        set_option(pycurl.NETRC, pycurl.NETRC_IGNORED)
        set_option(pycurl.PROXY, "")  # with the empty string libcurl does not read the environment
        set_option(pycurl.NOPROXY, "")
        set_option(pycurl.PATH_AS_IS, 1)
        set_option(pycurl.HTTP09_ALLOWED, 0)
        set_option(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        set_option(pycurl.HTTP_CONTENT_DECODING, 0)
        set_option(pycurl.SSLVERSION, pycurl.SSLVERSION_TLSv1_2)
        set_option(pycurl.SSL_VERIFYPEER, 1)
        set_option(pycurl.SSL_VERIFYHOST, 2)
        set_option(pycurl.CAINFO, ca_file)
        set_option(pycurl.USERAGENT, user_agent)
        set_option(pycurl.HTTPHEADER, list(BASE_HEADERS))
        set_option(pycurl.CONNECTTIMEOUT_MS, int(connect_timeout_s * 1000))
        set_option(pycurl.MAXAGE_CONN, _MAX_IDLE_S)
        set_option(pycurl.BUFFERSIZE, 65536)
        set_option(pycurl.HEADERFUNCTION, self._lines.append)
        set_option(pycurl.WRITEFUNCTION, self._on_body)
        set_option(pycurl.PREREQFUNCTION, self._on_prereq)
        set_option(pycurl.OPENSOCKETFUNCTION, self._on_open)
        self.curl.transfer = self

    def clear(self) -> None:
        """Forgets the last request, so that the pool does not keep its bytes."""
        self.job = _NO_JOB
        self.done: Done = _nobody
        self._on_started: Started | None = None
        self.target = _NO_TARGET
        self.addresses: tuple[str, ...] = ()
        self.address: str | None = None
        #: the address that this transfer is counted at
        self.reserved: str | None = None
        self.started: float | None = None
        #: it was added to libcurl
        self.running = False
        self._fault: Fault | None = None
        self._detail = ""
        self._decoder: Decoder | None = None
        self._begun = False
        #: set if the body is a document
        self._limits: DocumentLimits | None = None
        #: bytes of the budget that are taken and not filled yet
        self._taken = 0
        self._head: Head | None = None
        #: libcurl opened a connection for this request
        self._opened = False
        self._sent_on_new_connection = False
        self._lines.clear()
        self._chunks.clear()

    def assign(self, job: FetchJob, target: Target, done: Done, on_started: Started | None) -> None:
        self.job = job
        self.target = target
        self.done = done
        self._on_started = on_started
        #: how much longer the body may become
        self._bytes_left = job.max_bytes

    @property
    def fault(self) -> Fault | None:
        """What its own checks found."""
        return self._fault

    @property
    def origin(self) -> str:
        return self.job.url[: len(self.target.scheme) + 3 + len(self.target.authority)]

    def use_fresh_connection(self, fresh: bool) -> None:
        if fresh != self._fresh_connect:
            self.curl.setopt(pycurl.FRESH_CONNECT, fresh)
            self._fresh_connect = fresh

    def prepare(self, addresses: tuple[str, ...], mapped_port: int | None, proxy: str | None, total_s: float) -> None:
        """Sets options that differ from the last request on this handle."""
        job, target, set_option = self.job, self.target, self.curl.setopt
        self.addresses = addresses
        set_option(pycurl.URL, job.url)
        if self._sets_target or ("%" in job.url and _LOWER_ESCAPE.search(job.url) is not None):
            self._ask_exactly(proxy if mapped_port is None else None)
        set_option(pycurl.TIMEOUT_MS, max(1, int(total_s * 1000)))
        if proxy != self.proxy:
            set_option(pycurl.PROXY, proxy or "")
            self.proxy = proxy
        if mapped_port is not None:
            # Entries of earlier requests may stay: they apply to their host and port only.
            set_option(
                pycurl.CONNECT_TO, [f"{_quoted(target.host)}:{target.port}:{_quoted(addresses[0])}:{mapped_port}"]
            )
        elif addresses and addresses[0] != target.host:
            # "+": the entry expires in libcurl's own cache, which would otherwise grow with every host.
            set_option(pycurl.RESOLVE, [f"+{target.host}:{target.port}:{','.join(map(_quoted, addresses))}"])
        if job.body is not None:
            set_option(pycurl.POST, 1)
            set_option(pycurl.POSTFIELDS, job.body)
            self._posts = True
        elif self._posts:
            set_option(pycurl.HTTPGET, 1)
            self._posts = False
        if job.headers or self._has_headers:
            set_option(pycurl.HTTPHEADER, header_lines(job.headers))
            self._has_headers = bool(job.headers)

    def go_direct(self, addresses: tuple[str, ...]) -> None:
        """Prepares a request that `raw_connection.py` makes instead of libcurl, without a proxy."""
        self.addresses = addresses
        if self.proxy is not None:
            self.curl.setopt(pycurl.PROXY, "")
            self.proxy = None

    def _ask_exactly(self, proxy: str | None) -> None:
        """libcurl writes `%2f` as `%2F`. A server may treat them differently, and the stored URL must be the requested
        one.
        """
        # A proxy without a tunnel gets the whole URL.
        whole = self.target.scheme == "http" and proxy is not None and proxy.startswith("http")
        self.curl.setopt(pycurl.REQUEST_TARGET, self.job.url if whole else self.job.url[len(self.origin) :])
        self._sets_target = True

    # libcurl's callbacks: they must not raise, and must not touch the multi handle.

    def _on_open(self, _purpose: int, where: Any) -> Any:
        address = where.addr[0]
        if not self._watch.may_connect(self, address):
            self._fault, self._detail = Fault.FORBIDDEN_ADDRESS, f"{address} is not a public address"
            return pycurl.SOCKET_BAD
        try:
            connection = _HandedOver(socket.socket(where.family, where.socktype, where.protocol))
        except OSError as error:
            self._detail = str(error)
            return pycurl.SOCKET_BAD
        self._opened = True
        self._watch.socket_opened(connection.fileno())
        return connection

    def _on_prereq(self, address: str, _local: str, _port: int, _local_port: int) -> int:
        if not self.may_send(address):
            return pycurl.PREREQFUNC_ABORT  # type: ignore[no-any-return]
        self._watch.sending(self)
        return pycurl.PREREQFUNC_OK  # type: ignore[no-any-return]

    def may_send(self, address: str) -> bool:
        """Whether the request may be sent to this address now, which then counts as its start. If not, `outcome` says
        why.
        """
        now = boot_clock()
        job = self.job
        if self.started is not None:
            # On a new connection the host refused the request; a kept connection just died.
            self._fault = Fault.RESET if self._sent_on_new_connection else Fault.RESENT
            self._detail = "the connection closed before an answer; nothing is sent twice in one slot"
        elif now >= job.deadline:
            self._fault, self._detail = Fault.SLOT_EXPIRED, "the slot ran out before bytes left"
        else:
            self._fault = self._watch.admit(self, address)
            self.address = address
        if self._fault is not None:
            return False
        self.started = now
        self._sent_on_new_connection = self._opened
        if self._on_started is not None:
            try:
                self._on_started(job.id, now)
            except Exception as error:
                self._watch.callback_failed(error)
        return True

    def raw_response(self) -> RawResponse:
        """Reads the response of this transfer where libcurl does not."""
        return RawResponse(self._lines, self._on_body)

    def raw_request(self) -> bytes:
        return raw_request(self.job.url, self.target, self._user_agent, self.job.headers)

    def sent(self, now: float) -> None:
        """Correct the start: a process may be suspended between reading the clock and sending. Without this, the next
        request to the host would be too early by that time.
        """
        if self.started is not None and now - self.started > _LATE_S:
            self.started = now

    def _on_body(self, data: bytes) -> int | None:
        if not self._begun:
            self._begun = True
            if not self._body_wanted():
                if self._fault is Fault.TOO_LARGE:
                    self._chunks.append(data)
                return -1
        decoder = self._decoder
        if decoder is not None:
            try:
                data = decoder.feed(data, self._bytes_left)
            except TooLarge:
                return self._too_large()
            except BadCoding as error:
                return self._break_off(Fault.PROTOCOL, str(error))
        self._bytes_left -= len(data)
        self._chunks.append(data)
        if self._bytes_left < 0:
            return self._too_large()
        if self._limits is not None and not self._fill(self._limits, len(data)):
            return self._no_room(self._limits)
        return None

    def _fill(self, limits: DocumentLimits, size: int) -> bool:
        """Uses bytes of the budget; takes more where the length was not announced."""
        while self._taken < size:
            if not limits.budget.take(self.job.fence, STEP):
                return False
            self._taken += STEP
        self._taken -= size
        return True

    def _no_room(self, limits: DocumentLimits) -> int:
        return self._break_off(Fault.NO_ROOM, f"documents use {limits.budget.used} of {limits.budget.most} bytes")

    def _too_large(self) -> int:
        if self._limits is not None:
            return self._break_off(Fault.DOCUMENT_TOO_LARGE, f"over {self._limits.max_bytes} bytes")
        return self._break_off(Fault.TOO_LARGE, f"over {self.job.max_bytes} bytes")

    def _break_off(self, fault: Fault, detail: str) -> int:
        self._fault, self._detail = fault, detail
        return -1

    def _body_wanted(self) -> bool:
        """The headers are complete: checks type and size of the body, and selects its decoder."""
        job = self.job
        self._head = head = read_head(self._lines)
        coding, content_type, length = body_headers(head)
        if 200 <= head.status < 300 and not self._type_wanted(head, content_type):
            return False
        if coding is not None:
            try:
                # The memory of documents is counted, and has no room for two forms of one.
                self._decoder = decoder_for(coding, job.keep_gzip and self._limits is None)
            except BadCoding as error:
                self._fault, self._detail = Fault.PROTOCOL, str(error)
                return False
        elif length is not None and length > self._bytes_left and not job.keep_partial:
            self._too_large()
            self._detail = f"Content-Length {length}"
            return False
        elif self._limits is not None and length:
            if not self._limits.budget.take(job.fence, length):
                self._no_room(self._limits)
                return False
            self._taken = length
        return True

    def _type_wanted(self, head: Head, content_type: str | None) -> bool:
        job, limits = self.job, self.job.documents
        if limits is not None and (kind := _document_kind(head, content_type, job.url)) is not None:
            if kind in limits.kinds:
                self._limits, self._bytes_left = limits, limits.max_bytes
                return True
            if not type_kept(content_type, job.keep_types):
                self._fault, self._detail = Fault.DOCUMENT_TYPE, f"{kind}: {content_type}"
                return False
        elif not type_kept(content_type, job.keep_types):
            self._fault, self._detail = Fault.WRONG_TYPE, content_type or ""
            return False
        return True

    def outcome(self, code: int, message: str, fault: Fault | None = None) -> Outcome:
        """The outcome of the request; `fault` overrides (cancelled)."""
        job = self.job
        sent = self.started is not None
        # Otherwise the response is the proxy's answer to CONNECT.
        head = (self._head or read_head(self._lines)) if sent else Head()
        status = head.status
        detail = self._detail or message
        fault = fault or self._fault or (self._fault_of(code, message, status) if code else None)
        if is_bad_line(code, message):
            status = 0  # the rest of the head is unknown, such as where a redirect leads
        if fault is None and self._decoder is not None and not self._decoder.complete():
            fault, detail = Fault.PROTOCOL, "the content coding ends early"
        if fault is None and not head.complete:
            fault, detail = Fault.RESET, "the head ends early"
        if fault is None and not status:
            fault, detail = Fault.PROTOCOL, "no status line that can be read"
        return Outcome(
            url=job.url,
            status=status,
            headers=head.headers,
            body=self._body(fault),
            gzipped=self._decoder.gzipped() if fault is None and self._decoder is not None else b"",
            beginning=self._beginning() if fault is not None and status >= 300 else b"",
            fault=fault,
            detail=detail,
            started=self.started,
            ended=boot_clock(),
            broken_off=sent and fault in BROKEN_OFF,
            address=self.address,
            http_version=head.version,
            request_head=request_head(job.url, self.target, self._user_agent, job.headers) if sent else b"",
        )

    def _fault_of(self, code: int, message: str, status: int) -> Fault:
        sent = self.started is not None
        fault = fault_of(code, message, sent=sent, proxied=self.proxy is not None)
        if code == pycurl.E_OPERATION_TIMEDOUT:
            if not sent and boot_clock() >= self.job.deadline - _CLOCK_SLACK_S:
                # The slot ended it, not the timeout: the host is not at fault.
                return Fault.SLOT_EXPIRED
            if sent and 200 <= status < 300:
                head = self._head or read_head(self._lines)
                if not self._type_wanted(head, body_headers(head)[1]):
                    return self._fault or Fault.WRONG_TYPE
        return fault

    def _body(self, fault: Fault | None) -> bytes:
        if fault is None:
            chunks = self._chunks
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)
        job = self.job
        return b"".join(self._chunks)[: job.max_bytes] if job.keep_partial and fault is Fault.TOO_LARGE else b""

    def _beginning(self) -> bytes:
        found = bytearray()
        for chunk in self._chunks:
            found += chunk[: BEGINNING_BYTES - len(found)]
        return bytes(found)


def _document_kind(head: Head, content_type: str | None, url: str) -> str | None:
    if not content_type or content_type.startswith("text/html"):
        return None
    named = next((value for name, value in head.headers if name.lower() == "content-disposition"), None)
    return announced(content_type, url, named)


def _quoted(address: str) -> str:
    return f"[{address}]" if ":" in address else address
