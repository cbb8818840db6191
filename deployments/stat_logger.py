"""Hears from vLLM after each engine step, through its stat-logger plug-in entry point."""

from typing import Any, ClassVar

from vllm.v1.metrics.loggers import StatLoggerBase

from deployments.figures import EngineFigures
from drafter.acceptance import Acceptance


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
