"""Spans of requests, tasks, fetches and stages, sent by OTLP over HTTP.

The ids of a trace follow from the request id, which the crawl, its messages and its stages carry anyway. So every
process finds the trace of a crawl by itself, also weeks later and after a restart, and nothing else is stored.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Mapping
from contextvars import ContextVar

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import TraceIdRatioBased
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from curtsy import __version__
from curtsy.core.clock import boot
from curtsy.core.observe import Traced
from curtsy.core.outcome import Outcome

#: how long the end of a process waits for the receiver
_FLUSH_MS = 3_000
_NS = 1_000_000_000
Attributes = dict[str, str | int | float | bool]

#: the ids of the span that is made next in this context; None: random ones
_next_ids: ContextVar[tuple[int, int | None] | None] = ContextVar("next_ids", default=None)


def ids_of(request_id: str) -> tuple[int, int]:
    """Trace and root span of a request."""
    digest = hashlib.sha256(f"curtsy:{request_id}".encode()).digest()
    return int.from_bytes(digest[:16]), int.from_bytes(digest[16:24])


def resource(part: str) -> Resource:
    return Resource.create({"service.name": "curtsy", "service.version": __version__, "curtsy.part": part})


class _Ids(RandomIdGenerator):
    def generate_trace_id(self) -> int:
        given = _next_ids.get()
        return super().generate_trace_id() if given is None else given[0]

    def generate_span_id(self) -> int:
        given = _next_ids.get()
        return super().generate_span_id() if given is None or given[1] is None else given[1]


class Tracing:
    """One per process, made after its fork. Spans are sent by a thread of the SDK."""

    def __init__(self, endpoint: str, sample: float, part: str) -> None:
        # By the trace id alone: all processes decide alike about a trace.
        self._provider = TracerProvider(
            resource=resource(part), sampler=TraceIdRatioBased(sample), id_generator=_Ids(), shutdown_on_exit=False
        )
        exporter = OTLPSpanExporter(endpoint=f"{endpoint.rstrip('/')}/v1/traces", timeout=_FLUSH_MS / 1000)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("curtsy", __version__)
        #: the Celery task that runs: its name and when it began
        self._task: tuple[str, int] | None = None
        #: spans of the running task, by the request whose trace they belong to
        self._of_task: dict[str, Span] = {}
        self._lock = threading.Lock()

    def request(
        self, request_id: str, name: str, began_s: float, attributes: Attributes, headers: Mapping[str, str],
        creates: bool,
    ) -> None:  # fmt: skip
        """A request to the API that has been answered. `creates`: it made a crawl, and is the root of its trace."""
        trace, root = ids_of(request_id)
        caller = get_current_span(TraceContextTextMapPropagator().extract(headers, Context())).get_span_context()
        token = _next_ids.set((trace, root if creates else None))
        try:
            span = self._tracer.start_span(
                name, Context(), SpanKind.SERVER, attributes, [Link(caller)] if caller.is_valid else None,
                time.time_ns() - int((time.monotonic() - began_s) * _NS),
            )  # fmt: skip
        finally:
            _next_ids.reset(token)
        if int(attributes["http.response.status_code"]) >= 500:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def task_begins(self, name: str) -> None:
        self._task = name, time.time_ns()

    def task_ends(self) -> None:
        self._task = None
        with self._lock:
            ending, self._of_task = self._of_task, {}
        for span in ending.values():
            span.end()

    def fetched(self, crawl: Traced, url: str, outcome: Outcome) -> None:
        """A request of a crawl to a website has ended."""
        now, now_s = time.time_ns(), boot()
        attributes: Attributes = {"http.request.method": "GET", "url.full": url, "curtsy.crawl": crawl.id}
        if outcome.status:
            attributes["http.response.status_code"] = outcome.status
        if outcome.fault is not None:
            attributes["error.type"] = outcome.fault.value
        span = self._tracer.start_span(
            "fetch", self._parent(crawl.request_id), SpanKind.CLIENT, attributes,
            start_time=now - int((now_s - (outcome.started or outcome.ended)) * _NS),
        )  # fmt: skip
        if outcome.fault is not None or outcome.status >= 400:
            span.set_status(Status(StatusCode.ERROR))
        span.end(now - int((now_s - outcome.ended) * _NS))

    def stage(self, request_id: str, kind: str, subject: str, began_s: float, failure: str | None) -> None:
        """A stage of a page or a site has ended; `failure` is its cause."""
        began = time.time_ns() - int((time.monotonic() - began_s) * _NS)
        attributes: Attributes = {"curtsy.subject": subject}
        if failure is not None:
            attributes["error.type"] = failure
        span = self._tracer.start_span(
            f"stage {kind}", self._parent(request_id), attributes=attributes, start_time=began
        )
        if failure is not None:
            span.set_status(Status(StatusCode.ERROR))
        span.end()

    def _parent(self, request_id: str) -> Context:
        """The span of the running task in this trace, or the request that began the trace."""
        trace, root = ids_of(request_id)
        above = SpanContext(trace, root, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
        context = set_span_in_context(NonRecordingSpan(above), Context())
        if self._task is None:
            return context
        name, began = self._task
        with self._lock:
            span = self._of_task.get(request_id)
            if span is None:
                span = self._of_task[request_id] = self._tracer.start_span(
                    f"task {name}", context, SpanKind.CONSUMER, start_time=began
                )
        return set_span_in_context(span, Context())

    def close(self) -> None:
        self.task_ends()
        self._provider.force_flush(_FLUSH_MS)
        self._provider.shutdown()
