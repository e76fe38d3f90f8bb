"""The list of hosts with faults: complete, described, and of one mind with their own robots.txt."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from curtsy.core.settings_loading import check_chain, load
from curtsy.rules.robots import Robots
from curtsy.tinyweb import faults
from curtsy.tinyweb.answers import Answer
from curtsy.tinyweb.faults.registry import FaultHost
from curtsy.tinyweb.web import DEMO_FAULTS, Web, crawl_delay_s, demo_seeds, forbidden, unwanted

#: the faults that were promised, and the host that shows each
PROMISED = {
    "robots allow": "robots-allow",
    "robots disallow": "robots-disallow",
    "robots longest match": "robots-longest",
    "robots wildcard": "robots-wildcard",
    "robots crawl-delay": "robots-crawl-delay",
    "robots 404": "robots-404",
    "robots 500": "robots-500",
    "robots timeout": "robots-timeout",
    "robots redirect": "robots-redirect",
    "robots redirect to another host": "robots-redirect-host",
    "robots 600 KB": "robots-600kb",
    "robots BOM": "robots-bom",
    "robots non-UTF-8": "robots-latin1",
    "redirect chain": "redirect-chain",
    "redirect loop": "redirect-loop",
    "redirect cross-host": "redirect-host",
    "redirect to a private address": "redirect-private",
    "redirect to another scheme": "redirect-scheme",
    "429 with seconds": "retry-after-seconds",
    "429 with a date": "retry-after-date",
    "503": "error-503",
    "flapping 500": "flapping-500",
    "slow": "slow",
    "hanging": "hang",
    "hanging in the body": "hang-body",
    "connection reset": "connection-reset",
    "truncated body": "body-truncated",
    "Content-Length too long": "length-too-long",
    "Content-Length too short": "length-too-short",
    "broken chunking": "chunked-broken",
    "broken gzip": "gzip-broken",
    "gzip bomb": "gzip-bomb",
    "endless body": "endless",
    "50 MB body": "body-50mb",
    "missing content type": "type-missing",
    "lying content type": "type-lying",
    "lying charset": "charset-lying",
    "meta refresh": "meta-refresh",
    "base href": "base-href",
    "nofollow": "nofollow",
    "noindex": "noindex",
    "canonical": "canonical",
    "sitemap index": "sitemap-index",
    "sitemap gzip": "sitemap-gzip",
    "sitemap of 50,000": "sitemap-50000",
    "calendar trap": "trap-calendar",
    "session-id trap": "trap-session",
    "repeated segments": "trap-segments",
    "duplicate content": "duplicates",
    "ETag": "etag",
    "Last-Modified": "last-modified",
    "cookies": "cookie-redirect",
    "10,000 links": "links-10000",
    "unicode host": "xn--bcher-kva",
    "punycode host": "xn--strae-oqa",
    "absurd URLs": "absurd-urls",
    "dropped keep-alive": "keepalive-drop",
    "re-sent request": "keepalive-resend",
}
EVERY = faults.every()


@pytest.mark.parametrize("host", PROMISED.values(), ids=PROMISED.keys())
def test_every_promised_fault_has_a_host(host: str) -> None:
    assert host in {fault.name for fault in EVERY}


@pytest.mark.parametrize("fault", EVERY, ids=lambda fault: fault.name)
def test_a_host_says_in_one_line_what_it_does_and_what_is_expected(fault: FaultHost) -> None:
    assert re.fullmatch(r"[a-z0-9-]+", fault.name)
    assert 0 < len(fault.about) <= 130
    assert "\n" not in fault.about
    assert 0 < len(fault.expected) <= 130
    states = {end.split()[0] for ends in fault.ends.values() for end in ends}
    assert states <= {"done", "skipped", "failed"}


@pytest.mark.parametrize("fault", EVERY, ids=lambda fault: fault.name)
def test_a_host_is_small_but_for_its_trap(fault: FaultHost) -> None:
    pages = fault.build()
    assert len(pages) <= 60
    assert set(fault.ends) <= set(pages) or "*" in pages or fault.name in ("gone", "soft-404")


@pytest.mark.parametrize("fault", EVERY, ids=lambda fault: fault.name)
def test_what_the_generator_knows_agrees_with_its_robots_txt(fault: FaultHost) -> None:
    pages = fault.build()
    said = pages.get("/robots.txt")
    if not isinstance(said, Answer) or said.status != 200:
        return
    robots = Robots.parse(said.wire[len(said.head) :])
    for path in pages:
        if path != "*":
            assert robots.allows(f"http://{fault.host}{path}", "curtsy") is not fault.forbids(path), path
    assert robots.delay("curtsy") == fault.crawl_delay_s


def test_answers_of_a_host_are_the_same_each_time_it_is_built() -> None:
    for fault in EVERY:
        first, again = fault.build(), fault.build()
        static = {path: said.wire for path, said in first.items() if isinstance(said, Answer)}
        assert static == {path: said.wire for path, said in again.items() if isinstance(said, Answer)}


def test_unicode_seeds_are_the_hosts_that_are_served() -> None:
    for fault in EVERY:
        for seed in fault.seeds:
            name = urlsplit(seed).hostname
            assert name
            # Python's own codec knows IDNA 2003 only, which would turn the sharp s of a Unicode name into ss.
            assert name.encode("idna").decode() == fault.host


def test_a_web_can_be_limited_to_some_faults_and_those_they_point_to() -> None:
    web = Web(hosts=1, fault_names=["redirect-host"])
    assert "http://redirect-host.tinyweb.test/" in web.seeds
    assert "redirect-target.tinyweb.test" in {fault.host for fault in web.faults}
    assert len(web.seeds) == 2
    assert Web(hosts=1, fault_names=[]).faults == []
    with pytest.raises(ValueError, match="--list"):
        Web(fault_names=["no-such-fault"])


def test_the_selection_for_the_demo_is_part_of_the_whole() -> None:
    assert set(demo_seeds()) < set(Web().seeds)
    assert len(DEMO_FAULTS) == len(set(DEMO_FAULTS)) >= 20


def test_the_generator_knows_what_is_forbidden_where() -> None:
    assert forbidden("org-0001.tinyweb.test", "/internal/drafts")
    assert not forbidden("org-0001.tinyweb.test", "/about")
    assert forbidden("robots-500.tinyweb.test", "/")
    assert not forbidden("robots-500.tinyweb.test", "/robots.txt")
    assert crawl_delay_s("robots-crawl-delay.tinyweb.test") == 2.0
    assert crawl_delay_s("org-0001.tinyweb.test") is None
    assert unwanted("127.0.0.1", "/secret")
    assert unwanted("nofollow.tinyweb.test", "/hidden")


def test_the_profile_is_valid_and_says_what_was_promised() -> None:
    profile = Path(faults.__file__).parents[1] / "tinyweb.toml"
    settings = load(profile)
    check_chain(settings)
    assert (settings.delay_s, settings.host_patience_s, settings.retry_after_cap_s) == (0.5, 20, 5)
    assert (settings.fetch_timeout_s, settings.max_urls_per_host) == (5, 200)
