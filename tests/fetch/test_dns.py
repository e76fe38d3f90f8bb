"""The resolver against a real name server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop
from dns_server import AAAA, CNAME, A, DnsServer, Zone, dns_serving
from raw_server import answering, begin, fetch, fetching, job, serving

from curtsy.core.outcome import Fault
from curtsy.core.settings import Settings
from curtsy.fetch.dns import Answer, Resolver
from curtsy.fetch.http import boot_clock

PAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


def run(test: Callable[[], Awaitable[None]]) -> None:
    uvloop.run(test())  # type: ignore[arg-type]


@asynccontextmanager
async def resolving(zone: Zone, hosts: Path = Path("/nonexistent")) -> AsyncIterator[tuple[Resolver, DnsServer]]:
    async with dns_serving(zone) as server:
        resolver = Resolver(Settings(dns_servers=(server.address,)), asyncio.get_running_loop(), hosts)
        try:
            yield resolver, server
        finally:
            resolver.close()


async def look_up(resolver: Resolver, host: str) -> Answer:
    future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
    resolver.lookup(host, future.set_result)
    async with asyncio.timeout(20):
        return await future


def test_a_name_resolves_to_all_its_addresses() -> None:
    async def test() -> None:
        zone: Zone = {"a.test": [(A, "1.1.1.1", 300), (A, "1.0.0.1", 300)]}
        async with resolving(zone) as (resolver, _):
            assert sorted((await look_up(resolver, "a.test")).addresses) == ["1.0.0.1", "1.1.1.1"]

    run(test)


def test_a_name_with_ipv6_only_resolves() -> None:
    async def test() -> None:
        async with resolving({"a.test": [(AAAA, "2606:4700::1", 300)]}) as (resolver, _):
            assert (await look_up(resolver, "a.test")).addresses == ("2606:4700::1",)

    run(test)


def test_an_alias_is_followed() -> None:
    async def test() -> None:
        zone: Zone = {"a.test": [(CNAME, "b.test", 300)], "b.test": [(A, "1.1.1.1", 300)]}
        async with resolving(zone) as (resolver, _):
            assert (await look_up(resolver, "a.test")).addresses == ("1.1.1.1",)

    run(test)


@pytest.mark.parametrize(("ttl", "kept_s"), [(0, 60), (300, 300), (86400, 3600)])
def test_an_answer_is_kept_for_its_ttl_between_a_minute_and_an_hour(ttl: int, kept_s: int) -> None:
    async def test() -> None:
        async with resolving({"a.test": [(A, "1.1.1.1", ttl)]}) as (resolver, server):
            answer = await look_up(resolver, "a.test")
            assert answer.expires - boot_clock() == pytest.approx(kept_s, abs=2)
            before = server.asked["a.test"]
            assert resolver.cached("a.test") == answer
            assert await look_up(resolver, "a.test") == answer
            assert server.asked["a.test"] == before

    run(test)


@pytest.mark.parametrize(
    ("name", "fault"), [("none.test", Fault.DNS_NONE), ("empty.test", Fault.DNS_NONE), ("broken.test", Fault.DNS_FAIL)]
)
def test_a_name_that_does_not_exist_is_distinguished_from_a_resolver_that_fails(name: str, fault: Fault) -> None:
    async def test() -> None:
        async with resolving({"empty.test": [], "broken.test": "servfail"}) as (resolver, _):
            answer = await look_up(resolver, name)
            assert (answer.fault, answer.addresses) == (fault, ())
            assert answer.detail.startswith(f"DNS: {name}: ")
            # A missing name is looked up again soon: it may just be being set up.
            assert answer.expires - boot_clock() == pytest.approx(60 if fault is Fault.DNS_FAIL else 4, abs=2)

    run(test)


@pytest.mark.slow
def test_a_resolver_that_does_not_answer_is_given_up() -> None:
    async def test() -> None:
        async with resolving({"quiet.test": "silent"}) as (resolver, _):
            assert (await look_up(resolver, "quiet.test")).fault is Fault.DNS_FAIL

    run(test)


@pytest.mark.parametrize("name", ["a" * 64 + ".test", ".".join(["abcdefgh"] * 40), "a..test", "-"])
def test_an_impossible_name_does_not_exist(name: str) -> None:
    async def test() -> None:
        async with resolving({}) as (resolver, _):
            assert (await look_up(resolver, name)).fault is Fault.DNS_NONE

    run(test)


def test_the_hosts_file_and_literal_addresses_need_no_lookup(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text("# comment\n127.0.0.1 here.test other # both\n::1 here.test\nnonsense line\n")

    async def test() -> None:
        async with resolving({}, hosts) as (resolver, server):
            assert (await look_up(resolver, "here.test")).addresses == ("127.0.0.1", "::1")
            assert (await look_up(resolver, "other")).addresses == ("127.0.0.1",)
            assert (await look_up(resolver, "8.8.8.8")).addresses == ("8.8.8.8",)
            assert (await look_up(resolver, "2606:4700::1")).addresses == ("2606:4700::1",)
            assert not server.asked

    run(test)


def test_at_most_64_names_are_looked_up_at_a_time_and_each_once() -> None:
    async def test() -> None:
        zone: Zone = {f"h{i}.test": [(A, "1.1.1.1", 300)] for i in range(100)}
        async with resolving(zone) as (resolver, server):
            server.hold(64)
            answers = [asyncio.ensure_future(look_up(resolver, f"h{i}.test")) for i in range(100) for _ in range(2)]
            async with asyncio.timeout(10):
                await server.enough.wait()
            assert len(server.held_names()) == 64
            server.release()
            assert {(await answer).addresses for answer in answers} == {("1.1.1.1",)}
            assert len(server.asked) == 100

    run(test)


def test_patterns_set_by_the_operator_come_first() -> None:
    async def test() -> None:
        rules = ("*.tiny.test=127.0.0.1:8080", "six.test=[::1]:81")
        resolver = Resolver(Settings(resolve=rules), asyncio.get_running_loop())
        assert resolver.rule("a.tiny.test") == ("127.0.0.1", 8080)
        assert resolver.rule("six.test") == ("::1", 81)
        assert resolver.rule("other.test") is None
        resolver.close()

    run(test)


# With the fetcher.


def test_the_next_address_is_tried_when_one_is_dead() -> None:
    async def test() -> None:
        zone: Zone = {"a.test": [(A, "127.0.0.2", 300), (A, "127.0.0.1", 300)]}
        async with dns_serving(zone) as dns, serving(answering(PAGE)) as server:
            settings = {"dns_servers": (dns.address,), "allow_private": ("127.0.0.0/8",)}
            async with fetching(**settings) as fetcher:
                outcome = await fetch(fetcher, f"http://a.test:{server.port}/")
                assert (outcome.body, outcome.address) == (b"hello", "127.0.0.1")

    run(test)


def test_a_name_that_leads_to_a_private_address_is_refused_and_mixed_answers_are_sifted() -> None:
    async def test() -> None:
        zone: Zone = {
            "inside.test": [(A, "127.0.0.1", 300)],
            "mixed.test": [(A, "10.0.0.1", 300), (A, "127.0.0.1", 300)],
        }
        async with dns_serving(zone) as dns, serving(answering(PAGE)) as server:
            async with fetching(dns_servers=(dns.address,)) as fetcher:
                outcome = await fetch(fetcher, f"http://inside.test:{server.port}/")
                assert (outcome.fault, server.connections) == (Fault.FORBIDDEN_ADDRESS, 0)
            async with fetching(dns_servers=(dns.address,), allow_private=("127.0.0.0/8",)) as fetcher:
                outcome = await fetch(fetcher, f"http://mixed.test:{server.port}/")
                assert (outcome.status, outcome.address) == (200, "127.0.0.1")

    run(test)


def test_a_name_that_does_not_exist_ends_the_job() -> None:
    async def test() -> None:
        async with dns_serving({"bad.test": "servfail"}) as dns, fetching(dns_servers=(dns.address,)) as fetcher:
            assert (await fetch(fetcher, "http://none.test/")).fault is Fault.DNS_NONE
            assert (await fetch(fetcher, "http://bad.test/")).fault is Fault.DNS_FAIL

    run(test)


def test_names_can_be_looked_up_ahead() -> None:
    async def test() -> None:
        zone: Zone = {"a.test": [(A, "127.0.0.1", 300)]}
        async with (
            dns_serving(zone) as dns,
            serving(answering(PAGE)) as server,
            fetching(dns_servers=(dns.address,), allow_private=("127.0.0.0/8",)) as fetcher,
        ):
            await fetcher.prepare([("a.test", 80), ("none.test", 443), ("8.8.8.8", 80)])
            asked = dns.asked.total()
            assert (await fetch(fetcher, f"http://a.test:{server.port}/")).status == 200
            assert (await fetch(fetcher, "http://none.test/")).fault is Fault.DNS_NONE
            assert dns.asked.total() == asked

    run(test)


def test_a_job_can_be_cancelled_while_its_name_is_looked_up() -> None:
    async def test() -> None:
        async with dns_serving({"a.test": "silent"}) as dns, fetching(dns_servers=(dns.address,)) as fetcher:
            wanted = job("http://a.test/")
            future = begin(fetcher, wanted)
            fetcher.cancel(wanted.id)
            assert (await future).fault is Fault.CANCELLED
            assert fetcher.in_flight == 0

    run(test)
