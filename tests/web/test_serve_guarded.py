"""A real server against callers who mean no good: slow ones, ones that pretend, and what the log says of them."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest
from served import Served, head_of, serving
from waiting import wait_for

from curtsy.store import keys
from curtsy.store.engine import Store
from curtsy.web import auth
from curtsy.web.request_heads import LONGEST_HEAD, MOST_WAITING

JSON = {"Content-Type": "application/json"}


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'curtsy.sqlite'}"


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("impatient")
    with serving(folder, f"sqlite:///{folder / 'curtsy.sqlite'}", processes=1, api_timeout_s=1.5) as served:
        yield served


def ask(served: Served, method: str, path: str, body: str | None = None, **headers: str) -> tuple[int, str]:
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)) as connection:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body, given)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()


def dropped_after(connection: socket.socket, begin: bytes, drop: bytes) -> float:
    """Send the beginning at once, then a drop ten times a second, until the server has had enough: after how long."""
    connection.sendall(begin)
    since = time.monotonic()
    ended = threading.Event()

    def drip() -> None:
        try:
            while not ended.wait(0.1):
                connection.sendall(drop)
        except OSError:
            pass

    dripping = threading.Thread(target=drip)
    dripping.start()
    try:
        while connection.recv(65536):
            pass
    except ConnectionResetError:
        pass
    finally:
        ended.set()
        dripping.join()
    return time.monotonic() - since


@pytest.mark.parametrize(
    ("begin", "drop"),
    [
        (b"GET /healthz HTTP/1.1\r\nX-Slow: ", b"x"),
        (
            b"POST /v1/crawls HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n"
            b"Content-Type: application/json\r\n\r\n{",
            b" ",
        ),
        (
            b"POST /v1/crawls HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5000\r\n"
            b'Content-Type: application/x-ndjson\r\n\r\n{}\n"https://a.test/',
            b"x",
        ),
        (
            b"POST /v1/crawls HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n"
            b"Content-Type: application/x-ndjson\r\n\r\n3\r\n{}\n\r\n",
            b"1\r\n\n\r\n",
        ),
    ],
    ids=["head", "JSON", "NDJSON", "chunks"],
)  # fmt: skip
def test_a_client_that_never_falls_silent_but_sends_next_to_nothing_is_dropped(
    impatient: Served, begin: bytes, drop: bytes
) -> None:
    with impatient.connect() as connection:
        assert 1.0 < dropped_after(connection, begin, drop) < 15
    assert {one["state"] for one in impatient.client.get("/v1/crawls")["items"]} <= {"cancelled"}


SLOW = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def test_slow_clients_do_not_keep_others_waiting(tmp_path: Path, sqlite_url: str) -> None:
    """A hundred times as many connections as threads, each with half a head, and none is dropped meanwhile."""
    with ExitStack() as stack, serving(tmp_path / "served", sqlite_url, processes=1, api_threads=4) as served:
        slow = [stack.enter_context(served.connect()) for _ in range(400)]
        for one in slow:
            one.sendall(SLOW)
        for _ in range(3):
            assert ask(served, "GET", "/healthz")[0] == 200
            for one in slow:
                one.sendall(b"x")
        for one in slow[:3]:  # they were not dropped: each gets its response in the end
            one.sendall(b"\r\nConnection: close\r\n\r\n")
            with one.makefile("rb") as answer:
                assert head_of(answer)[0] == 200


def test_a_second_request_with_half_a_head_takes_no_thread(tmp_path: Path, sqlite_url: str) -> None:
    """Also if it came together with a first one that was complete."""
    with ExitStack() as stack, serving(tmp_path / "served", sqlite_url, processes=1, api_threads=2) as served:
        for _ in range(8):
            one = stack.enter_context(served.connect())
            one.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n" + SLOW)
            with one.makefile("rb") as answer:
                assert head_of(answer)[0] == 200
        assert ask(served, "GET", "/healthz")[0] == 200


def test_heads_that_do_not_end_take_bounded_memory(tmp_path: Path, sqlite_url: str) -> None:
    with ExitStack() as stack, serving(tmp_path / "served", sqlite_url, processes=1, api_threads=4) as served:
        endless = stack.enter_context(served.connect())
        endless.sendall(SLOW + b"x" * (LONGEST_HEAD + 1))
        with endless.makefile("rb") as answer:
            assert head_of(answer)[0] == 431
        oldest = stack.enter_context(served.connect())
        oldest.sendall(SLOW)
        for _ in range(MOST_WAITING):
            stack.enter_context(served.connect()).sendall(SLOW)
        assert oldest.recv(1) == b"", "the oldest one makes room"
        assert ask(served, "GET", "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("head", "status"),
    [
        ("X-Forwarded-For: 127.0.0.1", 401),
        ("X-Forwarded-Host: localhost", 401),
        ("X-Forwarded-Proto: https", 401),
        ("X-Forwarded-Anything: 1", 401),
        ("CF-Connecting-IP: 127.0.0.1", 401),
        ("True-Client-IP: 127.0.0.1", 401),
        ("SCRIPT_NAME: /v1", 200),
        ("PATH_INFO: /nothing", 200),
        ("REMOTE_ADDR: 203.0.113.7", 200),
        ("Host: rebound.example", 403),
        ("X-HTTP-Method-Override: DELETE", 200),
    ],
)
def test_what_a_caller_says_of_itself_is_not_believed(impatient: Served, head: str, status: int) -> None:
    """Neither to be let in nor to be led elsewhere."""
    with impatient.connect() as connection:
        host = "" if head.startswith("Host:") else "Host: localhost\r\n"
        connection.sendall(f"GET /v1/crawls HTTP/1.1\r\n{host}{head}\r\nConnection: close\r\n\r\n".encode())
        with connection.makefile("rb") as answer:
            assert head_of(answer)[0] == status


def test_no_secret_stands_in_the_log_however_much_is_logged(tmp_path: Path, sqlite_url: str) -> None:
    with Store.open(sqlite_url) as store:
        made: dict[str, str] = {}
        for name, expires_ms in (("good", None), ("old", 1), ("gone", None)):
            made[name], stored = auth.new_key(name, ("admin",), 0, expires_ms)
            store.run(keys.create, stored)
            if name == "gone":
                store.run(keys.revoke, stored.id, 1)
    wrong = made["good"][:-4] + "zzzz"
    hook = "the webhook's own secret"
    body = json.dumps(
        {"seeds": ["https://user:hunter2@a.test/"], "webhook": "https://hook.test/", "webhook_secret": hook}
    )
    with serving(
        tmp_path / "served", sqlite_url, "--host", "0.0.0.0", log_level="debug", webhook_secret="the server's secret"
    ) as served:
        answers: list[tuple[int, str]] = []
        for key in (*made.values(), wrong):
            answers.append(ask(served, "GET", "/v1/crawls", Authorization=f"Bearer {key}"))
            answers.append(ask(served, "GET", "/v1/crawls", Authorization=f"Basic {key}"))
            answers.append(ask(served, "GET", f"/v1/crawls?key={key}&api_key={key}&access_token={key}"))
            answers.append(ask(served, "GET", f"/v1/{key}", X_Api_Key=key, Cookie=f"key={key}"))
            for line in (f"Authorization : Bearer {key}", f"Bearer {key}", f" {key}", f"{key}: x", f"a{key}\x00: x"):
                with served.connect() as connection:
                    connection.sendall(f"GET /v1/crawls HTTP/1.1\r\nHost: localhost\r\n{line}\r\n\r\n".encode())
                    with connection.makefile("rb") as answer:
                        assert head_of(answer)[0] in (400, 401)
        assert [status for status, _ in answers] == [200, 401, 401, 404, *[401, 401, 401, 404] * 3]
        good = f"Bearer {made['good']}"
        answers.append(ask(served, "POST", "/v1/crawls", body, Authorization=good, **JSON))
        answers.append(ask(served, "POST", "/v1/crawls", body[:-1], Authorization=good, **JSON))
        answers.append(
            ask(served, "POST", "/v1/crawls", body.replace("https://user", "ftp://user"), Authorization=good, **JSON)
        )
        assert [status for status, _ in answers[-3:]] == [202, 422, 422]
        answers.append(ask(served, "GET", "/v1/crawls/last", Authorization=good))
        answers.append(ask(served, "GET", "/healthz", X_Request_Id="the-last-one"))
        wait_for(lambda: "the-last-one" in served.said() or None)
    said = served.said()
    assert "key_refused" in said
    told = "".join(text for _, text in answers)
    secrets = [*(key.split("_")[2] for key in (*made.values(), wrong)), "hunter2", hook, "the server's secret"]
    assert not [secret for secret in secrets if secret in said], "in the log"
    assert not [secret for secret in secrets if secret in told], "in an answer"


def test_a_request_id_cannot_write_lines_into_the_log(tmp_path: Path, sqlite_url: str) -> None:
    with serving(tmp_path / "served", sqlite_url, processes=1, log_format="console") as served:
        for given in (b"a\x1b[2Jb", b"a\tb", b"forged line", b"a\xe2\x80\xa8b", b"x" * 200, b"a\rb", b"a\x00b"):
            with served.connect() as connection:
                connection.sendall(
                    b"GET /v1/crawls HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: "
                    + given
                    + b"\r\nConnection: close\r\n\r\n"
                )
                with connection.makefile("rb") as answer:
                    status, headers = head_of(answer)
                assert status in (200, 400), given
                assert len(headers["x-request-id"]) == 36
        said: Any = wait_for(lambda: served.said() if served.said().count("/v1/crawls") >= 4 else None)
    assert "forged" not in said
    assert "\x1b[2J" not in said
