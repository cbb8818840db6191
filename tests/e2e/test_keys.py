"""Keys, as the OpenAI and AWS SDKs meet them."""

import time

import boto3
import openai as openai_sdk
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from app import listening
from app.keys import Limits, create_key, key_file
from tests.conftest import PLAIN

REREAD_S = 2.5  # two gateway replicas, each reads the key file once a second


@pytest.fixture
def keys(server):
    _, bearer = create_key(key_file(), "alice", "api", Limits(requests_per_minute=1000))
    access, secret = create_key(key_file(), "ci", "aws", Limits())
    time.sleep(REREAD_S)
    yield bearer, access.identifier, secret
    key_file().unlink()
    time.sleep(REREAD_S)


def sdk(server, key):
    return openai_sdk.OpenAI(base_url=f"{server.url}/v1", api_key=key, max_retries=0)


def sagemaker(server, identifier, secret):
    return boto3.client("sagemaker", endpoint_url=server.url, region_name="us-east-1", aws_access_key_id=identifier, aws_secret_access_key=secret,
                        config=Config(retries={"max_attempts": 0}))  # fmt: skip


def test_the_gateway_knows_where_serve_listens(server):
    assert listening.host() == "127.0.0.1"  # asked of Serve's private client: this fails when Ray changes it


def test_with_keys_nobody_calls_without_one(server, keys):
    bearer, identifier, secret = keys
    answer = sdk(server, bearer).completions.create(model=PLAIN, prompt="Hello", max_tokens=2)
    assert answer.usage.completion_tokens >= 1
    with pytest.raises(openai_sdk.AuthenticationError, match="the API key is wrong"):
        sdk(server, "sk-wrong").models.list()
    assert sagemaker(server, identifier, secret).list_endpoints()["Endpoints"]
    with pytest.raises(ClientError) as wrong:
        sagemaker(server, identifier, secret + "x").list_endpoints()
    assert wrong.value.response["Error"]["Code"] == "InvalidSignatureException"
    with pytest.raises(ClientError) as unknown:
        sagemaker(server, "AKIANOBODY", secret).list_endpoints()
    assert unknown.value.response["Error"]["Code"] == "UnrecognizedClientException"
