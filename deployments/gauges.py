"""A replica's state as metrics.

Ray's gauges are gone from a scrape when nothing set them since the one before: these are set whenever Serve asks for routing figures.
"""

from ray.util.metrics import Gauge

_DESCRIBED = {
    "running": "Requests being decoded.",
    "waiting": "Requests a replica holds that its engine has not begun.",
    "kv_cache_usage": "Share of the KV cache in use, 0 to 1.",
    "head_failed": "1 while a replica serves without its head.",
    "draft_cost": "Time to draft, as a share of the target's pass.",
}


class ReplicaGauges:
    """The gauges of one replica (``peagle_replica_...``), by endpoint."""

    def __init__(self, endpoint: str) -> None:
        self._tags = {"endpoint": endpoint}
        self._gauges = {name: Gauge(f"peagle_replica_{name}", description=text, tag_keys=("endpoint",)) for name, text in _DESCRIBED.items()}

    def tell(self, **values: float) -> None:
        """Set them; the names are those of ``_DESCRIBED``."""
        for name, value in values.items():
            self._gauges[name].set(value, tags=self._tags)
