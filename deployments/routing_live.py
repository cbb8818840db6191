"""Routers side by side on real engines: two replicas each, the same requests at the same times."""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

from deployments.answer import AnswerStart
from deployments.builder import ROUTER, build_application
from deployments.routing_benchmark import RoutingResult
from deployments.simulation import SimulatedRequest, conversations
from deployments.spec import EndpointSpec, Replicas

ROUTERS = {
    "soonest finish": ROUTER,
    "power of two": "ray.serve._private.request_router:PowerOfTwoChoicesRequestRouter",  # Serve's own default
    "round robin": "ray.serve.experimental.round_robin_router:RoundRobinRouter",
    "prefix affinity": "ray.serve.llm.request_router:PrefixCacheAffinityRouter",
}
BLOCKS, TOKENS = 12, 48  # a CPU prefills 400 tokens a second
WORDS = ("river", "stone", "light", "garden", "morning", "letter", "window", "silver", "winter", "music", "paper", "ocean", "market", "forest")


class Body(dict[str, Any]):
    """A request's body; Ray's prefix-affinity router looks for the attribute."""

    @property
    def prompt(self) -> str:
        """What is asked."""
        return str(self["prompt"])


def text(request: SimulatedRequest) -> str:
    """The words that stand for a simulated prompt: the same block, the same words."""
    blocks = []
    for block in request.prompt[:BLOCKS]:
        draw = random.Random(block)
        blocks.append(" ".join(draw.choice(WORDS) for _ in range(48))[:255] + ".")
    return "".join(blocks)


def measure(spec: EndpointSpec, rate: float, count: int, seeds: int, told: Callable[[str], None]) -> list[RoutingResult]:
    """Every router in turn; the machine must have room for two replicas.

    Args:
        spec: the endpoint.
        rate: requests a second.
        count: requests a seed.
        seeds: how often.
        told: is told what happens.
    """
    from ray import serve

    two = spec.model_copy(update={"replicas": Replicas(minimum=2, maximum=2)})
    results = []
    for name, router in ROUTERS.items():
        told(f"{name}: starting two replicas")
        handle = serve.run(build_application(two, router=router), name="routing", route_prefix=None).options(stream=True)
        for seed in range(seeds):
            told(f"{name}: seed {seed}, {count} requests, {rate:g} a second")
            times = asyncio.run(_ask(handle, spec.name, list(conversations(rate, count, seed))))
            results.append(RoutingResult.of(name, rate, seed, [first for first, _ in times], [last for _, last in times]))
        serve.delete("routing")
    return results


async def _ask(handle: Any, model: str, requests: Sequence[SimulatedRequest]) -> list[tuple[float, float]]:
    began = time.perf_counter()

    async def one(request: SimulatedRequest) -> tuple[float, float]:
        await asyncio.sleep(max(0.0, began + request.at - time.perf_counter()))
        start, first = time.perf_counter(), None
        length = min(TOKENS, request.answer_tokens)
        body = Body(model=model, prompt=text(request), max_tokens=length, ignore_eos=True, stream=True)
        async for item in handle.answer.remote("completions", body):
            if isinstance(item, AnswerStart) and first is None:
                first = time.perf_counter() - start
        return first or 0.0, time.perf_counter() - start

    return list(await asyncio.gather(*(one(request) for request in requests)))
