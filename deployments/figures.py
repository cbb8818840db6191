"""An engine's figures: requests running and waiting, tokens, KV-cache use, draft tokens accepted."""

from collections.abc import Sequence
from statistics import mean

from pydantic import BaseModel, ConfigDict, Field

from deployments.pace import Pace
from drafter.acceptance import Acceptance


class EngineFigures(BaseModel):
    """One engine at one moment, or all of an endpoint's."""

    model_config = ConfigDict(frozen=True)

    replicas: int = Field(default=1, description="Engines these figures are of.")
    running: int = Field(default=0, description="Requests being decoded.")
    waiting: int = Field(default=0, description="Requests waiting in the engine.")
    kv_cache_usage: float = Field(default=0.0, description="Share of the KV cache in use, 0 to 1.")
    prompt_tokens: int = Field(default=0, description="Prompt tokens prefilled since the engine started.")
    answer_tokens: int = Field(default=0, description="Tokens written since then.")
    prefix_queries: int = Field(default=0, description="Prompt tokens looked up in the prefix cache since the engine started.")
    prefix_hits: int = Field(default=0, description="Those found there.")
    acceptance: Acceptance = Field(default=Acceptance(), description="Speculation since the engine started.")
    pace: Pace = Field(default=Pace(), description="How fast it works.")
    head_failure: str | None = Field(default=None, description="Why it serves without its head, where it does.")


def together(engines: Sequence[EngineFigures]) -> EngineFigures:
    """An endpoint's figures from those of its engines: counts are added, KV-cache use and pace averaged."""
    if not engines:
        return EngineFigures(replicas=0)
    counts = ("replicas", "running", "waiting", "prompt_tokens", "answer_tokens", "prefix_queries", "prefix_hits")
    pace = {name: mean(getattr(one.pace, name) for one in engines) for name in Pace.model_fields}
    return EngineFigures(
        **{name: sum(getattr(one, name) for one in engines) for name in counts},
        kv_cache_usage=mean(one.kv_cache_usage for one in engines),
        acceptance=sum((one.acceptance for one in engines), Acceptance()),
        pace=Pace.model_validate(pace),
        head_failure=next((one.head_failure for one in engines if one.head_failure), None),
    )
