"""Train a head on the target's own answers; killed at any time, the same command goes on from its last checkpoint."""

import csv
import math
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from speculators.losses import resolve_loss_config
from transformers import AutoConfig

from drafter.data import Generation, read_generations, split_held_out, token_counts
from drafter.features import Features, FeatureStore
from drafter.head import HeadConfig, build_head


class TrainingConfig(BaseModel):
    """Everything that decides how a head comes out."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    head: HeadConfig = Field(description="The head's shape.")
    start_from: Path | None = Field(default=None, description="An exported head to train on from; empty: the target's last layers.")
    steps: int = Field(default=500, gt=0, description="Optimizer steps.")
    batch: int = Field(default=8, gt=0, description="Samples a step.")
    learning_rate: float = Field(default=5e-4, gt=0, description="Peak learning rate; warm-up, then a cosine to a tenth.")
    fc_rate: float = Field(default=0.1, gt=0, description="The projection's share of the learning rate: its inputs are 30 times larger.")
    warmup: float = Field(default=0.04, ge=0, lt=1, description="Share of the steps spent warming up.")
    retention: float = Field(default=0.8, gt=0, lt=1, description="COD: depth d keeps this to the power d of the positions.")
    precision: Literal["fp32", "bf16"] = Field(default="bf16", description="Precision of the matrix products; weights stay fp32.")
    clip: float = Field(default=1.0, gt=0, description="Gradient norm above which gradients are scaled down.")
    seed: int = Field(default=0, description="Seeds the order of the samples and the COD draws.")
    checkpoint_every: int = Field(default=20, gt=0, description="Steps between checkpoints.")


def learning_rate(config: TrainingConfig, step: int) -> float:
    """The learning rate at ``step``, counted from 0."""
    warm = max(1, round(config.warmup * config.steps))
    if step < warm:
        return config.learning_rate * (step + 1) / warm
    done = (step - warm) / max(1, config.steps - warm)
    return config.learning_rate * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * min(1.0, done))))


def sample_order(samples: int, batch: int, step: int, seed: int) -> list[int]:
    """The samples of ``step``: a new permutation each epoch, a function of the seed alone so that resuming is exact."""
    wanted = range(step * batch, (step + 1) * batch)
    permutations = {
        epoch: torch.randperm(samples, generator=torch.Generator().manual_seed(seed * 100_003 + epoch)).tolist()
        for epoch in {index // samples for index in wanted}
    }
    return [permutations[index // samples][index % samples] for index in wanted]


def training_inputs(sample: Generation, features: Features, device: str) -> dict[str, torch.Tensor]:
    """One sample as the draft model takes it: token t+1 beside the hidden state of token t."""
    ids = torch.tensor(sample.token_ids, device=device)
    return {
        "input_ids": ids[None, 1:],
        "hidden_states": features.hidden[None, :-1].to(device, torch.float32),
        "verifier_last_hidden_states": features.last[None, 1:].to(device, torch.float32),
        "loss_mask": torch.tensor(sample.loss_mask(), device=device)[None, 1:],
        "document_ids": torch.zeros(1, len(ids) - 1, dtype=torch.long, device=device),
    }


def mean_hidden(store: FeatureStore, samples: Sequence[Generation]) -> torch.Tensor:
    """Where ``mask_hidden`` starts: the average captured state, so that unknown positions enter the layers at the usual size.

    The first tokens are left out; their states are hundreds of times larger than all others.
    """
    count = min(len(samples), 64)
    return torch.cat([store[index].hidden[4:].float() for index in range(count)]).mean(dim=0)


def train(config: TrainingConfig, data: Sequence[Path], target: Path, run: Path, features: Path) -> Path:
    """Train until ``config.steps`` and return the checkpoint's path.

    ``run`` receives ``checkpoint.pt`` and ``log.csv`` (step, tokens, seconds, loss and accuracy by draft position).

    Raises:
        DataError: a row of the data cannot be used.
        ValueError: ``run`` holds a checkpoint of another configuration.
    """
    device = "cuda" if torch.cuda.is_available() else "cpu"
    target_config = AutoConfig.from_pretrained(target)
    rows = [row for path in data for row in read_generations(path, target_config.vocab_size)]
    samples, _ = split_held_out(rows)
    store = FeatureStore(features, samples, target, config.head.captured_layers(target_config.num_hidden_layers))
    store.compute()

    torch.manual_seed(config.seed)
    head = build_head(config.head, target, token_counts(samples), config.start_from).to(device)
    if config.head.method == "p_eagle" and config.start_from is None:
        with torch.no_grad():
            head.mask_hidden.copy_(mean_hidden(store, samples))
    head.train()
    trained = [parameter for parameter in head.parameters() if parameter.requires_grad]
    projection = list(head.fc.parameters())
    groups = [
        {"params": projection, "rate": config.fc_rate},
        {"params": [parameter for parameter in trained if all(parameter is not other for other in projection)], "rate": 1.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0)
    run.mkdir(parents=True, exist_ok=True)
    checkpoint = run / "checkpoint.pt"
    step = tokens = 0
    if checkpoint.exists():
        step, tokens = _load(checkpoint, config, head, optimizer)
    call: dict[str, object] = {"loss_config": resolve_loss_config("kl_div", "eager")}
    if config.head.method == "p_eagle":
        call |= {"num_depths": config.head.depth, "down_sample_ratio": config.retention, "down_sample_ratio_min": 0.0}
    else:
        call |= {"ttt_steps": config.head.depth, "ttt_step_loss_decay": config.retention}

    with _progress() as progress:
        task = progress.add_task(config.head.method, total=config.steps, completed=step, loss=float("nan"))
        while step < config.steps:
            started = time.monotonic()
            torch.manual_seed(config.seed * 1_000_003 + step)
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(config, step) * group["rate"]
            totals: dict[str, float] = defaultdict(float)
            for index in sample_order(len(samples), config.batch, step, config.seed):
                with torch.autocast(device, torch.bfloat16, enabled=config.precision == "bf16"):
                    _, loss, metrics = head(**training_inputs(samples[index], store[index], device), **call)
                (loss / config.batch).backward()
                totals["loss"] += loss.item() / config.batch
                for name, value in metrics.items():
                    totals[name] += float(value)
                tokens += len(samples[index].response_ids)
            torch.nn.utils.clip_grad_norm_(trained, config.clip)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            step += 1
            _log(run / "log.csv", step, tokens, time.monotonic() - started, totals, config.head)
            progress.update(task, completed=step, loss=totals["loss"])
            if step % config.checkpoint_every == 0 or step == config.steps:
                _save(checkpoint, config, head, optimizer, step, tokens)
    return checkpoint


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("loss {task.fields[loss]:.3f}"),
        TimeRemainingColumn(),
    )  # fmt: skip


def _save(path: Path, config: TrainingConfig, head: torch.nn.Module, optimizer: torch.optim.Optimizer, step: int, tokens: int) -> None:
    frozen = {name for name, parameter in head.named_parameters() if not parameter.requires_grad}
    state = {name: value for name, value in head.state_dict().items() if name not in frozen}
    partial = path.with_suffix(".partial")
    torch.save(
        {"config": config.model_dump(mode="json"), "head": state, "optimizer": optimizer.state_dict(), "step": step, "tokens": tokens},
        partial,
    )
    partial.rename(path)  # a kill leaves the old checkpoint or the new one, never half of one


def _load(path: Path, config: TrainingConfig, head: torch.nn.Module, optimizer: torch.optim.Optimizer) -> tuple[int, int]:
    saved = torch.load(path, weights_only=True)
    if TrainingConfig.model_validate(saved["config"]) != config:
        raise ValueError(f"{path} was made with another configuration: give another run folder, or the same options")
    head.load_state_dict(saved["head"], strict=False)
    optimizer.load_state_dict(saved["optimizer"])
    return saved["step"], saved["tokens"]


def _log(path: Path, step: int, tokens: int, seconds: float, totals: dict[str, float], head: HeadConfig) -> None:
    prefix = "position_{}_acc" if head.method == "p_eagle" else "full_acc_{}"
    names = [prefix.format(position) for position in range(head.depth)]
    accuracy = [totals[f"{name}_sum"] / max(1.0, totals[f"{name}_total"]) for name in names]
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if new:
            writer.writerow(["step", "tokens", "seconds", "loss", *(f"accuracy_{position + 1}" for position in range(head.depth))])
        writer.writerow([step, tokens, f"{seconds:.2f}", f"{totals['loss']:.4f}", *(f"{value:.4f}" for value in accuracy)])
