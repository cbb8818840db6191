import json

import pytest

from drafter.data import DataError
from drafter.prompts import Prompt, identity, read_prompts, standard_library, user_turn_start, without


class Characters:
    """A tokenizer whose tokens are characters, with SmolLM2's form of a chat."""

    def __len__(self):
        return 128

    def encode(self, text, add_special_tokens=True):
        return [ord(letter) % 128 for letter in text]

    def apply_chat_template(self, messages, tokenize, add_generation_prompt=False):
        text = "".join(f"<{one['role']}>{one['content']}</>" for one in messages)
        return text + "<assistant>" * add_generation_prompt


@pytest.fixture
def tokenizer():
    return Characters()


def write(path, *rows):
    path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
    return path


def test_text_messages_and_ids_are_prompts(tokenizer, tmp_path):
    path = write(
        tmp_path / "p.jsonl", {"prompt": "Hi"}, {"messages": [{"role": "user", "content": "Hi"}]}, {"prompt_ids": [1, 2, 3], "source": "mine"}
    )
    text, messages, ids = read_prompts(path, tokenizer)
    assert text.ids == messages.ids == tuple(ord(letter) for letter in "<user>Hi</><assistant>")
    assert (ids.ids, ids.source) == ((1, 2, 3), "mine")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{", "row 2"),
        ({"question": "x"}, "row 2.*exactly one of prompt, messages and prompt_ids"),
        ({"prompt": ""}, "row 2.*not empty"),
        ({"prompt_ids": [5, 999]}, "row 2: token id 999 is outside the target's vocabulary of 128"),
    ],
)
def test_a_bad_row_is_refused_by_its_number(tokenizer, tmp_path, row, message):
    with pytest.raises(DataError, match=message):
        list(read_prompts(write(tmp_path / "p.jsonl", {"prompt": "Hi"}, row), tokenizer))


def test_each_prompt_is_asked_once_and_the_evaluations_never(tokenizer):
    prompts = [Prompt(ids=ids, source="x") for ids in ((1, 2), (3,), (1, 2), (4, 5))]
    assert [prompt.ids for prompt in without(prompts, frozenset({identity((3,))}))] == [(1, 2), (4, 5)]


def test_the_standard_library_asks_to_complete_functions(tokenizer):
    prompts = standard_library(tokenizer)
    texts = ["".join(map(chr, prompt.ids)) for prompt in prompts]
    assert len(prompts) > 500
    completions = [text for text in texts if "Complete the following Python function" in text]
    assert len(completions) == len(prompts) / 2
    assert any("def shuffle" in text or "def commonprefix" in text or "def copyfile" in text for text in completions)
    assert standard_library(tokenizer) == prompts


def test_the_users_turn_begins_after_the_template(tokenizer):
    assert user_turn_start(tokenizer) == tuple(ord(letter) for letter in "<user>")
