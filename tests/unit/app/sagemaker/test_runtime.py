"""What the gateway's errors are to SageMaker Runtime's own SDK: parsed here by botocore, as a client would."""

import json

import pytest
from botocore.parsers import create_parser

from app.endpoint import EndpointError
from app.sagemaker import runtime
from app.sagemaker.api import _service


def parsed(response):
    model = _service("sagemaker-runtime").operation_model("InvokeEndpoint")
    headers = {name.lower(): value for name, value in response.headers.items()}
    told = {"status_code": response.status_code, "headers": headers, "body": response.body}
    return create_parser("rest-json").parse(told, model.output_shape)


@pytest.mark.parametrize(
    ("kind", "code", "status", "again"),
    [
        ("invalid", "ValidationError", 400, None),
        ("not_found", "ValidationError", 400, None),
        ("not_ready", "ModelNotReadyException", 429, "5"),
        ("busy", "ServiceUnavailable", 503, "1"),
        ("lost", "ServiceUnavailable", 503, "5"),
    ],
)
def test_each_kind_of_trouble_is_an_exception_of_the_sdk(kind, code, status, again):
    response = runtime.error(EndpointError(kind, "what is wrong"))
    error = parsed(response)["Error"]
    assert (error["Code"], error["Message"], response.status_code) == (code, "what is wrong", status)
    assert response.headers.get("retry-after") == again


def test_what_the_model_refused_keeps_its_own_status_and_words():
    answer = parsed(runtime.model_error(400, '{"error": "max_tokens"}'))
    assert answer["Error"]["Code"] == "ModelError"
    assert "max_tokens" in answer["Error"]["Message"]
    body = json.loads(runtime.model_error(422, "x").body)
    assert (body["OriginalStatusCode"], body["OriginalMessage"]) == (422, "x")
