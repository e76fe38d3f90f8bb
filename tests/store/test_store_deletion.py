"""Deletion: pages, bodies and crawls go; what others refer to stays; a killed deletion goes on; segments stay valid."""

from __future__ import annotations

import gzip
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import deleting
import pytest
import stored
from deleting import NOW_MS, finish
from warcio.checker import Checker

from curtsy.core.model import BodyRef, Crawl, Page, Request, new_id
from curtsy.rules.urls import fingerprint
from curtsy.store import crawls, deletion, pages, requests, responses
from curtsy.store.deletion import Deletion
from curtsy.store.engine import Store
from curtsy.store.segments import Segments, SegmentStore, read_page

TABLES = (
    "urls", "queues", "pages", "failures", "crawl_counts", "crawl_members", "requests", "outbox", "results", "records",
)  # fmt: skip


@pytest.fixture
def segments(tmp_path: Path) -> Segments:
    return Segments(tmp_path / "segments")


def body(n: int, size: int = 3000) -> bytes:
    return b"<p>secret %d " % n + random.Random(n).randbytes(size)


def unwanted(store: Store, segments: SegmentStore, **named: Any) -> None:
    """Delete to the end."""
    store.run(deletion.add, new_id(), NOW_MS, **named)
    finish(store, segments)


def is_valid(folder: Path) -> bool:
    return all(Checker(SimpleNamespace(inputs=[str(p)], verbose=False)).process_all() == 0 for p in folder.iterdir())


def texts(folder: Path) -> bytes:
    """All that the segments say, decompressed."""
    return b"".join(gzip.decompress(path.read_bytes()) for path in sorted(folder.iterdir()))


def readable(store: Store, segments: SegmentStore) -> dict[str, bytes]:
    """URL@crawl -> body, of every page; each is read."""
    found = {}
    with store.read() as tx:
        for _, page in pages.where(tx, "p.n > 0", {}, "p.n", 100_000):
            record = read_page(tx, segments, page)
            assert record is not None
            assert record.type == "response"
            found[f"{page.url}@{page.crawl}"] = record.body
    return found


def test_a_page_goes_with_its_body_and_nothing_else(store: Store, segments: Segments, tmp_path: Path) -> None:
    crawl = stored.crawl(store)
    made = stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", body(n)) for n in range(5)])
    before = {path.name: path.stat().st_size for path in (tmp_path / "segments").iterdir()}
    unwanted(store, segments, fp=made[2].fp)
    left = readable(store, segments)
    assert left == {f"https://a.test/{n}@{crawl.n}": body(n) for n in (0, 1, 3, 4)}
    said = texts(tmp_path / "segments")
    assert b"secret 2 " not in said
    assert b"https://a.test/2\r" not in said  # neither its request nor its metadata
    assert all(b"secret %d " % n in said for n in (0, 1, 3, 4))
    assert is_valid(tmp_path / "segments")
    assert {path.name: path.stat().st_size for path in (tmp_path / "segments").iterdir()} == before


def test_the_pages_of_a_host_go_in_one_crawl_or_in_all(store: Store, segments: Segments, tmp_path: Path) -> None:
    one, two = stored.crawl(store), stored.crawl(store)
    for number, crawl in enumerate((one, two)):
        urls = [("https://a.test/", body(number)), ("https://b.test/", body(10 + number))]
        stored.add_pages(store, segments, crawl, urls)
    unwanted(store, segments, host="a.test", crawl=two.n)
    assert set(readable(store, segments)) == {
        f"https://a.test/@{one.n}", f"https://b.test/@{one.n}", f"https://b.test/@{two.n}",
    }  # fmt: skip
    unwanted(store, segments, host="a.test")
    assert set(readable(store, segments)) == {f"https://b.test/@{one.n}", f"https://b.test/@{two.n}"}
    assert is_valid(tmp_path / "segments")


def test_redirects_and_errors_go_with_their_url_host_age_or_crawl(
    store: Store, segments: Segments, tmp_path: Path
) -> None:
    crawl = stored.crawl(store)
    stored.add_pages(store, segments, crawl, [("https://a.test/", body(0))])
    hosts = ("a", "a", "b", "c", "d")
    stored.add_responses(
        store, segments, crawl, [(f"https://{host}.test/{n}", 404, body(n)) for n, host in enumerate(hosts, 1)]
    )
    stored.add_pages(store, segments, crawl, [("https://d.test/", body(9))])

    def left() -> list[str]:
        with store.read() as tx:
            found, _ = responses.chunk(tx, crawl.n)
        return [str(segments.read(one.body).url) for one in found]

    assert len(left()) == 5
    unwanted(store, segments, fp=fingerprint("https://a.test/1"))
    assert b"secret 1 " not in texts(tmp_path / "segments")
    unwanted(store, segments, host="b.test")
    unwanted(store, segments, crawl=crawl.n, before_ms=stored.BEGUN_MS + 2500)
    assert left() == ["https://c.test/4", "https://d.test/5"]
    said = texts(tmp_path / "segments")
    assert [n for n in range(10) if b"secret %d " % n in said] == [4, 5]  # the pages were old, too
    assert is_valid(tmp_path / "segments")
    segments.close()
    unwanted(store, segments, crawl=crawl.n, whole=True)
    assert list((tmp_path / "segments").iterdir()) == []


