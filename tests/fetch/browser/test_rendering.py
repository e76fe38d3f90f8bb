"""What a visit sees, asks for and tells, by the pages and the log of a site."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest
import uvloop
from rendered import Stage, begin, page_job, rendering, visit
from small_site import Asked, Say

from curtsy.content.document import Document
from curtsy.core.outcome import Fault, Outcome
from curtsy.fetch import page_visit
from curtsy.fetch.transfer import boot_clock
from curtsy.tinyweb import TinyWeb, truth

HOME = "http://a.small.test/"


def test_pages_that_only_scripts_fill_show_what_they_say() -> None:
    async def go(web: TinyWeb) -> None:
        async with rendering(resolve=(f"*.tinyweb.test=127.0.0.1:{web.port}",)) as fetcher:
            for number in (4, 9):
                org = truth(f"org-{number:04d}.tinyweb.test")
                place = next(place for place in org.where("mission") if place.source == "text")
                outcome = await visit(fetcher, f"http://{org.host}{place.path}")
                assert (outcome.status, outcome.fault) == (200, None)
                assert place.quote in outcome.body.decode()
                assert b'<a href="/about">' in outcome.body
                kinds = [one.kind for one in outcome.subresources]
                assert kinds == ([] if number == 4 else ["script", "fetch"])
                assert outcome.started is not None
                assert outcome.answered is not None
                spans = [(one.started, one.ended) for one in outcome.subresources]
                times = [outcome.started, outcome.answered, *(at for span in spans for at in span), outcome.ended]
                assert times == sorted(times)
            again = await visit(fetcher, f"http://{org.host}/contact")
            # app.js is known by now.
            assert [one.kind for one in again.subresources] == ["fetch"]

    with TinyWeb.start(hosts=10, pages=12) as web:
        uvloop.run(go(web))


def test_a_page_is_given_as_utf8_whatever_it_came_in(stage: Stage) -> None:
    stage.pages["/latin"] = Say(
        "<p>Größe<script>document.body.append('\\u20ac')</script>".encode("latin-1"),
        200,
        (("Content-Type", "text/html; charset=iso-8859-1"),),
    )
    outcome = stage.show(f"{HOME}latin")
    assert "Größe" in outcome.body.decode()
    assert "</script></p>€" in outcome.body.decode()
    assert outcome.header_all("content-type") == ["text/html; charset=utf-8"]


def test_strange_headers_do_not_cost_the_page(stage: Stage) -> None:
    strange = (
        ("X Y", "1"),
        ("X-Odd", "\x01\x7f"),
        ("X-Latin", "Gr\xf6\xdfe"),
        ("Set-Cookie", "a=1"),
        ("Set-Cookie", "b=2"),
    )
    stage.say(
        "/odd", b"<p><script>document.body.append('[' + document.cookie + ']')</script>", "text/html", 200, *strange
    )
    outcome = stage.show("http://odd.small.test/odd")
    assert (outcome.fault, b"[a=1; b=2]" in outcome.body) == (None, True)
    assert outcome.header("x-latin") == "Gr\xf6\xdfe"


@pytest.mark.parametrize(
    ("status", "kind", "headers"),
    [
        (302, "text/html", (("Location", "/elsewhere"),)),
        (404, "text/html", ()),
        (503, "text/html", (("Retry-After", "7"),)),
        (200, "application/json", ()),
        (200, "application/pdf", ()),
        (200, "text/html", (("Content-Disposition", "attachment; filename=x.html"),)),
    ],
)
def test_what_is_no_page_is_given_as_it_was_fetched(
    stage: Stage, status: int, kind: str, headers: tuple[tuple[str, str], ...]
) -> None:
    stage.say("/plain", b"<p>a<script>document.body.append('seen')</script>", kind, status, *headers)
    outcome = stage.show(f"{HOME}plain")
    assert (outcome.status, outcome.fault, outcome.answered) == (status, None, None)
    assert outcome.body == b"<p>a<script>document.body.append('seen')</script>"
    assert stage.site.paths() == ["/plain"]


def test_pictures_fonts_media_and_trackers_are_not_loaded(stage: Stage) -> None:
    stage.pages["/style.css"] = Say(
        b"@font-face{font-family:f;src:url(/font.woff2)} p{font-family:f;background:url(/back.png)}",
        200, (("Content-Type", "text/css"),),
    )  # fmt: skip
    outcome = stage.show(
        "http://media.small.test/media",
        b"<link rel=stylesheet href=/style.css><link rel=icon href=/icon.png><link rel=manifest href=/m.json>"
        b"<p>text<img src=/a.png><picture><source srcset=/b.webp><img src=/b.png></picture>"
        b"<video src=/v.mp4 poster=/p.png autoplay></video><audio src=/s.mp3 autoplay></audio>"
        b"<object data=/o.bin></object><embed src=/e.bin><svg><image href=/svg.png /></svg>"
        b"<script src=http://www.google-analytics.com/ga.js></script>"
        b"<script>navigator.sendBeacon('/beacon','x'); new Image().src='/pixel.gif'; new EventSource('/ev')</script>",
    )
    assert b"text" in outcome.body
    assert stage.site.paths() == ["/media", "/style.css"]


def test_content_that_comes_with_scrolling_is_seen(stage: Stage) -> None:
    html = b"""<body><main></main><script>
      let n = 0;
      const more = () => { for (let i = 0; i < 10; i += 1) {
        const p = document.createElement("p"); p.style.height = "300px"; p.textContent = "item " + (n += 1);
        document.querySelector("main").append(p); } };
      more();
      addEventListener("scroll", () => {
        if (n < 40 && scrollY + innerHeight >= document.documentElement.scrollHeight - 10) more(); });
    </script>"""
    outcome = stage.show(f"{HOME}long", html)
    assert b">item 40<" in outcome.body


def test_a_page_that_never_rests_is_read_all_the_same(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_visit, "_RESTLESS_S", 1.5)
    outcome = stage.show(f"{HOME}ticker", b"<p id=p>0</p><script>setInterval(() => p.textContent++, 20)</script>")
    assert (outcome.fault, b"<p id=" in outcome.body) == (None, True)
    assert b">0</p>" not in outcome.body


def test_what_comes_late_is_waited_for(stage: Stage) -> None:
    def slow(_: Asked) -> Say:
        time.sleep(0.8)
        return Say(b'"late"', 200, (("Content-Type", "application/json"),))

    stage.pages["/slow.json"] = slow
    html = b"<p><script>fetch('/slow.json').then(r => r.json()).then(t => document.body.append('came ' + t))</script>"
    assert b"came late" in stage.show(f"{HOME}waits", html).body


def test_a_document_over_the_limit_is_too_large(stage: Stage) -> None:
    html = b"<p><script>document.body.append('x'.repeat(200000))</script>"
    outcome = stage.show(f"{HOME}big", html, max_bytes=100_000)
    assert (outcome.fault, outcome.body) == (Fault.TOO_LARGE, b"")
    assert stage.show(f"{HOME}big", html, max_bytes=300_000).fault is None


def test_a_picture_is_taken_where_it_is_wanted(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    assert stage.show(f"{HOME}p", b"<p>x").screenshot is None
    settings = stage.fetcher._settings.model_copy(update={"render_screenshots": True})
    monkeypatch.setattr(stage.fetcher, "_settings", settings)
    picture = stage.show(f"{HOME}p", b"<p>x").screenshot
    assert picture is not None
    assert picture.startswith(b"\x89PNG")


def test_a_page_that_leads_elsewhere_is_not_followed(stage: Stage) -> None:
    stage.say("/there", b"<p>there")
    for script in (b"location = '/there'", b"location.reload()", b"document.forms[0].submit()", b"open('/there')"):
        html = b"<p>here<form action=/there></form><script>" + script + b"</script>"
        outcome = stage.show(f"{HOME}leads", html)
        assert (outcome.fault, b"<p>here" in outcome.body) == (None, True), script
        assert stage.site.paths() == ["/leads"]


@pytest.mark.parametrize(
    "script",
    [
        b"history.back()",
        b"history.go(-1)",
        b"setTimeout(() => history.back(), 100)",
        b"history.pushState({}, '', '/x'); history.go(-2)",
    ],
)
def test_a_page_that_goes_back_stays_where_it_is(stage: Stage, script: bytes) -> None:
    outcome = stage.show(f"{HOME}back", b"<p>here<script>" + script + b"</script>")
    assert (outcome.fault, b"<p>here" in outcome.body) == (None, True)


@pytest.mark.parametrize(
    "target", [b"'about:blank'", b"URL.createObjectURL(new Blob(['<p>mine'], {type: 'text/html'}))"]
)
def test_what_is_read_is_a_page_of_the_site(stage: Stage, target: bytes) -> None:
    outcome = stage.show(f"{HOME}left", b"<p>here<script>location = " + target + b"</script>")
    assert (outcome.fault, outcome.body) == (Fault.BROWSER, b"")


@pytest.mark.parametrize(
    ("html", "base"),
    [
        ("history.pushState({}, '', '/pushed/deep/')", "http://a.small.test/pushed/deep/"),
        ("history.replaceState({}, '', '/new/place?a=1&b=2#c')", "http://a.small.test/new/place?a=1&b=2"),
        ("history.pushState({}, '', '/app?page=2')", "http://a.small.test/app"),
        ("location.hash = 'part'", "http://a.small.test/app"),
        ("document.head.innerHTML = '<base href=sub/>'; history.pushState({}, '', '/x/y')", "http://a.small.test/x/sub/"),
        ("document.head.innerHTML = '<base href=//b.small.test/>'; history.pushState({}, '', '/x/y')", "http://b.small.test/"),
        ("performance.getEntriesByType = null; history.pushState({}, '', '/x/y')", "http://a.small.test/app"),
    ],
)  # fmt: skip
def test_links_are_relative_to_the_address_that_a_script_gave_the_page(stage: Stage, html: str, base: str) -> None:
    outcome = stage.show(f"{HOME}app", f"<!doctype html><p>here<script>{html}</script>".encode())
    assert outcome.fault is None
    document = Document.parse(outcome.body, outcome.header("content-type"), outcome.url)
    assert document.base_url.partition("#")[0] == base


def test_a_page_that_is_filled_by_a_timer_is_waited_for(stage: Stage) -> None:
    html = (
        b"<div id=root></div><script>setTimeout(() => root.textContent = 'Here it is, ' + 'after all.', 1500)</script>"
    )
    outcome = stage.show(f"{HOME}timer", html)
    assert b"Here it is, after all." in outcome.body


def test_a_page_that_is_never_filled_is_not_waited_for_long(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_visit, "_EMPTY_S", 1.0)
    html = b"<div id=root></div><script>let n = 0; setInterval(() => root.textContent = n++ % 4, 450)</script>"
    begun = time.monotonic()
    assert stage.show(f"{HOME}never", html).fault is None
    assert time.monotonic() - begun < page_visit._RESTLESS_S / 2


def test_a_page_that_takes_its_document_away_is_read_as_it_is(stage: Stage) -> None:
    outcome = stage.show(f"{HOME}gone", b"<!doctype html><p>x<script>document.documentElement.remove()</script>")
    assert (outcome.fault, outcome.body) == (None, b"<!DOCTYPE html>\n")


# Pace.


class Meter:
    """How many requests were under way at a time."""

    def __init__(self, hold_s: float = 0.05) -> None:
        self._hold_s = hold_s
        self._lock = threading.Lock()
        self._now = self.most = self.seen = 0

    def __call__(self, _: Asked) -> Say:
        with self._lock:
            self._now += 1
            self.seen += 1
            self.most = max(self.most, self._now)
        time.sleep(self._hold_s)
        with self._lock:
            self._now -= 1
        return Say(b"{}", 200, (("Content-Type", "application/json"), ("Access-Control-Allow-Origin", "*")))


FETCH_MANY = "<p><script>for (let i = 0; i < %d; i += 1) fetch('%s/one' + (i %% 10) + '?' + i)</script>"


@pytest.mark.parametrize(("where", "at_a_time"), [("", 1), ("http://other.small.test", 2)])
def test_hosts_are_asked_few_requests_at_a_time(stage: Stage, where: str, at_a_time: int) -> None:
    meter = Meter()
    site = {f"/one{n % 10}?{n}": meter for n in range(12)}
    stage.pages.update(site)
    outcome = stage.show("http://many.small.test/many", (FETCH_MANY % (12, where)).encode())
    assert (meter.seen, meter.most) == (12, at_a_time)
    assert len(outcome.subresources) == 12
    assert {one.host for one in outcome.subresources} == {where[7:] or "many.small.test"}


@pytest.mark.parametrize("where", ["", "http://other.small.test"])
def test_a_visit_has_a_budget(stage: Stage, where: str) -> None:
    meter = Meter(0)
    stage.pages.update({f"/one{n % 10}?{n}": meter for n in range(80)})
    outcome = stage.show("http://many.small.test/many", (FETCH_MANY % (80, where)).encode())
    assert (meter.seen, len(outcome.subresources), outcome.fault) == (60, 60, None)


def test_other_hosts_are_asked_for_scripts_styles_and_data_only(stage: Stage) -> None:
    other = "http://other.small.test"
    stage.say("/s.js", b"document.body.append('script ran')", "text/javascript")
    html = f"""<link rel=stylesheet href={other}/s.css><script src={other}/s.js defer></script><p>
      <iframe src={other}/frame></iframe><img src={other}/i.png>
      <script>fetch('{other}/f').catch(() => 0); fetch('{other}/put', {{method: 'PUT'}}).catch(() => 0)</script>"""
    outcome = stage.show("http://mixed.small.test/mixed", html.encode())
    assert b"script ran" in outcome.body
    assert sorted(stage.site.paths()) == ["/f", "/mixed", "/s.css", "/s.js"]


# robots.txt.


def test_robots_holds_for_what_a_page_loads(stage: Stage) -> None:
    stage.known["ruled.small.test"] = lambda url: "/private/" not in url
    html = b"<p><script src=/private/x.js></script><iframe src=/private/y></iframe><script>fetch('/open/z')</script>"
    stage.show("http://ruled.small.test/ruled", html)
    assert stage.site.paths() == ["/ruled", "/open/z"]


def robots(text: bytes, status: int = 200) -> Callable[[Asked], Say]:
    plain = (("Content-Type", "text/plain"),)
    return lambda asked: Say(text, status, plain) if asked.host.startswith("third") else Say(b"", 404, plain)


@pytest.mark.parametrize(
    ("number", "answer", "reached"),
    [
        (1, robots(b"User-agent: *\nDisallow: /no/\n"), ["/yes/a"]),
        (2, robots(b"", 404), ["/no/b", "/yes/a"]),
        (3, robots(b"", 503), []),
    ],
)
def test_robots_of_other_hosts_is_learnt_first(
    stage: Stage, number: int, answer: Callable[[Asked], Say], reached: list[str]
) -> None:
    third = f"third{number}.small.test"
    stage.known[third] = None
    stage.pages["/robots.txt"] = answer
    html = f"<p><script>for (const p of ['/yes/a', '/no/b']) fetch('http://{third}' + p).catch(() => 0)</script>"
    outcome = stage.show("http://asks.small.test/asks", html.encode())
    asked = [one.path for one in stage.site.asked]
    assert asked[:2] == ["/asks", "/robots.txt"]
    assert sorted(asked[2:]) == reached
    assert [one.kind for one in outcome.subresources] == ["robots", *["fetch"] * len(reached)]
    stage.show("http://asks.small.test/asks")
    assert "/robots.txt" not in [one.path for one in stage.site.asked]


# Headers.


def test_headers_and_cookies_go_to_the_pages_own_host_only(stage: Stage) -> None:
    other = "http://other.small.test"
    stage.pages["/secret"] = Say(
        f"<p><script>document.cookie = 'js=2'; fetch('/own'); fetch('{other}/f').catch(() => 0); "
        "fetch('/away')</script>".encode(),
        200, (("Content-Type", "text/html"), ("Set-Cookie", "http=1; HttpOnly")),
    )  # fmt: skip
    stage.pages["/away"] = Say(b"", 302, (("Location", f"{other}/landed"),))
    headers = (("X-Token", "t"), ("Cookie", "job=0"), ("If-None-Match", '"x"'))
    stage.show("http://own.small.test/secret", headers=headers)
    by_path = {one.path: one.headers for one in stage.site.asked}
    assert by_path["/secret"]["if-none-match"] == '"x"'
    own = by_path["/own"]
    assert own["x-token"] == "t"
    assert sorted(own["cookie"].split("; ")) == ["http=1", "job=0", "js=2"]
    assert "if-none-match" not in own
    for path in ("/f", "/landed"):
        assert "x-token" not in by_path[path]
        assert "cookie" not in by_path[path]
    agents = {one.headers["user-agent"] for one in stage.site.asked}
    assert agents == {stage.fetcher._settings.full_user_agent}


def test_a_page_may_ask_its_own_way(stage: Stage) -> None:
    html = b"""<p><script>fetch('/api', {method: 'POST', body: '{"q":1}', headers: {
      'Content-Type': 'application/json', 'Accept': 'application/json', 'X-Mine': 'm'}})
      .then(r => r.text()).then(t => document.body.append(navigator.userAgent + t))</script>"""
    stage.pages["/api"] = Say(b"answered", 200, (("Content-Type", "application/json"),))
    outcome = stage.show("http://api.small.test/page", html)
    assert f"{stage.fetcher._settings.full_user_agent}answered" in outcome.body.decode()
    asked = next(one for one in stage.site.asked if one.path == "/api").headers
    assert (asked["accept"], asked["x-mine"], asked["content-type"]) == ("application/json", "m", "application/json")


def test_static_files_are_kept_for_their_time_and_by_what_was_sent(stage: Stage) -> None:
    kinds = {"kept": "max-age=60", "never": "no-store", "old": "max-age=0"}
    for name, said in kinds.items():
        stage.say(f"/{name}.js", b"1", "text/javascript", 200, ("Cache-Control", said))
    html = "".join(f"<script src=/{name}.js></script>" for name in kinds).encode()
    url = "http://static.small.test/"
    assert len(stage.show(url, html).subresources) == 3
    again = stage.show(url)
    assert [one.url.rpartition("/")[2] for one in again.subresources] == ["never.js", "old.js"]
    assert len(stage.show(url, headers=(("X-Token", "t"),)).subresources) == 3


# Ends.


def test_nothing_is_sent_after_the_deadline(stage: Stage) -> None:
    assert stage.show(f"{HOME}soon", b"<p>x").fault is None
    outcome = stage.show(f"{HOME}late", b"<p>x", deadline=boot_clock() + 0.5)
    assert (outcome.fault, outcome.started) == (Fault.SLOT_EXPIRED, None)
    assert stage.site.paths() == []
    html = b"<p><script>setInterval(() => fetch('/again?' + Math.random()).catch(() => 0), 50)</script>"
    deadline = boot_clock() + 8
    outcome = stage.show(f"{HOME}busy", html, deadline=deadline)
    assert outcome.ended <= deadline
    assert outcome.subresources
    assert all(one.started <= deadline - 3 for one in outcome.subresources)


def test_a_visit_that_is_cancelled_says_what_was_sent(stage: Stage) -> None:
    asked = threading.Event()
    release = threading.Event()

    def hold(_: Asked) -> Say:
        asked.set()
        release.wait(10)
        return Say(b"x")

    stage.pages["/held"] = hold
    stage.say("/cancelled", b"<p><script>fetch('/held')</script>")

    async def go() -> tuple[Outcome, Outcome]:
        job = page_job(f"{HOME}cancelled")
        future = begin(stage.fetcher, job)
        await asyncio.to_thread(asked.wait, 10)
        stage.fetcher.cancel(job.id, unsent_only=True)
        await asyncio.sleep(0)
        assert not future.done()
        stage.fetcher.cancel(job.id)
        outcome = await future
        unsent = page_job(f"{HOME}never")
        future = begin(stage.fetcher, unsent)
        stage.fetcher.cancel(unsent.id, unsent_only=True)
        return outcome, await future

    outcome, never = stage.run(go())
    release.set()
    assert outcome.fault is Fault.CANCELLED
    assert outcome.started is not None
    assert outcome.broken_off
    assert [one.url for one in outcome.subresources] == [f"{HOME}held"]
    assert (never.fault, never.started) == (Fault.CANCELLED, None)
    assert stage.fetcher.in_flight == 0


def test_a_browser_is_replaced_after_so_many_pages(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    stage.show(f"{HOME}p", b"<p>x")
    engine = stage.engine
    assert engine is not None
    monkeypatch.setattr(engine, "_settings", engine._settings.model_copy(update={"render_recycle_pages": 1}))
    assert stage.show(f"{HOME}p").fault is None
    assert stage.engine is None
    assert stage.show(f"{HOME}p").fault is None
    assert stage.engine not in (None, engine)
    stage.run(engine.close())
    assert not engine.chromium.alive
