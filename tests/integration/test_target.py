"""The converted target: the traps of its GGUF file."""

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from drafter.pypi import FetchError, check_sha256
from drafter.target import GGUF, prepare_target


@pytest.fixture(scope="module")
def folder():
    return prepare_target()


def test_digits_are_split(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer.encode("22", add_special_tokens=False)) == 2
    assert tokenizer.decode(tokenizer.encode("I have 2025 cats.\n")) == "I have 2025 cats.\n"


def test_the_chat_template_and_its_end_are_right(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    text = tokenizer.apply_chat_template([{"role": "user", "content": "Hi"}], tokenize=False, add_generation_prompt=True)
    assert text.endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
    assert tokenizer.eos_token == "<|im_end|>"


def test_the_weights_are_plain_and_know_things(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    assert not hasattr(model.config, "quantization_config")
    ids = torch.tensor([tokenizer.encode("The capital of France is")])
    assert tokenizer.decode(model(ids).logits[0, -1].argmax()).strip() == "Paris"


def test_another_file_is_refused(tmp_path):
    (tmp_path / "x.gguf").write_bytes(b"something else")
    with pytest.raises(FetchError, match="sha256"):
        check_sha256(tmp_path / "x.gguf", GGUF.sha256)
