"""SageMaker's control plane over the registry: each operation reads or writes it, and reconciliation does the rest.

Operations and their shapes: the Amazon SageMaker API Reference. The endpoint manager, the registry's one writer, calls them.
"""

from collections.abc import Callable
from typing import Any

from app.registry import Registry
from app.sagemaker import endpoint_configs, endpoints, hub, models, scaling, tags
from app.sagemaker.api import ApiError, Service, operation_model, validate

Operation = Callable[[Registry, dict[str, Any]], dict[str, Any]]
TARGETS: dict[str, Service] = {"SageMaker": "sagemaker", "AnyScaleFrontendService": "application-autoscaling"}
OPERATIONS: dict[Service, dict[str, Operation]] = {
    "sagemaker": {
        "CreateModel": models.create,
        "DescribeModel": models.describe,
        "ListModels": models.list_,
        "DeleteModel": models.delete,
        "CreateEndpointConfig": endpoint_configs.create,
        "DescribeEndpointConfig": endpoint_configs.describe,
        "ListEndpointConfigs": endpoint_configs.list_,
        "DeleteEndpointConfig": endpoint_configs.delete,
        "CreateEndpoint": endpoints.create,
        "DescribeEndpoint": endpoints.describe,
        "ListEndpoints": endpoints.list_,
        "UpdateEndpoint": endpoints.update,
        "UpdateEndpointWeightsAndCapacities": endpoints.update_capacities,
        "DeleteEndpoint": endpoints.delete,
        "AddTags": tags.add,
        "ListTags": tags.list_,
        "DeleteTags": tags.delete,
        "ListHubContents": hub.list_,
        "DescribeHubContent": hub.describe,
    },
    "application-autoscaling": {
        "RegisterScalableTarget": scaling.register,
        "DescribeScalableTargets": scaling.describe_targets,
        "DeregisterScalableTarget": scaling.deregister,
        "PutScalingPolicy": scaling.put_policy,
        "DescribeScalingPolicies": scaling.describe_policies,
        "DeleteScalingPolicy": scaling.delete_policy,
    },
}


def call(registry: Registry, target: str, request: dict[str, Any]) -> dict[str, Any]:
    """Carry out the operation an ``X-Amz-Target`` header names.

    Raises:
        ApiError: there is no such operation here, the request is wrong, or it cannot be met.
    """
    prefix, _, operation = target.partition(".")
    service = TARGETS.get(prefix)
    if service is None or operation not in OPERATIONS[service]:
        if service is not None and operation_model(service, operation) is not None:
            raise ApiError("ValidationException", f"{operation} is an operation of {service} that peagle-serve does not have")
        raise ApiError("UnknownOperationException", f"{target!r} names no operation")
    validate(service, operation, request)
    with registry.transaction():
        return OPERATIONS[service][operation](registry, request)
