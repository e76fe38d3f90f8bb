"""The numbers of a real fleet are the same in the database, the API, the dashboard and the metrics."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_site import Answer, Asked, Say, SmallSite, linking
from stack import Stack, up
from waiting import wait_for

from curtsy.core.metrics import HISTOGRAM, METRICS
from curtsy.store import crawls, dashboard_queries
from curtsy.store.engine import Store

DEPLOY = Path(__file__).parents[2] / "deploy"
#: more crawls than the overview shows
CRAWLS = 14


def _busy(asked: Asked) -> Say:
    """Asks for a pause once, then answers."""
    _busy_hosts[asked.host] += 1
    return Say(b"later", 429, (("Retry-After", "0"),)) if _busy_hosts[asked.host] == 1 else Say(b"<p>now</p>")


_busy_hosts: Counter[str] = Counter()


def _broken(_: Asked) -> Say:
    return Say(b"no", 500)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    pages: dict[str, Answer] = {
        "/": linking("/a", "/b", "/gone", "/busy", "/broken"), "/a": linking(), "/b": linking(), "/busy": _busy,
        "/broken": _broken,
    }  # fmt: skip
    with SmallSite(pages) as site, up(tmp_path_factory.mktemp("numbers"), site, delay_s=0.05) as running:
        ids = [
            running.client.post("/v1/crawls", {"seeds": [f"http://h{n}.small.test/"], "sitemaps": False})["id"]
            for n in range(CRAWLS)
        ]
        for id in ids:
            running.until(id, "finished")
        yield running


def scraped(stack: Stack) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """name -> labels -> value"""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    with urllib.request.urlopen(f"{stack.url}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    for line in lines:
        match = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line)
        if match is not None:
            labels = tuple(re.findall(r'(\w+)="([^"]*)"', match[2] or ""))
            found.setdefault(match[1], {})[labels] = float(match[3])
    return found


def page(stack: Stack, path: str) -> str:
    """The text of a page of the dashboard."""
    with urllib.request.urlopen(stack.url + path) as answer:
        return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", answer.read().decode())).split())


def test_the_overview_counts_all_crawls_and_says_the_same_as_they_do(stack: Stack) -> None:
    listed = stack.client.get("/v1/crawls?limit=100")["items"]
    statuses = [stack.client.get(f"/v1/crawls/{one['id']}") for one in listed]
    pages = sum(one["counts"]["pages"] for one in statuses)
    failed = Counter[str]()
    for one in statuses:
        failed.update(one["counts"]["failed"])
    assert len(statuses) == CRAWLS
    assert pages >= 4 * CRAWLS
    assert failed["server_error"] == CRAWLS
    with Store.open(stack.store_url) as store, store.read() as tx:
        stored = tx.exec_driver_sql("SELECT count(*) FROM pages").scalar_one()
        assert dashboard_queries.dead_letters(tx) == failed
        assert sum(crawls.counts(tx, n).pages for n in range(1, CRAWLS + 1)) == pages
    assert pages == stored
    # The sums of dead letters on the overview may be 5 s old.
    wait_for(lambda: f"{pages} in the last hour" in page(stack, "/") or None)
    wait_for(lambda: f"Dead letters {failed.total()} URLs" in page(stack, "/") or None)


def test_the_command_line_and_the_page_of_a_crawl_say_the_same(stack: Stack) -> None:
    for one in stack.client.get("/v1/crawls?limit=3")["items"]:
        counts = stack.client.get(f"/v1/crawls/{one['id']}")["counts"]
        command = [sys.executable, "-m", "curtsy.cli", "status", one["id"], "--json"]
        done = subprocess.run(
            [*command, "--data-dir", str(stack.folder / ".curtsy")], capture_output=True, text=True, check=False
        )
        told = json.loads(done.stdout)
        assert {name: told[name] for name in ("pages", "done", "failed")} == {
            name: counts[name] for name in ("pages", "done", "failed")
        }
        text = page(stack, f"/crawls/{one['id']}")
        assert re.search(rf"Pages {counts['pages']} ", text)
        assert re.search(rf"Dead letters {sum(counts['failed'].values())} ", text)


def test_metrics_count_pages_urls_and_dead_letters_as_crawls_do(stack: Stack) -> None:
    listed = stack.client.get("/v1/crawls?limit=100")["items"]
    counts = [stack.client.get(f"/v1/crawls/{one['id']}")["counts"] for one in listed]
    pages, done = sum(one["pages"] for one in counts), sum(one["done"] for one in counts)
    failed = sum(sum(one["failed"].values()) for one in counts)
    # A worker hands its counts over some seconds later.
    wait_for(lambda: scraped(stack).get("curtsy_pages_total", {}).get(()) == pages or None)
    found = scraped(stack)
    assert found["curtsy_urls_total"][(("result", "done"),)] == done
    assert found["curtsy_urls_total"][(("result", "failed"),)] == failed
    assert found["curtsy_dead_letters"] == {(("cause", "server_error"),): CRAWLS}
    assert found["curtsy_responses_total"][(("status", "4xx"),)] >= 2 * CRAWLS
    assert found["curtsy_response_bytes_total"][()] > 0
    assert found["curtsy_beat_age_seconds"][()] < 10


def test_counters_begin_at_zero(stack: Stack) -> None:
    """Prometheus sees an increase only if it has seen the value before."""
    found = scraped(stack)
    assert set(found["curtsy_lease_expiries_total"]) == {(("kind", "lease"),), (("kind", "slot"),)}
    assert (("cause", "deadlock"),) in found["curtsy_store_retries_total"]
    assert found["curtsy_shift_waiting_seconds_total"]


def test_the_hosts_tab_tells_of_its_own_crawl(stack: Stack) -> None:
    for one in stack.client.get("/v1/crawls?limit=100")["items"]:
        text = page(stack, f"/crawls/{one['id']}/hosts")
        shown = r"Most blocked hosts in the whole crawl Host 429 or 503 No response h\d+\.small\.test 1 0"
        assert re.search(shown, text)
        assert "No host has asked us to wait" not in text


def test_beat_is_known_to_run(stack: Stack) -> None:
    ready = stack.client.get("/readyz")
    assert (ready["ready"], ready["parts"]["beat"]) == (True, "ok")
    assert "No work starts" not in page(stack, "/")
    assert "No work starts" not in page(stack, "/workers")


def expressions() -> list[str]:
    dashboard = json.loads((DEPLOY / "grafana" / "curtsy.json").read_text("utf-8"))
    rules = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text("utf-8"))
    scaled = yaml.safe_load_all((DEPLOY / "kubernetes" / "keda.yaml").read_text("utf-8"))
    queries = [trigger["metadata"]["query"] for one in scaled for trigger in one["spec"]["triggers"]]
    found = queries + [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    return found + [rule["expr"] for group in rules["groups"] for rule in group["rules"]]


#: they appear only with a language model (tests/web/test_api_crawls.py)
RARE = {"curtsy_llm_calls_total", "curtsy_llm_tokens_total", "curtsy_llm_cost_total"}


@pytest.mark.parametrize("expression", expressions())
def test_queries_of_the_dashboard_and_alerts_name_what_is_there(stack: Stack, expression: str) -> None:
    found = scraped(stack)
    grouped = set(re.findall(r"\w+", " ".join(re.findall(r"by \(([^)]*)\)", expression))))
    for name, matchers in re.findall(r"(curtsy_\w+)(?:\{([^}]*)\})?", expression):
        if name in RARE:
            continue
        assert name in found, f"{name} is not in /metrics"
        labels = {label for one in found[name] for label, _ in one}
        assert set(re.findall(r"(\w+)(?:=~|!~|!=|=)", matchers)) <= labels
        assert grouped <= labels | {"instance"} or "and" in expression


def test_every_metric_has_a_query() -> None:
    named = set(re.findall(r"curtsy_\w+", " ".join(expressions())))
    for name, (kind, _) in METRICS.items():
        assert (f"{name}_bucket" if kind == HISTOGRAM else name) in named or f"{name}_count" in named


def test_alerts_say_what_to_do() -> None:
    groups = yaml.safe_load((DEPLOY / "prometheus-rules.yaml").read_text("utf-8"))["groups"]
    rules: list[dict[str, Any]] = [rule for group in groups for rule in group["rules"]]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert all(rule["annotations"]["summary"] and rule["annotations"]["action"] for rule in rules)
