"""Two faults of vLLM 0.29's CPU sampler under speculation, mended through its plug-in entry point.

1. The CPU stand-in for the rejection sampler's expand kernel never writes float and int32 outputs back, so temperature,
   top-k and top-p are uninitialised memory (vllm#55005).
2. A seeded request whose prompt is prefilled in chunks rewinds its generator by an offset, which CPU generators
   lack; the error kills the engine. Here the generator's state is kept before the draw and restored instead.

Both use vLLM's private names; ``tests/unit/deployments/test_cpu_sampler.py`` fails when they change or the faults are gone.
"""

from typing import Any

import numpy as np
import torch


def register() -> None:
    """Entry point of ``vllm.general_plugins``: vLLM calls this in every process before it builds a model runner."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        mend()


def mend() -> None:
    """Put the mended functions in place; a second call changes nothing."""
    from vllm.v1.sample import rejection_sampler
    from vllm.v1.worker.cpu_model_runner import CPUModelRunner

    rejection_sampler.expand_batch_to_tokens = expand_batch_to_tokens
    if getattr(CPUModelRunner, "_peagle_mended", False):
        return
    sample, bookkeep = CPUModelRunner._sample, CPUModelRunner._bookkeeping_sync

    def _sample(self: Any, *args: Any, **kwargs: Any) -> Any:
        states = {index: self.input_batch.generators[index].get_state() for index in _discarded_and_seeded(self)}
        output = sample(self, *args, **kwargs)
        for index, state in states.items():
            self.input_batch.generators[index].set_state(state)
        return output

    def _bookkeeping_sync(self: Any, *args: Any, **kwargs: Any) -> Any:
        # The rewinding is done: hide these generators from the code that would rewind them by an offset.
        hidden = {index: self.input_batch.generators.pop(index) for index in _discarded_and_seeded(self)}
        try:
            return bookkeep(self, *args, **kwargs)
        finally:
            self.input_batch.generators.update(hidden)

    CPUModelRunner._sample = _sample
    CPUModelRunner._bookkeeping_sync = _bookkeeping_sync
    CPUModelRunner._peagle_mended = True


def _discarded_and_seeded(runner: Any) -> list[int]:
    discarded = np.nonzero(runner.discard_request_mask.np[: runner.input_batch.num_reqs])[0]
    return [int(index) for index in discarded if int(index) in runner.input_batch.generators]


def expand_batch_to_tokens(x: torch.Tensor, cu_num_tokens: torch.Tensor, num_tokens: int, replace_from: int = 0, replace_to: int = 0) -> torch.Tensor:
    """Repeat each request's value for each of its draft tokens.

    Args:
        x: one value a request, [batch].
        cu_num_tokens: cumulative draft tokens, [batch].
        num_tokens: their total.
        replace_from: a value to exchange ...
        replace_to: ... for this one (temperature 0 becomes 1).

    Returns:
        [num_tokens], of ``x``'s type.
    """
    counts = torch.diff(cu_num_tokens, prepend=cu_num_tokens.new_zeros(1))
    return torch.where(x == replace_from, torch.as_tensor(replace_to, dtype=x.dtype), x).repeat_interleave(counts, output_size=num_tokens)
