"""The control plane over a registry on disk, without Ray; tests/e2e drives the same through boto3."""

import json

import pytest

from app.catalog import get_card
from app.endpoint import Status
from app.registry import Registry
from app.sagemaker.api import ApiError
from app.sagemaker.control_plane import OPERATIONS, call
from deployments.speculation import PEagle

CARD = get_card("smollm2-135m-instruct")
ROLE = "arn:aws:iam::000000000000:role/x"


@pytest.fixture
def registry(tmp_path, monkeypatch):
    monkeypatch.setenv("PEAGLE_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PEAGLE_MODEL_ROOTS", str(tmp_path / "roots"))
    (tmp_path / "roots" / "bucket" / "head").mkdir(parents=True)
    return Registry(tmp_path / "registry.sqlite")


def do(registry, operation, **request):
    service = "AnyScaleFrontendService" if operation in OPERATIONS["application-autoscaling"] else "SageMaker"
    return call(registry, f"{service}.{operation}", request)


def model(registry, name="m", **environment):
    return do(
        registry, "CreateModel", ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer={"Environment": {**CARD.environment_preset(), **environment}}
    )


def config(registry, name="c", model_name="m", **variant):
    return do(registry, "CreateEndpointConfig", EndpointConfigName=name, ProductionVariants=[
        {"VariantName": "v", "ModelName": model_name, "InitialInstanceCount": 1, "InstanceType": "ml.cpu", **variant}])  # fmt: skip


def endpoint(registry, name="e", config_name="c"):
    return do(registry, "CreateEndpoint", EndpointName=name, EndpointConfigName=config_name)


def serving(registry, name="e"):
    registry.put(registry.get(name).into(Status.IN_SERVICE))


def test_a_cards_environment_becomes_its_endpoint(registry):
    model(registry)
    config(registry)
    assert endpoint(registry) == {"EndpointArn": "arn:aws:sagemaker:us-east-1:000000000000:endpoint/e"}
    spec = registry.get("e").spec
    assert (spec.model, spec.hardware, spec.max_num_seqs) == (CARD.target_location, "cpu", CARD.max_num_seqs)
    assert spec.speculation == CARD.speculation("p_eagle")
    described = do(registry, "DescribeEndpoint", EndpointName="e")
    assert (described["EndpointStatus"], described["EndpointConfigName"]) == ("Creating", "c")
    assert (
        described["ProductionVariants"][0] | {"VariantName": "v", "DesiredInstanceCount": 1, "CurrentInstanceCount": 0}
        == described["ProductionVariants"][0]
    )


def test_instances_are_gpus_and_replicas(registry):
    model(registry, SM_VLLM_MODEL="openai/gpt-oss-120b")
    config(registry, InstanceType="ml.p5.48xlarge", InitialInstanceCount=3)
    endpoint(registry)
    spec = registry.get("e").spec
    assert (spec.hardware, spec.tensor_parallel_size, spec.accelerator) == ("gpu", 8, "H100")
    assert (spec.replicas.minimum, spec.replicas.maximum) == (3, 3)


def test_a_channel_in_s3_is_a_folder_under_the_model_roots(registry, tmp_path):
    speculative = {"model": "/opt/ml/additional-model-data-sources/draft", "method": "eagle3", "num_speculative_tokens": 5, "parallel_drafting": True}
    source = {"ChannelName": "draft", "S3DataSource": {"S3Uri": "s3://bucket/head/", "S3DataType": "S3Prefix", "CompressionType": "None"}}
    container = {
        "Environment": {"HF_MODEL_ID": CARD.target, "SM_VLLM_SPECULATIVE_CONFIG": json.dumps(speculative)},
        "AdditionalModelDataSources": [source],
    }
    do(registry, "CreateModel", ModelName="m", PrimaryContainer=container)
    config(registry)
    endpoint(registry)
    assert registry.get("e").spec.speculation == PEagle(head=str((tmp_path / "roots/bucket/head").resolve()), num_speculative_tokens=5)


@pytest.mark.parametrize("place", ["/etc", "../../etc", "s3://bucket/../../../etc", "file:///etc", "s3://bucket/nothing", "a/b/../../../../etc"])
def test_no_request_names_a_folder_outside_the_model_roots(registry, place):
    with pytest.raises(ApiError, match=r"PrimaryContainer\.SM_VLLM_MODEL: .*PEAGLE_MODEL_ROOTS") as error:
        model(registry, SM_VLLM_MODEL=place)
    assert error.value.code == "ValidationException"


