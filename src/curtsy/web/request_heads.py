"""A gunicorn worker that gives a request to a thread only after its head has arrived.

Clients that send their headers slowly then occupy memory instead of threads, and only a bounded amount of it.
"""

from __future__ import annotations

import contextlib
import errno
import selectors
import time
from functools import partial
from typing import Any

from gunicorn.http.errors import LimitRequestHeaders
from gunicorn.workers.gthread import TConn, ThreadWorker

#: connections of one process whose head is incomplete; beyond it, the oldest one is closed
MOST_WAITING = 500
#: a longer head is refused
LONGEST_HEAD = 64 * 1024
#: time for incomplete heads at shutdown
_LAST_S = 1.0
_END = b"\r\n\r\n"
#: what `handle` returns if the head of the next request is incomplete
INCOMPLETE = object()


class HeadWorker(ThreadWorker):  # type: ignore[misc]
    """`patience_s` is how long a client may take for the head of a request."""

    patience_s = 30.0

    def accept(self, listener: Any) -> None:
        try:
            client, address = listener.accept()
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.ECONNABORTED, errno.EWOULDBLOCK):
                raise
            return
        self.nr_conns += 1
        conn = TConn(self.cfg, client, address, listener.getsockname())
        conn.head = bytearray()
        self._await_head(conn)

    def _await_head(self, conn: Any) -> None:
        conn.timeout = time.monotonic() + self.patience_s
        self.pending_conns.append(conn)
        self.poller.register(conn.sock, selectors.EVENT_READ, partial(self.on_pending_socket_readable, conn))
        if len(self.pending_conns) > MOST_WAITING:
            self._drop(self.pending_conns[0])

    def on_client_socket_readable(self, conn: Any, client: Any) -> None:
        """The next request on a connection that was kept."""
        self.poller.unregister(client)
        self.keepalived_conns.remove(conn)
        conn.head = bytearray()
        self._await_head(conn)
        self.on_pending_socket_readable(conn, client)

    def on_pending_socket_readable(self, conn: Any, client: Any) -> None:
        try:
            data = client.recv(LONGEST_HEAD)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        searched = max(0, len(conn.head) - len(_END))
        conn.head += data
        if not data:
            self._drop(conn)
        elif _END in conn.head[searched:]:
            self._leave(conn)
            conn.data_ready = True
            self.enqueue_req(conn)
        elif len(conn.head) > LONGEST_HEAD:
            self.handle_error(None, client, conn.client, LimitRequestHeaders("limit request headers fields size"))
            self._drop(conn)

    def take_head(self, conn: Any) -> bool:
        """Give the parser what was read here; False if the head is incomplete. Runs in the thread of the request."""
        unreader = conn.parser.unreader
        conn.head = bytearray(
            unreader.take_buffered() + conn.head
        )  # a client may send the next request before the response
        if _END not in conn.head:
            return False
        unreader.unread(bytes(conn.head))
        conn.head = bytearray()
        return True

    def finish_request(self, conn: Any, fs: Any) -> None:
        if self.alive and not fs.cancelled() and fs.exception() is None and fs.result() is INCOMPLETE:
            conn.sock.setblocking(False)
            self._await_head(conn)
        else:
            super().finish_request(conn, fs)

    def _leave(self, conn: Any) -> None:
        self.pending_conns.remove(conn)
        with contextlib.suppress(OSError, KeyError, ValueError):
            self.poller.unregister(conn.sock)

    def _drop(self, conn: Any) -> None:
        self._leave(conn)
        self.nr_conns -= 1
        conn.close()

    def hurry(self) -> None:
        """At shutdown: a head that does not arrive now is not waited for."""
        for conn in self.pending_conns:
            conn.timeout = min(conn.timeout, time.monotonic() + _LAST_S)
