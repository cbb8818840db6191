"""Training data: the target's own answers, one JSON object a line.

Each line holds ``prompt_ids`` and ``response_ids`` (lists of target token ids) and ``finish`` (``stop`` or ``length``).
"""

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError


class Generation(BaseModel):
    """One prompt and the target's answer to it, as token ids."""

    model_config = ConfigDict(frozen=True)

    prompt_ids: tuple[int, ...] = Field(min_length=1, description="The prompt, chat template included.")
    response_ids: tuple[int, ...] = Field(min_length=1, description="The target's answer, end token included.")
    finish: Literal["stop", "length"] = Field(description="Why the answer ended.")
    source: str = Field(default="", description="Where the prompt came from.")
    temperature: float = Field(default=0.0, description="The temperature the answer was sampled at.")
    where: str = Field(default="", exclude=True, description="File and row it was read from.")

    @property
    def token_ids(self) -> tuple[int, ...]:
        return self.prompt_ids + self.response_ids

    def loss_mask(self, prompt_too: bool = False) -> list[int]:
        """1 for every token after which a draft is worth learning: the answer, without an end token."""
        answer = [1] * len(self.response_ids)
        if self.finish == "stop":
            answer[-1] = 0
        return [int(prompt_too)] * len(self.prompt_ids) + answer


class DataError(ValueError):
    """A row of the data cannot be trained on; the message names the row and the reason."""


R = TypeVar("R", bound=BaseModel)


def read_rows(path: Path, kind: type[R]) -> Iterator[tuple[str, R]]:
    """Yield file and row number, and the row as ``kind``, of a ``.jsonl`` or ``.jsonl.gz`` file.

    Raises:
        DataError: a row is not JSON or not a ``kind``; the message names the row and the field.
    """
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{path.name} row {number}"
            try:
                yield where, kind.model_validate_json(line)
            except ValidationError as error:
                first = error.errors()[0]
                field = ".".join(str(part) for part in first["loc"]) or "the line"
                raise DataError(f"{where}: {field}: {first['msg']}") from None


def check_ids(where: str, ids: Sequence[int], vocab_size: int) -> None:
    """Refuse token ids the target lacks.

    Raises:
        DataError: one is outside the vocabulary.
    """
    if wrong := [token for token in ids if not 0 <= token < vocab_size]:
        raise DataError(f"{where}: token id {wrong[0]} is outside the target's vocabulary of {vocab_size}")


def read_generations(path: Path, vocab_size: int, max_tokens: int = 8192) -> Iterator[Generation]:
    """Yield the rows of a ``.jsonl`` or ``.jsonl.gz`` file.

    Raises:
        DataError: a row is not JSON, is empty, is longer than ``max_tokens`` or has a token id the target lacks.
    """
    for where, generation in read_rows(path, Generation):
        ids = generation.token_ids
        if len(ids) > max_tokens:
            raise DataError(f"{where}: {len(ids)} tokens, the limit is {max_tokens}")
        check_ids(where, ids, vocab_size)
        yield generation.model_copy(update={"where": where})


def split_held_out(generations: Iterable[Generation], percent: int = 5) -> tuple[list[Generation], list[Generation]]:
    """Split into (training, held out) by a hash of the prompt, so that no prompt is on both sides."""
    training: list[Generation] = []
    held_out: list[Generation] = []
    for generation in generations:
        digest = hashlib.sha256(json.dumps(generation.prompt_ids).encode()).digest()
        (held_out if digest[0] * 100 < percent * 256 else training).append(generation)
    return training, held_out


def token_counts(generations: Iterable[Generation]) -> dict[int, int]:
    """How often each token id occurs in the answers: the draft vocabulary is the most frequent of them."""
    counts: Counter[int] = Counter()
    for generation in generations:
        counts.update(generation.response_ids)
    return dict(counts)
