"""The layer before the routes, asked by botocore's own signer and by plain HTTP."""

import asyncio
import json
import stat
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from fastapi import FastAPI, Request

from app.authentication import Authentication, Limiter
from app.keys import Key, KeyFileError, Limits, create_key, read_keys, revoke_key
from app.sagemaker.api import ApiError
from app.sagemaker.signature import verify

HOST = "http://example.test"


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("PEAGLE_KEYS", str(tmp_path / "keys.json"))
    monkeypatch.delenv("PEAGLE_INSECURE", raising=False)
    return tmp_path / "keys.json"


def ask(method="GET", url="/v1/models", client="10.0.0.9", **options):
    app = FastAPI()
    app.add_middleware(Authentication)

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def echo(request: Request):
        return {"body": (await request.body()).hex()}

    async def once():
        transport = httpx.ASGITransport(app, client=(client, 1234))
        async with httpx.AsyncClient(transport=transport, base_url=HOST) as http:
            return await http.request(method, url, **options)

    return asyncio.run(once())


def signed(key, secret, method="POST", url="/", body=b"{}", service="sagemaker"):
    request = AWSRequest(method, HOST + url, {"X-Amz-Target": "SageMaker.ListModels", "Content-Type": "application/x-amz-json-1.1"}, body)
    SigV4Auth(Credentials(key.identifier, secret), service, "eu-west-1").add_auth(request)
    return dict(request.headers.items())


def test_the_playgrounds_page_needs_no_key_but_what_it_calls_does(path):
    create_key(path, "alice", "api", Limits())
    assert [ask(url=url).status_code for url in ("/", "/playground/main.js", "/v1/endpoints", "/playground")] == [200, 200, 401, 401]
    assert ask("POST", "/").status_code == 403


def test_without_keys_this_machine_alone_may_call(path, monkeypatch):
    assert ask(client="127.0.0.1").status_code == 200
    assert ask(client="::1").status_code == 200
    refused = ask()
    assert refused.status_code == 403
    assert "peagle keys create" in refused.json()["error"]["message"]
    monkeypatch.setenv("PEAGLE_INSECURE", "1")
    assert ask().status_code == 200


def test_readiness_is_open(path):
    create_key(path, "a", "api", Limits())
    assert ask(url="/ready").status_code == 200


def test_an_api_key_opens_the_openai_routes(path):
    _, told = create_key(path, "a", "api", Limits())
    assert ask(headers={"Authorization": f"Bearer {told}"}).status_code == 200
    for wrong in ({}, {"Authorization": f"Bearer {told}x"}, {"Authorization": f"Basic {told}"}, {"Authorization": "Bearer "}):
        response = ask(headers=wrong, client="127.0.0.1")
        assert response.status_code == 401
        assert response.json()["error"]["type"] == "authentication_error"


def test_a_key_is_kept_hashed_in_a_file_its_owner_alone_can_read(path):
    _, told = create_key(path, "a", "api", Limits())
    assert told not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o644)
    with pytest.raises(KeyFileError, match="can be read by others"):
        read_keys(path)
    assert ask(client="127.0.0.1").status_code == 503  # a broken lock does not open the door


def test_a_revoked_key_opens_nothing(path):
    _, told = create_key(path, "a", "api", Limits())
    create_key(path, "b", "api", Limits())
    revoke_key(path, "a")
    assert ask(headers={"Authorization": f"Bearer {told}"}).status_code == 401
    with pytest.raises(KeyFileError, match="no key called 'a'; there are: b"):
        revoke_key(path, "a")
    with pytest.raises(KeyFileError, match="a key called 'b' already"):
        create_key(path, "b", "api", Limits())


