"""What the control plane remembers besides endpoints: models and endpoint configs, each as it was asked for."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from deployments.speculation import Speculation


class ModelRecord(BaseModel):
    """A SageMaker model: a container, read once when it was created."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="Its name.")
    request: dict[str, Any] = Field(description="The CreateModel request.")
    target: str = Field(description="Folder or hub id of the target.")
    speculation: Speculation = Field(description="How it drafts.")
    engine: dict[str, Any] = Field(description="vLLM engine arguments, by Python name.")
    created: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When it was created.")


class ConfigRecord(BaseModel):
    """A SageMaker endpoint config: which model, how many instances of what type."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="Its name.")
    request: dict[str, Any] = Field(description="The CreateEndpointConfig request.")
    created: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When it was created.")

    @property
    def variant(self) -> dict[str, Any]:
        """Its production variant."""
        found: dict[str, Any] = self.request["ProductionVariants"][0]
        return found
