"""Progress events: one reader per process queries the store for all listeners."""

from __future__ import annotations

import hashlib
import queue
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from curtsy.control import crawls as control
from curtsy.core import clock
from curtsy.core.errors import CurtsyError
from curtsy.core.observe import log
from curtsy.store import crawls
from curtsy.web.models.crawls import CrawlStatus, status_of

if TYPE_CHECKING:
    from curtsy.web.backend_thread import BackendThread

#: streams of one process
MOST_STREAMS = 64
#: a stream ends after this long; its client reconnects
STREAM_S = 300.0
#: interval of the queries
_QUERY_S = 1.0
#: something is sent at least this often, to detect disconnected clients
_KEEP_ALIVE_S = 15.0
#: a query takes no longer, unless the store is unavailable
_LAST_QUERY_S = 5.0
_ENDED = ("finished", "cancelled", "deleting")


class Event:
    """A status of a crawl. Its id depends on the status only, so every process creates the same id."""

    def __init__(self, status: CrawlStatus) -> None:
        self.status = status
        digested = status.model_dump_json(include={"state", "reason", "counts"})
        self.id = hashlib.sha256(digested.encode()).hexdigest()[:16]

    def lines(self, before: str | None) -> bytes:
        """A `state` event if the state has changed, else `progress`."""
        kind = "progress" if before == self.status.state else "state"
        return f"event: {kind}\nid: {self.id}\ndata: {self.status.model_dump_json()}\n\n".encode()


class Events:
    """The streams of one process."""

    def __init__(self, backend: BackendThread) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        #: number of a crawl -> queues of its listeners
        self._listeners: dict[int, list[queue.SimpleQueue[Event | None]]] = {}
        self._streams = 0
        self._reader: threading.Thread | None = None
        self._closed = threading.Event()

    def reserve(self) -> bool:
        """Reserve one of the limited streams; False if none is free."""
        with self._lock:
            # A stream occupies a thread: keep some threads for other requests.
            most = min(MOST_STREAMS, max(1, self._backend.settings.api_threads * 4 // 5))
            if self._streams >= most or self._closed.is_set():
                return False
            self._streams += 1
            return True

    def release(self) -> None:
        """Release a reserved stream that follows no crawl."""
        with self._lock:
            self._streams -= 1

    def wait_closed(self, seconds: float) -> bool:
        """Wait up to this time; True if the process is shutting down."""
        return self._closed.wait(seconds)

    def stream(self, n: int, last_id: str | None) -> Following:
        """The stream of a crawl, for a client that has reserved one and received the event `last_id`."""
        return Following(self, n, last_id)

    def chunks(self, box: queue.SimpleQueue[Event | None], last_id: str | None) -> Iterator[bytes]:
        yield b"retry: 2000\n\n"
        end = time.monotonic() + STREAM_S
        state: str | None = None
        while (left := end - time.monotonic()) > 0:
            try:
                event = box.get(timeout=min(left, _KEEP_ALIVE_S))
            except queue.Empty:
                yield b": keep-alive\n\n"
                continue
            if event is None:
                return
            if event.id != last_id:
                yield event.lines(state)
            last_id, state = event.id, event.status.state
            if state in _ENDED:
                return

    def listen(self, n: int, box: queue.SimpleQueue[Event | None]) -> None:
        with self._lock:
            self._listeners.setdefault(n, []).append(box)
            if self._reader is None:
                self._reader = threading.Thread(target=self._read, name="events", daemon=True)
                self._reader.start()

    def leave(self, n: int, box: queue.SimpleQueue[Event | None]) -> None:
        with self._lock:
            self._streams -= 1
            boxes = self._listeners.get(n, [])
            if box in boxes:
                boxes.remove(box)
            if not boxes:
                self._listeners.pop(n, None)

    def _read(self) -> None:
        """Runs while there are listeners."""
        sent: dict[int, str] = {}
        sent_to: dict[int, list[queue.SimpleQueue[Event | None]]] = {}
        while not self._closed.is_set():
            with self._lock:
                if not self._listeners:
                    self._reader = None
                    return
                wanted = {n: list(boxes) for n, boxes in self._listeners.items()}
            try:
                for n, event in self._query(wanted).items():
                    # New listeners need the event even if it is unchanged.
                    if sent.get(n) != event.id or sent_to.get(n) != wanted[n]:
                        for box in wanted[n]:
                            box.put(event)
                        sent[n], sent_to[n] = event.id, wanted[n]
            except CurtsyError as error:
                log("events_unavailable", level="warning", error=str(error))
            except Exception as error:
                log("events_failed", level="error", error=repr(error))
            self._closed.wait(_QUERY_S)

    def _query(self, wanted: dict[int, list[queue.SimpleQueue[Event | None]]]) -> dict[int, Event]:
        now_ms, attended = clock.now_ms(), control.attended(self._backend.settings)
        with self._backend.store.read() as tx:
            return {
                n: Event(status_of(control.status_in(tx, crawls.by_n(tx, n, members=False), now_ms), attended))
                for n in wanted
            }

    def close(self) -> None:
        """End all streams at shutdown; their clients reconnect to another process."""
        self._closed.set()
        with self._lock:
            reader = self._reader
            for boxes in self._listeners.values():
                for box in boxes:
                    box.put(None)
        if reader is not None:
            reader.join(_LAST_QUERY_S)  # it uses the store, which is closed next


class Following:
    """One stream. Closing it releases its reservation, even if nothing was ever sent."""

    def __init__(self, events: Events, n: int, last_id: str | None) -> None:
        self._events, self._n = events, n
        self._box: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._chunks = events.chunks(self._box, last_id)
        self._closed = False
        events.listen(n, self._box)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._events.leave(self._n, self._box)
