"""Everything that decides how a head comes out: the training configuration, the schedule, the order of the samples."""

import math
from pathlib import Path
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field

from drafter.data import Generation
from drafter.features import Features
from drafter.head import HeadConfig


class TrainingConfig(BaseModel):
    """How a head is trained."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    head: HeadConfig = Field(description="The head's shape.")
    start_from: Path | None = Field(default=None, description="An exported head to train on from; empty: as head.start says.")
    steps: int = Field(default=500, gt=0, description="Optimizer steps.")
    batch: int = Field(default=8, gt=0, description="Samples a step, over all processes.")
    optimizer: Literal["adamw", "muon"] = Field(default="muon", description="muon: Muon for matrices, AdamW for the rest.")
    learning_rate: float = Field(default=1.5e-3, gt=0, description="Peak learning rate of AdamW; warm-up, then a cosine to a tenth.")
    matrix_rate: float = Field(default=0.03, gt=0, description="Peak learning rate of Muon.")
    fc_rate: float = Field(default=0.1, gt=0, description="The projection's share of AdamW's rate: its inputs are 30 times larger.")
    warmup: float = Field(default=0.04, ge=0, lt=1, description="Share of the steps spent warming up.")
    retention: float = Field(default=0.8, gt=0, lt=1, description="COD: depth d keeps this to the power d of the positions.")
    loss_on: Literal["answers", "all"] = Field(default="answers", description="Tokens whose prediction is trained: answers, or prompts too.")
    max_length: int = Field(default=20_480, gt=0, description="Longest row taken, in tokens; a longer one is refused.")
    partition: int = Field(default=2048, gt=0, description="Tokens of a sequence trained at once; longer ones are cut (Algorithm 1).")
    precision: Literal["fp32", "bf16"] = Field(default="bf16", description="Precision of the matrix products; weights stay fp32.")
    clip: float = Field(default=1.0, gt=0, description="Gradient norm above which gradients are scaled down.")
    seed: int = Field(default=0, description="Seeds the order of the samples and the COD draws.")
    checkpoint_every: int = Field(default=20, gt=0, description="Steps between checkpoints.")
    held_out_every: int = Field(default=100, gt=0, description="Steps between measurements on the held-out rows.")


def schedule(config: TrainingConfig, step: int) -> float:
    """The share of the peak learning rate at ``step``, counted from 0."""
    warm = max(1, round(config.warmup * config.steps))
    if step < warm:
        return (step + 1) / warm
    done = (step - warm) / max(1, config.steps - warm)
    return 0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(1.0, done)))


def sample_order(samples: int, batch: int, step: int, seed: int) -> list[int]:
    """The samples of ``step``: a new permutation each epoch, a function of the seed alone so that resuming is exact."""
    wanted = range(step * batch, (step + 1) * batch)
    permutations = {
        epoch: torch.randperm(samples, generator=torch.Generator().manual_seed(seed * 100_003 + epoch)).tolist()
        for epoch in {index // samples for index in wanted}
    }
    return [permutations[index // samples][index % samples] for index in wanted]


def training_inputs(sample: Generation, features: Features, device: torch.device, loss_on: str = "answers") -> dict[str, torch.Tensor]:
    """One sample as the draft model takes it: token t+1 beside the hidden state of token t; every tensor is [1, n-1, ...]."""
    ids = torch.tensor(sample.token_ids, device=device)
    mask = torch.tensor(sample.loss_mask(prompt_too=loss_on == "all"), device=device)
    return {
        "input_ids": ids[None, 1:],
        "hidden_states": features.hidden[None, :-1].to(device, torch.float32),
        "verifier_last_hidden_states": features.last[None, 1:].to(device, torch.float32),
        "loss_mask": mask[None, 1:],
        "document_ids": torch.zeros(1, len(ids) - 1, dtype=torch.long, device=device),
    }
