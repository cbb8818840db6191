"""One endpoint spec in, one Serve application out."""

from typing import Any

from deployments import cpu, tracing
from deployments.autoscaling import ScalingSettings
from deployments.spec import EndpointSpec
from deployments.version import versioned
from drafter.engine import cpu_arguments

ROUTER = "deployments.router:SoonestFinish"
STATS_PERIOD_S = 1.0  # how often replicas tell routers and the autoscaler
LOGGING = {"encoding": "JSON"}  # a line an event, with the request's id; a Serve config's own does not reach applications deployed later
HEALTH_CHECK_PERIOD_S = 2.0  # Serve sees a dead replica no sooner; at Ray's 10 s an endpoint is that much longer one replica short
LOOK_AGAIN_S = 0.1  # at most, before replicas that were full are asked again: a free slot is idle as long
HEALTH_CHECK_TIMEOUT_S = 60.0  # a loaded engine may take long to answer; at Ray's 10 s loaded replicas are killed (ray#54070)


def engine_arguments(spec: EndpointSpec) -> dict[str, Any]:
    """vLLM's engine arguments for ``spec``, as ``LLMConfig.engine_kwargs`` takes them."""
    arguments: dict[str, Any] = cpu_arguments(spec.model) if spec.hardware == "cpu" else {}
    arguments |= {"tensor_parallel_size": spec.tensor_parallel_size, "max_num_seqs": spec.max_num_seqs, **spec.engine}
    arguments |= tracing.engine_arguments()
    if spec.max_model_len is not None:
        arguments["max_model_len"] = spec.max_model_len
    if (speculative := spec.speculation.to_vllm(spec.tensor_parallel_size)) is not None:
        arguments["speculative_config"] = speculative
    return arguments


def deployment_options(spec: EndpointSpec, router: str = ROUTER) -> dict[str, Any]:
    """Serve's options. Its defaults for LLM applications (1e9 ongoing requests) switch backpressure and autoscaling off."""
    return {
        "name": "SpeculativeWorker",
        "max_ongoing_requests": spec.max_ongoing_requests,
        "max_queued_requests": spec.max_queued_requests,
        "autoscaling_config": autoscaling(spec),
        "request_router_config": {
            "request_router_class": router,
            "request_routing_stats_period_s": STATS_PERIOD_S,
            "max_backoff_s": LOOK_AGAIN_S,
        },
        "health_check_period_s": HEALTH_CHECK_PERIOD_S,
        "health_check_timeout_s": HEALTH_CHECK_TIMEOUT_S,
        "graceful_shutdown_timeout_s": spec.limits.drain_s,
        "logging_config": LOGGING,
        "max_constructor_retry_count": 2,  # engines that start at once may race for a port; what cannot load at all, preflight refuses
        "ray_actor_options": {"num_cpus": 0},
    }


def autoscaling(spec: EndpointSpec) -> dict[str, Any]:
    """Serve's autoscaling options: our policy, which does its own smoothing."""
    replicas = spec.replicas
    target = replicas.target_ongoing_requests or float(spec.max_num_seqs)
    settings = ScalingSettings(target=target, up_after_s=replicas.up_after_s, down_after_s=replicas.down_after_s, cold_start_s=replicas.cold_start_s)
    return {
        "min_replicas": replicas.minimum,
        "initial_replicas": max(1, replicas.minimum),  # one starts even where none is kept, so that a failure shows
        "max_replicas": replicas.maximum,
        "target_ongoing_requests": target,
        "upscale_delay_s": 0.0,
        "downscale_delay_s": 0.0,
        "metrics_interval_s": STATS_PERIOD_S,
        "look_back_period_s": 2 * STATS_PERIOD_S,
        "policy": {
            "policy_function": "deployments.autoscaling_policy:QueueDepthPolicy",
            "policy_kwargs": {"endpoint": spec.name, **settings.model_dump()},
        },
    }


def bundles(spec: EndpointSpec) -> list[dict[str, float]]:
    """The placement group of one replica: a bundle a GPU, each with a core to feed it; on a CPU a core a worker."""
    bundle = {"CPU": 1.0} if spec.hardware == "cpu" else {"GPU": 1.0, "CPU": 1.0}
    return [dict(bundle) for _ in range(spec.tensor_parallel_size)]


def llm_config(spec: EndpointSpec, router: str = ROUTER) -> Any:
    """Ray's ``LLMConfig`` for ``spec``."""
    from ray.serve.llm import LLMConfig

    return LLMConfig(
        model_loading_config={"model_id": spec.name, "model_source": spec.model},
        accelerator_config={"kind": spec.hardware},
        accelerator_type=spec.accelerator,
        placement_group_config={"bundles": bundles(spec), "strategy": "PACK"},
        engine_kwargs=engine_arguments(spec),
        deployment_config=deployment_options(spec, router),
        runtime_env={"env_vars": {**(cpu.environment(spec.tensor_parallel_size) if spec.hardware == "cpu" else {}), **tracing.environment()}},
        callback_config={"callback_class": "deployments.local_files:LocalFiles"},
        # Each engine step's tokens go out at once; Ray's default gathers them for 50 ms.
        experimental_configs={"stream_batching_interval_ms": 0},
    )


def build_application(spec: EndpointSpec, head_failure: str | None = None, router: str = ROUTER) -> Any:
    """The Serve application that runs ``spec``; needs a connection to Ray.

    Args:
        spec: the endpoint, without its head where that is known not to load.
        head_failure: why it is without.
        router: import path of the request router's class; the routing benchmark compares ours with Serve's.
    """
    from ray import serve

    from deployments.worker import SpeculativeWorker

    config = llm_config(spec, router)
    options = SpeculativeWorker.get_deployment_options(config)
    without_head = llm_config(spec.without_head()) if spec.on_head_failure == "fallback" else None
    return versioned(serve.deployment(SpeculativeWorker).options(**options), spec).bind(config, spec, without_head, head_failure)
