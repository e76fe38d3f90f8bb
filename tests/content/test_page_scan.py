"""The compiled scanner says of every page what the page's tree says, or that it needs the tree."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import build_scanner
import pytest
import scan_fuzz
from hypothesis import given, settings
from hypothesis import strategies as st

from curtsy.content import page_scan, parser_limits
from curtsy.content.reading import read_by_scan
from curtsy.content.tree_reading import read, read_tree

URL = "http://a.test/dir/page"
GOLDEN = Path(__file__).parent.parent / "golden"
ROUNDS = 2_000
PARTS = (*scan_fuzz.TEXTS, "<a href=x>", "<table>", "<td>", "</td>", "<svg>", "</svg>", "=", "'")
#: flags of native/page_scan.c
NEVER_DEEP, FORMATTING, REBUILDS = 0x100, 0x200, 0x400


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The scanner of the source as it is now, whatever is installed."""
    try:
        return scan_fuzz.load(build_scanner.build(tmp_path_factory.mktemp("scanner") / "_page_scan.abi3.so"))
    except build_scanner.NotBuilt as error:
        pytest.skip(f"no C compiler: {error}")


@pytest.fixture(scope="module", autouse=True)
def _scanner(compiled: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page_scan, "_scan", compiled.scan)
        yield


def links(html: bytes) -> list[str]:
    found = page_scan.scan(html, "curtsy")
    assert isinstance(found, page_scan.Scanned), found
    return found.links


# Pages that the scanner reads.
READ: dict[str, bytes] = {
    "nothing": b"",
    "text": b"just text < and > and &amp;",
    "quotes": b"<a href=a><a href='b c'><a href=\"d>e\"><a\nhref\t=\n f ><a href=g/><A HREF=h>",
    "no value": b'<a href><a href=""><a href=" "><a href=><a href= >',
    "two of a name": b"<a href=a href=b><a rel=x rel=nofollow href=c>",
    "odd names": b"<a =href=a href=b><a href=c\"d 'e=f><a/href=g/x><a href='h'href=i><a href\0=j>",
    "blanks": b'<a href="\t\n\f\r a b \r\n"><a href="\x0bc"><a href="a\r\nb\rc">',
    "fragments": b'<a href="#a"><a href="b#c"><a href="b #c"><a href="b"><a href=" #"><a href="&num;x">'
    b'<a href="d&#35;e">',
    "NUL and bad bytes": b'<a href="a\0b"><a href="\xff\xc3\x28\xe2\x82"><title>\0\xff\r\n x</title>',
    "references": b'<a href="&amp;&amp&ampx&amp=&notit;&not;&#0;&#xD800;&#x110000;&#x80;&#x81;&#1;&#13;&#x;&#;'
    b'&;&#99999999999">'
    b'<a href="&Aacutes;&aelig=1&lt=2&copy1&copy-&NotEqualTilde;&acE;&amp;lt;">'
    b"<title>&ampx&amp=&notit;&Auml&fjlig;</title>",
    "comments": b"<!--><a href=1><!---><a href=2><!-- --!><a href=3><!-- <!--><a href=4><!----><a href=5>"
    b"<!-- -- -><a href=6>-->"
    b"<a href=7><!-><a href=8></><a href=9></ x><a href=10><?x ><a href=11><![CDATA[<a href=12>]]><a href=13><!--",
    "end in a tag": b"<a href=1><a href=2",
    "end in a value": b"<a href=1><a href='2>",
    "end in a title": b"<title>abc</titl",
    "text elements": b"<script>'<a href=1>'</scripty></script ><style><a href=2></style><textarea><a href=3></textarea>"
    b"<xmp><a href=4></xmp><noembed><a href=5></noembed><noframes><a href=6></noframes><iframe src=7><a href=8>"
    b"</iframe>"
    b"<noscript><a href=9></noscript><TITLE><a href=10></Title/><script><!-- <a href=11> --></script><a href=12>",
    "an escaped script": b"<script><!-- x </script><a href=1>",
    "relations": b"<link href=1 rel=next><link href=2 rel='x Alternate'>"
    b"<link href=3 rel='alternate stylesheet'><link href=4>"
    b"<link href=5 rel='nofollow next'><a href=6 rel='x\x1cNoFollow'><area href=7 rel=nofollows><link rel=next>",
    "canonical": b"<link rel=canonical href><link rel='x CANONICAL' href=1><link rel=canonical href=2>",
    "base": b"<base target=x><base href=''><base href=/b/><a href=1>",
    "robots": b"<meta name=' Robots ' content=NOINDEX><meta name=curtsy content='a,nofollow'>"
    b"<meta name=other content=none>"
    b"<meta name=robots><a href=1>",
    "language": b"x<html class=y><p><html lang=' de '><html lang=en>",
    "language without a value": b"<html lang><html lang=en>",
    "tables": b"<table><caption><a href=1></caption><tr><td><a href=2><table><td><a href=3></table><a href=4>"
    b"<th><a href=5>"
    b"</table><a href=6><td><a href=7></table><table><table><tr><td><a href=8></table><a href=9>",
    "formatting": b"<p><a href=1>x<p>y<div><a href=2><b></a></div></b><a href=3><table><tr><td></a><a href=4></table>",
    "select": b"<select><option>x<optgroup></select><a href=1>",
    "pictures": b"<title>t</title><svg viewbox=x><title>s</title><g><a href=1><path/></a></g><use href=2 />"
    b"<a xlink:href=3>"
    b"</a><style>a</style></svg><a href=4><svg/><a href=5>",
    "formulas": b"<math><mrow><mi>x</mi><mo>&lt;</mo></mrow></math><a href=1>",
    "windows-1252": "<meta charset=windows-1252><title>é</title><a href='ü?ü=ü#ü'>".encode("windows-1252"),
    "UTF-16": "<title>é</title><a href=1>".encode("utf-16"),
}

