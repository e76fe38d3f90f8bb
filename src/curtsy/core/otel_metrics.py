"""Metrics of the whole fleet as an OTLP message: the same names, labels and values as `/metrics`."""

from __future__ import annotations

import os
import re
import time
import urllib.request
from collections.abc import Mapping

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import AggregationTemporality, Metric, NumberDataPoint
from opentelemetry.util.re import parse_env_headers

from curtsy import __version__
from curtsy.core.metrics import BUCKETS, COUNTER, HISTOGRAM, METRICS

_TIMEOUT_S = 5.0
_LABEL = re.compile(r'\b(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPES = {r"\\": "\\", r"\"": '"', r"\n": "\n"}
#: by the specification of OTLP, sums over all processes that only grow
_CUMULATIVE = AggregationTemporality.AGGREGATION_TEMPORALITY_CUMULATIVE


def send(endpoint: str, fields: Mapping[str, float]) -> None:
    """Send all metrics; OSError if the receiver does not accept them."""
    headers = {"Content-Type": "application/x-protobuf"}
    headers |= parse_env_headers(os.environ.get("OTEL_EXPORTER_OTLP_HEADERS", ""), liberal=True)
    request = urllib.request.Request(f"{endpoint.rstrip('/')}/v1/metrics", message(fields, time.time_ns()), headers)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
        answer.read()


def message(fields: Mapping[str, float], now_ns: int) -> bytes:
    request = ExportMetricsServiceRequest()
    sent = request.resource_metrics.add()
    names = {"service.name": "curtsy", "service.version": __version__}
    sent.resource.attributes.extend(_attributes(names))
    scope = sent.scope_metrics.add()
    scope.scope.name = "curtsy"
    for name, (kind, said) in METRICS.items():
        metric = Metric(name=name, description=said)
        if kind == HISTOGRAM:
            _histogram(metric, fields, now_ns)
        else:
            _numbers(metric, kind, fields, now_ns)
        if metric.WhichOneof("data"):
            scope.metrics.append(metric)
    return bytes(request.SerializeToString())


def _labels(key: str) -> dict[str, str]:
    return {
        name: re.sub(r"\\.", lambda found: _ESCAPES.get(found[0], found[0]), value)
        for name, value in _LABEL.findall(key)
    }


def _attributes(labels: Mapping[str, str]) -> list[KeyValue]:
    return [KeyValue(key=name, value=AnyValue(string_value=value)) for name, value in labels.items()]


def _numbers(metric: Metric, kind: str, fields: Mapping[str, float], now_ns: int) -> None:
    points = [
        NumberDataPoint(attributes=_attributes(_labels(key)), time_unix_nano=now_ns, as_double=value)
        for key, value in sorted(fields.items())
        if key.partition("{")[0] == metric.name
    ]
    if not points:
        return
    if kind == COUNTER:
        metric.sum.is_monotonic = True
        metric.sum.aggregation_temporality = _CUMULATIVE
        metric.sum.data_points.extend(points)
    else:
        metric.gauge.data_points.extend(points)


def _histogram(metric: Metric, fields: Mapping[str, float], now_ns: int) -> None:
    tops = [*(f"{top:g}" for top in BUCKETS), "+Inf"]
    counts: dict[tuple[tuple[str, str], ...], dict[str, float]] = {}
    for key, value in fields.items():
        if key.partition("{")[0] == f"{metric.name}_bucket":
            labels = _labels(key)
            top = labels.pop("le")
            counts.setdefault(tuple(sorted(labels.items())), {})[top] = value
    for labels_, buckets in sorted(counts.items()):
        metric.histogram.aggregation_temporality = _CUMULATIVE
        point = metric.histogram.data_points.add()
        point.attributes.extend(_attributes(dict(labels_)))
        point.time_unix_nano = now_ns
        point.bucket_counts.extend(int(buckets.get(top, 0)) for top in tops)
        point.explicit_bounds.extend(BUCKETS)
        point.count = sum(point.bucket_counts)
        own = [k for k in fields if k.partition("{")[0] == f"{metric.name}_sum" and _labels(k) == dict(labels_)]
        point.sum = sum(fields[k] for k in own)
