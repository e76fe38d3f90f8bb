"""The quick test for ordinary pages: it may only say yes where the full look finds nothing to cut."""

from __future__ import annotations

import timeit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from curtsy.content import parser_limits
from curtsy.content.parser_limits import _is_ordinary, _look, _without_text, tame

_PIECES = (
    b"<div>", b"</div>", b"<a href=x>", b"</a>", b"<b>", b"</b>", b"<p>", b"</p>", b"<li>", b"<font a=1>", b"</font>",
    b"<br/>", b"<x-y>", b"</x-y>", b"<SPAN\t>", b"</span>", b"<", b">", b'"', b"'", b"=", b' title="', b" title='",
    b"a", b" ", b"</", b"<!--", b"-->", b"<script>", b"</script>", b'<a title="a > b">', b"<a title='<div>'>",
    b"<a title=\"</div>\">", b"<img alt=\"<-\">", b"<div <div>", b"long text of no meaning ", b"\xff",
)  # fmt: skip
_soup = st.lists(st.sampled_from(_PIECES), max_size=60).map(b"".join)


@pytest.fixture
def _narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Bounds that small pages reach."""
    bounds = {"MAX_DEPTH": 6, "MAX_REBUILT": 12, "MAX_TAG_BYTES": 24, "MAX_TAGS": 25, "_SOME_TAGS": 4}
    for name, value in bounds.items():
        monkeypatch.setattr(parser_limits, name, value)


@pytest.mark.usefixtures("_narrow")
@settings(max_examples=2000, deadline=None)
@given(_soup)
@example(b"<div></div></span>" * 6)
@example(b"</div>" * 9 + b"<div>" * 9)
@example(b"<div></span>" * 9 + b"<span></div>" * 9)
@example(b"<font size=1>" * 3 + b"<p>" * 9)
@example(b'<a title=">' + b" x" * 20 + b'">')
@example(b"<a " + b"x" * 30)
def test_a_page_that_is_ordinary_is_within_all_bounds(html: bytes) -> None:
    seen = _without_text(html.lower())
    if _is_ordinary(seen):
        assert _look(seen) == (len(seen), False)
        tags = [tag for tag, _ in parser_limits._TAG.findall(seen)]
        # An end tag whose name does not begin with a letter closes nothing.
        assert [name for name in parser_limits._NAME.findall(seen) if name.strip(b"/")[:1].isalpha()] == tags


@pytest.mark.parametrize(
    "html",
    [
        b"<div><p>text <a href='/x'>link</a></p></div>" * 3000,
        b"<ul>" + b"<li><a class=reference href=x.html title='a < b'><code>x</code></a>" * 3000 + b"</ul>",
        b"<table>" + b"<tr><td><b>1</b><td><i>2</i></tr>" * 2000 + b"</table>" * 3,
    ],
)
def test_pages_of_every_day_are_ordinary(html: bytes) -> None:
    assert _is_ordinary(_without_text(html.lower()))
    assert tame(html) == (html, False)


@pytest.mark.parametrize(
    "html", [b"<div>" * 2000, b"<div></span>" * 2000, b"<i a=1><i a=2>" * 800 + b"<p>" * 2000, b"<a " + b"b " * 5000]
)
def test_pages_beyond_a_bound_are_not(html: bytes) -> None:
    assert not _is_ordinary(html)


@pytest.mark.parametrize("mark", [b"<!--", b"<script>", b"a < b <!--"])
def test_a_comment_does_not_begin_within_a_tag(mark: bytes) -> None:
    links = b"".join(b'<p><a href="/%d">link</a></p>' % number for number in range(2_000))
    html = b'<body><a title="' + mark + b'" href="/first">first</a>' + links
    assert tame(html) == (html, False)


def test_time_grows_with_the_number_of_comments_within_tags() -> None:
    def seconds(times: int) -> float:
        html = b'<a title="<!--"><!-- x --><script>1</script> < ' * times
        return min(timeit.repeat(lambda: _without_text(html), number=1, repeat=3))

    assert seconds(40_000) < 12 * seconds(10_000)
