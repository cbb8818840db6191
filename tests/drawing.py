"""Requests drawn from botocore's own service models, whole and broken."""

import random
import string

from app.catalog import get_card

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
