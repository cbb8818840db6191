"""How many replicas an endpoint should have, from its queue depth."""

import math
from collections import deque

from pydantic import BaseModel, ConfigDict, Field

WINDOW_S = 30.0


class ScalingSettings(BaseModel):
    """What an endpoint's operator chose."""

    model_config = ConfigDict(frozen=True)

    target: float = Field(gt=0, description="Requests a replica should have, waiting ones included.")
    up_after_s: float = Field(default=5.0, ge=0, description="How long more replicas must have been wanted before they start.")
    down_after_s: float = Field(default=300.0, ge=0, description="How long fewer must have been wanted before one stops.")
    cold_start_s: float = Field(default=60.0, ge=0, description="How long a replica takes to start, until one was seen to.")


class Demand(BaseModel):
    """What is asked of an endpoint at one moment."""

    model_config = ConfigDict(frozen=True)

    queued: float = Field(description="Requests waiting at handles.")
    waiting: float = Field(description="Requests waiting in engines.")
    running: float = Field(description="Requests being decoded.")
    replicas: int = Field(description="Replicas there are to be now, starting ones included.")
    ready: int = Field(description="Replicas that answer.")
    finished_per_s: float = Field(default=0.0, description="Requests all replicas finished a second, lately.")
    arrived_per_s: float = Field(default=0.0, description="Requests that came a second, lately.")

    @property
    def depth(self) -> float:
        """Queue depth: requests no engine has begun."""
        return self.queued + self.waiting


class Decision(BaseModel):
    """How many replicas there should be, and why."""

    model_config = ConfigDict(frozen=True)

    replicas: int = Field(description="Replicas there should be.")
    reason: str = Field(description="Why, in a few words.")
    drain_s: float = Field(description="Seconds until the queue would be empty with the replicas that answer.")


def wanted(demand: Demand, settings: ScalingSettings, cold_start_s: float) -> tuple[int, str, float]:
    """Replicas this moment's demand asks for, before any smoothing; the reason; seconds until its queue drains."""
    count = math.ceil((demand.depth + demand.running) / settings.target - 1e-9)
    spare = demand.finished_per_s - demand.arrived_per_s  # while requests wait, replicas finish as many as they can
    drain_s = demand.depth / spare if spare > 0 else (math.inf if demand.depth else 0.0)
    if count > demand.replicas and demand.replicas and drain_s < cold_start_s:
        return demand.replicas, f"the queue drains in {drain_s:.0f} s, a replica starts in {cold_start_s:.0f} s", drain_s
    return count, f"{demand.running:.0f} running and {demand.depth:.0f} queued at {settings.target:g} a replica", drain_s


class QueueDepthScaler:
    """Smooths what each moment wants: up by what was wanted all through ``up_after_s``, down by what sufficed all through ``down_after_s``."""

    def __init__(self, settings: ScalingSettings, minimum: int, maximum: int) -> None:
        self.settings, self.minimum, self.maximum = settings, minimum, maximum
        self.cold_start_s = settings.cold_start_s
        self._wanted: deque[tuple[float, int, int]] = deque()  # when, wanted, and what would have sufficed
        self._starting: tuple[float, int] | None = None

    def decide(self, demand: Demand, now: float) -> Decision:
        """The decision of this moment.

        Args:
            demand: what is asked.
            now: seconds, of any clock.
        """
        self._learn(demand, now)
        count, reason, drain_s = wanted(demand, self.settings, self.cold_start_s)
        count = min(max(count, self.minimum), self.maximum)
        # What starts is let start: its failure must show, and its cold start be seen.
        self._wanted.append((now, count, max(count, demand.replicas) if demand.ready < demand.replicas else count))
        while self._wanted[0][0] < now - max(self.settings.up_after_s, self.settings.down_after_s):
            self._wanted.popleft()
        lowest = min(count for at, count, _ in self._wanted if at >= now - self.settings.up_after_s)
        highest = max(sufficed for at, _, sufficed in self._wanted if at >= now - self.settings.down_after_s)
        if demand.replicas == 0 and count:
            return Decision(replicas=count, reason="requests wait and no replica runs", drain_s=drain_s)
        if lowest > demand.replicas and self._seen(now, self.settings.up_after_s):
            return Decision(replicas=lowest, reason=reason, drain_s=drain_s)
        if highest < demand.replicas and self._seen(now, self.settings.down_after_s):
            return Decision(replicas=highest, reason=f"{highest} sufficed for {self.settings.down_after_s:.0f} s", drain_s=drain_s)
        return Decision(replicas=demand.replicas, reason=reason, drain_s=drain_s)

    def _seen(self, now: float, seconds: float) -> bool:
        return self._first <= now - seconds

    def _learn(self, demand: Demand, now: float) -> None:
        """How long replicas really take to start."""
        if not self._wanted:
            self._first = now
        if self._starting and demand.ready >= self._starting[1]:
            self.cold_start_s += 0.5 * (now - self._starting[0] - self.cold_start_s)
            self._starting = None
        if demand.replicas <= demand.ready:
            self._starting = None
        elif self._starting is None:
            self._starting = (now, demand.ready + 1)


class Rates:
    """Requests finished and arrived a second, over the last half minute."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, float, float]] = deque()

    def add(self, now: float, finished: float, held: float) -> tuple[float, float]:
        """The rates, with one more look.

        Args:
            now: seconds, of any clock.
            finished: requests finished since the replicas started.
            held: requests not finished.
        """
        if self._seen and finished < self._seen[-1][1]:  # a replica left with its count
            self._seen.clear()
        self._seen.append((now, finished, held))
        while len(self._seen) > 2 and self._seen[0][0] < now - WINDOW_S:
            self._seen.popleft()
        start, before, held_before = self._seen[0]
        if now <= start:
            return 0.0, 0.0
        gone = (finished - before) / (now - start)
        return gone, max(0.0, gone + (held - held_before) / (now - start))
