"""CreateEndpointConfig, DescribeEndpointConfig, ListEndpointConfigs, DeleteEndpointConfig, and the spec a config means."""

from typing import Any

from pydantic import ValidationError

from app.errors import first_fault
from app.registry import Registry
from app.sagemaker import models, tags
from app.sagemaker.api import ApiError, arn, epoch, page
from app.sagemaker.instances import CPU, instance, known
from app.sagemaker.records import ConfigRecord
from deployments.spec import EndpointSpec, Replicas

KIND = "endpoint-config"
# Engine arguments that are fields of the endpoint spec.
_OWN_FIELDS = ("tensor_parallel_size", "max_num_seqs", "max_model_len")


def create(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """CreateEndpointConfig: one production variant of one model."""
    name = request["EndpointConfigName"]
    if registry.record(ConfigRecord, name) is not None:
        raise ApiError("ValidationException", f'Cannot create already existing endpoint configuration "{arn(KIND, name)}".')
    variants = request["ProductionVariants"]
    if len(variants) != 1:
        raise ApiError("ValidationException", f"ProductionVariants: {len(variants)} given; an endpoint has one variant here")
    record = ConfigRecord(name=name, request=request)
    to_spec(registry, record, name[:63].rstrip("-"))  # refuses here what CreateEndpoint would
    tags.put(registry, arn(KIND, name), request.get("Tags", []))
    registry.put_record(record)
    return {"EndpointConfigArn": arn(KIND, name)}


def get(registry: Registry, name: str) -> ConfigRecord:
    """The config called ``name``.

    Raises:
        ApiError: there is none.
    """
    if (record := registry.record(ConfigRecord, name)) is None:
        raise ApiError("ValidationException", f'Could not find endpoint configuration "{arn(KIND, name)}".')
    return record


def to_spec(registry: Registry, config: ConfigRecord, endpoint: str) -> EndpointSpec:
    """The endpoint spec a config means for an endpoint of that name.

    Raises:
        ApiError: the model is gone, the instance type is unknown, or a value is out of range.
    """
    variant = config.variant
    if not variant.get("ModelName"):
        raise ApiError("ValidationException", "ProductionVariants.1.ModelName: inference components are not served; name a model")
    model = models.get(registry, variant["ModelName"])
    hardware = instance(variant.get("InstanceType"))
    if hardware is None:
        message = f"ProductionVariants.1.InstanceType: {variant['InstanceType']!r} is not known here; use ml.cpu or a size of {known()}"
        raise ApiError("ValidationException", message)
    engine = dict(model.engine)
    own = {field: engine.pop(field) for field in _OWN_FIELDS if engine.get(field) is not None}
    own.setdefault("tensor_parallel_size", max(1, hardware.gpus))
    if hardware != CPU and own["tensor_parallel_size"] > hardware.gpus:
        raise ApiError("ValidationException", f"SM_VLLM_TENSOR_PARALLEL_SIZE: {own['tensor_parallel_size']} GPUs asked for, "
                       f"{variant['InstanceType']} has {hardware.gpus}")  # fmt: skip
    count = variant.get("InitialInstanceCount", 1)
    try:
        return EndpointSpec(
            name=endpoint,
            model=model.target,
            speculation=model.speculation,
            hardware="cpu" if hardware == CPU else "gpu",
            accelerator=hardware.accelerator,
            engine=engine,
            replicas=Replicas(minimum=count, maximum=count),
            **own,
        )
    except ValidationError as error:
        field, message = first_fault(error)
        raise ApiError("ValidationException", f"{field}: {message}") from None


def describe(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeEndpointConfig."""
    record = get(registry, request["EndpointConfigName"])
    return {**record.described(), "EndpointConfigArn": arn(KIND, record.name)}


def list_(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """ListEndpointConfigs."""
    records, token = page(request, registry.records(ConfigRecord), name=lambda one: one.name, created=lambda one: one.created)
    found = [{"EndpointConfigName": one.name, "EndpointConfigArn": arn(KIND, one.name), "CreationTime": epoch(one.created)} for one in records]
    return {"EndpointConfigs": found, **token}


def delete(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteEndpointConfig: endpoints that came from it go on."""
    record = get(registry, request["EndpointConfigName"])
    registry.remove_record(ConfigRecord, record.name)
    tags.forget(registry, arn(KIND, record.name))
    return {}
