"""Application Auto Scaling of endpoints: capacity bounds and target tracking, mapped to the endpoint's own replicas."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.endpoint import Endpoint, Status
from app.registry import Registry
from app.sagemaker.api import ACCOUNT, REGION, ApiError, epoch
from app.sagemaker.records import RequestRecord
from deployments.spec import Replicas

DIMENSION = "sagemaker:variant:DesiredInstanceCount"
# All of them count requests that a replica has; what is asked of one replica is Serve's target of ongoing requests.
METRICS = ("SageMakerVariantConcurrentRequestsPerModelHighResolution", "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution")
_RESOURCE = "endpoint/NAME/variant/VARIANT"


class WeightRecord(BaseModel):
    """The weight of an endpoint's single variant: kept and told, without effect."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="The endpoint.")
    weight: float = Field(description="Its variant's weight.")


class TargetRecord(BaseModel):
    """A scalable target."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="Its resource id.")
    minimum: int = Field(description="MinCapacity.")
    maximum: int = Field(description="MaxCapacity.")
    created: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When it was registered.")


class PolicyRecord(RequestRecord):
    """A scaling policy; its name is the resource id, a space, and the policy's own."""

    @property
    def resource(self) -> str:
        return self.name.split(" ", 1)[0]


def _endpoint(registry: Registry, request: dict[str, Any]) -> Endpoint:
    """The endpoint a request is about, settled.

    Raises:
        ApiError: the namespace, dimension or resource id is another one, or there is no such endpoint.
    """
    if request.get("ServiceNamespace") != "sagemaker":
        raise ApiError("ValidationException", f"ServiceNamespace: {request.get('ServiceNamespace')!r} is not served here; use 'sagemaker'")
    if request.get("ScalableDimension") != DIMENSION:
        raise ApiError("ValidationException", f"ScalableDimension: {request.get('ScalableDimension')!r} is not served here; use {DIMENSION!r}")
    parts = request["ResourceId"].split("/")
    if len(parts) != 4 or (parts[0], parts[2]) != ("endpoint", "variant"):
        raise ApiError("ValidationException", f"ResourceId: {request['ResourceId']!r} is not of the form {_RESOURCE}")
    endpoint = registry.get(parts[1])
    if endpoint is None or endpoint.status is Status.DELETING:
        raise ApiError("ValidationException", f"ResourceId: endpoint {parts[1]!r} does not exist")
    return endpoint


def _apply(registry: Registry, endpoint: Endpoint, resource: str) -> None:
    """Give the endpoint the bounds and the target that are registered for it."""
    target = registry.record(TargetRecord, resource)
    policies = [policy for policy in registry.records(PolicyRecord) if policy.resource == resource]
    configs = [policy.request["TargetTrackingScalingPolicyConfiguration"] for policy in policies]
    minimum = target.minimum if target else endpoint.spec.replicas.minimum
    wanted: dict[str, Any] = {"minimum": minimum, "maximum": target.maximum if target else max(1, minimum)}
    wanted["target_ongoing_requests"] = min((config["TargetValue"] for config in configs), default=None)
    for field, cooldown in (("up_after_s", "ScaleOutCooldown"), ("down_after_s", "ScaleInCooldown")):
        if given := [config[cooldown] for config in configs if cooldown in config]:
            wanted[field] = max(given)
    replicas = Replicas(**{**endpoint.spec.replicas.model_dump(), **wanted})
    if replicas == endpoint.spec.replicas:
        return
    spec = endpoint.spec.model_copy(update={"replicas": replicas})
    if endpoint.status is Status.IN_SERVICE:
        registry.put(endpoint.scaled_to(spec))
    elif endpoint.status is Status.CREATING:
        registry.put(endpoint.model_copy(update={"spec": spec, "deployed": False}))
    else:
        raise ApiError("ConcurrentUpdateException", f"endpoint {endpoint.name!r} is {endpoint.status}; try again once it is InService")


