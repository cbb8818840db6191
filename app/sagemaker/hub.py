"""JumpStart's side: ListHubContents and DescribeHubContent over the catalog; a card's environment is its document."""

import json
from datetime import UTC, datetime
from typing import Any

from app.catalog import ModelCard, load_cards
from app.registry import Registry
from app.sagemaker.api import ACCOUNT, REGION, ApiError, epoch, page

HUB = "SageMakerPublicHub"
VERSION, SCHEMA = "1.0.0", "2.2.0"
_CREATED = datetime(2026, 11, 29, tzinfo=UTC)  # cards have no date of their own; the catalog began then


def _check(request: dict[str, Any]) -> None:
    if request["HubName"] != HUB:
        raise ApiError("ResourceNotFound", f"Hub {request['HubName']!r} does not exist; the catalog is {HUB}")
    if request["HubContentType"] != "Model":
        raise ApiError("ValidationException", f"HubContentType: the catalog holds contents of type 'Model', not {request['HubContentType']!r}")


def _summary(card: ModelCard) -> dict[str, Any]:
    return {
        "HubContentName": card.name,
        "HubContentArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hub-content/{HUB}/Model/{card.name}/{VERSION}",
        "HubContentVersion": VERSION,
        "HubContentType": "Model",
        "DocumentSchemaVersion": SCHEMA,
        "HubContentDisplayName": card.title,
        "HubContentDescription": f"{card.parameters_billion:g} B parameters, {card.license}",
        "HubContentSearchKeywords": sorted(card.heads),
        "HubContentStatus": "Available",
        "CreationTime": epoch(_CREATED),
    }


def list_(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """ListHubContents."""
    _check(request)
    cards, token = page({"SortBy": "Name", "SortOrder": "Ascending", **request}, list(load_cards().values()),
                        name=lambda card: card.name, created=lambda _: _CREATED)  # fmt: skip
    return {"HubContentSummaries": [_summary(card) for card in cards], **token}


def describe(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001
    """DescribeHubContent: the document tells the container's environment, K, GPUs and license."""
    _check(request)
    card = load_cards().get(request["HubContentName"])
    if card is None or request.get("HubContentVersion", VERSION) != VERSION:
        raise ApiError(
            "ResourceNotFound", f"HubContentName: {request['HubContentName']!r} is not in the catalog, which has {', '.join(load_cards())}"
        )
    document = {
        "Target": card.target,
        "HostingEnvironment": card.environment_preset(),
        "NumSpeculativeTokens": card.num_speculative_tokens,
        "Heads": card.heads,
        "MinimumGpus": card.minimum_gpus,
        "License": card.license,
        "Notes": list(card.notes),
    }
    summary = {key: value for key, value in _summary(card).items() if key != "HubContentSearchKeywords"}
    return {**summary, "HubName": HUB, "HubArn": f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:hub/{HUB}",
            "HubContentSearchKeywords": sorted(card.heads), "HubContentDocument": json.dumps(document)}  # fmt: skip