@pytest.mark.parametrize(
    ("operation", "request_", "message"),
    [
        ("CreateModel", {}, "Missing required parameter in input: \"ModelName\""),
        ("CreateModel", {"ModelName": "-bad-"}, "Value '-bad-' at 'ModelName' failed to satisfy constraint"),
        ("CreateModel", {"ModelName": "x" * 64}, "at 'ModelName' failed to satisfy constraint: Member must have length less than or equal to 63"),
        ("CreateModel", {"ModelName": "m", "Colour": "red"}, "Unknown parameter in input: \"Colour\""),
        ("CreateModel", {"ModelName": "m"}, "PrimaryContainer: give one container"),
        ("CreateModel", {"ModelName": "m", "PrimaryContainer": {"Environment": {"SM_VLLM_MODEL": "a/b", "SM_VLLM_MAX_SEQS": "1"}}},
         "PrimaryContainer.SM_VLLM_MAX_SEQS: vLLM has no engine argument --max-seqs"),
        ("DescribeModel", {"ModelName": "none"}, 'Could not find model "arn:aws:sagemaker:us-east-1:000000000000:model/none".'),
        ("DeleteModel", {"ModelName": "none"}, "Could not find model"),
        ("DescribeEndpointConfig", {"EndpointConfigName": "none"}, "Could not find endpoint configuration"),
        ("CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": []}, "Invalid length for parameter ProductionVariants"),
        ("CreateEndpointConfig", {"EndpointConfigName": "c", "ProductionVariants": [{"VariantName": "v", "ModelName": "none"}]},
         "Could not find model"),
        ("CreateEndpoint", {"EndpointName": "e", "EndpointConfigName": "none"}, "Could not find endpoint configuration"),
        ("DescribeEndpoint", {"EndpointName": "none"}, "Could not find endpoint"),
        ("UpdateEndpoint", {"EndpointName": "none", "EndpointConfigName": "none"}, "Could not find endpoint"),
        ("ListModels", {"NextToken": "nonsense"}, "Invalid pagination token"),
        ("ListModels", {"MaxResults": 1000}, "at 'MaxResults' failed to satisfy constraint"),
        ("CreateTrainingJob", {}, "is an operation of sagemaker that peagle-serve does not have"),
    ],
)  # fmt: skip
def test_errors_name_the_field(registry, operation, request_, message):
    with pytest.raises(ApiError) as error:
        do(registry, operation, **request_)
    assert message in error.value.message
    assert error.value.code == "ValidationException"


def test_an_instance_type_unknown_here_is_refused_when_the_config_is_made(registry):
    model(registry)
    with pytest.raises(ApiError, match=r"ProductionVariants.1.InstanceType: 'ml.trn1.2xlarge' is not known here; use ml.cpu or a size of ml.g5, "):
        config(registry, InstanceType="ml.trn1.2xlarge")


def test_names_are_taken_once(registry):
    model(registry)
    config(registry)
    endpoint(registry)
    for again in (model, config, endpoint):
        with pytest.raises(ApiError, match="already existing"):
            again(registry)


def test_lists_are_filtered_sorted_and_paged(registry):
    for name in ("b1", "a2", "a1", "a3"):
        model(registry, name)
    names, token = [], {}
    while True:
        found = do(registry, "ListModels", NameContains="A", SortBy="Name", SortOrder="Ascending", MaxResults=2, **token)
        names.append([one["ModelName"] for one in found["Models"]])
        if "NextToken" not in found:
            break
        token = {"NextToken": found["NextToken"]}
    assert names == [["a1", "a2"], ["a3"]]
    assert do(registry, "ListModels")["Models"][0]["ModelName"] == "a3"  # the newest first
    assert do(registry, "ListModels", CreationTimeAfter=4e9)["Models"] == []


def test_an_update_waits_for_the_one_before(registry):
    model(registry)
    config(registry)
    config(registry, "c2", InitialInstanceCount=2)
    endpoint(registry)
    with pytest.raises(ApiError, match="Cannot update in-progress endpoint"):
        do(registry, "UpdateEndpoint", EndpointName="e", EndpointConfigName="c2")
    serving(registry)
    do(registry, "UpdateEndpoint", EndpointName="e", EndpointConfigName="c2")
    updating = registry.get("e")
    assert (updating.status, updating.spec.replicas.minimum, updating.successor.spec.replicas.minimum) == (Status.UPDATING, 1, 2)
    assert do(registry, "DescribeEndpoint", EndpointName="e")["EndpointConfigName"] == "c"
    registry.put(updating.succeeded())
    assert do(registry, "DescribeEndpoint", EndpointName="e")["EndpointConfigName"] == "c2"


def test_the_instance_count_changes_in_place(registry):
    model(registry)
    config(registry)
    endpoint(registry)
    serving(registry)
    do(
        registry,
        "UpdateEndpointWeightsAndCapacities",
        EndpointName="e",
        DesiredWeightsAndCapacities=[{"VariantName": "v", "DesiredInstanceCount": 2}],
    )
    changed = registry.get("e")
    assert (changed.spec.replicas.minimum, changed.version, changed.deployed) == (2, 0, False)
    serving(registry)
    with pytest.raises(ApiError, match="no variant 'w', it has 'v'"):
        do(registry, "UpdateEndpointWeightsAndCapacities", EndpointName="e", DesiredWeightsAndCapacities=[{"VariantName": "w"}])


