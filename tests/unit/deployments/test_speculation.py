import pytest
from pydantic import ValidationError

from deployments.speculation import Eagle3, NoSpeculation, PEagle, SpeculationError, parse_speculative_config, speculation_adapter


def test_p_eagle_becomes_vllms_configuration():
    assert PEagle(head="amazon/gpt-oss-120b-p-eagle", num_speculative_tokens=7).to_vllm(tensor_parallel_size=4) == {
        "model": "amazon/gpt-oss-120b-p-eagle",
        "method": "eagle3",
        "num_speculative_tokens": 7,
        "draft_tensor_parallel_size": 4,
        "parallel_drafting": True,
    }


def test_eagle3_drafts_sequentially():
    assert "parallel_drafting" not in Eagle3(head="h", num_speculative_tokens=3).to_vllm()


def test_no_speculation_says_nothing_to_vllm():
    assert NoSpeculation().to_vllm() is None


@pytest.mark.parametrize("k", [0, -1, 17])
def test_k_out_of_range_is_refused(k):
    with pytest.raises(ValidationError, match="num_speculative_tokens"):
        PEagle(head="h", num_speculative_tokens=k)


def test_the_kind_chooses_the_class():
    parsed = speculation_adapter.validate_python({"kind": "eagle3", "head": "h", "num_speculative_tokens": 2})
    assert parsed == Eagle3(head="h", num_speculative_tokens=2)


def test_sagemakers_configuration_is_read_and_written_back_the_same():
    config = {"model": "h", "method": "eagle3", "num_speculative_tokens": 5, "parallel_drafting": True, "draft_tensor_parallel_size": 1}
    assert parse_speculative_config(config).to_vllm() == config


def test_a_drafting_spec_gives_the_depth():
    assert parse_speculative_config({"model": "h"}, {"num_branches": 1, "depth": 6}) == PEagle(head="h", num_speculative_tokens=6)
    inside = {"model": "h", "parallel_drafting_spec": {"depth": 6}}
    assert parse_speculative_config(inside) == PEagle(head="h", num_speculative_tokens=6)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model": "h", "num_speculative_tokens": 0, "parallel_drafting": True}, "num_speculative_tokens is 0"),
        ({"model": "h", "num_speculative_tokens": "7"}, "whole number"),
        ({"model": "h", "num_speculative_tokens": True}, "whole number"),
        ({"num_speculative_tokens": 3}, "model is missing"),
        ({"model": "h", "method": "medusa", "num_speculative_tokens": 3}, "use 'eagle3'"),
        ({"model": "h", "num_spec_tokens": 3}, "num_spec_tokens is not known"),
        ({"model": "h", "parallel_drafting_spec": {"num_branches": 4, "depth": 3}}, "candidate trees are not served yet"),
        ({"model": "h", "parallel_drafting_spec": {"num_branches": 1}}, "depth is missing"),
        ({"model": "h", "num_speculative_tokens": 3, "parallel_drafting_spec": {"depth": 5}}, "differ"),
        ({"model": "h", "parallel_drafting": False, "parallel_drafting_spec": {"depth": 5}}, "needs parallel_drafting"),
    ],
)
def test_what_vllm_would_refuse_is_refused_with_the_field(config, says):
    with pytest.raises(SpeculationError, match=says):
        parse_speculative_config(config)
