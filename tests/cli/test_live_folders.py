"""`crawl --out` to a folder of Markdown and to an object store: complete however the process ends, and continued."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from crawl_folder import CrawlFolder
from object_store import object_store, use
from stored_pages import StoredPages
from waiting import until

from curtsy.core.errors import UsageError
from curtsy.export.live import LiveOutput
from curtsy.export.live_files import Reservation
from curtsy.export.page_rows import PageRows
from curtsy.export.tables import Format
from curtsy.export.targets import MARK
from curtsy.tinyweb import TinyWeb

SEED = "http://org-0000.tinyweb.test/"
#: of the site
PAGES = 12
FOLDER, PREFIX, OBJECT = "pages", "s3://bucket/pages", "s3://bucket/pages.jsonl"


@pytest.fixture(scope="module")
def web() -> Iterator[TinyWeb]:
    with TinyWeb.start(hosts=1, pages=PAGES, faults=False) as running:
        yield running


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with object_store() as running:
        yield running


@pytest.fixture
def bucket(address: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    client = use(address, monkeypatch)
    client.create_bucket(Bucket="bucket")
    yield client
    for entry in client.list_objects_v2(Bucket="bucket").get("Contents", ()):
        client.delete_object(Bucket="bucket", Key=entry["Key"])
    client.close()


@pytest.fixture
def folder(tmp_path: Path, web: TinyWeb) -> Iterator[CrawlFolder]:
    made = CrawlFolder(tmp_path, web, delay_s=0.25)
    yield made
    made.close()


#: the URLs in an output, each as often as it is there
Urls = Callable[[], list[str]]


def urls_of(out: str, folder: CrawlFolder, bucket: Any) -> Urls:
    def in_folder() -> list[str]:
        paths = [path for path in (folder.path / FOLDER).rglob("*") if path.is_file() and path.name != MARK]
        return [_url(path.read_text()) for path in paths]

    def in_bucket() -> list[str]:
        keys = [entry["Key"] for entry in bucket.list_objects_v2(Bucket="bucket").get("Contents", ())]
        texts = [bucket.get_object(Bucket="bucket", Key=key)["Body"].read().decode() for key in keys if MARK not in key]
        if out == PREFIX:
            return [_url(text) for text in texts]
        return [json.loads(line)["url"] for text in texts for line in text.splitlines()]

    return in_folder if out == FOLDER else in_bucket


def _url(text: str) -> str:
    found = re.search(r'^---\nurl: "(.*)"\n(.*\n)*---\n', text)
    assert found, text
    return found[1]


def committed(folder: CrawlFolder) -> list[str]:
    return sorted(url for (url,) in folder.rows("SELECT url FROM pages"))


@pytest.mark.parametrize("out", [FOLDER, PREFIX, OBJECT])
def test_a_terminated_crawl_leaves_all_its_pages_and_a_resumed_one_the_rest(
    folder: CrawlFolder, bucket: Any, out: str
) -> None:
    urls = urls_of(out, folder, bucket)
    process = folder.start("crawl", SEED, "--out", out)
    until(lambda: folder.has_pages(3))
    process.send_signal(signal.SIGTERM)
    said, err = process.communicate(timeout=60)
    assert process.returncode == 3, err
    assert f"The pages so far are in {out}. A resumed crawl continues it." in said
    assert sorted(urls()) == committed(folder)
    assert len(committed(folder)) < PAGES
    again = folder.start("crawl", "--resume", "last")
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert "Continuing " in err
    assert sorted(urls()) == committed(folder)
    assert len(committed(folder)) == PAGES
    assert not list((folder.data / "outputs").iterdir())


@pytest.mark.parametrize("out", [FOLDER, PREFIX, OBJECT])
def test_a_resumed_crawl_completes_what_a_killed_one_left(folder: CrawlFolder, bucket: Any, out: str) -> None:
    urls = urls_of(out, folder, bucket)
    process = folder.start("crawl", SEED, "--out", out, "--processes", "2")
    until(lambda: folder.has_pages(4) and len(urls()) >= 1)
    process.kill()
    process.communicate(timeout=60)
    assert set(urls()) <= set(committed(folder))
    assert urls()
    assert len(committed(folder)) < PAGES
    if out == FOLDER:
        (folder.path / FOLDER / ".part").write_text("torn")  # as a kill in the middle of a write leaves it
    again = folder.start("crawl", "--resume", "last")
    _, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert sorted(urls()) == committed(folder)
    assert len(committed(folder)) == PAGES


# Without a crawl


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredPages]:
    found = StoredPages(tmp_path / "data")
    yield found
    found.close()


def opened(stored: StoredPages, out: Path) -> LiveOutput:
    rows = PageRows(stored.store, stored.segments, stored.crawl)
    return LiveOutput(rows, out, Format.MARKDOWN, stored.settings.data_dir)


def files(out: Path) -> list[str]:
    return sorted(path.name for path in out.rglob("*.md"))


def test_a_folder_that_another_export_replaced_is_written_again(stored: StoredPages, tmp_path: Path) -> None:
    out = tmp_path / "pages"
    first = opened(stored, out)
    stored.add(3)
    first.step()
    first.close(finished=False)
    assert len(files(out)) == first.pages == 3
    (out / MARK).write_text("Made by curtsy export.")
    (out / "other.md").write_text("x")
    again = opened(stored, out)
    stored.add(2)
    again.step()
    again.close(finished=True)
    assert len(files(out)) == again.pages == 5
    assert "other.md" not in files(out)


def test_a_folder_is_continued_after_its_last_page(stored: StoredPages, tmp_path: Path) -> None:
    out = tmp_path / "pages"
    first = opened(stored, out)
    stored.add(3)
    first.step()
    first.close(finished=False)
    deleted = next(out.rglob("*.md"))
    deleted.unlink()
    stored.add(2)
    again = opened(stored, out)
    again.step()
    again.close(finished=True)
    assert (again.pages, len(files(out))) == (5, 4)


def test_a_folder_in_use_is_refused(stored: StoredPages, tmp_path: Path) -> None:
    live = opened(stored, tmp_path / "pages")
    with pytest.raises(UsageError, match="Another crawl is writing"):
        Reservation(tmp_path / "pages", Format.MARKDOWN).close()
    live.close(finished=True)
    Reservation(tmp_path / "pages", Format.MARKDOWN).close()
