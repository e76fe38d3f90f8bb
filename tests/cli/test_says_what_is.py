"""Commands say what is, and what to do: interrupted crawls, deletions, empty exports, contacts, schedules."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import stored
from crawl_folder import CrawlFolder
from small_site import Say, SmallSite, linking
from waiting import until

from curtsy.control.seeds import has_placeholder, is_public
from curtsy.core.model import CrawlState
from curtsy.core.settings import Settings
from curtsy.store import crawls
from curtsy.store.engine import Store

SEED = "http://a.small.test/"


@pytest.fixture
def site() -> Iterator[SmallSite]:
    pages = {"/": linking(*(f"/{i}" for i in range(8)))} | {f"/{i}": linking() for i in range(8)}
    with SmallSite(pages) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path, site: SmallSite) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, resolve=[site.resolve_rule], delay_s=0.3)
    yield made
    made.close()


def curtsy(folder: CrawlFolder, *words: str, input: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "curtsy.cli", *words, "--config", str(folder.config)]
    return subprocess.run(
        command, cwd=folder.path, input=input, capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_crawl_that_no_process_works_on_is_interrupted(folder: CrawlFolder, number: signal.Signals) -> None:
    process = folder.start("crawl", SEED)
    until(lambda: folder.has_pages(2))
    assert folder.run("status")["state"] == "running"
    process.send_signal(number)
    process.communicate(timeout=60)
    until(lambda: folder.run("status")["state"] == "interrupted")
    shown = curtsy(folder, "status").stdout
    assert "state         interrupted\n" in shown
    assert "curtsy crawl --resume" in shown
    assert "interrupted" in curtsy(folder, "status", "--all").stdout
    if number is signal.SIGINT:
        assert folder.rows("SELECT state, reason FROM crawls") == [("running", "interrupted")], "for the dashboard"
    done = curtsy(folder, "crawl", "--resume", "last")
    assert done.returncode == 0, done.stderr
    assert folder.rows("SELECT state, reason FROM crawls") == [("finished", None)]


def test_a_deletion_names_the_crawl_and_is_done_at_once(folder: CrawlFolder) -> None:
    assert curtsy(folder, "crawl", SEED, "--max-pages", "2").returncode == 0
    ((id,),) = folder.rows("SELECT id FROM crawls")
    asked = curtsy(folder, "delete", "--crawl", "last", input="n\n")
    assert asked.returncode == 2
    assert f"Delete crawl {id} (finished, 2 pages, created " in asked.stdout
    assert f", {SEED}) permanently?" in asked.stdout
    done = curtsy(folder, "delete", "--crawl", "last", "--yes")
    assert done.stdout == f"Crawl {id}: deleted.\n"
    assert folder.rows("SELECT count(*) FROM crawls") == [(0,)]


def test_last_is_never_a_crawl_that_is_being_deleted(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path}/t.sqlite") as store:
        kept, deleted = stored.crawl(store), stored.crawl(store, CrawlState.DELETING)
        with store.read() as tx:
            assert crawls.get(tx, "last").id == kept.id
            assert crawls.get(tx, deleted.id).id == deleted.id


def test_an_export_of_nothing_is_an_error(folder: CrawlFolder) -> None:
    assert curtsy(folder, "crawl", "http://127.0.0.1:9/").returncode == 1
    for words, says in (((), "has no pages"), (("--what", "records"), "has no schema")):
        done = curtsy(folder, "export", "last", *words, "--out", "x.jsonl")
        assert (done.returncode, says in done.stderr) == (2, True), done.stderr
    assert not (folder.path / "x.jsonl").exists()


def test_progress_is_on_standard_error_also_with_json(folder: CrawlFolder) -> None:
    done = curtsy(folder, "crawl", SEED, "--json", "--max-pages", "2")
    assert json.loads(done.stdout)["pages"] == 2
    assert "pending" in done.stderr
    assert "0 pages, 1 pending" in done.stderr
    assert curtsy(folder, "crawl", SEED, "--quiet", "--max-pages", "2").stderr == ""


def test_the_summary_and_the_audit_count_the_same_hosts(folder: CrawlFolder) -> None:
    done = curtsy(folder, "crawl", SEED, "http://nowhere.invalid/", "--max-pages", "2")
    audit = curtsy(folder, "audit", "--crawl", "last", "--json")
    hosts = json.loads(audit.stdout)["hosts"]
    assert f"hosts         {hosts}" in done.stdout
    assert f"hosts         {hosts}, and {2 - hosts} without a request\n" in done.stdout or hosts == 2


def test_a_schedule_says_what_must_run(folder: CrawlFolder) -> None:
    done = curtsy(folder, "schedules", "add", "weekly", "@weekly", SEED)
    assert done.returncode == 0, done.stderr
    assert "It runs only while Beat and a worker run. Start them on this machine with: " in done.stderr
    assert "curtsy up --config" in done.stderr


def test_a_placeholder_contact_matters_only_to_sites_of_others() -> None:
    settings = Settings(resolve=("*.small.test=127.0.0.1:80", "intranet=10.0.0.1:80"))
    assert has_placeholder(settings)
    assert not has_placeholder(Settings(contact="mailto:me@example.org"))
    for url in ("https://example.org/", "http://8.8.8.8/"):
        assert is_public(url, settings)
    for url in ("http://127.0.0.1/", "http://10.1.2.3/", "http://localhost/", "http://x.test/", "http://intranet/"):
        assert not is_public(url, settings)


def test_a_crawl_of_a_public_site_warns_of_a_placeholder(folder: CrawlFolder) -> None:
    """A proxy on a closed port of this machine receives its request: nothing leaves."""
    done = curtsy(folder, "crawl", "http://8.8.8.8/", "--proxy", "http://127.0.0.1:9", "--give-up")
    assert "the contact in the User-Agent is a placeholder" in done.stderr
    assert "placeholder" not in curtsy(folder, "crawl", SEED, "--max-pages", "1").stderr


def test_a_crawl_that_robots_txt_forbids_names_the_line(tmp_path: Path) -> None:
    rules = Say(b"User-agent: *\nDisallow: /\n", headers=(("Content-Type", "text/plain"),))
    with SmallSite({"/robots.txt": rules, "/": linking()}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        done = curtsy(folder, "crawl", SEED)
    assert done.returncode == 1
    assert f"No page was fetched. {SEED}: robots.txt disallows it by the line 'Disallow: /'." in done.stdout


def test_a_crawl_whose_seed_does_not_exist_says_so(tmp_path: Path) -> None:
    with SmallSite({}) as site:
        folder = CrawlFolder(tmp_path, resolve=[site.resolve_rule])
        done = curtsy(folder, "crawl", SEED)
    assert done.returncode == 1
    assert f"No page was fetched. {SEED}: the site says that it does not exist (404 or 410). See `" in done.stdout
