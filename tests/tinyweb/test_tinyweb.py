"""The tiny web as a running server: what goes over the wire, what its log says, and how it ends."""

from __future__ import annotations

import gzip
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
from waiting import until

from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.__main__ import main
from curtsy.tinyweb.accesslog import Line, read
from curtsy.tinyweb.politeness_check import judge

#: between the last byte of an answer and the look at the clock, on a busy machine
SLACK_US = 50_000


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=10, pages=12, log=tmp_path_factory.mktemp("tinyweb") / "access.log") as running:
        yield running


class Client:
    """A bare socket that speaks to one host of the tiny web."""

    def __init__(self, web: TinyWeb, name: str) -> None:
        self.host = f"{name}.tinyweb.test"
        self.socket = socket.create_connection(("127.0.0.1", web.port), timeout=10)

    def send(self, path: str, *headers: str, method: str = "GET") -> None:
        lines = "".join(f"{header}\r\n" for header in headers)
        self.socket.sendall(f"{method} {path} HTTP/1.1\r\nHost: {self.host}\r\n{lines}\r\n".encode())

    def get(self, path: str, *headers: str, method: str = "GET") -> tuple[http.client.HTTPResponse, bytes]:
        self.send(path, *headers, method=method)
        response = http.client.HTTPResponse(self.socket, method=method)
        response.begin()
        return response, response.read()

    def rest(self) -> bytes:
        """Everything until the server closes."""
        parts = []
        while part := self.socket.recv(65536):
            parts.append(part)
        return b"".join(parts)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()


def logged(web: TinyWeb, name: str, path: str) -> list[Line]:
    return [line for line in web.requests() if line.host == f"{name}.tinyweb.test" and line.path == path]


def test_the_host_header_decides_and_the_connection_is_kept(web: TinyWeb) -> None:
    with Client(web, "org-0001") as client:
        response, body = client.get("/")
        assert (response.status, response.getheader("Content-Type")) == (200, "text/html; charset=utf-8")
        assert b"Amber Water Foundation" in body
        client.host = "ORG-0002.tinyweb.test:80"
        assert b"Anchor Textiles Trust" in client.get("/")[1]
        assert client.get("/nowhere")[0].status == 404
        client.host = "org-9999.tinyweb.test"
        assert client.get("/")[0].status == 404
    lines = [line for line in web.requests() if line.connection == logged(web, "org-0001", "/")[0].connection]
    assert [line.host for line in lines][:2] == ["org-0001.tinyweb.test", "org-0002.tinyweb.test"]