def test_a_body_that_others_refer_to_moves_to_the_oldest_of_them(
    store: Store, segments: Segments, tmp_path: Path
) -> None:
    crawl = stored.crawl(store)
    made = stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", body(1)) for n in range(4)])
    numbers = _numbers(store)
    unwanted(store, segments, fp=made[0].fp)
    assert readable(store, segments) == {f"https://a.test/{n}@{crawl.n}": body(1) for n in (1, 2, 3)}
    oldest = min(made[1:], key=lambda page: numbers[page.id])
    with store.read() as tx:
        kept = {page.id: page.same_as for _, page in pages.where(tx, "p.n > 0", {}, "p.n", 10)}
    assert kept == {page.id: None if page is oldest else oldest.id for page in made[1:]}
    assert texts(tmp_path / "segments").count(b"secret 1 ") == 1
    assert is_valid(tmp_path / "segments")


def test_a_gzip_body_moves_decoded_and_leaves_no_byte(store: Store, segments: Segments, tmp_path: Path) -> None:
    """The response of the successor may have had another coding."""
    crawl, text = stored.crawl(store), b"<p>secret words</p>" * 400
    made = stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", text) for n in range(3)], gzipped=True)
    packed = gzip.compress(text, mtime=0)
    assert packed in texts(tmp_path / "segments")
    unwanted(store, segments, fp=made[0].fp)
    assert readable(store, segments) == {f"https://a.test/{n}@{crawl.n}": text for n in (1, 2)}
    said = texts(tmp_path / "segments")
    assert packed not in said
    assert said.count(b"Content-Encoding: gzip") == said.count(b"X-Archive-Orig-Content-Encoding: gzip") == 2
    assert is_valid(tmp_path / "segments")


def _numbers(store: Store) -> dict[str, int]:
    with store.read() as tx:
        return {page.id: n for n, page in pages.where(tx, "p.n > 0", {}, "p.n", 1000)}


def test_a_deletion_that_names_all_of_them_moves_nothing(store: Store, segments: Segments, tmp_path: Path) -> None:
    crawl = stored.crawl(store)
    stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", body(1)) for n in range(4)])
    stored.add_pages(store, segments, crawl, [("https://b.test/", body(2))])
    before = sum(path.stat().st_size for path in (tmp_path / "segments").iterdir())
    unwanted(store, segments, host="a.test")
    assert set(readable(store, segments)) == {f"https://b.test/@{crawl.n}"}
    assert b"secret 1 " not in texts(tmp_path / "segments")
    assert sum(path.stat().st_size for path in (tmp_path / "segments").iterdir()) == before


def test_a_page_unchanged_in_a_later_crawl_keeps_its_body(store: Store, segments: Segments, tmp_path: Path) -> None:
    one, two = stored.crawl(store), stored.crawl(store)
    first, twin = stored.add_pages(store, segments, one, [("https://a.test/", body(1)), ("https://a.test/2", body(1))])
    _unchanged(store, two, first)
    _unchanged(store, two, twin)
    unwanted(store, segments, crawl=one.n, whole=True)
    assert readable(store, segments) == {f"https://a.test/@{two.n}": body(1), f"https://a.test/2@{two.n}": body(1)}
    unwanted(store, segments, crawl=two.n, whole=True)
    assert readable(store, segments) == {}
    assert all(b"secret" not in texts(path.parent) for path in (tmp_path / "segments").iterdir())


def _unchanged(store: Store, crawl: Crawl, page: Page) -> None:
    """As a commit writes a page that is as it was: in the same place, or the same twin."""
    from dataclasses import replace

    again = replace(page, id=pages.page_id(crawl.n, page.fp), crawl=crawl.n, unchanged=True, fence=page.fence + 1000)
    store.run(pages.insert, [again])


