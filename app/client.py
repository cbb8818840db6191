"""A small client of the gateway, for the command line and the demo."""

import json
import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
from pydantic import BaseModel, ConfigDict, Field


class GatewayError(RuntimeError):
    """The gateway refused a request or could not be reached; the message is its own."""


class Answer(BaseModel):
    """One streamed answer and what it took."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(description="The answer.")
    prompt_tokens: int = Field(description="Tokens of the prompt.")
    completion_tokens: int = Field(description="Tokens of the answer.")
    ttft_s: float = Field(description="Time to first token, seconds.")
    total_s: float = Field(description="Time to the last token, seconds.")

    @property
    def tokens_per_second(self) -> float:
        """Output tokens per second after the first."""
        return (self.completion_tokens - 1) / max(1e-9, self.total_s - self.ttft_s)


class Client:
    """Calls the gateway at ``url``, with the API key in ``PEAGLE_API_KEY`` if there is one."""

    def __init__(self, url: str) -> None:
        key = os.environ.get("PEAGLE_API_KEY")
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=httpx.Timeout(600, connect=5))

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """One request; the response's JSON.

        Raises:
            GatewayError: the gateway cannot be reached or answered with an error.
        """
        try:
            response = self._http.request(method, path, json=body)
        except httpx.TransportError as error:
            raise GatewayError(f"no gateway at {self._http.base_url}: {error}; start one with 'make demo' or 'serve run app.main:build'") from None
        if response.is_error:
            raise GatewayError(_message(response))
        return response.json()

    def wait(self, name: str, until: Callable[[str], None] = lambda _: None, timeout_s: float = 1800) -> dict[str, Any]:
        """Poll endpoint ``name`` until it is neither Creating nor Updating; ``until`` is told each status.

        Raises:
            GatewayError: it failed, or is still not there after ``timeout_s``.
        """
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            endpoint: dict[str, Any] = self.call("GET", f"/v1/endpoints/{name}")
            until(endpoint["status"])
            if endpoint["status"] == "InService":
                return endpoint
            if endpoint["status"] == "Failed":
                raise GatewayError(f"endpoint {name!r} failed: {endpoint['failure_reason']}")
            time.sleep(0.5)
        raise GatewayError(f"endpoint {name!r} is not in service after {timeout_s:.0f} s")

    def chat(self, endpoint: str, prompt: str, show: Callable[[str], None], **options: Any) -> Answer:
        """Stream the answer to one user message; ``show`` gets the text as it arrives.

        Raises:
            GatewayError: the request was refused, or the stream ended with an error.
        """
        body = {
            "model": endpoint,
            "messages": [{"role": "user", "content": prompt}],
            "stream": True,
            "stream_options": {"include_usage": True},
            **options,
        }
        text: list[str] = []
        usage = {"prompt_tokens": 0, "completion_tokens": 0}
        started = time.perf_counter()
        first = last = started
        for event in self._events("/v1/chat/completions", body):
            if "error" in event:
                raise GatewayError(event["error"]["message"])
            if event.get("usage"):
                usage = event["usage"]
            for choice in event["choices"]:
                if piece := choice["delta"].get("content"):
                    last = time.perf_counter()
                    first = last if not text else first
                    text.append(piece)
                    show(piece)
        return Answer(
            text="".join(text),
            prompt_tokens=usage["prompt_tokens"],
            completion_tokens=usage["completion_tokens"],
            ttft_s=first - started,
            total_s=last - started,
        )

    def _events(self, path: str, body: dict[str, Any]) -> Iterator[dict[str, Any]]:
        try:
            with self._http.stream("POST", path, json=body) as response:
                if response.is_error:
                    response.read()
                    raise GatewayError(_message(response))
                for line in response.iter_lines():
                    if line.startswith("data: ") and line != "data: [DONE]":
                        yield json.loads(line.removeprefix("data: "))
        except httpx.TransportError as error:
            raise GatewayError(f"the connection to {self._http.base_url} failed: {error}") from None


def _message(response: httpx.Response) -> str:
    try:
        return str(response.json()["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return f"HTTP {response.status_code}: {response.text[:300]}"
