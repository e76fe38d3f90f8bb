"""A crawl reaches no private place, however it is written, named, linked or redirected to.

The web here is a site on 127.0.0.2, which the settings allow and so stands for the public; a listener on 127.0.0.1 at
the same port counts whoever comes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvloop
from crawl_folder import CrawlFolder
from dns_server import AAAA, A, DnsServer, Zone
from private_places import FORMS, Listener, listening, naming
from small_site import Asked, Say, SmallSite, linking

from curtsy.core.model import Crawl, CrawlState
from curtsy.core.outcome import Fault, Outcome
from curtsy.core.settings import Settings
from curtsy.fetch.http import FetchJob, HttpFetcher, boot_clock
from curtsy.records import stages
from curtsy.rules.urls import normalise
from curtsy.store import crawls, failures
from curtsy.store.engine import Store
from curtsy.web.factory import create_app

PUBLIC, PRIVATE = "127.0.0.2", "127.0.0.1"
ALLOWED = ("127.0.0.2/32", "127.0.0.3/32")


def zone() -> Zone:
    return {
        **{f"{name}.small.test": [(A, PUBLIC, 60)] for name in ("www", "robots", "maps", "base", "rebinding")},
        "inside.test": [(A, PRIVATE, 60)],
        "inside6.test": [(AAAA, "::1", 60)],
        "mapped.test": [(AAAA, "::ffff:127.0.0.1", 60)],
        "cloud.test": [(A, "169.254.169.254", 60)],
        "mixed.test": [(A, PRIVATE, 60), (A, PUBLIC, 60)],
        # Nobody listens on the allowed one.
        "bait.test": [(A, "127.0.0.3", 60), (A, PRIVATE, 60)],
    }


NAMES = ("inside.test", "inside6.test", "mapped.test", "cloud.test", "localhost")


def to(place: str) -> Say:
    return Say(b"", 302, (("Location", place),))


@dataclass
class Web:
    """The site that lures, the listener that counts, and what a crawl of it left."""

    site: SmallSite
    listener: Listener
    dns: DnsServer

    def url(self, host: str, path: str = "/") -> str:
        return f"http://{host}:{self.site.port}{path}"

    def settings(self) -> dict[str, Any]:
        return {"dns_servers": [self.dns.address], "allow_private": list(ALLOWED)}


def lures(port: int) -> dict[str, Any]:
    """Pages of the site: links to every private place, redirects there, directly and in chains, and more."""
    places = {name: f"http://{host}:{port}/{number}" for number, (name, host) in enumerate(FORMS.items())}
    inside = f"http://{PRIVATE}:{port}"

    def robots(asked: Asked) -> Say:
        if asked.host.startswith("robots."):
            return to(f"{inside}/robots.txt")
        if asked.host.startswith("maps."):
            listed = f"Sitemap: {inside}/map.xml\nSitemap: http://inside.test:{port}/map.xml\n"
            return Say(f"{listed}Sitemap: http://maps.small.test:{port}/map.xml\n".encode())
        return Say(b"", 404)

    return {
        "/": linking(*places.values(), *(f"/redirect/{number}" for number in range(len(FORMS))), "/chain/1", "/meta"),
        **{f"/redirect/{number}": to(f"http://{host}:{port}/r{number}") for number, host in enumerate(FORMS.values())},
        "/chain/1": to("/chain/2"),
        "/chain/2": to(f"http://www.small.test:{port}/chain/3"),
        "/chain/3": to(f"{inside}/chain"),
        "/meta": Say(
            f'<title>x</title><meta http-equiv="refresh" content="0; url={inside}/meta">'
            f'<link rel="canonical" href="{inside}/canonical"><a href="//inside.test:{port}/x">x</a>'.encode()
        ),
        "/based": Say(f'<title>x</title><base href="{inside}/below/"><a href="page">x</a>'.encode()),
        "/robots.txt": robots,
        "/map.xml": to(f"{inside}/map.xml"),
        "/busy": Say(b"", 503),
    }


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    pages: dict[str, Any] = {}
    with SmallSite(pages, PUBLIC) as site, listening(site.port) as listener, naming(zone()) as dns:
        pages |= lures(site.port)
        yield Web(site, listener, dns)


@pytest.fixture(scope="module")
def ends(web: Web, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What became of every URL of one crawl, handed in over the API, that follows every lure."""
    folder = CrawlFolder(tmp_path_factory.mktemp("ssrf"), **web.settings(), robots_delay_cap_s=0, host_patience_s=12)
    hosts = ("www.small.test", "robots.small.test", "maps.small.test", *NAMES, "mixed.test", "bait.test")
    seeds = [*(web.url(host) for host in hosts), web.url("base.small.test", "/based")]
    app = create_app(folder.settings())
    try:
        answer = app.test_client().post("/v1/crawls", json={"seeds": seeds, "scope": "any", "delay_s": 0.02})
        assert answer.status_code == 202, answer.text
    finally:
        app.extensions["curtsy"].close()
    folder.resume(answer.get_json()["id"])
    folder.close()
    return folder.ends()


