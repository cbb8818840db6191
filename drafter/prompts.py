"""Prompts to ask the target: the user's own files, Python's standard library, and what the target itself would be asked.

Every prompt becomes token ids through the target's chat template, so that one prompt has one identity: the hash of its ids.
"""

import contextlib
import hashlib
import importlib
import inspect
import io
import json
import random
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from drafter.data import check_ids, read_rows

# Modules that act when imported, or that only hold other programs' parts.
_NOT_IMPORTED = {"antigravity", "this", "idlelib", "turtledemo", "lib2to3", "tkinter", "turtle"}
_ASKED_OF_A_FUNCTION = (
    "Explain what `{name}` does in Python and give an example.",
    "Write a unit test in Python for this function.\n\n```python\n{code}```",
    "What could go wrong when calling this function? Show how to handle it.\n\n```python\n{code}```",
)
_COMPLETION = "Complete the following Python function.\n\n```python\n{code}```"


class Prompt(BaseModel):
    """One prompt, as token ids, chat template included."""

    model_config = ConfigDict(frozen=True)

    ids: tuple[int, ...] = Field(min_length=1, description="Token ids, ready to be answered.")
    source: str = Field(description="Where the prompt came from.")

    @property
    def identity(self) -> str:
        return identity(self.ids)


def identity(ids: Sequence[int]) -> str:
    """A prompt's identity: a hash of its token ids."""
    return hashlib.sha256(json.dumps(list(ids)).encode()).hexdigest()[:24]


class _Row(BaseModel):
    prompt: str | None = None
    messages: list[dict[str, str]] | None = None
    prompt_ids: tuple[int, ...] | None = None
    source: str = ""

    @model_validator(mode="after")
    def _one_way(self) -> "_Row":
        if sum(bool(way) for way in (self.prompt, self.messages, self.prompt_ids)) != 1:
            raise ValueError("give exactly one of prompt, messages and prompt_ids, and not empty")
        return self


def encode_chat(tokenizer: Any, messages: Sequence[dict[str, str]]) -> tuple[int, ...]:
    """Token ids of a conversation that awaits the assistant's turn."""
    text = tokenizer.apply_chat_template(list(messages), tokenize=False, add_generation_prompt=True)
    return tuple(tokenizer.encode(text, add_special_tokens=False))


def read_prompts(path: Path, tokenizer: Any) -> Iterator[Prompt]:
    """Prompts of a ``.jsonl`` or ``.jsonl.gz`` file: ``prompt`` (text), ``messages`` or ``prompt_ids`` on each line.

    Raises:
        DataError: a row is none of these, or has a token id the target lacks; the message names the row.
    """
    for where, row in read_rows(path, _Row):
        ids = row.prompt_ids or encode_chat(tokenizer, row.messages or [{"role": "user", "content": row.prompt or ""}])
        check_ids(where, ids, len(tokenizer))
        yield Prompt(ids=ids, source=row.source or path.name.split(".")[0])


def standard_library(tokenizer: Any, seed: int = 0) -> list[Prompt]:
    """Questions about the documented functions of Python's standard library: one to complete it, one of three others."""
    chosen = random.Random(seed)
    questions = [
        question
        for name, head, body in _documented_functions()
        for question in (_COMPLETION.format(code=head), chosen.choice(_ASKED_OF_A_FUNCTION).format(name=name, code=head + body))
    ]
    return [Prompt(ids=encode_chat(tokenizer, [{"role": "user", "content": question}]), source="stdlib") for question in questions]


def _documented_functions() -> Iterator[tuple[str, str, str]]:
    """Name, signature with docstring, and body of every documented public function, up to 60 lines."""
    for module_name in sorted(sys.stdlib_module_names - _NOT_IMPORTED):
        if module_name.startswith("_"):
            continue
        with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                module = importlib.import_module(module_name)
            except ImportError:  # a module of another system
                continue
        for name, function in inspect.getmembers(module, inspect.isfunction):
            if name.startswith("_") or function.__module__ != module_name or not function.__doc__:
                continue
            try:
                source = inspect.getsource(function)
            except OSError:  # made at run time
                continue
            end = source.find('"""', source.find('"""') + 3) + 3
            if end > 3 and source.count("\n") <= 60:
                yield f"{module_name}.{name}", source[:end] + "\n", source[end:].lstrip("\n")


def user_turn_start(tokenizer: Any) -> tuple[int, ...]:
    """The chat template up to where a user's turn begins: what the target continues with is a prompt of its own making.

    Source of the idea: Magpie (arXiv 2406.08464).
    """
    marker = "\u241e"
    text = tokenizer.apply_chat_template([{"role": "user", "content": marker}], tokenize=False)
    return tuple(tokenizer.encode(text[: text.index(marker)], add_special_tokens=False))


def without(prompts: Iterable[Prompt], excluded: frozenset[str]) -> list[Prompt]:
    """Each prompt once, and none whose identity is in ``excluded``."""
    kept: dict[str, Prompt] = {}
    for prompt in prompts:
        if prompt.identity not in excluded:
            kept.setdefault(prompt.identity, prompt)
    return list(kept.values())
