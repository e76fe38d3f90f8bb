"""Documents: encodings, head data, robots rules, text, Markdown, structured data, bounds."""

from __future__ import annotations

import codecs
import time

import pytest

from curtsy.content.charset import charset_of, decode
from curtsy.content.document import Document
from curtsy.content.encoding_labels import encoding_for
from curtsy.content.head import is_html, refresh_target, robots_tag
from curtsy.content.links import hrefs
from curtsy.content.parser_limits import MAX_DEPTH, tame

URL = "http://a.test/dir/page"
HTML = "text/html"


def parse(html: str | bytes, content_type: str = "text/html; charset=utf-8", url: str = URL) -> Document:
    return Document.parse(html.encode() if isinstance(html, str) else html, content_type, url)


# Encodings


@pytest.mark.parametrize(
    ("body", "content_type", "charset"),
    [
        (b"x", None, "windows-1252"),
        (b"", None, "windows-1252"),
        (b"x", "text/html; charset=utf-8", "utf-8"),
        (b"x", 'text/html;charset="UTF8"', "utf-8"),
        (b"x", "text/html; CHARSET = latin1 ; x", "windows-1252"),
        (b"x", "text/html; charset=bogus", "windows-1252"),
        (b"x", "text/html; charset=utf-16", "utf-16le"),
        (b"x", "text/html;charset=utf-8, text/html", "utf-8"),
        (b"x", "text/html, text/html; charset=koi8-r", "koi8-r"),
        (b"x", 'text/html; charset="koi8-r', "koi8-r"),
        (b"x", "text/html; charset='koi8-r", "koi8-r"),
        (b"\xef\xbb\xbfx", "text/html; charset=koi8-r", "utf-8"),
        (b"\xfe\xff\0x", "text/html; charset=utf-8", "utf-16be"),
        (b"\xff\xfex\0", None, "utf-16le"),
        (b"\xff\xfe\0\0x\0\0\0", None, "utf-32le"),
        (b"\0\0\xfe\xff\0\0\0x", "text/html; charset=utf-32", "utf-32be"),
        (b"<meta charset=koi8-r>", "text/html; charset=utf-8", "utf-8"),
        (b"<meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<META\nCHARSET\t=\r'Koi8-R' >", HTML, "koi8-r"),
        (b"<meta/charset=koi8-r/>", HTML, "windows-1252"),
        (b"<meta charset=bogus><meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<meta charset=utf-16>", HTML, "utf-8"),
        (b"<meta charset=x-user-defined>", HTML, "windows-1252"),
        (b"<meta http-equiv=content-type content='text/html; charset=koi8-r'>", HTML, "koi8-r"),
        (b"<meta content='x; charset = \"koi8-r\"' http-equiv=Content-Type>", HTML, "koi8-r"),
        (b"<meta content='text/html; charset=koi8-r'>", HTML, "windows-1252"),
        (b"<meta http-equiv=refresh content='0; charset=koi8-r'>", HTML, "windows-1252"),
        (b"<meta charset=koi8-r charset=utf-8>", HTML, "koi8-r"),
        (b"<metal charset=koi8-r>", HTML, "windows-1252"),
        (b"</meta charset=koi8-r>", HTML, "windows-1252"),
        (b"<meta charset=koi8-r", HTML, "windows-1252"),
        (b"<meta charset='koi8-r>", HTML, "windows-1252"),
        (b"<!-- <meta charset=koi8-r> --><meta charset=gbk>", HTML, "gb18030"),
        (b"<!--><meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<? > <meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<p title='<meta charset=gbk>'><meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<script><meta charset=gbk></script><meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<title><meta charset=gbk></title><meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<head>" + b" " * 2000 + b"<meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<body>" + b" " * 2000 + b"<meta charset=koi8-r>", HTML, "windows-1252"),
        (b"<body>" + b" " * 900 + b"<meta charset=koi8-r>", HTML, "koi8-r"),
        (b"<?xml version='1.0' encoding='koi8-r'?><html>", HTML, "koi8-r"),
        (b"<?xml version='1.0' encoding='koi8-r'?>", "application/xml", "koi8-r"),
        (b"<\0?\0x\0m\0l\0", HTML, "utf-16le"),
        (b"<feed>", "application/atom+xml", "utf-8"),
        (b"{}", "application/json", "utf-8"),
    ],
)
def test_the_encoding_is_found_by_the_standards(body: bytes, content_type: str | None, charset: str) -> None:
    assert charset_of(body, content_type) == charset
    codecs.lookup(charset)


