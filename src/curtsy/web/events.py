"""Progress of crawls as it happens: one reader per process asks the store once for all who listen."""

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
#: a stream ends after this long; its client asks again
STREAM_S = 300.0
#: how often the store is asked
_LOOK_S = 1.0
#: something is sent at least this often, so that a vanished client is noticed
_KEEP_ALIVE_S = 15.0
#: one look at the store takes no longer, unless the store is away
_LAST_LOOK_S = 5.0
_ENDED = ("finished", "cancelled", "deleting")


class Event:
    """A crawl as it stood, with a name that depends on nothing else: every process gives it the same."""

    def __init__(self, status: CrawlStatus) -> None:
        self.status = status
        told = status.model_dump_json(include={"state", "reason", "counts"})
        self.id = hashlib.sha256(told.encode()).hexdigest()[:16]

    def lines(self, before: str | None) -> bytes:
        """`state` where the state is another than before, else `progress`."""
        kind = "progress" if before == self.status.state else "state"
        return f"event: {kind}\nid: {self.id}\ndata: {self.status.model_dump_json()}\n\n".encode()


class Events:
    """One per process."""

    def __init__(self, bridge: BackendThread) -> None:
        self._bridge = bridge
        self._lock = threading.Lock()
        #: number of a crawl -> who listens
        self._listeners: dict[int, list[queue.SimpleQueue[Event | None]]] = {}
        self._streams = 0
        self._reader: threading.Thread | None = None
        self._closed = threading.Event()

    def take(self) -> bool:
        """A place for one more stream; False if all are taken."""
        with self._lock:
            # A stream keeps a thread: some are left for everybody else.
            most = min(MOST_STREAMS, max(1, self._bridge.settings.api_threads * 4 // 5))
            if self._streams >= most or self._closed.is_set():
                return False
            self._streams += 1
            return True

    def give_back(self) -> None:
        """The place of a stream that follows no crawl."""
        with self._lock:
            self._streams -= 1

    def wait_closed(self, seconds: float) -> bool:
        """Whether the process is ending, or will be within this time."""
        return self._closed.wait(seconds)

    def stream(self, n: int, last_id: str | None) -> Following:
        """What a client is sent, who has been given a place and knows the event `last_id`."""
        return Following(self, n, last_id)

    def told(self, box: queue.SimpleQueue[Event | None], last_id: str | None) -> Iterator[bytes]:
        yield b"retry: 2000\n\n"
        end = time.monotonic() + STREAM_S
        state: str | None = None
        while (left := end - time.monotonic()) > 0:
            try:
                event = box.get(timeout=min(left, _KEEP_ALIVE_S))
            except queue.Empty:
                yield b": still here\n\n"
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
        """Until nobody listens any more."""
        told: dict[int, str] = {}
        heard: dict[int, list[queue.SimpleQueue[Event | None]]] = {}
        while not self._closed.is_set():
            with self._lock:
                if not self._listeners:
                    self._reader = None
                    return
                wanted = {n: list(boxes) for n, boxes in self._listeners.items()}
            try:
                for n, event in self._look(wanted).items():
                    # Whoever joined since the last look has not been told yet, also if as many have left.
                    if told.get(n) != event.id or heard.get(n) != wanted[n]:
                        for box in wanted[n]:
                            box.put(event)
                        told[n], heard[n] = event.id, wanted[n]
            except CurtsyError as error:
                log("events_not_read", level="warning", error=str(error))
            except Exception as error:
                log("events_broke", level="error", error=repr(error))
            self._closed.wait(_LOOK_S)

    def _look(self, wanted: dict[int, list[queue.SimpleQueue[Event | None]]]) -> dict[int, Event]:
        now_ms = clock.now_ms()
        with self._bridge.store.read() as tx:
            return {
                n: Event(status_of(control.status_in(tx, crawls.by_n(tx, n, members=False), now_ms))) for n in wanted
            }

    def close(self) -> None:
        """The process ends: every stream ends with it, and its client asks another one."""
        self._closed.set()
        with self._lock:
            reader = self._reader
            for boxes in self._listeners.values():
                for box in boxes:
                    box.put(None)
        if reader is not None:
            reader.join(_LAST_LOOK_S)  # it reads the store, which is closed next


class Following:
    """One stream. Its place is free again when it is closed, even if nothing of it was ever sent."""

    def __init__(self, events: Events, n: int, last_id: str | None) -> None:
        self._events, self._n = events, n
        self._box: queue.SimpleQueue[Event | None] = queue.SimpleQueue()
        self._chunks = events.told(self._box, last_id)
        self._closed = False
        events.listen(n, self._box)

    def __iter__(self) -> Iterator[bytes]:
        return self._chunks

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._events.leave(self._n, self._box)
