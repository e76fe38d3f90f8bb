"""Webhooks against a real receiver: signed, tried again, told once per end, never to private addresses."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import uvloop
from dns_server import A, dns_serving

from curtsy.control import crawl_request
from curtsy.control.replay import Filter, replay
from curtsy.core.errors import UsageError
from curtsy.core.model import Crawl, CrawlState
from curtsy.core.outcome import Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.http import FetchJob, HttpFetcher, boot_clock
from curtsy.records import stages, webhooks
from curtsy.rules.urls import normalise
from curtsy.store import crawls, failures, outbox
from curtsy.store.engine import Store

SECRET = "a secret of some length"


@dataclass
class Receiver:
    """Takes every POST; answers with the statuses it was given, then 200."""

    statuses: list[int] = field(default_factory=list)
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"thanks"
    got: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    port: int = 0


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    told = Receiver()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            told.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(told.statuses.pop(0) if told.statuses else 200)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(told.body)))
            self.end_headers()
            try:
                self.wfile.write(told.body)
            except OSError:
                pass  # it was not read to its end

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    told.port = int(server.server_address[1])
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield told
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path / 'curtsy.sqlite'}") as opened:
        yield opened


def ended(store: Store, url: str, state: CrawlState = CrawlState.FINISHED, **fields: Any) -> int:
    """A crawl with that webhook that has just ended."""
    crawl = Crawl(id="crawl-1", request_id="req-1", state=CrawlState.RUNNING, webhook=url, **fields)
    with store.begin() as tx:
        n = crawls.create(tx, crawl).n
        crawls.set_state(tx, n, state, "cancelled" if state is CrawlState.CANCELLED else None, now_ms())
        return n


def now_ms() -> int:
    return int(time.time() * 1000)


class Parts:
    """The parts of a process that webhooks need."""

    def __init__(self, store: Store, **changes: Any) -> None:
        self.store = store
        given = {"allow_private": ("127.0.0.0/8",), "webhook_secret": SECRET, "webhook_timeout_s": 3, **changes}
        self.settings = Settings(**given)


def tell(store: Store, at_ms: int | None = None, **changes: Any) -> None:
    """Send whatever is due at that time."""
    parts: Any = Parts(store, **changes)
    at = at_ms or now_ms()

    async def all_due() -> None:
        for sending in stages.sweep(store, parts.settings, at):
            await stages.run(parts, sending.kind, sending.n, at)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(all_due())


@pytest.mark.parametrize("state", [CrawlState.FINISHED, CrawlState.CANCELLED])
def test_the_webhook_of_a_crawl_is_sent_once_and_signed(store: Store, receiver: Receiver, state: CrawlState) -> None:
    ended(store, f"http://127.0.0.1:{receiver.port}/told?by=curtsy", state)
    tell(store)
    tell(store, now_ms() + 10**9)
    ((path, headers, body),) = receiver.got
    assert path == "/told?by=curtsy"
    assert headers["content-type"] == "application/json"
    assert headers["x-request-id"] == "req-1"
    t, v1 = (part.split("=")[1] for part in headers["curtsy-signature"].split(","))
    assert v1 == hmac.new(SECRET.encode(), t.encode() + b"." + body, hashlib.sha256).hexdigest()
    assert abs(int(t) - time.time()) < 60
    message = json.loads(body)
    assert (message["event"], message["crawl"], message["state"]) == (f"crawl.{state.value}", "crawl-1", state.value)


def test_the_crawls_own_secret_wins(store: Store, receiver: Receiver) -> None:
    ended(store, f"http://127.0.0.1:{receiver.port}/", webhook_secret="another secret, its own")
    tell(store)
    ((_, headers, body),) = receiver.got
    t = int(headers["curtsy-signature"].split(",")[0][2:])
    assert headers["curtsy-signature"] == webhooks.signature(["another secret, its own"], t, body)


@pytest.fixture(scope="module")
def is_genuine() -> Callable[..., bool]:
    """The function that docs/reference/stages.md gives to receivers."""
    text = (Path(__file__).parents[2] / "docs" / "reference" / "stages.md").read_text("utf-8")
    found: dict[str, Any] = {}
    exec(text.partition("```python\n")[2].partition("```")[0], found)
    checking: Callable[..., bool] = found["is_genuine"]
    return checking


def test_a_receiver_that_does_as_documented_tells_what_is_genuine(
    store: Store, receiver: Receiver, is_genuine: Callable[..., bool]
) -> None:
    ended(store, f"http://127.0.0.1:{receiver.port}/")
    tell(store)
    ((_, headers, body),) = receiver.got
    header = headers["curtsy-signature"]
    assert is_genuine(header, body, SECRET)
    assert not is_genuine(header, body + b" ", SECRET)
    assert not is_genuine(header, body, "another secret, not its own")
    now = int(time.time())
    assert is_genuine(webhooks.signature([SECRET], now - 290, body), body, SECRET)
    assert not is_genuine(webhooks.signature([SECRET], now - 310, body), body, SECRET), "recorded, sent again later"
    assert not is_genuine(webhooks.signature([SECRET], now + 310, body), body, SECRET)
    stamp, _, digest = header.partition(",")
    earlier = int(stamp.removeprefix("t=")) - 1
    assert not is_genuine(f"t={earlier},{digest}", body, SECRET), "its time is signed too"
    for forged in ("", "t=", f"t={now}", digest, f"t=x,{digest}", f"{header},t={now - 5}", "v1=ä,t=²", f"t={now},v1=ä"):
        assert not is_genuine(forged, body, SECRET)


def test_while_the_secret_changes_both_sign(store: Store, receiver: Receiver, is_genuine: Callable[..., bool]) -> None:
    ended(store, f"http://127.0.0.1:{receiver.port}/")
    tell(store, webhook_secret="the new secret, long enough", webhook_old_secret=SECRET)
    ((_, headers, body),) = receiver.got
    for secret in ("the new secret, long enough", SECRET):
        assert is_genuine(headers["curtsy-signature"], body, secret)
    assert not is_genuine(headers["curtsy-signature"], body, "some third secret")


def test_a_crawls_own_secret_is_not_joined_by_the_servers(store: Store, receiver: Receiver) -> None:
    ended(store, f"http://127.0.0.1:{receiver.port}/", webhook_secret="another secret, its own")
    tell(store, webhook_old_secret="an older secret of the server")
    ((_, headers, _),) = receiver.got
    assert headers["curtsy-signature"].count("v1=") == 1


def test_a_failed_try_is_repeated_later_with_the_same_id(store: Store, receiver: Receiver) -> None:
    receiver.statuses = [500, 429, 200]
    ended(store, f"http://127.0.0.1:{receiver.port}/")
    start = now_ms()
    tell(store, start)
    tell(store, start + 9_000)
    assert len(receiver.got) == 1, "not before its time"
    tell(store, start + 11_000)
    tell(store, start + 40_000)
    tell(store, start + 10**7)
    assert len(receiver.got) == 3
    assert len({json.loads(body)["id"] for _, _, body in receiver.got}) == 1


def test_after_a_day_it_is_a_dead_letter_that_can_be_replayed(store: Store, receiver: Receiver) -> None:
    receiver.statuses = [503] * 200
    n = ended(store, f"http://127.0.0.1:{receiver.port}/")
    start = now_ms()
    for hour in range(60):
        tell(store, start + hour * 1_800_000)
    tries = len(receiver.got)
    assert 20 < tries < 40
    with store.read() as tx:
        (dead,) = failures.find(tx, crawl=n)
        assert outbox.due(tx, start + 10**12, 10) == []
    assert (dead.stage, dead.cause, dead.detail, dead.host) == (
        "webhook", "not_taken", "it answered 503", f"127.0.0.1:{receiver.port}",
    )  # fmt: skip
    receiver.statuses = []
    assert replay(store, Filter(stage="webhook"), now_ms()).dead_letters == 1
    tell(store)
    assert len(receiver.got) == tries + 1
    with store.read() as tx:
        assert crawls.by_n(tx, n).state is CrawlState.FINISHED


def test_a_crawl_that_ends_again_after_a_replay_sends_its_webhook_again(store: Store, receiver: Receiver) -> None:
    n = ended(store, f"http://127.0.0.1:{receiver.port}/")
    tell(store)
    store.run(crawls.set_state, n, CrawlState.RUNNING, None, now_ms())
    store.run(crawls.set_state, n, CrawlState.FINISHED, None, now_ms() + 1)
    tell(store, now_ms() + 2)
    assert len(receiver.got) == 2


def test_redirects_are_not_followed(store: Store, receiver: Receiver) -> None:
    receiver.statuses = [307]
    receiver.headers = {"Location": f"http://127.0.0.1:{receiver.port}/elsewhere"}
    ended(store, f"http://127.0.0.1:{receiver.port}/")
    tell(store)
    assert [path for path, _, _ in receiver.got] == ["/"]


def test_410_ends_it_at_once(store: Store, receiver: Receiver) -> None:
    receiver.statuses = [410]
    n = ended(store, f"http://127.0.0.1:{receiver.port}/")
    tell(store)
    with store.read() as tx:
        assert [f.cause for f in failures.find(tx, crawl=n)] == ["not_taken"]


def test_a_long_answer_is_not_read_to_its_end(store: Store, receiver: Receiver) -> None:
    receiver.body = b"x" * 5_000_000
    n = ended(store, f"http://127.0.0.1:{receiver.port}/")
    tell(store)
    with store.read() as tx:
        assert outbox.find(tx, "webhook", n, "finished") is None


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "2130706433", "0177.0.0.1", "0x7f.1", "0x7f000001", "[::1]", "[::ffff:127.0.0.1]",
     "[64:ff9b::7f00:1]", "169.254.169.254", "10.1.2.3", "localhost"],
)  # fmt: skip
def test_private_addresses_are_refused_however_they_are_written(store: Store, receiver: Receiver, host: str) -> None:
    url = normalise(f"http://{host}:{receiver.port}/")
    assert url is not None
    if host != "localhost":
        with pytest.raises(UsageError, match="not public"):
            crawl_request.checked_webhook(url, SECRET, Settings())
    n = ended(store, url)
    tell(store, allow_private=())
    assert receiver.got == []
    with store.read() as tx:
        (dead,) = failures.find(tx, crawl=n)
    assert (dead.stage, dead.cause) == ("webhook", "forbidden_address")


def test_a_name_that_leads_to_a_private_address_is_refused(store: Store, receiver: Receiver) -> None:
    n = ended(store, f"http://inside.example:{receiver.port}/")

    async def with_dns() -> None:
        async with dns_serving({"inside.example": [(A, "127.0.0.1", 60)]}) as dns:
            parts: Any = Parts(store, allow_private=(), dns_servers=(dns.address,))
            (sending,) = stages.sweep(store, parts.settings)
            await stages.run(parts, sending.kind, sending.n)

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(with_dns())
    assert receiver.got == []
    with store.read() as tx:
        assert [f.cause for f in failures.find(tx, crawl=n)] == ["forbidden_address"]


@pytest.mark.parametrize("silent", [False, True], ids=["away", "silent"])
def test_a_receiver_that_is_unavailable_or_does_not_answer_is_tried_again(store: Store, silent: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        if not silent:
            listening.close()
        n = ended(store, f"http://127.0.0.1:{port}/")
        tell(store, webhook_timeout_s=1)
    with store.read() as tx:
        row = outbox.find(tx, "webhook", n, "finished")
        assert failures.find(tx, crawl=n) == []
    assert row is not None
    assert row.sent_ms is None
    assert row.next_ms > now_ms() + 5_000


def test_a_handle_that_has_posted_gets_again(receiver: Receiver) -> None:
    """Handles are used one request after the other: nothing of a POST stays on them."""
    url = f"http://127.0.0.1:{receiver.port}/"

    async def both() -> list[int]:
        loop = asyncio.get_running_loop()
        fetcher = HttpFetcher(Settings(allow_private=("127.0.0.0/8",)), loop)
        statuses = []
        try:
            for id, body in enumerate((b"one", None, b"two")):
                told: asyncio.Future[Outcome] = loop.create_future()
                job = FetchJob(
                    id=id, url=url, deadline=boot_clock() + 5, timeout_s=3, max_bytes=1000, body=body,
                    headers=(("Content-Type", "text/plain"),) if body else (),
                )  # fmt: skip
                fetcher.start(job, lambda _id, outcome, told=told: told.set_result(outcome))  # type: ignore[misc]
                statuses.append((await told).status)
        finally:
            await fetcher.close()
        return statuses

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        assert runner.run(both()) == [200, 501, 200]  # 501: it does not know GET
    assert [body for _, _, body in receiver.got] == [b"one", b"two"]


def test_a_webhook_without_a_secret_or_a_url_is_reported_before_anything_is_written() -> None:
    assert crawl_request.checked_webhook(None, None, Settings()) is None
    with pytest.raises(UsageError, match="needs a secret"):
        crawl_request.checked_webhook("https://example.com/", None, Settings())
    with pytest.raises(UsageError, match="not an http or https URL"):
        crawl_request.checked_webhook("ftp://example.com/", SECRET, Settings())
    for url in ("https://user@example.com/", "https://user:hunter2@example.com/", "https://:x@example.com/"):
        with pytest.raises(UsageError, match="user name or password"):
            crawl_request.checked_webhook(url, SECRET, Settings())
