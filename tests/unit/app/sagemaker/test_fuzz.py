"""Some thousands of requests drawn from botocore's own service models, whole and broken: never an error of ours."""

import pytest

from app.endpoint import Status
from app.registry import Registry
from app.sagemaker.api import ApiError, operation_model
from app.sagemaker.control_plane import OPERATIONS, call
from tests.drawing import CODES, Draw


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
