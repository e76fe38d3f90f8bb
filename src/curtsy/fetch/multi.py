"""libcurl's multi handle on an asyncio loop: one epoll for all its sockets, one timer.

The loop watches only the epoll's descriptor. Adding and removing each socket as a reader of the loop would cost more
than the rest of a transfer's bookkeeping, because libcurl changes its interest in a socket twice per request.
"""

from __future__ import annotations

import asyncio
import math
import os
import select
import socket
import time
from collections.abc import Callable
from typing import Any

import pycurl

#: idle connections kept open
_MAX_IDLE = 1000
_EVENTS_PER_TURN = 256
_MAX_REMEMBERED = 20_000

_EPOLL_OF = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}

_HUNG_UP = select.POLLRDHUP | select.POLLHUP | select.POLLERR

Finished = Callable[[Any, int, str], None]


class Multi:
    """Runs transfers; `finished(curl, code, message)` is called outside of libcurl's own callbacks."""

    def __init__(self, loop: asyncio.AbstractEventLoop, finished: Finished):
        self._loop = loop
        self._finished = finished
        self._epoll = select.epoll()
        #: by socket, for `hung_up`
        self._polls: dict[int, Any] = {}
        self._watched: set[int] = set()
        self._idle_since: dict[int, float] = {}
        #: inodes of the sockets created for libcurl
        self._sockets: set[int] = set()
        #: the socket of the last request to a host
        self._socket_of: dict[str, int] = {}
        self._asking: str | None = None
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0
        self._due: float | None = None
        #: called with the time when libcurl has sent the pending bytes
        self.sending: list[Callable[[float], None]] = []
        #: libcurl is running: handles may be neither added nor removed
        self.busy = False
        #: ended transfers are being handed over; more of them may have ended since they were read
        self._collecting = self._more = self._closed = False
        self._curl = pycurl.CurlMulti()
        self._curl.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._curl.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)
        self._curl.setopt(pycurl.M_MAXCONNECTS, _MAX_IDLE)
        self._curl.setopt(pycurl.M_PIPELINING, pycurl.PIPE_MULTIPLEX)
        loop.add_reader(self._epoll.fileno(), self._on_ready)

    def add(self, curl: Any) -> None:
        self._curl.add_handle(curl)

    def remove(self, curl: Any) -> None:
        self._curl.remove_handle(curl)

    def send_now(self) -> None:
        """Sends requests that were added, instead of in the next turn of the loop."""
        if not self.busy:
            self._act(pycurl.SOCKET_TIMEOUT, 0)
            # Other transfers may have ended meanwhile.
            self._more = True
            if not self._collecting:
                self._loop.call_soon(self._collect)

    def own(self, fd: int) -> None:
        """A socket was created for libcurl."""
        self._sockets.add(os.fstat(fd).st_ino)
        if len(self._sockets) > _MAX_REMEMBERED:
            self._sockets.intersection_update(_inode(fd) for fd in (*self._idle_since, *self._watched))

    def asking(self, origin: str) -> None:
        """A request to this origin is about to leave on the next socket that libcurl names."""
        self._asking = origin

    def hung_up(self, origin: str) -> bool:
        """Whether the host has closed the idle connection of its last request.

        libcurl checks once a second; a request sent in between would be lost, and its slot with it.
        """
        fd = self._socket_of.get(origin)
        if fd is None or fd not in self._idle_since:
            return False
        poll = self._polls.get(fd)
        if poll is None:
            poll = self._polls[fd] = select.poll()
            poll.register(fd, _HUNG_UP)
        return bool(poll.poll(0))

    def drop_idle(self, older_than_s: float) -> int:
        """Close connections that were unused for that long; libcurl finds them dead and removes them."""
        limit = time.monotonic() - older_than_s
        old = [fd for fd, since in self._idle_since.items() if since <= limit]
        dropped = 0
        for fd in old:
            self._idle_since[fd] = math.inf
            # libcurl may have closed it already, and the descriptor may belong to another socket by now.
            if _inode(fd) in self._sockets:
                _shut(fd)
                dropped += 1
        return dropped

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if not self._loop.is_closed():
            self._loop.remove_reader(self._epoll.fileno())
        self._curl.close()
        self._epoll.close()

    def _on_socket(self, what: int, fd: int, _multi: Any, _data: Any) -> None:
        if what == pycurl.POLL_REMOVE:
            self._unwatch(fd)
            self._idle_since[fd] = time.monotonic()
            return
        self._idle_since.pop(fd, None)
        if self._asking is not None:
            if len(self._socket_of) > _MAX_REMEMBERED:
                self._socket_of.clear()
            self._socket_of[self._asking], self._asking = fd, None
        events = _EPOLL_OF[what]
        if fd in self._watched:
            try:
                self._epoll.modify(fd, events)
                return
            except FileNotFoundError:
                pass  # the descriptor was closed and reused for a new socket
        self._epoll.register(fd, events)
        self._watched.add(fd)

    def _unwatch(self, fd: int) -> None:
        if fd in self._watched:
            self._watched.discard(fd)
            try:
                self._epoll.unregister(fd)
            except OSError:
                pass  # closed already

    def _on_timer(self, timeout_ms: int) -> None:
        if timeout_ms < 0:
            self._due = None
            return
        due = time.monotonic() + timeout_ms / 1000
        self._due = due
        # A timer that fires too early stays: it is set again when it fires. Transfers only move the time further away,
        # so this saves a timer per transfer.
        if self._timer is not None:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        self._arm(due, timeout_ms)

    def _arm(self, due: float, timeout_ms: float) -> None:
        self._timer_at = due
        if timeout_ms <= 0:
            self._timer = self._loop.call_soon(self._on_alarm)
        else:
            self._timer = self._loop.call_later(timeout_ms / 1000, self._on_alarm)

    def _on_alarm(self) -> None:
        self._timer = None
        if self._due is None:
            return
        left_s = self._due - time.monotonic()
        if left_s > 0:
            self._arm(self._due, max(1.0, left_s * 1000))
            return
        self._due = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)
        # libcurl reports a time only when it changes: if this was too early, query it.
        if self._due is None:
            self._on_timer(self._curl.timeout())
        self._collect()

    def _on_ready(self) -> None:
        for fd, events in self._epoll.poll(0, _EVENTS_PER_TURN):
            flags = 0
            if events & select.EPOLLIN:
                flags |= pycurl.CSELECT_IN
            if events & select.EPOLLOUT:
                flags |= pycurl.CSELECT_OUT
            if events & (select.EPOLLERR | select.EPOLLHUP):
                flags |= pycurl.CSELECT_ERR | pycurl.CSELECT_IN
            self._act(fd, flags)
        self._collect()

    def _act(self, fd: int, flags: int) -> None:
        self.busy = True
        try:
            self._curl.socket_action(fd, flags)
        finally:
            self.busy = False
            if self.sending:
                now = time.clock_gettime(time.CLOCK_BOOTTIME)
                for sent in self.sending:
                    sent(now)
                self.sending.clear()

    def _collect(self) -> None:
        if self._closed:
            return
        self._collecting = True
        try:
            while True:
                self._more = False
                left, good, bad = self._curl.info_read()
                for curl in good:
                    self._finished(curl, 0, "")
                for curl, code, message in bad:
                    self._finished(curl, code, message)
                if not (left or self._more):
                    return
        finally:
            self._collecting = False


def _inode(fd: int) -> int:
    try:
        return os.fstat(fd).st_ino
    except OSError:
        return -1


def _shut(fd: int) -> None:
    try:
        connection = socket.socket(fileno=os.dup(fd))
    except OSError:
        return
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    finally:
        connection.close()
