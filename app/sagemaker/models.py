"""CreateModel, DescribeModel, ListModels, DeleteModel."""

from typing import Any

from app.locations import LocationError, local
from app.registry import Registry
from app.sagemaker import tags
from app.sagemaker.api import ApiError, arn, epoch, page
from app.sagemaker.environment import CHANNELS, ContainerError, read_environment
from app.sagemaker.records import ModelRecord

KIND = "model"


def create(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """CreateModel: the container's environment is read here, so that what vLLM would refuse later is refused now."""
    name = request["ModelName"]
    if registry.record(ModelRecord, name) is not None:
        raise ApiError("ValidationException", f'Cannot create already existing model "{arn(KIND, name)}".')
    containers = [request["PrimaryContainer"]] if "PrimaryContainer" in request else request.get("Containers", [])
    if len(containers) != 1:
        raise ApiError("ValidationException", "PrimaryContainer: give one container; inference pipelines are not served")
    (container,) = containers
    try:
        channels = {source["ChannelName"]: _source(source, f"AdditionalModelDataSources.{source['ChannelName']}") for source in
                    container.get("AdditionalModelDataSources", [])}  # fmt: skip
        data = container.get("ModelDataUrl") or container.get("ModelDataSource", {}).get("S3DataSource", {}).get("S3Uri")
        read = read_environment(container.get("Environment", {}), channels, local(data, "ModelDataUrl") if data else None)
        target = local(read.model, "SM_VLLM_MODEL")
        if tokenizer := read.engine.get("tokenizer"):
            read.engine["tokenizer"] = local(tokenizer, "SM_VLLM_TOKENIZER")
        speculation = read.speculation
        if head := getattr(speculation, "head", None):
            speculation = speculation.model_copy(update={"head": local(head, "SM_VLLM_SPECULATIVE_CONFIG")})
    except (ContainerError, LocationError) as error:
        raise ApiError("ValidationException", f"PrimaryContainer.{error}") from None
    tags.put(registry, arn(KIND, name), request.get("Tags", []))
    registry.put_record(ModelRecord(name=name, request=request, target=target, speculation=speculation, engine=read.engine))
    return {"ModelArn": arn(KIND, name)}


def _source(source: dict[str, Any], field: str) -> str:
    return local(source["S3DataSource"]["S3Uri"], f"{field} ({CHANNELS}/{source['ChannelName']})")


def get(registry: Registry, name: str) -> ModelRecord:
    """The model called ``name``.

    Raises:
        ApiError: there is none.
    """
    if (record := registry.record(ModelRecord, name)) is None:
        raise ApiError("ValidationException", f'Could not find model "{arn(KIND, name)}".')
    return record


def describe(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DescribeModel."""
    record = get(registry, request["ModelName"])
    return {**record.described(), "ModelArn": arn(KIND, record.name)}


def list_(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """ListModels."""
    records, token = page(request, registry.records(ModelRecord), name=lambda one: one.name, created=lambda one: one.created)
    found = [{"ModelName": one.name, "ModelArn": arn(KIND, one.name), "CreationTime": epoch(one.created)} for one in records]
    return {"Models": found, **token}


def delete(registry: Registry, request: dict[str, Any]) -> dict[str, Any]:
    """DeleteModel: endpoints that came from it go on."""
    record = get(registry, request["ModelName"])
    registry.remove_record(ModelRecord, record.name)
    tags.forget(registry, arn(KIND, record.name))
    return {}
