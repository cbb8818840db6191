"""Endpoints come, go and fail at run time without touching each other."""

import json
import os
import shutil
import time

import psutil
import pytest
import ray
from safetensors.torch import load_file, save_file

from app.catalog import get_card
from app.client import GatewayError
from tests.conftest import P_EAGLE
from tests.stack import processes

MODEL = "smollm2-135m-instruct"


def failure_of(server, **request):
    name = server.client.call("POST", "/v1/endpoints", {"model": MODEL, **request})["spec"]["name"]
    try:
        with pytest.raises(GatewayError) as caught:
            server.client.wait(name, timeout_s=300)
        return str(caught.value)
    finally:
        delete(server, name)


def delete(server, name):
    assert server.client.call("DELETE", f"/v1/endpoints/{name}")["status"] == "Deleting"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if name not in {endpoint["spec"]["name"] for endpoint in server.client.call("GET", "/v1/endpoints")}:
            return
        time.sleep(0.3)
    pytest.fail(f"{name} is not gone after two minutes")


def test_engines_share_all_cores(server):
    workers = processes(psutil.Process(), "VLLM::Worker")
    assert len(workers) >= 3
    assert {frozenset(one.cpu_affinity()) for one in workers} == {frozenset(os.sched_getaffinity(0))}  # vLLM alone binds all to one core


@pytest.fixture
def altered_head(tmp_path):
    """Makes a copy of the shipped P-EAGLE head with something changed."""

    def make(config=(), drop=()):
        folder = tmp_path / "head"
        shutil.copytree(get_card(MODEL).head("p_eagle"), folder)
        described = json.loads((folder / "config.json").read_text()) | dict(config)
        (folder / "config.json").write_text(json.dumps({key: value for key, value in described.items() if value is not None}))
        weights = {name: value for name, value in load_file(folder / "model.safetensors").items() if name not in drop}
        save_file(weights, folder / "model.safetensors")
        return str(folder)

    return make


@pytest.mark.parametrize(
    ("config", "drop", "says"),
    [
        ({}, ["mask_hidden"], "no mask_hidden"),
        ({"ptd_token_id": None}, [], "no mask token"),
        ({"hidden_size": 1024}, [], "hidden size 1024, the target has 576"),
        ({"vocab_size": 32000}, [], "vocabulary of 32000 tokens, the target has 49152"),
    ],
)
def test_a_head_that_does_not_fit_fails_in_seconds_with_the_reason(server, altered_head, config, drop, says):
    started = time.monotonic()
    assert says in failure_of(server, name="misfit", head=altered_head(config, drop))
    assert time.monotonic() - started < 60


def test_a_model_this_cluster_cannot_hold_fails_with_what_lacks(server):
    endpoint = server.client.call("POST", "/v1/endpoints", {"model": "gpt-oss-120b", "name": "big"})
    assert endpoint["status"] == "Creating"
    with pytest.raises(GatewayError, match="needs 1 GPU"):
        server.client.wait("big", timeout_s=60)
    delete(server, "big")


@pytest.mark.parametrize(
    ("request_", "says"),
    [
        ({"model": "gpt-5"}, "not in the catalog"),
        ({"model": MODEL, "num_speculative_tokens": 0}, "num_speculative_tokens"),
        ({"model": MODEL, "num_speculative_tokens": "many"}, "num_speculative_tokens"),
        ({"model": MODEL, "speculation": "medusa"}, "speculation"),
        ({"model": MODEL, "speculative_config": {"num_speculative_tokens": 0, "parallel_drafting": True}}, "num_speculative_tokens is 0"),
        ({"model": MODEL, "speculative_config": "{"}, "not JSON"),
        ({"model": MODEL, "parallel_drafting_spec": {"num_branches": 2, "depth": 4}}, "candidate trees are not served yet"),
        ({"model": MODEL, "name": "not/a/name"}, "name"),
        ({"model": MODEL, "k": 3}, "k: "),
        ({"model": "gemma-4-31b-it"}, "no public p_eagle head"),
        ({"model": MODEL, "name": P_EAGLE}, "exists already"),
        ({"model": MODEL, "head": "/no/such/head"}, "head: /no/such/head is not a folder under .*PEAGLE_MODEL_ROOTS"),
        ({"model": MODEL, "head": "/etc"}, "head: /etc is not a folder under"),
    ],
)
def test_a_request_that_cannot_be_met_is_refused_at_once(server, request_, says):
    with pytest.raises(GatewayError, match=says):
        server.client.call("POST", "/v1/endpoints", request_)


def test_an_engine_that_does_not_start_leaves_nothing_behind(server):
    """A context longer than the target's passes the checks that need no engine; vLLM refuses it."""
    engines, groups = vllm_processes(), placement_groups()
    reason = failure_of(server, name="too-long", max_model_len=100_000)
    assert "max_model_len" in reason
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and (vllm_processes() != engines or placement_groups() != groups):
        time.sleep(0.5)
    assert vllm_processes() == engines
    assert placement_groups() == groups


def vllm_processes():
    return {process.pid for process in psutil.process_iter(["name", "cmdline"]) if "VLLM" in "".join(process.info["cmdline"] or [])}


def placement_groups():
    return {group for group, entry in ray.util.placement_group_table().items() if entry["state"] != "REMOVED"}


def test_an_endpoint_comes_and_goes_while_another_answers(server, openai):
    server.client.call("POST", "/v1/endpoints", {"model": MODEL, "name": "second", "speculation": "none"})
    with pytest.raises(GatewayError, match="is Creating"):
        server.client.chat("second", "Hello", lambda _: None)
    while server.client.call("GET", "/v1/endpoints/second")["status"] == "Creating":
        assert openai.completions.create(model=P_EAGLE, prompt="Hi", max_tokens=2).choices[0].text
    assert server.client.wait("second")["status"] == "InService"
    assert openai.completions.create(model="second", prompt="Hi", max_tokens=2).choices[0].text
    delete(server, "second")
    with pytest.raises(GatewayError, match="does not exist"):
        server.client.chat("second", "Hello", lambda _: None)
    assert openai.completions.create(model=P_EAGLE, prompt="Hi", max_tokens=2).choices[0].text