def normal(web: Web, host: str, path: str) -> str:
    found = normalise(web.url(host, path))
    assert found is not None
    return found


@pytest.mark.parametrize("form", FORMS)
def test_a_link_to_a_private_address_is_not_followed(web: Web, ends: dict[str, str], form: str) -> None:
    number = list(FORMS).index(form)
    assert ends[normal(web, FORMS[form], f"/{number}")] == "skipped forbidden_address"
    assert web.listener.connections == 0


@pytest.mark.parametrize("form", FORMS)
def test_a_redirect_to_a_private_address_is_not_followed(web: Web, ends: dict[str, str], form: str) -> None:
    number = list(FORMS).index(form)
    assert web.site.paths().count(f"/redirect/{number}") >= 1
    assert ends[normal(web, FORMS[form], f"/r{number}")] == "skipped forbidden_address"
    assert web.listener.connections == 0


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_leads_to_a_private_address_is_not_asked(web: Web, ends: dict[str, str], name: str) -> None:
    assert ends[web.url(name)] == "skipped forbidden_address"
    assert web.listener.connections == 0


@pytest.mark.parametrize(
    ("lure", "path"),
    [
        ("a chain of redirects", "/chain"),
        ("a refresh", "/meta"),
        ("a canonical address", "/canonical"),
        ("a base", "/below/page"),
        ("robots.txt that redirects", "/robots.txt"),
        ("a sitemap that robots.txt names", "/map.xml"),
    ],
)
def test_no_lure_leads_to_a_private_address(web: Web, ends: dict[str, str], lure: str, path: str) -> None:
    assert ends.get(web.url(PRIVATE, path), "skipped forbidden_address") == "skipped forbidden_address", lure
    assert web.listener.connections == 0


def test_the_lures_were_taken(web: Web, ends: dict[str, str]) -> None:
    """Else the tests above would prove nothing."""
    asked = {(one.host.partition(":")[0], one.path) for one in web.site.asked}
    assert {
        ("www.small.test", "/chain/3"),
        ("www.small.test", "/meta"),
        ("base.small.test", "/based"),
        ("robots.small.test", "/robots.txt"),
        ("maps.small.test", "/map.xml"),
    } <= asked
    for path in ("/chain", "/below/page"):
        assert ends[web.url(PRIVATE, path)] == "skipped forbidden_address"


def test_of_a_name_with_both_only_the_public_address_is_used(web: Web, ends: dict[str, str]) -> None:
    assert ends[web.url("mixed.test")] == "done"
    assert ends[web.url("bait.test")].startswith("failed"), "the private one is no way out"
    assert web.listener.connections == 0


def run(test: Any) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(test())


async def fetch(fetcher: HttpFetcher, url: str, id: int, **changes: Any) -> Outcome:
    told: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
    job = FetchJob(id=id, url=url, deadline=boot_clock() + 10, timeout_s=5, max_bytes=10_000, **changes)
    fetcher.start(job, lambda _id, outcome: told.set_result(outcome))
    return await told


@pytest.fixture
def rebinding(web: Web) -> Iterator[Callable[[str], None]]:
    """Sets where the name leads from now on."""
    name = "rebinding.small.test"

    def lead(address: str) -> None:
        web.dns.zone[name] = [(A, address, 0)]

    lead(PUBLIC)
    yield lead
    lead(PUBLIC)


