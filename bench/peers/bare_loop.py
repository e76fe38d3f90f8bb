"""The floor: pycurl multi, lexbor, ada and a Python set, with no frontier, no politeness and no promise.

With --store every body is hashed, appended compressed to a file and gets a row in SQLite, 200 pages per commit.
With --processes the hosts are divided among so many loops that share nothing.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import sqlite3
from collections import deque
from pathlib import Path
from urllib.parse import urlsplit

import ada_url
import pycurl
from isal import isal_zlib
from selectolax.lexbor import LexborHTMLParser


class Segment:
    """Bodies in one compressed file, rows in SQLite: durable on each commit, nothing else."""

    def __init__(self, folder: Path) -> None:
        self._file = open(folder / "segment", "ab")  # noqa: SIM115
        self._rows = sqlite3.connect(folder / "pages.sqlite")
        self._rows.execute("PRAGMA journal_mode=WAL")
        self._rows.execute("PRAGMA synchronous=FULL")
        self._rows.execute("CREATE TABLE pages (url TEXT PRIMARY KEY, sha256 TEXT, at INTEGER, length INTEGER)")
        self._waiting: list[tuple[str, str, int, int]] = []

    def keep(self, url: str, body: bytes) -> None:
        packed = isal_zlib.compress(body, 1)
        self._waiting.append((url, hashlib.sha256(body).hexdigest(), self._file.tell(), len(packed)))
        self._file.write(packed)
        if len(self._waiting) >= 200:
            self.commit()

    def commit(self) -> None:
        self._file.flush()
        os.fsync(self._file.fileno())
        self._rows.executemany("INSERT OR IGNORE INTO pages VALUES (?, ?, ?, ?)", self._waiting)
        self._rows.commit()
        self._waiting.clear()


class Loop:
    """A crawl in one process: every page of the seeds' hosts once."""

    def __init__(self, seeds: list[str], connections: int, segment: Segment | None, ca_file: str | None) -> None:
        self.pages = 0
        self._hosts = {urlsplit(seed).hostname for seed in seeds}
        self._seen, self._todo = set(seeds), deque(seeds)
        self._segment = segment
        self._multi = pycurl.CurlMulti()
        # A kept connection per host: without it most pages would pay for a new one.
        self._multi.setopt(pycurl.M_MAXCONNECTS, len(self._hosts) + connections)
        port = urlsplit(seeds[0]).port
        self._idle = [self._handle(f"::127.0.0.1:{port}", ca_file) for _ in range(connections)]

    @staticmethod
    def _handle(connect_to: str, ca_file: str | None) -> pycurl.Curl:
        handle = pycurl.Curl()
        if ca_file is None:
            handle.setopt(pycurl.CONNECT_TO, [connect_to])
        else:
            handle.setopt(pycurl.CAINFO, ca_file)
            handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
            handle.setopt(pycurl.ACCEPT_ENCODING, "gzip")
        handle.setopt(pycurl.NOSIGNAL, 1)
        handle.setopt(pycurl.TIMEOUT, 20)
        return handle

    def run(self) -> None:
        busy = 0
        while busy or self._todo:
            while self._idle and self._todo:
                self._start(self._idle.pop(), self._todo.popleft())
                busy += 1
            self._multi.perform()
            _, ended, failed = self._multi.info_read(len(self._todo) + busy + 1)
            for handle in ended:
                self._done(handle)
            for handle, _, _ in failed:
                self._multi.remove_handle(handle)
                self._idle.append(handle)
            busy -= len(ended) + len(failed)
            if not ended:
                self._multi.select(0.1)

    def _start(self, handle: pycurl.Curl, url: str) -> None:
        chunks: list[bytes] = []
        handle.setopt(pycurl.URL, url)
        handle.setopt(pycurl.WRITEFUNCTION, chunks.append)
        handle.url, handle.chunks = url, chunks
        self._multi.add_handle(handle)

    def _done(self, handle: pycurl.Curl) -> None:
        self._multi.remove_handle(handle)
        url, body, status = handle.url, b"".join(handle.chunks), handle.getinfo(pycurl.RESPONSE_CODE)
        self._idle.append(handle)
        if status != 200:
            return
        self.pages += 1
        if self._segment is not None:
            self._segment.keep(url, body)
        for node in LexborHTMLParser(body).css("a[href]"):
            self._follow(url, node.attributes["href"] or "")

    def _follow(self, base: str, href: str) -> None:
        try:
            url = ada_url.join_url(base, href)
        except ValueError:
            return
        if url in self._seen:
            return
        self._seen.add(url)
        if urlsplit(url).hostname in self._hosts:
            self._todo.append(url)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("seeds", type=Path)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--ca-file", dest="ca_file", help="of servers that speak TLS; their names are not mapped")
    options = parser.parse_args()
    seeds = options.seeds.read_text().split()
    work = [(seeds[n :: options.processes], options) for n in range(options.processes)]
    if options.processes == 1:
        pages = crawl(*work[0])
    else:
        with multiprocessing.Pool(options.processes) as pool:
            pages = sum(pool.starmap(crawl, work, chunksize=1))
    print(json.dumps({"pages": pages}))


def crawl(seeds: list[str], options: argparse.Namespace) -> int:
    segment = Segment(options.store) if options.store else None
    loop = Loop(seeds, options.connections, segment, options.ca_file)
    loop.run()
    if segment is not None:
        segment.commit()
    return loop.pages


if __name__ == "__main__":
    main()
