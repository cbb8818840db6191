"""Which tokens of a stream the head drafted."""

import json

from transformers import AutoTokenizer

from deployments.depths import DraftDepths, depths
from drafter.target import prepare_target


def test_an_event_holds_a_draft_and_one_token_of_the_target():
    assert depths(1, 4) == [0]
    assert depths(3, 4) == [1, 2, 0]
    assert depths(5, 4) == [1, 2, 3, 4, 0]


def test_steps_sent_together_are_not_guessed_apart():
    assert depths(6, 4) == [None] * 6
    assert depths(2, 0) == [None] * 2


def test_the_texts_are_the_answer_also_where_a_character_takes_several_tokens():
    tokenizer = AutoTokenizer.from_pretrained(prepare_target())
    text = "Caf\u00e9 \U0001f98a, fox."
    ids = tokenizer.encode(text)
    shown, found = DraftDepths(tokenizer.backend_tokenizer, 2), []
    for start in range(0, len(ids), 3):
        event = shown.add('data: {"choices":[{"index":0}]}\n\n', ids[start : start + 3])
        found += json.loads(event.removeprefix("data: "))["choices"][0]["draft_depths"]
    assert "".join(one["text"] for one in found) == text
    assert [one["depth"] for one in found][:3] == [1, 2, 0]


def test_an_event_without_tokens_is_left_alone():
    assert DraftDepths(None, 2).add("data: [DONE]\n\n", ()) == "data: [DONE]\n\n"
