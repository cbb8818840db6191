"""A draft head before training: its shape, and where its first weights come from."""

from pathlib import Path
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator
from safetensors.torch import load_file
from speculators.models.eagle3 import Eagle3DraftModel
from speculators.models.peagle import PEagleDraftModel
from speculators.train.vocab_mapping import build_vocab_mappings_from_distribution
from transformers import AutoConfig, LlamaConfig

from drafter import attention

Method = Literal["p_eagle", "eagle3"]
_MODELS = {"p_eagle": PEagleDraftModel, "eagle3": Eagle3DraftModel}
_ATTENTION = {"p_eagle": attention.NAME, "eagle3": "eager"}


class HeadConfig(BaseModel):
    """The shape of a head."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Method = Field(default="p_eagle", description="p_eagle drafts K tokens in one pass, eagle3 in K passes.")
    layers: int = Field(default=2, ge=1, le=4, description="Transformer layers of the head.")
    draft_vocab_size: int = Field(default=8064, gt=0, description="The most frequent target tokens the head can draft.")
    mask_token_id: int = Field(default=16, ge=0, description="Target token id that stands for 'not known yet'; unused in text.")
    depth: int = Field(default=8, ge=2, description="Draft positions trained (K_train).")
    layer_ids: tuple[int, ...] = Field(default=(), description="Captured target layers; empty: 2, L/2 and L-1 as in the paper.")
    embedding: Literal["frozen", "trained"] = Field(default="frozen", description="frozen: the target's, which vLLM shares; trained: the head's own.")
    start: Literal["target", "random"] = Field(default="target", description="First weights: the target's last layers, or random ones.")

    @model_validator(mode="after")
    def _shardable(self) -> "HeadConfig":
        if self.draft_vocab_size % 64:
            raise ValueError(f"draft_vocab_size {self.draft_vocab_size} must be a multiple of 64")
        return self

    def captured_layers(self, target_layers: int) -> tuple[int, ...]:
        """Layers whose input is captured, by Hugging Face's ``hidden_states`` index (P-EAGLE, arXiv 2602.01469)."""
        return self.layer_ids or (2, target_layers // 2, target_layers - 1)


def build_head(config: HeadConfig, target: Path, counts: dict[int, int], start_from: Path | None = None) -> PEagleDraftModel | Eagle3DraftModel:
    """A head for ``target``, its layers and output started from the target's last ones or from another head.

    Args:
        config: the head's shape.
        target: the target's Hugging Face folder.
        counts: token id to occurrences; the most frequent are the draft vocabulary, unless ``start_from`` brings its own.
        start_from: an exported head of the same shape, or with fewer layers: those added pass on what they get until they are trained.
    """
    target_config = AutoConfig.from_pretrained(target)
    shape = LlamaConfig(**{**target_config.to_dict(), "num_hidden_layers": config.layers, "tie_word_embeddings": False})
    started = load_file(start_from / "model.safetensors") if start_from else {}
    if started:
        d2t = started["d2t"]
        t2d = torch.zeros(target_config.vocab_size, dtype=torch.bool)
        t2d[d2t + torch.arange(len(d2t))] = True
    else:
        d2t, t2d = build_vocab_mappings_from_distribution(counts, config.draft_vocab_size, target_config.vocab_size)
    head = _MODELS[config.method].from_training_args(
        shape,
        t2d=t2d,
        d2t=d2t,
        verifier_name_or_path=str(target),
        target_layer_ids=list(config.captured_layers(target_config.num_hidden_layers)),
        draft_vocab_size=config.draft_vocab_size,
        norm_before_residual=False,
        mask_token_id=config.mask_token_id,
        num_depths=config.depth,
        ttt_steps=config.depth,
        draft_attn_impl=_ATTENTION[config.method],
    )
    if start_from is not None:
        head.load_state_dict(started, strict=False)
        trained = len({name.split(".")[1] for name in started if name.startswith("layers.")})
        if trained < config.layers:
            _add_layers(head, _weights(target), f"model.layers.{target_config.num_hidden_layers - 1}.", range(trained, config.layers))
    elif config.start == "target":
        _start_from_target(head, _weights(target), target_config.num_hidden_layers, config.layers)
    head.embed_tokens.weight.requires_grad_(config.embedding == "trained")
    head.lm_head.weight.requires_grad_(True)
    return head


def _weights(target: Path) -> dict[str, torch.Tensor]:
    weights: dict[str, torch.Tensor] = {}
    for file in sorted(target.glob("*.safetensors")):
        weights |= load_file(file)
    return weights


def _add_layers(head: PEagleDraftModel | Eagle3DraftModel, weights: dict[str, torch.Tensor], source: str, layers: range) -> None:
    """Layers after the trained ones: the target's layer ``source`` with nought for what they add to their input (LLaMA Pro, arXiv 2401.02415)."""
    state = head.state_dict()
    for layer in layers:
        for name, value in weights.items():
            if name.startswith(source):
                state[f"layers.{layer}.{name.removeprefix(source)}"].copy_(value)
        for name in ("self_attn.o_proj", "mlp.down_proj"):
            state[f"layers.{layer}.{name}.weight"].zero_()


def _start_from_target(head: PEagleDraftModel | Eagle3DraftModel, weights: dict[str, torch.Tensor], target_layers: int, layers: int) -> None:
    hidden = head.fc.weight.shape[0]
    state = head.state_dict()
    for layer in range(layers):
        source = f"model.layers.{target_layers - layers + layer}."
        for name, value in weights.items():
            if not name.startswith(source):
                continue
            key = f"layers.{layer}.{name.removeprefix(source)}"
            if state[key].shape == value.shape:
                state[key].copy_(value)
            else:  # the first layer's q/k/v take [embedding, hidden]: the hidden half is the target's
                state[key].zero_()
                state[key][:, hidden:].copy_(value)
    state["layers.0.hidden_norm.weight"].copy_(weights[f"model.layers.{target_layers - layers}.input_layernorm.weight"])
    state["norm.weight"].copy_(weights["model.norm.weight"])
    state["fc.weight"].zero_()
    state["fc.weight"][:, -hidden:].copy_(torch.eye(hidden))
    # The embedding half of q/k/v starts small rather than at nought, so that its norm has a gradient.
    for name in ("q_proj", "k_proj", "v_proj"):
        torch.nn.init.normal_(state[f"layers.0.self_attn.{name}.weight"][:, :hidden], std=0.02)