@pytest.mark.parametrize(
    ("label", "charset"),
    [
        ("latin1", "windows-1252"), ("ASCII", "windows-1252"), (" Shift_JIS\n", "cp932"), ("euc-kr", "cp949"),
        ("big5", "big5hkscs"), ("iso-8859-9", "windows-1254"), ("iso-2022-kr", "replacement"), ("utf-7", None),
        ("x-user-defined", "x-user-defined"), ("unicode", "utf-16le"), ("", None),
    ],
)  # fmt: skip
def test_labels_are_those_of_the_encoding_standard(label: str, charset: str | None) -> None:
    assert encoding_for(label) == charset


@pytest.mark.parametrize(
    ("body", "charset", "text"),
    [
        (b"\xef\xbb\xbfa\xff", "utf-8", "a\ufffd"),
        (b"\x80\x81\x99", "windows-1252", "€\x81™"),
        (b"\xff\xfea\0b", "utf-16le", "a\ufffd"),
        (b"\xd0\xae", "koi8-u", "пў"),
        (b"\x81\xff", "cp874", "\x81\ufffd"),
        (b"a\x80\xff", "x-user-defined", "a\uf780\uf7ff"),
        (b"abc", "replacement", "\ufffd"),
        (b"\x82\xa0\x81", "cp932", "あ\ufffd"),
    ],
)
def test_text_is_decoded_as_browsers_do(body: bytes, charset: str, text: str) -> None:
    assert decode(body, charset) == text


def test_pages_in_other_encodings_are_read_in_theirs() -> None:
    body = '<meta charset="windows-1251"><title>Привет</title><p>мир'.encode("windows-1251")
    page = Document.parse(body, HTML, URL)
    assert (page.charset, page.title, page.text()) == ("windows-1251", "Привет", "мир")
    page = Document.parse("<title>é</title>".encode("utf-16"), HTML, URL)
    assert (page.charset, page.title) == ("utf-16le", "é")
    page = Document.parse('<title>é</title><a href="/x?q=é">x</a>'.encode("utf-32"), HTML, URL)
    assert (page.charset, page.title, page.text()) == ("utf-32le", "é", "x")


# Head data


@pytest.mark.parametrize(
    ("html", "title"),
    [
        ("<title>\n  A \t title\n</title>", "A title"),
        ("<title>a</title><title>b</title>", "a"),
        ("<svg><title>icon</title></svg><title>page</title>", "page"),
        ("<title>a &amp; b <b></title>", "a & b <b>"),
        ("<title></title>", ""),
        ("<p>none", None),
        ("<title>" + "x" * 9999 + "</title>", "x" * 500),
    ],
)
def test_the_title_is_the_first_one_in_one_line(html: str, title: str | None) -> None:
    assert parse(html).title == title


@pytest.mark.parametrize(
    ("html", "base"),
    [
        ("", URL),
        ("<base href='/x/'>", "http://a.test/x/"),
        ("<base target=_top><base href='y/'><base href='/z/'>", "http://a.test/dir/y/"),
        ("<base href='//b.test'>", "http://b.test/"),
        ("<base href='http://['>", URL),
        ("<base href='data:,x'>", URL),
        ("<base href='javascript:x'>", URL),
        ("<base href=''>", URL),
    ],
)
def test_the_first_usable_base_counts(html: str, base: str) -> None:
    assert parse(html).base_url == base


def test_canonical_and_language_are_read() -> None:
    page = parse("<html lang=' de-AT '><base href='/b/'><link rel='x Canonical' href='c#d'><link rel=canonical href=e>")
    assert (page.canonical, page.language) == ("http://a.test/b/c", "de-AT")
    page = parse("<link rel=canonical href='mailto:x'>")
    assert (page.canonical, page.language) == (None, None)


