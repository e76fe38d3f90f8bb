"""Private frontier servers for the contract tests, and a small world around a frontier whose time is steered.

Time moves by the `skew` field of the epoch, never by sleeping: delays in the tests are tens of seconds, so that what
the machine itself takes does not matter.
"""

from __future__ import annotations

import asyncio
import ctypes
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import redis

from curtsy.core.clock import ServerClock, boot
from curtsy.core.model import Crawl, CrawlState, Entry, HostState, Kind, Lane, Lease, RobotsState
from curtsy.core.outcome import HostEffect
from curtsy.core.settings import Settings
from curtsy.frontier.frontier import Frontier
from curtsy.frontier.messages import Release, Rules, Scan, Settled, SettleReply, Times

T = TypeVar("T")
FAR_MS = 4_000_000_000_000


def die_with_parent() -> None:
    """A test run that is killed leaves no server behind."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Server:
    """A server on a unix socket that keeps nothing on disk unless told to save."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.folder = Path(tempfile.mkdtemp(prefix="curtsy-frontier-"))
        self.socket = self.folder / "s"
        self.url = f"unix://{self.socket}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, **more: str) -> None:
        """`more`: further options of the server, with `_` for `-`."""
        options = {"port": "0", "unixsocket": str(self.socket), "save": "", "dir": str(self.folder)}
        options |= {name.replace("_", "-"): value for name, value in more.items()}
        words = [word for key, value in options.items() for word in (f"--{key}", *value.split(" "))]
        nothing = subprocess.DEVNULL
        self.process = subprocess.Popen(
            [self.program, *words],
            stdout=nothing,
            stderr=nothing,
            preexec_fn=die_with_parent,  # noqa: PLW1509 (no threads here)
        )
        wait_for(self.answers, f"{self.program} does not answer")

    def answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(1)
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None
        self.socket.unlink(missing_ok=True)

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


