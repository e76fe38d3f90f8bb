"""10,000 random byte strings each as HTML, robots.txt and sitemap: no crash, no hang, no memory above a limit."""

from __future__ import annotations

import gzip
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from curtsy.content.document import Document
from curtsy.content.head import is_html, robots_tag
from curtsy.content.links import LinkMemo, hrefs
from curtsy.content.sitemaps import sitemap
from curtsy.rules.robots import Robots
from curtsy.rules.urls import normalise

ROUNDS = 10_000
#: of CPU for one input; the ordinary one takes a thousandth
MAX_S = 1.0
#: by which the process may grow over all inputs
MAX_GROWTH_MB = 200
URL = "http://a.test/dir/page"

HTML = b"""<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>T &amp; U</title><base href="/b/">
<meta name="robots" content="noindex"><meta http-equiv="refresh" content="5; url='/next'">
<link rel="canonical" href="/c"><script type="application/ld+json">{"@type": ["A"], "b": {"c": 1}}</script></head><body>
<h1>Head</h1><p>Some <b>bold</b><a href="/x?y=1&amp;z=2#f" rel="nofollow">link</a><a href="../up">up</a>
<ul><li>one<li>two<ol><li>three</ol></ul><pre>a
b</pre><table><tr><th>h<td>d</table><blockquote>q</blockquote><div itemscope itemtype="t"><i itemprop="n">v</i></div>
<svg><title>s</title><a href="/svg"/></svg><template><p>t</template><iframe src="/f"></iframe>
<select><option>o</select>"""
ROBOTS = b"""\xef\xbb\xbf# comment
User-agent: *\r\nDisallow: /private\nAllow: /private/*.html$\nCrawl-delay: 2.5
User-agent: curtsy\rUser-agent: other bot/1.0\nDisallow: /%7Ejoe/%E3%83%84\nAllow: /index.html\nSitemap: http://a.test/s.xml"""
SITEMAP = b"""<?xml version="1.0" encoding="UTF-8"?><!-- c --><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>http://a.test/?a=1&amp;b=&#233;</loc></url><url><loc><![CDATA[http://a.test/2]]></loc></url></urlset>"""
FEED = b"<feed><entry><link rel='alternate' href='http://a.test/1'/></entry></feed>"
PIECES = (
    *(
        b"<",
        b">",
        b"</",
        b"<!--",
        b"-->",
        b"<![CDATA[",
        b"]]>",
        b'"',
        b"'",
        b"=",
        b"&",
        b"&#",
        b";",
        b":",
        b"*",
        b"$",
        b"%",
    ),
    *(b"\r", b"\n", b"\0", b"\xff", b"\xef\xbb\xbf", b"\xfe\xff", b"\x1f\x8b", b"<a href=", b"<base href=", b"<table>"),
    *(b"<svg>", b"<math>", b"<template>", b"<frameset>", b"<b><p>", b"</b>", b"<form>", b"<select>", b"<meta charset="),
    *(
        b"<script>",
        b"<title>",
        b"<plaintext>",
        b"User-agent: ",
        b"Disallow: ",
        b"Allow: /",
        b"<loc>",
        b"<urlset>",
        b"<rss>",
    ),
    *(
        b"<item><link>",
        b"http://",
        b"//[",
        b"xn--",
        b"utf-16",
        b"iso-2022-jp",
        b"shift_jis",
        b"x-user-defined",
        b"[" * 50,
    ),
)


def noise(rng: random.Random, samples: tuple[bytes, ...]) -> bytes:
    """Pure noise, a heap of pieces, or a valid sample with cuts, swaps and insertions."""
    kind = rng.random()
    if kind < 0.2:
        return rng.randbytes(rng.randrange(400))
    if kind < 0.45:
        return b"".join(rng.choice(PIECES) for _ in range(rng.randrange(80)))
    data = bytearray(rng.choice(samples))
    for _ in range(rng.randrange(1, 8)):
        at = rng.randrange(len(data) + 1)
        action = rng.randrange(4)
        if action == 0:
            data[at:at] = rng.choice(PIECES) * rng.choice((1, 1, 2, 60))
        elif action == 1:
            del data[at : at + rng.randrange(60)]
        elif action == 2:
            data[at : at + 1] = rng.randbytes(1)
        else:
            data[at:at] = data[: rng.randrange(120)]
    return bytes(data)


def peak_kb() -> int:
    found = re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text())
    assert found
    return int(found[1])


def restart_peak_kb() -> int:
    """The peak of the process counts from here: earlier tests may have stood higher, which would hide ours."""
    Path("/proc/self/clear_refs").write_text("5")
    return peak_kb()


def read_html(data: bytes) -> None:
    for content_type in (None, "text/html; charset=utf-8"):
        page = Document.parse(data, content_type, URL)
        LinkMemo().resolve_all(page.base_url, hrefs(page))
        is_html(content_type, data)
    page.text()
    page.markdown()
    page.structured()


def read_robots(data: bytes) -> None:
    robots = Robots.parse(data)
    for path in ("/", "/private/x.html", "/%7ejoe/\u30c4?*$"):
        robots.allows(f"http://a.test{path}", "curtsy")
        robots.rule(f"http://a.test{path}", "Other")
    robots.delay("curtsy")
    for line in robots.sitemaps:
        normalise(line, URL)


def read_sitemap(data: bytes) -> None:
    for body in (data, gzip.compress(data, 1), gzip.compress(data, 1)[: len(data) // 2]):
        content = sitemap(body, 100)
        assert len(content.urls) + len(content.sitemaps) <= 100
    for url in content.urls:
        normalise(url, URL)


@pytest.mark.parametrize(
    ("read", "samples"),
    [(read_html, (HTML,)), (read_robots, (ROBOTS,)), (read_sitemap, (SITEMAP, FEED))],
    ids=["html", "robots", "sitemap"],
)
def test_ten_thousand_random_inputs_do_no_harm(read: Callable[[bytes], None], samples: tuple[bytes, ...]) -> None:
    rng = random.Random(9309)
    for data in samples:
        read(data)
    before_kb = restart_peak_kb()
    slowest = (0.0, b"")
    for _ in range(ROUNDS):
        data = noise(rng, samples)
        started = time.process_time()
        read(data)
        slowest = max(slowest, (time.process_time() - started, data))
    assert slowest[0] < MAX_S, slowest[1]
    assert peak_kb() - before_kb < MAX_GROWTH_MB * 1024


def test_the_peak_of_memory_is_seen_even_after_a_higher_one() -> None:
    del (higher := [bytearray(400 << 20)])[:]
    before_kb = restart_peak_kb()
    del (block := [bytearray(b"x") * (300 << 20)])[:]
    assert peak_kb() - before_kb > 250 * 1024
    assert not higher
    assert not block


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=8), max_size=60).map(b"".join))
def test_any_mixture_of_pieces_is_survived(data: bytes) -> None:
    read_html(data)
    read_robots(data)
    read_sitemap(data)


@given(st.lists(st.text(max_size=40), max_size=4))
def test_any_robots_header_is_survived(values: list[str]) -> None:
    robots_tag(values, "curtsy")