@pytest.mark.parametrize(
    ("metas", "noindex", "nofollow"),
    [
        ("<meta name=robots content=noindex>", True, False),
        ("<meta name=ROBOTS content='NoFollow , noarchive'>", False, True),
        ("<meta name=robots content='noindex nofollow'>", True, True),
        ("<meta name=robots content=none>", True, True),
        ("<meta name=robots content=all>", False, False),
        ("<meta name=curtsy content=noindex>", True, False),
        ("<meta name=otherbot content=noindex>", False, False),
        ("<meta name=robots content=noindex><meta name=curtsy content=nofollow>", True, True),
        ("<meta name=robots>", False, False),
        ("<body>text <meta name=robots content=noindex>", True, False),
    ],
)
def test_meta_robots_holds_for_all_and_for_us(metas: str, noindex: bool, nofollow: bool) -> None:
    page = parse(metas)
    assert (page.robots_noindex, page.robots_nofollow) == (noindex, nofollow)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([], (False, False)),
        (["noindex"], (True, False)),
        (["NOINDEX, nofollow"], (True, True)),
        (["none"], (True, True)),
        (["curtsy: noindex"], (True, False)),
        (["Curtsy: noindex, nofollow"], (True, True)),
        (["otherbot: noindex, nofollow"], (False, False)),
        (["otherbot: noindex, curtsy: nofollow"], (False, True)),
        (["otherbot: noindex", "nofollow"], (False, True)),
        (["unavailable_after: 25 Jun 2010 15:00:00 PST, noindex"], (True, False)),
        (["unavailable_after: Fri, 25 Jun 2010 15:00:00 PST"], (False, False)),
        (["max-snippet: 10, nofollow"], (False, True)),
        ([":", ",,", "\x00"], (False, False)),
    ],
)
def test_x_robots_tag_holds_for_all_or_for_the_agent_it_names(values: list[str], expected: tuple[bool, bool]) -> None:
    assert robots_tag(values, "curtsy") == expected


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=/x", "/x"),
        ("5;URL = '/x' y", "/x"),
        ('0;url="/x', "/x"),
        ("0,/x", "/x"),
        ("0 /x", "/x"),
        ("0;'/x'", "/x"),
        (" 1.5 ; url=/x ", "/x"),
        (".5;url=/x", "/x"),
        ("0;urlx", "urlx"),
        ("0", None),
        ("0;", None),
        ("0;url=", None),
        ("x;url=/x", None),
        ("-1;url=/x", None),
        ("1x;url=/x", None),
        ("", None),
    ],
)
def test_meta_refresh_is_read_as_the_standard_has_it(content: str, target: str | None) -> None:
    assert refresh_target({"http-equiv": "Refresh", "content": content}) == target
    assert refresh_target({"http-equiv": "x", "content": content}) is None


def test_refresh_leads_to_a_normal_url() -> None:
    assert parse("<meta http-equiv=refresh content='0;url=../y#z'>").refresh == "http://a.test/y"
    assert parse("<meta http-equiv=refresh content='0;url=ftp://x/'>").refresh is None


@pytest.mark.parametrize(
    ("content_type", "body", "expected"),
    [
        ("text/html", b"", True),
        ("TEXT/HTML; charset=x", b"", True),
        ("application/xhtml+xml", b"", True),
        (None, b"  <!DOCTYPE HTML><p>", True),
        ("", b"<html>", True),
        ("application/octet-stream", b"<!-- x --><p>", True),
        (None, b"\xef\xbb\xbf<body >", True),
        (None, b"<pre>", False),
        (None, b"%PDF-1.4", False),
        ("text/plain", b"<html>", False),
        ("application/json", b"<html>", False),
    ],
)
def test_html_is_recognized_by_type_and_only_then_by_content(
    content_type: str | None, body: bytes, expected: bool
) -> None:
    assert is_html(content_type, body) is expected


# Text and Markdown


def test_text_is_what_a_reader_sees_one_line_per_block() -> None:
    html = """<head><title>t</title><style>s</style></head><h1>One</h1><p>two <b>bold</b>
      words</p>loose<br>break<script>x()</script><noscript>n</noscript><template>t</template>
      <ul><li>a<li>b</ul><table><tr><td>c<td>d</table><p hidden>no</p><!-- no --><pre>e
  f</pre><svg><text>no</text></svg>"""
    assert parse(html).text().split("\n") == [
        "One", "two bold words", "loose", "break", "a", "b", "c\td", "e", "f",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>We have 300<sup>2</sup> people on 40 m<sup>2</sup>", "We have 300² people on 40 m²"),
        ("<p>the 1<sup>st</sup> of 10<sup>6</sup>", "the 1st of 10⁶"),
        ("<p><s>99</s><b>79</b> EUR", "99 79 EUR"),
        ("<table><tr><td>12</td><td>450</td></tr></table>", "12\t450"),
        ("<p>a</p><p style='Display : none'>b</p><div style='color:red;visibility:hidden'>c</div>", "a"),
        ("<p style='display:block'>a", "a"),
    ],
)
def test_what_stands_beside_each_other_is_not_one_word(html: str, text: str) -> None:
    assert parse(html).text() == text


