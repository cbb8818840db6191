from app.preflight import lacking, looks_local, preflight
from deployments.spec import EndpointSpec, Replicas


def gpu_spec(**changes):
    return EndpointSpec(**{"name": "e", "model": "openai/gpt-oss-120b", "tensor_parallel_size": 4, **changes})


def test_a_cluster_without_gpus_is_told_what_lacks():
    assert lacking(gpu_spec(), {"CPU": 64}) == "the endpoint needs 4 GPU for 1 replica(s), the cluster has 0"


def test_every_replica_kept_counts():
    assert "needs 8 GPU for 2 replica(s)" in lacking(gpu_spec(replicas=Replicas(minimum=2, maximum=2)), {"CPU": 64, "GPU": 4})
    assert lacking(gpu_spec(), {"CPU": 64, "GPU": 4}) is None


def test_an_accelerator_the_cluster_lacks_is_named():
    assert "H100" in lacking(gpu_spec(accelerator="H100"), {"CPU": 64, "GPU": 8, "accelerator_type:A10G": 1})


def test_an_engine_argument_vllm_lacks_names_the_nearest():
    reason = preflight(gpu_spec(engine={"max_num_batched_token": 4096}), {"CPU": 64, "GPU": 8})
    assert reason == "engine: vLLM has no argument 'max_num_batched_token', did you mean 'max_num_batched_tokens'?"


def test_a_folder_that_is_not_there_is_named(tmp_path):
    assert "not a folder with a config.json" in preflight(gpu_spec(model=str(tmp_path / "none")), {"CPU": 64, "GPU": 8})


def test_hub_ids_are_not_folders():
    assert not looks_local("openai/gpt-oss-120b")
    assert looks_local("/models/x")
    assert looks_local("./x")
