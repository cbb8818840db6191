"""The mended sampler, and the faults themselves: the day vLLM mends them, these tests say so and the module can go."""

import inspect

import pytest
import torch
from scipy.stats import chisquare
from vllm.v1.sample import rejection_sampler
from vllm.v1.sample.metadata import SamplingMetadata
from vllm.v1.worker.cpu_model_runner import CPUModelRunner
from vllm.v1.worker.gpu_model_runner import GPUModelRunner

from deployments.cpu_sampler import expand_batch_to_tokens, mend

UPSTREAM_EXPAND = rejection_sampler.expand_batch_to_tokens


@pytest.fixture(scope="module", autouse=True)
def _cpu_kernels():
    """What vLLM's CPU model runner does when it starts without Triton."""
    CPUModelRunner._postprocess_triton(None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.int64])
def test_each_requests_value_is_repeated_for_its_draft_tokens(dtype):
    values = torch.tensor([3, 0, 7], dtype=dtype)
    expanded = expand_batch_to_tokens(values, torch.tensor([2, 3, 6], dtype=torch.int32), 6, replace_from=0, replace_to=1)
    assert expanded.dtype == dtype
    assert expanded.tolist() == [3, 3, 1, 7, 7, 7]


def test_a_request_without_draft_tokens_takes_no_place():
    assert expand_batch_to_tokens(torch.tensor([5.0, 6.0]), torch.tensor([0, 2]), 2).tolist() == [6.0, 6.0]


def test_vllm_still_loses_the_temperature():
    buffers = [UPSTREAM_EXPAND(torch.tensor([0.5, 0.25]), torch.tensor([3, 5], dtype=torch.int32), 5).tolist() for _ in range(3)]
    assert [0.5] * 3 + [0.25] * 2 not in buffers, "vLLM's CPU expand kernel writes floats now: take expand_batch_to_tokens out of cpu_sampler"


def test_vllm_still_rewinds_cpu_generators_by_an_offset():
    assert "set_offset" in inspect.getsource(GPUModelRunner._bookkeeping_sync), "vLLM changed the rewinding: read cpu_sampler again"
    with pytest.raises(RuntimeError, match="does not use offset"):
        torch.Generator(device="cpu").get_offset()


def test_the_names_that_are_mended_exist():
    assert callable(CPUModelRunner._sample)
    assert callable(CPUModelRunner._bookkeeping_sync)
    assert list(inspect.signature(UPSTREAM_EXPAND).parameters) == list(inspect.signature(expand_batch_to_tokens).parameters)


def test_sampled_tokens_follow_the_targets_distribution():
    """Rejection sampling at temperature 0.8 over 4,000 draws: chi-squared against softmax(logits / 0.8) at the 0.1 % level."""
    mend()
    torch.manual_seed(0)
    requests, temperature = 4000, 0.8
    logits = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0])
    metadata = SamplingMetadata(
        temperature=torch.full((requests,), temperature),
        all_greedy=False, all_random=True, top_p=None, top_k=None, generators={}, max_num_logprobs=None, no_penalties=True,
        prompt_token_ids=None, frequency_penalties=torch.zeros(requests), presence_penalties=torch.zeros(requests),
        repetition_penalties=torch.ones(requests), output_token_ids=[[] for _ in range(requests)], allowed_token_ids_mask=None,
        bad_words_token_ids={}, logitsprocs=None,
    )  # fmt: skip
    drafted = torch.zeros(requests, dtype=torch.int32)  # the head always drafts token 0
    cumulative = torch.arange(1, requests + 1, dtype=torch.int32)
    constrained = rejection_sampler.apply_sampling_constraints(logits.repeat(requests, 1), cumulative, metadata)
    output = rejection_sampler.rejection_sample(
        drafted, [1] * requests, 1, cumulative, None, constrained, torch.zeros(requests, 1, dtype=torch.int32), metadata
    )
    counts = torch.bincount(output[:, 0].long(), minlength=5)
    expected = torch.softmax(logits / temperature, dim=0) * requests
    assert chisquare(counts.numpy(), expected.double().numpy() * counts.sum().item() / expected.double().sum().item()).pvalue > 0.001
