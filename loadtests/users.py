"""Locust users that stream answers, and the record each request leaves.

    locust -f loadtests/users.py --headless --host http://127.0.0.1:8000 --endpoint NAME --users 8 --run-time 1m --records out.jsonl

``HttpUser`` reads what has come as it comes (``iter_content(None)``). Locust's ``FastHttpUser`` waits until a kibibyte is there, which is
most of an answer: its times to first token are wrong.
"""

import random
import time
from pathlib import Path
from typing import Any

from locust import HttpUser, between, events, task
from locust.argument_parser import LocustArgumentParser
from locust.env import Environment

from loadtests.record import Outcome, RequestRecord, Stream, digest

PROMPTS = (
    "Explain how a rainbow forms, step by step.",
    "Write a short story about a fox who learns to read.",
    "List ten unusual uses of a brick, one a line.",
    "Write a Python function that merges two sorted lists, and explain it.",
    "What should a visitor see in Lisbon in three days?",
    "Summarize why the sky is blue for a child of eight.",
)
REFUSED = (429, 503, 504)


@events.init_command_line_parser.add_listener
def _options(parser: LocustArgumentParser) -> None:
    parser.add_argument("--endpoint", default="smollm2-135m-instruct", help="The endpoint: `model` in the requests.")
    parser.add_argument("--max-tokens", type=int, default=64, help="Tokens of an answer at most.")
    parser.add_argument("--records", default="", help="File that gets a JSON line a request.")


class ChatUser(HttpUser):
    """Asks one question after the other, greedily, and streams the answers."""

    wait_time = between(0.0, 0.2)

    @task
    def chat(self) -> None:
        """One question."""
        body = {"messages": [{"role": "user", "content": random.choice(PROMPTS)}]}
        self.stream("/v1/chat/completions", body)

    def stream(self, path: str, body: dict[str, Any]) -> RequestRecord:
        """Send a request, read its stream, leave a record."""
        options = self.environment.parsed_options
        body = {"model": options.endpoint, "max_tokens": options.max_tokens, "temperature": 0, "stream": True,
                "stream_options": {"include_usage": True}, **body}  # fmt: skip
        began, start = time.time(), time.perf_counter()
        stream = Stream(time.perf_counter, start)
        status, error = 0, ""
        with self.client.post(path, json=body, stream=True, catch_response=True, name=type(self).__name__) as response:
            status = response.status_code
            try:
                if status == 200:
                    stream.read(response.iter_content(None))
                else:
                    error = response.text[:300]
            except OSError as broken:
                error = f"{type(broken).__name__}: {broken}"
            outcome: Outcome = (
                "refused" if status in REFUSED else "failed" if status != 200 else "answered" if stream.ended and not stream.error else "cut"
            )
            record = RequestRecord(
                scenario=type(self).__name__, start=began, outcome=outcome, status=status, error=error or stream.error, ttft_s=stream.ttft_s,
                latency_s=time.perf_counter() - start, longest_stall_s=stream.longest_stall_s, chunks=stream.chunks,
                prompt_tokens=stream.usage.get("prompt_tokens", 0), completion_tokens=stream.usage.get("completion_tokens", 0),
                prompt=digest(str(body.get("messages", body.get("prompt")))), text=digest("".join(stream.texts)),
            )  # fmt: skip
            _told(self.environment, record)
            if outcome == "answered":
                response.success()
            else:
                response.failure(f"{outcome} ({status}): {record.error[:120]}")
        return record


def _told(environment: Environment, record: RequestRecord) -> None:
    """Put a record in the file, and its times in Locust's own tables."""
    if environment.parsed_options and (path := environment.parsed_options.records):
        with Path(path).open("a") as file:
            file.write(record.model_dump_json() + "\n")
    for name, seconds in (("TTFT", record.ttft_s), ("TPOT", record.tpot_s)):
        if seconds is not None:
            environment.events.request.fire(  # type: ignore[no-untyped-call]
                request_type=name,
                name=record.scenario,
                response_time=1000 * seconds,
                response_length=record.completion_tokens,
                exception=None,
                context={},
            )
