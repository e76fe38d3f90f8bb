"""A page that asks for places it must not reach, in every way a page can ask, reaches none."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path
from typing import Any

import pytest
from dns_server import A, Zone
from hostile import port_of, reached, write
from private_places import Listener, naming
from rendered import staged, visit
from small_site import SmallSite

from curtsy.core.outcome import Fault, Outcome
from curtsy.fetch import chromium
from curtsy.fetch.browser_requests import Gate

#: a page on a busy machine may be done before the browser has sent its datagrams
TRIES = 10
HOSTS = ["127.0.0.1", "[::1]", "2130706433", "localhost", "inward.example.test"]


def test_hostile_pages_reach_no_private_place(forbidden: Listener, datagrams: socket.socket) -> None:
    zone: Zone = {"inward.example.test": [(A, "127.0.0.1", 60)]}
    with naming(zone) as dns, SmallSite({}) as site, staged(dns_servers=(dns.address,), site=site) as stage:
        for number, host in enumerate(HOSTS):
            write(stage.pages, datagrams.getsockname()[1], f"//{host}:{port_of(forbidden)}", f"hostile{number}")

        async def go() -> list[Outcome]:
            urls = [f"http://a{number}.small.test/hostile{number}" for number in range(len(HOSTS))]
            return await asyncio.gather(*(visit(stage.fetcher, url) for url in urls))

        outcomes = stage.run(go())
    for number, outcome in enumerate(outcomes):
        assert (outcome.fault, b"text" in outcome.body, b" done" in outcome.body) == (None, True, True)
        assert f"/hostile{number}/leads-there" in site.paths()
        assert {one.host for one in outcome.subresources} == {f"a{number}.small.test"}
    assert forbidden.connections == 0
    assert not reached(datagrams)


async def let_pass(gate: Gate, route: Any, request: Any) -> None:
    """A gate that guards nothing."""
    if gate._is_main(request) and gate._main_url is None:
        await gate._answer_main(route, request.url)
    else:
        await route.continue_()


def unsealed(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    watch = folder / "watch.py"
    watch.write_text(chromium._WATCH.read_text().replace("if seal()", "if False"))
    monkeypatch.setattr(chromium, "_WATCH", watch)


def show_past_the_gate(forbidden: Listener, datagrams: socket.socket, sealed: bool) -> Outcome:
    with staged() as stage:
        write(stage.pages, datagrams.getsockname()[1], f"//127.0.0.1:{port_of(forbidden)}")
        outcome = stage.show("http://a.small.test/hostile")
        assert stage.site.paths() == ["/hostile"]
        assert stage.engine is not None
        assert stage.engine.chromium.sealed is sealed
    return outcome


@pytest.mark.parametrize("sealed", [True, False])
def test_requests_that_bypass_the_filter_reach_no_server(
    forbidden: Listener, datagrams: socket.socket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sealed: bool
) -> None:
    """The second and third lines: the browser's own network leads nowhere, and the kernel lets nothing out."""
    if not sealed:
        unsealed(monkeypatch, tmp_path)
    monkeypatch.setattr(Gate, "on_route", let_pass)
    assert show_past_the_gate(forbidden, datagrams, sealed).status == 200
    assert forbidden.connections == 0
    assert not reached(datagrams)


def test_without_any_of_these_the_page_would_reach_them(
    forbidden: Listener, datagrams: socket.socket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    unsealed(monkeypatch, tmp_path)
    monkeypatch.setattr(Gate, "on_route", let_pass)
    usual = chromium.command_line

    def without_network_options(*given: Any) -> list[str]:
        return [word for word in usual(*given) if not any(part in word for part in ("proxy", "resolver", "webrtc"))]

    monkeypatch.setattr(chromium, "command_line", without_network_options)
    for _ in range(TRIES):
        show_past_the_gate(forbidden, datagrams, False)
        if forbidden.connections > 5 and reached(datagrams):
            break
    else:
        pytest.fail("the page is harmless: the tests above show nothing")


def test_the_page_itself_is_guarded() -> None:
    with staged() as stage, socket.create_server(("127.0.0.1", 0)) as server:
        outcome = stage.show(f"http://127.0.0.1:{server.getsockname()[1]}/")
        assert (outcome.fault, outcome.started) == (Fault.FORBIDDEN_ADDRESS, None)


def test_denied_hosts_are_not_asked_by_pages_either() -> None:
    with staged(deny_hosts=("no*.small.test",)) as stage:
        script = b"for (const h of ['no1', 'yes']) fetch('http://' + h + '.small.test/x').catch(() => 0)"
        stage.show("http://a.small.test/", b"<p><script>" + script + b"</script>")
        assert [one.host for one in stage.site.asked] == ["a.small.test", "yes.small.test"]


def test_service_workers_are_not_registered() -> None:
    with SmallSite({}) as site, staged(site=site, resolve=(f"localhost=127.0.0.1:{site.port}",)) as stage:
        stage.say("/sw.js", b"1", "text/javascript")
        html = b"""<p><script>const say = (what) => document.body.append('has ' + what);
          Promise.race([navigator.serviceWorker.register('/sw.js').then((one) => one ? 'one' : 'none'),
            new Promise((done) => setTimeout(() => done('none'), 800))]).then(say, () => say('none'))</script>"""
        outcome = stage.show("http://localhost/", html)
    assert b"has none" in outcome.body
    assert site.paths() == ["/"]