# Pages that it leaves to the tree.
UNREAD: dict[str, tuple[str, bytes]] = {
    "a template": ("template", b"<template><a href=1></template>"),
    "frames": ("frameset", b"<frameset><frame src=1></frameset>"),
    "plain text": ("plaintext", b"<plaintext><a href=1>"),
    "a link in a select": ("select", b"<select><a href=1></select>"),
    "a link directly in a table": ("table", b"<table><tr><td><a href=1></td><a href=2></table>"),
    "a link in an element directly in a table": ("table", b"<table><div><a href=1></table>"),
    "an end tag that may end a cell": ("table", b"<table><tr><td></caption><a href=1></table>"),
    "HTML in a picture": ("foreign", b"<svg><foreignObject><a href=1></svg>"),
    "an element that ends a picture": ("foreign", b"<svg><p><a href=1></svg>"),
    "an end tag from outside a picture": ("foreign", b"<a href=1><svg><path></a><a href=2>"),
    "HTML in a title of a picture": ("foreign", b"<title>t</title><svg><title><a href=1></svg>"),
    "a picture before the title": ("foreign", b"<svg><title>s</title></svg><title>t</title>"),
    "a title in an unknown element": ("foreign", b"<g><title>s</title></g>"),
    "CDATA in a picture": ("foreign", b"<svg><![CDATA[<a href=1>]]></svg>"),
    "a script in an escaped script": ("script", b"<script><!--<script></script><a href=1>--></script>"),
    "a refresh": ("refresh", b"<meta http-equiv=Refresh content='0;url=1'>"),
    "a relation with a reference": ("attribute", b"<a href=1 rel='no&#102;ollow'>"),
    "a name with odd blanks": ("attribute", "<meta name='\u00a0robots' content=noindex>".encode()),
    "many open elements": ("limits", b"<div>" * 1_001),
    "a long tag": ("limits", b"<p " + b"x " * 5_000 + b">"),
    "formatting in many blocks": ("limits", b"<i>" * 600 + b"<p>" * 1_700),
    "many tags": ("limits", b"<p>" * 300_001),
    "many names": ("limits", b"".join(b"<x%d>" % n for n in range(65))),
}


@pytest.mark.parametrize("name", READ)
def test_a_page_is_read_as_its_tree_is(name: str) -> None:
    given = (READ[name], None, URL, "Curtsy", False)
    assert read_by_scan(*given) == read_tree(*given)
    assert read_by_scan(*given) is not None


