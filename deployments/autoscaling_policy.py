"""Serve's autoscaling policy, which runs in Serve's controller.

Ray pickles this module by value, which pydantic's classes do not survive: they stand in ``deployments.autoscaling``.
"""

import logging
from typing import Any

from deployments.autoscaling import Demand, QueueDepthScaler, Rates, ScalingSettings

logger = logging.getLogger("ray.serve")


class QueueDepthPolicy:
    """Serve's autoscaling policy (``AutoscalingPolicy.policy_function``): one instance an endpoint, in Serve's controller."""

    def __init__(self, endpoint: str, **settings: Any) -> None:
        self._endpoint = endpoint
        self._settings = ScalingSettings(**settings)
        self._scaler: QueueDepthScaler | None = None
        self._rates = Rates()
        self._gauges = _gauges()

    def __call__(self, ctx: Any) -> tuple[int, dict[str, Any]]:
        """Decide.

        Args:
            ctx: Ray's ``AutoscalingContext``.

        Returns:
            The number of replicas, and no state beside this object's own.
        """
        minimum, maximum = ctx.capacity_adjusted_min_replicas, ctx.capacity_adjusted_max_replicas
        first = self._scaler is None
        if self._scaler is None:
            self._scaler = QueueDepthScaler(self._settings, minimum, maximum)
        self._scaler.minimum, self._scaler.maximum = minimum, maximum
        demand = self._demand(ctx)
        decision = self._scaler.decide(demand, ctx.current_time)
        level = logging.INFO if first or decision.replicas != ctx.target_num_replicas else logging.DEBUG
        logger.log(
            level, "autoscaling %s: %d -> %d replicas: %s; %s", self._endpoint, ctx.target_num_replicas, decision.replicas, decision.reason,
            demand.model_dump_json(),
        )  # fmt: skip
        values = {
            **demand.model_dump(),
            "wanted": decision.replicas,
            "drain_s": min(decision.drain_s, 1e6),
            "cold_start_s": self._scaler.cold_start_s,
        }
        for name, gauge in self._gauges.items():
            gauge.set(float(values[name]), tags={"endpoint": self._endpoint})
        return decision.replicas, {}

    def _demand(self, ctx: Any) -> Demand:
        stats = ctx.aggregated_metrics or {}

        def total(name: str) -> float:
            return sum(stats.get(name, {}).values())

        queued, waiting, running = ctx.total_queued_requests or 0, total("waiting"), total("running")
        finished_per_s, arrived_per_s = self._rates.add(ctx.current_time, total("finished"), queued + waiting + running)
        return Demand(
            queued=queued, waiting=waiting, running=running, replicas=ctx.target_num_replicas, ready=len(ctx.running_replicas),
            finished_per_s=finished_per_s, arrived_per_s=arrived_per_s,
        )  # fmt: skip


def _gauges() -> dict[str, Any]:
    from ray.util.metrics import Gauge

    described = {
        "queued": "Requests waiting at handles.",
        "waiting": "Requests waiting in engines.",
        "running": "Requests being decoded.",
        "replicas": "Replicas there were to be.",
        "ready": "Replicas that answered.",
        "finished_per_s": "Requests finished a second.",
        "arrived_per_s": "Requests that came a second.",
        "wanted": "Replicas decided on.",
        "drain_s": "Seconds until the queue drains.",
        "cold_start_s": "Seconds a replica takes to start.",
    }
    return {name: Gauge(f"peagle_autoscaling_{name}", description=text, tag_keys=("endpoint",)) for name, text in described.items()}
