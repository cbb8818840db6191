"""A head trained for a minute on a small target's own answers drafts better than a random one, in the vLLM that serves."""

import json

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from drafter.engine import in_engine_process
from drafter.evaluate import draw, evaluate_head, write_csv
from drafter.export import export_head
from drafter.head import HeadConfig
from drafter.recipe import TrainingConfig
from drafter.train import train
from drafter.verify import head_problems

pytestmark = pytest.mark.alone

VOCABULARY, ANSWER = 256, 40


def language(generator, rows, length):
    """A token is followed by its successor in a fixed permutation, or now and then by the successor's successor."""
    successor = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(0))
    text = torch.randint(0, VOCABULARY, (rows, 1), generator=generator)
    for _ in range(length - 1):
        following = successor[text[:, -1]]
        skip = torch.rand(rows, generator=generator) < 0.1
        text = torch.cat([text, torch.where(skip, successor[following], following)[:, None]], dim=1)
    return text


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A small model that has learned the language."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=128, intermediate_size=256, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=2048, tie_word_embeddings=True, bos_token_id=0, eos_token_id=None, pad_token_id=0,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    generator = torch.Generator().manual_seed(1)
    for _ in range(150):
        text = language(generator, 32, 32)
        model(text, labels=text).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    folder = tmp_path_factory.mktemp("small-target")
    model.eval().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data(target, tmp_path_factory):
    model = LlamaForCausalLM.from_pretrained(target)
    prompts = language(torch.Generator().manual_seed(2), 120, 8)
    answers = model.generate(prompts, max_new_tokens=ANSWER, do_sample=False)[:, 8:]
    path = tmp_path_factory.mktemp("small-data") / "answers.jsonl"
    rows = [{"prompt_ids": p, "response_ids": a, "finish": "length"} for p, a in zip(prompts.tolist(), answers.tolist(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make(target, data, folder, method, start, steps):
    config = TrainingConfig(
        head=HeadConfig(method=method, layers=1, draft_vocab_size=192, mask_token_id=0, depth=4, layer_ids=(1, 2, 3), start=start),
        optimizer="muon", steps=steps, learning_rate=2e-3, precision="fp32",
    )  # fmt: skip
    train(config, [data], target, folder / "run", folder / "features")
    head = export_head(folder / "run", target, folder / f"{method}-{steps}-steps")
    assert head_problems(head, target, parallel=method == "p_eagle") == []
    return head


def measure(target, head):
    prompts = {"language": [tuple(row) for row in language(torch.Generator().manual_seed(3), 32, 8).tolist()]}
    (measured,) = in_engine_process(evaluate_head, target, head, 3, prompts, 40, skip_tokenizer_init=True)
    return measured


def test_a_trained_head_beats_a_random_one(target, data, tmp_path):
    trained = measure(target, make(target, data, tmp_path / "trained", "p_eagle", "target", 120))
    random = measure(target, make(target, data, tmp_path / "random", "p_eagle", "random", 1))
    assert random.acceptance.length < 1.3
    assert trained.acceptance.length > 2.0

    write_csv(tmp_path / "table.csv", [trained, random])
    lines = (tmp_path / "table.csv").read_text().splitlines()
    assert lines[0].startswith("head,k,task,length")
    assert lines[1].startswith("p_eagle-120-steps,3,language,")
    draw(tmp_path / "table.png", [trained, random])
    assert (tmp_path / "table.png").read_bytes().startswith(b"\x89PNG")
