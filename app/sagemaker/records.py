"""What the control plane remembers besides endpoints: models and endpoint configs, each as it was asked for."""

from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.sagemaker.api import epoch
from deployments.speculation import Speculation


class RequestRecord(BaseModel):
    """Something a client asked for, kept as it was asked."""

    model_config = ConfigDict(frozen=True)

    name: str = Field(description="Its name.")
    request: dict[str, Any] = Field(description="The request that made it.")
    created: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When it was made.")

    def described(self) -> dict[str, Any]:
        """What a Describe operation answers: what was asked for, tags apart, and when."""
        return {**{key: value for key, value in self.request.items() if key != "Tags"}, "CreationTime": epoch(self.created)}


class ModelRecord(RequestRecord):
    """A SageMaker model: a container, read once when it was created."""

    target: str = Field(description="Folder or hub id of the target.")
    speculation: Speculation = Field(description="How it drafts.")
    engine: dict[str, Any] = Field(description="vLLM engine arguments, by Python name.")


class ConfigRecord(RequestRecord):
    """A SageMaker endpoint config: which model, how many instances of what type."""

    @property
    def variant(self) -> dict[str, Any]:
        """Its production variant."""
        found: dict[str, Any] = self.request["ProductionVariants"][0]
        return found
