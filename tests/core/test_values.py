"""Values of which every page makes one: frozen for the type checker, cheap for the interpreter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from redis.asyncio.connection import Connection

from curtsy.core.model import Entry, NewUrl
from curtsy.frontier.connection import _packed


def test_values_are_equal_by_their_fields_and_changed_by_replace() -> None:
    entry = Entry(url="https://a.example/")
    deeper = replace(entry, depth=1)
    assert entry == Entry(url="https://a.example/") != deeper
    assert len({entry, Entry(url="https://a.example/"), deeper}) == 2


def test_new_urls_are_equal_by_identity() -> None:
    one, two = (NewUrl(crawl=1, fp=b"f", url="https://a.example/", host="a.example") for _ in range(2))
    assert one != two
    assert len({one, one, two}) == 2


def test_values_take_no_further_field_and_none_by_position() -> None:
    with pytest.raises(AttributeError):
        Entry(url="https://a.example/").other = 1  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Entry("https://a.example/")  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "words",
    [
        ("EVALSHA", "0" * 40, 1, "{s00}:epoch", 7, "p2 http:/ü", b"\xff\x00", 1.5, -3, ""),
        ("CONFIG GET", "maxmemory-policy"),
        ("SCAN", 0, "MATCH", "x" * 100_000),
    ],
)
def test_commands_are_packed_as_the_client_packs_them(words: tuple[str | int | float | bytes, ...]) -> None:
    assert b"".join(_packed(*words)) == b"".join(Connection().pack_command(*words))
