"""What the gateway and the manager count, exported with Ray's own metrics."""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from ray.util.metrics import Counter, Gauge, Histogram

SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600]


@cache
def _counter(name: str, description: str, *tags: str) -> Counter:
    return Counter(f"peagle_{name}", description=description, tag_keys=tags)


@cache
def _gauge(name: str, description: str, *tags: str) -> Gauge:
    return Gauge(f"peagle_{name}", description=description, tag_keys=tags)


@cache
def _histogram(name: str, description: str, *tags: str) -> Histogram:
    return Histogram(f"peagle_{name}", description=description, boundaries=SECONDS, tag_keys=tags)


def answered(route: str, endpoint: str, status: str, key: str, seconds: float) -> None:
    """An HTTP request has ended.

    Args:
        route: the route's pattern.
        endpoint: what it was for; empty: for none there is.
        status: HTTP status, or ``gone`` when the client left before there was one.
        key: name of the caller's key; empty: none was needed.
        seconds: from its coming to its last byte.
    """
    tags = {"route": route, "endpoint": endpoint, "status": status, "key": key}
    _counter("requests", "HTTP requests.", *tags).inc(tags=tags)
    of_route = {"route": route, "endpoint": endpoint}
    _histogram("http_seconds", "Seconds of an HTTP request, to its last byte.", *of_route).observe(seconds, tags=of_route)


def spent(endpoint: str, part: Literal["gateway", "router", "engine"], seconds: float) -> None:
    """Where a request's time went: until it was sent, until a replica took it, until its answer ended."""
    description = "Seconds of a request: gateway (until sent), router (until a replica took it), engine (until answered)."
    tags = {"endpoint": endpoint, "part": part}
    _histogram("request_seconds", description, *tags).observe(seconds, tags=tags)


def retried(endpoint: str) -> None:
    """A request was sent to another replica, since its own died."""
    _counter("retries", "Requests sent to another replica since theirs died.", "endpoint").inc(tags={"endpoint": endpoint})


def refused(endpoint: str, reason: str) -> None:
    """A request was not answered: too much waits, the deadline passed, its replica was lost, or engines died of it."""
    _counter("refusals", "Requests not answered, or not to their end, by reason.", "endpoint", "reason").inc(
        tags={"endpoint": endpoint, "reason": reason}
    )


class EndpointStates:
    """The status of every endpoint as a gauge: 1 for the one it has, 0 for one it had."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()

    def tell(self, statuses: Mapping[str, str]) -> None:
        """``statuses``: by endpoint."""
        now = set(statuses.items())
        for endpoint, status in now | self._told:
            gauge = _gauge("endpoint_status", "1 for the status an endpoint has.", "endpoint", "status")
            gauge.set(float((endpoint, status) in now), tags={"endpoint": endpoint, "status": status})
        self._told |= now