def register(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """RegisterScalableTarget."""
    endpoint, resource = _endpoint(registry, request), request["ResourceId"]
    known = registry.record(TargetRecord, resource)
    minimum = request.get("MinCapacity", known.minimum if known else None)
    maximum = request.get("MaxCapacity", known.maximum if known else None)
    if minimum is None or maximum is None:
        raise ApiError("ValidationException", f"{'MinCapacity' if minimum is None else 'MaxCapacity'} is required for a new scalable target")
    if not 0 <= minimum <= maximum or maximum < 1:
        raise ApiError(
            "ValidationException",
            f"MinCapacity {minimum} and MaxCapacity {maximum}: give 0 <= MinCapacity <= MaxCapacity, and MaxCapacity at least 1",
        )
    registry.put_record(TargetRecord(name=resource, minimum=minimum, maximum=maximum))
    _apply(registry, endpoint, resource)
    return {"ScalableTargetARN": _arn("scalable-target", resource)}


def describe_targets(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeScalableTargets."""
    wanted = request.get("ResourceIds")
    found = [
        {
            "ServiceNamespace": "sagemaker",
            "ResourceId": one.name,
            "ScalableDimension": DIMENSION,
            "MinCapacity": one.minimum,
            "MaxCapacity": one.maximum,
            "RoleARN": f"arn:aws:iam::{ACCOUNT}:role/peagle-serve",
            "CreationTime": epoch(one.created),
            "ScalableTargetARN": _arn("scalable-target", one.name),
        }
        for one in registry.records(TargetRecord)
        if not wanted or one.name in wanted
    ]
    return {"ScalableTargets": found}


def deregister(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DeregisterScalableTarget: its policies go with it, the endpoint stays at its minimum."""
    endpoint, resource = _endpoint(registry, request), request["ResourceId"]
    if registry.record(TargetRecord, resource) is None:
        raise ApiError("ObjectNotFoundException", f"No scalable target registered for service namespace: sagemaker, resource ID: {resource}")
    registry.remove_record(TargetRecord, resource)
    for policy in registry.records(PolicyRecord):
        if policy.resource == resource:
            registry.remove_record(PolicyRecord, policy.name)
    _apply(registry, endpoint, resource)
    return {}


def put_policy(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """PutScalingPolicy: target tracking of the concurrent requests of a replica."""
    endpoint, resource = _endpoint(registry, request), request["ResourceId"]
    if registry.record(TargetRecord, resource) is None:
        raise ApiError("ObjectNotFoundException", f"No scalable target registered for service namespace: sagemaker, resource ID: {resource}")
    if request.get("PolicyType") != "TargetTrackingScaling" or "TargetTrackingScalingPolicyConfiguration" not in request:
        raise ApiError("ValidationException", "PolicyType: only TargetTrackingScaling with its TargetTrackingScalingPolicyConfiguration is served")
    configuration = request["TargetTrackingScalingPolicyConfiguration"]
    predefined = configuration.get("PredefinedMetricSpecification", {}).get("PredefinedMetricType")
    custom = configuration.get("CustomizedMetricSpecification", {}).get("MetricName")
    if predefined not in METRICS and custom != "QueueDepth":
        message = f"PredefinedMetricType: {predefined or custom!r} is not served; use {METRICS[0]}, or a customized metric named QueueDepth"
        raise ApiError("ValidationException", message)
    if configuration["TargetValue"] <= 0:
        raise ApiError("ValidationException", "TargetValue: give a number above 0")
    if negative := next((name for name in ("ScaleOutCooldown", "ScaleInCooldown") if configuration.get(name, 0) < 0), None):
        raise ApiError("ValidationException", f"{negative}: give seconds, 0 or more")
    registry.put_record(PolicyRecord(name=f"{resource} {request['PolicyName']}", request=request))
    _apply(registry, endpoint, resource)
    return {"PolicyARN": _arn("scalingPolicy", f"{resource}:policyName/{request['PolicyName']}"), "Alarms": []}


def describe_policies(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeScalingPolicies."""
    names, resource = request.get("PolicyNames"), request.get("ResourceId")
    found = [
        {
            **one.request,
            "PolicyARN": _arn("scalingPolicy", f"{one.resource}:policyName/{one.request['PolicyName']}"),
            "CreationTime": epoch(one.created),
            "Alarms": [],
        }
        for one in registry.records(PolicyRecord)
        if (not names or one.request["PolicyName"] in names) and (not resource or one.resource == resource)
    ]
    return {"ScalingPolicies": found}


def delete_policy(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteScalingPolicy."""
    endpoint, resource = _endpoint(registry, request), request["ResourceId"]
    name = f"{resource} {request['PolicyName']}"
    if registry.record(PolicyRecord, name) is None:
        raise ApiError("ObjectNotFoundException", f"No scaling policy found for resource ID: {resource}, policy name: {request['PolicyName']}")
    registry.remove_record(PolicyRecord, name)
    _apply(registry, endpoint, resource)
    return {}


def forget(registry: Registry, endpoint: str) -> None:
    """Drop what is registered for an endpoint that is being deleted."""
    registry.remove_record(WeightRecord, endpoint)
    for target in registry.records(TargetRecord):
        if target.name.startswith(f"endpoint/{endpoint}/"):
            registry.remove_record(TargetRecord, target.name)
    for policy in registry.records(PolicyRecord):
        if policy.resource.startswith(f"endpoint/{endpoint}/"):
            registry.remove_record(PolicyRecord, policy.name)


def _arn(kind: str, name: str) -> str:
    return f"arn:aws:application-autoscaling:{REGION}:{ACCOUNT}:{kind}/{name}"
