"""The shipped head drafts for the quantized target as it does for the original."""

from pathlib import Path

import pytest

import drafter
from drafter.engine import in_engine_process
from drafter.evaluate import evaluate_head
from drafter.quantize import quantize_target
from drafter.suites import evaluation_ids
from drafter.target import prepare_target
from drafter.verify import head_problems

pytestmark = pytest.mark.alone

HEAD = Path(drafter.__file__).parent / "heads" / "smollm2-135m-instruct-p-eagle"


def length(target):
    prompts = evaluation_ids(prepare_target(), 16, tasks=["chat"])
    (measured,) = in_engine_process(evaluate_head, target, HEAD, 4, prompts, 64)
    return measured.acceptance.length


@pytest.fixture(scope="module")
def original():
    return length(prepare_target())


@pytest.mark.parametrize("scheme", ["int8", "int4"])
def test_acceptance_survives_quantization(scheme, original, tmp_path):
    quantized = quantize_target(prepare_target(), tmp_path / scheme, scheme)
    assert head_problems(HEAD, quantized, parallel=True) == []
    assert length(quantized) == pytest.approx(original, rel=0.15)
