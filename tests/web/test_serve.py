"""The API as a server with several processes, over real connections."""

from __future__ import annotations

import http.client
import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from served import Served, head_of, serving
from waiting import until, wait_for

from curtsy.client.http import Client
from curtsy.core.errors import Unavailable, UsageError
from curtsy.core.model import CrawlState
from curtsy.store import crawls
from curtsy.store.engine import Store

SEEDS = [f"https://h{i % 7}.test/{i}" for i in range(9_000)]


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'curtsy.sqlite'}"


def curtsy(served: Served, *words: str, key: str = "") -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"CURTSY_API_URL": served.url, "CURTSY_API_KEY": key}
    return subprocess.run(
        [sys.executable, "-m", "curtsy", *words],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
        check=False,
    )


def test_commands_do_over_the_api_what_they_do_locally(tmp_path: Path, postgres_url: str) -> None:
    with serving(tmp_path / "served", postgres_url) as served:
        submitted = curtsy(
            served, "submit", "https://a.test/", "https://b.test/x", "--lane", "high", "--max-pages", "9"
        )
        id = submitted.stdout.strip()
        assert submitted.returncode == 0, submitted.stderr
        for verb, state in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled")):
            ended = curtsy(served, verb, id, "--json")
            assert json.loads(ended.stdout)["state"] == state
        assert "cancelled 2" in curtsy(served, "status").stdout
        assert id in curtsy(served, "status", "--all").stdout
        explained = curtsy(served, "explain", "https://b.test/x")
        assert explained.stdout.startswith("https://b.test/x\n  "), explained.stderr
        assert json.loads(curtsy(served, "explain", "b.test", "--json").stdout)["queues"][0]["crawl"] == id
        wrong = curtsy(served, "resume", id)
        assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
        assert "cancelled" in wrong.stderr
        unknown = curtsy(served, "status", "ffff")
        assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)
    gone = curtsy(served, "status")
    assert (gone.returncode, gone.stderr.count("\n")) == (4, 1)
    assert "curtsy serve" in gone.stderr


def test_a_key_made_by_a_command_opens_a_server_that_needs_one(tmp_path: Path, postgres_url: str) -> None:
    environment = os.environ | {"CURTSY_STORE_URL": postgres_url}
    words = ["keys", "create", "--name", "reader", "--scopes", "read", "--expires", "1h"]
    made = subprocess.run(
        [sys.executable, "-m", "curtsy", *words],
        capture_output=True,
        text=True,
        env=environment,
        check=True,
        cwd=tmp_path,
    )
    key = made.stdout.strip()
    assert key.startswith("curtsy_")
    with serving(tmp_path / "served", postgres_url, "--host", "0.0.0.0") as served:
        with pytest.raises(UsageError, match="needs an API key"):
            served.client.get("/v1/crawls")
        assert Client(served.url, key).get("/v1/crawls") == {"items": [], "next": None}
        with pytest.raises(UsageError, match="scope write"):
            Client(served.url, key).post("/v1/crawls", {"seeds": ["https://a.test/"]})
        assert served.client.get("/healthz")["status"] == "ok"
        id = key.split("_")[1]
        listed = subprocess.run(
            [sys.executable, "-m", "curtsy", "keys", "list", "--json"], capture_output=True, env=environment, check=True
        )
        (shown,) = json.loads(listed.stdout)["keys"]
        assert (shown["id"], shown["scopes"], shown["valid"]) == (id, "read", True)
        assert shown["used"]
        subprocess.run([sys.executable, "-m", "curtsy", "keys", "revoke", id], env=environment, check=True)
        with pytest.raises(UsageError, match="revoked"):
            Client(served.url, key).get("/v1/crawls")
        assert key.split("_")[2] not in served.said()


def test_many_seeds_are_uploaded_and_every_one_is_stored(tmp_path: Path, postgres_url: str) -> None:
    with serving(tmp_path / "served", postgres_url) as served:
        id = served.client.submit({"scope": "any"}, SEEDS)
        status = served.client.get(f"/v1/crawls/{id}")
        assert (status["state"], status["counts"]["pending"]) == ("running", len(SEEDS))


def test_invalid_chunks_are_a_mistake_of_the_client(tmp_path: Path, sqlite_url: str) -> None:
    """The size of a chunk, its end, its extension."""
    with serving(tmp_path / "served", sqlite_url, processes=1) as served:
        for media_type in ("json", "x-ndjson"):
            for chunks in (b"ZZ\r\n{}\r\n0\r\n\r\n", b"2\r\n{}XX0\r\n\r\n", b"2;\r\r\n{}\r\n0\r\n\r\n"):
                head = f"POST /v1/crawls HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
                head += f"Content-Type: application/{media_type}\r\nTransfer-Encoding: chunked\r\n\r\n"
                with served.connect() as connection:
                    connection.sendall(head.encode() + chunks)
                    answer = http.client.HTTPResponse(connection)
                    answer.begin()
                    document = json.load(answer)
                    assert (answer.status, document["type"]) == (400, "urn:curtsy:problem:bad-request"), chunks
                    assert connection.recv(1) == b"", "what follows is no request"
        assert served.client.get("/v1/crawls")["items"] == []


