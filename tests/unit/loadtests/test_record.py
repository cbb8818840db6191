"""A stream as its client sees it, however its bytes are cut."""

import json

import pytest

from loadtests.record import RequestRecord, Stream
from loadtests.report import fault_table, other_texts


def event(**data):
    return f"data: {json.dumps(data)}\n\n".encode()


EVENTS = (
    event(choices=[{"delta": {"role": "assistant", "content": ""}}])
    + event(choices=[{"delta": {"content": "Hello"}}])
    + event(choices=[{"delta": {"content": ", wörld"}}])
    + event(choices=[], usage={"prompt_tokens": 3, "completion_tokens": 5})
)


def stream(chunks, times):
    clock = iter(times)
    read = Stream(lambda: next(clock), 0.0)
    read.read(chunks)
    return read


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_text_and_usage_do_not_depend_on_how_bytes_are_cut(size):
    data = EVENTS + b"data: [DONE]\n\n"
    read = stream([data[at : at + size] for at in range(0, len(data), size)], range(1, 10_000))
    assert ("".join(read.texts), read.chunks, read.ended) == ("Hello, wörld", 2, True)
    assert read.usage["completion_tokens"] == 5


def test_the_first_token_is_the_first_text_and_a_stall_the_longest_silence():
    role, hello, world, usage = (part + b"\n\n" for part in EVENTS.split(b"\n\n")[:4])
    read = stream([role, hello, world, usage], [1.0, 1.5, 4.0, 4.1])
    assert (read.ttft_s, read.longest_stall_s, read.ended) == (1.5, 2.5, False)


def test_an_error_in_a_stream_is_kept():
    assert stream([event(error={"message": "gone"})], [1.0]).error == "gone"


def record(outcome="answered", text="a", **further):
    return RequestRecord(scenario="s", start=0, outcome=outcome, prompt="p", text=text, **further)


def test_time_per_token_is_of_tokens_not_of_chunks():
    assert record(ttft_s=1.0, latency_s=3.0, chunks=2, completion_tokens=11).tpot_s == pytest.approx(0.2)


def test_an_answer_that_differs_from_the_others_shows():
    assert other_texts([record(), record(), record(text="b"), record("cut", text="c")]) == 1
    table = fault_table({"kill": [record(longest_stall_s=2, sent_again=2), record("cut"), record("refused")]}, {"kill": 1})
    assert [next(iter(column.cells)) for column in table.columns] == ["kill", "3", "1", "0", "1", "2", "1", "1", "2.0"]
