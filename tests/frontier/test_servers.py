"""The frontier on servers that are found by asking: Sentinel masters and clusters; and over TLS with a password."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from certificates import Authority
from crawl_folder import CrawlFolder
from frontier_servers import Cluster, Server, die_with_parent, free_ports, tell, wait_for
from redis.crc import key_slot
from waiting import until

from curtsy.core.clock import boot
from curtsy.core.errors import EpochLost, FrontierUnavailable
from curtsy.core.model import Crawl, CrawlState, Entry, HostState, Lane, RobotsState
from curtsy.core.settings import Settings
from curtsy.frontier.frontier import Frontier
from curtsy.services.epochs import confirm, open_epoch
from curtsy.services.valkey import find_server
from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.politeness_check import judge

SHORT_SLOT: dict[str, Any] = {"slot_s": 4, "fetch_timeout_s": 1, "start_slack_s": 1, "slot_margin_s": 0.5}


class Watched:
    """A master, its replica, and a Sentinel that watches them under the name `crawl`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.master, self.replica = Server(_program()), Server(_program())
        self.ports = free_ports(2)
        self.sentinels: list[Server] = []

    def start(self) -> None:
        self.master.start(port=str(self.ports[0]), bind="127.0.0.1")
        self.replica.start(port=str(self.ports[1]), bind="127.0.0.1", replicaof=f"127.0.0.1 {self.ports[0]}")
        wait_for(lambda: tell(self.replica, "INFO", "replication").get("master_link_status") == "up", "no replica")
        self.url = self.watch(self.ports[0])
        wait_for(lambda: len(tell(self.sentinels[0], "SENTINEL", "REPLICAS", "crawl")) == 1, "the replica is unknown")

    def watch(self, master_port: int) -> str:
        """Starts a Sentinel for that master; answers the frontier's URL."""
        while True:
            (port,) = free_ports(1)
            sentinel = self._sentinel(master_port, port)
            wait_for(lambda one=sentinel: one.process.poll() is not None or one.answers(), "the Sentinel hangs", 60)
            if sentinel.process.poll() is None:
                self.sentinels.append(sentinel)
                return f"sentinel://127.0.0.1:{port}/crawl"
            sentinel.remove()  # somebody else has taken its port

    def _sentinel(self, master_port: int, port: int) -> Server:
        sentinel = Server(_program())
        config = sentinel.folder / "sentinel.conf"
        config.write_text(
            f"port {port}\nbind 127.0.0.1\nunixsocket {sentinel.socket}\ndir {sentinel.folder}\n"
            f"sentinel monitor crawl 127.0.0.1 {master_port} 1\n"
            "sentinel down-after-milliseconds crawl 60000\nsentinel failover-timeout crawl 10000\n"
        )
        sentinel.process = subprocess.Popen(
            [sentinel.program, str(config), "--sentinel"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=die_with_parent,  # noqa: PLW1509 (no threads here)
        )
        return sentinel

    def fail_over(self) -> None:
        tell(self.sentinels[0], "SENTINEL", "FAILOVER", "crawl")
        wait_for(lambda: tell(self.replica, "INFO", "replication")["role"] == "master", "no failover", 60)
        # It would be told to be a replica after some seconds; now it is as if its machine had died.
        self.master.stop()

    def remove(self) -> None:
        for server in (*self.sentinels, self.replica, self.master):
            server.remove()


def _program() -> str:
    found = find_server()
    assert found is not None
    return found


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    try:
        made.start()
        yield made
    finally:
        made.remove()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(f"sqlite:///{tmp_path}/curtsy.sqlite") as opened:
        yield opened


async def give_work(frontier: Frontier, *hosts: str) -> None:
    crawl = Crawl(n=1, id="one", request_id="r", state=CrawlState.RUNNING, delay_s=0.0)
    await frontier.set_crawl(crawl)
    await frontier.push([(1, host, i + 1, Entry(url=f"https://{host}/")) for i, host in enumerate(hosts)])
    rules = [
        RobotsState(origin=f"https://{host}", host=host, fetched_ms=7, expires_ms=4_000_000_000_000, status=200)
        for host in hosts
    ]
    await frontier.set_hosts([HostState(host=host) for host in hosts], rules)


# Sentinel


def test_a_crawl_survives_the_failover_of_its_frontier(tmp_path: Path, watched: Watched) -> None:
    with TinyWeb.start(hosts=6, pages=30, faults=False, log=tmp_path / "access.log") as web:
        folder = CrawlFolder(tmp_path, web, frontier_url=watched.url)
        failover = threading.Thread(
            target=lambda: (until(lambda: len(web.requests()) > 30), watched.fail_over()), daemon=True
        )
        failover.start()
        counts = folder.crawl(*web.seeds, delay_s=0.2)
        failover.join()
        assert (counts.pages > 100, counts.pending, counts.failed) == (True, 0, {})
        verdict = judge(web.requests(), 0.2)
        assert verdict.ok, verdict.summary()
        # The slot of 4 s, and the 10 s in which others might have gone on with the old master.
        gap = folder.rows("SELECT start_ms, end_ms FROM requests WHERE nature = 'gap'")
        assert [end - start for start, end in gap] == [14_000]
        starts = [line.start_us / 1000 for line in web.requests()]
        assert not [at for at in starts if gap[0][0] + 4000 < at < gap[0][1]]


def test_a_master_that_was_replaced_behind_our_back_is_not_leased_from_for_longer_than_ten_seconds(
    watched: Watched, store: Store
) -> None:
    """Cut in two: some reach the old master and its Sentinel, others the new ones. Both read the same store."""
    settings = Settings(**SHORT_SLOT)

    async def scene() -> None:
        one = Frontier(watched.url, settings, "one")
        await open_epoch(one, store)
        await give_work(one, *(f"h{i}.test" for i in range(9)))
        assert len((await one.lease([(Lane.BATCH, 1)])).leases) == 1

        tell(watched.replica, "REPLICAOF", "NO", "ONE")
        two = Frontier(watched.watch(watched.ports[1]), settings, "two")
        await open_epoch(two, store)
        assert two.shards[0].epoch != one.shards[0].epoch
        fields = await two.shards[0].command("HMGET", two.shards[0].epoch_key, "quiet")
        seconds, micros = await two.shards[0].command("TIME")
        quiet_s = int(fields[0]) / 1000 - int(seconds) - int(micros) / 1e6
        assert 13 < quiet_s <= 14

        # The old master answers the first, who cannot reach the store: for ten seconds that must do.
        one.shards[0].confirm(boot() - 9.5)
        assert len((await one.lease([(Lane.BATCH, 1)])).leases) == 1
        one.shards[0].confirm(boot() - 10.001)
        assert (await one.lease([(Lane.BATCH, 8)])).leases == []

        # As soon as it reads the store it knows; and what it rebuilds then, it rebuilds where it can.
        await confirm(one, store)
        with pytest.raises(EpochLost):
            await one.lease([(Lane.BATCH, 8)])
        await one.close()
        await two.close()

    asyncio.run(scene())


def test_a_master_that_became_a_replica_is_a_loss(watched: Watched, store: Store) -> None:
    async def scene() -> None:
        frontier = Frontier(watched.url, Settings(**SHORT_SLOT), "one")
        await open_epoch(frontier, store)
        tell(watched.master, "REPLICAOF", "127.0.0.1", watched.ports[1])
        with pytest.raises((EpochLost, FrontierUnavailable)):
            await frontier.renew_leases([])
        with pytest.raises(FrontierUnavailable, match="replica"):
            await frontier.shards[0].facts()
        await frontier.close()

    asyncio.run(scene())


def test_a_replica_is_no_frontier(watched: Watched) -> None:
    async def scene() -> None:
        frontier = Frontier(f"redis://127.0.0.1:{watched.ports[1]}", Settings(), "one")
        with pytest.raises(FrontierUnavailable, match="replica"):
            await frontier.shards[0].facts()
        await frontier.close()

    asyncio.run(scene())


def test_doctor_tells_the_master_and_refuses_a_replica_that_evicts(tmp_path: Path, watched: Watched) -> None:
    folder = CrawlFolder(tmp_path, frontier_url=watched.url)
    found = {check["what"]: check for check in folder.run("doctor")["checks"]}["frontier"]
    assert found["ok"]
    assert found["found"].startswith(f"Sentinel master 127.0.0.1:{watched.ports[0]} of 'crawl'")
    assert "1 more may take over" in found["found"]
    tell(watched.replica, "CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    found = {check["what"]: check for check in folder.run("doctor", code=4)["checks"]}["frontier"]
    assert not found["ok"]
    assert f"127.0.0.1:{watched.ports[1]} evicts keys" in found["mend"]


def test_sentinels_that_do_not_know_the_service_are_named(watched: Watched) -> None:
    async def scene() -> None:
        frontier = Frontier(watched.url.replace("/crawl", "/other"), Settings(), "one")
        with pytest.raises(FrontierUnavailable, match="No such master"):
            await frontier.shards[0].facts()
        await frontier.close()

    asyncio.run(scene())


# Clusters


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    made = Cluster(_program())
    try:
        made.start()
        yield made
    finally:
        made.remove()


def test_a_crawl_on_a_cluster_uses_sixteen_shards_on_all_nodes(tmp_path: Path, cluster: Cluster) -> None:
    with TinyWeb.start(hosts=12, pages=8, faults=False, log=tmp_path / "access.log") as web:
        folder = CrawlFolder(tmp_path, web, frontier_url=cluster.url)
        counts = folder.crawl(*web.seeds, delay_s=0.1)
        assert (counts.pages > 80, counts.pending, counts.failed) == (True, 0, {})
        verdict = judge(web.requests(), 0.1)
        assert verdict.ok, verdict.summary()
        (tmp_path / "alone").mkdir()
        alone = CrawlFolder(tmp_path / "alone", web)
        alone.crawl(*web.seeds)
        assert folder.pages() == alone.pages()
    assert folder.rows("SELECT count(*) FROM meta WHERE key LIKE 'epoch:%'") == [(16,)]
    assert all(tell(node, "DBSIZE") > 0 for node in cluster.nodes)
    found = {check["what"]: check for check in folder.run("doctor")["checks"]}["frontier"]
    assert found["found"].startswith("cluster, 16 shards on ")
    assert all(f"127.0.0.1:{port} (" in found["found"] for port in cluster.ports)


def test_a_slot_that_moved_to_another_node_is_a_loss_and_is_rebuilt_there(cluster: Cluster, store: Store) -> None:
    async def scene() -> None:
        frontier = Frontier(cluster.url, Settings(shards=1, **SHORT_SLOT), "one")
        shard = frontier.shards[0]
        await open_epoch(frontier, store)
        before = await shard.where()
        slot = key_slot(b"{s00}")
        source = next(n for n, port in zip(cluster.nodes, cluster.ports, strict=True) if before.endswith(f":{port}"))
        target = next(node for node in cluster.nodes if node is not source)
        _move(slot, source, target)
        with pytest.raises(EpochLost, match="moved"):
            await frontier.lease([(Lane.BATCH, 8)])
        epoch = shard.epoch or 0
        await open_epoch(frontier, store)
        assert await shard.where() != before
        assert (shard.epoch or 0) > epoch
        await frontier.lease([(Lane.BATCH, 8)])
        await frontier.close()

    asyncio.run(scene())


def test_a_crawl_survives_the_death_of_a_cluster_node(tmp_path: Path) -> None:
    cluster = Cluster(_program())
    try:
        cluster.start()
        replica = cluster.add_replica(cluster.nodes[1])
        with TinyWeb.start(hosts=12, pages=25, faults=False, log=tmp_path / "access.log") as web:
            folder = CrawlFolder(tmp_path, web, frontier_url=cluster.url)
            killer = threading.Thread(
                target=lambda: (until(lambda: len(web.requests()) > 60), cluster.nodes[1].stop()), daemon=True
            )
            killer.start()
            counts = folder.crawl(*web.seeds, delay_s=0.2)
            killer.join()
            assert (counts.pages > 200, counts.pending, counts.failed) == (True, 0, {})
            verdict = judge(web.requests(), 0.2)
            assert verdict.ok, verdict.summary()
            gaps = folder.rows("SELECT count(*), min(end_ms - start_ms) FROM requests WHERE nature = 'gap'")
            lost = {
                shard for shard in range(16) if 16384 // 3 <= key_slot(f"{{s{shard:02d}}}".encode()) < 2 * 16384 // 3
            }
            assert gaps == [(len(lost), 14_000)]
            # What the nodes that live had granted was used, not left to expire.
            assert folder.rows("SELECT count(*) FROM urls WHERE crashes > 0") == [(0,)]
            assert tell(replica, "INFO", "replication")["role"] == "master"
    finally:
        cluster.remove()


def _move(slot: int, source: Server, target: Server) -> None:
    """Key by key, as clusters are resharded by hand."""
    ids = {node: tell(node, "CLUSTER", "MYID").decode() for node in (source, target)}
    port = int(tell(target, "CONFIG", "GET", "port")[1])
    tell(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    tell(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    while keys := tell(source, "CLUSTER", "GETKEYSINSLOT", slot, 100):
        for key in keys:
            tell(source, "MIGRATE", "127.0.0.1", port, key, 0, 5000)
    for node in (target, source):
        tell(node, "CLUSTER", "SETSLOT", slot, "NODE", ids[target])


# TLS and passwords


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def guarded(authority: Authority) -> Iterator[tuple[Server, int]]:
    """Debian's Redis over TLS only, one node that is a cluster by itself, with a password and a user."""
    program = shutil.which("redis-server")
    if program is None or b"TLS" not in _linked(program):
        pytest.skip("no redis-server with TLS here; install redis-server to run these tests")
    certificate, key = authority.issue("localhost")
    server = Server(program)
    port, bus = free_ports(2)
    server.start(
        tls_port=str(port), tls_cert_file=str(certificate), tls_key_file=str(key), tls_ca_cert_file=str(authority.file),
        tls_auth_clients="no", bind="127.0.0.1", requirepass="p@ss/word", cluster_enabled="yes", cluster_port=str(bus),
        tls_cluster="yes", cluster_announce_hostname="localhost", user="crawler on >secret ~* &* +@all",
    )  # fmt: skip
    try:
        tell(server, "CLUSTER", "ADDSLOTSRANGE", 0, 16383, password="p@ss/word")
        wait_for(lambda: b"cluster_state:ok" in tell(server, "CLUSTER", "INFO", password="p@ss/word"), "not ready")
        yield server, port
    finally:
        server.remove()


def _linked(program: str) -> bytes:
    """b'TLS' if the server speaks it."""
    said = subprocess.run(["ldd", program], capture_output=True, check=False).stdout
    return b"TLS" if b"libssl" in said else b""


@pytest.mark.parametrize(
    "url",
    [
        "rediss://:p%40ss%2Fword@localhost:{port}?ssl_ca_certs={ca}",
        "rediss://crawler:secret@localhost:{port}/0?ssl_ca_certs={ca}",
        "clusters://crawler:secret@localhost:{port}?ssl_ca_certs={ca}",
    ],
    ids=["password", "user", "cluster"],
)
def test_a_server_is_reached_over_tls_with_its_own_authority(
    guarded: tuple[Server, int], authority: Authority, store: Store, url: str
) -> None:
    async def scene() -> None:
        frontier = Frontier(url.format(port=guarded[1], ca=authority.file), Settings(shards=2), "one")
        await open_epoch(frontier, store)
        await give_work(frontier, "a.test", "b.test")
        assert len((await frontier.lease([(Lane.BATCH, 8)])).leases) == 2
        assert "secret" not in await frontier.shards[0].where()
        await frontier.close()

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("rediss://:p%40ss%2Fword@localhost:{port}", "CERTIFICATE_VERIFY_FAILED"),
        ("rediss://:p%40ss%2Fword@127.0.0.1:{port}?ssl_ca_certs={ca}", "127.0.0.1"),
        ("rediss://:wrong@localhost:{port}?ssl_ca_certs={ca}", "(?i)password"),
        ("rediss://localhost:{port}?ssl_ca_certs={ca}", "(?i)authenticat"),
        ("clusters://crawler:wrong@localhost:{port}?ssl_ca_certs={ca}", "(?i)password"),
    ],
    ids=["unknown authority", "another name", "wrong password", "no password", "cluster, wrong password"],
)
def test_a_failed_connection_to_the_server_is_explained(
    guarded: tuple[Server, int], authority: Authority, url: str, said: str
) -> None:
    async def scene() -> None:
        frontier = Frontier(url.format(port=guarded[1], ca=authority.file), Settings(shards=1), "one")
        with pytest.raises(FrontierUnavailable, match=said) as error:
            await frontier.shards[0].facts()
        assert "wrong@" not in str(error.value)
        await frontier.close()

    asyncio.run(scene())