def test_a_whole_crawl_goes_with_every_row_and_its_number_is_not_given_again(store: Store, segments: Segments) -> None:
    kept, gone = stored.crawl(store), stored.crawl(store)
    for crawl in (kept, gone):
        stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", body(n)) for n in range(3)])
        stored.add_failures(store, crawl, [("https://c.test/", "timeout")], fence=crawl.n * 1000)
        row = Request(
            fence=crawl.n * 5000, crawl=crawl.n, host="a.test", url="https://a.test/", start_ms=1, end_ms=2, kind="p",
            status=200,
        )  # fmt: skip
        store.run(requests.insert, [row])
    unwanted(store, segments, crawl=gone.n, whole=True)
    with store.read() as tx:
        for table in TABLES:
            counts = dict(tx.exec_driver_sql(f"SELECT crawl, count(*) FROM {table} GROUP BY crawl").fetchall())
            assert gone.n not in counts, table
        assert crawls.ids(tx, [kept.n, gone.n]) == {kept.n: kept.id}
    segments.close()
    unwanted(store, segments, crawl=kept.n, whole=True)
    assert list((segments._folder).iterdir()) == []
    assert stored.crawl(store).n > gone.n


def test_a_commit_does_not_refer_to_a_page_that_was_deleted(store: Store, segments: Segments) -> None:
    crawl = stored.crawl(store)
    (page,) = stored.add_pages(store, segments, crawl, [("https://a.test/", body(1))])
    store.run(pages.hold, [(crawl.n, page.fp)])
    unwanted(store, segments, fp=page.fp)
    with pytest.raises(pages.BodiesGone):
        store.run(pages.hold, [(crawl.n, page.fp)])


def test_old_pages_go_and_young_ones_stay(store: Store, segments: Segments) -> None:
    crawl = stored.crawl(store)
    stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", body(n)) for n in range(6)])
    unwanted(store, segments, crawl=crawl.n, before_ms=stored.BEGUN_MS + 3000)
    assert set(readable(store, segments)) == {f"https://a.test/{n}@{crawl.n}" for n in (3, 4, 5)}


def test_what_is_being_written_is_overwritten_too(store: Store, segments: Segments, tmp_path: Path) -> None:
    """Another process deletes while the writer of the segment lives and goes on."""
    crawl = stored.crawl(store)
    first, _ = stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", body(n)) for n in range(2)])
    other = Segments(tmp_path / "segments")
    unwanted(store, other, fp=first.fp)
    stored.add_pages(store, segments, crawl, [("https://a.test/9", body(9))])
    assert set(readable(store, segments)) == {f"https://a.test/{n}@{crawl.n}" for n in (1, 9)}
    assert is_valid(tmp_path / "segments")


