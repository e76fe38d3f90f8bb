"""Crawls that are stopped, paused, slowed down, cancelled and replayed from outside, while they run."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from crawl_folder import CrawlFolder, finish
from small_site import Asked, Say, SmallSite, linking
from waiting import until

from curtsy.store.engine import Store
from curtsy.tinyweb import TinyWeb
from curtsy.tinyweb.accesslog import Line
from curtsy.tinyweb.politeness_check import judge

PAGES = 12
ORG = "http://org-{:04}.tinyweb.test/"


@pytest.fixture
def web(tmp_path: Path) -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=4, pages=PAGES, faults=False, log=tmp_path / "access.log") as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path, web: TinyWeb) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, web)
    yield made
    made.close()


def of(web: TinyWeb, org: int) -> list[Line]:
    return [line for line in web.requests() if line.name == f"org-{org:04}.tinyweb.test"]


def gaps_s(lines: list[Line]) -> list[float]:
    starts = [line.start_us / 1e6 for line in lines]
    return [after - before for before, after in pairwise(starts)]


def test_two_commands_in_one_folder_share_hosts_politely(folder: CrawlFolder, web: TinyWeb) -> None:
    both = [folder.start("crawl", *web.seeds, "--delay", "0.1", "--json") for _ in range(2)]
    told = [finish(process) for process in both]
    assert [one["state"] for one in told] == ["finished", "finished"]
    assert told[0]["pages"] == told[1]["pages"]
    assert folder.pages(1) == folder.pages(2)
    verdict = judge(web.requests(), 0.1)
    assert verdict.ok, verdict.summary()
    assert folder.run("audit")["overlaps"] == 0


@pytest.mark.parametrize("presses", [1, 2])
def test_a_crawl_stopped_by_ctrl_c_continues_to_the_same_pages(
    folder: CrawlFolder, web: TinyWeb, tmp_path: Path, presses: int
) -> None:
    process = folder.start("crawl", *web.seeds, "--delay", "0.1", "--json")
    until(lambda: folder.has_pages(8))
    for _ in range(presses):
        process.send_signal(signal.SIGINT)
        time.sleep(0.05)
    told = finish(process, code=3)
    assert (told["state"], told["pending"] > 0) == ("interrupted", True)
    again = folder.run("crawl", "--resume", told["id"])
    assert (again["state"], again["pending"], again["failed"]) == ("finished", 0, {})
    assert len(folder.rows("SELECT url FROM pages")) == len(folder.pages())
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    other = CrawlFolder(undisturbed, web)
    other.crawl(*web.seeds, delay_s=0.02)
    assert folder.pages() == other.pages()


@pytest.mark.alone
def test_pause_resume_and_cancel_take_effect_within_two_seconds(folder: CrawlFolder, web: TinyWeb) -> None:
    first = folder.start("crawl", ORG.format(0), "--delay", "0.5", "--json")
    until(lambda: folder.has_pages(2))
    second = folder.start("crawl", ORG.format(1), "--delay", "1.5", "--json")
    until(lambda: len(of(web, 1)) >= 1)
    id = folder.rows("SELECT id FROM crawls WHERE n = 1")[0][0]
    assert folder.run("pause", id)["state"] == "paused"
    paused = time.time()
    assert finish(first, code=3)["state"] == "paused"
    time.sleep(max(0.0, paused + 2.5 - time.time()))
    assert all(line.start_us / 1e6 < paused + 2 for line in of(web, 0))
    asked = len(of(web, 0))
    # The process of the second crawl crawls whatever is due in the folder.
    assert folder.run("resume", id)["state"] == "running"
    until(lambda: len(of(web, 0)) > asked, within_s=2.5)
    told = folder.run("cancel", id)
    cancelled = time.time()
    assert (told["state"], told["pending"]) == ("cancelled", 0)
    assert told["skipped"]["cancelled"] > 0
    until(lambda: time.time() > cancelled + 2.5)
    assert all(line.start_us / 1e6 < cancelled + 2 for line in of(web, 0))
    second.send_signal(signal.SIGINT)
    assert finish(second, code=3)["state"] == "interrupted"
    assert judge(web.requests(), 0.5).ok


@pytest.mark.alone
def test_a_delay_set_for_a_host_holds_for_the_crawl_that_is_running(folder: CrawlFolder, web: TinyWeb) -> None:
    process = folder.start("crawl", ORG.format(0), ORG.format(1), "--delay", "0.2", "--json")
    until(lambda: len(of(web, 0)) >= 3)
    folder.run("hosts", "delay", "org-0000.tinyweb.test", "0.7")
    told_us = time.time() * 1e6
    assert finish(process)["state"] == "finished"
    later = [line for line in of(web, 0) if line.start_us > told_us + 1.5e6]
    assert len(later) >= 3
    assert min(gaps_s(later)) >= 0.7
    assert sorted(gaps_s(of(web, 1)))[PAGES // 2] < 0.5
    delays = folder.rows("SELECT delay_ms FROM requests WHERE host = 'org-0000.tinyweb.test' ORDER BY start_ms")
    assert (delays[0], delays[-1]) == ((200,), (700,))


@pytest.mark.alone
def test_a_host_that_is_blocked_meanwhile_is_not_asked_any_more(folder: CrawlFolder, web: TinyWeb) -> None:
    process = folder.start("crawl", ORG.format(0), ORG.format(1), "--delay", "0.3", "--json")
    until(lambda: len(of(web, 0)) >= 3)
    folder.run("hosts", "block", "org-0000.tinyweb.test")
    blocked_us = time.time() * 1e6
    told = finish(process)
    assert told["state"] == "finished"
    assert told["skipped"]["denied"] > 0
    assert all(line.start_us < blocked_us + 2e6 for line in of(web, 0))
    again = folder.crawl(ORG.format(0), ORG.format(1))
    assert folder.ends()[ORG.format(0)] == "skipped denied"
    assert again.pages == PAGES
    folder.run("hosts", "unblock", "org-0000.tinyweb.test")
    assert folder.crawl(ORG.format(0)).pages == PAGES


def test_a_denied_host_is_never_asked_not_even_for_its_rules(tmp_path: Path, web: TinyWeb) -> None:
    folder = CrawlFolder(tmp_path, web, deny_hosts=["org-000[01].*", "other.test"])
    counts = folder.crawl(*(ORG.format(n) for n in range(3)))
    assert counts.skipped["denied"] == 2
    assert {line.name for line in web.requests()} == {"org-0002.tinyweb.test"}


def test_a_port_that_urls_lose_is_not_part_of_a_hosts_name(tmp_path: Path, web: TinyWeb) -> None:
    folder = CrawlFolder(tmp_path, web, deny_hosts=["ORG-0000.tinyweb.test:80", "org-0001.*:443"])
    folder.crawl(ORG.format(3))
    assert folder.run("hosts", "block", "org-0002.tinyweb.test:80")["host"] == "org-0002.tinyweb.test"
    assert folder.crawl(*(ORG.format(n) for n in range(3))).skipped["denied"] == 3
    assert {line.name for line in web.requests()} == {"org-0003.tinyweb.test"}


@pytest.mark.alone
def test_completion_is_decided_within_a_second_of_the_last_page(folder: CrawlFolder, web: TinyWeb) -> None:
    for seed in (ORG.format(0), ORG.format(1)):
        folder.crawl(seed)
    for n, ended_ms in folder.rows("SELECT n, ended_ms FROM crawls"):
        last_ms = folder.rows("SELECT max(end_ms) FROM requests WHERE crawl = ?", n)[0][0]
        assert ended_ms - last_ms < 1000
    finished = folder.rows("SELECT ended_ms FROM crawls WHERE n = 2")[0][0] / 1000
    assert finished - max(line.end_us for line in web.requests()) / 1e6 < 1


# Dead letters


class Flaky:
    """Broken until it is mended."""

    def __init__(self) -> None:
        self.mended = False

    def __call__(self, asked: Asked) -> Say:
        return linking("/behind") if self.mended else Say(b"Oh dear.", 500)


def test_dead_letters_are_listed_and_replayed_and_the_crawl_runs_again(tmp_path: Path) -> None:
    flaky = Flaky()
    pages = {"/": linking("/a", "/b", "/c", "/no"), "/a": flaky, "/b": flaky, "/c": flaky, "/behind": linking()}
    pages["/no"] = Say(b"No.", 403)
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], max_attempts=2)
        told = folder.run("crawl", "http://one.small.test/", "--delay", "0.02", code=1)
        assert told["failed"] == {"server_error": 3, "refused": 1}
        listed = folder.run("failures", "list", "--cause", "server_error")["failures"]
        assert {one["url"].rpartition("/")[2] for one in listed} == {"a", "b", "c"}
        assert {(one["status"], one["attempts"]) for one in listed} == {(500, 2)}
        assert folder.run("failures", "list", "--since", "2100-01-01")["failures"] == []
        assert folder.run("failures", "replay", "--since", "2100-01-01")["dead_letters"] == 0
        assert folder.run("failures", "replay", "--cause", "server_error", "--dry-run")["dead_letters"] == 3
        assert folder.run("status")["state"] == "finished"

        assert folder.run("failures", "replay", "--cause", "server_error", "--limit", "1")["dead_letters"] == 1
        assert folder.run("status")["failed"] == {"server_error": 2, "refused": 1}
        assert folder.resume().failed == {"server_error": 3, "refused": 1}

        flaky.mended = True
        replayed = folder.run(
            "failures", "replay", "--host", "one.small.test", "--cause", "server_error", "--since", "1h"
        )
        assert (replayed["dead_letters"], replayed["crawls"]) == (3, [told["id"]])
        last = folder.resume(told["id"])
        assert (last.pages, last.failed, last.pending) == (5, {"refused": 1}, 0)
        assert folder.run("status")["state"] == "finished"
        assert "http://one.small.test/behind" in folder.pages()
        folder.close()


def test_urls_of_a_dead_host_are_replayed_when_it_is_back(tmp_path: Path) -> None:
    """Nobody listens at first; then the site comes up on the same port."""
    with SmallSite({}) as gone:
        rule, port = gone.resolve_rule, gone.port
    folder = CrawlFolder(tmp_path, resolve=[rule], host_patience_s=1)
    assert folder.crawl("http://one.small.test/").failed == {"robots_unreachable": 1}
    with SmallSite({"/": linking("/a"), "/a": linking()}) as site:
        folder.config.write_text(folder.config.read_text().replace(str(port), str(site.port)))
        assert folder.run("failures", "replay")["dead_letters"] == 1
        counts = folder.resume()
        assert (counts.pages, counts.failed, counts.pending) == (2, {}, 0)
    folder.close()


def test_a_crawl_resumed_after_its_hosts_patience_asks_again_before_it_gives_up(tmp_path: Path) -> None:
    with SmallSite({}) as gone:
        rule, port = gone.resolve_rule, gone.port
    folder = CrawlFolder(tmp_path, resolve=[rule], host_patience_s=3)
    process = folder.start("crawl", "http://one.small.test/", "--json")
    until(lambda: folder.data.exists() and bool(folder.has_pages(0)) and bool(_failing(folder)))
    process.send_signal(signal.SIGINT)
    finish(process, code=3)
    time.sleep(3.5)
    with SmallSite({"/": linking()}) as site:
        folder.config.write_text(folder.config.read_text().replace(str(port), str(site.port)))
        counts = folder.resume()
        assert (counts.pages, counts.failed, counts.pending) == (1, {}, 0)
    folder.close()


def _failing(folder: CrawlFolder) -> list[object]:
    return folder.rows("SELECT host FROM queues WHERE failing_since_ms IS NOT NULL")


# Explanations


def test_explain_says_where_a_url_is_and_why(tmp_path: Path) -> None:
    paths = ("/", "/private", "/no", "/busy", "/queued")
    later = Say(b"Later.", 503, (("Retry-After", "30"),))
    pages = {
        "/robots.txt": Say(b"User-agent: *\nDisallow: /private\n", 200, (("Content-Type", "text/plain"),)),
        "/": linking(*paths),
        "/no": Say(b"No.", 403),
        "/busy": later,
        "/queued": linking(),
    }
    with SmallSite(pages) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], retry_after_cap_s=60, host_patience_s=60)
        process = folder.start("crawl", "http://one.small.test/", "--delay", "0.02", "--json")
        until(lambda: "/busy" in site.paths())
        until(lambda: bool(folder.rows("SELECT 1 FROM urls WHERE url LIKE '%/busy' AND attempts = 1")))
        why = {path: folder.run("explain", f"http://one.small.test{path}") for path in paths}
        unknown = folder.run("explain", "http://one.small.test/never-linked")
        outside = folder.run("explain", "http://other.test/")
        process.send_signal(signal.SIGINT)
        finish(process, code=3)
        folder.close()
    said = {path: " ".join(one["why"]) for path, one in why.items()}
    assert why["/"]["state"] == "done"
    assert why["/"]["page"]
    # A page that robots.txt forbids waits behind the block like any other, unless its turn came before.
    assert why["/private"]["state"] == "skipped"
    assert "Disallow: /private" in said["/private"]
    assert why["/no"]["state"] == "failed"
    assert "dead letter 'refused'" in said["/no"]
    assert why["/busy"]["state"] == "open"
    assert "The next attempt is in" in said["/busy"]
    assert "it asked for a pause" in said["/busy"]
    assert why["/queued"]["state"] == "open"
    assert "waits for a slot" in said["/queued"]
    assert "asked for a pause" in said["/queued"]
    assert unknown["state"] is None
    assert "no fetched page links to it" in unknown["why"][0]
    assert "has only these hosts" in outside["why"][0]


def test_a_crawl_that_was_left_is_not_gone_on_with_by_another_way(tmp_path: Path) -> None:
    """Its proxy, its addresses: they are settings of the command that made it."""
    pages = {"/": linking("/a", "/b"), "/a": linking(), "/b": linking()}
    with SmallSite(pages) as ours, SmallSite(pages) as theirs:
        left = CrawlFolder(tmp_path, resolve=[ours.resolve_rule])
        crawl = left.start("crawl", "http://one.small.test/", "--delay", "1")
        until(lambda: ours.paths() == ["/"])
        crawl.send_signal(signal.SIGINT)
        crawl.communicate(timeout=60)
        asked = len(ours.asked)

        other = CrawlFolder(tmp_path, resolve=[theirs.resolve_rule])
        told = other.run("crawl", "http://two.small.test/", "--delay", "1.5")
        assert (told["pages"], told["state"]) == (3, "finished")
        assert {one.host for one in theirs.asked} == {"two.small.test"}
        assert len(ours.asked) == asked
        assert left.run("status", crawl_of(left, "one.small.test"))["pending"] == 2
        other.close()
        left.close()


def crawl_of(folder: CrawlFolder, host: str) -> str:
    ((id,),) = folder.rows("SELECT c.id FROM crawls c JOIN queues q ON q.crawl = c.n WHERE q.host = ?", host)
    return str(id)


def test_a_replay_after_its_hosts_patience_tries_every_url_anew(tmp_path: Path) -> None:
    """The time in which nobody asked is none in which the host failed."""
    broken = dict.fromkeys(("/a", "/b", "/c"), Say(b"Oh dear.", 500))
    with SmallSite({"/": linking(*broken), **broken}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], max_attempts=2, host_patience_s=1)
        first = folder.crawl("http://one.small.test/").failed
        with Store.open(folder.settings().effective_store_url) as store, store.begin() as tx:
            # As if it had begun long ago.
            tx.exec_driver_sql("UPDATE queues SET failing_since_ms = 1, reason = 'server_error'")
        asked = len(site.paths())
        assert folder.run("failures", "replay")["dead_letters"] == sum(first.values())
        assert folder.rows("SELECT failing_since_ms FROM queues") == [(None,)]
        folder.resume()
        assert set(site.paths()[asked:]) == set(broken)
        folder.close()