def test_a_failed_operation_changes_nothing(registry):
    model(registry)
    config(registry)
    tags = [{"Key": f"k{index}", "Value": "v"} for index in range(50)]
    do(registry, "AddTags", ResourceArn="arn:aws:sagemaker:us-east-1:000000000000:model/m", Tags=tags)
    with pytest.raises(ApiError) as error:
        do(registry, "AddTags", ResourceArn="arn:aws:sagemaker:us-east-1:000000000000:model/m", Tags=[{"Key": "one more", "Value": "v"}])
    assert error.value.code == "ResourceLimitExceeded"
    assert len(do(registry, "ListTags", ResourceArn="arn:aws:sagemaker:us-east-1:000000000000:model/m")["Tags"]) == 50
    with pytest.raises(ApiError) as missing:
        do(registry, "ListTags", ResourceArn="arn:aws:sagemaker:us-east-1:000000000000:model/none")
    assert missing.value.code == "ResourceNotFound"


def test_tags_go_with_their_resource(registry):
    model(registry)
    arn = do(registry, "DescribeModel", ModelName="m")["ModelArn"]
    do(registry, "AddTags", ResourceArn=arn, Tags=[{"Key": "team", "Value": "a"}])
    do(registry, "DeleteModel", ModelName="m")
    model(registry)
    assert do(registry, "ListTags", ResourceArn=arn) == {"Tags": []}


SCALING = {"ServiceNamespace": "sagemaker", "ResourceId": "endpoint/e/variant/v", "ScalableDimension": "sagemaker:variant:DesiredInstanceCount"}
TRACKING = {
    "TargetValue": 5.0, "PredefinedMetricSpecification": {"PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution"}
}  # fmt: skip


def test_application_auto_scaling_sets_the_replicas_and_their_target(registry):
    model(registry)
    config(registry)
    endpoint(registry)
    serving(registry)
    do(registry, "RegisterScalableTarget", **SCALING, MinCapacity=1, MaxCapacity=4)
    serving(registry)
    do(registry, "PutScalingPolicy", **SCALING, PolicyName="p", PolicyType="TargetTrackingScaling", TargetTrackingScalingPolicyConfiguration=TRACKING)
    replicas = registry.get("e").spec.replicas
    assert (replicas.minimum, replicas.maximum, replicas.target_ongoing_requests) == (1, 4, 5.0)
    (target,) = do(registry, "DescribeScalableTargets", ServiceNamespace="sagemaker")["ScalableTargets"]
    (policy,) = do(registry, "DescribeScalingPolicies", ServiceNamespace="sagemaker")["ScalingPolicies"]
    assert (target["MaxCapacity"], policy["PolicyName"]) == (4, "p")
    serving(registry)
    do(registry, "DeregisterScalableTarget", **SCALING)
    assert registry.get("e").spec.replicas.maximum == 1
    assert do(registry, "DescribeScalingPolicies", ServiceNamespace="sagemaker")["ScalingPolicies"] == []


def test_scaling_of_what_is_not_there_is_refused(registry):
    with pytest.raises(ApiError, match="endpoint 'e' does not exist"):
        do(registry, "RegisterScalableTarget", **SCALING, MinCapacity=1, MaxCapacity=2)
    with pytest.raises(ApiError, match="is not of the form endpoint/NAME/variant/VARIANT"):
        do(registry, "RegisterScalableTarget", **{**SCALING, "ResourceId": "e"}, MinCapacity=1, MaxCapacity=2)


def test_the_catalog_is_a_hub(registry):
    listed = do(registry, "ListHubContents", HubName="SageMakerPublicHub", HubContentType="Model")["HubContentSummaries"]
    assert [one["HubContentName"] for one in listed] == sorted(one["HubContentName"] for one in listed)
    described = do(registry, "DescribeHubContent", HubName="SageMakerPublicHub", HubContentType="Model", HubContentName="gpt-oss-120b")
    assert json.loads(described["HubContentDocument"])["HostingEnvironment"]["SM_VLLM_MODEL"] == "openai/gpt-oss-120b"
    with pytest.raises(ApiError) as error:
        do(registry, "DescribeHubContent", HubName="SageMakerPublicHub", HubContentType="Model", HubContentName="none")
    assert error.value.code == "ResourceNotFound"


def test_an_old_registry_is_brought_up_to_date(tmp_path):
    import sqlite3

    old = sqlite3.connect(tmp_path / "old.sqlite")
    old.execute("CREATE TABLE endpoints (name TEXT PRIMARY KEY, endpoint TEXT NOT NULL)")
    old.execute('INSERT INTO endpoints VALUES (\'e\', \'{"spec": {"name": "e", "model": "m"}, "status": "InService"}\')')
    old.commit()
    old.close()
    registry = Registry(tmp_path / "old.sqlite")
    assert registry.get("e").status is Status.IN_SERVICE
    assert registry.records(type(registry.get("e"))) == []