class Cluster:
    """Three nodes on loopback ports that share the slots; `nodes[i].socket` leads to one of them for plain commands."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.nodes: list[Server] = []
        self.ports: list[int] = []
        self._addresses: list[tuple[int, int]] = []
        self.url = ""

    def start(self) -> None:
        self.ports = [self._add() for _ in range(3)]
        for i, node in enumerate(self.nodes):
            tell(node, "CLUSTER", "ADDSLOTSRANGE", i * 16384 // 3, (i + 1) * 16384 // 3 - 1)
            tell(node, "CLUSTER", "SET-CONFIG-EPOCH", i + 1)
        self._meet()
        self.url = "cluster://" + ",".join(f"127.0.0.1:{port}" for port in self.ports)

    def add_replica(self, of: Server) -> Server:
        """One more node, ready to take over."""
        self._add()
        self._meet()
        replica = self.nodes[-1]
        tell(replica, "CLUSTER", "REPLICATE", tell(of, "CLUSTER", "MYID").decode())
        wait_for(lambda: tell(replica, "INFO", "replication").get("master_link_status") == "up", "no replica")
        return replica

    def _add(self) -> int:
        port, bus = free_ports(2)
        node = Server(self.program)
        self.nodes.append(node)
        self._addresses.append((port, bus))
        node.start(
            port=str(port), bind="127.0.0.1", cluster_enabled="yes", cluster_port=str(bus), cluster_node_timeout="2000"
        )
        return port

    def _meet(self) -> None:
        for port, bus in self._addresses[1:]:
            tell(self.nodes[0], "CLUSTER", "MEET", "127.0.0.1", port, bus)
        wait_for(lambda: all(self._is_ready(node) for node in self.nodes), "the cluster is not ready")

    def _is_ready(self, node: Server) -> bool:
        said = tell(node, "CLUSTER", "INFO").decode()
        return "cluster_state:ok" in said and tell(node, "CLUSTER", "NODES").count(b" connected") == len(self.nodes)

    def remove(self) -> None:
        for node in self.nodes:
            node.remove()


def tell(node: Server, *words: str | int, password: str | None = None) -> Any:
    with redis.Redis(unix_socket_path=str(node.socket), protocol=2, password=password) as client:
        return client.execute_command(*words)


def free_ports(n: int) -> list[int]:
    sockets = [socket.socket() for _ in range(n)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


def wait_for(condition: Callable[[], bool], otherwise: str, timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.005)


class World:
    """One frontier, one worker `w1`, a steered clock; hosts have known robots unless a test says otherwise."""

    def __init__(self, server: Server | Cluster, *, shards: int = 1, **settings: Any) -> None:
        self.server = server
        self.settings = Settings(shards=shards, **settings)
        self.loop = asyncio.new_event_loop()
        self.frontiers: list[Frontier] = []
        self.seq = 0
        self.epoch = 0
        self.skew = 0
        self.frontier = Frontier(server.url, self.settings, "w1")
        self.frontiers.append(self.frontier)
        for i in range(shards):
            self.do("FLUSHALL", shard=i)
        self.rebuild()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def close(self) -> None:
        for frontier in self.frontiers:
            self.run(frontier.close())
        self.loop.close()

    def do(self, *words: str | int | float, shard: int = 0) -> Any:
        """A plain command; `%` stands for the epoch's prefix."""
        return self.run(self.frontier.shards[shard].command(*words))

    # Epochs and time

    def rebuild(self, *, quiet_s: float = 0) -> None:
        """A new epoch, without anything in it; other frontiers of this world still believe in the old one."""
        for shard in self.frontier.shards:
            self.epoch += 1
            facts = self.run(shard.facts())
            self.run(shard.begin_epoch(self.epoch, facts.run_id, quiet_s, over=facts.number))
            shard.use_epoch(self.epoch, facts.run_id)
            shard.confirm(float("inf"))
            self.do("HINCRBY", shard.epoch_key, "skew", self.skew, shard=shard.number)
            if quiet_s:
                self.do("HINCRBY", shard.epoch_key, "quiet", self.skew, shard=shard.number)

    def another(self, owner: str) -> Frontier:
        other = Frontier(self.server.url, self.settings, owner)
        for mine, theirs in zip(self.frontier.shards, other.shards, strict=True):
            facts = self.run(theirs.facts())
            assert facts.number == mine.epoch
            theirs.use_epoch(facts.number, facts.run_id)
            theirs.confirm(float("inf"))
        self.frontiers.append(other)
        return other

    def advance(self, seconds: float) -> None:
        self.skew += int(seconds * 1000)
        for shard in self.frontier.shards:
            self.do("HINCRBY", shard.epoch_key, "skew", int(seconds * 1000), shard=shard.number)
        for frontier in self.frontiers:
            for shard in frontier.shards:
                shard._clock = ServerClock()

    def now(self) -> int:
        """The frontier's clock: this machine's, as the server runs here too, and what was added to it."""
        return time.time_ns() // 1_000_000 + self.skew

    # Work

    def crawl(self, n: int = 1, **wishes: Any) -> Crawl:
        wishes = {"delay_s": 60.0, "state": CrawlState.RUNNING} | wishes
        crawl = Crawl(n=n, id=f"crawl-{n}", request_id="r", **wishes)
        self.run(self.frontier.set_crawl(crawl))
        return crawl

    def introduce(self, *names: str, robots: bool = True, again: bool = False, **facts: Any) -> None:
        rules = [
            RobotsState(origin=f"{scheme}://{name}", host=name, fetched_ms=7, expires_ms=FAR_MS, status=200)
            for name in names
            for scheme in ("https", "http")
            if robots
        ]
        states = [HostState(host=name, **facts) for name in names]
        self.run(self.frontier.set_hosts(states, rules, again=again))

    def add(self, crawl: int, host: str, *paths: str, robots: bool = True, **entry: Any) -> list[Scan]:
        """Pushes rows of one queue; the host is introduced if the frontier asks for it."""
        rows = []
        for path in paths:
            self.seq += 1
            url = path if ":" in path else f"https://{host}{path}"
            rows.append((crawl, host, self.seq, Entry(url=url, **entry)))
        reply = self.run(self.frontier.push(rows))
        if reply.hosts:
            self.introduce(*reply.hosts, robots=robots)
        return reply.scans

    def lease(
        self, n: int = 64, *releases: Release, lane: Lane = Lane.BATCH, by: Frontier | None = None
    ) -> list[Lease]:
        return self.run((by or self.frontier).lease([(lane, n)])).leases

    def one(self) -> Lease:
        leases = self.lease()
        assert len(leases) == 1, leases
        return leases[0]

    def solo(self) -> list[Lease]:
        return self.run(self.frontier.lease([(Lane.BATCH, 1)], solo=True)).leases

    def back(self, lease: Lease, *, sent_ago_s: float | None = 0, ended_ago_s: float = 0, **more: Any) -> Times | None:
        """Releases one slot; answers the times by the server's clock."""
        reply = self.run(self.frontier.lease([(Lane.BATCH, 0)], [released(lease, sent_ago_s, ended_ago_s, **more)]))
        return reply.times.get(lease.fence)

    def settle(self, *leases: Lease, used: bool = False, rules: tuple[Rules, ...] = ()) -> SettleReply:
        return self.run(self.frontier.settle([Settled(lease=lease, used=used) for lease in leases], rules=rules))

    def retry(self, lease: Lease, in_s: float) -> SettleReply:
        entry = replace(lease.entry, attempts=lease.entry.attempts + 1)
        at = self.now() + int(in_s * 1000)
        return self.run(self.frontier.settle([Settled(lease=lease, retry_ms=at, entry=entry)]))

    def finish(self, lease: Lease, **more: Any) -> Times | None:
        times = self.back(lease, **more)
        self.settle(lease, used=True)
        return times

    def fill(self, scan: Scan, *rows: tuple[int, str], more: bool = False) -> tuple[str, list[Scan]]:
        texts = [(seq, None, Entry(url=f"https://{scan.host}{path}")) for seq, path in rows]
        return self.run(self.frontier.fill(scan, texts, more=more))

    def reap(self) -> list[Scan]:
        return self.run(self.frontier.reap())[0]

    # Looking

    def listed(self, host: str, crawl: int = 1) -> list[str]:
        return [text.decode() for text in self.do("LRANGE", f"%q:{host}:{crawl}", 0, -1)]

    def due(self) -> dict[str, float]:
        """host -> ms, over all due sets; a host in two of them fails here."""
        found: dict[str, float] = {}
        for lane in ("high", "batch", "slow", "solo"):
            flat = self.do("ZRANGE", f"%due:{lane}", 0, -1, "WITHSCORES")
            for name, score in _pairs(flat):
                assert name not in found, f"{name} stands in two due sets"
                found[name] = score
        return found

    def lane_of(self, host: str) -> str | None:
        lanes = ("high", "batch", "slow", "solo")
        standing = [lane for lane in lanes if self.do("ZSCORE", f"%due:{lane}", host) is not None]
        assert len(standing) <= 1, standing
        return standing[0] if standing else None

    def counts(self, crawl: int = 1) -> tuple[int, int]:
        """(queues on the bench, URLs leased or delayed)."""
        pairs, busy = self.do("HMGET", f"%crawl:{crawl}", "pairs", "busy")
        return int(pairs or 0), int(busy or 0)


def _pairs(flat: list[Any]) -> list[tuple[str, float]]:
    if flat and isinstance(flat[0], (list, tuple)):
        return [(name.decode(), float(score)) for name, score in flat]
    return [(flat[i].decode(), float(flat[i + 1])) for i in range(0, len(flat), 2)]


def released(lease: Lease, sent_ago_s: float | None = 0, ended_ago_s: float = 0, **more: Any) -> Release:
    now = boot()
    started = None if sent_ago_s is None else now - sent_ago_s
    return Release(lease=lease, started=started, ended=now - ended_ago_s, **more)


def blocked(ms: int, **more: Any) -> HostEffect:
    return HostEffect(block_ms=ms, **more)


def paths(leases: list[Lease]) -> list[str]:
    return ["/" + lease.entry.url.split("/", 3)[3] for lease in leases]


def robots_of(lease: Lease) -> bool:
    return lease.entry.kind is Kind.ROBOTS
