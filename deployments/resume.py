"""Going on with a stream whose replica died: the prompt and the tokens already sent become a new prompt.

At temperature 0 the text goes on as it would have. With sampling it goes on as another draw from the same distribution: a
``seed`` counts from the new prompt, so the text differs from what the dead replica would have written.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from deployments.answer import Origin, Piece, Progress

Task = Literal["chat", "completions"]

# What another replica can take up: anything else (several answers, log probabilities, tools, a grammar, penalties that
# count what was written) holds state that the tokens alone do not tell.
_CARRIED = frozenset({"temperature", "top_p", "top_k", "min_p", "seed", "stop", "stop_token_ids", "ignore_eos", "include_stop_str_in_output",
                      "skip_special_tokens", "spaces_between_special_tokens", "stream_options", "user"})  # fmt: skip
_READ = frozenset({"model", "stream", "max_tokens", "max_completion_tokens", "n", "return_token_ids", "draft_depths"})
_PROMPT = {
    "chat": frozenset({"messages", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"}),
    "completions": frozenset({"prompt", "add_special_tokens"}),
}
_ADDED = ("token_ids", "prompt_token_ids")


def resumable(task: Task, body: Mapping[str, Any]) -> bool:
    """Whether another replica could go on with this answer from its tokens alone."""
    asked = {key for key, value in body.items() if value not in (None, [], {}, False)}
    one_prompt = task == "chat" or isinstance(body.get("prompt"), str)
    return body.get("stream") is True and body.get("n") in (None, 1) and one_prompt and asked <= _CARRIED | _READ | _PROMPT[task]


def continuation(task: Task, body: Mapping[str, Any], prompt: Sequence[int], tokens: Sequence[int], context: int) -> dict[str, Any]:
    """The completion request that goes on after ``tokens``.

    Args:
        task: what the client asked for.
        body: its request.
        prompt: token ids of its prompt.
        tokens: those of the answer so far.
        context: tokens the target can hold.
    """
    limit = body.get("max_completion_tokens") or body.get("max_tokens") or (16 if task == "completions" else context)  # OpenAI's own defaults
    left = max(1, min(limit, context - len(prompt)) - len(tokens))
    request = {key: body[key] for key in _CARRIED if key in body}
    return {**request, "model": body["model"], "prompt": [*prompt, *tokens], "max_tokens": left, "stream": True, "return_token_ids": True}


def whole_tokens(tokens: Sequence[int], text: str, decode: Callable[[Sequence[int]], str]) -> tuple[int, ...] | None:
    """The longest beginning of ``tokens`` that reads as exactly ``text``, or None.

    vLLM sends a token before its text when a character or a stop string is still incomplete.
    """
    for length in range(len(tokens), -1, -1):
        if decode(tokens[:length]) == text:
            return tuple(tokens[:length])
        if len(decode(tokens[:length])) < len(text):
            break
    return None


def read(event: str, *, hide: bool) -> tuple[Piece, Origin | None]:
    """A server-sent event of vLLM's as a piece, and where it tells it, how the stream began.

    Args:
        event: ``data: {...}`` and an empty line.
        hide: leave the token ids out of the client's text, since the client did not ask for them.
    """
    data = _data(event)
    if data is None:
        return Piece(event), None
    choices = data.get("choices") or []
    prompt = data.get("prompt_token_ids")
    tokens: list[int] = []
    delta, finished = "", False
    for choice in choices:
        tokens += choice.get("token_ids") or []
        prompt = prompt or choice.get("prompt_token_ids")
        delta += choice.get("text") or (choice.get("delta") or {}).get("content") or ""
        finished = finished or choice.get("finish_reason") is not None
    origin = Origin(id=data["id"], created=data["created"], prompt=tuple(prompt)) if prompt and "id" in data else None
    if hide:
        for part in (data, *choices):
            for key in _ADDED:
                part.pop(key, None)
        event = _event(data)
    return Piece(event, tuple(tokens), delta, finished), origin


def as_before(event: str, task: Task, progress: Progress, tokens: int) -> str:
    """An event of the continuation, in the shape and with the id of the stream it continues.

    Args:
        event: of the completion that goes on.
        task: what the client asked for.
        progress: how the stream began.
        tokens: how many tokens of the answer the new prompt holds.
    """
    data = _data(event)
    if data is None or "choices" not in data:
        return event
    data |= {"id": progress.origin.id, "created": progress.origin.created}
    if task == "chat":
        data["object"] = "chat.completion.chunk"
        for choice in data["choices"]:
            choice["delta"] = {"content": choice.pop("text", "")}
    if usage := data.get("usage"):
        usage["prompt_tokens"] = len(progress.origin.prompt)
        usage["completion_tokens"] += tokens
        usage["total_tokens"] = usage["prompt_tokens"] + usage["completion_tokens"]
    return _event(data)


def ending(task: Task, body: Mapping[str, Any], progress: Progress) -> str:
    """The last events of a stream whose answer was complete: the usage, where it was asked for, and the end mark."""
    done = "data: [DONE]\n\n"
    if not (body.get("stream_options") or {}).get("include_usage"):
        return done
    prompt, written = len(progress.origin.prompt), len(progress.tokens)
    return _event({
        "id": progress.origin.id, "object": "chat.completion.chunk" if task == "chat" else "text_completion", "created": progress.origin.created,
        "model": body["model"], "choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written},
    }) + done  # fmt: skip


def _data(event: str) -> dict[str, Any] | None:
    body = event.removeprefix("data: ").strip()
    return json.loads(body) if body.startswith("{") else None


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False, separators=(',', ':'))}\n\n"
