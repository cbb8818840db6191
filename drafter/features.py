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

from drafter.data import DataError, Generation
from drafter.engine import multiplies_bfloat16

SHARD = 64
BLOCKS, BLOCK = 256, 4096
SURPRISE_LIMIT = 6.0  # nats a token; the target's own answers are below 2, another tokenizer's above 8


class Features(NamedTuple):
    """One sample's features: ``hidden`` [n, captured layers x d] and ``last`` [n, d] before the final norm."""

    hidden: torch.Tensor
    last: torch.Tensor


class FeatureStore:
    """Features of a list of samples, in safetensors shards under ``folder``.

    A shard is named after what is in it, so that data added later leaves the shards of the earlier data good.
    """

    def __init__(self, folder: Path, samples: Sequence[Generation], target: Path, layer_ids: Sequence[int]) -> None:
        self._folder = folder
        self._samples = samples
        self._target = target
        self._layer_ids = tuple(layer_ids)
        made_by = f"{target_fingerprint(target)} {self._layer_ids}"
        self._shards = [
            folder
            / f"{hashlib.sha256(json.dumps([made_by, *(s.token_ids for s in samples[start : start + SHARD])]).encode()).hexdigest()[:24]}.safetensors"
            for start in range(0, len(samples), SHARD)
        ]

    def compute(self) -> None:
        """Run the target over every sample whose shard is missing; killed half-way, the next call goes on.

        Raises:
            DataError: an answer is nothing this target would write.
        """
        missing = [(index * SHARD, path) for index, path in enumerate(self._shards) if not path.exists()]
        if not missing:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        model = AutoModelForCausalLM.from_pretrained(self._target, dtype=torch.float32).to(device).eval()
        before_norm: list[torch.Tensor] = []
        model.model.norm.register_forward_pre_hook(lambda _, inputs: before_norm.append(inputs[0]))
        for start, path in track(missing, description="target features"):
            tensors: dict[str, torch.Tensor] = {}
            for place, sample in enumerate(self._samples[start : start + SHARD]):
                before_norm.clear()
                ids = torch.tensor([sample.token_ids], device=device)
                # The residual stream stays float32; bfloat16 products triple the speed where there are any.
                with torch.inference_mode(), torch.autocast(device, torch.bfloat16, enabled=device == "cuda" or multiplies_bfloat16()):
                    states = model.model(ids, output_hidden_states=True).hidden_states
                    if place == 0:
                        _refuse_strange(sample, model.lm_head(states[-1]))
                captured = torch.cat([states[layer][0] for layer in self._layer_ids], dim=-1)
                tensors[f"hidden.{place}"] = captured.to(torch.bfloat16).cpu().contiguous()
                tensors[f"last.{place}"] = before_norm[0][0].to(torch.bfloat16).cpu().contiguous()
            partial = path.with_suffix(".partial")
            save_file(tensors, partial)
            partial.rename(path)

    def __getitem__(self, index: int) -> Features:
        shard, place = divmod(index, SHARD)
        with safe_open(self._shards[shard], framework="pt") as file:
            return Features(file.get_tensor(f"hidden.{place}"), file.get_tensor(f"last.{place}"))


def target_fingerprint(target: Path) -> str:
    """A hash of the target's weights: of their sizes, and of blocks all through them, so that a fine-tuned copy is another one."""
    digest = hashlib.sha256()
    for path in sorted(target.glob("*.safetensors")):
        size = path.stat().st_size
        digest.update(f"{path.name} {size}".encode())
        with path.open("rb") as file:
            for part in range(BLOCKS):
                file.seek(size * part // BLOCKS)
                digest.update(file.read(BLOCK))
    return digest.hexdigest()[:16]


def _refuse_strange(sample: Generation, logits: torch.Tensor) -> None:
    answer = torch.tensor(sample.response_ids, device=logits.device)
    surprise = torch.nn.functional.cross_entropy(logits[0, len(sample.prompt_ids) - 1 : -1], answer).item()
    if surprise > SURPRISE_LIMIT:
        raise DataError(
            f"{sample.where}: the target would not write this answer ({surprise:.1f} nats a token): "
            "it comes from another target, or its ids from another tokenizer"
        )
