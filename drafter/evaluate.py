"""Acceptance of a head over held-out prompts, through the same vLLM that serves."""

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from drafter.data import Generation


class HeadAcceptance(BaseModel):
    """What a head's draft tokens were worth at one K."""

    model_config = ConfigDict(frozen=True)

    head: str = Field(description="The head's folder.")
    k: int = Field(description="Draft tokens a step.")
    drafts: int = Field(description="Verification passes.")
    accepted: tuple[int, ...] = Field(description="Draft tokens accepted, by position.")

    @property
    def length(self) -> float:
        """Acceptance length: tokens a verification pass yields on average, the bonus token included."""
        return 1 + sum(self.accepted) / self.drafts

    @property
    def rates(self) -> list[float]:
        """Share of passes in which each position was accepted."""
        return [count / self.drafts for count in self.accepted]


def speculative_config(head: Path, k: int) -> dict[str, object]:
    """vLLM's ``speculative_config`` for a head folder, parallel if the head was trained for it."""
    config = json.loads((head / "config.json").read_text())
    parallel = config.get("ptd_token_id") is not None
    return {"model": str(head), "method": "eagle3", "num_speculative_tokens": k, **({"parallel_drafting": True} if parallel else {})}


def evaluate_head(target: Path, head: Path, k: int, prompts: Sequence[Generation], max_tokens: int = 128) -> HeadAcceptance:
    """Decode ``prompts`` greedily with the head and count what is accepted. Starts an engine: one call a process."""
    import torch
    from vllm import LLM, SamplingParams

    cpu = {} if torch.cuda.is_available() else {"dtype": "float32", "enforce_eager": True, "kv_cache_memory_bytes": 2**30}
    engine = LLM(str(target), speculative_config=speculative_config(head, k), max_num_seqs=16, max_model_len=2048, disable_log_stats=False, **cpu)
    sampling = SamplingParams(temperature=0, max_tokens=max_tokens)
    engine.generate([{"prompt_token_ids": list(prompt.prompt_ids)} for prompt in prompts], sampling)
    metrics = {metric.name: metric for metric in engine.get_metrics()}
    return HeadAcceptance(
        head=head.name,
        k=k,
        drafts=metrics["vllm:spec_decode_num_drafts"].value,
        accepted=tuple(metrics["vllm:spec_decode_num_accepted_tokens_per_pos"].values),
    )
