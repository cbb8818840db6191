"""What the dashboards show: every chart and its query.

In our own metrics an endpoint is ``endpoint``, in vLLM's ``model_name``.
"""

from typing import NamedTuple

INTERVAL = "$__rate_interval"


class Query(NamedTuple):
    """One line, or several, of a panel."""

    expression: str
    legend: str


class Panel(NamedTuple):
    """One chart."""

    title: str
    unit: str  # Grafana's name of it
    description: str
    queries: tuple[Query, ...]


def _quantiles(metric: str, label: str) -> tuple[Query, ...]:
    """The median and the 95th percentile of a histogram, by endpoint."""
    return tuple(
        Query(f'histogram_quantile({q}, sum by (le, {label}) (rate({metric}_bucket{{{label}=~"$endpoint"}}[{INTERVAL}])))', f"{{{{{label}}}}} {name}")
        for q, name in ((0.5, "p50"), (0.95, "p95"))
    )


def _rate(metric: str, label: str, *further: str) -> str:
    """A counter's rate by endpoint, 0 before it was first counted."""
    labels = ", ".join((label, *further))
    return f'sum by ({labels}) (rate({metric}{{{label}=~"$endpoint"}}[{INTERVAL}])) or vector(0)'


def _sum(metric: str, label: str) -> str:
    return f'sum by ({label}) ({metric}{{{label}=~"$endpoint"}})'