@pytest.mark.parametrize(
    "place",
    ["delete.moved:1", "delete.rows:1", "delete.rows:2", "delete.planned:1", "delete.erased:1", "delete.emptied:1"],
)
def test_a_deletion_that_was_killed_continues(store: Store, store_url: str, tmp_path: Path, place: str) -> None:
    folder = tmp_path / "segments"
    segments = Segments(folder)
    gone, kept = stored.crawl(store), stored.crawl(store)
    made = stored.add_pages(store, segments, gone, [(f"https://a.test/{n}", body(n % 40)) for n in range(300)])
    for page in made[:10]:
        _unchanged(store, kept, page)
    stored.add_pages(store, segments, kept, [("https://b.test/", body(999))])
    store.run(deletion.add, new_id(), NOW_MS, crawl=gone.n, whole=True)
    expected = {f"{page.url}@{kept.n}": body(n) for n, page in enumerate(made[:10])}
    expected |= {f"https://b.test/@{kept.n}": body(999)}
    segments.close()
    command = [sys.executable, deleting.__file__, store_url, str(folder)]
    around = os.environ | {"CURTSY_FAULT": place}
    ended = subprocess.run(command, env=around, capture_output=True, timeout=60, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    # Nothing that a page refers to is missing, whenever it was killed.
    now = readable(store, segments)
    assert {url: now[url] for url in expected} == expected
    finish(store, segments)
    assert readable(store, segments) == expected
    said = texts(folder)
    assert all(b"secret %d " % n not in said for n in range(10, 40))
    assert is_valid(folder)


def test_a_torn_record_is_overwritten_again(store: Store, segments: Segments, tmp_path: Path) -> None:
    """Killed in the middle of a write: the bytes cannot be read, and need not be."""
    crawl = stored.crawl(store)
    made = stored.add_pages(store, segments, crawl, [(f"https://a.test/{n}", body(n)) for n in range(4)])
    store.run(deletion.add, new_id(), NOW_MS, fp=made[1].fp)
    with store.read() as tx:
        (one,) = deletion.pending(tx)
    assert isinstance(one, Deletion)
    deletion.carry_out(store, segments, one, NOW_MS, lambda: False)
    place = made[1].body
    assert place is not None
    start = made[0].body.offset + made[0].body.length  # type: ignore[union-attr]
    with store.begin() as tx:
        tx.exec_driver_sql(f"UPDATE erasures SET start = {start}")
    torn = b"\x1f\x8b\x08" + bytes(500)
    segments.overwrite(place.segment, [(start, torn)])
    store.run(deletion.add, new_id(), NOW_MS, fp=made[2].fp)
    finish(store, segments)
    assert set(readable(store, segments)) == {f"https://a.test/{n}@{crawl.n}" for n in (0, 3)}
    assert is_valid(tmp_path / "segments")


def test_a_referrer_that_came_meanwhile_gets_the_body(store: Store, segments: Segments) -> None:
    """Between the look and the transaction a page begins to refer to one that is to go: it is looked at again."""
    crawl, late = stored.crawl(store), stored.crawl(store)
    (page,) = stored.add_pages(store, segments, crawl, [("https://a.test/", body(1))])
    with store.read() as tx:
        ((n, _),) = pages.where(tx, "p.n > 0", {}, "p.n", 10)
    assert deletion._move(store, segments, [n]) == {}
    twin = Page(
        id=pages.page_id(late.n, b"x" * 16), crawl=late.n, fp=b"x" * 16, url="https://a.test/late", host="a.test",
        status=200, fetched_ms=1, depth=0, sha256=page.sha256, size=page.size, same_as=page.id,
        body=_revisit(segments, page),
    )  # fmt: skip
    store.run(pages.insert, [twin])
    one = Deletion(0, "", None, False, None, page.fp, None, 0, 0, "")
    with pytest.raises(deletion._Changed):
        store.run(deletion._delete_rows, one, [n], {})
    unwanted(store, segments, fp=fingerprint("https://a.test/"))
    assert readable(store, segments) == {f"https://a.test/late@{late.n}": body(1)}


def _revisit(segments: Segments, page: Page) -> BodyRef:
    from curtsy.store.warc import WarcItem

    item = WarcItem(
        url="https://a.test/late", fetched_ms=1, status=200, headers=(), body=b"", sha256=page.sha256 or "",
        same_as=(page.url, page.fetched_ms),
    )  # fmt: skip
    return segments.append([item])[0]


def test_rival_commits_and_deletions_leave_no_page_without_its_body(store: Store, segments: Segments) -> None:
    """Threads store pages of few bodies, as commits do, while others are deleted again and again."""
    import threading

    crawl = stored.crawl(store)
    stop, broke = threading.Event(), []
    rounds = 60

    def commits(own: int) -> None:
        mine = Segments(segments._folder)
        dice = random.Random(own)
        try:
            for i in range(rounds):
                _commit_one(
                    store, mine, crawl, f"https://a.test/{own}/{i}", body(dice.randrange(3), 600), own * 1000 + i
                )
        except Exception as error:
            broke.append(error)
        finally:
            mine.close()

    def deletes() -> None:
        dice = random.Random(7)
        try:
            while not stop.is_set():
                with store.read() as tx:
                    found = pages.where(tx, "p.n > 0", {}, "p.n", 1000)
                if found:
                    _, page = dice.choice(found[:3])
                    unwanted(store, segments, fp=page.fp)
        except Exception as error:
            broke.append(error)

    workers = [threading.Thread(target=commits, args=(own,)) for own in (1, 2)]
    deleter = threading.Thread(target=deletes)
    for thread in (*workers, deleter):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    deleter.join()
    assert broke == []
    left = readable(store, segments)
    assert 0 < len(left) < 2 * rounds
    assert is_valid(segments._folder)


def _commit_one(store: Store, segments: Segments, crawl: Crawl, url: str, content: bytes, fence: int) -> None:
    """Decides what to refer to, writes, and then holds it in the transaction, as commit.py does."""
    import hashlib

    from curtsy.store.warc import WarcItem

    digest, fp = hashlib.sha256(content).hexdigest(), fingerprint(url)
    while True:
        with store.read() as tx:
            same = pages.find_same(tx, crawl.n, [digest]).get(digest)
        twin = None if same is None else (same.url, same.fetched_ms)
        item = WarcItem(
            url=url, fetched_ms=fence, status=200, headers=(), body=content, sha256=digest, same_as=twin,
            request_head=b"GET / HTTP/1.1\r\n\r\n",
        )  # fmt: skip
        (ref,) = segments.append([item])
        page = Page(
            id=pages.page_id(crawl.n, fp), crawl=crawl.n, fp=fp, url=url, host="a.test", status=200, fetched_ms=fence,
            depth=0, sha256=digest, size=len(content), body=ref, same_as=None if same is None else same.id, fence=fence,
        )  # fmt: skip

        def write(tx: Any, page: Page = page) -> None:
            pages.hold(tx, [] if page.same_as is None else [pages.key_of(page.same_as)])
            pages.insert(tx, [page])

        try:
            return store.run(write)
        except pages.BodiesGone:
            continue
