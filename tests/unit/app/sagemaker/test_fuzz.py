"""Some thousands of requests drawn from botocore's own service models, whole and broken: never an error of ours."""

import random
import string

import pytest

from app.catalog import get_card
from app.endpoint import Status
from app.registry import Registry
from app.sagemaker.api import ApiError, operation_model
from app.sagemaker.control_plane import OPERATIONS, call

NAMES = ["a", "b-1", "smol", "x" * 63]
CODES = {
    "ValidationException", "ResourceNotFound", "ResourceInUse", "ResourceLimitExceeded", "ObjectNotFoundException", "ConcurrentUpdateException",
}  # fmt: skip
NOT_SERVED = ["", "x" * 5000, "a/b/c", "../../etc/passwd", "\x00", "💥", "arn:aws:x", "-1", "s3://b/k", "{", "null", "1" * 400]
LIKELY = {
    "PrimaryContainer", "Environment", "ProductionVariants", "ModelName", "InstanceType", "MinCapacity", "MaxCapacity", "PolicyType",
    "TargetTrackingScalingPolicyConfiguration", "PredefinedMetricSpecification", "DesiredWeightsAndCapacities",
}  # fmt: skip
WRONG_TYPES = [None, True, 0, -1, 2**70, 1.5, "text", [], {}, [None], {"a": None}, [[[]]], "NaN"]


class Draw:
    """Draws values of a shape; now and then of none."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.environment = get_card("smollm2-135m-instruct").environment_preset()

    def value(self, shape, name="", depth=0):
        chance = self.random.random()
        if chance < 0.02:
            return self.random.choice(WRONG_TYPES)
        if name == "Environment" and chance < 0.7:
            return {**self.environment, **({self.text(): self.text()} if chance < 0.1 else {})}
        kind = shape.type_name
        if kind == "structure":
            fields = {
                field: self.value(member, field, depth + 1)
                for field, member in shape.members.items()
                if field in shape.required_members or self.random.random() < (0.9 if field in LIKELY else 0.1)
            }
            if self.random.random() < 0.02:
                fields[self.text()] = 1
            if fields and self.random.random() < 0.02:
                fields.pop(self.random.choice(list(fields)))
            return fields
        if kind == "list":
            length = 1 if name in LIKELY and chance < 0.9 else self.random.randrange(3)
            return [self.value(shape.member, name, depth + 1) for _ in range(length)]
        if kind == "map":
            return {self.text(): self.value(shape.value, name, depth + 1) for _ in range(self.random.randrange(3))}
        if kind == "string":
            return self.string(shape, name)
        if kind == "boolean":
            return self.random.random() < 0.5
        if kind in ("float", "double"):
            return self.random.choice([0.0, 1.0, -1.0, 0.5, 1e308, 7])
        if kind == "timestamp":
            return self.random.choice([0, 1.5e9, -1e20, 4e9])
        return self.random.choice([0, 1, 2, 10, -1, 10**12])

    def string(self, shape, name):
        known = {
            "HubName": "SageMakerPublicHub", "HubContentType": "Model", "HubContentName": "smollm2-135m-instruct", "InstanceType": "ml.cpu",
            "ServiceNamespace": "sagemaker", "ScalableDimension": "sagemaker:variant:DesiredInstanceCount", "PolicyType": "TargetTrackingScaling",
            "PredefinedMetricType": "SageMakerVariantConcurrentRequestsPerModelHighResolution",
        }.get(name)  # fmt: skip
        if known and self.random.random() < 0.8:
            return known
        if name == "ResourceId":
            return f"endpoint/{self.random.choice(NAMES)}/variant/{self.random.choice(NAMES)}"
        if name == "ResourceArn":
            return (
                f"arn:aws:sagemaker:us-east-1:000000000000:{self.random.choice(['model', 'endpoint', 'endpoint-config'])}/{self.random.choice(NAMES)}"
            )
        if getattr(shape, "enum", None) and self.random.random() < 0.9:
            return self.random.choice(shape.enum)
        return self.random.choice(NAMES) if self.random.random() < 0.8 else self.text()

    def text(self):
        return self.random.choice([*NOT_SERVED, "".join(self.random.choices(string.printable, k=self.random.randrange(30)))])


@pytest.mark.parametrize("seed", range(4))
def test_no_request_is_answered_with_an_error_of_ours(seed, tmp_path, monkeypatch):
    monkeypatch.setenv("PEAGLE_HOME", str(tmp_path / "home"))
    registry, draw = Registry(tmp_path / "registry.sqlite"), Draw(seed)
    prefixes = {"sagemaker": "SageMaker", "application-autoscaling": "AnyScaleFrontendService"}
    operations = [(service, operation) for service, known in OPERATIONS.items() for operation in known]
    served, refused = set(), []
    for turn in range(2500):
        if turn % 20 == 0:  # as reconciliation would in time
            for endpoint in registry.all():
                registry.put(endpoint.into(Status.IN_SERVICE))
        service, operation = draw.random.choice(operations)
        request = draw.value(operation_model(service, operation).input_shape)
        if not isinstance(request, dict):
            continue
        try:
            call(registry, f"{prefixes[service]}.{operation}", request)
            served.add(operation)
        except ApiError as error:
            refused.append((error.code, bool(error.message), operation, request))
    assert [one for one in refused if one[0] not in CODES or not one[1]] == []
    assert len(served) > 12, served  # it gets past validation, too
