"""What a draft costs beside the pass that verifies it."""

import pytest

from deployments.draft_cost import draft_cost
from deployments.spec import EndpointSpec
from deployments.speculation import Eagle3, NoSpeculation, PEagle


@pytest.fixture
def spec(tmp_path):
    for name, size in (("target", 1000), ("head", 100)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").write_bytes(b"0" * size)
    head = str(tmp_path / "head")
    return lambda kind: EndpointSpec(
        name="e", model=str(tmp_path / "target"), speculation=kind(head=head, num_speculative_tokens=4) if kind is not NoSpeculation else kind()
    )


def test_a_parallel_head_is_read_once_a_pass_and_a_sequential_one_for_each_token(spec):
    assert [draft_cost(spec(kind)) for kind in (PEagle, Eagle3, NoSpeculation)] == [0.1, 0.4, 0.0]


def test_weights_that_are_not_here_cost_nothing_known():
    assert draft_cost(EndpointSpec(name="e", model="hub/target", speculation=PEagle(head="hub/head"))) == 0.0
