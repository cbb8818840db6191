"""``peagle drafter``: make a head from the target's own answers, measure it, and write the folder vLLM reads."""

import os
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from drafter.home import peagle_home

app = typer.Typer(no_args_is_help=True, help="Train, measure and export draft heads.")
console = Console()

TargetFolder = Annotated[Path | None, typer.Option(help="Hugging Face folder of the target; default: SmolLM2-135M-Instruct.")]
Data = Annotated[list[Path], typer.Option(help="JSONL (or .jsonl.gz) of the target's own answers.")]


def _target(folder: Path | None) -> Path:
    from drafter.target import prepare_target

    return folder or prepare_target(console.print)


@app.command()
def train(
    data: Data,
    run: Annotated[Path, typer.Option(help="Folder for the checkpoint and the log; an interrupted run goes on from it.")],
    target: TargetFolder = None,
    method: Annotated[Literal["p_eagle", "eagle3"], typer.Option(help="Kind of head.")] = "p_eagle",
    layers: Annotated[int, typer.Option(help="Transformer layers of the head.")] = 2,
    depth: Annotated[int, typer.Option(help="Draft positions trained (K_train).")] = 8,
    start_from: Annotated[Path | None, typer.Option(help="An exported head of the same shape to train on from.")] = None,
    steps: Annotated[int, typer.Option(help="Optimizer steps.")] = 500,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate.")] = 5e-4,
    seed: Annotated[int, typer.Option(help="Seed of the sample order and the COD draws.")] = 0,
) -> None:
    """Train a head; the same command after a kill goes on from the last checkpoint."""
    from drafter.head import HeadConfig
    from drafter.train import TrainingConfig
    from drafter.train import train as train_head

    config = TrainingConfig(
        head=HeadConfig(method=method, layers=layers, depth=depth), start_from=start_from, steps=steps, learning_rate=learning_rate, seed=seed
    )
    checkpoint = train_head(config, data, _target(target), run, peagle_home() / "features")
    console.print(f"trained: {checkpoint}")


@app.command()
def export(
    run: Annotated[Path, typer.Option(help="Folder of a training run.")],
    folder: Annotated[Path, typer.Argument(help="Where the head goes.")],
    target: TargetFolder = None,
) -> None:
    """Write a trained head as the folder vLLM reads."""
    from drafter.export import export_head

    console.print(f"exported: {export_head(run / 'checkpoint.pt', _target(target), folder)}")


@app.command()
def verify(
    folder: Annotated[Path, typer.Argument(help="The head's folder.")],
    target: TargetFolder = None,
    parallel: Annotated[bool, typer.Option(help="Whether it is to draft in parallel (P-EAGLE).")] = True,
) -> None:
    """Check a head's folder against its target, loading neither."""
    from drafter.verify import head_problems

    problems = head_problems(folder, _target(target), parallel)
    for problem in problems:
        console.print(f"[red]✗[/] {problem}")
    if problems:
        raise typer.Exit(1)
    console.print(f"[green]✓[/] {folder} fits the target")


@app.command()
def evaluate(
    data: Data,
    heads: Annotated[list[Path], typer.Argument(help="Folders of heads.")],
    k: Annotated[int, typer.Option("--k", help="Draft tokens a step.")] = 4,
    prompts: Annotated[int, typer.Option(help="Held-out prompts used.")] = 64,
    target: TargetFolder = None,
) -> None:
    """Acceptance over the data's held-out prompts, which training never saw, through vLLM."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    from rich.table import Table
    from transformers import AutoConfig

    from drafter.data import read_generations, split_held_out
    from drafter.evaluate import evaluate_head

    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # the table is what is asked for
    folder = _target(target)
    vocabulary = AutoConfig.from_pretrained(folder).vocab_size
    _, held_out = split_held_out(row for path in data for row in read_generations(path, vocabulary))
    table = Table("head", "K", "acceptance length", "accepted, by position", title=f"{min(prompts, len(held_out))} held-out prompts, greedy")
    for head in heads:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:  # an engine does not give everything back
            found = process.submit(evaluate_head, folder, head.resolve(), k, held_out[:prompts]).result()
        table.add_row(found.head, str(k), f"{found.length:.3f}", "  ".join(f"{rate:.1%}" for rate in found.rates))
    console.print(table)
