import json
from pathlib import Path

import click
import pytest
from pydantic import ValidationError

from app.catalog import CatalogError, DeployRequest, get_card, load_cards
from app.main import build, declared_endpoints
from deployments.speculation import PEagle, SpeculationError, parse_speculative_config


def test_the_catalog_has_the_models_people_come_for():
    assert {"gpt-oss-120b", "gpt-oss-20b", "qwen3-coder-30b-a3b-instruct", "gemma-4-31b-it", "smollm2-135m-instruct"} <= set(load_cards())


@pytest.mark.parametrize("card", load_cards().values(), ids=lambda card: card.name)
def test_every_card_deploys_with_p_eagle_or_says_what_it_needs(card):
    if "p_eagle" in card.heads:
        spec = DeployRequest(model=card.name).to_spec()
        assert isinstance(spec.speculation, PEagle)
        assert spec.tensor_parallel_size >= card.minimum_gpus
        assert card.environment_preset()["SM_VLLM_ENABLE_AUTO_TOOL_CHOICE"] == "true"
        preset = json.loads(card.environment_preset()["SM_VLLM_SPECULATIVE_CONFIG"])
        assert parse_speculative_config(preset).num_speculative_tokens == card.num_speculative_tokens
    else:
        with pytest.raises(CatalogError, match="no public p_eagle head"):
            DeployRequest(model=card.name).to_spec()
        assert DeployRequest(model=card.name, head="/heads/mine").to_spec().speculation.head == "/heads/mine"


def test_the_shipped_heads_are_in_the_repository():
    card = get_card("smollm2-135m-instruct")
    for method in ("p_eagle", "eagle3"):
        folder = Path(card.head(method))
        assert (folder / "config.json").is_file()
        assert (folder / "model.safetensors").stat().st_size < 30e6


def test_an_unknown_model_names_the_known_ones():
    with pytest.raises(CatalogError, match="gpt-oss-20b"):
        get_card("gpt-5")


def test_plain_decoding_takes_no_head():
    with pytest.raises(CatalogError, match="drafts nothing"):
        DeployRequest(model="smollm2-135m-instruct", speculation="none", num_speculative_tokens=3).to_spec()


def test_vllms_own_json_deploys_too():
    config = {"method": "eagle3", "num_speculative_tokens": 6, "parallel_drafting": True}
    for given in (config, json.dumps(config)):  # in YAML, and as text on the command line
        spec = DeployRequest(model="gpt-oss-20b", speculative_config=given).to_spec()
        assert spec.speculation == PEagle(head="amazon/GPT-OSS-20B-P-EAGLE", num_speculative_tokens=6)


def test_a_drafting_spec_is_a_chain_or_nothing():
    spec = DeployRequest(model="gpt-oss-20b", parallel_drafting_spec={"num_branches": 1, "depth": 3}).to_spec()
    assert spec.speculation.num_speculative_tokens == 3
    with pytest.raises(SpeculationError, match="candidate trees are not served yet"):
        DeployRequest(model="gpt-oss-20b", parallel_drafting_spec={"num_branches": 4, "depth": 3}).to_spec()


@pytest.mark.parametrize(
    "beside", [{"head": "/h"}, {"num_speculative_tokens": 3}, {"speculation": "none"}], ids=["head", "num_speculative_tokens", "speculation"]
)
def test_vllms_json_stands_alone(beside):
    with pytest.raises(CatalogError, match="leave out"):
        DeployRequest(model="gpt-oss-20b", speculative_config={"num_speculative_tokens": 6}, **beside).to_spec()


def test_serve_run_arguments_come_as_text():
    (request,) = declared_endpoints({"model": "smollm2-135m-instruct", "speculation": "p_eagle", "num_speculative_tokens": "7"})
    assert request.to_spec().speculation.num_speculative_tokens == 7


def test_a_yaml_names_several_endpoints():
    requests = declared_endpoints({"endpoints": [{"model": "gpt-oss-20b"}, {"model": "gpt-oss-20b", "name": "plain", "speculation": "none"}]})
    assert [request.to_spec().name for request in requests] == ["gpt-oss-20b", "plain"]


def test_arguments_nobody_knows_are_refused():
    with pytest.raises(ValidationError, match="modle"):
        declared_endpoints({"modle": "gpt-oss-20b"})
    with pytest.raises(ValueError, match="model stands beside endpoints"):
        declared_endpoints({"endpoints": [], "model": "gpt-oss-20b"})


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"model": "gpt-oss-20b", "num_speculative_tokens": "many"}, "num_speculative_tokens: Input should be a valid integer"),
        ({"model": "gpt-oss-7b"}, "gpt-oss-7b"),
        ({"endpoints": [], "model": "gpt-oss-20b"}, "model stands beside endpoints"),
    ],
)
def test_serve_run_tells_a_wrong_argument_without_a_traceback(arguments, told):
    with pytest.raises(click.ClickException, match=told) as refused:  # what `serve run` prints, and nothing else
        build(arguments)
    assert refused.value.__suppress_context__
