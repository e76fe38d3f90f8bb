"""A crawl that is made, paused and followed over HTTP while another process crawls it."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from served import Served, serving
from waiting import wait_for

from curtsy.tinyweb import TinyWeb

HOSTS, PAGES = 4, 12


@contextmanager
def crawling(folder: Path, store_url: str, web: TinyWeb, id: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that works on the crawl, in the folder of the server."""
    words = ["crawl", "--resume", id, "--config", "tinyweb.toml", "--resolve", web.resolve_rule]
    words += ["--data-dir", str(folder / "data")]
    environment = os.environ | {"CURTSY_STORE_URL": store_url}
    with (folder / "crawl.log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "curtsy", *words], stdout=log, stderr=log, env=environment, cwd=folder
        )
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def follow(served: Served, id: str) -> Iterator[dict[str, Any]]:
    """The events of a crawl until its end."""
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=120)) as connection:
        connection.request("GET", f"/v1/crawls/{id}/events")
        stream = connection.getresponse()
        while line := stream.readline():
            if line.startswith(b"data: "):
                yield json.loads(line[6:])


def test_a_crawl_is_followed_to_its_end_and_rests_while_it_is_paused(tmp_path: Path, postgres_url: str) -> None:
    folder, log = tmp_path / "served", tmp_path / "access.log"
    with (
        TinyWeb.start(hosts=HOSTS, pages=PAGES, faults=(), log=log) as web,
        serving(folder, postgres_url, "--config", "tinyweb.toml", resolve=web.resolve_rule) as served,
    ):
        id = served.client.submit({"delay_s": 0.2}, web.seeds)
        with crawling(folder, postgres_url, web, id) as first:
            events = follow(served, id)
            assert next(events)["state"] == "running"
            wait_for(lambda: served.client.get(f"/v1/crawls/{id}")["counts"]["done"] >= 4)
            assert served.client.post(f"/v1/crawls/{id}/pause")["state"] == "paused"
            paused_us = time.time_ns() // 1000
            # A process that has nothing but a paused crawl drains and ends.
            assert first.wait(30) == 3
        sent = [request for request in web.requests() if request.start_us > paused_us + 2_000_000]
        assert sent == []
        assert served.client.get(f"/v1/crawls/{id}")["state"] == "paused"
        assert any(event["state"] == "paused" for event in events), "whoever follows it is told"
        assert served.client.post(f"/v1/crawls/{id}/resume")["state"] == "interrupted", "no process works on it yet"
        with crawling(folder, postgres_url, web, id):
            seen = [event["state"] for event in events]
        assert seen[-1] == "finished"
        status = served.client.get(f"/v1/crawls/{id}")
        assert status["counts"]["pending"] == 0
        assert status["counts"]["done"] >= HOSTS * PAGES