def test_requests_may_come_in_pieces_or_several_at_once(web: TinyWeb) -> None:
    with Client(web, "org-0001") as client:
        one = f"GET /about HTTP/1.1\r\nhost: {client.host}\r\n\r\n".encode()
        client.socket.sendall(one[:20])
        # The pieces must not arrive together; the server gives no sign between them.
        time.sleep(0.05)
        client.socket.sendall(one[20:] + one + one.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        assert client.rest().count(b"HTTP/1.1 200 OK") == 3


def test_a_head_request_gets_the_head_only(web: TinyWeb) -> None:
    with Client(web, "org-0001") as client:
        response, body = client.get("/", method="HEAD")
        assert int(response.getheader("Content-Length") or 0) > 1000
        assert body == b""
        assert client.get("/")[0].status == 200


def test_what_is_not_http_is_hung_up_on(web: TinyWeb) -> None:
    with socket.create_connection(("127.0.0.1", web.port), timeout=10) as tls:
        tls.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        assert tls.recv(100) == b""
    with Client(web, "org-0001") as client:
        client.socket.sendall(b"nonsense\r\n\r\n")
        assert client.rest().startswith(b"HTTP/1.1 400 ")
    with Client(web, "org-0001") as client:
        client.socket.sendall(f"GET /a\nb\tc HTTP/1.1\r\nHost: {client.host}\r\nConnection: close\r\n\r\n".encode())
        assert client.rest().startswith(b"HTTP/1.1 404 ")
    assert len(logged(web, "org-0001", "/a%0Ab%09c")) == 1


def test_validators_answer_304(web: TinyWeb) -> None:
    with Client(web, "org-0001") as client:
        tag = client.get("/about")[0].getheader("ETag")
        response, body = client.get("/about", f"If-None-Match: {tag}")
        assert (response.status, body, response.getheader("ETag")) == (304, b"", tag)
        assert client.get("/about", 'If-None-Match: "other"')[0].status == 200
    with Client(web, "last-modified") as client:
        date = client.get("/dated")[0].getheader("Last-Modified")
        assert client.get("/dated", f"If-Modified-Since: {date}")[0].status == 304
        assert client.get("/dated", "If-Modified-Since: Mon, 01 Jan 2001 00:00:00 GMT")[0].status == 200
    with Client(web, "etag") as client:
        assert client.get("/weak", 'If-None-Match: "v0", W/"v1"')[0].status == 304


def test_a_request_is_logged_from_its_head_to_its_last_byte(web: TinyWeb) -> None:
    with Client(web, "slow") as client:
        before_us = time.time_ns() // 1000
        _, body = client.get("/one")
        after_us = time.time_ns() // 1000
    (line,) = logged(web, "slow", "/one")
    assert before_us <= line.start_us <= line.end_us <= after_us + SLACK_US
    assert line.end_us - line.start_us >= 1_900_000
    assert line.bytes > len(body)


@pytest.mark.alone
def test_a_request_that_hangs_ends_when_the_client_closes(web: TinyWeb) -> None:
    with Client(web, "hang") as client:
        client.send("/never")
        client.socket.settimeout(0.3)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        assert logged(web, "hang", "/never") == []
    closed_us = time.time_ns() // 1000
    until(lambda: logged(web, "hang", "/never") != [])
    (line,) = logged(web, "hang", "/never")
    assert line.status == 0
    assert line.end_us - line.start_us >= 290_000
    assert abs(line.end_us - closed_us) < 200_000


def test_an_answer_ends_when_the_client_has_taken_enough_of_it(web: TinyWeb) -> None:
    with Client(web, "body-50mb") as client:
        client.send("/large")
        assert client.socket.recv(1000).startswith(b"HTTP/1.1 200")
        assert logged(web, "body-50mb", "/large") == []
        assert len(client.socket.recv(50_000)) > 0
    until(lambda: logged(web, "body-50mb", "/large") != [])
    assert logged(web, "body-50mb", "/large")[0].bytes < 50_000_000


def test_a_large_body_arrives_whole(web: TinyWeb) -> None:
    with Client(web, "body-50mb") as client:
        assert len(client.get("/large")[1]) == 50_000_000
    with Client(web, "sitemap-50000") as client:
        assert client.get("/sitemap.xml")[1].count(b"<url>") == 50_000
        assert client.get("/entry/49999")[0].status == 200
        assert client.get("/entry/50000")[0].status == 404


def test_an_endless_body_does_not_end(web: TinyWeb) -> None:
    with Client(web, "endless") as client:
        client.send("/endless-plain")
        read_bytes = 0
        while read_bytes < 20_000_000:
            read_bytes += len(client.socket.recv(1_000_000))


def test_a_reset_is_a_reset(web: TinyWeb) -> None:
    with Client(web, "connection-reset") as client:
        client.send("/reset")
        with pytest.raises(ConnectionResetError):
            client.socket.recv(1)
    with Client(web, "connection-reset") as client:
        client.send("/reset-midway")
        with pytest.raises(ConnectionResetError):
            assert b"200 OK" in client.rest()


@pytest.mark.parametrize(("name", "path"), [("body-truncated", "/cut"), ("chunked-broken", "/unfinished")])
def test_a_cut_body_is_noticed(web: TinyWeb, name: str, path: str) -> None:
    with Client(web, name) as client, pytest.raises(http.client.IncompleteRead):
        client.get(path)


def test_a_dropped_connection_closes_after_the_answer(web: TinyWeb) -> None:
    with Client(web, "keepalive-drop") as client:
        response, _ = client.get("/")
        assert not response.will_close
        assert client.rest() == b""


def test_a_second_request_on_a_connection_is_read_but_not_answered(web: TinyWeb) -> None:
    with Client(web, "keepalive-resend") as client:
        assert client.get("/")[0].status == 200
        client.send("/one")
        assert client.rest() == b""
    (line,) = logged(web, "keepalive-resend", "/one")
    assert (line.status, line.bytes) == (0, 0)


def test_packed_bodies_are_what_they_claim(web: TinyWeb) -> None:
    with Client(web, "gzip") as client:
        assert b"Packed" in gzip.decompress(client.get("/gzip")[1])
        assert b"Packed" in zlib.decompress(client.get("/raw")[1], -15)
    with Client(web, "gzip-bomb") as client:
        bomb = client.get("/bomb")[1]
        assert len(bomb) < 200_000
        assert len(gzip.decompress(bomb)) == 100_000_000
    with Client(web, "gzip-broken") as client:
        with pytest.raises(gzip.BadGzipFile):
            gzip.decompress(client.get("/checksum")[1])
        with pytest.raises(EOFError):
            gzip.decompress(client.get("/cut")[1])


def test_retry_after_is_given_and_then_over(web: TinyWeb) -> None:
    with Client(web, "retry-after-seconds") as client:
        answers = [client.get("/busy")[0] for _ in range(3)]
        assert [(answer.status, answer.getheader("Retry-After")) for answer in answers] == [
            (429, "2"),
            (429, "2"),
            (200, None),
        ]
    with Client(web, "retry-after-date") as client:
        date = client.get("/busy")[0].getheader("Retry-After")
        assert date
        assert 1.5 <= parsedate_to_datetime(date).timestamp() - time.time() <= 3
        assert client.get("/busy")[0].status == 200
    assert judge([*logged(web, "retry-after-date", "/busy")], delay_s=0).too_soon == 1


def test_cookies_open_the_door(web: TinyWeb) -> None:
    with Client(web, "cookie-redirect") as client:
        first = client.get("/hello")[0]
        assert (first.status, first.getheader("Location")) == (302, "/hello")
        assert client.get("/hello", "Cookie: a=2; seen=1")[0].status == 200


def test_flapping_pages_fail_every_other_time(web: TinyWeb) -> None:
    with Client(web, "flapping-500") as client:
        assert [client.get("/two")[0].status for _ in range(4)] == [500, 200, 500, 200]


def test_a_session_trap_gives_new_links_each_time(web: TinyWeb) -> None:
    with Client(web, "trap-session") as client:
        assert client.get("/room/2?PHPSESSID=1")[1] != client.get("/room/2?PHPSESSID=1")[1]


def test_the_calendar_goes_on_in_both_directions(web: TinyWeb) -> None:
    with Client(web, "trap-calendar") as client:
        body = client.get("/calendar?month=2024-12")[1]
        assert b"month=2025-01" in body
        assert b"month=2024-11" in body
        assert client.get("/calendar?month=x")[0].status == 404


def test_a_redirect_to_a_private_address_leads_to_this_server(web: TinyWeb) -> None:
    with Client(web, "redirect-private") as client:
        assert client.get("/here")[0].getheader("Location") == f"http://127.0.0.1:{web.port}/secret"


def test_script_sites_serve_their_data(web: TinyWeb) -> None:
    with Client(web, "org-0009") as client:
        assert b"draw" in client.get("/app.js")[1]
        assert json.loads(client.get("/data/.json")[1])["heading"]
        assert json.loads(client.get("/data/about.json")[1])["links"]


def test_every_host_with_a_seed_answers(web: TinyWeb) -> None:
    silent = {"robots-timeout", "hang-all"}
    for name in {host.partition(".")[0] for host in web.hosts} - silent:
        with Client(web, name) as client:
            assert client.get("/robots.txt")[0].status in (200, 301, 302, 403, 404, 429, 500, 503), name


def test_the_judge_finds_two_requests_at_once(web: TinyWeb) -> None:
    with Client(web, "slow") as first, Client(web, "slow") as second:
        first.send("/two")
        second.send("/")
        for client in (first, second):
            response = http.client.HTTPResponse(client.socket)
            response.begin()
            assert b"</html>" in response.read()
    lines = [*logged(web, "slow", "/two"), *logged(web, "slow", "/")]
    verdict = judge(lines, delay_s=0.5)
    assert (verdict.overlaps, verdict.shortfalls) == (1, 1)
    assert verdict.largest_overlap_ms > 1500


def test_the_log_survives_a_kill_of_the_server(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    web = TinyWeb.start(hosts=1, pages=7, faults=False, log=log)
    with Client(web, "org-0000") as client:
        client.get("/")
    until(lambda: log.read_text().count("\n") == 1, within_s=2)
    web.kill()
    assert [line.path for line in web.requests()] == ["/"]


def test_requests_in_flight_are_logged_when_the_server_ends(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    with TinyWeb.start(hosts=0, faults=["hang"], log=log) as web, Client(web, "hang") as client:
        client.send("/never")
        # The next answer on another connection shows that the first request has been read.
        with Client(web, "hang") as other:
            other.get("/one")
        web.stop()
        assert {line.path for line in read(log)} == {"/never", "/one"}


def test_it_ends_with_the_process_that_started_it() -> None:
    script = (
        "import sys\nfrom curtsy.tinyweb import TinyWeb\n"
        "web = TinyWeb.start(hosts=1, faults=False)\nprint(web.pid, flush=True)\nsys.stdin.read()\n"
    )
    starter = subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert starter.stdout
    assert starter.stdin
    pid = int(starter.stdout.readline())
    # A descriptor of the process tells of its end even after its number is free for another.
    handle = os.pidfd_open(pid)
    starter.kill()
    starter.wait()
    until(lambda: _gone(handle))
    os.close(handle)
    starter.stdin.close()
    starter.stdout.close()


def _gone(handle: int) -> bool:
    try:
        signal.pidfd_send_signal(handle, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_web_for_benchmarks_is_written_as_files(tmp_path: Path) -> None:
    size = ["--hosts", "2", "--pages", "12", "--page-kb", "20", "--links", "40", "--faults", "none"]
    assert main([*size, "--write-site", str(tmp_path)]) == 0
    pages = list((tmp_path / "org-0001.tinyweb.test").rglob("index.html"))
    assert len(pages) == 12
    assert all(18_000 < page.stat().st_size < 22_000 for page in pages)
    assert (tmp_path / "org-0001.tinyweb.test" / "robots.txt").exists()


def test_the_list_names_every_host(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "robots-500.tinyweb.test" in capsys.readouterr().out
    assert main(["--list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {"name", "host", "about", "expected", "seeds", "ends"} <= set(listed[0])
    assert main(["--seeds", "--demo"]) == 0
    assert "http://org-0000.tinyweb.test/" in capsys.readouterr().out
    assert main(["--seeds", "--demo", "--json"]) == 0
    assert "http://org-0000.tinyweb.test/" in json.loads(capsys.readouterr().out)["seeds"]
    assert main(["--faults", "nonsense"]) == 2


def stalled(web: TinyWeb, seconds: float, act: Callable[[], None]) -> None:
    """Something happens at the beginning of a time in which the server cannot run."""
    os.kill(web.pid, signal.SIGSTOP)
    act()
    time.sleep(seconds)
    os.kill(web.pid, signal.SIGCONT)


@pytest.mark.alone
@pytest.mark.parametrize("kept", [True, False], ids=["kept connection", "new connection"])
def test_a_server_that_could_not_run_does_not_make_a_polite_client_look_early(web: TinyWeb, kept: bool) -> None:
    name = f"org-000{7 + kept}"
    with Client(web, name) as first, Client(web, name) as second:
        if kept:
            first.get("/robots.txt")
            second.get("/robots.txt")
            time.sleep(0.6)
        asked = time.time_ns() // 1000
        stalled(web, 0.4, lambda: first.send("/"))
        http.client.HTTPResponse(first.socket).begin()
        time.sleep(max(0.0, asked / 1e6 + 0.6 - time.time()))
        second.get("/")
    lines = [line for line in web.requests() if line.host == f"{name}.tinyweb.test" and line.start_us >= asked - 50_000]
    assert len(lines) == 2
    assert abs(lines[0].start_us - asked) < 50_000
    assert lines[0].end_us - asked > 390_000
    verdict = judge(lines, 0.6)
    assert (verdict.shortfalls, verdict.overlaps) == (0, 0), verdict.summary()


@pytest.mark.alone
def test_a_close_is_logged_when_it_came_though_the_server_could_not_run(web: TinyWeb) -> None:
    client = Client(web, "hang-all")
    client.send("/a")
    web.requests()  # the server has run since
    closed = time.time_ns() // 1000
    stalled(web, 0.4, client.socket.close)
    until(lambda: any(line.path == "/a" and line.name == client.host for line in web.requests()))
    line = next(line for line in web.requests() if line.path == "/a" and line.name == client.host)
    assert abs(line.end_us - closed) < 50_000
