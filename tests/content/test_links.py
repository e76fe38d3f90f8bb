"""Links of pages, the memo that resolves them, sitemaps and feeds."""

from __future__ import annotations

import gzip
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from curtsy.content.document import Document
from curtsy.content.links import LinkMemo, hrefs
from curtsy.content.sitemaps import Listing, SitemapContent, kind_of_xml, sitemap
from curtsy.rules.folding import strip_session
from curtsy.rules.urls import normalise

URL = "http://a.test/dir/page?q"


def links(html: str, charset: str = "utf-8") -> list[str]:
    return hrefs(Document.parse(html.encode(charset), f"text/html; charset={charset}", URL))


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<a href=/x>", ["/x"]),
        ("<a href=' /x\n'>", ["/x"]),
        ("<a href='/x y'>", ["/x y"]),
        ("<a href='/?a&amp;b'>", ["/?a&b"]),
        ("<a href=1></a><a href=2></a><a href=1></a>", ["1", "2"]),
        ("<a>x</a><a href>y</a><a href=''>z</a>", []),
        ("<a href=/outer><a href=/inner>", ["/outer", "/inner"]),
        ("<map><area href=/x></map>", ["/x"]),
        ("<iframe src=/x></iframe>", ["/x"]),
        ("<frameset><frame src=/x><frame src=/y></frameset>", ["/x", "/y"]),
        ("<link rel=next href=/x><link rel='alternate foo' href=/y><link rel=CANONICAL href=/z>", ["/x", "/y", "/z"]),
        ("<link rel=stylesheet href=/x><link rel='alternate stylesheet' href=/y><link href=/z>", []),
        ("<meta http-equiv=refresh content='0;url=/x'>", ["/x"]),
        ("<div href=/x><base href=/y><img src=/z><script src=/s></script>", []),
        ("<a href=/x rel=nofollow><a href=/y rel='external NoFollow'><a href=/z rel=ugc>", ["/z"]),
        ("<area href=/x rel=nofollow><link rel='next nofollow' href=/y>", []),
        ("<meta name=robots content=nofollow><a href=/x>", []),
        ("<template><a href=/x></a></template><!-- <a href=/y> --><script>'<a href=/z>'</script>", []),
        ("<noscript><a href=/x>", ["/x"]),
        ("<link rel=next href=/1><a href=/2><iframe src=/3></iframe><a href=/4>", ["/1", "/2", "/3", "/4"]),
        ("<svg><a href=/x></a></svg>", ["/x"]),
    ],
)
def test_links_are_found_where_the_standard_puts_them(html: str, expected: list[str]) -> None:
    assert links(html) == expected


def test_queries_are_encoded_in_the_encoding_of_their_page() -> None:
    assert links("<a href='/é?é#é'>", "iso-8859-15") == ["/é?%E9#é"]
    assert links("<a href='/?&hearts;'>", "iso-8859-15") == ["/?%26%239829%3B"]
    assert links("<a href='/é?é'>", "utf-8") == ["/é?é"]
    assert links("<a href='/é'>", "windows-1252") == ["/é"]


HREFS = [
    "/x", "//b.test/y", "http://c.test/z", "https://c.test", "HTTP://C.test/up", "http:rel", "http:?q", "x", "./x",
    "../x", "?q=1", "#top", "x#y", "", " x", "\\x", "mailto:a@b", "a:b", "x/y:z", "/x?PHPSESSID=1", "http://[", ";p",
    "x\\..\\y", "../y/z", "..//b.test", "../\t/b.test", "http://c.test:65535/p", "http://c.test:99999/p",
]  # fmt: skip
BASES = [
    "http://a.test/",
    "http://a.test/dir/page?q=/",
    "https://a.test/dir/other#/f",
    "http://a.test:8080/d/e/f",
    "data:,x",
]


@pytest.mark.parametrize("base", BASES)
def test_the_memo_changes_no_meaning(base: str) -> None:
    memo = LinkMemo()
    for other in BASES:
        memo.resolve_all(other, HREFS)
    plain = {href: normalise(href, base) for href in HREFS}
    expected = {href: None if url is None else strip_session(url) for href, url in plain.items()}
    assert {href: memo.resolve(base, href) for href in HREFS} == expected
    assert memo.resolve_all(base, HREFS) == list(dict.fromkeys(url for url in expected.values() if url is not None))


