"""OpenTelemetry: one trace from the API over tasks to fetches and stages; metrics by OTLP; nothing while it is off."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from fleet_folder import FleetFolder
from otlp_receiver import OtlpReceiver
from served import serving
from waiting import until

from curtsy.core import otel_metrics
from curtsy.tinyweb import TinyWeb


@pytest.fixture
def receiver() -> Iterator[OtlpReceiver]:
    started = OtlpReceiver()
    yield started
    started.close()


def test_one_trace_reaches_from_the_api_to_fetches_and_stages(tmp_path: Path, receiver: OtlpReceiver) -> None:
    with TinyWeb.start(hosts=1, pages=3, page_kb=2, faults=False) as web:
        fleet = FleetFolder(tmp_path, web, otel_endpoint=receiver.url)
        try:
            fleet.worker(OTEL_BSP_SCHEDULE_DELAY="200")
            fleet.beat()
            given = {"frontier_url": fleet.frontier_url, "otel_endpoint": receiver.url}
            with serving(tmp_path / "api", fleet.settings().effective_store_url, processes=1, **given) as served:
                body = json.dumps({"seeds": web.seeds, "delay_s": 0.01, "schema": "page"}).encode()
                caller = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
                headers = {"X-Request-Id": "traced-1", "traceparent": caller, "Content-Type": "application/json"}
                crawl = served.client.read(*served.client.exchange("POST", "/v1/crawls", body, headers))["id"]
                until(lambda: served.client.get(f"/v1/crawls/{crawl}")["state"] == "finished")
                until(lambda: "curtsy_pages_total" in receiver.metrics)
            fleet.stop("w1")
        finally:
            fleet.close()
    ours = [(part, span) for part, span in receiver.spans if span.trace_id == traces(receiver)["POST /v1/crawls"]]
    by_id = {span.span_id: (part, span) for part, span in ours}
    (root,) = [span for _, span in ours if span.name == "POST /v1/crawls"]
    assert root.links[0].trace_id.hex() == "0af7651916cd43dd8448eb211c80319c"
    fetches = [span for _, span in ours if span.name == "fetch"]
    assert len(fetches) >= 3
    for span in fetches:
        part, task = by_id[span.parent_span_id]
        assert (part, task.name, by_id[task.parent_span_id][1].name) == ("worker", "task curtsy.shift", root.name)
        assert task.start_time_unix_nano <= span.start_time_unix_nano < span.end_time_unix_nano
    for kind in ("extract", "score", "store"):
        stages = [span for _, span in ours if span.name == f"stage {kind}"]
        assert len(stages) == 3
        tasks = [by_id[span.parent_span_id][1] for span in stages]
        assert {task.name for task in tasks} == {"task curtsy.stage"}
        assert {task.parent_span_id for task in tasks} == {root.span_id}


def traces(receiver: OtlpReceiver) -> dict[str, bytes]:
    return {span.name: span.trace_id for _, span in receiver.spans}


def test_metrics_have_the_names_labels_and_values_of_the_text_format() -> None:
    fields = {
        'curtsy_responses_total{status="2xx"}': 7.0, 'curtsy_dead_letters{cause="a \\"b\\""}': 2.0,
        'curtsy_commit_seconds_bucket{le="0.01"}': 2.0, 'curtsy_commit_seconds_bucket{le="+Inf"}': 1.0,
        "curtsy_commit_seconds_sum": 42.5, "curtsy_commit_seconds_count": 3.0, "unknown": 1.0,
    }  # fmt: skip
    receiver = OtlpReceiver()
    try:
        otel_metrics.send(receiver.url, fields)
    finally:
        receiver.close()
    assert receiver.metrics.keys() == {"curtsy_responses_total", "curtsy_dead_letters", "curtsy_commit_seconds"}
    (point,) = receiver.metrics["curtsy_responses_total"].sum.data_points
    assert (point.as_double, point.attributes[0].key, point.attributes[0].value.string_value) == (7.0, "status", "2xx")
    (letters,) = receiver.metrics["curtsy_dead_letters"].gauge.data_points
    assert letters.attributes[0].value.string_value == 'a "b"'
    (commits,) = receiver.metrics["curtsy_commit_seconds"].histogram.data_points
    assert (commits.count, commits.sum, commits.bucket_counts[1], commits.bucket_counts[-1]) == (3, 42.5, 2, 1)


@pytest.mark.parametrize("module", ["curtsy.fleet.tasks", "curtsy.web.factory", "curtsy.crawl.shift"])
def test_nothing_of_it_is_imported_while_it_is_off(module: str) -> None:
    code = (
        f"import sys, {module}; from curtsy.core import tracing; from curtsy.core.settings import Settings; "
        "tracing.begin(Settings(), 'x'); ours = ('curtsy.core.otel', 'opentelemetry.exporter', 'opentelemetry.proto'); "
        "print(tracing.active, [name for name in sys.modules if name.startswith(ours)])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "None []\n"
