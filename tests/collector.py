"""An OpenTelemetry collector for tests: takes OTLP over HTTP and keeps the spans."""

import gzip
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


class _Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = ExportTraceServiceRequest.FromString(gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body)
        self.server.spans += [
            SimpleNamespace(trace=span.trace_id.hex(), id=span.span_id.hex(), parent=span.parent_span_id.hex(), name=span.name)
            for resource in request.resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]
        self.send_response(200)
        self.end_headers()


@contextmanager
def collector():
    """Its address and the spans that have come."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.spans = []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}", spans=server.spans)
    finally:
        server.shutdown()
