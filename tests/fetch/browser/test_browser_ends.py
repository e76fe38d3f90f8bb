"""However a browser, a page or a worker ends: the visit is told, the next one is served, and no process is left."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rendered import Stage, begin, browser_pids, page_job, staged
from small_site import SmallSite

from curtsy.core.outcome import Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.fetch import page_visit, renderer
from curtsy.fetch.chromium import Chromium, find
from curtsy.fetch.transfer import boot_clock

HOME = "http://a.small.test/"
#: of a visit that is to hang: long enough to begin, soon over
SHORT = {"timeout_s": 5.0}


def engine_of(stage: Stage) -> Chromium:
    engine = stage.engine
    assert engine is not None
    return engine.chromium


def until(condition: Callable[[], bool], what: str, limit_s: float = 20) -> None:
    deadline = time.monotonic() + limit_s
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def command(pid: int) -> bytes:
    try:
        return Path("/proc", str(pid), "cmdline").read_bytes()
    except OSError:
        return b""


def renderers(stage: Stage) -> list[int]:
    return [pid for pid in engine_of(stage).pids if b"--type=renderer" in command(pid)]


def main_process(stage: Stage) -> int:
    return next(pid for pid in engine_of(stage).pids[1:] if b"--type=" not in command(pid))


def waiting(stage: Stage, end: Callable[[], None]) -> Outcome:
    """A visit under way when `end` is called."""
    stage.say("/waits", b"<p>x<script>fetch('/begun'); setInterval(() => document.body.append('.'), 50)</script>")
    stage.site.asked.clear()

    async def go() -> Outcome:
        future = begin(stage.fetcher, page_job(f"{HOME}waits"))
        await asyncio.to_thread(until, lambda: "/begun" in stage.site.paths(), "the page was not shown")
        end()
        return await future

    outcome: Outcome = stage.run(go())
    return outcome


def test_a_page_whose_process_dies_is_reported_and_the_browser_stays(stage: Stage) -> None:
    stage.show(f"{HOME}p", b"<p>x")
    engine = engine_of(stage)

    def end() -> None:
        for pid in renderers(stage):
            os.kill(pid, signal.SIGKILL)

    outcome = waiting(stage, end)
    assert (outcome.status, outcome.fault, outcome.body) == (200, Fault.BROWSER, b"")
    assert stage.show(f"{HOME}p").fault is None
    assert engine_of(stage) is engine


@pytest.mark.parametrize("who", ["browser", "watcher"])
def test_a_browser_that_is_killed_is_replaced_and_leaves_nothing(stage: Stage, who: str) -> None:
    stage.show(f"{HOME}p", b"<p>x")
    engine = engine_of(stage)
    before = engine.pids
    outcome = waiting(stage, lambda: os.kill(main_process(stage) if who == "browser" else before[0], signal.SIGKILL))
    assert (outcome.status, outcome.fault) == (200, Fault.BROWSER)
    assert outcome.started is not None
    assert [one.url for one in outcome.subresources] == [f"{HOME}begun"]
    until(lambda: not set(before) & set(browser_pids()), "processes are left")
    assert stage.show(f"{HOME}p").fault is None
    assert engine_of(stage) is not engine


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_browser_that_dies_or_hangs_while_a_page_is_opened_is_replaced(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    """Between its context and its page nobody would answer any more."""
    stage.show(f"{HOME}p", b"<p>x")
    engine = engine_of(stage)
    before = engine.pids

    async def struck(*given: Any) -> Any:
        context = await page_visit.new_context(*given)
        os.kill(main_process(stage), how)
        return context

    with monkeypatch.context() as patched:
        patched.setattr(renderer, "new_context", struck)
        outcome = stage.show(f"{HOME}p", **SHORT)
    assert (outcome.status, outcome.fault) == (200, Fault.BROWSER)
    until(lambda: not set(before) & set(browser_pids()), "processes are left")
    assert stage.show(f"{HOME}p").fault is None
    assert engine_of(stage) is not engine


def test_a_page_is_not_asked_for_while_no_browser_starts(tmp_path: Path) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with staged(chromium=str(program)) as stage:
        stage.say("/p", b"<p>x")
        outcome = stage.show(f"{HOME}p", deadline=boot_clock() + 4, timeout_s=4)
        assert (outcome.fault, outcome.started) == (Fault.SLOT_EXPIRED, None)
        assert stage.site.paths() == []
        # It is mended: the next try finds it.
        program.write_text(f'#!/bin/sh\nexec {find(Settings())} "$@"\n')
        assert stage.show(f"{HOME}p").fault is None


@pytest.mark.parametrize(
    "script",
    [
        "while (true);",
        "while (true) alert(1);",
        "onbeforeunload = () => 'stay'; while (true) confirm('?');",
    ],
)
def test_a_page_that_hangs_ends_in_time(stage: Stage, script: str) -> None:
    job = page_job(f"{HOME}hangs", **SHORT)
    stage.say("/hangs", f"<p>x<script>{script}</script>".encode())

    async def go() -> Outcome:
        return await begin(stage.fetcher, job)

    outcome = stage.run(go())
    assert (outcome.status, outcome.fault) == (200, Fault.BROWSER)
    assert outcome.started is not None
    assert outcome.ended - outcome.started < SHORT["timeout_s"] + 0.5
    assert stage.show(f"{HOME}p", b"<p>well</p>").body.count(b"<p>well</p>") == 1


def test_a_page_that_eats_memory_ends_alone(stage: Stage) -> None:
    html = b"<p>x<script>const all = []; while (true) all.push(new Array(250000).fill(all.length + 0.5))</script>"
    outcome = stage.show(f"{HOME}eats", html)
    assert (outcome.status, outcome.fault) == (200, Fault.BROWSER)
    assert stage.show(f"{HOME}p", b"<p>x").fault is None


def test_a_browser_that_eats_memory_beyond_its_heaps_is_ended() -> None:
    with staged(render_recycle_mb=300) as stage:
        html = b"""<p>x<script>const all = [];
          for (let i = 0; i < 20; i += 1) all.push(new Uint8Array(40000000).fill(1));
          setInterval(() => document.body.append(all.length), 50)</script>"""
        outcome = stage.show(f"{HOME}eats", html)
        assert (outcome.status, outcome.fault) == (200, Fault.BROWSER)
        assert stage.show(f"{HOME}p", b"<p>x").fault is None


def test_downloads_are_refused(stage: Stage) -> None:
    stage.say("/file.bin", b"\0" * 1000, "application/octet-stream", 200, ("Content-Disposition", "attachment"))
    html = b"""<p>x<a id=a href=/file.bin download></a><iframe src=/file.bin></iframe><script>
      document.getElementById('a').click();
      const b = document.createElement('a'); b.href = URL.createObjectURL(new Blob(['x'])); b.download = 'b'; b.click();
    </script>"""
    outcome = stage.show(f"{HOME}downloads", html)
    assert (outcome.fault, b"<p>x" in outcome.body) == (None, True)
    profile = engine_of(stage)._profile
    assert not [file for file in profile.rglob("*") if file.name in ("file.bin", "b") or "Download" in file.name]


def test_a_closed_fetcher_leaves_no_process_and_no_folder() -> None:
    with staged() as stage:
        stage.show(f"{HOME}p", b"<p>x")
        chromium = engine_of(stage)
        pids, profile = chromium.pids, chromium._profile
        assert len(pids) > 3
    assert not set(pids) & set(browser_pids())
    assert not profile.exists()


WORKER = """
import asyncio, sys
sys.path[:0] = {path!r}
from rendered import page_job, begin, rendering
async def main():
    async with rendering(resolve=({rule!r},)) as fetcher:
        await asyncio.gather(*(begin(fetcher, page_job("http://a.small.test/" + name)) for name in ("waits", "hangs")))
asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_worker_that_is_killed_leaves_no_browser(number: int) -> None:
    with SmallSite({}) as site:
        pages = site.pages
        assert isinstance(pages, dict)
        with staged(site=site) as writer:
            writer.say(
                "/waits", b"<p>x<script>fetch('/begun'); setInterval(() => document.body.append('.'), 50)</script>"
            )
            writer.say("/hangs", b"<p>x<script>while (true);</script>")
        code = WORKER.format(path=sys.path, rule=site.resolve_rule)
        worker = subprocess.Popen([sys.executable, "-c", code])
        try:
            until(lambda: "/begun" in site.paths(), "the page was not shown")
            family = browser_pids(worker.pid)
            assert len(family) > 3
        finally:
            worker.send_signal(number)
            worker.wait(20)
        until(lambda: not set(family) & set(browser_pids()), "processes of Chromium are left")


def test_a_browser_starts_where_the_folder_for_its_profile_has_a_long_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The path of a socket has room for 107 bytes, and the browser makes one below its profile."""
    deep = tmp_path / ("x" * 60)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))

    async def go() -> None:
        made = await Chromium.start(Settings())
        assert made.alive
        made.kill()
        assert await made.gone()

    asyncio.run(go())
    assert not list(deep.iterdir())
