"""What a model needs: weights, head, KV cache, and so how many GPUs. From configurations alone; no GPU is asked."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.catalog import CatalogError, ModelCard, Shape
from deployments.sharding import Size, target_sizes

GIB = 2**30
USABLE = 0.9  # of a GPU's memory: vLLM's own default of gpu_memory_utilization
WORKING_GIB = 2.0  # activations, CUDA graphs and the runtime, on each GPU
HEAD_LAYERS = 4  # the paper's recipe (arXiv 2602.01469)
# Memory of one GPU in GiB: vendors' data sheets.
GPUS = {"L4": 24, "A10G": 24, "L40S": 48, "A100": 80, "H100": 80, "RTX-PRO-6000": 96, "H200": 141, "B200": 180, "MI300X": 192}
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "auto": 2, "fp8": 1}


class Plan(BaseModel):
    """What one replica takes."""

    model_config = ConfigDict(frozen=True)

    model: str = Field(description="The model.")
    weights_gib: float = Field(description="The target's weights.")
    head_gib: float = Field(description="The head's weights; estimated where the head is not here.")
    kv_bytes_per_token: int = Field(description="KV cache of one token, head included, without what sliding windows save.")
    kv_gib: float = Field(description="KV cache of the asked requests at the asked context.")
    gpus: int = Field(description="GPUs a replica needs.")
    gpu: str = Field(description="Which.")
    per_gpu_gib: float = Field(description="What each of them holds.")
    num_speculative_tokens: int = Field(description="K.")


def shape_of(config: Mapping[str, Any]) -> Shape:
    """The sizes in a model's ``config.json``."""
    text = config.get("text_config", config)
    heads = text["num_attention_heads"]
    kinds = text.get("layer_types") or []
    return Shape(
        layers=text["num_hidden_layers"], attention_heads=heads, kv_heads=text.get("num_key_value_heads") or heads,
        head_dim=text.get("head_dim") or text["hidden_size"] // heads, hidden_size=text["hidden_size"], vocabulary=text["vocab_size"],
        sliding_layers=kinds.count("sliding_attention"), window=text.get("sliding_window") or 0,
    )  # fmt: skip


def kv_bytes(shape: Shape, element: int, context: int, head_layers: int = 0) -> int:
    """KV cache of one request.

    Args:
        shape: the target's.
        element: bytes of one number.
        context: tokens it may hold.
        head_layers: layers of the head, which keep a cache of the target's shape.
    """
    layer = 2 * shape.kv_heads * shape.head_dim * element
    whole = shape.layers - shape.sliding_layers + head_layers
    return layer * (whole * context + shape.sliding_layers * min(context, shape.window or context))


def plan(card: ModelCard, gpu: str, context: int | None, concurrency: int | None) -> Plan:
    """The fewest GPUs that hold a card's model, its head, and the KV cache of so many requests.

    Raises:
        CatalogError: the GPU or the model's sizes are not known, or no number of GPUs would do.
    """
    if gpu not in GPUS:
        raise CatalogError(f"--gpu {gpu}: not known; use {', '.join(GPUS)}")
    folder = Path(card.target_location)
    shape = shape_of(json.loads((folder / "config.json").read_text())) if (folder / "config.json").is_file() else card.shape
    if shape is None:
        raise CatalogError(f"{card.name}: its sizes are not in the catalog, and its config.json is not here")
    tokens, requests = context or card.max_model_len or 8192, concurrency or card.max_num_seqs
    weights, head, layers = card.weights_gib, *_head(card, shape)
    element = BYTES.get(card.engine.get("kv_cache_dtype", "auto"), 2) if card.hardware == "gpu" else 4
    cache = requests * kv_bytes(shape, element, tokens, layers) / GIB
    sizes = target_sizes({"num_attention_heads": shape.attention_heads, "num_key_value_heads": shape.kv_heads})
    for gpus in (size for size in (1, 2, 3, 4, 6, 8, 9, 16) if all(Size.divides(one, size) for one in sizes)):
        each = (weights + head + cache) / gpus + WORKING_GIB
        if each <= USABLE * GPUS[gpu]:
            return Plan(model=card.name, weights_gib=weights, head_gib=head, kv_bytes_per_token=kv_bytes(shape, element, 1, layers), kv_gib=cache,
                        gpus=gpus, gpu=gpu, per_gpu_gib=each, num_speculative_tokens=card.num_speculative_tokens)  # fmt: skip
    raise CatalogError(
        f"{card.name}: {requests} requests of {tokens:,} tokens fit on no number of {gpu}; ask for fewer (--concurrency) or shorter (--context)"
    )


def _head(card: ModelCard, shape: Shape) -> tuple[float, int]:
    """GiB and layers of the card's P-EAGLE head."""
    if "p_eagle" not in card.heads:
        return 0.0, 0
    folder = Path(card.head("p_eagle"))
    if (folder / "config.json").is_file():
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        return size / GIB, json.loads((folder / "config.json").read_text())["num_hidden_layers"]
    layer = 16 * shape.hidden_size**2  # attention 4, and an MLP four times as wide as it is deep, 12
    parameters = 3 * shape.hidden_size**2 + HEAD_LAYERS * layer + 2 * shape.vocabulary * shape.hidden_size
    return 2 * parameters / GIB, HEAD_LAYERS
