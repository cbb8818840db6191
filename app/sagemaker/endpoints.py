"""CreateEndpoint, DescribeEndpoint, ListEndpoints, UpdateEndpoint, UpdateEndpointWeightsAndCapacities, DeleteEndpoint."""

from typing import Any

from app.endpoint import Endpoint, Status
from app.registry import Registry
from app.sagemaker import endpoint_configs, scaling, tags
from app.sagemaker.api import ApiError, arn, epoch, page
from deployments.spec import Replicas

KIND = "endpoint"


def create(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """CreateEndpoint: ``Creating`` until a replica answers."""
    name = request["EndpointName"]
    if registry.get(name) is not None:
        raise ApiError("ValidationException", f'Cannot create already existing endpoint "{arn(KIND, name)}".')
    config = endpoint_configs.get(registry, request["EndpointConfigName"])
    spec = endpoint_configs.to_spec(registry, config, name)
    registry.put(Endpoint(spec=spec, config=config.name, variant=config.variant["VariantName"]))
    tags.put(registry, arn(KIND, name), request.get("Tags", []))
    return {"EndpointArn": arn(KIND, name)}


def get(registry: Registry, name: str) -> Endpoint:
    """The endpoint called ``name``.

    Raises:
        ApiError: there is none.
    """
    if (endpoint := registry.get(name)) is None:
        raise ApiError("ValidationException", f'Could not find endpoint "{arn(KIND, name)}".')
    return endpoint


def describe(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeEndpoint."""
    endpoint = get(registry, request["EndpointName"])
    weight = registry.record(scaling.WeightRecord, endpoint.name)
    variant = {
        "VariantName": endpoint.variant,
        "DesiredWeight": weight.weight if weight else 1.0,
        "CurrentWeight": weight.weight if weight else 1.0,
        "DesiredInstanceCount": endpoint.spec.replicas.minimum,
        "CurrentInstanceCount": endpoint.running,
    }
    described = {
        "EndpointName": endpoint.name,
        "EndpointArn": arn(KIND, endpoint.name),
        "EndpointConfigName": endpoint.config or endpoint.name,
        "ProductionVariants": [variant],
        "EndpointStatus": str(endpoint.status),
        "CreationTime": epoch(endpoint.created),
        "LastModifiedTime": epoch(endpoint.modified),
    }
    return described | ({"FailureReason": endpoint.failure_reason} if endpoint.failure_reason else {})


def list_(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """ListEndpoints."""
    found, token = page(
        request, registry.all(), name=lambda one: one.name, created=lambda one: one.created,
        modified=lambda one: one.modified, status=lambda one: str(one.status),
    )  # fmt: skip
    summaries = [
        {
            "EndpointName": one.name,
            "EndpointArn": arn(KIND, one.name),
            "CreationTime": epoch(one.created),
            "LastModifiedTime": epoch(one.modified),
            "EndpointStatus": str(one.status),
        }
        for one in found
    ]
    return {"Endpoints": summaries, **token}


def update(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateEndpoint: what serves goes on until the new version is in service; a failed update rolls back."""
    endpoint = _settled(registry, request["EndpointName"])
    config = endpoint_configs.get(registry, request["EndpointConfigName"])
    spec = endpoint_configs.to_spec(registry, config, endpoint.name)
    if request.get("RetainAllVariantProperties"):
        spec = spec.model_copy(update={"replicas": endpoint.spec.replicas})
    registry.put(endpoint.updated_to(spec, config.name, config.variant["VariantName"]))
    return {"EndpointArn": arn(KIND, endpoint.name)}


def update_capacities(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """UpdateEndpointWeightsAndCapacities: the number of instances, in place. A single variant's weight changes nothing."""
    endpoint = _settled(registry, request["EndpointName"])
    for desired in request["DesiredWeightsAndCapacities"]:
        if desired["VariantName"] != endpoint.variant:
            message = f"VariantName: endpoint {endpoint.name!r} has no variant {desired['VariantName']!r}, it has {endpoint.variant!r}"
            raise ApiError("ValidationException", message)
        if (weight := desired.get("DesiredWeight")) is not None:
            registry.put_record(scaling.WeightRecord(name=endpoint.name, weight=weight))
        if (count := desired.get("DesiredInstanceCount")) is not None:
            if count < 1:
                raise ApiError("ValidationException", f"DesiredInstanceCount: {count} given; an endpoint keeps at least one instance")
            replicas = Replicas(minimum=count, maximum=count)
            registry.put(endpoint.scaled_to(endpoint.spec.model_copy(update={"replicas": replicas})))
    return {"EndpointArn": arn(KIND, endpoint.name)}


def _settled(registry: Registry, name: str) -> Endpoint:
    endpoint = get(registry, name)
    if endpoint.status not in (Status.IN_SERVICE, Status.FAILED):
        raise ApiError("ValidationException", f'Cannot update in-progress endpoint "{arn(KIND, name)}": it is {endpoint.status}.')
    return endpoint


def delete(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteEndpoint: running requests are let finish."""
    endpoint = get(registry, request["EndpointName"])
    if endpoint.status is not Status.DELETING:
        registry.put(endpoint.into(Status.DELETING))
        tags.forget(registry, arn(KIND, endpoint.name))
        scaling.forget(registry, endpoint.name)
    return {}
