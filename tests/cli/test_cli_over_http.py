"""`failures` and `delete` against the API and in the local folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import stored
from served import serving

from curtsy.store import failures
from curtsy.store.engine import Store


def run(folder: Path, store_url: str, *words: str) -> Any:
    around = os.environ | {"CURTSY_STORE_URL": store_url}
    command = [sys.executable, "-m", "curtsy.cli", *words, "--json"]
    done = subprocess.run(command, env=around, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_dead_letters_are_replayed_locally_and_over_the_api_alike(tmp_path: Path, postgres_url: str) -> None:
    with Store.open(postgres_url) as store:
        crawl = stored.crawl(store)
        stored.add_failures(store, crawl, [(f"https://a.test/{n}", "timeout") for n in range(6)])
        with serving(tmp_path, postgres_url) as server:
            api = ("--api", server.url)
            for where in ((), api):
                words = ("failures", "replay", "--since", "2023-02-01", "--limit", "2", *where)
                assert run(tmp_path, postgres_url, *words, "--dry-run")["dead_letters"] == 2
                assert run(tmp_path, postgres_url, *words)["dead_letters"] == 2
            assert run(tmp_path, postgres_url, "failures", "replay", "--since", "7d", *api)["dead_letters"] == 0
            left = run(tmp_path, postgres_url, "failures", "list", "--crawl", crawl.id, *api)["failures"]
            assert left == run(tmp_path, postgres_url, "failures", "list", *api)["failures"]
            assert [one["url"] for one in left] == ["https://a.test/4", "https://a.test/5"]
            assert server.client.get(f"/v1/crawls/{crawl.id}")["counts"]["pending"] == 4
            told = run(tmp_path, postgres_url, "delete", "--crawl", crawl.id, "--yes", *api)
            assert told["done"] is False
            assert server.client.get(f"/v1/crawls/{crawl.id}")["state"] == "deleting"


def test_the_table_of_dead_letters_is_alike_over_the_api(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'data' / 'curtsy.sqlite'}"
    with Store.open(url) as store:
        crawl = stored.crawl(store)
        (timeout,) = stored.add_failures(store, crawl, [("https://a.test/1", "timeout")])
        raised = replace(timeout, id="f2", stage="extract", cause="function_failed", detail="mine: a\nb", ordinal=1)
        store.run(failures.insert, [raised])
    with serving(tmp_path, url, processes=1) as server:
        for where in (("--data-dir", "data"), ("--api", server.url)):
            command = [sys.executable, "-m", "curtsy.cli", "failures", "list", *where]
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
            head, *lines = [line.split("\t") for line in done.stdout.splitlines()]
            assert head == ["cause", "status", "attempts", "at", "url", "stage", "detail"]
            assert sorted((line[0], *line[4:]) for line in lines) == [
                ("function_failed", "https://a.test/1", "extract", "mine: a b"),
                ("timeout", "https://a.test/1", "", ""),
            ]
