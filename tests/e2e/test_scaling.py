"""Replicas that come with a queue and go with it, and a target sharded over several workers."""

import json
import threading
import time

import pytest

from loadtests.report import other_texts, read_records
from tests.stack import eventually, locust, processes, stack

pytestmark = [pytest.mark.alone, pytest.mark.slow]

SCALED = {"model": "smollm2-135m-instruct", "name": "s", "min_replicas": 0, "max_replicas": 2, "max_num_seqs": 2, "up_after_s": 2, "down_after_s": 10}
PROMPTS = ("The capital of France is", "def fibonacci(n):", "Water boils at")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with stack(tmp_path_factory.mktemp("scaling"), json.dumps({"endpoints": [SCALED]}), port=8126) as started:
        eventually(lambda: describe(started, "s")["status"] == "InService", timeout_s=600)
        yield started


def describe(server, name):
    return server.client.call("GET", f"/v1/endpoints/{name}")


def ask(server, name, prompt, max_tokens=24):
    body = {"model": name, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0}
    return server.client.call("POST", "/v1/completions", body)["choices"][0]["text"]


def test_replicas_follow_the_queue_to_two_and_to_none_and_nothing_is_lost(server, tmp_path):
    load = locust(server.url, "s", tmp_path / "records", users=10, seconds=600)
    eventually(lambda: describe(server, "s")["running"] == 2)
    time.sleep(5)
    load.terminate()  # its users finish what they began
    load.wait(timeout=150)
    records = read_records(tmp_path / "records")
    assert {record.outcome for record in records} == {"answered"}
    assert other_texts(records) == 0
    eventually(lambda: describe(server, "s")["running"] == 0)
    assert describe(server, "s")["status"] == "InService"


def test_a_request_waits_for_the_first_replica(server):
    answers = []
    waiting = threading.Thread(target=lambda: answers.append(ask(server, "s", PROMPTS[0])))
    waiting.start()
    waiting.join(timeout=300)
    assert "Paris" in answers[0]


def test_several_workers_write_what_one_writes(server):
    server.client.call("POST", "/v1/endpoints", {"model": "smollm2-135m-instruct", "name": "shards", "tensor_parallel_size": 3})
    eventually(lambda: describe(server, "shards")["status"] in ("InService", "Failed"), timeout_s=600)
    assert describe(server, "shards")["failure_reason"] is None
    assert len(processes(server.process, "VLLM::Worker_TP")) == 3
    alone = [ask(server, "s", prompt) for prompt in PROMPTS]
    assert [ask(server, "shards", prompt) for prompt in PROMPTS] == alone
    assert server.client.call("GET", "/v1/endpoints/shards/stats")["acceptance"]["drafts"] > 0


def test_shards_that_cannot_be_are_refused_with_those_that_can(server):
    server.client.call("POST", "/v1/endpoints", {"model": "smollm2-135m-instruct", "name": "two", "tensor_parallel_size": 2})
    eventually(lambda: describe(server, "two")["status"] == "Failed", timeout_s=30)
    assert describe(server, "two")["failure_reason"].endswith("2 GPUs cannot share 9 attention heads; 1, 3, 9 would do")
