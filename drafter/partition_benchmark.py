"""What partitions save: peak memory and time of one training step, by sequence length, each in a process of its own."""

import csv
import resource
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import torch
from rich.progress import track
from rich.table import Table

LENGTHS = (512, 1024, 2048, 4096, 8192, 20_000)


class Step(NamedTuple):
    """One training step: seconds, and GiB above what the process held before it; None where memory ran out."""

    seconds: float | None
    gib: float | None


def measure(target: Path, lengths: Sequence[int], width: int, memory_gib: float, out: Path) -> Table:
    """Measure each length whole and in partitions of ``width`` tokens; raw figures go to ``out``."""
    table = Table("tokens", "whole: GiB", "s", f"partitions of {width}: GiB", "s", "memory, whole / partitions", title="one training step, P-EAGLE")
    with out.open("w", newline="") as file:
        raw = csv.writer(file, lineterminator="\n")
        raw.writerow(["tokens", "width", "seconds", "gib"])
        for length in track(lengths, description="sequence lengths"):
            steps = []
            for of_width in (length, width):
                with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
                    steps.append(process.submit(one_step, target, length, of_width, memory_gib).result())
                raw.writerow([length, of_width, *steps[-1]])
                file.flush()
            whole, cut = steps
            ratio = f"{whole.gib / cut.gib:.1f}" if whole.gib and cut.gib else "-"
            table.add_row(f"{length:,}", *_cells(whole, memory_gib), *_cells(cut, memory_gib), ratio)
    return table


def one_step(target: Path, length: int, width: int, memory_gib: float) -> Step:
    """Forward and backward of one random sequence of ``length`` tokens in partitions of ``width``."""
    from drafter.head import HeadConfig, build_head
    from drafter.loss import PEagleLoss

    config = HeadConfig()
    head = build_head(config, target, dict.fromkeys(range(config.draft_vocab_size), 1))
    loss_of = PEagleLoss(head, config.depth, 0.8, width)
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(1, length, head.fc.weight.shape[1], generator=generator)
    inputs = {
        "input_ids": torch.randint(0, 8000, (1, length), generator=generator),
        "hidden_states": hidden,
        "verifier_last_hidden_states": hidden[..., : head.fc.weight.shape[0]].contiguous(),
        "loss_mask": torch.ones(1, length, dtype=torch.long),
    }
    torch.manual_seed(0)
    before = _held_gib()
    resource.setrlimit(resource.RLIMIT_DATA, (int((before + memory_gib) * 2**30), resource.RLIM_INFINITY))
    started = time.monotonic()
    try:
        parts = loss_of.parts(inputs)
        rows = length + sum(len(part.chains.anchor) for part in parts)
        for part in parts:
            with torch.autocast("cpu", torch.bfloat16):
                loss = loss_of(inputs, part, rows).loss
            loss.backward()
    except (RuntimeError, MemoryError) as error:
        if "memory" not in str(error).lower():
            raise
        return Step(None, None)
    return Step(time.monotonic() - started, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20 - before)


def _held_gib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**30


def _cells(step: Step, memory_gib: float) -> tuple[str, str]:
    if step.gib is None or step.seconds is None:
        return f"over {memory_gib:g}", "-"
    return f"{step.gib:.2f}", f"{step.seconds:.1f}"
