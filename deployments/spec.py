"""The endpoint spec: the one object every way of deploying ends in and every Serve application starts from."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from deployments.speculation import NoSpeculation, Speculation

# SageMaker's pattern for endpoint names.
NAME_PATTERN = r"^[a-zA-Z0-9](-*[a-zA-Z0-9]){0,62}$"
EndpointName = Annotated[str, Field(pattern=NAME_PATTERN, description="Name of the endpoint; `model` in OpenAI requests.")]


class Replicas(BaseModel):
    """How many replicas of the engine run, and how much one takes on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    minimum: int = Field(default=1, ge=1, description="Replicas kept when idle.")
    maximum: int = Field(default=1, ge=1, description="Replicas at most.")
    target_ongoing_requests: float | None = Field(default=None, gt=0, description="Requests a replica should have; empty: all it decodes at once.")

    @model_validator(mode="after")
    def _ordered(self) -> "Replicas":
        if self.maximum < self.minimum:
            raise ValueError(f"replicas.maximum {self.maximum} is below replicas.minimum {self.minimum}")
        return self


class EndpointSpec(BaseModel):
    """Everything needed to run one endpoint."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: EndpointName
    model: str = Field(min_length=1, description="Folder or hub id of the target.")
    speculation: Speculation = Field(default=NoSpeculation(), description="How tokens are drafted.")
    hardware: Literal["cpu", "gpu"] = Field(default="gpu", description="What the engine runs on.")
    accelerator: str | None = Field(default=None, description="Ray accelerator type a replica must get, such as H100; empty: any.")
    tensor_parallel_size: int = Field(default=1, ge=1, description="GPUs the target is sharded over, head included.")
    max_num_seqs: int = Field(default=64, ge=1, description="Requests one replica decodes at once.")
    max_model_len: int | None = Field(default=None, ge=16, description="Context in tokens; empty: the target's own.")
    engine: dict[str, Any] = Field(default_factory=dict, description="Further vLLM engine arguments, by Python name.")
    replicas: Replicas = Field(default=Replicas(), description="Replicas.")

    @property
    def max_ongoing_requests(self) -> int:
        """Requests a replica holds: what it decodes and a quarter more, so that a slot freed is filled at once."""
        return self.max_num_seqs + max(1, self.max_num_seqs // 4)


def application_name(endpoint: str, version: int) -> str:
    """The Serve application that runs one version of an endpoint. (Endpoint names hold no dot.)"""
    return f"endpoint-{endpoint}.{version}"


def application_version(application: str) -> tuple[str, int] | None:
    """The endpoint and version a Serve application runs, or None for another application."""
    name, dot, version = application.removeprefix("endpoint-").rpartition(".")
    return (name, int(version)) if application.startswith("endpoint-") and dot and version.isdigit() else None
