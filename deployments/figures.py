"""An engine's figures: requests running and waiting, KV-cache use, draft tokens accepted."""

from pydantic import BaseModel, ConfigDict, Field

from deployments.pace import Pace
from drafter.acceptance import Acceptance


class EngineFigures(BaseModel):
    """One engine at one moment."""

    model_config = ConfigDict(frozen=True)

    running: int = Field(default=0, description="Requests being decoded.")
    waiting: int = Field(default=0, description="Requests waiting in the engine.")
    kv_cache_usage: float = Field(default=0.0, description="Share of the KV cache in use, 0 to 1.")
    prefix_queries: int = Field(default=0, description="Prompt tokens looked up in the prefix cache since the engine started.")
    prefix_hits: int = Field(default=0, description="Those found there.")
    acceptance: Acceptance = Field(default=Acceptance(), description="Speculation since the engine started.")
    pace: Pace = Field(default=Pace(), description="How fast it works.")
    head_failure: str | None = Field(default=None, description="Why it serves without its head, where it does.")
