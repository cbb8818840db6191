"""Traces: what Serve's proxies and replicas, and vLLM, send to an OpenTelemetry collector where one is configured.

Serve makes the spans of proxy, gateway and worker itself (``RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH=deployments.tracing:exporters``);
vLLM makes the engine's. All of a request's spans are one trace, and of the client's where it sent a ``traceparent``.
"""

import os
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"  # OpenTelemetry's own: where the collector takes OTLP over HTTP


def exporters() -> list[Any]:
    """Serve's hook: how a process's spans leave it."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    return [BatchSpanProcessor(OTLPSpanExporter())] if os.environ.get(ENDPOINT) else []


def engine_arguments() -> dict[str, Any]:
    """vLLM's arguments."""
    collector = os.environ.get(ENDPOINT)
    return {"otlp_traces_endpoint": f"{collector.rstrip('/')}/v1/traces"} if collector else {}


def environment() -> dict[str, str]:
    """Variables of a replica's processes; vLLM would speak gRPC."""
    found = os.environ.get(ENDPOINT)
    return {ENDPOINT: found, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"} if found else {}


@dataclass(frozen=True)
class Carrier:
    """The current span as request headers, in the shape in which Ray's LLM server takes a client's."""

    headers: dict[str, str]

    def to_starlette_request(self) -> Request:
        """Ray's hook: what vLLM reads the headers from."""
        headers = [(name.lower().encode(), value.encode()) for name, value in self.headers.items()]
        return Request({"type": "http", "method": "POST", "path": "/", "query_string": b"", "headers": headers})


def carrier() -> Carrier | None:
    """The current span; None while nothing is traced."""
    from opentelemetry.propagate import inject

    headers: dict[str, str] = {}
    inject(headers)
    return Carrier(headers) if headers else None
