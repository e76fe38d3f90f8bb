"""The typed client: made from the OpenAPI document as it is now, and spoken with a real server."""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import socket
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import client_generator
import pytest
import stored
from served import serving

import curtsy.api as curtsy
from curtsy import client
from curtsy.client.calls import AsyncCalls, Calls
from curtsy.client.server import AsyncServer, Server
from curtsy.core.errors import UnknownCrawl, UsageError
from curtsy.core.settings_loading import load
from curtsy.store.engine import Store
from curtsy.store.segments import Segments
from curtsy.web import (
    factory,  # noqa: F401, its endpoints are the document
    openapi,
)
from curtsy.web.openapi import document

FOLDER = Path(client.__file__).parent


def test_the_document_in_the_repository_is_that_of_the_api() -> None:
    assert openapi.file_text() == client_generator.DOCUMENT.read_text("utf-8"), "the API has changed: run `make client`"
    assert json.loads(openapi.file_text()) == document()


@pytest.mark.parametrize("name", ["types.py", "calls.py"])
def test_the_client_is_that_of_the_document(name: str) -> None:
    made = client_generator.sources(document())[name]
    assert made == (FOLDER / name).read_text("utf-8"), "the client is out of date: run `make client`"


def test_the_build_hook_writes_the_client_and_adds_it_to_the_wheel(tmp_path: Path) -> None:
    hatchling = pytest.importorskip("hatchling.builders.wheel")
    root = tmp_path / "project"
    root.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(client_generator.ROOT / name, root)
    shutil.copytree(client_generator.ROOT / "tools", root / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    (root / "docs").mkdir()
    shutil.copy(client_generator.DOCUMENT, root / "docs")
    (root / "src" / "curtsy").mkdir(parents=True)
    shutil.copy(FOLDER.parent / "__init__.py", root / "src" / "curtsy")
    (root / ".gitignore").write_text((client_generator.ROOT / ".gitignore").read_text("utf-8"), "utf-8")
    made = next(hatchling.WheelBuilder(str(root)).build(directory=str(tmp_path), versions=["standard"]))
    assert {f"curtsy/client/{name}" for name in ("types.py", "calls.py")} <= set(zipfile.ZipFile(made).namelist())


def test_every_operation_is_a_method_with_all_its_parameters() -> None:
    for methods in document()["paths"].values():
        for one in methods.values():
            for calls in (Calls, AsyncCalls):
                given = set(inspect.signature(getattr(calls, one["operationId"])).parameters)
                names = {part["name"].lower().replace("-", "_") for part in one["parameters"] if "name" in part}
                assert names <= given, one["operationId"]


def test_what_the_generator_does_not_know_is_an_error() -> None:
    operation: dict[str, Any] = {"operationId": "x", "parameters": [], "responses": {"200": {}}, "description": ""}
    strange = {"requestBody": {"content": {"application/xml": {}}}}
    with pytest.raises(client_generator.UnsupportedSpec, match="xml"):
        client_generator._method("/x", "post", {**operation, **strange}, {}, blocking=True)
    cookie = {"parameters": [{"name": "c", "in": "cookie", "required": False, "schema": {"type": "string"}}]}
    with pytest.raises(client_generator.UnsupportedSpec, match="cookie"):
        client_generator._method("/x", "get", {**operation, **cookie}, {}, blocking=True)
    with pytest.raises(client_generator.UnsupportedSpec, match="octopus"):
        client_generator._type({"type": "octopus"})


def test_an_argument_that_a_call_does_not_have_is_a_usage_error() -> None:
    """Nothing is sent: there is no server."""
    arguments: dict[str, Any] = {"seeds": ["https://a.test/"], "bogus": 1}
    with pytest.raises(UsageError, match="submit: got an unexpected keyword argument 'bogus'"):
        Server("http://127.0.0.1:9").submit(**arguments)
    with pytest.raises(UsageError, match="submit: got an unexpected keyword argument 'bogus'"):
        asyncio.run(AsyncServer("http://127.0.0.1:9").submit(**arguments))
    with pytest.raises(UsageError, match="wait: missing a required argument: 'id'"):
        Server("http://127.0.0.1:9").wait(*[])


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with a finished crawl of 150 pages and two dead letters."""
    folder = tmp_path_factory.mktemp("typed")
    url = f"sqlite:///{folder / 'data' / 'curtsy.sqlite'}"
    settings = load(data_dir=folder / "data", store_url=url)
    with Store.open(url) as store:
        segments = Segments(settings.segments_dir)
        crawl = stored.crawl(store)
        found = [(f"https://a.test/{i}", b"<title>%d</title>" % i) for i in range(150)]
        stored.add_pages(store, segments, crawl, found, title="A page")
        stored.add_failures(store, crawl, [("https://b.test/x", "timeout"), ("https://b.test/y", "refused")])
        segments.close()
    with serving(folder, url, processes=1) as server:
        yield server.url


def test_reading(served: str) -> None:
    server = curtsy.connect(served, request_id="mine")
    status = server.crawl("last")
    assert status["state"] == "finished"
    assert [one["id"] for one in server.list_crawls(state="finished", limit=5)["items"]] == [status["id"]]
    pages = list(server.each(server.list_pages, status["id"], limit=100))
    assert len({page["url"] for page in pages}) == 150
    assert server.page(pages[7]["id"])["title"] == "A page"
    assert server.content(pages[7]["id"]).startswith(b"<title>")
    assert {one["cause"] for one in server.each(server.list_failures, "last")} == {"timeout", "refused"}
    groups = server.failure_groups(by="host,cause")["groups"]
    assert sum(group["dead_letters"] for group in groups) == 2
    assert server.replay_failures(cause="timeout", dry_run=True)["dead_letters"] == 1
    assert server.explain(url=pages[0]["url"])["state"] == "done"
    assert "curtsy_" in server.prometheus()
    assert server.readyz()["parts"]["store"] == "ok"
    assert server.openapi_document()["openapi"] == "3.1.0"
    assert server.docs().startswith("<!doctype html>")
    assert server.healthz()["status"] == "ok"


def test_writing(served: str) -> None:
    server = curtsy.connect(served)
    made = server.submit(seeds=["https://c.test/"], max_pages=3, idempotency_key="once")
    assert server.submit(seeds=["https://c.test/"], max_pages=3, idempotency_key="once")["id"] == made["id"]
    assert server.crawl(made["id"])["options"]["max_pages"] == 3
    assert server.pause(made["id"])["state"] == "paused"
    assert server.resume(made["id"])["state"] == "running"
    events = server.events(made["id"])
    first = next(events)
    assert (first.name, first.data["id"]) == ("state", made["id"])
    assert server.cancel(made["id"])["state"] == "cancelled"
    assert server.wait(made["id"], 30)["state"] == "cancelled"
    assert [event.data["state"] for event in events][-1] == "cancelled"
    many = server.submit_many((f"https://c.test/{i}" for i in range(2000)), max_pages=1)
    assert server.crawl(many)["counts"]["pending"] == 2000
    server.cancel(many)
    assert server.delay("c.test", delay_s=2.0)["delay"]["operator_s"] == 2.0


def test_problems_are_errors_of_the_usual_kind(served: str) -> None:
    server = curtsy.connect(served)
    with pytest.raises(UnknownCrawl):
        server.crawl("ffff")
    with pytest.raises(curtsy.RefusedSeeds, match=r"127\.0\.0\.1") as refused:
        server.submit(seeds=["https://c.test/", "http://127.0.0.1/"])
    assert [where for where, _ in refused.value.refused] == ["seed 1"]
    with pytest.raises(curtsy.RefusedSeeds, match=r"127\.0\.0\.1") as refused:
        server.submit_many(["https://c.test/", "http://127.0.0.1/"])
    assert [where for where, _ in refused.value.refused] == ["seed 1"]
    with pytest.raises(curtsy.UsageError, match="key"):
        curtsy.connect(served, key="curtsy_000000000000_" + "x" * 43).list_crawls()
    with pytest.raises(curtsy.Unavailable, match="does not respond"):
        curtsy.connect("http://127.0.0.1:9").healthz()


def test_the_same_to_be_awaited(served: str) -> None:
    async def read() -> None:
        server = curtsy.connect_async(served)
        (finished,) = (await server.list_crawls(state="finished"))["items"]
        assert len([page async for page in server.each(server.list_pages, finished["id"], limit=100)]) == 150
        made = await server.submit(seeds=["https://d.test/"])
        first = [event async for event in _first(server, made["id"])]
        assert first[0].data["state"] == "running"
        await server.cancel(made["id"])
        assert (await server.wait(made["id"], 30))["state"] == "cancelled"
        assert await server.submit_many(["https://d.test/"]) != made["id"]

    asyncio.run(read())


async def _first(server: AsyncServer, id: str) -> Any:
    events = server.events(id)
    yield await anext(events)
    await events.aclose()  # type: ignore[attr-defined]


def test_waiting_ends_when_its_time_is_over_also_for_a_crawl_of_which_nothing_comes(served: str) -> None:
    server = curtsy.connect(served)
    id = server.submit(seeds=["https://e.test/"])["id"]
    server.pause(id)
    begun = time.monotonic()
    with pytest.raises(curtsy.Unavailable, match=r"is still paused after 0\.5 s"):
        server.wait(id, timeout_s=0.5)
    with pytest.raises(curtsy.Unavailable, match=r"is still paused after 0\.5 s"):
        asyncio.run(curtsy.connect_async(served).wait(id, timeout_s=0.5))
    assert 1 <= time.monotonic() - begun < 10
    server.cancel(id)


def test_waiting_ends_when_its_time_is_over_also_if_the_server_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(curtsy.Unavailable, match="does not respond"):
            curtsy.connect(url).wait("last", timeout_s=0.5)
        assert time.monotonic() - begun < 30, "an answer is waited for 60 s otherwise"


@pytest.mark.parametrize("connect", [curtsy.connect, curtsy.connect_async])
@pytest.mark.parametrize("key", ["x\n", "ключ", "a\tb", 5])
def test_a_key_that_cannot_be_sent_is_refused_and_not_repeated(connect: Any, key: Any) -> None:
    with pytest.raises(curtsy.UsageError, match="The API key has invalid characters") as refused:
        connect("http://127.0.0.1:9", key=key)
    assert str(key).strip() not in str(refused.value).split()


@pytest.mark.parametrize("connect", [curtsy.connect, curtsy.connect_async])
@pytest.mark.parametrize(
    "url",
    [None, "", "http://127.0.0.1:99999", "http://127.0.0.1:0", "http://127.0.0.1:x", "http://[::1", "http://a..b/",
     "http://a b/", "ftp://a.test/"],
)  # fmt: skip
def test_an_address_that_cannot_be_is_refused_at_once(connect: Any, url: Any) -> None:
    with pytest.raises(curtsy.UsageError, match=r"Invalid API address: .*\. Write it as http://"):
        connect(url)


def test_a_key_in_the_environment_may_end_with_its_line(served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CURTSY_API_KEY", "curtsy_000000000000_" + "x" * 43 + "\n")
    with pytest.raises(curtsy.UsageError, match="key"):
        curtsy.connect(served).list_crawls()
    monkeypatch.setenv("CURTSY_API_KEY", " \n")
    assert curtsy.connect(served).list_crawls()["items"]


def test_headers_that_cannot_be_sent_are_refused(served: str) -> None:
    with pytest.raises(curtsy.UsageError, match="Invalid value of Idempotency-Key"):
        curtsy.connect(served).submit(seeds=["https://c.test/"], idempotency_key="ключ")
    with pytest.raises(curtsy.UsageError, match="Invalid value of X-Request-Id"):
        curtsy.connect(served, request_id="x\n").list_crawls()


def test_an_empty_id_is_refused_before_anything_is_sent() -> None:
    server = curtsy.connect("http://127.0.0.1:9")
    for call in (server.crawl, server.wait, server.schedule, server.host, server.cancel):
        with pytest.raises(curtsy.UsageError, match="is empty: give"):
            call("")
    with pytest.raises(curtsy.UsageError, match=r"must be str, not None"):
        server.crawl(None)  # type: ignore[arg-type]
    with pytest.raises(curtsy.UsageError, match="is empty: give"):
        asyncio.run(curtsy.connect_async("http://127.0.0.1:9").crawl(""))


def test_the_two_have_the_same_methods() -> None:
    def methods(of: type) -> set[str]:
        return {name for name in dir(of) if not name.startswith("_")}

    assert methods(Server) == methods(AsyncServer)