@pytest.mark.parametrize(("method", "url", "body"), [
    ("POST", "/", b'{"MaxResults": 3}'),
    ("POST", "/endpoints/my-endpoint/invocations", b"\x00\xffbinary"),
    ("GET", "/endpoints/e/ping?b=2&a=%20x", b""),
])  # fmt: skip
def test_a_request_botocore_signed_is_let_through_with_its_body(path, method, url, body):
    key, secret = create_key(path, "a", "aws", Limits())
    response = ask(method, url, headers=signed(key, secret, method, url, body), content=body)
    assert response.status_code == 200, response.text
    assert bytes.fromhex(response.json()["body"]) == body


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda key, secret, headers: {}, "MissingAuthenticationTokenException"),
        (lambda key, secret, headers: headers | {"Authorization": "AWS4-HMAC-SHA256 nonsense"}, "IncompleteSignatureException"),
        (lambda key, secret, headers: signed(key, secret + "x"), "InvalidSignatureException"),
        (lambda key, secret, headers: signed(key.model_copy(update={"identifier": "AKIAOTHER"}), secret), "UnrecognizedClientException"),
        (lambda key, secret, headers: signed(key, secret, url="/other"), "InvalidSignatureException"),
        (lambda key, secret, headers: signed(key, secret, body=b'{"MaxResults": 99}'), "InvalidSignatureException"),
        (lambda key, secret, headers: headers | {"X-Amz-Target": "SageMaker.DeleteEndpoint"}, "InvalidSignatureException"),
        (lambda key, secret, headers: headers | {"X-Amz-Date": "yesterday"}, "IncompleteSignatureException"),
        (lambda key, secret, headers: headers | {"X-Amz-Content-SHA256": "0" * 64}, "InvalidSignatureException"),
        (lambda key, secret, headers: signed(key, secret, service="s3"), "IncompleteSignatureException"),
    ],
)
def test_any_other_signature_is_refused(path, change, code):
    key, secret = create_key(path, "a", "aws", Limits())
    headers = change(key, secret, signed(key, secret))
    response = ask("POST", "/", headers=headers, content=b"{}", client="127.0.0.1")
    assert (response.status_code, json.loads(response.text)["__type"]) == (403, code)


@pytest.mark.parametrize(("minutes", "good"), [(-4, True), (4, True), (-6, False), (6, False)])
def test_a_signature_is_good_for_five_minutes(path, minutes, good):
    key, secret = create_key(path, "a", "aws", Limits())
    headers = {name.lower(): value for name, value in signed(key, secret).items()} | {"host": "example.test"}
    at = datetime.now(UTC) + timedelta(minutes=minutes)
    if good:
        assert verify(read_keys(path), "POST", HOST + "/", headers, b"{}", at).name == "a"
    else:
        with pytest.raises(ApiError, match="Signature expired"):
            verify(read_keys(path), "POST", HOST + "/", headers, b"{}", at)


def test_over_its_limit_a_key_is_told_when_to_come_back(path):
    _, told = create_key(path, "a", "api", Limits(requests_per_minute=1))
    key, secret = create_key(path, "b", "aws", Limits(requests_per_minute=1))
    app = FastAPI()
    app.add_middleware(Authentication)

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def answer():
        return {}

    async def twice(method, url, headers, content):
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST) as http:
            return [await http.request(method, url, headers=headers, content=content) for _ in range(2)]

    for first, second in (
        asyncio.run(twice("GET", "/v1/models", {"Authorization": f"Bearer {told}"}, b"")),
        asyncio.run(twice("POST", "/", signed(key, secret), b"{}")),
    ):
        assert (first.status_code, second.status_code) == (200, 429)
        assert 1 <= int(second.headers["retry-after"]) <= 60
    assert second.json()["__type"] == "ThrottlingException"


def test_a_keys_limits_hold_and_say_when_to_come_back(path):
    _, told = create_key(path, "a", "api", Limits(requests_per_minute=1))
    key = read_keys(path).bearer(told)
    now = [0.0]
    limiter = Limiter(lambda: now[0])
    assert limiter.refuse(key) is None
    limiter.begin(key)
    assert limiter.refuse(key) == ("key 'a' may begin 1 requests a minute", 60)
    now[0] = 45.0
    assert limiter.refuse(key)[1] == 15
    now[0] = 61.0
    assert limiter.refuse(key) is None
    at_once = Key(name="b", kind="api", identifier="x", limits=Limits(concurrent=1))
    limiter.begin(at_once)
    assert "1 requests running" in limiter.refuse(at_once)[0]
    limiter.end(at_once)
    assert limiter.refuse(at_once) is None
