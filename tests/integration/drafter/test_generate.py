"""`peagle drafter generate`: the target's own answers, each prompt once, the evaluation's prompts never, resumable."""

import json
import os
import subprocess
import sys

import pytest
from transformers import AutoTokenizer

from drafter.data import read_generations
from drafter.suites import evaluation_prompts
from drafter.target import prepare_target

pytestmark = pytest.mark.alone


def generate(out, *options):
    done = subprocess.run(
        [sys.executable, "-m", "drafter.cli", "generate", str(out), "--max-tokens", "24", *options],
        capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def prompts(tmp_path_factory):
    path = tmp_path_factory.mktemp("prompts") / "mine.jsonl"
    asked = ["What is rain?", "Name a colour.", "What is rain?", evaluation_prompts()["code"][0], "Say hello.", "Count to five."]
    path.write_text("".join(json.dumps({"prompt": text}) + "\n" for text in asked))
    return path


def test_answers_are_the_targets_and_a_second_run_asks_only_what_is_missing(prompts, tmp_path):
    out = tmp_path / "answers.jsonl"
    code, output = generate(out, "--prompts", str(prompts), "--source", "self", "--own-prompts", "2", "--temperature", "0")
    assert code == 0, output
    tokenizer = AutoTokenizer.from_pretrained(prepare_target())
    rows = list(read_generations(out, len(tokenizer)))
    asked = [tokenizer.decode(row.prompt_ids).split("<|im_start|>user\n")[1].split("<|im_end|>")[0] for row in rows if row.source == "mine"]
    assert sorted(asked) == ["Count to five.", "Name a colour.", "Say hello.", "What is rain?"]
    assert sum(row.source == "self" for row in rows) == 2
    assert all(1 <= len(row.response_ids) <= 24 for row in rows)
    assert "mine" in output

    kept = rows[:3]
    out.write_text("".join(row.model_dump_json() + "\n" for row in kept))  # as if it had been killed after three rows
    code, output = generate(out, "--prompts", str(prompts), "--source", "self", "--own-prompts", "2", "--temperature", "0")
    assert code == 0, output
    again = list(read_generations(out, len(tokenizer)))
    assert [row.token_ids for row in again[:3]] == [row.token_ids for row in kept]
    assert {row.prompt_ids for row in again} == {row.prompt_ids for row in rows}


def test_a_bad_prompt_file_is_refused_by_its_row(tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"prompt": "Hi"}\n{"text": "Hi"}\n')
    code, output = generate(tmp_path / "out.jsonl", "--prompts", str(bad))
    assert code == 1
    assert "bad.jsonl row 2" in output
    assert "Traceback" not in output
