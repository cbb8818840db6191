"""Training data: the target's own answers to prompts, generated in batches and appended to one JSONL file.

A killed run goes on where it stopped: the rows already in the file are not asked again.
"""

import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from drafter.data import Generation, read_generations
from drafter.engine import multiplies_bfloat16, offline_engine
from drafter.prompts import Prompt, encode_chat, identity, read_prompts, standard_library, user_turn_start, without

if TYPE_CHECKING:
    from vllm import LLM

Source = Literal["stdlib", "self"]


class GenerationConfig(BaseModel):
    """What is asked of the target, and how."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt_files: tuple[Path, ...] = Field(default=(), description="JSONL files of prompts.")
    sources: tuple[Source, ...] = Field(default=(), description="Named sources: stdlib (Python's own), self (the target writes prompts).")
    exclude: tuple[Path, ...] = Field(default=(), description="JSONL files of prompts that must not be asked: those of the evaluation.")
    tokens: int = Field(default=1_000_000, gt=0, description="Answer tokens after which it is enough.")
    max_tokens: int = Field(default=384, gt=0, description="Longest answer, in tokens.")
    temperatures: tuple[float, ...] = Field(default=(0.0, 0.7), min_length=1, description="Each prompt is answered at one of these, in turn.")
    own_prompts: int = Field(default=2000, ge=0, description="Prompts the target writes, with the source self.")
    batch: int = Field(default=64, gt=0, description="Sequences decoded at once.")
    seed: int = Field(default=0, description="Order of the prompts, and sampling.")


def generate(config: GenerationConfig, target: Path, out: Path, excluded_texts: Sequence[str] = ()) -> dict[str, tuple[int, int]]:
    """Append answers to ``out`` until it holds ``config.tokens`` of them, or no prompt is left.

    Args:
        config: what is asked, and how.
        target: the target's folder.
        out: JSONL file of the answers.
        excluded_texts: user messages never to ask, besides those of ``config.exclude``: the evaluation's.

    Returns:
        Rows and answer tokens in ``out``, by source.

    Raises:
        DataError: a row of a prompt file or of ``out`` is wrong; the message names it.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(target)
    out.parent.mkdir(parents=True, exist_ok=True)
    done = list(read_generations(out, len(tokenizer))) if out.exists() else []
    asked = {identity(row.prompt_ids) for row in done}
    answers = {identity(row.response_ids) for row in done}
    tokens = sum(len(row.response_ids) for row in done)

    with Progress(
        TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed:,} of {task.total:,}"), TimeRemainingColumn()
    ) as progress:
        bar = progress.add_task("answer tokens", total=config.tokens, completed=tokens)
        if tokens < config.tokens:
            engine = _engine(config, target)
            excluded = frozenset(
                [prompt.identity for path in config.exclude for prompt in read_prompts(path, tokenizer)]
                + [identity(encode_chat(tokenizer, [{"role": "user", "content": text}])) for text in excluded_texts]
            )
            prompts = _collect(config, tokenizer, engine, out.with_suffix(".prompts.jsonl"), progress)
            waiting = [prompt for prompt in without(prompts, excluded) if prompt.identity not in asked]
            for start in range(0, len(waiting), 4 * config.batch):
                with out.open("a") as file:
                    for row in _answers(config, engine, waiting[start : start + 4 * config.batch]):
                        key = identity(row.response_ids)
                        if key in answers:
                            continue
                        answers.add(key)
                        done.append(row)
                        tokens += len(row.response_ids)
                        file.write(row.model_dump_json() + "\n")
                progress.update(bar, completed=min(tokens, config.tokens))
                if tokens >= config.tokens:
                    break
    summary: dict[str, tuple[int, int]] = {}
    for row in done:
        rows, count = summary.get(row.source, (0, 0))
        summary[row.source] = (rows + 1, count + len(row.response_ids))
    return summary


def _engine(config: GenerationConfig, target: Path) -> "LLM":
    fast: dict[str, Any] = {"dtype": "bfloat16", "kv_cache_memory_bytes": 2**31} if multiplies_bfloat16() else {}
    return offline_engine(target, max_num_seqs=config.batch, max_model_len=2048, seed=config.seed, **fast)


def _collect(config: GenerationConfig, tokenizer: Any, engine: "LLM", own: Path, progress: Progress) -> list[Prompt]:
    """All prompts, in an order that is the seed's alone; those the target writes are kept in ``own``."""
    prompts = [prompt for path in config.prompt_files for prompt in read_prompts(path, tokenizer)]
    if "stdlib" in config.sources:
        prompts += standard_library(tokenizer, config.seed)
    if "self" in config.sources:
        prompts += _own_prompts(config, tokenizer, engine, own, progress)
    random.Random(config.seed).shuffle(prompts)
    return prompts


def _own_prompts(config: GenerationConfig, tokenizer: Any, engine: "LLM", own: Path, progress: Progress) -> list[Prompt]:
    from vllm import SamplingParams

    texts = [json.loads(line)["prompt"] for line in own.open()] if own.exists() else []
    known = set(texts)
    start = user_turn_start(tokenizer)
    bar = progress.add_task("prompts the target writes", total=config.own_prompts, completed=len(texts))
    attempts = 0
    while len(texts) < config.own_prompts and attempts < 4 * config.own_prompts:
        attempts += 4 * config.batch
        sampling = SamplingParams(temperature=1.0, top_p=0.95, max_tokens=192)
        for output in engine.generate([{"prompt_token_ids": list(start)}] * (4 * config.batch), sampling, use_tqdm=False):
            text = output.outputs[0].text.strip()
            if output.outputs[0].finish_reason == "stop" and len(text) >= 12 and text not in known:
                known.add(text)
                texts.append(text)
        own.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in texts))
        progress.update(bar, completed=min(len(texts), config.own_prompts))
    return [Prompt(ids=encode_chat(tokenizer, [{"role": "user", "content": text}]), source="self") for text in texts[: config.own_prompts]]


def _answers(config: GenerationConfig, engine: "LLM", prompts: Sequence[Prompt]) -> list[Generation]:
    from vllm import SamplingParams

    temperatures = [config.temperatures[int(prompt.identity, 16) % len(config.temperatures)] for prompt in prompts]
    sampling = [SamplingParams(temperature=temperature, max_tokens=config.max_tokens) for temperature in temperatures]
    outputs = engine.generate([{"prompt_token_ids": list(prompt.ids)} for prompt in prompts], sampling, use_tqdm=False)
    return [
        Generation(
            prompt_ids=prompt.ids,
            response_ids=tuple(output.outputs[0].token_ids),
            finish="stop" if output.outputs[0].finish_reason == "stop" else "length",
            source=prompt.source,
            temperature=temperature,
        )
        for prompt, temperature, output in zip(prompts, temperatures, outputs, strict=True)
    ]
