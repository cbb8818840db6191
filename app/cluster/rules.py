"""Prometheus rules: what a dashboard asks often, worked out once, and what wakes somebody."""

from typing import Any, NamedTuple

WINDOW = "5m"


def per_second(metric: str, *labels: str, window: str = WINDOW) -> str:
    """A counter's rate, added up over processes."""
    return f"sum by ({', '.join(labels)}) (rate({metric}[{window}]))"


def ratio(above: str, below: str, join: str = "") -> str:
    """A quotient that is absent, not NaN, where nothing happened."""
    return f"({above}) / {join}({below} > 0)"


def error_ratio(window: str) -> str:
    """Share of an endpoint's requests answered with 5xx; 0, not absent, while all go well."""
    requests = per_second("ray_peagle_requests_total", "endpoint", window=window)
    failed = per_second('ray_peagle_requests_total{status=~"5.."}', "endpoint", window=window)
    return ratio(f"{failed} or 0 * {requests}", requests, "on (endpoint) ")


DRAFTS = per_second("ray_vllm_spec_decode_num_drafts_total", "model_name")
PROPOSED = per_second("ray_vllm_spec_decode_num_draft_tokens_total", "model_name")
ACCEPTED = per_second("ray_vllm_spec_decode_num_accepted_tokens_total", "model_name")
BY_POSITION = per_second("ray_vllm_spec_decode_num_accepted_tokens_per_pos_total", "model_name", "position")

# An endpoint is vLLM's `model_name`; in our own metrics it is `endpoint`.
RECORDED = {
    "endpoint:acceptance_length": f"1 + {ratio(ACCEPTED, DRAFTS)}",
    "endpoint:acceptance_rate:by_position": ratio(BY_POSITION, DRAFTS, "on (model_name) group_left () "),
    "endpoint:accepted_share": ratio(ACCEPTED, PROPOSED),
    "endpoint:wasted_draft_tokens:per_second": f"({PROPOSED}) - ({ACCEPTED})",
    "endpoint:output_tokens:per_second": per_second("ray_vllm_generation_tokens_total", "model_name"),
    # Tokens a pass, over what the draft costs beside it (deployments/draft_cost.py).
    "endpoint:estimated_speedup": (
        f"(1 + {ratio(ACCEPTED, DRAFTS)}) / on (model_name) (1 + max by (model_name) "
        '(label_replace(ray_peagle_replica_draft_cost, "model_name", "$1", "endpoint", "(.*)")))'
    ),
    "endpoint:queue_depth": "sum by (endpoint) (ray_peagle_autoscaling_queued + ray_peagle_autoscaling_waiting)",
    "endpoint:requests:per_second": per_second("ray_peagle_requests_total", "endpoint"),
    **{f"endpoint:error_ratio:{window}": error_ratio(window) for window in ("5m", "1h")},
}


class Alert(NamedTuple):
    """A condition that somebody should hear of."""

    name: str
    query: str  # what is looked at, which has a value also while all is well
    fires: str  # what its value must be
    lasts: str
    severity: str
    summary: str


BUDGET = 0.001  # requests that may fail: an objective of 99.9 %
ALERTS = (
    Alert(
        "AcceptanceCollapsed",
        "endpoint:acceptance_length",
        "< 1.15",
        "10m",
        "warning",
        "Drafts of endpoint {{ $labels.model_name }} are hardly accepted ({{ $value | humanize }} a pass): the head does not fit.",
    ),
    Alert(
        "EndpointNotInService",
        'max by (endpoint, status) (ray_peagle_endpoint_status{status!~"InService|Updating|Deleting"})',
        "== 1",
        "15m",
        "critical",
        "Endpoint {{ $labels.endpoint }} is {{ $labels.status }}.",
    ),
    Alert(
        "QueueGrowing",
        "deriv(endpoint:queue_depth[10m])",
        "> 0 and on (endpoint) endpoint:queue_depth > 16",
        "10m",
        "warning",
        "What waits at endpoint {{ $labels.endpoint }} has grown for ten minutes: it needs more replicas.",
    ),
    Alert(
        "ErrorBudgetBurning",
        "endpoint:error_ratio:1h",
        f"> {14.4 * BUDGET:g} and on (endpoint) endpoint:error_ratio:5m > {14.4 * BUDGET:g}",
        "2m",
        "critical",
        "{{ $value | humanizePercentage }} of endpoint {{ $labels.endpoint }}'s requests fail: a month's budget of 0.1 % lasts two days.",
    ),
    Alert(
        "ReplicaFlapping",
        'sum by (application) (increase(ray_serve_deployment_replica_starts_total{deployment="SpeculativeWorker"}[1h]))',
        "> 6",
        "5m",
        "warning",
        "Replicas of {{ $labels.application }} started {{ $value | humanize }} times within an hour: engines die, or scaling swings.",
    ),
)


def rules() -> dict[str, Any]:
    """Prometheus's rule file."""
    alerts = [
        {
            "alert": alert.name,
            "expr": f"{alert.query} {alert.fires}",
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary},
        }
        for alert in ALERTS
    ]
    recorded = [{"record": name, "expr": query} for name, query in RECORDED.items()]
    return {"groups": [{"name": "peagle", "interval": "15s", "rules": recorded}, {"name": "peagle-alerts", "rules": alerts}]}
