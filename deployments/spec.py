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

    minimum: int = Field(default=1, ge=0, description="Replicas kept when idle; 0: the next request waits while one starts.")
    maximum: int = Field(default=1, ge=1, description="Replicas at most.")
    target_ongoing_requests: float | None = Field(default=None, gt=0, description="Requests a replica should have; empty: all it decodes at once.")
    up_after_s: float = Field(default=5.0, ge=0, description="How long more replicas must have been wanted before they start.")
    down_after_s: float = Field(default=300.0, ge=0, description="How long fewer must have been wanted before one stops.")
    cold_start_s: float = Field(
        default=60.0, ge=0, description="How long a replica takes to start, until one was seen to: a shorter queue starts none."
    )

    @model_validator(mode="after")
    def _ordered(self) -> "Replicas":
        if self.maximum < self.minimum:
            raise ValueError(f"replicas.maximum {self.maximum} is below replicas.minimum {self.minimum}")
        return self


class Limits(BaseModel):
    """How long things may take, and how much may wait."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_queued_requests: int | None = Field(
        default=None, ge=1, description="Requests that may wait for a replica, at each gateway; empty: four times what one replica holds."
    )
    deadline_s: float = Field(default=600.0, gt=0, description="Seconds a request may take, unless it says so itself (X-Request-Timeout).")
    drain_s: float = Field(default=600.0, ge=0, description="Seconds running requests get to finish when their replica is to stop.")
    hang_s: float = Field(default=60.0, gt=0, description="Seconds without an engine step, while requests wait, after which the engine hangs.")


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
    limits: Limits = Field(default=Limits(), description="Time and queue limits.")
    on_head_failure: Literal["fail", "fallback"] = Field(
        default="fail", description="What a head that does not load leads to: a failed endpoint, or one that serves without it."
    )

    @property
    def max_ongoing_requests(self) -> int:
        """Requests a replica holds: what it decodes and a quarter more, so that a slot freed is filled at once."""
        return self.max_num_seqs + max(1, self.max_num_seqs // 4)

    @property
    def max_queued_requests(self) -> int:
        """Requests that wait at each gateway for a replica to take them."""
        return self.limits.max_queued_requests or 4 * self.max_ongoing_requests

    def without_head(self) -> "EndpointSpec":
        """This endpoint with plain decoding."""
        return self.model_copy(update={"speculation": NoSpeculation()})


def application_name(endpoint: str, version: int) -> str:
    """The Serve application that runs one version of an endpoint. (Endpoint names hold no dot.)"""
    return f"endpoint-{endpoint}.{version}"


def application_version(application: str) -> tuple[str, int] | None:
    """The endpoint and version a Serve application runs, or None for another application."""
    name, dot, version = application.removeprefix("endpoint-").rpartition(".")
    return (name, int(version)) if application.startswith("endpoint-") and dot and version.isdigit() else None
