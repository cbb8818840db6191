"""What a replica has taken on: the tokens it has still to prefill and to decode."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

CHARACTERS_PER_TOKEN = 4.0  # of English text, near enough to weigh one request against another
EXPECTED_TOKENS = 256.0  # an answer's length before any was seen


class Demand(BaseModel):
    """What one request asks of an engine, as far as it can be told before it runs."""

    model_config = ConfigDict(frozen=True)

    prompt: float = Field(description="Tokens to prefill, estimated from the text.")
    answer: float | None = Field(description="Tokens it may write at most; None: it does not say.")


def prompt_text(body: Mapping[str, Any]) -> str:
    """A request's prompt as one text, by which length and common beginnings are told."""
    prompt = body.get("messages", body.get("prompt", ""))
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False)


def demand(body: Mapping[str, Any]) -> Demand:
    """What an OpenAI request asks of an engine."""
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or (16 if "prompt" in body else None)
    answer = float(limit) if isinstance(limit, int | float) and limit > 0 else None
    return Demand(prompt=len(prompt_text(body)) / CHARACTERS_PER_TOKEN, answer=answer)


class Work:
    """The requests a replica holds; counts down as their tokens come."""

    def __init__(self) -> None:
        self._prompts: dict[int, float] = {}
        self._answers: dict[int, list[float]] = {}
        self._since: dict[int, float] = {}
        self._number = 0
        self.finished = 0
        self.expected = EXPECTED_TOKENS  # running mean of answers seen

    @contextmanager
    def held(self, asked: Demand) -> Iterator[int]:
        """Count a request while it is answered; the value names it."""
        self._number += 1
        number = self._number
        self._prompts[number], self._since[number] = asked.prompt, time.monotonic()
        self._answers[number] = [min(asked.answer or self.expected, 4 * self.expected), 0.0]
        try:
            yield number
        finally:
            self._prompts.pop(number, None)
            del self._since[number]
            written = self._answers.pop(number)[1]
            self.finished += 1
            if written:
                self.expected += 0.05 * (written - self.expected)

    def wrote(self, number: int, tokens: int) -> None:
        """A request's prompt is prefilled and ``tokens`` more of its answer are written."""
        self._prompts.pop(number, None)
        self._answers[number][1] += tokens

    @property
    def prefill_tokens(self) -> float:
        """Prompt tokens no answer has begun for."""
        return sum(self._prompts.values())

    @property
    def decode_tokens(self) -> float:
        """Tokens the answers are still expected to take."""
        return sum(max(1.0, expected - written) for expected, written in self._answers.values())

    @property
    def oldest(self) -> float | None:
        """When the first of the requests held came, on the monotonic clock."""
        return min(list(self._since.values()), default=None)

    @property
    def newest(self) -> float | None:
        """When the last of them came."""
        return max(list(self._since.values()), default=None)

    @property
    def ongoing(self) -> int:
        """Requests held."""
        return len(self._answers)