def half_an_upload(served: Served, key: str, how: str) -> bytes:
    """Sends more than a part of the seeds and hangs up; the whole body."""
    body = "\n".join(["{}", *map(json.dumps, SEEDS)]).encode()
    half = body[: len(body) * 9 // 10]
    head = f"POST /v1/crawls HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nContent-Type: application/x-ndjson\r\n"
    head += f"Idempotency-Key: {key}\r\n"
    with served.connect() as connection:
        if how == "length":
            connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + half)
        else:
            connection.sendall(f"{head}Transfer-Encoding: chunked\r\n\r\n{len(half):x}\r\n".encode() + half + b"\r\n")
        connection.shutdown(1)
        connection.recv(65536)
    return body


@pytest.mark.parametrize("how", ["length", "chunks"])
def test_an_upload_whose_client_disconnects_continues_under_its_key(tmp_path: Path, sqlite_url: str, how: str) -> None:
    with serving(tmp_path / "served", sqlite_url) as served, Store.open(sqlite_url) as store:
        body = half_an_upload(served, "key", how)
        with store.read() as tx:
            (begun,) = crawls.list_all(tx)
            assert (begun.state, crawls.counts(tx, begun.n).pending) == (CrawlState.LOADING, 5_000)
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": "key"}
        answer = served.client._request("POST", "/v1/crawls", body, headers)
        assert answer["id"] == begun.id
        status = served.client.get(f"/v1/crawls/{begun.id}")
        assert (status["state"], status["counts"]["pending"]) == ("running", len(SEEDS))


def test_told_to_end_it_lets_requests_end_and_leaves_nothing_behind(tmp_path: Path, sqlite_url: str) -> None:
    with ExitStack() as opened, serving(tmp_path / "served", sqlite_url) as served:
        id = served.client.submit({}, SEEDS[:3])
        following = http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)
        opened.callback(following.close)
        following.request("GET", f"/v1/crawls/{id}/events")
        stream = following.getresponse()
        assert stream.readline().startswith(b"retry")
        body = "\n".join(["{}", *map(json.dumps, SEEDS[:10])]).encode()
        with served.connect() as connection:
            head = f"POST /v1/crawls HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
            connection.sendall(f"{head}Content-Type: application/x-ndjson\r\n\r\n".encode() + body[:20])
            wait_for(lambda: served.children() or None)
            others = psutil.Process(served.process.pid).children(recursive=True)
            served.process.send_signal(signal.SIGTERM)
            stream.read()  # to its end
            connection.sendall(body[20:])
            with connection.makefile("rb") as answer:
                status, _ = head_of(answer)
            assert status == 202
        assert served.end() == 0
        assert not [process for process in others if process.is_running() and "valkey" not in process.name()]
        wait_for(lambda: not (tmp_path / "served" / "data" / "valkey.sock").exists())
    with Store.open(sqlite_url) as store, store.read() as tx:
        assert [crawl.state for crawl in crawls.list_all(tx)] == [CrawlState.RUNNING] * 2


def test_a_process_that_is_killed_is_replaced(tmp_path: Path, sqlite_url: str) -> None:
    with serving(tmp_path / "served", sqlite_url) as served:
        id = served.client.submit({}, SEEDS[:3])
        before = {process.pid for process in wait_for(lambda: served.children() or None)}
        for process in served.children():
            process.kill()

        def answered() -> Any:
            try:
                return served.client.get(f"/v1/crawls/{id}")
            except Unavailable:
                return None

        assert wait_for(answered)["counts"]["pending"] == 3
        # The server may still have to collect a process that was killed.
        until(lambda: before.isdisjoint(process.pid for process in served.children()))


class Interrupted(list[str]):
    """Seeds of which the server dies half-way, the first time; the third time it has let go of the upload."""

    def __init__(self, seeds: list[str], served: Served, store_url: str) -> None:
        super().__init__(seeds)
        self.times = 0
        self._served, self._path = served, store_url.removeprefix("sqlite:///")

    def __iter__(self) -> Iterator[str]:
        self.times += 1
        if self.times == 3:
            self._do("UPDATE idempotency SET held_until_ms = 0")
        for number in range(len(self)):
            if self.times == 1 and number == len(self) // 2:
                wait_for(lambda: self._do("SELECT 1 FROM idempotency WHERE received > 0"))
                for process in self._served.children():
                    process.kill()
            yield self[number]

    def _do(self, sql: str) -> list[Any]:
        with closing(sqlite3.connect(self._path, timeout=30)) as connection, connection:
            return connection.execute(sql).fetchall()


