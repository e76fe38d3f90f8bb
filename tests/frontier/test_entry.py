"""How a URL stands in the frontier: short, and the same when it comes back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.core.model import Chain, Entry, Kind, Lane, Lease
from curtsy.frontier.entry import chain_json, chain_of, decode, encode, short_origin
from curtsy.frontier.messages import Release, Times, counter_of, fence_of, read_times

TABLE = [
    (Entry(url="https://a.test/x?y=1"), "p0 /x?y=1"),
    (Entry(url="https://a.test/"), "p0 /"),
    (Entry(url="https://a.test//double"), "p0 //double"),
    (Entry(url="http://a.test/x", depth=12), "p12 http:/x"),
    (Entry(url="http://a.test//double"), "p0 http://a.test//double"),
    (Entry(url="https://www.a.test/x"), "p0 https://www.a.test/x"),
    (Entry(url="https://a.test:8443/x"), "p0 https://a.test:8443/x"),
    (Entry(url="https://a.test/robots.txt", kind=Kind.ROBOTS), "r0 /robots.txt"),
    (Entry(url="https://a.test/s.xml", kind=Kind.SITEMAP, depth=1), "s1 /s.xml"),
    (Entry(url="https://a.test/x", attempts=1), "p0,1,0,0 /x"),
    (Entry(url="https://a.test/x", depth=3, attempts=2, crashes=1, solo_crashes=1), "p3,2,1,1 /x"),
    (Entry(url="https://a.test/x", chain=Chain(trail=(5, 6), seed=True)), 'p0 /x\t{"t":[5,6],"s":true}'),
]


@pytest.mark.parametrize(("entry", "text"), TABLE)
def test_an_entry_is_its_path_and_a_few_bytes(entry: Entry, text: str) -> None:
    assert encode(entry, "a.test") == text
    assert decode(text, "a.test") == entry


def test_a_host_with_a_port_is_shortened_too() -> None:
    entry = Entry(url="http://a.test:8080/x")
    assert encode(entry, "a.test:8080") == "p0 http:/x"
    assert decode("p0 http:/x", "a.test:8080") == entry


hosts = st.sampled_from(["a.test", "b.test:8080", "xn--bcher-kva.test"])
paths = st.text(st.characters(min_codepoint=33, max_codepoint=126), max_size=40).map(lambda text: "/" + text)
chains = st.builds(
    Chain,
    trail=st.lists(st.integers(0, 2**64 - 1), max_size=3).map(tuple),
    seed=st.booleans(),
    cookies=st.lists(st.text(max_size=12), max_size=2).map(tuple),
    cookie_host=st.none() | hosts,
    robots_of=st.none() | hosts.map(lambda host: f"https://{host}"),
)
counts = st.integers(0, 1000)
entries = st.builds(
    Entry,
    url=st.builds(
        lambda scheme, host, path: f"{scheme}://{host}{path}", st.sampled_from(["http", "https"]), hosts, paths
    ),
    kind=st.sampled_from(Kind),
    depth=counts,
    attempts=counts,
    crashes=counts,
    solo_crashes=counts,
    chain=st.none() | chains,
)


@given(entries, hosts)
def test_every_entry_survives_a_round_trip(entry: Entry, host: str) -> None:
    text = encode(entry, host)
    assert decode(text, host) == entry
    assert "\x1f" not in text


@given(chains)
def test_every_chain_survives_a_round_trip(chain: Chain) -> None:
    assert chain_of(chain_json(chain)) == chain


def test_origins_of_the_host_itself_are_one_letter() -> None:
    assert short_origin("https://a.test", "a.test") == "s"
    assert short_origin("http://a.test", "a.test") == "h"
    assert short_origin("https://www.a.test", "a.test") == "https://www.a.test"


def test_a_fence_joins_epoch_and_counter_and_grows_with_either() -> None:
    assert fence_of(2, 1) > fence_of(1, (1 << 40) - 1) > fence_of(1, 1)
    assert counter_of(fence_of(7, 123)) == 123
    assert fence_of((1 << 23) - 1, (1 << 40) - 1) < 1 << 63


@pytest.mark.parametrize(("took_s", "start_ms"), [(4.0, 10_101), (0.01, 14_000)])
def test_a_release_that_arrives_late_says_when_its_request_began(took_s: float, start_ms: int) -> None:
    lease = Lease(
        fence=1, shard=0, host="a.test", crawl=1, crawl_version=0, lane=Lane.BATCH, entry=Entry(url="https://a.test/"),
        delay_ms=250, per_host=1, robots_ms=1, valid_until=55.0, asked_at=50.0, granted_ms=10_000,
    )  # fmt: skip
    times: dict[int, Times] = {}
    read_times([b"14000 14050 14250"], [Release(lease=lease, started=50.1, ended=50.15)], times, took_s)
    assert times[1] == Times(start_ms, start_ms + 50, 14_250)
