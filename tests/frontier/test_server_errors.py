"""Every error of Valkey, Redis and the connection means something for the caller: wait, act, or use another epoch."""

from __future__ import annotations

import pytest
from frontier_servers import World

from curtsy.core.errors import EpochLost, FrontierRefused, FrontierUnavailable
from curtsy.frontier.client import ServerError
from curtsy.frontier.server_errors import NoMaster, OtherRun, translated

pytest_plugins = ["frontier_fixtures"]


@pytest.mark.parametrize("kind", [ConnectionResetError, TimeoutError, BrokenPipeError, OSError])
def test_errors_of_the_system_wait(kind: type[OSError]) -> None:
    assert type(translated(kind())) is FrontierUnavailable


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("OOM command not allowed when used memory > 'maxmemory'", FrontierRefused),
        ("ERR Error running script (call to f_1): @user_script:7: -OOM command not allowed", FrontierRefused),
        ("MISCONF Valkey is configured to save RDB snapshots, but it's unable to persist to disk.", FrontierRefused),
        ("NOREPLICAS Not enough good replicas to write.", FrontierRefused),
        ("ERR unknown command 'EVALSHA', with args beginning with:", FrontierRefused),
        ("BUSY Valkey is busy running a script.", FrontierUnavailable),
        ("LOADING Valkey is loading the dataset in memory", FrontierUnavailable),
        ("CLUSTERDOWN Hash slot not served", FrontierUnavailable),
        ("TRYAGAIN Multiple keys request during rehashing of slot", FrontierUnavailable),
        ("NOSCRIPT No matching script. Please use EVAL.", FrontierUnavailable),
        ("EXECABORT Transaction discarded because of previous errors.", FrontierUnavailable),
        ("ERR max number of clients reached", FrontierUnavailable),
        ("NOAUTH Authentication required.", FrontierRefused),
        ("WRONGPASS invalid username-password pair or user is disabled.", FrontierRefused),
        ("NOPERM User crawler has no permissions to run the 'eval' command", FrontierRefused),
        ("ERR AUTH <password> called without any password configured for the default user.", FrontierRefused),
        ("DENIED Redis is running in protected mode", FrontierRefused),
        ("EPOCH 12", EpochLost),
        ("MOVED 7 127.0.0.1:7000", EpochLost),
        ("ASK 7 127.0.0.1:7000", EpochLost),
        ("READONLY You can't write against a read only replica.", EpochLost),
        ("ERR Error running script: @user_script:7: -READONLY You can't write against a read only replica", EpochLost),
    ],
)  # fmt: skip
def test_errors_of_the_server_are_known_by_their_code(said: str, kind: type[Exception]) -> None:
    assert type(translated(ServerError(said))) is kind


def test_another_run_is_a_loss_and_a_replica_is_waited_for() -> None:
    assert type(translated(OtherRun("run_id was a, is b"))) is EpochLost
    assert type(translated(NoMaster("it is a replica"))) is FrontierUnavailable


def test_a_mistake_in_a_script_is_not_an_outage() -> None:
    assert translated(ServerError("ERR user_script:12: attempt to index a nil value script: abc")) is None
    assert translated(ServerError("WRONGTYPE Operation against a key holding the wrong kind of value")) is None


def test_a_server_without_memory_refuses_new_work_and_has_done_nothing(world: World) -> None:
    world.crawl()
    world.add(1, "a.test", "/1", "/2")
    before = world.do("HGETALL", "%host:a.test"), world.listed("a.test"), world.counts()
    world.do("CONFIG", "SET", "maxmemory", "1")
    try:
        with pytest.raises(FrontierRefused, match="maxmemory"):
            world.add(1, "a.test", "/3")
        assert (world.do("HGETALL", "%host:a.test"), world.listed("a.test"), world.counts()) == before
    finally:
        world.do("CONFIG", "SET", "maxmemory", "0")
    world.add(1, "a.test", "/3")
    assert len(world.listed("a.test")) == 3