ENDPOINT, MODEL = "{{endpoint}}", "{{model_name}}"  # ours and vLLM's label of an endpoint
DASHBOARDS: dict[str, tuple[Panel, ...]] = {
    "Endpoints": (
        Panel(
            "Status",
            "short",
            "1 for the status an endpoint has.",
            (Query('max by (endpoint, status) (ray_peagle_endpoint_status{endpoint=~"$endpoint"})', f"{ENDPOINT} {{{{status}}}}"),),
        ),
        Panel(
            "Requests",
            "reqps",
            "HTTP requests, by status.",
            (Query(_rate("ray_peagle_requests_total", "endpoint", "status"), f"{ENDPOINT} {{{{status}}}}"),),
        ),
        Panel(
            "Requests by key", "reqps", "HTTP requests of each API key.", (Query(_rate("ray_peagle_requests_total", "endpoint", "key"), "{{key}}"),)
        ),
        Panel(
            "Errors",
            "percentunit",
            "Share of requests answered with 5xx, five minutes and an hour.",
            (
                Query('endpoint:error_ratio:5m{endpoint=~"$endpoint"}', f"{ENDPOINT} 5m"),
                Query('endpoint:error_ratio:1h{endpoint=~"$endpoint"}', f"{ENDPOINT} 1h"),
            ),
        ),
        Panel("Time to first token", "s", "In the engine.", _quantiles("ray_vllm_time_to_first_token_seconds", "model_name")),
        Panel(
            "Inter-token latency",
            "s",
            "Between tokens; those of one pass come together.",
            _quantiles("ray_vllm_inter_token_latency_seconds", "model_name"),
        ),
        Panel(
            "Time per output token",
            "s",
            "After the first, of whole requests.",
            _quantiles("ray_vllm_request_time_per_output_token_seconds", "model_name"),
        ),
        Panel("Latency", "s", "Whole requests, in the engine.", _quantiles("ray_vllm_e2e_request_latency_seconds", "model_name")),
        Panel("Output tokens", "short", "Tokens written a second.", (Query('endpoint:output_tokens:per_second{model_name=~"$endpoint"}', MODEL),)),
        Panel("Prompt tokens", "short", "Tokens prefilled a second.", (Query(_rate("ray_vllm_prompt_tokens_total", "model_name"), MODEL),)),
        Panel(
            "Where the time goes",
            "s",
            "95th percentile: until sent (gateway), until a replica took it (router), until answered (engine).",
            (
                Query(
                    f'histogram_quantile(0.95, sum by (le, part) (rate(ray_peagle_request_seconds_bucket{{endpoint=~"$endpoint"}}[{INTERVAL}])))',
                    "{{part}}",
                ),
            ),
        ),
        Panel(
            "Retries and refusals",
            "short",
            "Requests sent to another replica, and those not answered, by reason.",
            (
                Query(_rate("ray_peagle_retries_total", "endpoint"), f"{ENDPOINT} retried"),
                Query(_rate("ray_peagle_refusals_total", "endpoint", "reason"), f"{ENDPOINT} {{{{reason}}}}"),
            ),
        ),
    ),
    "Speculation": (
        Panel(
            "Acceptance length",
            "short",
            "Tokens a verification pass yields, the bonus token included.",
            (Query('endpoint:acceptance_length{model_name=~"$endpoint"}', MODEL),),
        ),
        Panel(
            "Acceptance rate by position",
            "percentunit",
            "Share of passes in which each draft token was accepted.",
            (Query('endpoint:acceptance_rate:by_position{model_name=~"$endpoint"}', f"{MODEL} position {{{{position}}}}"),),
        ),
        Panel(
            "Estimated speedup",
            "short",
            "Tokens a pass over what drafting costs beside it, by the weights both read: an estimate for small batches.",
            (Query('endpoint:estimated_speedup{model_name=~"$endpoint"}', MODEL),),
        ),
        Panel(
            "Draft tokens",
            "short",
            "Proposed and accepted a second.",
            (
                Query(_rate("ray_vllm_spec_decode_num_draft_tokens_total", "model_name"), f"{MODEL} proposed"),
                Query(_rate("ray_vllm_spec_decode_num_accepted_tokens_total", "model_name"), f"{MODEL} accepted"),
            ),
        ),
        Panel(
            "Wasted draft tokens",
            "short",
            "Proposed a second and not accepted: work the target did for nothing.",
            (Query('endpoint:wasted_draft_tokens:per_second{model_name=~"$endpoint"}', MODEL),),
        ),
        Panel("Accepted share", "percentunit", "Of the draft tokens proposed.", (Query('endpoint:accepted_share{model_name=~"$endpoint"}', MODEL),)),
        Panel(
            "Passes",
            "short",
            "Verification passes a second that had drafts.",
            (Query(_rate("ray_vllm_spec_decode_num_drafts_total", "model_name"), MODEL),),
        ),
        Panel(
            "Without its head",
            "short",
            "Replicas that serve without the head that should draft for them.",
            (Query(_sum("ray_peagle_replica_head_failed", "endpoint"), ENDPOINT),),
        ),
    ),
    "Queue and autoscaling": (
        Panel(
            "Queue depth",
            "short",
            "Waiting at gateways and in engines.",
            (
                Query(_sum("ray_peagle_autoscaling_queued", "endpoint"), f"{ENDPOINT} at gateways"),
                Query(_sum("ray_peagle_replica_waiting", "endpoint"), f"{ENDPOINT} in engines"),
            ),
        ),
        Panel("Running", "short", "Requests being decoded.", (Query(_sum("ray_peagle_replica_running", "endpoint"), ENDPOINT),)),
        Panel(
            "Replicas",
            "short",
            "Decided on, and those that answer.",
            (
                Query(_sum("ray_peagle_autoscaling_wanted", "endpoint"), f"{ENDPOINT} wanted"),
                Query(_sum("ray_peagle_autoscaling_ready", "endpoint"), f"{ENDPOINT} ready"),
            ),
        ),
        Panel(
            "Arrived and finished",
            "reqps",
            "Requests a second, as the autoscaler sees them.",
            (
                Query(_sum("ray_peagle_autoscaling_arrived_per_s", "endpoint"), f"{ENDPOINT} arrived"),
                Query(_sum("ray_peagle_autoscaling_finished_per_s", "endpoint"), f"{ENDPOINT} finished"),
            ),
        ),
        Panel(
            "Time to drain",
            "s",
            "Until the queue is empty at this pace, and what a replica takes to start.",
            (
                Query(_sum("ray_peagle_autoscaling_drain_s", "endpoint"), f"{ENDPOINT} drain"),
                Query(_sum("ray_peagle_autoscaling_cold_start_s", "endpoint"), f"{ENDPOINT} cold start"),
            ),
        ),
        Panel("Time in the queue", "s", "In the engine, before the first step.", _quantiles("ray_vllm_request_queue_time_seconds", "model_name")),
        Panel(
            "KV cache",
            "percentunit",
            "In use, the fullest replica.",
            (Query('max by (endpoint) (ray_peagle_replica_kv_cache_usage{endpoint=~"$endpoint"})', ENDPOINT),),
        ),
        Panel(
            "Preemptions",
            "short",
            "Requests set back a second since the KV cache was full.",
            (Query(_rate("ray_vllm_num_preemptions_total", "model_name"), MODEL),),
        ),
        Panel(
            "Prefix cache",
            "percentunit",
            "Share of prompt tokens found there.",
            (
                Query(
                    f'(sum by (model_name) (rate(ray_vllm_prefix_cache_hits_total{{model_name=~"$endpoint"}}[{INTERVAL}])) or '
                    f'0 * sum by (model_name) (rate(ray_vllm_prefix_cache_queries_total{{model_name=~"$endpoint"}}[{INTERVAL}]))) / '
                    f'(sum by (model_name) (rate(ray_vllm_prefix_cache_queries_total{{model_name=~"$endpoint"}}[{INTERVAL}])) > 0)',
                    MODEL,
                ),
            ),
        ),
    ),
    "Cluster": (
        Panel(
            "Replicas by application",
            "short",
            "Serve's replicas that are healthy.",
            (Query("sum by (application, deployment) (ray_serve_deployment_replica_healthy)", "{{application}} {{deployment}}"),),
        ),
        Panel(
            "Starts of replicas",
            "short",
            "Within the last hour.",
            (Query("sum by (application) (increase(ray_serve_deployment_replica_starts_total[1h])) or vector(0)", "{{application}}"),),
        ),
        Panel("Processor", "percent", "Of each node.", (Query("avg by (instance) (ray_node_cpu_utilization)", "{{instance}}"),)),
        Panel("Memory", "bytes", "Used, of each node.", (Query("sum by (instance) (ray_node_mem_used)", "{{instance}}"),)),
        Panel(
            "GPU",
            "percent",
            "Of each GPU.",
            (Query("avg by (instance, GpuIndex) (ray_node_gpus_utilization) or vector(0)", "{{instance}} {{GpuIndex}}"),),
        ),
        Panel(
            "GPU memory",
            "decmbytes",
            "Used, of each GPU.",
            (Query("sum by (instance, GpuIndex) (ray_node_gram_used) or vector(0)", "{{instance}} {{GpuIndex}}"),),
        ),
        Panel("Disk", "percent", "Used, of each node.", (Query("max by (instance) (ray_node_disk_utilization_percentage)", "{{instance}}"),)),
        Panel(
            "Network",
            "Bps",
            "Received and sent by each node.",
            (
                Query(f"sum by (instance) (rate(ray_node_network_received[{INTERVAL}]))", "{{instance}} received"),
                Query(f"sum by (instance) (rate(ray_node_network_sent[{INTERVAL}]))", "{{instance}} sent"),
            ),
        ),
        Panel("Actors", "short", "By state.", (Query("sum by (State) (ray_actors)", "{{State}}"),)),
    ),
}
