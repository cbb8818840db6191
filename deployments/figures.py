"""An engine's figures as vLLM reports them each step: requests running and waiting, KV-cache use, draft tokens accepted."""

from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field
from vllm.v1.metrics.loggers import StatLoggerBase


class Acceptance(BaseModel):
    """Draft tokens proposed and accepted, counted since the engine started."""

    model_config = ConfigDict(frozen=True)

    drafts: int = Field(default=0, description="Verification passes that had draft tokens.")
    draft_tokens: int = Field(default=0, description="Draft tokens proposed.")
    accepted: tuple[int, ...] = Field(default=(), description="Draft tokens accepted, by position.")

    @property
    def length(self) -> float:
        """Acceptance length: tokens a verification pass yields on average, the bonus token included."""
        return 1 + sum(self.accepted) / self.drafts if self.drafts else 1.0

    @property
    def rates(self) -> list[float]:
        """Share of passes in which each draft position was accepted."""
        return [count / self.drafts for count in self.accepted] if self.drafts else []

    def since(self, earlier: "Acceptance") -> "Acceptance":
        """What was counted after ``earlier``."""
        before = earlier.accepted or (0,) * len(self.accepted)
        return Acceptance(
            drafts=self.drafts - earlier.drafts,
            draft_tokens=self.draft_tokens - earlier.draft_tokens,
            accepted=tuple(now - then for now, then in zip(self.accepted, before, strict=True)),
        )


class EngineFigures(BaseModel):
    """One engine at one moment."""

    model_config = ConfigDict(frozen=True)

    running: int = Field(default=0, description="Requests being decoded.")
    waiting: int = Field(default=0, description="Requests waiting in the engine.")
    kv_cache_usage: float = Field(default=0.0, description="Share of the KV cache in use, 0 to 1.")
    acceptance: Acceptance = Field(default=Acceptance(), description="Speculation since the engine started.")


class FiguresLogger(StatLoggerBase):
    """Keeps the latest figures in the process that owns the engine (entry point ``vllm.stat_logger_plugins``)."""

    latest: ClassVar[EngineFigures] = EngineFigures()

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:  # noqa: ARG002
        FiguresLogger.latest = EngineFigures()

    def record(self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0) -> None:  # noqa: ARG002
        """Called by vLLM after each engine step."""
        if scheduler_stats is None:
            return
        acceptance = FiguresLogger.latest.acceptance
        if (step := scheduler_stats.spec_decoding_stats) is not None:
            before = acceptance.accepted or (0,) * len(step.num_accepted_tokens_per_pos)
            acceptance = Acceptance(
                drafts=acceptance.drafts + step.num_drafts,
                draft_tokens=acceptance.draft_tokens + step.num_draft_tokens,
                accepted=tuple(a + b for a, b in zip(before, step.num_accepted_tokens_per_pos, strict=True)),
            )
        FiguresLogger.latest = EngineFigures(
            running=scheduler_stats.num_running_reqs,
            waiting=scheduler_stats.num_waiting_reqs,
            kv_cache_usage=scheduler_stats.kv_cache_usage,
            acceptance=acceptance,
        )

    def log_engine_initialized(self) -> None:
        """Nothing to say."""