def test_a_name_that_changes_its_mind_is_pinned_and_then_refused(web: Web, rebinding: Callable[[str], None]) -> None:
    """The first answer is public. The next one, a moment later and with no TTL at all, is private."""
    url = web.url("rebinding.small.test")

    async def test() -> None:
        fetcher = HttpFetcher(Settings(**web.settings()), asyncio.get_running_loop())
        try:
            assert (await fetch(fetcher, url, 1)).address == PUBLIC
            rebinding(PRIVATE)
            assert (await fetch(fetcher, url, 2)).address == PUBLIC, "pinned, however short the TTL"
            fetcher._resolver._cache.clear()  # as after its time
            for id in (3, 4):
                outcome = await fetch(fetcher, url, id)
                assert (outcome.fault, outcome.started) == (Fault.FORBIDDEN_ADDRESS, None)
            # On a new connection too, not only on the kept one.
            assert fetcher.drop_idle(-1.0) >= 0
            assert (await fetch(fetcher, url, 5)).fault is Fault.FORBIDDEN_ADDRESS
        finally:
            await fetcher.close()

    run(test)
    assert web.listener.connections == 0


def test_a_name_that_resolves_differently_during_a_crawl_gets_no_request(
    web: Web, rebinding: Callable[[str], None], tmp_path: Any
) -> None:
    folder = CrawlFolder(tmp_path, **web.settings())
    url = web.url("rebinding.small.test", "/meta")
    try:
        folder.crawl(url)
        assert folder.ends()[url] == "done"
        rebinding(PRIVATE)
        folder.crawl(url)  # a later crawl asks anew
        assert folder.ends()[url] == "skipped forbidden_address"
    finally:
        folder.close()
    assert web.listener.connections == 0


def test_a_webhook_whose_name_resolves_differently_is_not_sent(
    web: Web, rebinding: Callable[[str], None], tmp_path: Any
) -> None:
    """The first try reaches the public address, which does not take it (503); the next one would be private."""
    secrets = {"webhook_secret": "a secret of some length", "webhook_timeout_s": 3}

    @dataclass
    class Parts:
        store: Store
        settings: Settings

    with Store.open(f"sqlite:///{tmp_path / 'curtsy.sqlite'}") as store:
        parts: Any = Parts(store, Settings(**web.settings(), **secrets))
        told = Crawl(id="c", request_id="r", state=CrawlState.RUNNING, webhook=web.url("rebinding.small.test", "/busy"))
        with store.begin() as tx:
            n = crawls.create(tx, told).n
            crawls.set_state(tx, n, CrawlState.FINISHED, None, int(time.time() * 1000))

        def tell(at_ms: int) -> None:
            async def all_due() -> None:
                for sending in stages.sweep(store, parts.settings, at_ms):
                    await stages.run(parts, sending.kind, sending.n, at_ms)

            run(all_due)

        now_ms = int(time.time() * 1000)
        tell(now_ms)
        with store.read() as tx:
            assert failures.find(tx, crawl=n) == []
        rebinding(PRIVATE)
        tell(now_ms + 60_000)
        with store.read() as tx:
            assert [dead.cause for dead in failures.find(tx, crawl=n)] == ["forbidden_address"]
    assert web.listener.connections == 0


def test_the_listener_counts(web: Web) -> None:
    """Last: it would have seen a connection."""
    import socket

    before = web.listener.connections
    with socket.create_connection((PRIVATE, web.site.port)) as connection:
        assert connection.recv(1) == b""
    assert web.listener.connections == before + 1


def test_a_private_seed_is_reported_and_crawled_as_soon_as_it_is_allowed(tmp_path: Path) -> None:
    with SmallSite({"/": linking()}) as site:
        folder = CrawlFolder(tmp_path, delay_s=0)
        try:
            words = ("crawl", f"http://{PRIVATE}:{site.port}/")
            crawl = folder.start(*words)
            said, _ = crawl.communicate(timeout=90)
            assert "No page was fetched. forbidden_address: its IP address is not public; --allow-private" in said
            assert site.asked == []
            # Nobody waits until it would be looked at again.
            assert folder.run(*words, "--allow-private", f"{PRIVATE}/32")["pages"] == 1
        finally:
            folder.close()
