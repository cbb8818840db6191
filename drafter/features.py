"""What the target feels for each training token, computed once and kept: captured hidden states, in bfloat16.

A head learns from the target's hidden states, and the target never changes, so one pass over the data serves every
epoch and every head. About 4.6 kB a token for SmolLM2-135M.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from rich.progress import track
from safetensors import safe_open
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM

from drafter.data import Generation

SHARD = 64


class Features(NamedTuple):
    """One sample's features: ``hidden`` [n, captured layers x d] and ``last`` [n, d] before the final norm."""

    hidden: torch.Tensor
    last: torch.Tensor


class FeatureStore:
    """Features of a fixed list of samples, in safetensors shards under ``folder``."""

    def __init__(self, folder: Path, samples: Sequence[Generation], target: Path, layer_ids: Sequence[int]) -> None:
        identity = json.dumps([[s.token_ids for s in samples], str(target.name), list(layer_ids)])
        self._folder = folder / hashlib.sha256(identity.encode()).hexdigest()[:16]
        self._samples = samples
        self._target = target
        self._layer_ids = tuple(layer_ids)

    def _shard(self, index: int) -> Path:
        return self._folder / f"{index // SHARD:05d}.safetensors"

    def compute(self) -> None:
        """Run the target over every sample whose shard is missing; killed half-way, the next call goes on."""
        starts = [start for start in range(0, len(self._samples), SHARD) if not self._shard(start).exists()]
        if not starts:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = AutoModelForCausalLM.from_pretrained(self._target, dtype=torch.float32).to(device).eval()
        before_norm: list[torch.Tensor] = []
        model.model.norm.register_forward_pre_hook(lambda _, inputs: before_norm.append(inputs[0]))
        for start in track(starts, description="target features"):
            tensors: dict[str, torch.Tensor] = {}
            for index in range(start, min(start + SHARD, len(self._samples))):
                before_norm.clear()
                ids = torch.tensor([self._samples[index].token_ids], device=device)
                with torch.inference_mode():
                    states = model.model(ids, output_hidden_states=True).hidden_states
                captured = torch.cat([states[layer][0] for layer in self._layer_ids], dim=-1)
                tensors[f"hidden.{index}"] = captured.to(torch.bfloat16).cpu().contiguous()
                tensors[f"last.{index}"] = before_norm[0][0].to(torch.bfloat16).cpu().contiguous()
            partial = self._shard(start).with_suffix(".partial")
            save_file(tensors, partial)
            partial.rename(self._shard(start))

    def __getitem__(self, index: int) -> Features:
        with safe_open(self._shard(index), framework="pt") as shard:
            return Features(shard.get_tensor(f"hidden.{index}"), shard.get_tensor(f"last.{index}"))
