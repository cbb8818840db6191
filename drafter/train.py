"""Train a head on the target's own answers; killed at any time, the same command goes on from its last checkpoint.

One process trains on the CPU or a GPU; started by ``accelerate launch``, several share each batch (DDP).
"""

import contextlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from accelerate import Accelerator
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from speculators.train.optimizers import split_named_params_for_muon
from transformers import AutoConfig

from drafter import checkpoint
from drafter.data import Generation, read_generations, split_held_out, token_counts
from drafter.features import FeatureStore
from drafter.head import build_head
from drafter.loss import Eagle3Loss, PEagleLoss
from drafter.recipe import TrainingConfig, sample_order, schedule, training_inputs

HELD_OUT_ROWS = 32


def train(config: TrainingConfig, data: Sequence[Path], target: Path, run: Path, features: Path) -> Path:
    """Train until ``config.steps`` and return the checkpoint's path.

    ``run`` receives ``checkpoint.pt``, ``log.csv``, ``held_out.csv`` and ``curves.png``.

    Raises:
        DataError: a row of the data cannot be used.
        ValueError: ``run`` holds a checkpoint of another configuration, or the processes cannot share the batch evenly.
    """
    accelerator = Accelerator(mixed_precision="bf16" if config.precision == "bf16" else "no", cpu=not torch.cuda.is_available())
    if config.batch % accelerator.num_processes:
        raise ValueError(f"a batch of {config.batch} cannot be shared by {accelerator.num_processes} processes: make it a multiple")
    target_config = AutoConfig.from_pretrained(target)
    rows = [row for path in data for row in read_generations(path, target_config.vocab_size, config.max_length)]
    samples, held_out = split_held_out(rows)
    held_out = [row for row in held_out if row.temperature == 0][:HELD_OUT_ROWS]
    layers = config.head.captured_layers(target_config.num_hidden_layers)
    store, held_out_store = (FeatureStore(features, some, target, layers) for some in (samples, held_out))
    with accelerator.main_process_first():
        store.compute()
        held_out_store.compute()

    torch.manual_seed(config.seed)
    head = build_head(config.head, target, token_counts(samples), config.start_from)
    if config.head.method == "p_eagle" and config.start_from is None:
        with torch.no_grad():
            head.mask_hidden.copy_(mean_hidden(store, len(samples)))
    loss_of = (
        PEagleLoss(head, config.head.depth, config.retention, config.partition)
        if config.head.method == "p_eagle"
        else Eagle3Loss(head, config.head.depth, config.retention)
    ).to(accelerator.device)
    optimizers = build_optimizers(config, head)
    run.mkdir(parents=True, exist_ok=True)
    saved = run / "checkpoint.pt"
    done = checkpoint.load(saved, config, head, optimizers)
    if accelerator.is_main_process:
        about = run / "data.json"
        # Of the first start: the head that was begun from may be overwritten by this run's.
        before = json.loads(about.read_text())["before"] if done.step else _trained_before(config.start_from)
        about.write_text(json.dumps({"files": [_described(path, rows) for path in data], "before": before}))
    log = checkpoint.TrainingLog(run, config.head.depth, done) if accelerator.is_main_process else None
    model = accelerator.prepare(loss_of)
    trained = [parameter for parameter in head.parameters() if parameter.requires_grad]

    with _progress(disable=log is None) as progress:
        task = progress.add_task(config.head.method, total=config.steps, completed=done.step, loss=float("nan"), held_out="")
        while done.step < config.steps:
            started = time.monotonic()
            for optimizer in optimizers:
                for group in optimizer.param_groups:
                    group["lr"] = schedule(config, done.step) * group["peak"]
            batch = sample_order(len(samples), config.batch, done.step, config.seed)
            totals = torch.zeros(1 + 2 * config.head.depth, device=accelerator.device)
            share = range(accelerator.process_index, config.batch, accelerator.num_processes)
            for place in share:
                inputs = training_inputs(samples[batch[place]], store[batch[place]], accelerator.device, config.loss_on)
                # The draws are the sample's own, so that resuming and sharing a batch change nothing.
                torch.manual_seed((config.seed * 1_000_003 + done.step) * config.batch + place)
                parts = loss_of.parts(inputs)
                in_sequence = int(inputs["loss_mask"].sum()) + sum(len(part.chains.anchor) for part in parts)
                for part in parts:
                    last = place == share[-1] and part is parts[-1]
                    with contextlib.nullcontext() if last else accelerator.no_sync(model):
                        found = model(inputs, part, in_sequence)
                        # DDP averages over processes; the mean over the batch is wanted.
                        accelerator.backward(found.loss * accelerator.num_processes / config.batch)
                    totals += torch.cat([found.loss.detach()[None] / config.batch, found.correct, found.total])
            torch.nn.utils.clip_grad_norm_(trained, config.clip)
            for optimizer in optimizers:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
            done = checkpoint.Progress(done.step + 1, done.tokens + sum(len(samples[index].response_ids) for index in batch))
            loss, *counts = accelerator.reduce(totals).tolist()
            if log is None:
                continue
            correct, total = counts[: config.head.depth], counts[config.head.depth :]
            log.step(done, time.monotonic() - started, loss, [one / max(1.0, all_) for one, all_ in zip(correct, total, strict=True)])
            progress.update(task, completed=done.step, loss=loss)
            finished = done.step == config.steps
            if held_out and (finished or done.step % config.held_out_every == 0):
                with accelerator.autocast():
                    rates = held_out_rates(loss_of, held_out, held_out_store, accelerator.device)
                log.held_out(done, rates)
                progress.update(task, held_out=f"held-out acceptance length {1 + sum(rates):.3f}")
            if finished or done.step % config.checkpoint_every == 0:
                checkpoint.save(saved, config, head, optimizers, done)
                log.draw()
    accelerator.wait_for_everyone()
    accelerator.end_training()
    return saved


