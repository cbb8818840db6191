import json
import re

import pytest

from app.sagemaker.environment import ContainerError, read_environment
from deployments.arguments import OPERATOR_ONLY, known_arguments
from deployments.speculation import Eagle3, NoSpeculation, PEagle

HEAD = {"model": "/opt/ml/additional-model-data-sources/draft", "method": "eagle3", "num_speculative_tokens": 5, "parallel_drafting": True}


def read(channels=None, model_data=None, **environment):
    return read_environment({"SM_VLLM_MODEL": "m/m", **environment}, channels or {}, model_data)


@pytest.mark.parametrize(
    ("variable", "text", "argument", "value"),
    [
        ("SM_VLLM_MAX_MODEL_LEN", "4096", "max_model_len", 4096),
        ("SM_VLLM_GPU_MEMORY_UTILIZATION", "0.8", "gpu_memory_utilization", 0.8),
        ("SM_VLLM_ENABLE_PREFIX_CACHING", "true", "enable_prefix_caching", True),
        ("SM_VLLM_ENFORCE_EAGER", "", "enforce_eager", True),
        ("SM_VLLM_ENFORCE_EAGER", "True", "enforce_eager", True),
        ("SM_VLLM_KV_CACHE_DTYPE", "fp8", "kv_cache_dtype", "fp8"),
        ("SM_VLLM_SERVED_MODEL_NAME", '["a", "b"]', "served_model_name", ["a", "b"]),
        ("SM_VLLM_HF_OVERRIDES", '{"rope_theta": 10000}', "hf_overrides", {"rope_theta": 10000}),
        ("SM_VLLM_TENSOR_PARALLEL_SIZE", "4", "tensor_parallel_size", 4),
    ],
)
def test_a_variable_is_the_engine_argument_of_its_name(variable, text, argument, value):
    assert read(**{variable: text}).engine == {argument: value}


def test_false_leaves_an_argument_out():
    assert read(SM_VLLM_ENFORCE_EAGER="false").engine == {}


def test_other_variables_are_not_vllms():
    assert read(HF_TOKEN="x", SM_VLLM_PORT="8080", OMP_NUM_THREADS="4").engine == {}


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (
            {"SM_VLLM_MAX_MODEL_LENGTH": "1"},
            r"^SM_VLLM_MAX_MODEL_LENGTH: vLLM has no engine argument --max-model-length; did you mean SM_VLLM_MAX_MODEL_LEN\?",
        ),
        ({"SM_VLLM_MAX_NUM_SEQS": "many"}, "^SM_VLLM_MAX_NUM_SEQS: 'many' is not a value of vLLM's --max-num-seqs"),
        ({"SM_VLLM_MAX_NUM_SEQS": ""}, "^SM_VLLM_MAX_NUM_SEQS: a value is missing"),
        ({"SM_VLLM_SPECULATIVE_CONFIG": "{"}, "^SM_VLLM_SPECULATIVE_CONFIG: not JSON"),
        ({"SM_VLLM_SPECULATIVE_CONFIG": "[1]"}, "^SM_VLLM_SPECULATIVE_CONFIG: must be a JSON object"),
        ({"SM_VLLM_SPECULATIVE_CONFIG": '{"model": "h", "method": "ngram"}'}, "method 'ngram' is not served here"),
        ({"SM_VLLM_SPECULATIVE_CONFIG": json.dumps(HEAD)}, "names channel 'draft'; AdditionalModelDataSources has none"),
        ({"PARALLEL_DRAFTING_SPEC": '{"num_branches": 1, "depth": 4}'}, "nothing to draft with"),
    ],
)
def test_what_cannot_be_used_is_named_with_what_would_do(environment, message):
    with pytest.raises(ContainerError, match=message):
        read(**environment)


def test_what_runs_code_or_opens_files_is_the_operators(monkeypatch):
    with pytest.raises(ContainerError, match="SM_VLLM_TRUST_REMOTE_CODE: --trust-remote-code is the operator's to set"):
        read(SM_VLLM_TRUST_REMOTE_CODE="true")
    monkeypatch.setenv("PEAGLE_ALLOWED_ARGUMENTS", "trust_remote_code")
    assert read(SM_VLLM_TRUST_REMOTE_CODE="true").engine == {"trust_remote_code": True}
    with pytest.raises(ContainerError, match="SM_VLLM_MIDDLEWARE"):
        read(SM_VLLM_MIDDLEWARE="os.system")


def test_every_argument_that_may_name_a_file_or_code_has_been_thought_about():
    """Fails when a new vLLM brings one: decide whether it is the operator's."""
    harmless = """
        chat_template_content_format cohere_format config_format data_parallel_multi_port_external_lb default_chat_template_kwargs
        disable_access_log_for_endpoints enable_mixed_moe_lora_format enable_mm_processor_stats enable_tokenizer_info_endpoint load_format
        lora_target_modules
        mm_processor_cache_gb mm_processor_cache_type mm_processor_device mm_processor_kwargs override_generation_config
        skip_tokenizer_init tokenizer_mode tokenizer_revision
        tokenizer
    """  # tokenizer is resolved inside the model roots
    words = (
        r"path|file|dir(_|$)|cls|plugin|middleware|trust|ssl|processor|module|class|template|endpoint|host|port(_|$)|key|format|addr|url|tokenizer"
    )
    suspicious = {name for name in known_arguments() if re.search(words, name)}
    assert suspicious - OPERATOR_ONLY - set(harmless.split()) == set()


def test_the_ladder_of_models():
    assert read_environment({"HF_MODEL_ID": "a/b"}, {}, None).model == "a/b"
    assert read_environment({"HF_MODEL_ID": "a/b"}, {}, "/models/x").model == "/models/x"
    assert read_environment({"HF_MODEL_ID": "a/b", "SM_VLLM_MODEL": "c/d"}, {}, "/models/x").model == "c/d"
    assert read_environment({"SM_VLLM_MODEL": "/opt/ml/model"}, {}, "/models/x").model == "/models/x"
    with pytest.raises(ContainerError, match="no model is given"):
        read_environment({}, {}, None)


def test_a_channel_is_the_heads_path():
    container = read({"draft": "/models/head"}, SM_VLLM_SPECULATIVE_CONFIG=json.dumps(HEAD))
    assert container.speculation == PEagle(head="/models/head", num_speculative_tokens=5)
    below = {**HEAD, "model": HEAD["model"] + "/v2", "parallel_drafting": False}
    assert read({"draft": "/models/head"}, SM_VLLM_SPECULATIVE_CONFIG=json.dumps(below)).speculation == Eagle3(
        head="/models/head/v2", num_speculative_tokens=5
    )


@pytest.mark.parametrize("name", ["PARALLEL_DRAFTING_SPEC", "SM_VLLM_PARALLEL_DRAFTING_SPEC"])
def test_a_drafting_spec_of_its_own_sets_the_depth(name):
    config = json.dumps({"model": "h/h", "method": "eagle3", "parallel_drafting": True})
    environment = {"SM_VLLM_SPECULATIVE_CONFIG": config, name: '{"num_branches": 1, "depth": 6}'}
    assert read(**environment).speculation == PEagle(head="h/h", num_speculative_tokens=6)


def test_without_speculation_there_is_none():
    assert read().speculation == NoSpeculation()
