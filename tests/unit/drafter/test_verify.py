import json

import pytest
import torch
from safetensors.torch import save_file

from drafter.verify import head_problems


def make_head(folder, config=(), tensors=()):
    folder.mkdir()
    described = {
        "hidden_size": 64, "vocab_size": 320, "max_position_embeddings": 512, "ptd_token_id": 0,
        "eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 3]},
    } | dict(config)  # fmt: skip
    (folder / "config.json").write_text(json.dumps({key: value for key, value in described.items() if value is not None}))
    weights = {
        "fc.weight": torch.zeros(64, 192),
        "lm_head.weight": torch.zeros(128, 64),
        "d2t": torch.zeros(128),
        "mask_hidden": torch.zeros(1, 1, 192),
    }
    save_file({name: value for name, value in (weights | dict(tensors)).items() if value is not None}, folder / "model.safetensors")
    return folder


def test_a_fitting_head_has_no_problems(tmp_path, tiny_target):
    assert head_problems(make_head(tmp_path / "h"), tiny_target, parallel=True) == []


@pytest.mark.parametrize(
    ("config", "tensors", "says"),
    [
        ({"hidden_size": 128}, {}, "hidden size 128, the target has 64"),
        ({"vocab_size": 1000}, {}, "vocabulary of 1000 tokens, the target has 320"),
        ({"eagle_config": {"eagle_aux_hidden_state_layer_ids": [1, 2, 30]}}, {}, "reads target layer 30, the target has 4"),
        ({"eagle_config": None}, {}, "names no eagle_aux_hidden_state_layer_ids"),
        ({}, {"fc.weight": torch.zeros(64, 128)}, "fc.weight takes 128 values"),
        ({}, {"d2t": torch.zeros(64)}, "d2t maps 64 draft tokens"),
        ({}, {"mask_hidden": None}, "no mask_hidden"),
        ({}, {"mask_hidden": torch.zeros(1, 1, 64)}, "mask_hidden has 64 values, 3 captured layers need 192"),
        ({}, {"embed_tokens.weight": torch.zeros(300, 64)}, "embed_tokens.weight is [300, 64], the target's is [320, 64]"),
        ({"draft_vocab_size": 64}, {}, "draft_vocab_size 64, lm_head.weight has 128 rows"),
        ({"ptd_token_id": None}, {}, "names no mask token"),
        ({"ptd_token_id": 320}, {}, "mask token 320 is outside"),
        ({"max_position_embeddings": 64}, {}, "would cap the target's context of 512"),
    ],
)
def test_each_misfit_is_said_exactly(tmp_path, tiny_target, config, tensors, says):
    (problem,) = head_problems(make_head(tmp_path / "h", config, tensors), tiny_target, parallel=True)
    assert says in problem


def test_an_eagle3_head_needs_no_mask(tmp_path, tiny_target):
    head = make_head(tmp_path / "h", {"ptd_token_id": None}, {"mask_hidden": None})
    assert head_problems(head, tiny_target, parallel=False) == []


def test_missing_and_broken_files_are_named(tmp_path, tiny_target):
    assert "has no config.json and no model.safetensors" in head_problems(tmp_path, tiny_target, parallel=True)[0]
    head = make_head(tmp_path / "h")
    (head / "model.safetensors").write_bytes(b"not a safetensors file")
    assert "is not a safetensors file" in head_problems(head, tiny_target, parallel=True)[0]