@pytest.mark.parametrize("name", UNREAD)
def test_the_scanner_says_why_it_needs_a_tree(name: str) -> None:
    reason, html = UNREAD[name]
    assert page_scan.scan(html, "curtsy") == reason
    assert read(html, None, URL, "curtsy", False) == read_tree(html, None, URL, "curtsy", False)


def test_links_are_in_document_order_and_each_once() -> None:
    assert links(b"<a href=b><area href=a><iframe src=c></iframe><a href=a><a href='b#x'>") == ["b", "a", "c"]


def test_long_values_are_not_a_long_tag() -> None:
    assert links(b"<a data-x='" + b"y" * 20_000 + b"' href=1>") == ["1"]


def test_pages_with_scripts_that_may_need_a_browser_are_read_from_their_tree() -> None:
    empty = b"<body><div id=root></div><script src=x></script>"
    assert read_by_scan(empty, None, URL, "curtsy", True) is None
    assert read(empty, None, URL, "curtsy", True).browser == "empty_root"
    assert read_by_scan(b"<p>text", None, URL, "curtsy", True) is not None


def test_an_agent_that_is_not_ascii_is_compared_in_the_tree() -> None:
    html = "<meta name='BÖT' content=noindex>".encode()
    assert read(html, "text/html; charset=utf-8", URL, "böt", False).noindex


def test_the_limits_are_those_of_the_parser(compiled: Any) -> None:
    names = compiled.names()

    def having(flag: int) -> set[bytes]:
        return {name.encode() for name, flags in names.items() if flags & flag}

    assert having(NEVER_DEEP) == parser_limits._NEVER_DEEP
    assert having(FORMATTING) == parser_limits._FORMATTING
    assert having(REBUILDS) == parser_limits._REBUILDS
    source = build_scanner.SOURCE.read_text("utf-8")
    for name in ("MAX_DEPTH", "MAX_TAGS", "MAX_REBUILT", "MAX_TAG_BYTES"):
        assert f"#define {name} {getattr(parser_limits, name)}\n" in source


def test_golden_pages_are_read_as_their_trees_are() -> None:
    pages = [path.read_bytes() for path in sorted(GOLDEN.rglob("*.html"))]
    assert len(pages) >= 90
    assert [found for page in pages if (found := scan_fuzz.difference(page, None))] == []
    assert sum(read_by_scan(page, None, URL, "curtsy", False) is not None for page in pages) > len(pages) * 0.9


def test_random_pages_are_read_as_their_trees_are() -> None:
    dice = random.Random(15)
    pages = [path.read_bytes()[:20_000] for path in sorted(GOLDEN.rglob("*.html"))[::10]]
    for number in range(ROUNDS):
        page = scan_fuzz.mutated(dice.choice(pages), dice) if number % 10 == 0 else scan_fuzz.soup(dice)
        if (found := scan_fuzz.difference(page)) is not None:
            pytest.fail(scan_fuzz.difference(scan_fuzz.smallest(page)) or found)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PARTS) | st.text(max_size=3), max_size=30))
def test_any_text_is_read_as_its_tree_is(parts: list[str]) -> None:
    page = "".join(parts).encode("utf-8", "surrogatepass")
    assert scan_fuzz.difference(page) is None


def test_an_exception_within_a_reference_ends_the_scan(compiled: Any) -> None:
    def fail(_text: str, _in_attribute: int) -> str:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compiled.scan(b"<title>&x;</title>", b"", fail, page_scan.shortened)


def test_without_the_extension_pages_are_read_from_their_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_scan, "_scan", None)
    assert page_scan.reader_name() == "tree"
    assert read(b"<a href=1>", None, URL, "curtsy", False).links == ["1"]
    monkeypatch.setenv("CURTSY_READER", "tree")
    assert page_scan._load() is None


def test_a_compiler_that_fails_leaves_no_old_scanner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "_page_scan.abi3.so"
    target.write_bytes(b"of an older source")
    monkeypatch.setenv("CC", "false")
    with pytest.raises(build_scanner.NotBuilt):
        build_scanner.build(target)
    assert not target.exists()
