"""The AWS SDK, unmodified, against the gateway: from the catalog to an endpoint in service, answered, updated and deleted."""

import json

import boto3
import httpx
import psutil
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from tests.conftest import P_EAGLE

ASK = {"messages": [{"role": "user", "content": "Name three colours."}], "max_tokens": 24, "temperature": 0}


@pytest.fixture(scope="session")
def aws(server):
    def client(service):
        return boto3.client(
            service, endpoint_url=server.url, region_name="us-east-1", aws_access_key_id="any", aws_secret_access_key="any",
            config=Config(retries={"max_attempts": 0}, read_timeout=300),
        )  # fmt: skip

    return client


@pytest.fixture(scope="module")
def deployed(aws):
    """JumpStart's flow: what the hub says of the card becomes a model, a config, an endpoint."""
    sagemaker = aws("sagemaker")
    content = sagemaker.describe_hub_content(HubName="SageMakerPublicHub", HubContentType="Model", HubContentName="smollm2-135m-instruct")
    environment = json.loads(content["HubContentDocument"])["HostingEnvironment"]
    sagemaker.create_model(ModelName="smol", PrimaryContainer={"Image": "vllm", "Environment": environment}, Tags=[{"Key": "team", "Value": "a"}])
    variant = {"VariantName": "blue", "ModelName": "smol", "InitialInstanceCount": 1, "InstanceType": "ml.cpu"}
    sagemaker.create_endpoint_config(EndpointConfigName="smol-1", ProductionVariants=[variant])
    sagemaker.create_endpoint(EndpointName="sm", EndpointConfigName="smol-1")
    sagemaker.get_waiter("endpoint_in_service").wait(EndpointName="sm", WaiterConfig={"Delay": 2, "MaxAttempts": 200})
    yield sagemaker
    sagemaker.delete_endpoint(EndpointName="sm")
    sagemaker.get_waiter("endpoint_deleted").wait(EndpointName="sm", WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    with pytest.raises(ClientError, match="Could not find endpoint"):
        sagemaker.describe_endpoint(EndpointName="sm")


def invoke(runtime, **options):
    response = runtime.invoke_endpoint(EndpointName="sm", ContentType="application/json", Body=json.dumps(ASK), **options)
    return response, json.loads(response["Body"].read())


def test_the_jumpstart_flow_ends_in_an_answer(deployed, aws, openai):
    described = deployed.describe_endpoint(EndpointName="sm")
    assert (described["EndpointStatus"], described["ProductionVariants"][0]["CurrentInstanceCount"]) == ("InService", 1)
    assert [one["EndpointName"] for one in deployed.list_endpoints(NameContains="sm", StatusEquals="InService")["Endpoints"]] == ["sm"]
    response, answer = invoke(aws("sagemaker-runtime"), CustomAttributes="trace=7")
    same = openai.chat.completions.create(model=P_EAGLE, **ASK)
    assert answer["choices"][0]["message"]["content"] == same.choices[0].message.content
    assert (response["InvokedProductionVariant"], response["CustomAttributes"], response["ContentType"]) == ("blue", "trace=7", "application/json")


def test_a_response_stream_carries_the_same_text(deployed, aws):
    runtime = aws("sagemaker-runtime")
    _, whole = invoke(runtime)
    response = runtime.invoke_endpoint_with_response_stream(
        EndpointName="sm", ContentType="application/json", Body=json.dumps({**ASK, "stream": True}), TargetVariant="blue"
    )
    text = b"".join(event["PayloadPart"]["Bytes"] for event in response["Body"]).decode()
    events = [json.loads(line.removeprefix("data: ")) for line in text.splitlines() if line.startswith("data: {")]
    assert (
        "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])
        == whole["choices"][0]["message"]["content"]
    )
    assert text.rstrip().endswith("data: [DONE]")
    assert response["InvokedProductionVariant"] == "blue"


def test_each_endpoint_has_a_ping(deployed, server):
    assert httpx.get(f"{server.url}/endpoints/sm/ping").status_code == 200
    assert httpx.get(f"{server.url}/endpoints/none/ping").status_code == 400


def test_a_completion_payload_is_answered_too(deployed, aws):
    body = json.dumps({"prompt": "The capital of France is", "max_tokens": 4, "temperature": 0})
    response = aws("sagemaker-runtime").invoke_endpoint(EndpointName="sm", ContentType="application/json", Body=body)
    assert "Paris" in json.loads(response["Body"].read())["choices"][0]["text"]


@pytest.mark.parametrize(
    ("name", "body", "options", "code", "message"),
    [
        ("none", json.dumps(ASK), {}, "ValidationError", "endpoint 'none' does not exist"),
        ("sm", "{", {}, "ValidationError", "Body: the body is not JSON"),
        ("sm", "{}", {}, "ValidationError", "give messages"),
        ("sm", json.dumps(ASK), {"TargetVariant": "green"}, "ValidationError", "no variant 'green', it has 'blue'"),
        ("sm", json.dumps(ASK), {"ContentType": "text/csv"}, "ValidationError", "'text/csv' is not served"),
        ("sm", json.dumps({**ASK, "temperature": "hot"}), {}, "ModelError", "temperature"),
        ("sm", json.dumps({**ASK, "max_tokens": 10**7}), {}, "ModelError", "max_tokens"),
    ],
)
def test_a_wrong_invocation_is_the_sdks_own_exception(deployed, aws, name, body, options, code, message):
    with pytest.raises(ClientError) as error:
        aws("sagemaker-runtime").invoke_endpoint(EndpointName=name, Body=body, **{"ContentType": "application/json", **options})
    assert error.value.response["Error"]["Code"] == code
    assert message in error.value.response["Error"]["Message"]


def test_an_update_that_cannot_work_rolls_back_and_what_served_goes_on(deployed, aws):
    head = {"model": "drafter/heads/smollm2-135m-instruct-eagle3", "method": "eagle3", "num_speculative_tokens": 4, "parallel_drafting": True}
    environment = {"SM_VLLM_MODEL": "HuggingFaceTB/SmolLM2-135M-Instruct", "SM_VLLM_SPECULATIVE_CONFIG": json.dumps(head)}
    deployed.create_model(ModelName="wrong-head", PrimaryContainer={"Environment": environment})
    variant = {"VariantName": "green", "ModelName": "wrong-head", "InitialInstanceCount": 1, "InstanceType": "ml.cpu"}
    deployed.create_endpoint_config(EndpointConfigName="smol-wrong", ProductionVariants=[variant])
    deployed.update_endpoint(EndpointName="sm", EndpointConfigName="smol-wrong")
    with pytest.raises(ClientError, match="Cannot update in-progress endpoint"):
        deployed.update_endpoint(EndpointName="sm", EndpointConfigName="smol-wrong")
    assert invoke(aws("sagemaker-runtime"))[1]["choices"]
    deployed.get_waiter("endpoint_in_service").wait(EndpointName="sm", WaiterConfig={"Delay": 1, "MaxAttempts": 120})
    described = deployed.describe_endpoint(EndpointName="sm")
    assert (described["EndpointConfigName"], described["ProductionVariants"][0]["VariantName"]) == ("smol-1", "blue")
    assert "rolled back" in described["FailureReason"]
    assert "no mask_hidden" in described["FailureReason"]
    assert invoke(aws("sagemaker-runtime"))[0]["InvokedProductionVariant"] == "blue"


def test_an_update_takes_over_while_requests_go_on(deployed, aws):
    environment = deployed.describe_model(ModelName="smol")["PrimaryContainer"]["Environment"]
    speculative = json.dumps({**json.loads(environment["SM_VLLM_SPECULATIVE_CONFIG"]), "num_speculative_tokens": 2})
    deployed.create_model(ModelName="smol-2", PrimaryContainer={"Environment": {**environment, "SM_VLLM_SPECULATIVE_CONFIG": speculative}})
    variant = {"VariantName": "green", "ModelName": "smol-2", "InitialInstanceCount": 1, "InstanceType": "ml.cpu"}
    deployed.create_endpoint_config(EndpointConfigName="smol-2", ProductionVariants=[variant])
    before = invoke(aws("sagemaker-runtime"))[1]["choices"][0]["message"]["content"]
    deployed.update_endpoint(EndpointName="sm", EndpointConfigName="smol-2")
    variants = []
    while not variants or variants[-1] == "blue" or deployed.describe_endpoint(EndpointName="sm")["EndpointStatus"] == "Updating":
        response, answer = invoke(aws("sagemaker-runtime"))
        assert answer["choices"][0]["message"]["content"] == before  # not one request fails on the way
        variants.append(response["InvokedProductionVariant"])
    assert (variants[0], variants[-1]) == ("blue", "green")
    described = deployed.describe_endpoint(EndpointName="sm")
    assert (described["EndpointStatus"], described["EndpointConfigName"]) == ("InService", "smol-2")


def replicas(application):
    return {one.pid for one in psutil.process_iter(["cmdline"]) if f"ServeReplica:{application}:" in " ".join(one.info["cmdline"] or [])}


def test_auto_scaling_bounds_change_without_a_restart(deployed, aws):
    scaling = aws("application-autoscaling")
    place = {
        "ServiceNamespace": "sagemaker",
        "ResourceId": "endpoint/sm/variant/green",
        "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
    }
    engines = replicas("endpoint-sm.2")
    assert len(engines) == 1
    scaling.register_scalable_target(**place, MinCapacity=1, MaxCapacity=2)
    deployed.get_waiter("endpoint_in_service").wait(EndpointName="sm", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    metric = {"PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"}
    tracking = {"TargetValue": 8.0, "PredefinedMetricSpecification": metric}
    scaling.put_scaling_policy(**place, PolicyName="p", PolicyType="TargetTrackingScaling", TargetTrackingScalingPolicyConfiguration=tracking)
    deployed.get_waiter("endpoint_in_service").wait(EndpointName="sm", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    (target,) = scaling.describe_scalable_targets(ServiceNamespace="sagemaker", ResourceIds=[place["ResourceId"]])["ScalableTargets"]
    (policy,) = scaling.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=place["ResourceId"])["ScalingPolicies"]
    assert (target["MaxCapacity"], policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"]) == (2, 8.0)
    assert engines == {
        process.pid for process in psutil.process_iter(["cmdline"]) if "ServeReplica:endpoint-sm" in " ".join(process.info["cmdline"] or [])
    }
    with pytest.raises(ClientError, match="is not of the form"):
        scaling.register_scalable_target(**{**place, "ResourceId": "sm"}, MinCapacity=1, MaxCapacity=2)
    scaling.deregister_scalable_target(**place)


def test_what_the_cluster_cannot_fit_is_failed_with_the_reason(deployed, aws):
    variant = {"VariantName": "v", "ModelName": "smol", "InitialInstanceCount": 1, "InstanceType": "ml.p5.48xlarge"}
    deployed.create_endpoint_config(EndpointConfigName="too-large", ProductionVariants=[variant])
    deployed.create_endpoint(EndpointName="too-large", EndpointConfigName="too-large")
    with pytest.raises(ClientError) as early:
        aws("sagemaker-runtime").invoke_endpoint(EndpointName="too-large", ContentType="application/json", Body=json.dumps(ASK))
    assert early.value.response["Error"]["Code"] == "ModelNotReadyException"
    with pytest.raises(Exception, match="Failed"):
        deployed.get_waiter("endpoint_in_service").wait(EndpointName="too-large", WaiterConfig={"Delay": 1, "MaxAttempts": 60})
    assert "needs 8 GPU" in deployed.describe_endpoint(EndpointName="too-large")["FailureReason"]
    deployed.delete_endpoint(EndpointName="too-large")
    deployed.get_waiter("endpoint_deleted").wait(EndpointName="too-large", WaiterConfig={"Delay": 1, "MaxAttempts": 60})


def test_tags_models_and_configs(deployed):
    arn = deployed.describe_model(ModelName="smol")["ModelArn"]
    deployed.add_tags(ResourceArn=arn, Tags=[{"Key": "stage", "Value": "test"}])
    assert deployed.list_tags(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "a"}, {"Key": "stage", "Value": "test"}]
    pages = deployed.get_paginator("list_models").paginate(PaginationConfig={"PageSize": 1})
    assert "smol" in [one["ModelName"] for page in pages for one in page["Models"]]
    assert deployed.describe_endpoint_config(EndpointConfigName="smol-1")["ProductionVariants"][0]["ModelName"] == "smol"
