"""What the gateway counts, exported with Ray's own metrics."""

from functools import cache

from ray.util.metrics import Counter


@cache
def _counter(name: str, description: str, *tags: str) -> Counter:
    return Counter(f"peagle_{name}", description=description, tag_keys=tags)


def retried(endpoint: str) -> None:
    """A request was sent to another replica, since its own died."""
    _counter("retries", "Requests sent to another replica since theirs died.", "endpoint").inc(tags={"endpoint": endpoint})


def refused(endpoint: str, reason: str) -> None:
    """A request was not answered: too much waits, the deadline passed, its replica was lost, or engines died of it."""
    _counter("refusals", "Requests not answered, or not to their end, by reason.", "endpoint", "reason").inc(
        tags={"endpoint": endpoint, "reason": reason}
    )
