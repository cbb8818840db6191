"""Acceptance of heads by task and K, through the same vLLM that serves."""

import csv
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from drafter.acceptance import Acceptance
from drafter.engine import offline_engine

Prompts = Mapping[str, Sequence[tuple[int, ...]]]


class Measured(BaseModel):
    """What one head's drafts were worth on one task at one K."""

    model_config = ConfigDict(frozen=True)

    head: str = Field(description="The head's folder name.")
    k: int = Field(description="Draft tokens a step.")
    task: str = Field(description="The task.")
    acceptance: Acceptance = Field(description="Draft tokens proposed and accepted.")
    tokens: int = Field(description="Output tokens.")
    seconds: float = Field(description="Wall clock of the task's decoding.")


def speculative_config(head: Path, k: int) -> dict[str, object]:
    """vLLM's ``speculative_config`` for a head folder, parallel if the head was trained for it."""
    config = json.loads((head / "config.json").read_text())
    parallel = config.get("ptd_token_id") is not None
    return {"model": str(head), "method": "eagle3", "num_speculative_tokens": k, **({"parallel_drafting": True} if parallel else {})}


def evaluate_head(target: Path, head: Path, k: int, prompts: Prompts, max_tokens: int = 128, **arguments: Any) -> list[Measured]:
    """Decode each task's prompts greedily with the head and count what is accepted. Starts an engine:
    call it through ``in_engine_process``.

    Args:
        target: the target's folder.
        head: the head's folder.
        k: draft tokens a step.
        prompts: token ids of the prompts, by task.
        max_tokens: longest answer.
        arguments: further engine arguments.
    """
    from vllm import SamplingParams

    engine = offline_engine(
        target, speculative_config=speculative_config(head, k), max_num_seqs=32, max_model_len=2048, disable_log_stats=False, **arguments
    )
    sampling = SamplingParams(temperature=0, max_tokens=max_tokens)
    measured, before = [], Acceptance()
    for task, of_task in prompts.items():
        started = time.monotonic()
        fitting = [{"prompt_token_ids": list(ids)} for ids in of_task if len(ids) + max_tokens < 2048]
        outputs = engine.generate(fitting, sampling, use_tqdm=False)
        metrics = {metric.name: metric for metric in engine.get_metrics()}
        now = Acceptance(
            drafts=metrics["vllm:spec_decode_num_drafts"].value,
            draft_tokens=metrics["vllm:spec_decode_num_draft_tokens"].value,
            accepted=tuple(metrics["vllm:spec_decode_num_accepted_tokens_per_pos"].values),
        )
        tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
        measured.append(Measured(head=head.name, k=k, task=task, acceptance=now.since(before), tokens=tokens, seconds=time.monotonic() - started))
        before = now
    return measured


def write_csv(path: Path, measured: Sequence[Measured]) -> None:
    """One line a head, K and task: acceptance length, then the acceptance rate of each draft position."""
    deepest = max(one.k for one in measured)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["head", "k", "task", "length", "drafts", "tokens", "seconds", *(f"rate_{position + 1}" for position in range(deepest))])
        for one in measured:
            rates = [f"{rate:.4f}" for rate in one.acceptance.rates]
            writer.writerow(
                [one.head, one.k, one.task, f"{one.acceptance.length:.4f}", one.acceptance.drafts, one.tokens, f"{one.seconds:.1f}", *rates]
            )


def draw(path: Path, measured: Sequence[Measured]) -> None:
    """Acceptance length against K, one panel a task, one line a head."""
    from matplotlib.figure import Figure

    tasks = list(dict.fromkeys(one.task for one in measured))
    figure = Figure(figsize=(3.2 * len(tasks), 3.2), layout="constrained")
    for axes, task in zip(figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0], tasks, strict=True):
        for head in dict.fromkeys(one.head for one in measured):
            points = sorted((one.k, one.acceptance.length) for one in measured if (one.head, one.task) == (head, task))
            axes.plot(*zip(*points, strict=True), marker="o", label=head)
        axes.set(title=task, xlabel="K", xticks=sorted({one.k for one in measured}))
    figure.axes[0].set_ylabel("acceptance length")
    figure.axes[0].legend(fontsize="x-small")
    figure.savefig(path, dpi=110)