def build_optimizers(config: TrainingConfig, head: torch.nn.Module) -> list[torch.optim.Optimizer]:
    """AdamW, or Muon for the matrices with AdamW for the rest; each group knows its ``peak`` rate."""
    trained = {name: parameter for name, parameter in head.named_parameters() if parameter.requires_grad}
    matrices = dict(split_named_params_for_muon(head)[0]) if config.optimizer == "muon" else {}
    optimizers: list[torch.optim.Optimizer] = []
    if matrices:
        group = {"params": list(matrices.values()), "peak": config.matrix_rate}
        optimizers.append(torch.optim.Muon([group], lr=config.matrix_rate, weight_decay=0.0))
    rest = {name: parameter for name, parameter in trained.items() if name not in matrices}
    groups = [
        {"params": [parameter for name, parameter in rest.items() if name.startswith("fc.")], "peak": config.learning_rate * config.fc_rate},
        {"params": [parameter for name, parameter in rest.items() if not name.startswith("fc.")], "peak": config.learning_rate},
    ]
    optimizers.append(torch.optim.AdamW(groups, lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0))
    return optimizers


def mean_hidden(store: FeatureStore, samples: int) -> torch.Tensor:
    """Where ``mask_hidden`` starts: the average captured state, so that unknown positions enter the layers at the usual size.

    The first tokens are left out; their states are hundreds of times larger than all others.
    """
    return torch.cat([store[index].hidden[4:].float() for index in range(min(samples, 64))]).mean(dim=0)


def held_out_rates(loss_of: PEagleLoss | Eagle3Loss, rows: Sequence[Generation], store: FeatureStore, device: torch.device) -> list[float]:
    """Share of the places of held-out greedy answers at which each draft position would be accepted.

    An estimate: serving visits only the places where a draft begins.
    """
    through, places = torch.zeros(loss_of.depths, device=device), 0
    for index, row in enumerate(rows):
        accepted, count = loss_of.accepted(training_inputs(row, store[index], device))
        through, places = through + accepted, places + count
    return (through / max(1, places)).tolist()


def _described(path: Path, rows: Sequence[Generation]) -> dict[str, object]:
    of_file = [row for row in rows if row.where.startswith(f"{path.name} row ")]
    return {"name": path.name, "rows": len(of_file), "answer_tokens": sum(len(row.response_ids) for row in of_file)}


def _trained_before(head: Path | None) -> dict[str, int]:
    """Steps and answer tokens an exported head has behind it."""
    training: dict[str, int] = json.loads((head / "config.json").read_text()).get("training", {}) if head else {}
    return training


def _progress(disable: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("loss {task.fields[loss]:.3f}"),
        TextColumn("{task.fields[held_out]}"), TimeRemainingColumn(), disable=disable,
    )  # fmt: skip
