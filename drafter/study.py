"""What each choice of the recipe does: short trainings that differ from a base in one thing, side by side."""

import csv
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from drafter.data import Generation, read_generations
from drafter.engine import in_engine_process
from drafter.evaluate import evaluate_head
from drafter.export import export_head
from drafter.head import HeadConfig
from drafter.recipe import TrainingConfig
from drafter.suites import evaluation_ids
from drafter.train import train
from drafter.verify import tensor_shapes

SHORT = 96
TASKS = ("code", "chat")
K = 5


class Variant(NamedTuple):
    """What differs from the base: fields of the head, of the training, and whether rows are cut to 96 tokens."""

    name: str
    head: Mapping[str, Any] = {}
    training: Mapping[str, Any] = {}
    short: bool = False


VARIANTS = (
    Variant("base: 2 layers, 8,064 tokens, frozen, target's layers"),
    Variant("1 layer", head={"layers": 1}),
    Variant("4 layers", head={"layers": 4}),
    Variant("draft vocabulary 4,032", head={"draft_vocab_size": 4032}),
    Variant("draft vocabulary 16,128", head={"draft_vocab_size": 16_128}),
    Variant("trained embedding", head={"embedding": "trained"}),
    Variant("loss on prompts too", training={"loss_on": "all"}),
    Variant("random first weights", head={"start": "random"}),
    Variant(f"rows cut to {SHORT} tokens", short=True),
)


def study(data: Sequence[Path], target: Path, folder: Path, features: Path, steps: int, console: Console) -> Table:
    """Train, export and evaluate every variant; ``folder/study.csv`` holds the rows, and what is in it is not done again."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = json.loads((target / "config.json").read_text())["vocab_size"]
    short = folder / f"cut-to-{SHORT}.jsonl"
    if not short.exists():
        rows = [row for path in data for row in read_generations(path, vocabulary)]
        rows = random.Random(0).sample(rows, min(len(rows), 2 * steps * TrainingConfig.model_fields["batch"].default))
        short.write_text("".join(row.model_dump_json() + "\n" for row in map(cut, rows) if row))
    prompts = evaluation_ids(target, 16, tasks=TASKS)
    results = folder / "study.csv"
    done = {row["variant"]: row for row in csv.DictReader(results.open())} if results.exists() else {}
    for variant in VARIANTS:
        if variant.name in done:
            continue
        console.print(f"[bold]{variant.name}[/]")
        run = folder / variant.name.split(":")[0].replace(" ", "-").replace(",", "")
        config = TrainingConfig(head=HeadConfig(**variant.head), steps=steps, warmup=0.1, held_out_every=steps, **variant.training)
        train(config, [short] if variant.short else data, target, run, features)
        head = export_head(run, target, run / "head")
        measured = in_engine_process(evaluate_head, target, head, K, prompts, 96)
        row = _row(variant.name, run, head, measured)
        new = not results.exists()
        with results.open("a", newline="") as file:
            writer = csv.DictWriter(file, row, lineterminator="\n")
            if new:
                writer.writeheader()
            writer.writerow(row)
        done[variant.name] = row
    table = Table(*next(iter(done.values())), title=f"{steps} steps each; acceptance length at K = {K}, greedy")
    for row in done.values():
        table.add_row(*(str(value) for value in row.values()))
    return table


def cut(row: Generation) -> Generation | None:
    """The row's first tokens, or nothing where no answer is left."""
    left = SHORT - len(row.prompt_ids)
    if left < 8:
        return None
    finish = row.finish if len(row.response_ids) <= left else "length"
    return row.model_copy(update={"response_ids": row.response_ids[:left], "finish": finish})


def _row(name: str, run: Path, head: Path, measured: Sequence[Any]) -> dict[str, object]:
    steps = list(csv.DictReader((run / "log.csv").open()))
    (*_, held_out) = csv.DictReader((run / "held_out.csv").open())
    seconds = sum(float(step["seconds"]) for step in steps)
    parameters = sum(_size(shape) for tensor, shape in tensor_shapes(head / "model.safetensors").items() if tensor != "d2t")
    return {
        "variant": name,
        "M parameters": f"{parameters / 1e6:.1f}",
        "answer tokens": steps[-1]["tokens"],
        "training tokens/s": f"{int(steps[-1]['tokens']) / seconds:.0f}",
        "held out (estimate)": f"{float(held_out['length']):.3f}",
        **{one.task: f"{one.acceptance.length:.3f}" for one in measured},
        "serving tokens/s": f"{sum(one.tokens for one in measured) / sum(one.seconds for one in measured):.0f}",
    }


def _size(shape: Sequence[int]) -> int:
    size = 1
    for one in shape:
        size *= one
    return size
