"""Our WARC records: read back by us, by warcio with digests checked, and by FastWARC."""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import warnings
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from curtsy.core.errors import Damaged
from curtsy.core.model import BodyRef
from curtsy.store import warc
from curtsy.store.warc import WarcItem

with warnings.catch_warnings():
    # The package warns of its own old names while it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from fastwarc.warc import ArchiveIterator as FastIterator

BODY = b"<html><title>x</title>" + b"some words " * 500


def _item(body: bytes = BODY, **values: object) -> WarcItem:
    given: dict[str, object] = {
        "url": "https://a.test/p?q=1",
        "fetched_ms": 1_700_000_000_123,
        "status": 200,
        "headers": (("Content-Type", "text/html"), ("Content-Length", "17"), ("Content-Encoding", "gzip")),
        "request_head": b"GET /p?q=1 HTTP/1.1\r\nHost: a.test\r\n\r\n",
        "address": "192.0.2.1",
        "protocol": "h2",
        "facts": (("crawl", "0192"), ("depth", "3")),
    }
    given |= values
    return WarcItem(body=body, sha256=hashlib.sha256(body).hexdigest(), **given)  # type: ignore[arg-type]


def _file(*items: WarcItem) -> bytes:
    return warc.warcinfo("x.warc.gz") + b"".join(part for item in items for part in warc.records(item))


def _gzipped(body: bytes = BODY, **values: object) -> WarcItem:
    """The same page as it arrives from most servers."""
    packed = gzip.compress(body, 6, mtime=0)
    headers = (("Content-Type", "text/html"), ("content-encoding", "GZIP"), ("Content-Length", str(len(packed))))
    return _item(body, gzipped=packed, **({"headers": headers} | values))


def test_warcio_reads_every_record_and_confirms_the_digest() -> None:
    seen = []
    for record in ArchiveIterator(io.BytesIO(_file(_item(), _item(b""))), check_digests="raise"):
        content = record.content_stream().read()
        seen.append((record.rec_type, record.digest_checker.passed))
        if record.rec_type == "response" and content:
            assert content == BODY
            assert record.http_headers.get_header("Content-Length") == str(len(BODY))
            assert record.http_headers.get_header("X-Archive-Orig-Content-Encoding") == "gzip"
            assert record.http_headers.get_header("X-Archive-Orig-Content-Length") == "17"
            assert record.rec_headers.get_header("WARC-Date") == "2023-11-14T22:13:20.123Z"
            assert record.rec_headers.get_header("WARC-IP-Address") == "192.0.2.1"
    three = [("request", None), ("metadata", None), ("response", True)]
    assert seen == [("warcinfo", True), *three, *three]


def test_fastwarc_reads_every_record() -> None:
    records = [
        (
            str(record.record_type),
            record.http_headers.status_code if record.http_headers else None,
            len(record.reader.read()),
        )
        for record in FastIterator(io.BytesIO(_file(_item())), parse_http=True)
    ]
    assert [name for name, _, _ in records] == ["warcinfo", "request", "metadata", "response"]
    assert records[-1][1:] == (200, len(BODY))


def test_records_of_one_fetch_refer_to_each_other_by_ids_of_their_own() -> None:
    records = [record.rec_headers for record in ArchiveIterator(io.BytesIO(_file(_item(), _item())))]
    ids = [headers.get_header("WARC-Record-ID") for headers in records]
    assert len(set(ids)) == 7
    assert [headers.get_header("WARC-Concurrent-To") for headers in records[1:4]] == [ids[3], ids[3], None]


def test_a_visit_keeps_its_picture_beside_the_page() -> None:
    before, response = warc.records(_item(picture=b"\x89PNG"))
    assert warc.begins(before) == 0
    data = warc.warcinfo("x.warc.gz") + before + response
    found = {}
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        if record.rec_type == "resource":
            where = record.rec_headers.get_header("WARC-Target-URI")
            found[where] = (record.rec_headers.get_header("Content-Type"), record.content_stream().read())
    assert found == {"urn:view:https://a.test/p?q=1": ("image/png", b"\x89PNG")}
    ids = [record.rec_headers.get_header("WARC-Record-ID") for record in ArchiveIterator(io.BytesIO(data))]
    assert len(set(ids)) == 5


