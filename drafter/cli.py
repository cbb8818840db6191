"""``peagle drafter``: make a head from the target's own answers, measure it, and write the folder vLLM reads."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.table import Table

from drafter.data import DataError
from drafter.home import peagle_home

app = typer.Typer(no_args_is_help=True, help="Make, train, measure and export draft heads.")
console = Console()

TargetFolder = Annotated[Path | None, typer.Option(help="Hugging Face folder of the target; default: SmolLM2-135M-Instruct.")]
Data = Annotated[list[Path], typer.Option(help="JSONL (or .jsonl.gz) of the target's own answers; may be given again.")]
SpecBench = Annotated[Path | None, typer.Option(help="Spec-Bench's question.jsonl: adds math, summarization, translation, qa, rag.")]


def _target(folder: Path | None) -> Path:
    from drafter.target import prepare_target

    return folder or prepare_target(console.print)


def _refuse(error: Exception) -> typer.Exit:
    console.print(f"[red]✗[/] {error}", highlight=False)
    return typer.Exit(1)


@app.command()
def generate(
    out: Annotated[Path, typer.Argument(help="JSONL the answers are appended to; rows already in it are not asked again.")],
    prompts: Annotated[list[Path] | None, typer.Option(help="JSONL of prompts: prompt, messages or prompt_ids on each line.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="stdlib (Python's documented functions) or self (the target writes prompts).")] = None,
    exclude: Annotated[list[Path] | None, typer.Option(help="JSONL of prompts never to ask, besides HumanEval, MT-Bench and the JSON set.")] = None,
    spec_bench: SpecBench = None,
    tokens: Annotated[int, typer.Option(help="Answer tokens after which it is enough.")] = 1_000_000,
    max_tokens: Annotated[int, typer.Option(help="Longest answer.")] = 384,
    temperature: Annotated[list[float] | None, typer.Option(help="Each prompt is answered at one of these; default 0 and 0.7.")] = None,
    own_prompts: Annotated[int, typer.Option(help="Prompts the target writes, with --source self.")] = 2000,
    seed: Annotated[int, typer.Option(help="Order of the prompts, and sampling.")] = 0,
    target: TargetFolder = None,
) -> None:
    """Ask the target and keep its answers: training data."""
    from pydantic import ValidationError

    from drafter.engine import in_engine_process
    from drafter.generate import GenerationConfig
    from drafter.generate import generate as generate_answers
    from drafter.suites import evaluation_prompts

    given: dict[str, Any] = {"prompt_files": prompts, "sources": source, "exclude": exclude, "temperatures": temperature}
    try:
        config = GenerationConfig(
            tokens=tokens, max_tokens=max_tokens, own_prompts=own_prompts, seed=seed, **{key: value for key, value in given.items() if value}
        )
        excluded = [text for of_task in evaluation_prompts(spec_bench).values() for text in of_task]
        summary = in_engine_process(generate_answers, config, _target(target), out, excluded)
    except ValidationError as error:
        raise _refuse(ValueError("; ".join(f"{one['loc'][0]}: {one['msg']}" for one in error.errors()))) from None
    except DataError as error:
        raise _refuse(error) from None
    table = Table("source", "rows", "answer tokens", title=str(out))
    for name, (rows, count) in sorted(summary.items()):
        table.add_row(name, f"{rows:,}", f"{count:,}")
    console.print(table)


@app.command()
def train(
    data: Data,
    run: Annotated[Path, typer.Option(help="Folder for the checkpoint, the logs and the curves; an interrupted run goes on from it.")],
    target: TargetFolder = None,
    method: Annotated[Literal["p_eagle", "eagle3"], typer.Option(help="Kind of head.")] = "p_eagle",
    layers: Annotated[int, typer.Option(help="Transformer layers of the head, 1 to 4.")] = 2,
    depth: Annotated[int, typer.Option(help="Draft positions trained (K_train).")] = 8,
    capture: Annotated[list[int] | None, typer.Option(help="Target layer whose input the head sees; give three. Default: 2, L/2, L-1.")] = None,
    draft_vocab: Annotated[int, typer.Option(help="The most frequent tokens the head can draft.")] = 8064,
    embedding: Annotated[Literal["frozen", "trained"], typer.Option(help="frozen: the target's; trained: the head's own.")] = "frozen",
    start: Annotated[Literal["target", "random"], typer.Option(help="First weights: the target's last layers, or random.")] = "target",
    start_from: Annotated[Path | None, typer.Option(help="An exported head to train on from, with as many layers or fewer.")] = None,
    retention: Annotated[float, typer.Option(help="COD's r: the share of positions each depth keeps of the one before; less is faster.")] = 0.8,
    loss_on: Annotated[Literal["answers", "all"], typer.Option(help="Tokens whose prediction is trained.")] = "answers",
    optimizer: Annotated[Literal["adamw", "muon"], typer.Option(help="muon: Muon for the matrices, AdamW for the rest.")] = "muon",
    steps: Annotated[int, typer.Option(help="Optimizer steps.")] = 500,
    batch: Annotated[int, typer.Option(help="Samples a step.")] = 8,
    learning_rate: Annotated[float, typer.Option(help="Peak learning rate of AdamW.")] = 1.5e-3,
    matrix_rate: Annotated[float, typer.Option(help="Peak learning rate of Muon.")] = 0.03,
    partition: Annotated[int, typer.Option(help="Tokens of a sequence trained at once.")] = 2048,
    precision: Annotated[Literal["bf16", "fp32"], typer.Option(help="Precision of the matrix products.")] = "bf16",
    seed: Annotated[int, typer.Option(help="Seed of the sample order and the COD draws.")] = 0,
    processes: Annotated[int, typer.Option(help="Processes that share each batch; 0: one a GPU.")] = 0,
) -> None:
    """Train a head; the same command after a kill goes on from the last checkpoint."""
    import torch
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    from drafter.head import HeadConfig
    from drafter.recipe import TrainingConfig
    from drafter.train import train as train_head

    try:
        head = HeadConfig(method=method, layers=layers, depth=depth, draft_vocab_size=draft_vocab, embedding=embedding, start=start,
                          layer_ids=tuple(capture or ()))  # fmt: skip
        config = TrainingConfig(
            head=head, start_from=start_from, retention=retention, loss_on=loss_on, optimizer=optimizer, steps=steps, batch=batch,
            learning_rate=learning_rate, matrix_rate=matrix_rate, partition=partition, precision=precision, seed=seed,
        )  # fmt: skip
        work = (config, data, _target(target), run, peagle_home() / "features")
        if (several := processes or torch.cuda.device_count()) > 1:
            alone = LaunchConfig(1, 1, several, rdzv_backend="c10d", rdzv_endpoint="localhost:0")
            checkpoint = elastic_launch(alone, train_head)(*work)[0]
        else:
            checkpoint = train_head(*work)
    except ValueError as error:
        raise _refuse(error) from None
    console.print(f"trained: {checkpoint}")


@app.command()
def export(
    run: Annotated[Path, typer.Option(help="Folder of a training run.")],
    folder: Annotated[Path, typer.Argument(help="Where the head goes.")],
    target: TargetFolder = None,
    acceptance: Annotated[Path | None, typer.Option(help="Table of `peagle drafter evaluate --csv`, for the model card.")] = None,
    base_model: Annotated[str, typer.Option(help="The target's name in the model card.")] = "",
    license_id: Annotated[str, typer.Option("--license", help="The head's license.")] = "apache-2.0",
) -> None:
    """Write a trained head as the folder vLLM reads, with a model card."""
    from drafter.export import export_head

    console.print(f"exported: {export_head(run, _target(target), folder, acceptance, base_model, license_id)}")


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
    heads: Annotated[list[Path], typer.Argument(help="Folders of heads.")],
    k: Annotated[list[int] | None, typer.Option("--k", help="Draft tokens a step; may be given again. Default: 1 to --k-max.")] = None,
    k_max: Annotated[int, typer.Option(help="Largest K, when no --k is given.")] = 5,
    task: Annotated[
        list[str] | None, typer.Option(help="Tasks: code, chat, json, those of --spec-bench, held-out (with --data). Default: all.")
    ] = None,
    prompts: Annotated[int, typer.Option(help="Prompts a task.")] = 32,
    max_tokens: Annotated[int, typer.Option(help="Longest answer.")] = 128,
    spec_bench: SpecBench = None,
    data: Annotated[list[Path] | None, typer.Option(help="Training data whose held-out prompts are a task too.")] = None,
    table_file: Annotated[Path | None, typer.Option("--csv", help="Write the table here, and a plot beside it (.png).")] = None,
    target: TargetFolder = None,
) -> None:
    """Acceptance by task and K, head beside head, through the vLLM that serves."""
    from rich.progress import track

    from drafter import evaluate as evaluation
    from drafter.engine import in_engine_process
    from drafter.suites import evaluation_ids

    folder = _target(target)
    try:
        suites = evaluation_ids(folder, prompts, spec_bench, data or (), task or ())
    except ValueError as error:
        raise _refuse(error) from None
    measured: list[evaluation.Measured] = []
    for head, one_k in track([(head, one_k) for head in heads for one_k in (k or range(1, k_max + 1))], description="heads x K"):
        measured += in_engine_process(evaluation.evaluate_head, folder, head.resolve(), one_k, suites, max_tokens)
    table = Table("head", "task", "K", "acceptance length", "accepted, by position", "tokens/s", title=f"greedy, up to {max_tokens} tokens")
    for one in measured:
        rates = "  ".join(f"{rate:.1%}" for rate in one.acceptance.rates)
        table.add_row(one.head, one.task, str(one.k), f"{one.acceptance.length:.3f}", rates, f"{one.tokens / one.seconds:.0f}")
    console.print(table)
    if table_file:
        evaluation.write_csv(table_file, measured)
        evaluation.draw(table_file.with_suffix(".png"), measured)


@app.command()
def quantize(
    folder: Annotated[Path, typer.Argument(help="Where the quantized target goes.")],
    scheme: Annotated[Literal["int8", "int4"], typer.Option(help="int4: weights in groups of 32; int8: weights and activations.")] = "int4",
    data: Annotated[Path | None, typer.Option(help="The target's own answers: int4 is calibrated on some. Without: rounding to nearest.")] = None,
    target: TargetFolder = None,
) -> None:
    """Write the target with quantized weights, to evaluate a head on it (`evaluate --target FOLDER`)."""
    if data and scheme == "int8":
        raise typer.BadParameter("int8 is rounded to the nearest and calibrates on nothing; leave --data out, or take --scheme int4")
    from drafter.quantize import quantize_target

    console.print(f"quantized: {quantize_target(_target(target), folder, scheme, data)}")


@app.command()
def partitions(
    lengths: Annotated[list[int] | None, typer.Option("--length", help="Sequence lengths; default 512 to 20,000.")] = None,
    width: Annotated[int, typer.Option(help="Tokens of a partition.")] = 1024,
    memory: Annotated[float, typer.Option(help="GiB a measurement may take before it is called out of memory.")] = 16.0,
    out: Annotated[Path, typer.Option(help="Where the raw figures go.")] = Path("partitions.csv"),
    target: TargetFolder = None,
) -> None:
    """Benchmark: peak memory and time of one training step against sequence length, with and without partitions."""
    from drafter.partition_benchmark import LENGTHS, measure

    table = measure(_target(target), lengths or LENGTHS, width, memory, out)
    console.print(table)


@app.command()
def study(
    data: Data,
    out: Annotated[Path, typer.Option(help="Folder of the trainings and of study.csv; what is done is not done again.")] = Path("study"),
    steps: Annotated[int, typer.Option(help="Optimizer steps of each variant.")] = 40,
    target: TargetFolder = None,
) -> None:
    """Compare the recipe's choices: short trainings that differ in one thing."""
    from drafter.study import study as run_study

    console.print(run_study(data, _target(target), out, peagle_home() / "features", steps, console))


if __name__ == "__main__":
    app()
