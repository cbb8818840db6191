"""The OpenAI API as the openai client and plain HTTP see it."""

import json
import time

import httpx
import openai as openai_sdk
import pytest

from tests.conftest import P_EAGLE, PLAIN

HELLO = [{"role": "user", "content": "Say hello."}]


def test_models_are_the_endpoints_in_service(openai):
    assert {model.id for model in openai.models.list()} >= {P_EAGLE, PLAIN}
    assert openai.models.retrieve(P_EAGLE).id == P_EAGLE
    with pytest.raises(openai_sdk.NotFoundError, match="does not exist"):
        openai.models.retrieve("nothing")


def test_liveness_and_readiness(server):
    assert httpx.get(f"{server.url}/-/healthz").status_code == 200
    ready = httpx.get(f"{server.url}/ready")
    assert ready.status_code == 200
    assert ready.json()["endpoints"][P_EAGLE] == "InService"


def test_a_chat_answer_comes_with_usage(openai):
    answer = openai.chat.completions.create(model=P_EAGLE, messages=HELLO, max_tokens=12, temperature=0)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens <= 12
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_a_streamed_answer_is_the_same_text(openai):
    whole = openai.chat.completions.create(model=P_EAGLE, messages=HELLO, max_tokens=24, temperature=0)
    stream = openai.chat.completions.create(
        model=P_EAGLE, messages=HELLO, max_tokens=24, temperature=0, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices) == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def test_completions_stream_too(openai):
    stream = openai.completions.create(model=P_EAGLE, prompt="One, two, three,", max_tokens=8, temperature=0, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream)


def test_stop_and_logprobs_pass_through(openai):
    answer = openai.completions.create(model=P_EAGLE, prompt="1, 2, 3, 4, 5,", max_tokens=30, temperature=0, stop=["8"], logprobs=2)
    assert "8" not in answer.choices[0].text
    assert answer.choices[0].finish_reason == "stop"
    assert len(answer.choices[0].logprobs.tokens) == answer.usage.completion_tokens


def test_a_json_schema_is_obeyed(openai):
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}, "ok": {"type": "boolean"}}, "required": ["city", "ok"]}
    answer = openai.chat.completions.create(
        model=P_EAGLE,
        messages=[{"role": "user", "content": "Give me a city as JSON."}],
        max_tokens=80,
        temperature=0,
        response_format={"type": "json_schema", "json_schema": {"name": "city", "schema": schema}},
    )
    assert set(json.loads(answer.choices[0].message.content)) == {"city", "ok"}


def test_a_named_tool_is_called(openai):
    parameters = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}
    answer = openai.chat.completions.create(
        model=P_EAGLE,
        messages=[{"role": "user", "content": "What is the weather in Paris?"}],
        max_tokens=60,
        temperature=0,
        tools=[{"type": "function", "function": {"name": "weather", "parameters": parameters}}],
        tool_choice={"type": "function", "function": {"name": "weather"}},
    )
    (call,) = answer.choices[0].message.tool_calls
    assert call.function.name == "weather"
    assert set(json.loads(call.function.arguments)) == {"city"}


@pytest.mark.parametrize(
    ("path", "body", "status", "parameter", "says"),
    [
        ("chat/completions", {"model": "nothing", "messages": HELLO}, 404, "model", "does not exist"),
        ("chat/completions", {"messages": HELLO}, 400, "model", "name the endpoint"),
        ("chat/completions", {"model": P_EAGLE, "messages": "hello"}, 400, "messages", "valid list"),
        ("chat/completions", {"model": P_EAGLE}, 400, "messages", "required"),
        ("chat/completions", {"model": P_EAGLE, "messages": HELLO, "temperature": "hot"}, 400, "temperature", "valid number"),
        ("chat/completions", {"model": P_EAGLE, "messages": HELLO, "temperature": 9}, 400, "temperature", "9"),
        ("chat/completions", {"model": P_EAGLE, "messages": HELLO, "max_tokens": 100000}, 400, "max_tokens", "8192"),
        ("completions", {"model": P_EAGLE, "prompt": "word " * 9000}, 400, None, "8192"),
        ("completions", {"model": P_EAGLE, "prompt": "x", "min_p": 0.2}, 400, None, "min_p"),
        ("completions", [1, 2], 400, None, "JSON object"),
    ],
)
def test_bad_input_gets_openais_error_object(server, path, body, status, parameter, says):
    response = httpx.post(f"{server.url}/v1/{path}", json=body, timeout=60)
    error = response.json()["error"]
    assert response.status_code == status == error["code"]
    assert says in error["message"]
    assert "Traceback" not in response.text
    if parameter:
        assert error["param"] == parameter


def test_what_is_not_json_is_said_to_be(server):
    response = httpx.post(f"{server.url}/v1/completions", content=b"{nope", timeout=60)
    assert response.status_code == 400
    assert "not JSON" in response.json()["error"]["message"]


@pytest.mark.parametrize("streaming", [True, False])
def test_a_client_that_goes_away_stops_the_generation(server, streaming):
    body = {"model": P_EAGLE, "prompt": "Once upon a time", "max_tokens": 2000, "temperature": 0, "ignore_eos": True, "stream": streaming}
    if streaming:
        with httpx.stream("POST", f"{server.url}/v1/completions", json=body, timeout=60) as response:
            lines = response.iter_lines()
            next(lines)  # kept: an iterator that is collected closes the connection
            assert wait_for_running(server, 1)
    else:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/v1/completions", json=body, timeout=httpx.Timeout(5))
    assert wait_for_running(server, 0), "the engine still works for a client that is gone"


def wait_for_running(server, wanted, within_s=15):
    """2,000 tokens take minutes here: an engine that stops within seconds was stopped."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        if server.client.call("GET", f"/v1/endpoints/{P_EAGLE}/stats")["running"] == wanted:
            return True
        time.sleep(0.2)
    return False