def test_each_record_is_a_gzip_member_with_the_length_it_states() -> None:
    _, response = warc.records(_item())
    data = gzip.decompress(response)
    head, _, rest = data.partition(b"\r\n\r\n")
    length = int(dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:])[b"Content-Length"])
    assert rest[length:] == b"\r\n\r\n"


def test_a_response_reads_back_as_it_was_stored() -> None:
    record = warc.read(warc.records(_item())[1])
    assert (record.type, record.url, record.status, record.body) == ("response", "https://a.test/p?q=1", 200, BODY)
    assert record.headers[0] == ("Content-Type", "text/html")
    assert record.fields["warc-protocol"] == "h2"


def test_a_revisit_has_headers_and_refers_to_the_first_body() -> None:
    data = _file(_item(same_as=("https://a.test/first", 1_600_000_000_000)))
    (record,) = [r for r in ArchiveIterator(io.BytesIO(data), check_digests="raise") if r.rec_type == "revisit"]
    fields = record.rec_headers
    assert fields.get_header("WARC-Profile").endswith("/identical-payload-digest")
    assert fields.get_header("WARC-Refers-To-Target-URI") == "https://a.test/first"
    assert fields.get_header("WARC-Refers-To-Date") == "2020-09-13T12:26:40.000Z"
    assert fields.get_header("WARC-Payload-Digest") == "sha256:" + hashlib.sha256(BODY).hexdigest()
    assert record.http_headers.get_statuscode() == "200"
    read = warc.read(warc.records(_item(same_as=("https://a.test/first", 1)))[1])
    assert (read.type, read.status, read.body) == ("revisit", 200, b"")


def test_not_modified_is_a_revisit_of_its_own_profile() -> None:
    record = warc.read(warc.records(_item(b"", status=304, same_as=("https://a.test/p?q=1", 1)))[1])
    assert record.fields["warc-profile"].endswith("/server-not-modified")


def test_a_body_that_was_broken_off_says_so() -> None:
    record = warc.read(warc.records(_item(truncated="length"))[1])
    assert record.fields["warc-truncated"] == "length"


def test_an_item_without_request_and_facts_has_one_record() -> None:
    before, _ = warc.records(_item(request_head=b"", facts=()))
    assert before == b""


def test_a_right_content_length_is_kept_once() -> None:
    item = _item(b"12345", headers=(("content-length", "5"), ("Content-Length", "5")))
    assert warc.read(warc.records(item)[1]).headers == (("Content-Length", "5"),)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("X", "a\r\nWARC-Type: response"),
        ("X", "a\nSet-Cookie: b"),
        ("X", "a\rb"),
        ("X\r\nY", "b"),
        ("X", "nul\0"),
        ("X", "\xe4\xff\x85"),
        ("", ""),
    ],
)
def test_no_header_can_forge_a_line(name: str, value: str) -> None:
    record = warc.read(warc.records(_item(headers=((name, value), ("Last", "1"))))[1])
    assert [key for key, _ in record.headers][1:] == ["Last", "Content-Length"]
    assert record.body == BODY
    list(FastIterator(io.BytesIO(_file(_item(headers=((name, value),)))), parse_http=True))


def test_no_url_or_fact_can_forge_a_line() -> None:
    evil = "https://a.test/\r\nWARC-Type: warcinfo"
    before, response = warc.records(_item(url=evil, facts=(("depth", "1\r\nsoftware: x"),)))
    assert warc.read(response).type == "response"
    assert b"\r\nsoftware" not in gzip.decompress(before)


@given(
    body=st.binary(max_size=3000),
    headers=st.lists(st.tuples(st.text(max_size=20), st.text(max_size=40)), max_size=6),
    status=st.integers(0, 999),
)
def test_whatever_a_server_sends_is_stored_and_read_back(
    body: bytes, headers: list[tuple[str, str]], status: int
) -> None:
    item = _item(body, headers=tuple(headers), status=status)
    assert warc.read(warc.records(item)[1]).body == body
    for record in ArchiveIterator(io.BytesIO(_file(item)), check_digests="raise"):
        record.content_stream().read()


