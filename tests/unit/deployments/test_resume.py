"""What another replica needs to go on with a stream, and what the client reads meanwhile."""

import json

import pytest

from deployments.answer import Origin, Progress
from deployments.resume import as_before, continuation, ending, read, resumable, whole_tokens

CHAT = {"model": "e", "messages": [{"role": "user", "content": "hello"}], "stream": True}
PROGRESS = Progress(origin=Origin(id="chatcmpl-1", created=7, prompt=(1, 2, 3)), tokens=(4, 5), text="ab")


def event(**data):
    return f"data: {json.dumps(data)}\n\n"


@pytest.mark.parametrize(
    "further",
    [{"n": 2}, {"logprobs": True}, {"tools": [{}]}, {"response_format": {"type": "json_object"}}, {"presence_penalty": 1}, {"stream": False}],
)
def test_what_tokens_alone_do_not_tell_is_not_resumed(further):
    assert resumable("chat", CHAT | {"temperature": 0.5, "seed": 1, "max_tokens": 5, "stop": ["x"]})
    assert not resumable("chat", CHAT | further)


def test_a_list_of_prompts_is_not_resumed():
    assert resumable("completions", {"prompt": "a", "stream": True})
    assert not resumable("completions", {"prompt": ["a", "b"], "stream": True})


def test_the_continuation_asks_for_what_is_missing():
    request = continuation("chat", CHAT | {"max_tokens": 10, "temperature": 0}, (1, 2, 3), (4, 5), context=100)
    assert (request["prompt"], request["max_tokens"], request["temperature"]) == ([1, 2, 3, 4, 5], 8, 0)
    assert continuation("chat", CHAT, (1, 2, 3), (4, 5), context=100)["max_tokens"] == 95  # all the context holds
    assert continuation("completions", {"model": "e"}, (1,), (), context=100)["max_tokens"] == 16  # OpenAI's default


def test_tokens_whose_text_was_not_sent_are_written_again():
    def decode(tokens):
        return bytes(tokens).decode(errors="replace")

    smile = list("a😀".encode())
    assert whole_tokens(smile, "a😀", decode) == tuple(smile)
    assert whole_tokens(smile[:3], "a", decode) == tuple(smile[:1])  # half a character: its text waits
    assert whole_tokens(smile, "something else", decode) is None


def test_token_ids_are_read_and_not_shown():
    text = event(
        id="x", created=1, prompt_token_ids=[1], choices=[{"index": 0, "delta": {"content": "hi"}, "token_ids": [9, 8], "finish_reason": None}]
    )
    piece, origin = read(text, hide=True)
    assert (piece.tokens, piece.delta, piece.finished) == ((9, 8), "hi", False)
    assert origin == Origin(id="x", created=1, prompt=(1,))
    assert "token_ids" not in piece.text
    assert read(text, hide=False)[0].text == text
    assert read("data: [DONE]\n\n", hide=True)[0].text == "data: [DONE]\n\n"


def test_a_continued_chat_looks_like_the_chat_it_continues():
    went_on = event(id="cmpl-9", object="text_completion", created=8, model="e", choices=[{"index": 0, "text": "cd", "finish_reason": None}])
    data = json.loads(as_before(went_on, "chat", PROGRESS, 2)[6:])
    assert (data["id"], data["created"], data["object"]) == ("chatcmpl-1", 7, "chat.completion.chunk")
    assert data["choices"][0]["delta"] == {"content": "cd"}
    usage = event(id="cmpl-9", created=8, choices=[], usage={"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8})
    assert json.loads(as_before(usage, "chat", PROGRESS, 2)[6:])["usage"] == {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}


def test_a_stream_that_lacked_only_its_end_gets_it():
    assert ending("chat", CHAT, PROGRESS) == "data: [DONE]\n\n"
    usage, done = ending("chat", CHAT | {"stream_options": {"include_usage": True}}, PROGRESS).strip().split("\n\n")
    assert json.loads(usage[6:])["usage"]["total_tokens"] == 5
    assert done == "data: [DONE]"
