"""What a training run leaves on disk: its checkpoint, which survives a kill, and its log, as numbers and as a picture."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from drafter.recipe import TrainingConfig


class Progress(NamedTuple):
    """How far a run has come: optimizer steps, and answer tokens seen."""

    step: int = 0
    tokens: int = 0


def save(path: Path, config: TrainingConfig, head: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer], done: Progress) -> None:
    """Write the checkpoint; a kill leaves the old one or the new one, never half of one."""
    frozen = {name for name, parameter in head.named_parameters() if not parameter.requires_grad}
    state = {name: value for name, value in head.state_dict().items() if name not in frozen}
    partial = path.with_suffix(".partial")
    torch.save(
        {
            "config": config.model_dump(mode="json"),
            "head": state,
            "optimizers": [optimizer.state_dict() for optimizer in optimizers],
            "step": done.step,
            "tokens": done.tokens,
        },
        partial,
    )
    partial.rename(path)


def load(path: Path, config: TrainingConfig, head: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer]) -> Progress:
    """Put a checkpoint's state into ``head`` and ``optimizers``; nothing happens if there is none.

    Raises:
        ValueError: the checkpoint was made with another configuration.
    """
    if not path.exists():
        return Progress()
    saved = torch.load(path, weights_only=True, map_location="cpu")
    if TrainingConfig.model_validate(saved["config"]) != config:
        raise ValueError(f"{path} was made with another configuration: give another run folder, or the same options")
    head.load_state_dict(saved["head"], strict=False)
    for optimizer, state in zip(optimizers, saved["optimizers"], strict=True):
        optimizer.load_state_dict(state)
    return Progress(saved["step"], saved["tokens"])


class TrainingLog:
    """``log.csv``: one line a step; ``held_out.csv``: acceptance on held-out rows against tokens seen; ``curves.png``."""

    def __init__(self, run: Path, depths: int, done: Progress) -> None:
        self._run = run
        self._steps, self._held_out = run / "log.csv", run / "held_out.csv"
        _start(self._steps, ["step", "tokens", "seconds", "loss", *(f"accuracy_{depth + 1}" for depth in range(depths))], done.step)
        _start(self._held_out, ["step", "tokens", "length", *(f"rate_{depth + 1}" for depth in range(depths))], done.step)

    def step(self, done: Progress, seconds: float, loss: float, accuracy: Sequence[float]) -> None:
        _append(self._steps, [done.step, done.tokens, f"{seconds:.2f}", f"{loss:.4f}", *(f"{value:.4f}" for value in accuracy)])

    def held_out(self, done: Progress, rates: Sequence[float]) -> None:
        _append(self._held_out, [done.step, done.tokens, f"{1 + sum(rates):.4f}", *(f"{rate:.4f}" for rate in rates)])

    def draw(self) -> None:
        """Draw loss, accuracy by position and held-out acceptance length against answer tokens seen."""
        from matplotlib.figure import Figure

        steps, held_out = _columns(self._steps), _columns(self._held_out)
        figure = Figure(figsize=(12, 3.6), layout="constrained")
        loss, accuracy, length = figure.subplots(1, 3)
        loss.plot(steps["tokens"], _smooth(steps["loss"]))
        loss.set(title="loss", xlabel="answer tokens seen")
        for name, values in steps.items():
            if name.startswith("accuracy_"):
                accuracy.plot(steps["tokens"], _smooth(values), label=name.removeprefix("accuracy_"))
        accuracy.set(title="accuracy by draft position (training)", xlabel="answer tokens seen", ylim=(0, 1))
        accuracy.legend(ncols=2, fontsize="small")
        length.plot(held_out["tokens"], held_out["length"], marker="o")
        length.set(title="acceptance length (held out, estimated)", xlabel="answer tokens seen")
        figure.savefig(self._run / "curves.png", dpi=110)


def _start(path: Path, header: list[str], step: int) -> None:
    """Begin a log, or drop the lines a killed run wrote after its last checkpoint."""
    lines = path.read_text().splitlines() if path.exists() else []
    kept = [line for line in lines[1:] if line and int(line.split(",")[0]) <= step]
    path.write_text("\n".join([",".join(header), *kept]) + "\n")


def _append(path: Path, values: list[object]) -> None:
    with path.open("a", newline="") as file:
        csv.writer(file, lineterminator="\n").writerow(values)


def _columns(path: Path) -> dict[str, list[float]]:
    with path.open() as file:
        rows = list(csv.DictReader(file))
    return {name: [float(row[name]) for row in rows] for name in (rows[0] if rows else ["tokens", "length"])}


def _smooth(values: list[float], window: int = 20) -> list[float]:
    return [sum(values[max(0, end - window) : end]) / min(end, window) for end in range(1, len(values) + 1)]