@pytest.mark.parametrize(
    ("html", "markdown"),
    [
        ("<h1>A <i>b</i></h1><h3>c<br>d</h3>", "# A *b*\n\n### c d\n"),
        ("<p>a <b> b </b>c</p>", "a **b** c\n"),
        ("<p>a<br>b</p>", "a\\\nb\n"),
        ("<b><strong>x</strong></b>", "**x**\n"),
        ("<a href='/x (1)'>t <em>e</em></a>", "[t *e*](http://a.test/x%20%281%29)\n"),
        ("<a href='#x'>t</a> <a href='javascript:y'>u</a> <a>v</a>", "t u v\n"),
        ("<a href=/x><h2>t</h2><p>u</p></a>", "## [t](http://a.test/x)\n\n[u](http://a.test/x)\n"),
        ("<ul><li>a<li>b<ol><li>c<li>d</ol></ul>e", "- a\n- b\n  1. c\n  2. d\n\ne\n"),
        ("<ol start=9><li>a<li>b</ol>", "9. a\n10. b\n"),
        ("<ul><li><p>a<p>b</ul>", "- a\n\n  b\n"),
        ("x<blockquote><p>a<p>b</blockquote>y", "x\n\n> a\n>\n> b\n\ny\n"),
        ("<pre>a\n  b\n</pre>", "```\na\n  b\n```\n"),
        ("<pre>```</pre>", "````\n```\n````\n"),
        ("<code>a*b</code> <code>`</code>", "`a*b` `` ` ``\n"),
        ("<table><tr><th>a<th>b<tr><td>1|2<td>", "| a | b |\n| --- | --- |\n| 1\\|2 |  |\n"),
        ("<table><tr><td><p>only</table>", "only\n"),
        (
            "<p>1. x</p><p># y</p><p>- z</p><p>a * [b] `c` <</p>",
            "1\\. x\n\n\\# y\n\n\\- z\n\na \\* \\[b\\] \\`c\\` \\<\n",
        ),
        ("a<hr>b", "a\n\n---\n\nb\n"),
        ("<img src=/i alt='an image'><img src=/j>", "![an image](http://a.test/i)\n"),
        ("<p> </p><div></div>", ""),
    ],
)
def test_markdown_is_clean(html: str, markdown: str) -> None:
    assert parse(html).markdown() == markdown


# Structured data


def test_structured_data_is_gathered_from_its_places() -> None:
    page = parse("""
      <script type="application/ld+json">{"@type": "Organization", "name": "A"}</script>
      <script type="application/ld+json">[{"@type": "Person"}, 5]</script>
      <script type="application/ld+json">{broken</script>
      <meta property="og:title" content="T"><meta property="og:image" content="1"><meta property="og:image" content="2">
      <meta name="description" content=" D "><meta name="empty">
      <div itemscope itemtype="http://schema.org/P"><span itemprop="name">N <b>n</b></span>
        <a itemprop="url" href="/u"></a><div itemprop="address" itemscope><i itemprop="city">C</i></div></div>
      <div vocab="https://schema.org/" typeof="Organization"><b property="name">R</b>
        <p property="address" typeof="PostalAddress"><i property="addressLocality" content="Lille">there</i></p></div>
      <p typeof="schema:Person"><a property="schema:url" href="/p">p</a></p><p property="lost">x</p>""")
    assert page.structured() == [
        {"kind": "json-ld", "data": {"@type": "Organization", "name": "A"}},
        {"kind": "json-ld", "data": {"@type": "Person"}},
        {"kind": "opengraph", "data": {"og:title": "T", "og:image": ["1", "2"]}},
        {"kind": "meta", "data": {"description": "D"}},
        {
            "kind": "microdata",
            "data": {
                "type": "http://schema.org/P",
                "properties": {"name": "N n", "url": "http://a.test/u", "address": {"properties": {"city": "C"}}},
            },
        },
        {
            "kind": "rdfa",
            "data": {
                "type": "https://schema.org/Organization",
                "properties": {
                    "name": "R",
                    "address": {"type": "https://schema.org/PostalAddress", "properties": {"addressLocality": "Lille"}},
                },
            },
        },
        {"kind": "rdfa", "data": {"type": "http://schema.org/Person", "properties": {"url": "http://a.test/p"}}},
    ]


