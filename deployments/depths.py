"""Which tokens of a stream the head drafted, and how deep, for clients that ask to see it (``draft_depths: true``).

vLLM sends what one engine step wrote in one event: the draft tokens the target accepted, then one of the target's own.
"""

import json
from collections.abc import Sequence
from typing import Any

from tokenizers.decoders import DecodeStream

FIELD = "draft_depths"


def depths(tokens: int, k: int) -> list[int | None]:
    """The depth of each of an event's tokens: 1 for the first of a draft, 0 for the target's own, None where it cannot be told.

    Args:
        tokens: tokens of the event.
        k: draft tokens a step.
    """
    if tokens > k + 1:  # more than one step writes: they were sent together
        return [None] * tokens
    return [*range(1, tokens), 0][:tokens]


class DraftDepths:
    """Adds to each event of one stream the text and the depth of its tokens."""

    def __init__(self, tokenizer: Any, k: int) -> None:
        """``tokenizer``: the target's, of the ``tokenizers`` library; ``k``: draft tokens a step."""
        self._tokenizer, self._k = tokenizer, k
        self._stream = DecodeStream(skip_special_tokens=True)

    def add(self, event: str, tokens: Sequence[int]) -> str:
        """The event, with ``choices[0].draft_depths``: a list of ``{"text", "depth"}``.

        The text of a character that several tokens make is with the last of them.
        """
        if not tokens:
            return event
        data = json.loads(event.removeprefix("data: "))
        texts = [self._stream.step(self._tokenizer, token) or "" for token in tokens]
        found = zip(texts, depths(len(tokens), self._k), strict=True)
        data["choices"][0][FIELD] = [{"text": text, "depth": depth} for text, depth in found]
        return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
