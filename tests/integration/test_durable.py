"""kill -9 of every part of the stack, in the middle of creating and deleting: the right final state, nothing lost, nothing twice."""

import json
import time

import boto3
import psutil
import pytest
from botocore.exceptions import EventStreamError
from ray import serve

from tests.conftest import PLAIN
from tests.stack import eventually, kill

MODEL, TARGET = "smollm2-135m-instruct", "HuggingFaceTB/SmolLM2-135M-Instruct"


def processes(title):
    """Processes whose title holds ``title``; while a replica answers, its title is the call's, so this waits for a pause."""
    for _ in range(100):
        if found := [process for process in psutil.process_iter(["cmdline"]) if title in " ".join(process.info["cmdline"] or [])]:
            return found
        time.sleep(0.1)
    pytest.fail(f"no process is called {title}")
    return []


def status(server, name):
    return {one["spec"]["name"]: one["status"] for one in server.client.call("GET", "/v1/endpoints")}.get(name)


def applications(name):
    return [application for application in serve.status().applications if application.startswith(f"endpoint-{name}.")]


def rolled_back(server):
    return server.client.call("GET", "/v1/endpoints/durable")["failure_reason"]


def ask(server, name):
    body = {"model": name, "prompt": "The capital of France is", "max_tokens": 4, "temperature": 0}
    return server.client.call("POST", "/v1/completions", body)["choices"][0]["text"]


def aws(server, service):
    return boto3.client(service, endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b")


def test_killed_while_creating_updating_and_deleting(server):
    server.client.call("POST", "/v1/endpoints", {"model": MODEL, "name": "durable", "speculation": "none"})
    eventually(lambda: applications("durable"))
    kill(*processes("ServeReplica:peagle:EndpointManager"))
    assert "Paris" in eventually(lambda: ask(server, PLAIN))  # what serves goes on serving
    kill(*processes("ServeController"))
    eventually(lambda: status(server, "durable") == "InService")
    assert applications("durable") == ["endpoint-durable.0"]
    assert "Paris" in ask(server, "durable")

    sagemaker = aws(server, "sagemaker")
    sagemaker.create_model(ModelName="shorter", PrimaryContainer={"Environment": {"HF_MODEL_ID": TARGET, "SM_VLLM_MAX_MODEL_LEN": "1024"}})
    variant = {"VariantName": "v", "ModelName": "shorter", "InitialInstanceCount": 1, "InstanceType": "ml.cpu"}
    sagemaker.create_endpoint_config(EndpointConfigName="shorter", ProductionVariants=[variant])
    sagemaker.update_endpoint(EndpointName="durable", EndpointConfigName="shorter")
    eventually(lambda: len(applications("durable")) == 2 or rolled_back(server))
    assert not rolled_back(server)
    kill(*processes("ServeReplica:peagle:EndpointManager"))
    kill(*processes("ServeController"))
    eventually(lambda: status(server, "durable") == "InService")
    eventually(lambda: applications("durable") == ["endpoint-durable.1"])
    assert "Paris" in ask(server, "durable")

    server.client.call("DELETE", "/v1/endpoints/durable")
    kill(*processes("ServeReplica:peagle:EndpointManager"))
    eventually(lambda: status(server, "durable") is None)
    eventually(lambda: not applications("durable"))
    assert {name: status(server, name) for name in ("p-eagle", "eagle3", PLAIN)} == dict.fromkeys(("p-eagle", "eagle3", PLAIN), "InService")


def test_a_killed_engine_is_replaced_and_its_endpoint_stays(server):
    runtime = aws(server, "sagemaker-runtime")
    (engine,) = processes(f"ServeReplica:endpoint-{PLAIN}.0:SpeculativeWorker")  # before it answers: then its title is the call's
    # Log probabilities are not taken up by another replica: this stream ends with its own.
    body = json.dumps({"prompt": "Once upon a time", "max_tokens": 400, "temperature": 0, "ignore_eos": True, "stream": True, "logprobs": 1})
    events = runtime.invoke_endpoint_with_response_stream(EndpointName=PLAIN, ContentType="application/json", Body=body)["Body"]
    broken = iter(events)
    assert next(broken)["PayloadPart"]["Bytes"].startswith(b"data: ")
    kill(engine)
    with pytest.raises(EventStreamError, match=r"ModelStreamError.*failed while answering"):
        list(broken)
    assert "Paris" in eventually(lambda: ask(server, PLAIN))
    assert status(server, PLAIN) == "InService"
    assert applications(PLAIN) == [f"endpoint-{PLAIN}.0"]