def test_an_upload_whose_server_is_killed_is_sent_again_until_it_is_taken(tmp_path: Path, sqlite_url: str) -> None:
    Store.open(sqlite_url).close()  # its tables are there
    with serving(tmp_path / "served", sqlite_url) as served:
        seeds = Interrupted(SEEDS * 8, served, sqlite_url)
        served.client.submit({}, seeds)
        assert seeds.times >= 3
    with Store.open(sqlite_url) as store, store.read() as tx:
        (crawl,) = crawls.list_all(tx)
        assert crawl.state is CrawlState.RUNNING
        assert crawls.counts(tx, crawl.n).pending == len(SEEDS)


def test_a_client_that_falls_silent_is_dropped(tmp_path: Path, sqlite_url: str) -> None:
    with serving(tmp_path / "served", sqlite_url, api_timeout_s=1) as served, served.connect() as connection:
        connection.sendall(b"POST /v1/crawls HTTP/1.1\r\nHost: localhost\r\nContent-Le")
        assert not connection.recv(65536).startswith(b"HTTP/1.1 2")
        with served.connect() as other:
            other.sendall(
                b"POST /v1/crawls HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n"
                b"Content-Type: application/x-ndjson\r\n\r\n{}\n"
            )
            with other.makefile("rb") as answer:
                status, _ = head_of(answer)
            assert status == 400


def test_the_request_id_stands_in_the_log_of_every_process(tmp_path: Path, sqlite_url: str) -> None:
    with serving(tmp_path / "served", sqlite_url) as served:
        with closing(http.client.HTTPConnection("127.0.0.1", served.port)) as connection:
            connection.request("GET", "/v1/crawls", headers={"X-Request-Id": "look-for-me"})
            assert connection.getresponse().headers["X-Request-Id"] == "look-for-me"

        def line() -> dict[str, Any] | None:
            found = [one for one in served.said().splitlines() if "look-for-me" in one]
            return json.loads(found[0]) if found else None

        said = wait_for(line)
        assert (said["event"], said["route"], said["status"]) == ("api", "/v1/crawls", 200)


def test_a_port_that_is_taken_is_reported_in_one_line(tmp_path: Path, sqlite_url: str) -> None:
    with serving(tmp_path / "served", sqlite_url) as served:
        words = ["serve", "--port", str(served.port), "--data-dir", str(tmp_path / "other")]
        ended = subprocess.run(
            [sys.executable, "-m", "curtsy", *words], capture_output=True, text=True, timeout=60, check=False
        )
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "--port" in ended.stderr


def test_an_answer_that_is_not_of_this_api_is_reported_in_one_line() -> None:
    client = Client("http://127.0.0.1:1")
    with pytest.raises(Unavailable, match="is not a Curtsy API"):
        client.read(200, b"<html>")
    with pytest.raises(UsageError):
        Client("ftp://x")


NO_HTTP = (
    (b"NONSENSE\r\n\r\n", 400),
    (b"GET /" + b"x" * 9000 + b" HTTP/1.1\r\n\r\n", 414),
    (b"GET / HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(100)) + b"\r\n", 431),
)


def test_what_is_no_http_is_a_problem_too(tmp_path: Path, sqlite_url: str) -> None:
    with serving(tmp_path / "served", sqlite_url) as served:
        for sent, status in NO_HTTP:
            with served.connect() as connection, connection.makefile("rb") as answer:
                connection.sendall(sent)
                code, headers = head_of(answer)
                document = json.loads(answer.read(int(headers["content-length"])))
            assert (code, headers["content-type"]) == (status, "application/problem+json")
            assert document["request_id"] == headers["x-request-id"]


def test_without_an_api_a_crawl_is_handed_in_to_the_local_folder(tmp_path: Path) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CURTSY_")}
        return subprocess.run(
            [sys.executable, "-m", "curtsy", *words],
            capture_output=True,
            text=True,
            env=environment,
            cwd=tmp_path,
            check=False,
        )

    (tmp_path / "seeds.txt").write_text("https://a.test/\n# a comment\nb.test/x\n")
    submitted = run("submit", "--from", "seeds.txt", "--lane", "high", "--max-pages", "5")
    assert submitted.returncode == 0, submitted.stderr
    status = json.loads(run("status", submitted.stdout.strip(), "--json").stdout)
    assert (status["state"], status["pending"]) == ("running", 2)
    for words in (("--lane", "fast"), ("--max-pages", "0"), ("--include", "("), ("--proxy-pool", "none")):
        wrong = run("submit", "https://a.test/", *words)
        assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1), wrong.stderr
    assert run("submit").returncode == 2
