"""The parts of rendering that need no browser: what is kept, what is learnt, what is shown, how it is started."""

from __future__ import annotations

import asyncio
import os

import pytest

from curtsy.core.errors import MissingPart, SettingsError
from curtsy.core.outcome import Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.core.settings_loading import load
from curtsy.fetch import chromium
from curtsy.fetch.asset_cache import AssetCache, keeps_s
from curtsy.fetch.renderer import is_shown
from curtsy.fetch.third_party_robots import ThirdPartyRobots


def answer(body: bytes = b"x", status: int = 200, fault: Fault | None = None, **headers: str) -> Outcome:
    lines = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Outcome(url="http://a.test/x", status=status, headers=lines, body=body, fault=fault, started=0.5, ended=1.0)


@pytest.mark.parametrize(
    ("outcome", "seconds"),
    [
        (answer(), 300),
        (answer(Cache_Control="public, max-age=60"), 60),
        (answer(Cache_Control="max-age=99999999"), 3600),
        (answer(Cache_Control="max-age=0"), 0),
        (answer(Cache_Control="No-Store"), 0),
        (answer(Cache_Control="private, max-age=60"), 0),
        (answer(Set_Cookie="a=1"), 0),
        (answer(Vary="*"), 0),
        (answer(status=404), 0),
        (answer(fault=Fault.TIMEOUT), 0),
    ],
)
def test_static_files_are_kept_as_long_as_their_host_allows(outcome: Outcome, seconds: float) -> None:
    assert keeps_s(outcome) == seconds


def test_the_cache_is_bounded_and_the_least_used_go_first() -> None:
    cache = AssetCache(max_bytes=250)
    for name in "abc":
        cache.put(name, answer(b"x" * 100), 0)
        cache.get("a", 0)
    assert [cache.get(name, 0) is not None for name in "abc"] == [True, False, True]
    assert cache.size == 200
    assert cache.get("a", 300) is None
    assert cache.size == 100


class Host:
    """Answers for robots.txt, and counts how often it was asked."""

    def __init__(self, *answers: Outcome) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def ask(self, url: str, _max_bytes: int) -> Outcome:
        self.asked.append(url)
        await asyncio.sleep(0)
        return self._answers.pop(0)


def test_rules_of_strangers_are_asked_once_and_kept_for_a_while() -> None:
    host = Host(answer(b"User-agent: *\nDisallow: /no"), answer(status=404))
    now = [0.0]

    async def go() -> None:
        strangers = ThirdPartyRobots()
        both = ("http://b.test/yes", "http://b.test/no")
        found = await asyncio.gather(*(strangers.allows(url, "curtsy", host.ask, lambda: now[0]) for url in both))
        assert found == [True, False]
        assert host.asked == ["http://b.test/robots.txt"]
        now[0] = 3601
        assert await strangers.allows("http://b.test/no", "curtsy", host.ask, lambda: now[0])
        assert len(host.asked) == 2

    asyncio.run(go())


def test_a_stranger_that_does_not_tell_is_not_asked_for_anything_until_it_does() -> None:
    host = Host(answer(status=503), answer(status=301, Location="http://c.test/r"), answer(b"User-agent: *\nAllow: /"))
    now = [0.0]

    async def go() -> None:
        strangers = ThirdPartyRobots()
        for _ in range(3):
            assert not await strangers.allows("http://b.test/", "curtsy", host.ask, lambda: now[0])
        assert len(host.asked) == 1
        now[0] = 61
        assert await strangers.allows("http://b.test/", "curtsy", host.ask, lambda: now[0])
        assert host.asked[1:] == ["http://b.test/robots.txt", "http://c.test/r"]

    asyncio.run(go())


def test_who_waits_for_a_visit_that_is_broken_off_is_refused() -> None:
    async def go() -> None:
        strangers = ThirdPartyRobots()
        asked = asyncio.Event()

        async def never(_url: str, _max_bytes: int) -> Outcome:
            asked.set()
            await asyncio.Event().wait()
            raise AssertionError

        first = asyncio.ensure_future(strangers.allows("http://b.test/", "curtsy", never, lambda: 0.0))
        await asked.wait()
        second = asyncio.ensure_future(strangers.allows("http://b.test/", "curtsy", never, lambda: 0.0))
        await asyncio.sleep(0)
        first.cancel()
        assert await second is False

    asyncio.run(go())


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (answer(Content_Type="text/html; charset=utf-8"), True),
        (answer(Content_Type="Application/XHTML+XML"), True),
        (answer(b" <p>"), True),
        (answer(b"{}"), False),
        (answer(Content_Type="application/json"), False),
        (answer(b"", Content_Type="text/html"), False),
        (answer(status=404, Content_Type="text/html"), False),
        (answer(status=302, Content_Type="text/html"), False),
        (answer(fault=Fault.TOO_LARGE, Content_Type="text/html"), False),
        (answer(Content_Type="text/html", Content_Disposition="Attachment"), False),
    ],
)
def test_only_pages_are_shown(outcome: Outcome, shown: bool) -> None:
    assert is_shown(outcome) is shown


@pytest.mark.parametrize("user", [0, 1000])
def test_the_sandbox_is_left_out_only_as_root(user: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    line = chromium.command_line("chromium", "folder", 9)
    assert ("--no-sandbox" in line) is (user == 0)
    assert "--proxy-server=http://127.0.0.1:9" in line


def test_a_browser_that_is_named_and_not_there_is_missing() -> None:
    with pytest.raises(MissingPart, match="apt install chromium"):
        chromium.find(Settings(chromium="no-such-browser"))


def test_a_visit_ends_before_its_slot() -> None:
    with pytest.raises(SettingsError, match="raise render_slot_s above 88"):
        load(render_timeout_s=80)