@given(st.lists(st.tuples(st.sampled_from(BASES), st.text(alphabet="/.?#:ahtp\\ \t", max_size=8))))
def test_the_memo_agrees_with_the_parser_on_any_link(pairs: list[tuple[str, str]]) -> None:
    memo = LinkMemo(limit=5)
    for base, href in pairs:
        url = normalise(href, base)
        assert memo.resolve(base, href) == url
        assert memo.resolve_all(base, [href]) == ([] if url is None else [url])
        assert memo.resolve(base, href) == url


@given(
    st.sampled_from(BASES), st.lists(st.text(alphabet="#/.?:@hx\\ \t\n\x0b\x85\u2028\ud800", max_size=6), max_size=9)
)
def test_links_to_parts_of_a_page_are_links_to_the_page(base: str, links: list[str]) -> None:
    parsed = [normalise(href, base) for href in links]
    memo = LinkMemo()
    for _ in range(2):
        assert memo.resolve_all(base, links) == list(dict.fromkeys(url for url in parsed if url is not None))


def test_links_to_what_is_done_are_left_out_from_then_on() -> None:
    memo, base, done = LinkMemo(), "http://a.test/dir/page", {"http://a.test/x"}
    links = ["/x", "../x", "x", "http://a.test/x", "x?q"]
    assert memo.resolve_all(base, links, done) == ["http://a.test/dir/x", "http://a.test/dir/x?q"]
    assert memo.resolve_all(base, links) == ["http://a.test/dir/x", "http://a.test/dir/x?q"]
    memo.clear()
    assert memo.resolve_all(base, links)[0] == "http://a.test/x"


def test_the_memo_is_bounded() -> None:
    memo = LinkMemo(limit=100)
    for n in range(1_000):
        memo.resolve(f"http://a.test/{n}/", "x")
        memo.resolve("http://a.test/", f"/{n}")
        assert sum(1 + len(table) for table in memo._tables.values()) <= 101
    memo = LinkMemo()
    memo.resolve("http://a.test/", "/" + "x" * 5_000)
    assert sum(len(table) for table in memo._tables.values()) == 0


def urls(body: bytes, limit: int = 100) -> list[str]:
    content = sitemap(body, limit)
    assert content.sitemaps == []
    return content.urls


