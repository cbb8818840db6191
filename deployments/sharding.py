"""What tensor parallelism divides: a target's attention heads, a head's draft vocabulary."""

from collections.abc import Mapping
from typing import Any, NamedTuple

MOST = 64  # sizes of tensor parallelism tried when others are named


class Size(NamedTuple):
    """A part of a model that is spread over GPUs."""

    what: str
    number: int
    shared: bool = False  # may be held by several GPUs each, as KV heads are where there are more GPUs than heads

    def divides(self, tensor_parallel_size: int) -> bool:
        """Whether that many GPUs can share it."""
        return self.number % tensor_parallel_size == 0 or (self.shared and tensor_parallel_size % self.number == 0)


def target_sizes(config: Mapping[str, Any]) -> list[Size]:
    """What is spread of a model whose ``config.json`` this is."""
    text = config.get("text_config", config)  # multimodal models keep the language model's sizes apart
    heads = text.get("num_attention_heads")
    found = [Size("attention heads", heads)] if heads else []
    if kv_heads := text.get("num_key_value_heads"):
        found.append(Size("KV heads", kv_heads, shared=True))
    return found


def head_sizes(config: Mapping[str, Any]) -> list[Size]:
    """What is spread of a draft head whose ``config.json`` this is."""
    layers = config.get("transformer_layer_config", config)  # speculators' format nests them
    vocabulary = config.get("draft_vocab_size") or layers.get("vocab_size")
    return [*target_sizes(layers), *([Size("tokens of the draft vocabulary", vocabulary)] if vocabulary else [])]


def shard_problem(tensor_parallel_size: int, sizes: list[Size], field: str) -> str | None:
    """Why so many GPUs cannot share a model, and how many could; None when they can."""
    wrong = next((size for size in sizes if not size.divides(tensor_parallel_size)), None)
    if wrong is None:
        return None
    fitting = [str(size) for size in range(1, MOST + 1) if all(one.divides(size) for one in sizes)]
    return f"{field}: {tensor_parallel_size} GPUs cannot share {wrong.number} {wrong.what}; {', '.join(fitting)} would do"
