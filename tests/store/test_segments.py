"""Segments in a folder: durable, never torn, cut only when their writer is gone, swept when nobody refers to them."""

from __future__ import annotations

import hashlib
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from stored import page_of
from warcio.checker import Checker

from curtsy.core.errors import Damaged, SegmentsUnavailable
from curtsy.core.model import BodyRef, Crawl
from curtsy.store import crawls, pages
from curtsy.store.engine import Store
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import Segments, read_page
from curtsy.store.sweep import delete_unreferenced
from curtsy.store.warc import WarcItem


def _item(n: int, size: int = 2000, **values: object) -> WarcItem:
    body = os.urandom(size // 2) + b"%d " % n * (size // 8)
    digest = hashlib.sha256(body).hexdigest()
    given: dict[str, object] = {"url": f"https://a.test/{n}", "fetched_ms": n, "status": 200, "headers": ()}
    given |= {"request_head": b"GET / HTTP/1.1\r\n\r\n", "facts": (("n", str(n)),)}
    return WarcItem(body=body, sha256=digest, **(given | values))  # type: ignore[arg-type]


def _commit(store: Store, items: list[WarcItem], refs: list[BodyRef]) -> int:
    crawl = store.run(crawls.create, Crawl(id=os.urandom(4).hex(), request_id="r")).n
    store.run(pages.insert, [page_of(crawl, item, ref) for item, ref in zip(items, refs, strict=True)])
    return crawl


def _committed(store: Store) -> dict[str, int]:
    return store.run(pages.committed)


def _valid(folder: Path) -> bool:
    return all(
        Checker(SimpleNamespace(inputs=[str(path)], verbose=False)).process_all() == 0 for path in folder.iterdir()
    )


def test_what_was_appended_reads_back_from_one_valid_file(tmp_path: Path) -> None:
    segments = Segments(tmp_path / "segments")
    items = [_item(n) for n in range(20)]
    refs = segments.append(items[:12]) + segments.append(items[12:])
    assert [segments.read(ref).body for ref in refs] == [item.body for item in items]
    (path,) = (tmp_path / "segments").iterdir()
    assert {ref.segment for ref in refs} == {path.name}
    assert refs[-1].offset + refs[-1].length == path.stat().st_size
    assert _valid(path.parent)


def test_nothing_to_append_makes_no_file(tmp_path: Path) -> None:
    assert Segments(tmp_path / "segments").append([]) == []
    assert not (tmp_path / "segments").exists()


def test_a_full_segment_is_followed_by_another(tmp_path: Path) -> None:
    segments = open_segments(tmp_path, 5000)
    refs = [segments.append([_item(n)])[0] for n in range(9)]
    assert 2 <= len({ref.segment for ref in refs}) < 9
    assert [segments.read(ref).url for ref in refs] == [f"https://a.test/{n}" for n in range(9)]
    assert _valid(tmp_path)


def test_two_writers_have_a_file_each(tmp_path: Path) -> None:
    first, second = Segments(tmp_path), Segments(tmp_path)
    refs = first.append([_item(1)]) + second.append([_item(2)]) + first.append([_item(3)])
    assert refs[0].segment == refs[2].segment != refs[1].segment
    assert [second.read(ref).url[-1] for ref in refs] == ["1", "2", "3"]


def test_the_torn_tail_of_a_dead_writer_is_cut(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    writer = Segments(folder)
    items = [_item(1), _item(2)]
    refs = writer.append(items)
    _commit(store, items, refs)
    writer.append([_item(3)])
    writer.close()
    path = folder / refs[0].segment
    with path.open("ab") as file:
        file.write(b"\x1f\x8b torn")
    segments = Segments(folder)
    assert segments.recover(lambda: _committed(store)) == 1
    assert path.stat().st_size == refs[1].offset + refs[1].length
    assert segments.recover(lambda: _committed(store)) == 0
    assert [segments.read(ref).body for ref in refs] == [item.body for item in items]
    assert _valid(folder)


def test_the_file_of_a_living_writer_is_left_alone(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    writer = Segments(folder)
    items = [_item(1)]
    _commit(store, items, writer.append(items))
    (late,) = writer.append([_item(2)])
    assert Segments(folder).recover(lambda: _committed(store)) == 0
    assert writer.read(late).url == "https://a.test/2"
    assert Segments(folder).older_than(-10) == []


def test_a_killed_writer_no_longer_holds_its_file(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    code = (
        "import os, pathlib; from curtsy.store.segments import Segments; from curtsy.store.warc import WarcItem\n"
        f"segments = Segments(pathlib.Path({str(folder)!r}))\n"
        "item = WarcItem(url='https://a.test/', fetched_ms=1, status=200, headers=(), body=b'', sha256='00')\n"
        "ref, = segments.append([item]); segments.append([item])\n"
        "print(ref.segment, ref.offset, ref.length, flush=True); import signal; signal.pause()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        name, offset, length = writer.stdout.readline().split()
        end = {name: int(offset) + int(length)}
        assert Segments(folder).recover(lambda: end) == 0
        writer.send_signal(signal.SIGKILL)
    assert Segments(folder).recover(lambda: end) == 1
    assert (folder / name).stat().st_size == end[name]


def test_files_the_store_does_not_know_are_not_cut(store: Store, tmp_path: Path) -> None:
    writer = Segments(tmp_path / "segments")
    (ref,) = writer.append([_item(1)])
    writer.close()
    assert writer.recover(lambda: _committed(store)) == 0
    assert writer.read(ref).url == "https://a.test/1"


def test_a_full_disk_leaves_nothing_torn_and_the_next_append_works(tmp_path: Path) -> None:
    segments = Segments(tmp_path)
    kept = segments.append([_item(1, 4000)])
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8000, hard))
    try:
        with pytest.raises(SegmentsUnavailable, match=r"cannot be written.*Free or repair"):
            segments.append([_item(2, 4000), _item(3, 40_000)])
        with pytest.raises(SegmentsUnavailable):
            segments.append([_item(3, 40_000)])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    (path,) = tmp_path.iterdir()
    assert path.stat().st_size == kept[0].offset + kept[0].length
    later = segments.append([_item(2)])
    assert [segments.read(ref).url[-1] for ref in kept + later] == ["1", "2"]
    assert _valid(tmp_path)


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SegmentsUnavailable):
        Segments(tmp_path / "file" / "segments").append([_item(1)])


def test_missing_bytes_are_damage(tmp_path: Path) -> None:
    segments = Segments(tmp_path)
    (ref,) = segments.append([_item(1)])
    with pytest.raises(Damaged, match="not in"):
        segments.read(BodyRef(segment="none.warc.gz", offset=0, length=1))
    with pytest.raises(Damaged, match="shorter"):
        segments.read(BodyRef(segment=ref.segment, offset=ref.offset, length=ref.length + 1))


def test_a_revisit_gives_the_body_it_refers_to(store: Store, tmp_path: Path) -> None:
    segments = Segments(tmp_path / "segments")
    first = _item(1)
    again = WarcItem(
        url="https://a.test/2",
        fetched_ms=2,
        status=200,
        headers=(("X-Own", "yes"),),
        body=first.body,
        sha256=first.sha256,
        same_as=(first.url, first.fetched_ms),
    )
    refs = segments.append([first, again])
    crawl = _commit(store, [first], refs[:1])
    same = store.run(pages.find_same, crawl, [again.sha256])[again.sha256]
    revisit = page_of(crawl, again, refs[1], same_as=same.id)
    store.run(pages.insert, [revisit])
    with store.read() as tx:
        record = read_page(tx, segments, revisit)
        assert record is not None
        assert (record.url, record.headers, record.body) == (again.url, (("X-Own", "yes"),), first.body)


def test_only_old_segments_that_no_page_refers_to_are_deleted(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "segments"
    names = []
    for n in range(3):
        writer = Segments(folder)
        items = [_item(n)]
        refs = writer.append(items)
        names.append(refs[0].segment)
        if n == 0:
            _commit(store, items, refs)
        if n < 2:
            writer.close()
    reader = Segments(folder)
    assert delete_unreferenced(store, reader) == []
    assert delete_unreferenced(store, reader, older_than_s=-10) == [names[1]]
    assert sorted(path.name for path in folder.iterdir()) == sorted([names[0], names[2]])
    assert _committed(store).keys() == {names[0]}
    writer.close()
