"""What can be known about an endpoint in seconds, before anything is loaded."""

import json
from collections import Counter
from pathlib import Path

from deployments.arguments import known_arguments, nearest
from deployments.builder import bundles, engine_arguments
from deployments.cpu import too_small
from deployments.sharding import head_sizes, shard_problem, target_sizes
from deployments.spec import EndpointSpec
from deployments.speculation import NoSpeculation, PEagle
from drafter.target import prepare_target, target_folder
from drafter.verify import head_problems


def preflight(spec: EndpointSpec, cluster: dict[str, float]) -> str | None:
    """Why ``spec`` cannot run, or None. Fetches the CPU default target when it is not there yet.

    Args:
        spec: the endpoint.
        cluster: Ray's ``cluster_resources()``.
    """
    if spec.hardware == "cpu" and (reason := too_small()):
        return reason
    if reason := lacking(spec, cluster):
        return reason
    if reason := unknown_argument(spec):
        return reason
    if spec.model == str(target_folder()):
        prepare_target()
    target = Path(spec.model)
    if looks_local(spec.model) and not (target / "config.json").is_file():
        return f"model: {spec.model} is not a folder with a config.json"
    return unshardable(spec)


def head_problem(spec: EndpointSpec) -> str | None:
    """Why the endpoint's head cannot be used, or None."""
    if isinstance(spec.speculation, NoSpeculation) or not looks_local(spec.speculation.head):
        return None
    head, target = Path(spec.speculation.head), Path(spec.model)
    if not head.is_dir():
        return f"speculation.head: {head} is not a folder"
    if target.is_dir() and (problems := head_problems(head, target, isinstance(spec.speculation, PEagle))):
        return "speculation.head: " + "; ".join(problems)
    sizes = json.loads((head / "config.json").read_text())
    return shard_problem(spec.speculation.draft_tensor_parallel_size or spec.tensor_parallel_size, head_sizes(sizes), "draft_tensor_parallel_size")


def unshardable(spec: EndpointSpec) -> str | None:
    """Why the target cannot be sharded so, or None; a hub id's sizes are not known here."""
    config = Path(spec.model) / "config.json"
    if not config.is_file():
        return None
    return shard_problem(spec.tensor_parallel_size, target_sizes(json.loads(config.read_text())), "tensor_parallel_size")


def looks_local(location: str) -> bool:
    """Whether a target or head is a folder rather than a hub id (``owner/name``)."""
    return location.startswith(("/", ".", "~")) or location.count("/") > 1


def lacking(spec: EndpointSpec, cluster: dict[str, float]) -> str | None:
    """What the cluster lacks for the endpoint's replicas, or None."""
    needed: Counter[str] = Counter()
    for bundle in bundles(spec):
        for resource, amount in bundle.items():
            needed[resource] += amount * spec.replicas.minimum  # type: ignore[assignment]
    for resource, amount in needed.items():
        if cluster.get(resource, 0) < amount:
            return f"the endpoint needs {amount:g} {resource} for {spec.replicas.minimum} replica(s), the cluster has {cluster.get(resource, 0):g}"
    if spec.accelerator and f"accelerator_type:{spec.accelerator}" not in cluster:
        return f"the endpoint needs {spec.accelerator} accelerators, the cluster has none"
    return None


def unknown_argument(spec: EndpointSpec) -> str | None:
    """The first engine argument vLLM does not know, with the nearest it does, or None."""
    for name in engine_arguments(spec):
        if name not in known_arguments():
            near = nearest(name)
            return f"engine: vLLM has no argument {name!r}" + (f", did you mean {near!r}?" if near else "")
    return None