def test_structured_data_that_nests_without_end_is_left_out() -> None:
    assert parse(f"<script type=application/ld+json>{'[' * 100_000}</script>").structured() == []


# Bounds


WILD = {
    "deep divs": b"<div>" * 100_000,
    "deep lists": b"<ul><li>" * 50_000,
    "hidden end tags": b"<div><!--</div>--><script></div></script>" * 20_000,
    "attributes": b"<a " + b" ".join(b"a%d" % n for n in range(100_000)) + b">",
    "formatting": b"".join(b"<b a%d>" % n for n in range(3_000)) + b"<p>x" * 8_000,
    "misnesting": b"<b>" * 20_000 + b"<div>" * 20_000 + b"</b>" * 20_000,
    "tags": b"<br>" * 1_000_000,
    "quotations": b"<blockquote><ul><li>x" * 3_000,
    "tables": b"<table><tr><td>x" * 5_000,
    "rows": b"<table><tr>" + b"<td>x" * 2_000 + b"<tr><td>x" * 20_000,
    "items": b"<div itemscope><b itemprop=x>text" * 400,
    "angles": b"<" * 1_000_000,
    "comments": b"<!--" * 500_000,
}


@pytest.mark.parametrize("name", WILD)
def test_wild_pages_take_bounded_time(name: str) -> None:
    started = time.process_time()
    page = Document.parse(WILD[name], HTML, URL)
    assert page.text() is not None
    page.markdown()
    page.structured()
    assert time.process_time() - started < 3


def test_tame_pages_are_left_alone() -> None:
    rows = b"<table>" + b"<tr><td><p>cell<br><b>x</b>\n" * 5_000 + b"</table>"
    sections = b"<div><section><p>text <a href=/>x</a><img></section></div><li>item" * 20_000
    for html in (b"<p>x", b"<div>" * 900, rows, sections):
        assert tame(html) == (html, False)
        assert tame(html)[0] is html


def test_pages_are_cut_where_they_become_wild() -> None:
    html = b"<p>kept</p>" + b"<div>" * 5_000 + b"lost"
    assert tame(html) == (b"<p>kept</p>" + b"<div>" * MAX_DEPTH, True)
    assert parse(html).text() == "kept"
    assert parse(html).truncated


LONG = b"x" * 100_000


@pytest.mark.parametrize(
    "html",
    [
        b"<p>first<script>if (a<b) {" + LONG + b"}</script><p>last",
        b"<p>first<SCRIPT>var a = '<x' + \"" + LONG + b'"</SCRIPT><p>last',
        b"<p>first<style>a<b" + LONG + b"</style><p>last",
        b"<p>first<!-- <x" + LONG + b"--><p>last",
        b"<p>first<!--><p>" + LONG + b"</p><div><p>last",
        b"<p>first<textarea><x" + LONG + b"</textarea><p>last",
        b"<title>a <x" + LONG + b"</title><p>first<p>last",
        b"<p>first<img alt='' src='data:image/png;base64," + LONG + b"'><p>last",
        b"<p>first<img src=data:image/png;base64," + LONG + b"><p>last",
        b'<p>first<a title="1 > 0 <x ' + LONG + b'">y</a><p>last',
        b"<p>first 1 <2 " + LONG + b"<p>last",
    ],
)
def test_text_and_values_however_long_are_no_long_tags(html: bytes) -> None:
    assert tame(html) == (html, False)
    page = parse(html)
    assert not page.truncated
    assert page.text().startswith(("first", LONG[:5].decode()))
    assert page.text().endswith("last")


def test_a_tag_that_is_too_long_loses_its_attributes_and_nothing_else() -> None:
    names = b" ".join(b"n%d" % n for n in range(40_000))
    html = b"<p>first</p><DIV id=a " + names + b"><a href=/kept>link</a></DIV>" + b"<p>last" + b" word" * 10_000
    assert tame(html)[0].startswith(b"<p>first</p><DIV><a href=/kept>link</a></DIV><p>last")
    page = parse(html)
    assert page.truncated
    assert page.text().split()[:3] == ["first", "link", "last"]
    assert hrefs(page) == ["/kept"]


def test_a_tag_that_is_not_ended_reaches_to_the_next_sign_that_ends_it() -> None:
    html = b"<p>first " + b"a <b and so on " * 4_000 + b"> <p>last"
    assert parse(html).text().split()[0] == "first"
    assert parse(html).text().split()[-1] == "last"
