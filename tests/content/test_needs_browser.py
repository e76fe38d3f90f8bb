"""Which pages need a browser: the tiny web's kinds, and pages written by hand; and what is learnt of hosts."""

from __future__ import annotations

import pytest

from curtsy.content.document import Document
from curtsy.content.needs_browser import PROBES, SURE, goes_directly, is_probe, needs_browser
from curtsy.rules.urls import fingerprint
from curtsy.tinyweb.facts import Kind, org_host, truth
from curtsy.tinyweb.pages import OrgSite, Shape

PROSE = " ".join(["Harbour Trust builds boats for children in the old port and repairs what the sea has broken."] * 5)


def judged(html: str) -> str | None:
    body = html.encode()
    return needs_browser(Document.parse(body, "text/html; charset=utf-8", "https://a.test/"), body)


@pytest.mark.parametrize("number", range(10))
def test_the_tiny_web(number: int) -> None:
    """Every page of the kinds that are filled by scripts, and no page of any other."""
    host = org_host(number)
    site = OrgSite(host, Shape())
    wanted = truth(host).kind in (Kind.SCRIPT, Kind.FETCHED)
    for path in site.paths:
        assert (judged(site.html(path)) is not None) is wanted, f"{host}{path}"


@pytest.mark.parametrize(
    ("html", "reason"),
    [
        ('<body><div id="root"></div><script src="/app.js"></script>', "empty_root"),
        ('<body><div id="app">Loading ...</div><script type="module" src="/m.js"></script>', "empty_root"),
        ("<body><app-root></app-root><script src=main.js></script>", "empty_root"),
        ('<body><div id="__next"><div></div></div><script>self.x=1</script>', "empty_root"),
        (
            "<body><noscript>You need to enable JavaScript to run this app.</noscript><p>Hi<script>1</script>",
            "noscript",
        ),
        (
            '<head><noscript><meta http-equiv="refresh" content="0;url=/nojs"></noscript></head><body>'
            '<div id="root"></div><script src="/app.js"></script>',
            "empty_root",
        ),
        (
            '<body><noscript><p><meta http-equiv="refresh" content="0;url=/nojs"></p></noscript>'
            '<div id="root"></div><script src="/app.js"></script>',
            "empty_root",
        ),
        (
            '<head><meta http-equiv="refresh" content="300; url=/"></head><body>'
            '<div id="root"></div><script src="/app.js"></script>',
            "empty_root",
        ),
        ("<head><script src=x.js></script></head><body></body>", "no_text"),
        ("<body><SCRIPT SRC=x.js></SCRIPT></body>", "no_text"),
    ],
)
def test_pages_that_say_nothing_without_scripts(html: str, reason: str) -> None:
    assert judged(html) == reason


@pytest.mark.parametrize(
    "html",
    [
        "",
        "<p>Short, but all there is.</p>",
        '<div id="root"></div>',
        f'<body><div id="root"></div><main>{PROSE}</main><script src="/app.js"></script>',
        f"<body><p>{PROSE}</p><noscript>Please enable JavaScript for comments.</noscript><script>1</script>",
        '<body><p>Moved</p><script type="application/ld+json">{"@type": "Thing"}</script>',
        '<body><template id="root"></template><script type="text/template"><p>x</p></script>',
        '<head><meta http-equiv="refresh" content="0; url=/home"></head><body><script>location="/home"</script>',
        '<head><noscript><meta http-equiv="refresh" content="0; url=/a"></noscript>'
        '<meta http-equiv="refresh" content="5; url=/home"></head><body><script>location="/home"</script>',
        '<body><a href="/a">A</a> <a href="/b">B</a> <a href="/c">C</a><script>count()</script>',
        "<body><p>We are closed until spring; write to us at the usual address, please.</p><script>count()</script>",
        '<body><div id="app"><h1>Welcome to the Harbour Trust of Ostend</h1></div><script src=x></script><p>And more',
    ],
)
def test_in_doubt_a_page_is_taken_as_it_is(html: str) -> None:
    assert judged(html) is None


def test_a_host_is_trusted_to_need_a_browser_after_enough_pages_and_not_for_ever() -> None:
    assert not goes_directly(0, 0)
    assert not goes_directly(SURE - 1, 0)
    assert goes_directly(SURE, 0)
    assert goes_directly(SURE, 1)
    assert not goes_directly(SURE, 2), "it was wrong: its pages are asked plainly again"


def test_some_pages_are_asked_plainly_all_the_same() -> None:
    probes = sum(is_probe(fingerprint(f"https://a.test/{n}")) for n in range(1000))
    assert 1000 // PROBES // 2 < probes < 1000 // PROBES * 2
