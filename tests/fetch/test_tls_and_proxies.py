"""HttpFetcher over TLS, HTTP/2 and proxies."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import uvloop
from certificates import Authority
from dns_server import A, Zone, dns_serving
from raw_server import Connection, RawServer, answering, fetch, fetching, serving

from curtsy.core.outcome import Fault
from curtsy.fetch.proxies import Proxies

PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nhello"


def run(test: Callable[[], Awaitable[None]]) -> None:
    uvloop.run(test())  # type: ignore[arg-type]


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    made = Authority(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(made.file))
    return made


def rule(server: RawServer) -> tuple[str, ...]:
    return (f"*.test=127.0.0.1:{server.port}",)


def test_a_page_over_tls_that_the_authority_vouches_for(authority: Authority) -> None:
    async def test() -> None:
        handler = answering(PAGE, PAGE, then_close=False)
        async with (
            serving(handler, ssl=authority.context("a.test")) as server,
            fetching(resolve=rule(server)) as fetcher,
        ):
            for _ in range(2):
                outcome = await fetch(fetcher, "https://a.test/")
                assert (outcome.fault, outcome.body) == (None, b"hello")
            assert server.connections == 1

    run(test)


def test_a_tls_session_is_resumed_on_the_next_connection(authority: Authority) -> None:
    async def test() -> None:
        resumed: list[bool] = []

        async def handler(connection: Connection) -> None:
            resumed.append(connection.writer.get_extra_info("ssl_object").session_reused)
            await connection.request()
            await connection.say(PAGE.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))

        async with (
            serving(handler, ssl=authority.context("a.test")) as server,
            fetching(resolve=rule(server)) as fetcher,
        ):
            for _ in range(2):
                assert (await fetch(fetcher, "https://a.test/")).status == 200
        assert resumed == [False, True]

    run(test)


@pytest.mark.parametrize(("issued_for", "days", "words"), [("other.test", 365, "a.test"), ("a.test", -1, "expired")])
def test_a_certificate_that_does_not_hold_is_a_fault(
    authority: Authority, issued_for: str, days: int, words: str
) -> None:
    async def test() -> None:
        context = authority.context(issued_for, days)
        async with serving(answering(PAGE), ssl=context) as server, fetching(resolve=rule(server)) as fetcher:
            outcome = await fetch(fetcher, "https://a.test/")
            assert (outcome.fault, outcome.started) == (Fault.TLS, None)
            assert words in outcome.detail
            assert server.requests == []

    run(test)


def test_an_authority_that_nobody_knows_is_a_fault(authority: Authority, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")

    async def test() -> None:
        context = authority.context("a.test")
        async with serving(answering(PAGE), ssl=context) as server, fetching(resolve=rule(server)) as fetcher:
            assert (await fetch(fetcher, "https://a.test/")).fault is Fault.TLS

    run(test)


def test_plain_text_where_tls_was_expected_is_a_fault(authority: Authority) -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as server, fetching(resolve=rule(server)) as fetcher:
            outcome = await fetch(fetcher, "https://a.test/", timeout_s=0.5)
            assert outcome.fault in (Fault.TLS, Fault.CONNECT)
            assert outcome.started is None

    run(test)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion")
def test_old_tls_is_refused(authority: Authority) -> None:
    async def test() -> None:
        context = authority.context("a.test")
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        async with serving(answering(PAGE), ssl=context) as server, fetching(resolve=rule(server)) as fetcher:
            assert (await fetch(fetcher, "https://a.test/")).fault is Fault.TLS

    run(test)


# HTTP/2

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


def await_port(port: int) -> None:
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            time.sleep(0.02)
        else:
            return
    pytest.fail("nginx did not start")


@pytest.fixture
def nginx(authority: Authority, tmp_path: Path) -> Iterator[int]:
    """An HTTP/2 server on loopback."""
    certificate, key = authority.issue("a.test")
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        port = probe.getsockname()[1]
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("hello")
    (site / "big.html").write_bytes(bytes(5_000_000))
    config = tmp_path / "nginx.conf"
    config.write_text(
        f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {tmp_path}/t1; proxy_temp_path {tmp_path}/t2;\n"
        f"fastcgi_temp_path {tmp_path}/t3; uwsgi_temp_path {tmp_path}/t4; scgi_temp_path {tmp_path}/t5;\n"
        f"server {{ listen 127.0.0.1:{port} ssl http2; ssl_certificate {certificate}; ssl_certificate_key {key};\n"
        f"default_type text/html; root {site}; }} }}\n"
    )
    site.chmod(0o755)
    for folder in (tmp_path, *(parent for parent in tmp_path.parents if parent.name.startswith(("pytest-", "popen-")))):
        folder.chmod(0o755)
    with subprocess.Popen([str(NGINX), "-c", str(config), "-e", f"{tmp_path}/error.log"]) as server:
        try:
            await_port(port)
            yield port
        finally:
            server.terminate()


@pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
def test_http2_is_spoken_where_the_server_offers_it(nginx: int) -> None:
    async def test() -> None:
        async with fetching(resolve=(f"*.test=127.0.0.1:{nginx}",)) as fetcher:
            outcome = await fetch(fetcher, "https://a.test/")
            assert (outcome.status, outcome.body, outcome.http_version) == (200, b"hello", "HTTP/2")
            outcome = await fetch(fetcher, "https://a.test/big.html")
            assert (outcome.fault, outcome.broken_off) == (Fault.TOO_LARGE, True)
            assert (await fetch(fetcher, "https://a.test/")).body == b"hello"
            assert (await fetch(fetcher, "https://a.test/index%2ehtml?%c3")).body == b"hello"

    run(test)


# Proxies


def test_a_proxy_that_failed_rests_longer_each_time_and_the_next_one_serves() -> None:
    proxies = Proxies({"pool": ("http://one", "http://two")})
    assert [proxies.pick("pool", 0.0) for _ in range(3)] == ["http://one", "http://two", "http://one"]
    proxies.failed("pool", "http://one", 0.0)
    proxies.failed("pool", "http://one", 0.1)
    assert [proxies.pick("pool", 1.0) for _ in range(2)] == ["http://two", "http://two"]
    proxies.failed("pool", "http://two", 1.0)
    assert proxies.pick("pool", 2.0) is None
    assert proxies.pick("pool", 5.1) == "http://one"
    proxies.failed("pool", "http://one", 5.1)
    assert proxies.pick("pool", 14.0) == "http://two"
    proxies.worked("pool", "http://one")
    assert proxies.pick("pool", 14.0) == "http://one"
    assert proxies.pick("unknown", 0.0) is None


def dead_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as probe:
        return int(probe.getsockname()[1])


def test_a_page_through_the_proxy_that_answers() -> None:
    async def test() -> None:
        async with serving(answering(PAGE, PAGE, then_close=False)) as proxy:
            pool = (f"http://127.0.0.1:{dead_port()}", f"http://127.0.0.1:{proxy.port}")
            async with fetching(proxies={"pool": pool}) as fetcher:
                failed = await fetch(fetcher, "http://8.8.8.8/x", proxy_pool="pool")
                assert (failed.fault, failed.started) == (Fault.PROXY, None)
                for _ in range(2):
                    outcome = await fetch(fetcher, "http://8.8.8.8/x", proxy_pool="pool")
                    assert outcome.body == b"hello"
            assert proxy.requests[0].startswith(b"GET http://8.8.8.8/x HTTP/1.1\r\nHost: 8.8.8.8\r\n")

    run(test)


def test_escapes_are_sent_through_a_proxy_as_they_are_written() -> None:
    async def test() -> None:
        async with serving(answering(PAGE, PAGE, then_close=False)) as proxy:
            async with fetching(proxies={"pool": (f"http://127.0.0.1:{proxy.port}",)}) as fetcher:
                for path in ("/q%2fz", "/plain"):
                    assert (await fetch(fetcher, f"http://8.8.8.8{path}", proxy_pool="pool")).body == b"hello"
            asked = [head.split(b" ")[1] for head in proxy.requests]
        assert asked == [b"http://8.8.8.8/q%2fz", b"http://8.8.8.8/plain"]

    run(test)


def test_when_all_proxies_rest_the_fault_is_the_proxys() -> None:
    async def test() -> None:
        async with fetching(proxies={"pool": (f"http://127.0.0.1:{dead_port()}",)}) as fetcher:
            for _ in range(2):
                assert (await fetch(fetcher, "http://8.8.8.8/", proxy_pool="pool")).fault is Fault.PROXY

    run(test)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 502 Bad\r\n\r\n", b""])
def test_a_proxy_that_refuses_the_tunnel_is_distinguished_from_the_site(answer: bytes) -> None:
    async def test() -> None:
        async with (
            serving(answering(answer)) as proxy,
            fetching(proxies={"pool": (f"http://127.0.0.1:{proxy.port}",)}) as fetcher,
        ):
            outcome = await fetch(fetcher, "https://8.8.8.8/", proxy_pool="pool")
            assert (outcome.fault, outcome.status, outcome.started) == (Fault.PROXY, 0, None)
            assert proxy.requests[0].startswith(b"CONNECT 8.8.8.8:443 ")

    run(test)


def test_a_private_name_is_refused_behind_a_proxy_too() -> None:
    async def test() -> None:
        async with (
            serving(answering(PAGE)) as proxy,
            fetching(proxies={"pool": (f"http://127.0.0.1:{proxy.port}",)}) as fetcher,
        ):
            for url in ("http://127.0.0.1/", "http://localhost/", "http://169.254.169.254/"):
                assert (await fetch(fetcher, url, proxy_pool="pool")).fault is Fault.FORBIDDEN_ADDRESS
            assert proxy.connections == 0

    run(test)


def test_a_request_without_a_pool_does_not_go_through_the_last_proxy() -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as proxy, serving(answering(PAGE)) as site:
            pools = {"pool": (f"http://127.0.0.1:{proxy.port}",)}
            async with fetching(proxies=pools, resolve=rule(site)) as fetcher:
                await fetch(fetcher, "http://8.8.8.8/", proxy_pool="pool")
                assert (await fetch(fetcher, "http://a.test/")).status == 200
            assert (len(proxy.requests), len(site.requests)) == (1, 1)

    run(test)


def test_names_behind_a_proxy_are_judged_by_all_their_addresses() -> None:
    async def test() -> None:
        zone: Zone = {
            "inside.test": [(A, "10.0.0.1", 60)],
            "mixed.test": [(A, "8.8.8.8", 60), (A, "127.0.0.1", 60)],
            "failing.test": "servfail",
            "outside.test": [(A, "8.8.8.8", 60)],
        }
        async with serving(answering(PAGE)) as proxy, dns_serving(zone) as dns:
            pools = {"pool": (f"http://127.0.0.1:{proxy.port}",)}
            async with fetching(proxies=pools, dns_servers=(dns.address,)) as fetcher:
                for name, fault in (
                    ("inside.test", Fault.FORBIDDEN_ADDRESS),
                    ("mixed.test", Fault.FORBIDDEN_ADDRESS),
                    # What only the proxy could resolve cannot be judged.
                    ("intranet.test", Fault.DNS_NONE),
                    ("failing.test", Fault.DNS_FAIL),
                ):
                    assert (await fetch(fetcher, f"http://{name}/", proxy_pool="pool")).fault is fault
                assert proxy.connections == 0
                assert (await fetch(fetcher, "http://outside.test/", proxy_pool="pool")).body == b"hello"

    run(test)


@pytest.mark.parametrize(
    ("scheme", "asked"), [("socks5", b"\x01\x08\x08\x08\x08"), ("socks5h", b"\x03\x0coutside.test")]
)
def test_a_socks_proxy_that_is_given_an_address_is_given_the_one_that_was_judged(scheme: str, asked: bytes) -> None:
    wanted: list[bytes] = []

    async def socks(connection: Connection) -> None:
        greeting = await connection.reader.readexactly(2)
        await connection.reader.readexactly(greeting[1])
        await connection.say(b"\x05\x00")
        await connection.reader.readexactly(3)
        wanted.append(await connection.reader.readexactly(len(asked) + 2))
        await connection.say(b"\x05\x00\x00\x01\x00\x00\x00\x00\x00\x00")
        await connection.request()
        await connection.say(PAGE)

    async def test() -> None:
        zone: Zone = {"outside.test": [(A, "8.8.8.8", 0)]}
        async with serving(socks) as proxy, dns_serving(zone) as dns:
            pools = {"pool": (f"{scheme}://127.0.0.1:{proxy.port}",)}
            async with fetching(proxies=pools, dns_servers=(dns.address,)) as fetcher:
                assert (await fetch(fetcher, "http://outside.test/", proxy_pool="pool")).body == b"hello"
        assert wanted == [asked + b"\x00\x50"]

    run(test)


def test_a_proxy_that_resolves_names_gets_names_that_nobody_here_knows() -> None:
    async def test() -> None:
        async with serving(answering(PAGE, PAGE, then_close=False)) as proxy, dns_serving({}) as dns:
            pools = {"default": (f"http://127.0.0.1:{proxy.port}",)}
            async with fetching(proxies=pools, proxy_dns=("default",), dns_servers=(dns.address,)) as fetcher:
                await fetcher.prepare([("only-there.example", 80)])
                for _ in range(2):
                    outcome = await fetch(fetcher, "http://only-there.example/x", proxy_pool="default")
                    assert outcome.body == b"hello"
            assert proxy.requests[0].startswith(b"GET http://only-there.example/x HTTP/1.1\r\n")
            assert not dns.asked

    run(test)


def test_what_can_still_be_checked_is_refused_before_a_proxy_that_resolves() -> None:
    async def test() -> None:
        async with serving(answering(PAGE)) as proxy, dns_serving({}) as dns:
            pools = {"pool": (f"http://127.0.0.1:{proxy.port}",)}
            async with fetching(proxies=pools, proxy_dns=("pool",), dns_servers=(dns.address,)) as fetcher:
                for host in ("127.0.0.1", "169.254.169.254", "168.63.129.16", "[::1]", "localhost", "a.localhost",
                             "metadata.google.internal", "printer.local", "intranet", "router.lan."):  # fmt: skip
                    outcome = await fetch(fetcher, f"http://{host}/", proxy_pool="pool")
                    assert outcome.fault is Fault.FORBIDDEN_ADDRESS, host
            assert proxy.connections == 0
            assert not dns.asked

    run(test)


def test_socks_proxies_of_a_pool_that_resolves_get_the_name() -> None:
    proxies = Proxies({"pool": ("socks5://one", "socks4://two", "http://three")}, ("pool",))
    assert [proxies.pick("pool", 0.0) for _ in range(3)] == ["socks5h://one", "socks4a://two", "http://three"]
    assert (proxies.resolves("pool"), proxies.resolves("other"), proxies.resolves(None)) == (True, False, False)


@pytest.mark.parametrize("resolving", [(), ("pool",)])
def test_resolve_is_heeded_behind_a_proxy(resolving: tuple[str, ...]) -> None:
    """The proxy opens a tunnel to the operator's address, and the site gets the name."""

    async def tunnel(connection: Connection) -> None:
        await connection.request()
        await connection.say(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await connection.request()
        await connection.say(PAGE)

    async def test() -> None:
        async with serving(tunnel) as proxy, dns_serving({}) as dns:
            pools = {"pool": (f"http://127.0.0.1:{proxy.port}",)}
            async with fetching(
                proxies=pools, proxy_dns=resolving, resolve=("*.test=127.0.0.1:7777",), dns_servers=(dns.address,)
            ) as fetcher:
                outcome = await fetch(fetcher, "http://a.test/q%2fz", proxy_pool="pool")
                assert (outcome.fault, outcome.body) == (None, b"hello")
            assert proxy.requests[0].startswith(b"CONNECT 127.0.0.1:7777 HTTP/1.1\r\n")
            assert proxy.requests[1].startswith(b"GET /q%2fz HTTP/1.1\r\nHost: a.test\r\n")
            assert not dns.asked

    run(test)
