"""One browser follows another: no visit is lost between them, and two are not held at a time without need."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

import pytest
from rendered import Stage, begin, page_job, staged
from small_site import Asked, Say
from waiting import until

from curtsy.core.outcome import Outcome
from curtsy.core.settings import Settings
from curtsy.fetch import browser
from curtsy.fetch.browser import Engine

HOME = "http://a.small.test/"
#: its script is answered when the test says so; until then the page is under way
HELD = b"<p>held<script src=/held></script>"


def held_until(release: threading.Event) -> Callable[[Asked], Say]:
    def answer(_: Asked) -> Say:
        release.wait(60)
        return Say(b"0", headers=(("Content-Type", "text/javascript"),))

    return answer


async def asked(stage: Stage, path: str) -> None:
    await asyncio.to_thread(until, lambda: path in stage.site.paths())


def watched(monkeypatch: pytest.MonkeyPatch) -> list[list[bool]]:
    """At each start of a browser: which of those before were gone."""
    started: list[Engine] = []
    seen: list[list[bool]] = []
    real = Engine.start

    async def start(settings: Settings) -> Engine:
        seen.append([not one.chromium.alive for one in started])
        made = await real(settings)
        started.append(made)
        return made

    monkeypatch.setattr(Engine, "start", start)
    return seen


def test_a_page_whose_browser_is_replaced_while_it_is_on_its_way_is_shown_by_the_next() -> None:
    release = threading.Event()
    with staged(render_recycle_pages=1) as stage:
        stage.pages["/late"] = lambda _: (release.wait(60), Say(b"<p>late"))[1]
        stage.say("/p", b"<p>x")

        async def go() -> Outcome:
            late = begin(stage.fetcher, page_job(f"{HOME}late"))
            await asked(stage, "/late")
            before = stage.engine
            assert before is not None
            assert (await begin(stage.fetcher, page_job(f"{HOME}p"))).fault is None
            await before.gone.wait()
            release.set()
            return await late

        outcome = stage.run(go())
        assert (outcome.fault, b"late" in outcome.body) == (None, True)
        assert stage.site.paths().count("/late") == 1


def test_the_next_browser_starts_when_the_one_before_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "HANDOVER_S", 60.0)
    seen = watched(monkeypatch)
    release = threading.Event()
    with staged(render_recycle_pages=2) as stage:
        stage.say("/slow", HELD)
        stage.pages["/held"] = held_until(release)
        stage.say("/p", b"<p>x")

        async def go() -> list[Outcome]:
            slow = begin(stage.fetcher, page_job(f"{HOME}slow"))
            await asked(stage, "/held")
            first = await begin(stage.fetcher, page_job(f"{HOME}p"))
            assert stage.engine is None
            second = begin(stage.fetcher, page_job(f"{HOME}p"))
            release.set()
            return [await slow, first, await second]

        assert [outcome.fault for outcome in stage.run(go())] == [None, None, None]
    assert seen == [[], [True]]


def test_a_visit_that_takes_long_does_not_keep_the_next_browser_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "HANDOVER_S", 0.0)
    seen = watched(monkeypatch)
    release = threading.Event()
    with staged(render_recycle_pages=2) as stage:
        stage.say("/slow", HELD)
        stage.pages["/held"] = held_until(release)
        stage.say("/p", b"<p>x")

        async def go() -> list[Outcome]:
            slow = begin(stage.fetcher, page_job(f"{HOME}slow"))
            await asked(stage, "/held")
            first = await begin(stage.fetcher, page_job(f"{HOME}p"))
            second = await begin(stage.fetcher, page_job(f"{HOME}p"))
            release.set()
            return [await slow, first, second]

        assert [outcome.fault for outcome in stage.run(go())] == [None, None, None]
    assert seen == [[], [False]]
