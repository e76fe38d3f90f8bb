"""Deletion, replay and the deny list over the API while crawls run; the command."""

from __future__ import annotations

import time
from pathlib import Path

from crawl_folder import CrawlFolder, finish
from flask.testing import FlaskClient
from small_site import Answer, Asked, Say, SmallSite, linking
from waiting import until

from curtsy.control import retention
from curtsy.export.page_rows import segments_of
from curtsy.store import pages
from curtsy.store.engine import Store
from curtsy.store.segments import read_page
from curtsy.web.backend_thread import BackendThread
from curtsy.web.factory import create_app

ONE, TWO = "one.small.test", "two.small.test"


def test_a_denied_host_is_not_asked_any_more_within_two_seconds(tmp_path: Path) -> None:
    links = [f"/{n}" for n in range(400)]
    with SmallSite({"/": linking(*links), **{link: linking() for link in links}}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        bridge = BackendThread(folder.settings())
        try:
            process = folder.start("crawl", f"http://{ONE}/", "--delay", "0.05", "--json")
            until(lambda: len(site.paths()) > 5)
            client: FlaskClient = create_app(folder.settings(), bridge).test_client()
            assert client.post(f"/v1/hosts/{ONE}/deny").get_json()["denied"]
            ends = time.monotonic() + 2.0
            until(lambda: time.monotonic() > ends)
            seen = len(site.asked)
            done = finish(process)
            assert len(site.asked) == seen
            assert done["skipped"]["denied"] > 300
            told = client.get(f"/v1/explain?url=http://{ONE}/399").get_json()
            assert (told["state"], told["reason"]) == ("skipped", "denied")
        finally:
            bridge.close()
            folder.close()


def test_a_page_that_is_deleted_while_it_is_fetched_again_is_stored_anew(tmp_path: Path) -> None:
    """The second crawl is about to refer to the body of the first one's page when that page is deleted."""
    asked: list[str] = []

    def same(_: Asked) -> Say:
        asked.append("")
        if len(asked) == 2:
            with Store.open(settings.effective_store_url) as store:
                retention.delete_pages(store, "host", url=f"http://{ONE}/same", host=None, crawl=None)
                assert retention.delete_some(store, settings)
        return Say(b"<!doctype html><title>Same</title>", 200, (("Content-Type", "text/html"), ("ETag", '"1"')))

    answers: dict[str, Answer] = {"/": linking("/same"), "/same": same}
    with SmallSite(answers) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        settings = folder.settings()
        try:
            folder.crawl(f"http://{ONE}/")
            folder.crawl(f"http://{ONE}/")
            with Store.open(settings.effective_store_url) as store, store.read() as tx:
                ((_, page),) = pages.where(tx, "p.url = :url", {"url": f"http://{ONE}/same"}, "p.n", 10)
                assert (page.crawl, page.unchanged) == (2, False)
                record = read_page(tx, segments_of(settings), page)
                assert record is not None
                assert b"Same" in record.body
        finally:
            folder.close()


def test_the_command_deletes_pages_and_crawls(tmp_path: Path) -> None:
    with SmallSite({"/": linking("/a", f"http://{TWO}/"), "/a": linking()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        try:
            folder.crawl(f"http://{ONE}/", scope="any")
            folder.crawl(f"http://{ONE}/", scope="any")
            assert folder.run("delete", "--url", f"http://{ONE}/a", "--crawl", "last", "--yes")["done"]
            assert {url for url in folder.pages() if url.endswith("/a")} == {f"http://{TWO}/a"}
            assert f"http://{ONE}/a" in folder.pages(1)
            assert folder.run("delete", "--host", TWO, "--yes")["done"]
            assert folder.pages(1) == {f"http://{ONE}/", f"http://{ONE}/a"}
            (oldest,) = folder.rows("SELECT id FROM crawls WHERE n = 1")[0]
            folder.run("delete", "--crawl", oldest, "--yes")
            assert folder.pages(1) == set()
            assert folder.pages(2) == {f"http://{ONE}/"}
        finally:
            folder.close()


def test_a_crawl_that_is_deleted_while_it_runs_leaves_nothing(tmp_path: Path) -> None:
    links = [f"/{n}" for n in range(400)]
    with SmallSite({"/": linking(*links), **{link: linking(*links[:50], title=link) for link in links}}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        bridge = BackendThread(folder.settings())
        try:
            process = folder.start("crawl", f"http://{ONE}/", f"http://{TWO}/", "--delay", "0.02", "--json")
            until(lambda: folder.has_pages(20))
            client: FlaskClient = create_app(folder.settings(), bridge).test_client()
            id = client.get("/v1/crawls").get_json()["items"][0]["id"]
            assert client.delete(f"/v1/crawls/{id}").status_code == 202
            process.communicate(timeout=30)
            assert process.returncode in (0, 1, 3)
            settings = folder.settings()
            with bridge.store.begin() as tx:
                tx.exec_driver_sql("UPDATE deletions SET before_ms = 1")
            until(lambda: retention.delete_some(bridge.store, settings))
            for table in ("crawls", "urls", "pages", "failures", "queues", "requests", "crawl_counts"):
                assert folder.rows(f"SELECT count(*) FROM {table}") == [(0,)], table
            assert client.get("/v1/crawls").get_json()["items"] == []
        finally:
            bridge.close()
            folder.close()


def test_a_replay_over_the_api_is_taken_up_by_the_process_that_crawls(tmp_path: Path) -> None:
    links = [f"/{n}" for n in range(60)]
    healed: list[bool] = []

    def bad(_: Asked) -> Say:
        return linking() if healed else Say(b"Broken.", 500)

    answers: dict[str, Answer] = {"/": linking(*links), "/bad": bad, **{link: linking() for link in links}}
    with SmallSite(answers) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule], max_attempts=1)
        bridge = BackendThread(folder.settings())
        try:
            process = folder.start("crawl", f"http://{ONE}/", f"http://{TWO}/bad", "--delay", "0.2", "--json")
            client: FlaskClient = create_app(folder.settings(), bridge).test_client()
            until(lambda: bool(client.get("/v1/failures").get_json()["items"]))
            healed.append(True)
            asked = site.paths().count("/bad")
            assert client.post("/v1/failures/replay", json={"host": TWO}).get_json()["dead_letters"] == 1
            until(lambda: site.paths().count("/bad") > asked, 10)
            assert process.poll() is None
            assert finish(process)["failed"] == {}
        finally:
            bridge.close()
            folder.close()
