"""AddTags, ListTags, DeleteTags: of models, endpoint configs and endpoints, by ARN."""

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.registry import Registry
from app.sagemaker.api import ApiError, arn
from app.sagemaker.records import ConfigRecord, ModelRecord

LIMIT = 50


class TagRecord(BaseModel):
    """The tags of one resource."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="The resource's ARN.")
    tags: dict[str, str] = Field(description="Value by key.")


def put(registry: Registry, resource: str, given: Sequence[dict[str, str]]) -> None:
    """Add tags to a resource, replacing those of the same key.

    Raises:
        ApiError: it would have more than SageMaker's 50.
    """
    if not given:
        return
    tags = {**of(registry, resource), **{tag["Key"]: tag["Value"] for tag in given}}
    if len(tags) > LIMIT:
        raise ApiError("ResourceLimitExceeded", f"Tags: a resource has {LIMIT} tags at most, {resource} would have {len(tags)}")
    registry.put_record(TagRecord(name=resource, tags=tags))


def of(registry: Registry, resource: str) -> dict[str, str]:
    """The tags of a resource."""
    record = registry.record(TagRecord, resource)
    return record.tags if record else {}


def forget(registry: Registry, resource: str) -> None:
    """Drop all tags of a resource that is gone."""
    registry.remove_record(TagRecord, resource)


def _existing(registry: Registry, resource: str) -> str:
    kinds: dict[str, Sequence[Any]] = {
        "model": registry.records(ModelRecord),
        "endpoint-config": registry.records(ConfigRecord),
        "endpoint": registry.all(),
    }
    if not any(arn(kind, one.name) == resource for kind, records in kinds.items() for one in records):
        raise ApiError("ResourceNotFound", f"ResourceArn: {resource} does not exist")
    return resource


def add(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """AddTags."""
    put(registry, _existing(registry, request["ResourceArn"]), request["Tags"])
    return {"Tags": _listed(registry, request["ResourceArn"])}


def list_(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """ListTags."""
    return {"Tags": _listed(registry, _existing(registry, request["ResourceArn"]))}


def delete(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteTags."""
    resource = _existing(registry, request["ResourceArn"])
    left = {key: value for key, value in of(registry, resource).items() if key not in request["TagKeys"]}
    registry.put_record(TagRecord(name=resource, tags=left))
    return {}


def _listed(registry: Registry, resource: str) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in of(registry, resource).items()]
