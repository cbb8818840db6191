"""Write a trained head as the folder vLLM reads, in bfloat16 and without the target's embedding."""

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import AutoConfig

from drafter.train import TrainingConfig

_PARAMETERS_KEPT = ("fc.", "layers.", "norm.", "lm_head.", "mask_hidden", "d2t")


def head_config(config: TrainingConfig, target: dict[str, Any]) -> dict[str, Any]:
    """``config.json`` of a head, from the target's: same sizes and positions, fewer layers, a draft vocabulary."""
    kept = ("hidden_size", "intermediate_size", "num_attention_heads", "num_key_value_heads", "head_dim", "hidden_act", "rms_norm_eps",
            "max_position_embeddings", "rope_parameters", "vocab_size", "bos_token_id", "eos_token_id", "attention_bias", "mlp_bias")  # fmt: skip
    layer_ids = list(config.head.captured_layers(target["num_hidden_layers"]))
    return {
        "architectures": ["LlamaForCausalLMEagle3"],
        "model_type": "llama",
        **{key: target[key] for key in kept if key in target},
        "num_hidden_layers": config.head.layers,
        "draft_vocab_size": config.head.draft_vocab_size,
        "tie_word_embeddings": False,
        "torch_dtype": "bfloat16",
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": layer_ids, "use_aux_hidden_state": True},
        **({"ptd_token_id": config.head.mask_token_id} if config.head.method == "p_eagle" else {}),
    }


def export_head(checkpoint: Path, target: Path, folder: Path) -> Path:
    """Turn a training checkpoint into ``folder`` (``config.json``, ``model.safetensors``)."""
    saved = torch.load(checkpoint, weights_only=True)
    config = TrainingConfig.model_validate(saved["config"])
    weights = {name: value for name, value in saved["head"].items() if name.startswith(_PARAMETERS_KEPT)}
    tensors = {name: (value.to(torch.bfloat16) if value.is_floating_point() else value).contiguous() for name, value in weights.items()}
    folder.mkdir(parents=True, exist_ok=True)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    training = {"steps": saved["step"], "answer_tokens": saved["tokens"]}
    if config.start_from:
        earlier = json.loads((config.start_from / "config.json").read_text()).get("training", {})
        training = {key: count + earlier.get(key, 0) for key, count in training.items()}
    described = {**head_config(config, AutoConfig.from_pretrained(target).to_dict()), "training": training}
    (folder / "config.json").write_text(json.dumps(described, indent=2) + "\n")
    return folder