def urlset(*inner: bytes) -> bytes:
    return b"<?xml version='1.0'?><urlset xmlns='http://www.sitemaps.org/schemas/sitemap/0.9'>" + b"".join(inner)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (
            urlset(b"<url><loc>http://a.test/1</loc></url><url><loc>\n http://a.test/2 </loc></url></urlset>"),
            ["1", "2"],
        ),
        (urlset(b"<url><loc>http://a.test/?a&amp;b&#38;c&#x26;d</loc></url>"), ["?a&b&c&d"]),
        (urlset(b"<url><loc>http://a.test/?a&copy=b</loc></url>"), ["?a&copy=b"]),
        (urlset(b"<url><loc><![CDATA[http://a.test/?a&b]]></loc></url>"), ["?a&b"]),
        (urlset(b"<!-- <url><loc>http://a.test/no</loc></url> --><url><loc>http://a.test/1</loc></url>"), ["1"]),
        (urlset(b"<url><loc>http://a.test/1</loc><image:loc>http://a.test/no</image:loc></url>"), ["1"]),
        (b"<s:urlset xmlns:s='x'><s:url><s:loc>http://a.test/1</s:loc></s:url></s:urlset>", ["1"]),
        (urlset(b"<url><loc>http://a.test/1</loc></url><url><loc>http://a.test/1</loc></url>"), ["1"]),
        (
            urlset(b"<url><loc>http://a.test/1</loc></oops><url><loc>http://a.test/2</loc><url><loc>http://a.te"),
            ["1", "2"],
        ),
        (b"\xef\xbb\xbf \n" + urlset(b"<url><loc>http://a.test/1</loc></url>"), ["1"]),
        (
            b"\xef\xbb\xbfhttp://a.test/1\r\n\r\nhttps://a.test/2\nnot a url\n  http://a.test/3",
            ["1", "https://a.test/2", "3"],
        ),
        (b"<rss><channel><link>http://a.test/</link><item><title>t</title><link>http://a.test/1</link></item>", ["1"]),
        (b"<rdf:RDF><item><link>http://a.test/1</link></item></rdf:RDF>", ["1"]),
        (
            b"<feed><link href='http://a.test/'/><entry><link rel='edit' href='http://a.test/no'/>"
            b'<link rel="alternate" href="http://a.test/1?a&amp;b"/></entry><entry><link href=\'http://a.test/2\'></link>',
            ["1?a&b", "2"],
        ),
        (b"<html><body><loc>http://a.test/no</loc>", []),
        (b"", []),
        (b"<", []),
        (b"%PDF-1.4", []),
    ],
)
def test_sitemaps_and_feeds_are_told_apart_by_content(body: bytes, expected: list[str]) -> None:
    absolute = [name if ":" in name else f"http://a.test/{name}" for name in expected]
    assert urls(body) == absolute
    assert urls(gzip.compress(body)) == absolute
    assert urls(gzip.compress(gzip.compress(body))) == absolute


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"<rss><item><guid>http://a.test/1</guid></item>", ["1"]),
        (b"<rss><item><link>http://a.test/1</link><guid>http://a.test/2</guid></item>", ["1", "2"]),
        (b"<rss><item><guid isPermaLink='true'> http://a.test/1</guid></item>", ["1"]),
        (b"<rss><item><guid isPermaLink='false'>http://a.test/?p=1</guid></item>", []),
        (b"<rss><item><guid>tag:a.test,2026:1</guid></item>", []),
        (b"<feed><id>http://a.test/</id><entry><id>http://a.test/1</id></entry>", ["1"]),
        (b"<feed><entry><id>http://a.test/?p=1</id><link href='http://a.test/1'/></entry>", ["1"]),
        (b"<feed><entry><link href='http://a.test/1'/><id>http://a.test/?p=1</id></entry>", ["1"]),
        (b"<feed><entry><id>urn:uuid:1</id></entry><entry><id>http://a.test/2</id></entry>", ["2"]),
        (b"<a:feed><a:entry><a:link rel='self' href='http://a.test/x'/><a:id>http://a.test/1</a:id></a:entry>", ["1"]),
    ],
)
def test_guids_and_ids_of_feeds_are_links_where_they_are_permanent(body: bytes, expected: list[str]) -> None:
    assert urls(body) == [f"http://a.test/{name}" for name in expected]


def test_a_sitemap_keeps_date_and_priority_of_its_urls() -> None:
    body = urlset(
        b"<url><loc>http://a.test/1</loc><lastmod>2026-01-31</lastmod><priority>0.8</priority></url>",
        b"<url><lastmod>2026-01-31T12:00:00+01:00</lastmod><loc>http://a.test/2</loc></url>",
        b"<url><loc>http://a.test/3</loc><priority>high</priority><lastmod>yesterday</lastmod></url>",
        b"<url><loc>http://a.test/4</loc><priority> 1.0 </priority></url><url><loc>http://a.test/5</loc></url></urlset>",
    )
    for packed in (body, gzip.compress(body)):
        content = sitemap(packed, 10)
        assert [url[-1] for url in content.urls] == ["1", "2", "3", "4", "5"]
        assert content.listings == {
            "http://a.test/1": Listing("2026-01-31", 0.8),
            "http://a.test/2": Listing("2026-01-31T12:00:00+01:00", None),
            "http://a.test/4": Listing(None, 1.0),
        }


@pytest.mark.parametrize(
    ("content_type", "body", "kind"),
    [
        ("application/xml", b"<urlset>", "sitemap"),
        ("text/xml; charset=utf-8", b"<?xml version='1.0'?>\n<sitemapindex >", "sitemap"),
        ("application/rss+xml", b"<rss version='2.0'>", "feed"),
        ("application/xml", b"<feed xmlns='x'>", "feed"),
        ("application/xml", b"<note>", None),
        ("application/xml", b"", None),
        ("text/html", b"<urlset>", None),
        ("application/xhtml+xml", b"<html>", None),
        (None, b"<urlset>", None),
    ],
)
def test_sitemaps_and_feeds_are_known_by_type_and_root(content_type: str | None, body: bytes, kind: str | None) -> None:
    assert kind_of_xml(content_type, body) == kind


