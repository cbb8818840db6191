"""Tensor parallelism that cannot be is refused with the sizes that would do."""

from deployments.sharding import head_sizes, shard_problem, target_sizes

SMOLLM2 = {"num_attention_heads": 9, "num_key_value_heads": 3, "vocab_size": 49152}


def test_sizes_that_would_do_are_named():
    assert shard_problem(3, target_sizes(SMOLLM2), "tensor_parallel_size") is None
    assert shard_problem(2, target_sizes(SMOLLM2), "tensor_parallel_size") == (
        "tensor_parallel_size: 2 GPUs cannot share 9 attention heads; 1, 3, 9 would do"
    )


def test_the_draft_vocabulary_counts():
    assert shard_problem(3, head_sizes({**SMOLLM2, "draft_vocab_size": 8064}), "t") is None
    assert "8192 tokens of the draft vocabulary; 1 would do" in shard_problem(3, head_sizes({**SMOLLM2, "draft_vocab_size": 8192}), "t")


def test_more_gpus_than_kv_heads_hold_them_several_times():
    assert shard_problem(8, target_sizes({"num_attention_heads": 64, "num_key_value_heads": 4}), "t") is None
