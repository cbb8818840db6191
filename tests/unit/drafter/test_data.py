import json

import pytest

from drafter.data import DataError, Generation, read_generations, split_held_out, token_counts


def row(**changes):
    return {"prompt_ids": [1, 5], "response_ids": [7, 7, 2], "finish": "stop", **changes}


def write(path, *rows):
    path.write_text("".join(json.dumps(entry) + "\n" for entry in rows))
    return path


def test_rows_are_read_and_the_end_token_teaches_nothing(tmp_path):
    (generation,) = read_generations(write(tmp_path / "d.jsonl", row()), vocab_size=10)
    assert generation.token_ids == (1, 5, 7, 7, 2)
    assert generation.loss_mask() == [0, 0, 1, 1, 0]
    assert Generation(**row(finish="length")).loss_mask() == [0, 0, 1, 1, 1]
    assert generation.loss_mask(prompt_too=True) == [1, 1, 1, 1, 0]
    assert generation.where == "d.jsonl row 1"


@pytest.mark.parametrize(
    ("bad", "says"),
    [
        (row(response_ids=[]), "row 2: response_ids"),
        (row(prompt_ids="text"), "row 2: prompt_ids"),
        (row(response_ids=[99]), "row 2: token id 99 is outside the target's vocabulary of 10"),
        (row(response_ids=[-4]), "row 2: token id -4"),
        (row(response_ids=[3] * 40), "row 2: 42 tokens, the limit is 20"),
        (row(finish="maybe"), "row 2: finish"),
    ],
)
def test_a_bad_row_is_named_with_the_reason(tmp_path, bad, says):
    path = write(tmp_path / "d.jsonl", row(), bad)
    with pytest.raises(DataError, match=says):
        list(read_generations(path, vocab_size=10, max_tokens=20))


def test_a_prompt_is_never_on_both_sides():
    generations = [Generation(**row(prompt_ids=[1, index % 50], response_ids=[index, 2])) for index in range(200)]
    training, held_out = split_held_out(generations, percent=20)
    assert len(training) + len(held_out) == 200
    assert held_out
    assert not {g.prompt_ids for g in training} & {g.prompt_ids for g in held_out}


def test_answers_alone_are_counted():
    assert token_counts([Generation(**row())]) == {7: 2, 2: 1}