def test_an_index_names_sitemaps() -> None:
    body = b"<sitemapindex><sitemap><loc>http://a.test/1.xml</loc></sitemap><sitemap><loc>http://a.test/2.xml.gz</loc>"
    assert sitemap(body, 10) == SitemapContent(urls=[], sitemaps=["http://a.test/1.xml", "http://a.test/2.xml.gz"])


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_sitemaps_are_read_in_their_encoding(encoding: str) -> None:
    body = f"<?xml version='1.0' encoding='{encoding}'?><urlset><url><loc>http://a.test/é</loc></url></urlset>"
    assert urls(body.encode(encoding)) == ["http://a.test/é"]


def test_the_limits_on_urls_and_bytes_hold() -> None:
    body = urlset(*(b"<url><loc>http://a.test/%06d</loc></url>" % n for n in range(1_000)))
    assert len(urls(body, limit=7)) == 7
    assert 0 < len(sitemap(body, 1_000, max_bytes=4_000).urls) < 100
    assert 0 < len(sitemap(gzip.compress(body), 1_000, max_bytes=4_000).urls) < 100


def test_elements_are_whole_where_chunks_meet() -> None:
    count = 60_000
    body = urlset(*(b"<url><!-- - --><loc>http://a.test/%d</loc></url>" % n for n in range(count)))
    assert urls(body, limit=count + 1) == [f"http://a.test/{n}" for n in range(count)]
    text = b"\n".join(b"http://a.test/%d" % n for n in range(count))
    assert urls(text, limit=count + 1) == [f"http://a.test/{n}" for n in range(count)]


def test_a_cut_or_broken_gzip_yields_what_was_read() -> None:
    body = urlset(*(b"<url><loc>http://a.test/%d</loc></url>" % (n * 7919 % 100_003) for n in range(5_000)))
    packed = gzip.compress(body)
    assert 0 < len(urls(packed[: len(packed) // 2], limit=9_999)) < 5_000
    assert len(urls(gzip.compress(body[:9_000]) + gzip.compress(body[9_000:]), limit=9_999)) == 5_000
    assert urls(b"\x1f\x8b" + b"junk" * 100) == []


def test_fifty_thousand_urls_are_read_quickly() -> None:
    entry = b"<url><loc>http://a.test/page/%d?a=1&amp;b=2</loc><lastmod>2024-01-01</lastmod><priority>0.5</priority></url>\n"
    body = gzip.compress(urlset(*(entry % n for n in range(50_000))), 1)
    started = time.process_time()
    assert len(urls(body, limit=50_000)) == 50_000
    assert time.process_time() - started < 0.6  # about 0.1 s on an idle core


LAUGHS = b"<!DOCTYPE x [<!ENTITY a 'ha'>" + b"".join(
    b"<!ENTITY %c '%s'>" % (98 + n, b"&%c;" % (97 + n) * 10) for n in range(9)
)
BOMBS = {
    "entities": LAUGHS + b"]><urlset><url><loc>&j;</loc></url></urlset>",
    "gzip": gzip.compress(b"<urlset>" + b"\0" * 80_000_000, 1),
    "text": b"<urlset><loc>" + b"a" * 20_000_000,
    "comments": b"<urlset>" + b"<!--" * 2_000_000,
    "cdata": b"<urlset>" + b"<![CDATA[" * 1_000_000,
    "tags": b"<urlset>" + b"<loc" * 2_000_000,
    "open": b"<urlset>" + b"<loc>" * 2_000_000,
    "links": b"<feed>" + b"<link " * 1_000_000,
    "attributes": b"<feed><link " + b"a=" * 2_000_000 + b">",
    "lines": b"http://" * 1_000_000,
}


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_harmless(name: str) -> None:
    started = time.process_time()
    content = sitemap(BOMBS[name], 1_000)
    assert time.process_time() - started < 2
    assert all(len(url) < 10_000 for url in content.urls)
