"""Hears from vLLM after each engine step, through its stat-logger plug-in entry point."""

import time
from typing import Any, ClassVar

from vllm.v1.metrics.loggers import StatLoggerBase

from deployments.figures import EngineFigures
from deployments.pace import StepTimes
from drafter.acceptance import Acceptance


class FiguresLogger(StatLoggerBase):
    """Keeps the latest figures in the process that owns the engine (entry point ``vllm.stat_logger_plugins``)."""

    latest: ClassVar[EngineFigures] = EngineFigures()
    steps: ClassVar[StepTimes] = StepTimes()
    stepped: ClassVar[float] = 0.0  # time.monotonic() of the last engine step
    context: ClassVar[int] = 0  # tokens the engine can hold of one request

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:  # noqa: ARG002
        FiguresLogger.latest = EngineFigures()
        FiguresLogger.steps = StepTimes()
        FiguresLogger.stepped = time.monotonic()
        FiguresLogger.context = vllm_config.model_config.max_model_len

    def record(self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0) -> None:  # noqa: ARG002
        """Called by vLLM after each engine step."""
        now, before = time.monotonic(), FiguresLogger.latest
        if iteration_stats is not None and before.running:  # the engine was at work since the last step
            tokens, prompt = iteration_stats.num_generation_tokens, iteration_stats.prompt_token_stats.computed
            FiguresLogger.steps.add(now - FiguresLogger.stepped, before.running, prompt, tokens)
        FiguresLogger.stepped = now
        changed: dict[str, Any] = {}
        if iteration_stats is not None:
            changed["prompt_tokens"] = before.prompt_tokens + iteration_stats.num_prompt_tokens
            changed["answer_tokens"] = before.answer_tokens + iteration_stats.num_generation_tokens
        if scheduler_stats is not None:
            prefix = scheduler_stats.prefix_cache_stats
            changed |= {
                "running": scheduler_stats.num_running_reqs,
                "waiting": scheduler_stats.num_waiting_reqs,
                "kv_cache_usage": scheduler_stats.kv_cache_usage,
                "prefix_queries": before.prefix_queries + prefix.queries,
                "prefix_hits": before.prefix_hits + prefix.hits,
            }
            if (step := scheduler_stats.spec_decoding_stats) is not None:
                accepted = tuple(step.num_accepted_tokens_per_pos)
                changed["acceptance"] = before.acceptance + Acceptance(drafts=step.num_drafts, draft_tokens=step.num_draft_tokens, accepted=accepted)
        FiguresLogger.latest = before.model_copy(update=changed)

    def log_engine_initialized(self) -> None:
        """Nothing to say."""
