"""The process that reads files: it answers, its limits hold, and it leaves nothing behind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from curtsy.content.documents.model import Limits
from curtsy.services.document_process import Documents

CSV = b"name,price\nplum,1\npear,2\n"


#: children that other tests of this process left
_others: set[int] = set()


@pytest.fixture
def documents() -> Iterator[Documents]:
    _others.clear()
    _others.update(child.pid for child in psutil.Process().children())
    process = Documents()
    yield process
    process.close()


def _children() -> list[psutil.Process]:
    return [child for child in psutil.Process().children() if child.pid not in _others]


def test_a_file_is_read_in_another_process(documents: Documents) -> None:
    file = documents.read("csv", CSV)
    assert file.text == "name\tprice\nplum\t1\npear\t2"
    assert [label.text for label in file.labels_at(file.text.index("2"), len(file.text))] == ["price", "pear"]
    assert len(_children()) == 1
    documents.close()
    assert _children() == []


def test_a_file_beyond_the_memory_limit_is_a_problem_and_the_next_is_read(documents: Documents) -> None:
    body = b"name,price\n" + b"abcdefg,hijklmn\n" * 1_000_000
    assert documents.read("csv", body, limits=Limits(memory_bytes=150 << 20)).problem == "memory"
    assert documents.read("csv", CSV).problem == ""


def test_a_file_beyond_the_time_limit_is_cut(documents: Documents) -> None:
    file = documents.read("csv", b"name,price\n" + b"a,1\n" * 1_000_000, limits=Limits(seconds=1.0))
    assert (file.problem, file.truncated) == ("timeout", True)
    assert file.text.startswith("name\tprice\na\t1\n")


def test_a_reader_that_does_not_look_at_the_clock_is_killed(documents: Documents) -> None:
    # Decoding is one call: it is over only after the hard limit.
    body = b'"' + b"a" * 50_000_000
    file = documents.read("csv", body, limits=Limits(seconds=0.05))
    assert (file.problem, file.text) == ("timeout", "")
    assert documents.read("csv", CSV).problem == ""


def test_a_killed_process_is_replaced_and_leaves_no_zombie_and_no_open_file(documents: Documents) -> None:
    documents.read("csv", CSV)
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0
    for _ in range(5):
        child = _children()[0]
        child.kill()
        assert documents.read("csv", CSV).problem == ""
        assert [one.status() for one in _children()] != [psutil.STATUS_ZOMBIE]
        assert len(_children()) == 1
    if before:
        assert len(os.listdir("/proc/self/fd")) == before


def test_the_process_is_replaced_after_many_files(documents: Documents, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("curtsy.services.document_process._MOST_FILES", 2)
    seen = set()
    for _ in range(2):
        documents.read("csv", CSV)
        seen |= {child.pid for child in _children()}
        documents.read("csv", CSV)
    assert len(seen) == 2
    assert _children() == []


def test_an_unknown_kind_is_unsupported(documents: Documents) -> None:
    assert documents.read("xyz", b"...").problem == "unsupported"
