"""Redis 6.2 is enough: no script or client command of the frontier is newer, as the server's own documentation says."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from frontier_servers import Server, tell

import curtsy.frontier

FOLDER = Path(curtsy.frontier.__file__).parent
#: since Redis 7.0, of commands that are older
NEWER_OPTIONS = re.compile(r"'P?EXPIRE(AT)?'[^)]*'(NX|XX|GT|LT)'|'SET'[^)]*'NX'[^)]*'GET'")


def sent() -> set[str]:
    found: set[str] = set()
    for script in (FOLDER / "lua").glob("*.lua"):
        found.update(re.findall(r"\b(?:call|pcall|many)\('([A-Z]+)'", script.read_text("utf-8")))
    for module in FOLDER.glob("*.py"):
        # The first word of a call, or of a tuple in a list of commands.
        found.update(re.findall(r'(?:command\(\s*|[\[=,(] ?\()"([A-Z]+)"', module.read_text("utf-8")))
    return found


@pytest.fixture(scope="module")
def redis7() -> Iterator[Server]:
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("no redis-server here; install it to run this test")
    server = Server(program)
    server.start()
    yield server
    server.remove()


def test_no_command_is_newer_than_redis_6_2(redis7: Server) -> None:
    names = sent()
    assert {"EVALSHA", "ZADD", "ZMSCORE", "HSET", "INFO", "SCAN"} <= names, "the list is not what the frontier sends"
    newer = {}
    for name in sorted(names - {"SENTINEL"}):  # only a Sentinel knows it; MASTER and REPLICAS are of 5.0
        said = tell(redis7, "COMMAND DOCS", name)
        assert said, f"the server does not know {name}"
        fields = dict(zip(said[1][::2], said[1][1::2], strict=True))
        since = tuple(int(part) for part in fields[b"since"].decode().split("."))
        if since >= (6, 3):
            newer[name] = fields[b"since"]
    assert newer == {}


def test_no_option_of_a_later_version_is_used() -> None:
    for script in (FOLDER / "lua").glob("*.lua"):
        assert not NEWER_OPTIONS.search(script.read_text("utf-8")), script.name
