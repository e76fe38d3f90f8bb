"""Segments in S3, against moto's server over real HTTP; the database is SQLite."""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
import stored
from object_store import object_store, use
from warcio.archiveiterator import ArchiveIterator

from curtsy.core.errors import Damaged, SegmentsUnavailable, UsageError
from curtsy.core.model import BodyRef, Crawl
from curtsy.store import crawls, deletion, pages, responses
from curtsy.store.engine import Store
from curtsy.store.erasure import erase_all
from curtsy.store.objects import ObjectSegments
from curtsy.store.segment_places import open_segments
from curtsy.store.segments import read_page
from curtsy.store.sweep import delete_unreferenced, merge_small
from curtsy.store.warc import WarcItem


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with object_store() as address:
        yield address


@pytest.fixture
def bucket(server: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    name = "b" + hashlib.sha256(request.node.name.encode()).hexdigest()[:20]
    client = use(server, monkeypatch)
    client.create_bucket(Bucket=name)
    client.close()
    return f"s3://{name}/segments"


def _item(n: int) -> WarcItem:
    """Every other body arrived as gzip."""
    body = b"body of page %d " % n * 50
    coding = (("Content-Encoding", "gzip"),) if n % 2 else ()
    return WarcItem(
        url=f"https://a.test/{n}",
        fetched_ms=n,
        status=200,
        headers=(("Content-Type", "text/plain"), *coding),
        body=body,
        gzipped=gzip.compress(body, mtime=0) if coding else b"",
        sha256=hashlib.sha256(body).hexdigest(),
        request_head=b"GET / HTTP/1.1\r\n\r\n",
    )


def test_each_append_is_one_valid_object(bucket: str) -> None:
    segments = open_segments(bucket, 1)
    assert isinstance(segments, ObjectSegments)
    refs = segments.append([_item(1), _item(2)]) + segments.append([_item(3)])
    assert segments.append([]) == []
    assert [segments.read(ref).url[-1] for ref in refs] == ["1", "2", "3"]
    assert len({ref.segment for ref in refs}) == 2
    types = [
        record.rec_type
        for record in ArchiveIterator(io.BytesIO(segments.read_whole(refs[0].segment)), check_digests="raise")
    ]
    assert types == ["warcinfo", "request", "response", "request", "response"]


def test_small_objects_are_merged_and_the_pages_follow(bucket: str, tmp_path: Path) -> None:
    segments = ObjectSegments(bucket)
    with Store.open(f"sqlite:///{tmp_path}/s.sqlite") as store:
        crawl = store.run(crawls.create, Crawl(id="1", request_id="r")).n
        for start in (0, 10, 20):
            items = [_item(n) for n in range(start, start + 10)]
            refs = segments.append(items)
            store.run(pages.insert, [stored.page_of(crawl, item, ref) for item, ref in zip(items, refs, strict=True)])
        segments.append([_item(99)])  # never committed
        assert merge_small(store, segments, older_than_s=3600) == 0
        assert merge_small(store, segments, older_than_s=-10) == 3
        with store.read() as tx:
            found, _ = pages.chunk(tx, crawl)
            assert len({page.body.segment for page in found if page.body}) == 1
            for page in found:
                record = read_page(tx, segments, page)
                assert record is not None
                assert record.url == page.url
                assert hashlib.sha256(record.body).hexdigest() == page.sha256
        assert delete_unreferenced(store, segments) == []
        assert len(delete_unreferenced(store, segments, older_than_s=-10)) == 4
        ((merged, size),) = segments.older_than(-10)
        assert store.run(pages.committed) == {merged: size}
        for record in ArchiveIterator(io.BytesIO(segments.read_whole(merged)), check_digests="raise"):
            record.content_stream().read()
        assert merge_small(store, segments, older_than_s=-10) == 0


def test_redirects_and_errors_follow_their_merged_objects(bucket: str, tmp_path: Path) -> None:
    segments = ObjectSegments(bucket)
    with Store.open(f"sqlite:///{tmp_path}/s.sqlite") as store:
        crawl = stored.crawl(store)
        stored.add_pages(store, segments, crawl, [("https://a.test/", b"page")])
        stored.add_responses(
            store, segments, crawl, [("https://a.test/1", 301, b"one"), ("https://a.test/2", 404, b"")]
        )
        assert merge_small(store, segments, older_than_s=-10) == 2
        assert len(delete_unreferenced(store, segments, older_than_s=-10)) == 2
        with store.read() as tx:
            found, _ = responses.chunk(tx, crawl.n)
        assert [(segments.read(one.body).url, one.status) for one in found] == [
            ("https://a.test/1", 301), ("https://a.test/2", 404),
        ]  # fmt: skip


def test_a_missing_object_is_damage_and_a_missing_store_unavailable(
    bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Damaged):
        ObjectSegments(bucket).read(BodyRef(segment="none.warc.gz", offset=0, length=10))
    no_retries = {"max_retries": 0}
    monkeypatch.setenv("AWS_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(SegmentsUnavailable, match="cannot be written"):
        ObjectSegments(bucket, retry_config=no_retries).append([_item(1)])
    with pytest.raises(UsageError):
        ObjectSegments("nonsense://x")


def test_a_deleted_body_is_gone_from_its_object_and_the_object_with_the_last_page(bucket: str, tmp_path: Path) -> None:
    segments = ObjectSegments(bucket)
    with Store.open(f"sqlite:///{tmp_path / 'curtsy.sqlite'}") as store:
        crawl = stored.crawl(store)
        made = stored.add_pages(
            store, segments, crawl, [(f"https://a.test/{n}", b"secret %d " % n * 99) for n in range(3)]
        )
        assert made[0].body is not None
        name = made[0].body.segment
        before = segments.read_whole(name)
        for doomed in ([made[1]], [made[0], made[2]]):
            for page in doomed:
                store.run(deletion.add, page.id, 0, fp=page.fp)
            with store.read() as tx:
                noted = deletion.pending(tx)
            for one in noted:
                assert deletion.carry_out(store, segments, one, 0, lambda: False)
            erase_all(store, segments)
            if doomed == [made[1]]:
                whole = segments.read_whole(name)
                assert len(whole) == len(before)
                records = [record.content_stream().read() for record in ArchiveIterator(io.BytesIO(whole))]
                assert not any(b"secret 1 " in record for record in records)
                assert sum(b"secret 2 " in record for record in records) == 1
        with pytest.raises(Damaged):
            segments.read_whole(name)
