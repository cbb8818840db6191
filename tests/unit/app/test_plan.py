"""What a model is said to need agrees with what vLLM reports, and with what its GPUs hold."""

import json

import pytest

from app.catalog import CatalogError, Shape, get_card
from app.plan import GIB, GPUS, USABLE, kv_bytes, plan, shape_of
from drafter.engine import CPU_ARGUMENTS
from drafter.target import prepare_target

# "GPU KV cache size" of vLLM 0.29's log for SmolLM2-135M-Instruct in float32 with 1 GiB of cache, by layers of the head.
REPORTED = {0: 23_296, 1: 22_528, 2: 21_760}


@pytest.mark.parametrize(("head_layers", "tokens"), REPORTED.items())
def test_the_kv_cache_is_what_vllm_reports(head_layers, tokens):
    shape = shape_of(json.loads((prepare_target() / "config.json").read_text()))
    predicted = CPU_ARGUMENTS["kv_cache_memory_bytes"] / kv_bytes(shape, 4, 1, head_layers)
    assert predicted == pytest.approx(tokens, rel=0.01)


def test_windows_are_not_held_whole():
    shape = Shape(layers=4, attention_heads=8, kv_heads=2, head_dim=64, hidden_size=512, vocabulary=1000, sliding_layers=2, window=128)
    layer = 2 * 2 * 64 * 2
    assert kv_bytes(shape, 2, 1024) == layer * (2 * 1024 + 2 * 128)


@pytest.mark.parametrize("model", ["gpt-oss-20b", "gpt-oss-120b", "qwen3-coder-30b-a3b-instruct"])
def test_a_card_fits_the_gpus_it_asks_for(model):
    card = get_card(model)
    gpu = "H100" if card.gpu_memory_gib == 80 else "L4"
    wanted = plan(card, gpu, context=8192, concurrency=8)
    assert wanted.gpus == card.minimum_gpus
    assert wanted.per_gpu_gib <= USABLE * GPUS[gpu]


def test_more_requests_take_more_gpus_until_none_would_do():
    card = get_card("gpt-oss-120b")
    assert plan(card, "H100", 131_072, 64).gpus > plan(card, "H100", 8192, 8).gpus
    with pytest.raises(CatalogError, match="fit on no number of L4"):
        plan(card, "L4", 131_072, 512)
    with pytest.raises(CatalogError, match="--gpu H1000: not known"):
        plan(card, "H1000", None, None)
    with pytest.raises(CatalogError, match="its sizes are not in the catalog"):
        plan(get_card("gemma-4-31b-it"), "H100", None, None)


def test_the_cpu_default_is_planned_from_its_own_files():
    wanted = plan(get_card("smollm2-135m-instruct"), "L4", 8192, 16)
    assert wanted.head_gib * GIB == pytest.approx(26_619_352, rel=0.5)  # bfloat16, as shipped
    assert wanted.gpus == 1
