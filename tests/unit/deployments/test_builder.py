import pytest
from pydantic import ValidationError
from ray import serve

from deployments.builder import bundles, deployment_options, engine_arguments
from deployments.spec import EndpointSpec, Replicas
from deployments.speculation import PEagle
from deployments.version import versioned


def spec(**changes):
    return EndpointSpec(**{"name": "e", "model": "openai/gpt-oss-120b", "tensor_parallel_size": 2, **changes})


def test_engine_arguments_carry_the_speculative_config_and_the_shards():
    arguments = engine_arguments(spec(speculation=PEagle(head="h", num_speculative_tokens=5), max_num_seqs=32, engine={"kv_cache_dtype": "fp8"}))
    assert arguments["speculative_config"] == {
        "model": "h",
        "method": "eagle3",
        "num_speculative_tokens": 5,
        "draft_tensor_parallel_size": 2,
        "parallel_drafting": True,
    }
    assert arguments["tensor_parallel_size"] == 2
    assert arguments["max_num_seqs"] == 32
    assert arguments["kv_cache_dtype"] == "fp8"
    assert "enforce_eager" not in arguments


def test_a_cpu_endpoint_runs_eagerly_in_float32_without_speculation_unless_asked():
    arguments = engine_arguments(spec(hardware="cpu", tensor_parallel_size=1))
    assert arguments["dtype"] == "float32"
    assert arguments["enforce_eager"] is True
    assert "speculative_config" not in arguments


def test_a_quantized_target_runs_in_bfloat16_on_a_cpu(tmp_path):
    (tmp_path / "config.json").write_text('{"quantization_config": {"quant_method": "compressed-tensors"}}')
    assert engine_arguments(spec(hardware="cpu", tensor_parallel_size=1, model=str(tmp_path)))["dtype"] == "bfloat16"


def test_a_deployments_version_changes_with_what_its_replicas_are_and_not_with_how_many():
    deployment = serve.deployment(type("Worker", (), {}))  # fails here when Ray changes how a version is set
    two, four = (versioned(deployment, spec(replicas=Replicas(minimum=count, maximum=count))) for count in (2, 4))
    assert two.version == four.version
    assert two.version != versioned(deployment, spec(max_num_seqs=3)).version


def test_backpressure_and_autoscaling_are_always_set():
    options = deployment_options(spec(max_num_seqs=64, replicas=Replicas(minimum=1, maximum=4)))
    assert 64 <= options["max_ongoing_requests"] <= 96
    assert options["autoscaling_config"]["target_ongoing_requests"] == 64
    assert options["autoscaling_config"]["max_replicas"] == 4
    assert options["max_queued_requests"] < 1000


def test_a_replica_gets_a_bundle_a_gpu():
    assert bundles(spec(tensor_parallel_size=4)) == [{"GPU": 1.0, "CPU": 1.0}] * 4
    assert bundles(spec(hardware="cpu", tensor_parallel_size=1)) == [{"CPU": 1.0}]


def test_fewer_replicas_at_most_than_at_least_are_refused():
    with pytest.raises(ValidationError, match=r"below replicas\.minimum"):
        Replicas(minimum=3, maximum=2)


@pytest.mark.parametrize("name", ["", "-a", "a_b", "a" * 64, "a/b"])
def test_a_name_sagemaker_would_refuse_is_refused(name):
    with pytest.raises(ValidationError, match="name"):
        spec(name=name)
