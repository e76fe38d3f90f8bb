"""What frontier_url may say."""

from __future__ import annotations

import asyncio

import pytest

from curtsy.core.errors import SettingsError
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.servers import Node, Servers, default_shards


@pytest.mark.parametrize(
    ("url", "family", "seeds"),
    [
        ("redis://user:secret@one.test:7000/2", "single", [("one.test", 7000)]),
        ("rediss://one.test?ssl_ca_certs=/ca.pem", "single", [("one.test", 6379)]),
        ("unix:///run/valkey.sock?db=2", "single", []),
        ("sentinel://one.test,two.test:1/crawl/2", "sentinel", [("one.test", 26379), ("two.test", 1)]),
        ("sentinels://u:p@[::1]:5/crawl", "sentinel", [("::1", 5)]),
        ("cluster://one.test:7000,[fd00::2],three.test", "cluster",
         [("one.test", 7000), ("fd00::2", 6379), ("three.test", 6379)]),
        ("clusters://one.test", "cluster", [("one.test", 6379)]),
    ],
)  # fmt: skip
def test_every_form_is_understood(url: str, family: str, seeds: list[tuple[str, int]]) -> None:
    servers = Servers(url)
    assert (servers.family, servers.seeds) == (family, seeds)
    assert servers.moves is (family != "single")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://one.test", "use redis://"),
        ("one.test:6379", "use redis://"),
        ("sentinel://one.test:1", "lacks the service"),
        ("sentinel:///crawl", "names no server"),
        ("cluster://", "names no server"),
        ("cluster://one.test:port", "not host:port"),
    ],
)
def test_a_url_that_cannot_be_is_refused_in_words(url: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Servers(url)


def test_a_single_server_is_found_without_being_asked() -> None:
    url = "redis://user:secret@one.test:7000/2"
    servers = Servers(url)
    assert asyncio.run(servers.find("{s00}", 0.0)) == Node(url, "one.test:7000")


def test_nodes_are_reached_with_the_credentials_and_options_of_the_url() -> None:
    servers = Servers("sentinels://me:p%40ss@one.test/crawl/3?ssl_ca_certs=/my/ca.pem&sentinel_password=other")
    node = servers._node("two.test", 7000, database="3")
    assert node.url == "rediss://me:p%40ss@two.test:7000/3?ssl_ca_certs=/my/ca.pem"
    assert (
        servers._url_of("one.test", 1, servers._sentinel_user) == "rediss://:other@one.test:1/?ssl_ca_certs=/my/ca.pem"
    )


def test_what_is_shown_of_a_server_holds_no_secret() -> None:
    servers = Servers("redis://user:secret@one.test:7000")
    assert "secret" not in asyncio.run(servers.find("{s00}", 0.0)).where


@pytest.mark.parametrize(("url", "count"), [(None, 1), ("unix:///s", 1), ("sentinel://a/b", 1), ("cluster://a", 16)])
def test_a_cluster_has_sixteen_shards_by_default(url: str | None, count: int) -> None:
    assert default_shards(url) == count
    if url is not None:
        assert len(Frontier(url, Settings(), "one").shards) == count
        assert len(Frontier(url, Settings(shards=3), "one").shards) == 3


@pytest.mark.parametrize(("said", "numbers"), [("0-2,5", (0, 1, 2, 5)), ("3", (3,)), ("", ())])
def test_shards_to_bind_to_are_numbers_and_ranges(monkeypatch: pytest.MonkeyPatch, said: str, numbers: tuple) -> None:
    monkeypatch.setenv("CURTSY_BIND_SHARDS", said)
    assert load().bind_shards == numbers


def test_shards_that_are_not_there_are_refused() -> None:
    with pytest.raises(SettingsError, match="Invalid shard 4"):
        Frontier("unix:///s", Settings(shards=4), "one", bound={0, 4})
    with pytest.raises(SettingsError, match="range of shards"):
        load(bind_shards="a-b")