def test_a_body_that_arrived_as_gzip_is_stored_as_it_arrived() -> None:
    item = _gzipped()
    _, response = warc.records(item)
    assert item.gzipped in response
    record = next(iter(ArchiveIterator(io.BytesIO(response), check_digests="raise")))
    assert record.http_headers.get_header("Content-Encoding") == "GZIP"
    assert record.http_headers.get_header("Content-Length") == str(len(item.gzipped))
    assert record.rec_headers.get_header("WARC-Payload-Digest") is None
    assert record.content_stream().read() == BODY
    assert next(iter(FastIterator(io.BytesIO(response), parse_http=True))).reader.read() == item.gzipped
    exported = FastIterator(io.BytesIO(warc.with_block_digest(response)), parse_http=True, verify_digests=True)
    assert next(iter(exported)).reader.read() == BODY


@given(
    body=st.binary(max_size=3000),
    headers=st.lists(
        st.tuples(
            st.text(max_size=20).filter(lambda name: name.strip().lower() != "content-encoding")
            | st.sampled_from(
                ["Content-Length", "X-Archive-Orig-Content-Encoding", "X-Decoded-Payload-Digest", "Vary"]
            ),
            st.text(max_size=40),
        ),
        max_size=6,
    ),
    at=st.integers(0, 6),
)
def test_nobody_sees_how_a_body_was_stored(body: bytes, headers: list[tuple[str, str]], at: int) -> None:
    """Reading and exporting give what they give for a body that was stored decoded."""
    url = "https://a.test/X-Decoded-Payload-Digest: sha256:00"
    item = _gzipped(body, headers=(*headers[:at], ("Content-Encoding", "gzip"), *headers[at:]), url=url)
    coded, plain = warc.records(item).response, warc.records(replace(item, gzipped=b"")).response
    assert coded != plain
    ids = {"warc-record-id": ""}
    one, other = warc.read(coded), warc.read(plain)
    assert replace(one, fields=one.fields | ids) == replace(other, fields=other.fields | ids)
    exported = [gzip.decompress(warc.with_block_digest(member)) for member in (coded, plain)]
    assert len(exported[0]) == len(exported[1])
    told = [re.sub(rb"(urn:uuid|Block-Digest): ?\S+", b"", data) for data in exported]
    assert told[0] == told[1]


def test_a_revisit_of_a_gzip_body_is_like_any_other() -> None:
    first = ("https://a.test/first", 1)
    coded, plain = (warc.read(warc.records(item)[1]) for item in (_gzipped(same_as=first), _item(same_as=first)))
    assert (coded.type, coded.body) == ("revisit", b"")
    assert ("X-Archive-Orig-content-encoding", "GZIP") in coded.headers
    assert coded.fields["warc-payload-digest"] == plain.fields["warc-payload-digest"]


def test_the_start_of_a_response_is_found_behind_a_gzip_body() -> None:
    first, second = warc.records(_gzipped()), warc.records(_gzipped(b"other " * 99))
    assert warc.begins(b"".join((*first, second.before))) == len(first.before) + len(first.response)


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(BODY, mtime=0)[:-1],
        gzip.compress(BODY, mtime=0) + b"more",
        gzip.compress(BODY, mtime=0) + gzip.compress(BODY, mtime=0),
        gzip.compress(b"another", mtime=0),
        BODY,
    ],
)
def test_gzip_that_is_not_the_body_is_damage(packed: bytes) -> None:
    _, response = warc.records(replace(_gzipped(), gzipped=packed))
    with pytest.raises(Damaged):
        warc.read(response, BodyRef(segment="x.warc.gz", offset=1, length=2))


def test_a_damaged_record_is_not_taken_for_a_body() -> None:
    _, response = warc.records(_item())
    wrong = warc.records(replace(_item(), sha256="00" * 32))[1]
    for damaged in (response[:-20], response[:50], b"", b"garbage", response[:60] + b"\0\0\0\0" + response[64:], wrong):
        with pytest.raises(Damaged):
            warc.read(damaged)
    with pytest.raises(Damaged):
        warc.read(gzip.compress(b"WARC/1.1\r\nContent-Length: 100\r\n\r\nshort"))
