"""After `pause` no request of the crawl leaves later than 2 s: by the site's own log, whatever was under way."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder, finish
from waiting import until

from curtsy.services.valkey import EmbeddedValkey

HOSTS = 24
PAGES = 12


class Doors:
    """Two sites on loopback. One takes connections at once; at the other they hang until it is opened: its queue is
    full, so the kernel drops what would come in, and clients knock again."""

    def __init__(self) -> None:
        #: (time, host, path) of every request, from both
        self.asked: list[tuple[float, str, str]] = []
        self._lock = threading.Lock()
        self._ended = False
        self.open_port = self._listen(200)
        self._closed = socket.socket()
        self._closed.bind(("127.0.0.1", 0))
        self._closed.listen(0)
        self.closed_port = self._closed.getsockname()[1]
        self._plugs = [socket.socket() for _ in range(4)]
        for plug in self._plugs:
            plug.setblocking(False)
            with suppress(BlockingIOError):
                plug.connect(("127.0.0.1", self.closed_port))

    def _listen(self, backlog: int) -> int:
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen(backlog)
        self._listener = listener
        threading.Thread(target=self._take, args=(listener,), daemon=True).start()
        return int(listener.getsockname()[1])

    def open(self) -> None:
        self._closed.listen(200)
        threading.Thread(target=self._take, args=(self._closed,), daemon=True).start()

    def _take(self, listener: socket.socket) -> None:
        while not self._ended:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with suppress(OSError), connection, connection.makefile("rb") as lines:
            while request := lines.readline():
                headers = list(iter(lines.readline, b"\r\n"))
                host = next(h for h in headers if h.lower().startswith(b"host:")).split()[1].decode()
                path = request.split()[1].decode()
                with self._lock:
                    self.asked.append((time.time(), host, path))
                body = b"".join(b'<a href="/%d">x</a>' % n for n in range(1, PAGES)) if path != "/robots.txt" else b""
                kind = b"text/plain" if path == "/robots.txt" else b"text/html"
                head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(body))
                connection.sendall(head + body)

    def of(self, suffix: str) -> list[float]:
        return [at for at, host, _ in list(self.asked) if host.endswith(suffix)]

    def close(self) -> None:
        self._ended = True
        for one in (*self._plugs, self._closed, self._listener):
            one.close()


@pytest.fixture
def doors() -> Iterator[Doors]:
    made = Doors()
    yield made
    made.close()


@pytest.fixture
def folder(tmp_path: Path, doors: Doors) -> Iterator[CrawlFolder]:
    rules = [f"*.open.test=127.0.0.1:{doors.open_port}", f"*.hangs.test=127.0.0.1:{doors.closed_port}"]
    made = CrawlFolder(
        tmp_path, resolve=rules, connect_timeout_s=15, fetch_timeout_s=15, slot_s=20, url_lease_s=20, host_patience_s=60
    )
    yield made
    made.close()


@pytest.mark.parametrize("frontier", ["answers", "stands still"])
def test_after_a_pause_nothing_is_sent_later_than_two_seconds(folder: CrawlFolder, doors: Doors, frontier: str) -> None:
    """Half of the hosts take requests, with more of them queued; connections to the other half hang, with slots out."""
    seeds = [f"http://h{n}.{site}.test/" for site in ("open", "hangs") for n in range(HOSTS)]
    crawl = folder.start("crawl", *seeds, "--delay", "0.3", "--json")
    until(lambda: len(doors.of(".open.test")) > HOSTS * 3)
    server = EmbeddedValkey.running(folder.data)
    assert server is not None
    pid = server.pid
    assert pid is not None
    assert doors.of(".hangs.test") == []
    try:
        if frontier == "stands still":
            os.kill(pid, signal.SIGSTOP)
        assert folder.run("pause")["state"] == "paused"
        paused = time.time()
        time.sleep(max(0.0, paused + 2 - time.time()))
        doors.open()
        # Whoever still knocks is let in at its next try, at the latest 7 s after the first one.
        time.sleep(max(0.0, paused + 8 - time.time()))
        late = [(round(at - paused, 2), host, path) for at, host, path in list(doors.asked) if at > paused + 2]
        assert late == []
    finally:
        if frontier == "stands still":
            os.kill(pid, signal.SIGCONT)
    assert finish(crawl, code=3)["state"] == "paused"
    before = len(doors.asked)
    told = folder.run("crawl", "--resume", "last")
    assert (told["state"], told["pages"], told["pending"]) == ("finished", 2 * HOSTS * PAGES, 0)
    assert len(doors.asked) > before
    assert folder.run("audit")["overlaps"] == 0
