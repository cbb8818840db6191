"""Routers side by side on simulated replicas: the same arrivals, the same engines, another choice of replica."""

import itertools
import random
from collections.abc import Callable, Sequence
from statistics import mean, quantiles

from pydantic import BaseModel, ConfigDict, Field

from deployments.pace import Pace
from deployments.router import TIE
from deployments.scoring import Prefixes, cost, preference
from deployments.simulation import SimulatedReplica, SimulatedRequest, Simulation, conversations
from deployments.work import Demand

HANDLES = 2  # gateways, none of which knows what the other sent

Choose = Callable[[list[SimulatedReplica], SimulatedRequest, float], SimulatedReplica]


class RoutingResult(BaseModel):
    """One router under one load; times in seconds."""

    model_config = ConfigDict(frozen=True)

    router: str = Field(description="How replicas were chosen.")
    load: float = Field(description="Requests a second, as a share of what the replicas can take.")
    seed: int = Field(description="Of the arrivals.")
    ttft_mean: float = Field(description="Time to first token.")
    ttft_p95: float = Field(description="Time to first token, 95th percentile.")
    ttft_p99: float = Field(description="Time to first token, 99th percentile.")
    latency_mean: float = Field(description="Time to the last token.")
    latency_p95: float = Field(description="Time to the last token, 95th percentile.")
    latency_p99: float = Field(description="Time to the last token, 99th percentile.")

    @classmethod
    def of(cls, router: str, load: float, seed: int, ttft: Sequence[float], latency: Sequence[float]) -> "RoutingResult":
        """The result of requests with these times, in seconds."""
        first, last = (quantiles(times, n=100, method="inclusive") for times in (ttft, latency))
        return cls(
            router=router, load=load, seed=seed, ttft_mean=mean(ttft), ttft_p95=first[94], ttft_p99=first[98], latency_mean=mean(latency),
            latency_p95=last[94], latency_p99=last[98],
        )  # fmt: skip


def power_of_two(draw: random.Random) -> Choose:
    """Serve's default: the one with fewer requests of two drawn by lot."""

    def choose(replicas: list[SimulatedReplica], _: SimulatedRequest, __: float) -> SimulatedReplica:
        return min(draw.sample(replicas, min(2, len(replicas))), key=lambda one: one.ongoing)

    return choose


def round_robin(_: random.Random) -> Choose:
    """One after the other."""
    turns = itertools.count()
    return lambda replicas, _, __: replicas[next(turns) % len(replicas)]


def prefix_affinity(draw: random.Random) -> Choose:
    """Ray's PrefixCacheAffinityRouter by its documented rule: the best match while queues differ by less than ten requests."""
    known: dict[str, Prefixes] = {}
    balanced = power_of_two(draw)

    def choose(replicas: list[SimulatedReplica], request: SimulatedRequest, now: float) -> SimulatedReplica:
        sizes = [one.ongoing for one in replicas]
        held = {one.name: known.setdefault(one.name, Prefixes()).held(request.prompt) for one in replicas}
        if max(sizes) - min(sizes) >= 10:
            chosen = balanced(replicas, request, now)
        elif max(held.values()) >= 0.1 * len(request.prompt):
            chosen = max(replicas, key=lambda one: held[one.name])
        else:
            chosen = min(replicas, key=lambda one: len(known[one.name]))
        known[chosen.name].remember(request.prompt)
        return chosen

    return choose


def soonest_finish(_: random.Random) -> Choose:
    """Ours, from reports a second old and what this handle sent since."""
    sent: dict[str, list[tuple[float, Demand]]] = {}
    known: dict[str, Prefixes] = {}

    def choose(replicas: list[SimulatedReplica], request: SimulatedRequest, now: float) -> SimulatedReplica:
        estimates = {}
        for one in replicas:
            since = sent[one.name] = [(at, demand) for at, demand in sent.get(one.name, []) if at > one.reported.at]
            held = known.setdefault(one.name, Prefixes()).held(request.prompt) / len(request.prompt)
            estimates[one.name] = cost(one.reported.plus([demand for _, demand in since]), request.demand, held)
        best = min(estimates.values()) * (1 + TIE)
        alike = [one for one in replicas if estimates[one.name] <= best]
        chosen = min(alike, key=lambda one: preference(request.prompt, one.name))
        sent[chosen.name].append((now, request.demand))
        known[chosen.name].remember(request.prompt)
        return chosen

    return choose


ROUTERS: dict[str, Callable[[random.Random], Choose]] = {
    "soonest finish": soonest_finish,
    "power of two": power_of_two,
    "round robin": round_robin,
    "prefix affinity": prefix_affinity,
}


class _Routed(Simulation):
    def __init__(self, replicas: list[SimulatedReplica], router: str, seed: int) -> None:
        super().__init__(replicas)
        draw = random.Random(seed)
        self._handles = [ROUTERS[router](draw) for _ in range(HANDLES)]
        self._draw = draw

    def choose(self, free: list[SimulatedReplica], request: SimulatedRequest) -> SimulatedReplica:
        return self._draw.choice(self._handles)(free, request, self.now)


def simulate(router: str, requests: Sequence[SimulatedRequest], pace: Pace, replicas: int, slots: int, seed: int) -> list[SimulatedRequest]:
    """Every request answered; the simulated seconds are in them."""
    simulation = _Routed([SimulatedReplica(pace, slots, str(number)) for number in range(replicas)], router, seed)
    simulation.report()
    for request in requests:
        simulation.arrive(request)
    simulation.run(lambda: len(simulation.done) == len(requests))
    return simulation.done


def capacity(pace: Pace, replicas: int, slots: int, count: int) -> float:
    """Requests a second the replicas can take of this traffic: all of it sent at once, answered as fast as can be."""
    done = simulate("power of two", list(conversations(1e6, count, seed=0)), pace, replicas, slots, seed=0)
    ends = sorted(one.finished for one in done)
    return 0.9 * count / ends[int(0.9 * count) - 1]  # the last few leave replicas idle


def compare(pace: Pace, loads: Sequence[float], replicas: int, slots: int, count: int, seeds: int) -> list[RoutingResult]:
    """Every router under every load, on the same arrivals."""
    most = capacity(pace, replicas, slots, count)
    results = []
    for load, seed, router in itertools.product(loads, range(seeds), ROUTERS):
        done = simulate(router, list(conversations(load * most, count, seed)), pace, replicas, slots, seed)
        steady = sorted(done, key=lambda one: one.at)[count // 10 :]  # the first come to empty replicas
        ttft, latency = [one.started - one.at for one in steady], [one.finished - one.at for one in steady]
        results.append(RoutingResult.of(router, load, seed, ttft, latency))
    return results
