"""Serve configs: one a card, and one with the same target three ways."""

from typing import Any

from app.catalog import Method, ModelCard

QUEUE = 8  # requests that may wait at each gateway, for each a replica decodes at once


def serve_config(endpoints: list[dict[str, Any]], host: str = "127.0.0.1", proxies: str = "EveryNode") -> dict[str, Any]:
    """A Serve config, as ``serve deploy`` reads it.

    Args:
        endpoints: arguments of ``app.main:build``.
        host: where the proxies listen; a public address needs a key.
        proxies: ``EveryNode``, or ``HeadOnly`` on one machine.
    """
    application = {"name": "peagle", "import_path": "app.main:build", "route_prefix": "/", "args": {"endpoints": endpoints}}
    return {
        "proxy_location": proxies,
        "http_options": {"host": host, "port": 8000},
        "logging_config": {"encoding": "JSON"},  # a line an event, with the request's id
        "applications": [application],
    }


def endpoint(card: ModelCard, method: Method | None = None) -> dict[str, Any]:
    """One endpoint of a card, with P-EAGLE where its head is public, autoscaling and bounded queues."""
    speculation = method or ("p_eagle" if "p_eagle" in card.heads else "none")
    arguments: dict[str, Any] = {"model": card.name, "speculation": speculation}
    if speculation != "none":
        arguments |= {"num_speculative_tokens": card.num_speculative_tokens, "on_head_failure": "fallback"}
    most = 1 if card.hardware == "cpu" else 4
    return {**arguments, "min_replicas": 1, "max_replicas": most, "limits": {"max_queued_requests": QUEUE * card.max_num_seqs}}


def comparison(card: ModelCard) -> list[dict[str, Any]]:
    """The same target with each head it has, and without."""
    methods: list[Method] = [method for method in ("p_eagle", "eagle3") if method in card.heads]
    return [{**endpoint(card, method), "name": f"{card.name}-{method.replace('_', '-')}"} for method in (*methods, "none")]
