"""Gzip members: what every reader of gzip takes, of the size that they were meant to have."""

from __future__ import annotations

import gzip
import os
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.store import gzip_members
from curtsy.store.gzip_members import BROKEN

SIZES = [0, 1, 65_534, 65_535, 65_536, 131_070, 131_071, 200_000]
END = b"\r\n\r\n"


@pytest.mark.parametrize("size", SIZES)
def test_a_body_is_stored_as_it_is_behind_a_compressed_head(size: int) -> None:
    head, body = b"Header: value\r\n" * 100, os.urandom(size)
    member = gzip_members.partly_stored(head, body, END)
    assert gzip.decompress(member) == gzip_members.content(member) == head + body + END
    assert len(member) < len(body) + len(head) // 2 + 100
    assert body[:65_535] in member
    reader = zlib.decompressobj(31)
    assert b"".join(reader.decompress(member[i : i + 700]) for i in range(0, len(member), 700)) == head + body + END
    assert reader.eof


@pytest.mark.parametrize("size", SIZES)
def test_a_stored_member_has_the_size_that_was_asked_for(size: int) -> None:
    member = gzip_members.stored(b"x" * size)
    assert gzip.decompress(member) == b"x" * size
    assert gzip_members.data_size(len(member)) == size


@given(st.integers(24, 500_000))
def test_every_size_of_a_member_is_possible(size: int) -> None:
    assert len(gzip_members.stored(bytes(gzip_members.data_size(size)))) == size


def test_content_is_that_of_one_complete_member() -> None:
    member = gzip_members.compressed(b"text " * 50)
    assert gzip_members.content(member) == b"text " * 50
    for damaged in (member[:-1], member[:30], b"", b"plain", member + b"\0", member + member, member[:-8] + bytes(8)):
        with pytest.raises(BROKEN):
            gzip_members.content(damaged)
