"""Autoscaling policies side by side on simulated replicas: spikes, ramps and days, and what each costs and keeps waiting."""

import itertools
import math
import random
from collections import deque
from collections.abc import Callable
from statistics import quantiles

from pydantic import BaseModel, ConfigDict, Field

from deployments.autoscaling import Demand, QueueDepthScaler, Rates, ScalingSettings
from deployments.pace import Pace
from deployments.routing_benchmark import soonest_finish
from deployments.simulation import SimulatedReplica, SimulatedRequest, Simulation, conversations

MINUTE = 60.0
LENGTH_S = 60 * MINUTE
MOST = 8

# Requests a second over time, as a share of what one replica can take.
ARRIVALS: dict[str, Callable[[float], float]] = {
    "spike": lambda now: 4.0 if 20 * MINUTE < now < 25 * MINUTE else 0.5,
    "ramp": lambda now: 0.3 + 5.0 * min(now, LENGTH_S - now) / (LENGTH_S / 2),
    "day": lambda now: 2.5 - 2.2 * math.cos(2 * math.pi * now / LENGTH_S),
    "bursts": lambda now: 3.0 if now % (10 * MINUTE) < MINUTE else 0.4,
}


class ScalingResult(BaseModel):
    """One policy under one pattern of arrivals."""

    model_config = ConfigDict(frozen=True)

    arrivals: str = Field(description="Pattern of arrivals.")
    policy: str = Field(description="Autoscaling policy.")
    cold_start_s: float = Field(description="Seconds a replica takes to start.")
    ttft_p50: float = Field(description="Time to first token, seconds.")
    ttft_p95: float = Field(description="Time to first token, 95th percentile, seconds.")
    replica_hours: float = Field(description="Hours replicas ran, starting ones included.")
    starts: int = Field(description="Replicas started.")
    timeline: list[tuple[float, float, int, int]] = Field(description="Seconds, requests held, replicas answering, replicas wanted: every 10 s.")


class _ServeDefault:
    """Serve's own policy: ongoing requests over the target, up after 30 s of it, down after 600 s."""

    def __init__(self, settings: ScalingSettings, minimum: int, maximum: int) -> None:
        self._target, self._minimum, self._maximum = settings.target, minimum, maximum
        self._since: tuple[int, float] = (0, 0.0)
        self._loads: deque[tuple[float, float]] = deque()

    def wanted(self, demand: Demand, now: float) -> int:
        self._loads.append((now, demand.depth + demand.running))
        while self._loads[0][0] < now - 30:  # look_back_period_s
            self._loads.popleft()
        load = sum(held for _, held in self._loads) / len(self._loads)
        count = min(max(math.ceil(load / self._target), self._minimum), self._maximum)
        direction = (count > demand.replicas) - (count < demand.replicas)
        if direction != self._since[0]:
            self._since = (direction, now)
        return count if direction and now - self._since[1] >= (30 if direction > 0 else 600) else demand.replicas


class _QueueDepth:
    def __init__(self, settings: ScalingSettings, minimum: int, maximum: int) -> None:
        self._scaler = QueueDepthScaler(settings, minimum, maximum)

    def wanted(self, demand: Demand, now: float) -> int:
        return self._scaler.decide(demand, now).replicas


POLICIES: dict[str, type[_QueueDepth] | type[_ServeDefault]] = {"queue depth": _QueueDepth, "Serve's default": _ServeDefault}


class _Scaled(Simulation):
    def __init__(self, pace: Pace, slots: int, policy: _QueueDepth | _ServeDefault, cold_start_s: float, seed: int) -> None:
        self._pace, self._slots, self._policy, self._cold_start_s = pace, slots, policy, cold_start_s
        self._names = itertools.count()
        super().__init__([self._new()])
        self._router = soonest_finish(random.Random(seed))
        self._starting = 0
        self.starts = 0
        self.draining: list[SimulatedReplica] = []
        self.replica_s = 0.0
        self.timeline: list[tuple[float, float, int, int]] = []
        self._rates = Rates()

    def _new(self) -> SimulatedReplica:
        return SimulatedReplica(self._pace, self._slots, str(next(self._names)))

    def choose(self, free: list[SimulatedReplica], request: SimulatedRequest) -> SimulatedReplica:
        return self._router(free, request, self.now)

    def tick(self) -> None:
        """One second: ask the policy, start and stop replicas."""
        self.after(1.0, self.tick)
        queued = len(self.queue)
        waiting, running = sum(len(one.waiting) for one in self.replicas), sum(len(one.running) for one in self.replicas)
        finished_per_s, arrived_per_s = self._rates.add(self.now, len(self.done), queued + waiting + running)
        demand = Demand(
            queued=queued, waiting=waiting, running=running, replicas=len(self.replicas) + self._starting, ready=len(self.replicas),
            finished_per_s=finished_per_s, arrived_per_s=arrived_per_s,
        )  # fmt: skip
        wanted = self._policy.wanted(demand, self.now)
        self.draining = [one for one in self.draining if one.ongoing]
        self.replica_s += demand.replicas + len(self.draining)
        if int(self.now) % 10 == 0:
            self.timeline.append((self.now, demand.depth + demand.running, demand.ready, wanted))
        for _ in range(wanted - demand.replicas):
            self._starting += 1
            self.starts += 1
            self.after(self._cold_start_s, self._started)
        while wanted < len(self.replicas) + self._starting and len(self.replicas) > 1:
            self.draining.append(self.replicas.pop(min(range(len(self.replicas)), key=lambda index: self.replicas[index].ongoing)))

    def _started(self) -> None:
        self._starting -= 1
        self.replicas.append(self._new())
        self.route()


def simulate(arrivals: str, policy: str, pace: Pace, slots: int, per_replica: float, cold_start_s: float, seed: int = 0) -> ScalingResult:
    """An hour of arrivals under a policy.

    Args:
        arrivals: a name of ``ARRIVALS``.
        policy: a name of ``POLICIES``.
        pace: the replicas'.
        slots: requests a replica decodes at once.
        per_replica: requests a second one replica can take.
        cold_start_s: seconds a replica takes to start.
        seed: of the arrivals.
    """
    settings = ScalingSettings(target=float(slots), cold_start_s=cold_start_s)
    simulation = _Scaled(pace, slots, POLICIES[policy](settings, 1, MOST), cold_start_s, seed)
    simulation.report()
    simulation.tick()
    draw = random.Random(seed)
    now = 0.0
    bodies = conversations(1.0, 10**9, seed)
    sent: list[SimulatedRequest] = []
    most = max(ARRIVALS[arrivals](second) for second in range(int(LENGTH_S))) * per_replica
    while (now := now + draw.expovariate(most)) < LENGTH_S:  # thinning: a Poisson process whose rate changes
        if draw.random() * most > ARRIVALS[arrivals](now) * per_replica:
            continue
        request = next(bodies)
        request.at = now
        sent.append(request)
        simulation.arrive(request)
    simulation.run(lambda: simulation.now > LENGTH_S and len(simulation.done) == len(sent))
    ttft = quantiles([one.started - one.at for one in sent], n=100)
    return ScalingResult(
        arrivals=arrivals, policy=policy, cold_start_s=cold_start_s, ttft_p50=ttft[49], ttft_p95=ttft[94],
        replica_hours=simulation.replica_s / 3600, starts=simulation.starts, timeline=simulation.timeline,
    )  # fmt: skip
