"""GPU cards on a machine without one: everything up to the engine's start is checked against Ray and vLLM themselves."""

import pytest

from app.catalog import DeployRequest, load_cards
from app.preflight import unknown_argument
from deployments.builder import llm_config

GPU_CARDS = [card for card in load_cards().values() if card.hardware == "gpu"]


@pytest.mark.parametrize("card", GPU_CARDS, ids=lambda card: card.name)
@pytest.mark.parametrize("shards", [1, 4])
def test_a_card_becomes_a_configuration_ray_and_vllm_take(card, shards):
    head = None if "p_eagle" in card.heads else "/heads/mine"
    spec = DeployRequest(model=card.name, head=head, tensor_parallel_size=shards).to_spec()
    engine = llm_config(spec).get_engine_config()
    assert engine.placement_bundles == [{"GPU": 1.0, "CPU": 1.0}] * shards
    assert engine.engine_kwargs["tensor_parallel_size"] == shards
    assert engine.engine_kwargs["speculative_config"]["draft_tensor_parallel_size"] == shards
    assert engine.engine_kwargs["speculative_config"]["parallel_drafting"] is True
    assert unknown_argument(spec) is None
