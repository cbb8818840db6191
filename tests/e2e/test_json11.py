"""Requests drawn from AWS's service models, sent over HTTP: each is answered in the API's own shape, none with a 5xx."""

import json

import httpx

from app.sagemaker.api import operation_model
from app.sagemaker.control_plane import OPERATIONS
from tests.drawing import Draw

STARTS_ENGINES = {
    "CreateEndpoint",
    "UpdateEndpoint",
    "UpdateEndpointWeightsAndCapacities",
    "DeleteEndpoint",
    "RegisterScalableTarget",
    "PutScalingPolicy",
}


def test_whatever_is_sent_is_answered_in_the_apis_shape(server):
    draw = Draw(7)
    operations = sorted(set(OPERATIONS["sagemaker"]) - STARTS_ENGINES)
    odd = [b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"ModelName": "\\ud800"}', b"[" * 100_000, b'{"MaxResults": ' + b"9" * 5000 + b"}"]
    with httpx.Client(base_url=server.url, timeout=60) as http:
        for turn in range(600):
            operation = draw.random.choice(operations)
            body = odd[turn % len(odd)] if turn % 10 == 0 else json.dumps(draw.value(operation_model("sagemaker", operation).input_shape)).encode()
            target = f"SageMaker.{operation}" if turn % 50 else draw.text().encode("ascii", "ignore").decode().strip()
            target = "".join(letter for letter in target if letter.isprintable())
            response = http.post("/", content=body, headers={"X-Amz-Target": target, "Content-Type": "application/x-amz-json-1.1"})
            assert response.status_code in (200, 400), (operation, body, response.text)
            assert response.headers["content-type"].startswith("application/x-amz-json-1.1")
            if response.status_code == 400:
                assert response.json()["__type"]
