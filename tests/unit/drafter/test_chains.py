"""Partitions of a long sequence: nothing is lost, no chain is cut, and the gradients are those of the whole."""

import itertools

import pytest
import torch
from speculators.losses import resolve_loss_config

from drafter import head as heads
from drafter.chains import partitions, sample_chains
from drafter.head import HeadConfig, build_head
from drafter.loss import PEagleLoss

DEPTHS = 6


@pytest.fixture
def inputs():
    generator = torch.Generator().manual_seed(3)
    hidden = torch.randn(1, 90, 192, generator=generator)
    mask = torch.ones(1, 90, dtype=torch.long)
    mask[0, :17] = 0
    return {
        "input_ids": torch.randint(3, 320, (1, 90), generator=generator),
        "hidden_states": hidden,
        "verifier_last_hidden_states": hidden[..., 128:].contiguous(),
        "loss_mask": mask,
        "document_ids": torch.zeros(1, 90, dtype=torch.long),
    }


def build(tiny_target):
    torch.manual_seed(7)
    config = HeadConfig(layers=2, draft_vocab_size=128, mask_token_id=0, depth=DEPTHS, layer_ids=(1, 2, 3))
    return build_head(config, tiny_target, dict.fromkeys(range(3, 200), 1))


def gradients(head, inputs, width):
    loss_of = PEagleLoss(head, DEPTHS, 0.8, width)
    head.zero_grad()
    torch.manual_seed(11)
    parts = loss_of.parts(inputs)
    rows = int(inputs["loss_mask"].sum()) + sum(len(part.chains.anchor) for part in parts)
    total = 0.0
    for part in parts:
        found = loss_of(inputs, part, rows)
        found.loss.backward()
        total += found.loss.item()
    return len(parts), total, {name: one.grad.clone() for name, one in head.named_parameters() if one.grad is not None}


@pytest.mark.parametrize("width", [16, 31])
def test_partitioned_gradients_are_those_of_the_whole(tiny_target, inputs, width):
    head = build(tiny_target)
    whole_parts, whole_loss, whole = gradients(head, inputs, 90)
    cut_parts, cut_loss, cut = gradients(head, inputs, width)
    assert (whole_parts, cut_parts) == (1, -(-90 // width))
    assert cut_loss == pytest.approx(whole_loss, rel=1e-5)
    assert cut.keys() == whole.keys()
    for name, gradient in whole.items():
        torch.testing.assert_close(cut[name], gradient, rtol=1e-5, atol=1e-5 * gradient.abs().max().item(), msg=name)


def test_the_loss_is_speculators_own(tiny_target, inputs, monkeypatch):
    head = build(tiny_target)
    _, loss, ours = gradients(head, inputs, 90)
    monkeypatch.setitem(heads._ATTENTION, "p_eagle", "eager")
    theirs = build(tiny_target)
    torch.manual_seed(11)
    _, reference, _ = theirs(
        **inputs, loss_config=resolve_loss_config("kl_div", "eager"), num_depths=DEPTHS, down_sample_ratio=0.8, down_sample_ratio_min=0.0
    )
    reference.backward()
    assert loss == pytest.approx(reference.item(), rel=1e-5)
    for name, parameter in theirs.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(ours[name], parameter.grad, rtol=1e-3, atol=1e-5 * parameter.grad.abs().max().item(), msg=name)


def test_every_position_is_in_one_partition_and_no_chain_is_cut(inputs):
    torch.manual_seed(5)
    chains = sample_chains(inputs["loss_mask"], DEPTHS, 0.8)
    parts = partitions(90, chains, 20)
    assert [(part.first, part.end) for part in parts] == [(0, 20), (20, 40), (40, 60), (60, 80), (80, 90)]
    assert sum(len(part.chains.anchor) for part in parts) == len(chains.anchor)
    homes = {}
    for index, part in enumerate(parts):
        for anchor, depth in zip(part.chains.anchor.tolist(), part.chains.depth.tolist(), strict=True):
            assert homes.setdefault(anchor, index) == index
            assert anchor < part.end
            if depth == 1:
                assert part.first <= anchor + 1 < part.end


def test_deeper_positions_are_fewer_and_nested(inputs):
    torch.manual_seed(5)
    chains = sample_chains(inputs["loss_mask"], DEPTHS, 0.8)
    by_depth = [set(chains.anchor[chains.depth == depth].tolist()) for depth in range(1, DEPTHS)]
    assert all(len(deeper) < len(shallower) for shallower, deeper in itertools.pairwise(by_depth))
    assert all(deeper <= shallower for shallower, deeper in itertools.pairwise(by_depth))
