"""Prompts to measure with: known sets, fetched at run time, and files of the user's."""

import json
from pathlib import Path
from typing import Any

from drafter.suites import evaluation_prompts

LONG_CODE = "Write a complete, commented Python module that implements {}, with a class, error handling and a test for each method."
THINGS = ("a priority queue", "a binary search tree", "a bank account", "a matrix", "an undo history", "a text tokenizer", "an LRU cache",
          "a graph with shortest paths", "a calendar", "a chess board", "a spreadsheet", "a rate limiter")  # fmt: skip


def read_prompts(dataset: str | Path, category: str = "") -> list[str]:
    """The prompts of a data set.

    Args:
        dataset: ``code`` (HumanEval), ``chat`` (MT-Bench), ``json``, ``long-code``; or a file, JSONL or Parquet, whose rows have ``prompt``, or
            ``turns`` as those of Spec-Bench and SPEED-Bench, of which the first is asked.
        category: only rows of this ``category``; empty: all.

    Raises:
        ValueError: a row has no prompt, or no row is of the category; the message says which there are.
    """
    if isinstance(dataset, Path):
        return _of_file(dataset, category)
    if category:
        raise ValueError(f"categories: the data set {dataset} has none; they are for files such as SPEED-Bench's")
    return [LONG_CODE.format(thing) for thing in THINGS] if dataset == "long-code" else evaluation_prompts()[dataset]


def _of_file(path: Path, category: str) -> list[str]:
    rows = _rows(path)
    found = []
    for number, row in enumerate(rows, 1):
        turns = row.get("turns")
        prompt = row.get("prompt") or (turns[0] if turns is not None and len(turns) else None)
        if not isinstance(prompt, str):
            raise ValueError(f"{path}, row {number}: neither prompt nor turns")
        if not category or row.get("category") == category:
            found.append(prompt)
    if not found:
        known = ", ".join(sorted({str(row.get("category")) for row in rows}))
        raise ValueError(f"{path} has no rows of category {category!r}; it has {known}")
    return found


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        return list(pyarrow.parquet.read_table(path).to_pylist())
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]
