"""A receiver of OTLP over HTTP: it decodes what arrives with the official protobuf classes."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class OtlpReceiver:
    """Listens on a free port of this machine until `close`."""

    def __init__(self) -> None:
        #: (part of the process, span)
        self.spans: list[tuple[str, Any]] = []
        #: name -> metric, as it arrived last
        self.metrics: dict[str, Any] = {}
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                receiver._take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def _take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for sent in ExportTraceServiceRequest.FromString(body).resource_spans:
                part = {one.key: one.value.string_value for one in sent.resource.attributes}["curtsy.part"]
                self.spans += [(part, span) for scope in sent.scope_spans for span in scope.spans]
        elif path == "/v1/metrics":
            for sent in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.metrics |= {metric.name: metric for scope in sent.scope_metrics for metric in scope.metrics}

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
