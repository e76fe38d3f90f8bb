"""What a process counts, as differences and as Prometheus text."""

from __future__ import annotations

import pytest

from curtsy.core import metrics


@pytest.fixture(autouse=True)
def nothing_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_fields", {})
    monkeypatch.setattr(metrics, "_handed", {})


def test_what_was_handed_over_is_not_handed_over_again() -> None:
    metrics.inc("curtsy_pages_total", status="2xx")
    metrics.inc("curtsy_pages_total", 2, status="2xx")
    assert metrics.drain() == {'curtsy_pages_total{status="2xx"}': 3}
    assert metrics.drain() == {}
    metrics.inc("curtsy_pages_total", status="2xx")
    assert metrics.drain() == {'curtsy_pages_total{status="2xx"}': 1}


def test_what_could_not_be_handed_over_comes_again() -> None:
    metrics.inc("curtsy_pages_total", 3, status="2xx")
    metrics.restore(metrics.drain())
    metrics.inc("curtsy_pages_total", 1, status="2xx")
    assert metrics.drain() == {'curtsy_pages_total{status="2xx"}': 4}


def test_counters_are_written_with_their_help_and_type() -> None:
    metrics.inc("curtsy_shifts_total", lane="batch", end="done")
    text = metrics.render(metrics.drain())
    assert "# TYPE curtsy_shifts_total counter\n" in text
    assert 'curtsy_shifts_total{end="done",lane="batch"} 1\n' in text


def test_buckets_of_a_histogram_add_up() -> None:
    for seconds in (0.001, 0.02, 0.02, 99.0):
        metrics.observe("curtsy_api_seconds", seconds, route="/v1/crawls/{id},x", status=200)
    lines = metrics.render(metrics.drain()).splitlines()
    buckets = [line for line in lines if "_bucket" in line]
    assert [float(line.rsplit(" ", 1)[1]) for line in buckets] == [1, 1, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4]
    assert buckets[-1] == 'curtsy_api_seconds_bucket{le="+Inf",route="/v1/crawls/{id},x",status="200"} 4'
    assert 'curtsy_api_seconds_count{route="/v1/crawls/{id},x",status="200"} 4' in lines


def test_prepared_counters_and_histograms_count_in_the_same_fields() -> None:
    metrics.Counter("curtsy_responses_total", status="2xx").inc(2)
    metrics.inc("curtsy_responses_total", status="2xx")
    for seconds in (0.005, 0.0051, 30.0, 31.0):
        metrics.Histogram("curtsy_fetch_seconds").observe(seconds)
    fields = metrics.drain()
    assert fields.pop("curtsy_fetch_seconds_sum") == pytest.approx(61.0101)
    assert fields == {
        'curtsy_responses_total{status="2xx"}': 3,
        'curtsy_fetch_seconds_bucket{le="0.005"}': 1,
        'curtsy_fetch_seconds_bucket{le="0.01"}': 1,
        'curtsy_fetch_seconds_bucket{le="30"}': 1,
        'curtsy_fetch_seconds_bucket{le="+Inf"}': 1,
        "curtsy_fetch_seconds_count": 4,
    }


def test_a_label_cannot_break_the_text() -> None:
    metrics.inc("curtsy_pages_total", status='a"b\nc\\')
    assert metrics.render(metrics.drain()).splitlines()[-1] == 'curtsy_pages_total{status="a\\"b\\nc\\\\"} 1'


def test_large_sums_are_written_in_full() -> None:
    metrics.inc("curtsy_pages_total", 123_456_789, status="2xx")
    assert metrics.render(metrics.drain()).splitlines()[-1].endswith(" 123456789")


def test_a_renamed_metric_is_written_under_both_names() -> None:
    fields: dict[str, float] = {}
    metrics.gauge(fields, "curtsy_worker_processes", 3)
    lines = metrics.render(fields).splitlines()
    assert "curtsy_worker_processes 3" in lines
    assert lines[-3:] == [
        "# HELP curtsy_seats Deprecated: use curtsy_worker_processes.", "# TYPE curtsy_seats gauge", "curtsy_seats 3"
    ]  # fmt: skip
