"""Every error of Valkey, Redis and their client means something for the caller: wait, act, or adopt another epoch."""

from __future__ import annotations

import pytest
from frontier_servers import World
from injected import every_subclass
from redis.exceptions import AskError, DataError, RedisError, ResponseError

from curtsy.core.errors import EpochLost, FrontierRefused, FrontierUnavailable
from curtsy.frontier.server_errors import translated

pytest_plugins = ["frontier_fixtures"]

CLASSES = [one for one in every_subclass(RedisError) if one.__module__.startswith("redis")]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: f"{kind.__module__}.{kind.__name__}")
def test_every_class_of_the_client_is_known(kind: type[Exception]) -> None:
    error = kind("7 127.0.0.1:7000") if issubclass(kind, AskError) else kind("it says no")
    known = translated(error)
    if issubclass(kind, DataError):
        assert known is None, "an argument that cannot be sent is a mistake of ours"
    else:
        assert isinstance(known, (EpochLost, FrontierUnavailable))
        assert str(known).endswith(".")


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
        ("EPOCH 12", EpochLost),
        ("ERR Error running script: @user_script:7: -READONLY You can't write against a read only replica", EpochLost),
    ],
)  # fmt: skip
def test_codes_without_a_class_are_known_by_their_text(said: str, kind: type[Exception]) -> None:
    assert type(translated(ResponseError(said))) is kind


def test_a_mistake_in_a_script_is_not_an_outage() -> None:
    assert translated(ResponseError("ERR user_script:12: attempt to index a nil value script: abc")) is None
    assert translated(ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value")) is None


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
