"""Locust users that stream answers. Each request leaves a record.

    locust -f loadtests/users.py --headless --host http://127.0.0.1:8000 --endpoint NAME --users 8 --run-time 1m --records out.jsonl ChatUser

The last word picks the users; without it all kinds are mixed. ``--rate`` makes arrivals open-loop (see ``StreamingUser.arrive``).
"""

import inspect
import itertools
import random
import textwrap
import time
from typing import Any, ClassVar

import gevent
from locust import HttpUser, events, task
from locust.argument_parser import LocustArgumentParser

from loadtests.send import Request, send

PROMPTS = (
    "Explain how a rainbow forms, step by step.",
    "Write a short story about a fox who learns to read.",
    "List ten unusual uses of a brick, one a line.",
    "Write a Python function that merges two sorted lists, and explain it.",
    "What should a visitor see in Lisbon in three days?",
    "Summarize why the sky is blue for a child of eight.",
)
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["name", "age", "city"],
    "additionalProperties": False,
}


@events.init_command_line_parser.add_listener
def _options(parser: LocustArgumentParser) -> None:
    parser.add_argument("--endpoint", default="smollm2-135m-instruct", help="The endpoint: `model` in the requests.")
    parser.add_argument("--max-tokens", type=int, default=64, help="Tokens of an answer at most.")
    parser.add_argument("--think-s", type=float, default=0.0, help="Mean time a user thinks between two requests, exponential.")
    parser.add_argument("--rate", type=float, default=0.0, help="Open loop: requests a second of all users together; 0: closed loop.")
    parser.add_argument("--seed", default=None, help="Open loop: draw the same arrivals again.")
    parser.add_argument("--retries", type=int, default=0, help="How often to send a request whose connection broke again; the SDKs' default is 2.")
    parser.add_argument("--records", default="", help="File that gets a JSON line a request.")


class StreamingUser(HttpUser):
    """What all users share: thinking or open-loop arrivals, and one request."""

    abstract = True
    _numbers = itertools.count()

    def on_start(self) -> None:
        """Locust's hook."""
        seed = self.environment.parsed_options.seed
        self._arrivals = random.Random(f"{seed} {next(self._numbers)}" if seed is not None else None)
        self._next = time.perf_counter()
        self._open: set[gevent.Greenlet] = set()

    def on_stop(self) -> None:
        """Locust's hook: what is open is waited for."""
        gevent.joinall(list(self._open), timeout=self.environment.stop_timeout or 0)

    def wait_time(self) -> float:
        """Time to think, in seconds. In an open loop users do not think: ``arrive`` waits."""
        options = self.environment.parsed_options
        return random.expovariate(1 / options.think_s) if options.think_s and not options.rate else 0.0

    @task
    def arrive(self) -> None:
        """One request.

        Locust's users wait for their answer before they ask again, so a slow server is asked less: a closed loop, whose latencies flatter it. In
        an open loop each user draws the times of a Poisson process beforehand, ``rate / users`` a second, and sends at these times whether
        or not earlier requests were answered; a request that the load generator itself sent late is counted from when it was due.
        """
        options, users = self.environment.parsed_options, max(1, self.environment.runner.target_user_count)
        if not options.rate:
            self.ask()
            return
        self._next += self._arrivals.expovariate(options.rate / users)
        gevent.sleep(max(0.0, self._next - time.perf_counter()))
        asking = gevent.spawn(self.ask, self._next)
        self._open.add(asking)
        asking.link(self._open.discard)

    def ask(self, due: float | None = None) -> None:
        """Send this kind's request and read its answer."""
        raise NotImplementedError

    def chat(self, messages: list[dict[str, str]], due: float | None = None, **further: Any) -> str:
        """Send a chat; its text."""
        return send(self, Request("/v1/chat/completions", {"messages": messages, **further}), due)


class ChatUser(StreamingUser):
    """Asks one question after the other."""

    def ask(self, due: float | None = None) -> None:
        """One question."""
        self.chat([{"role": "user", "content": random.choice(PROMPTS)}], due)


class CompletionUser(StreamingUser):
    """Plain completions."""

    def ask(self, due: float | None = None) -> None:
        """One prompt."""
        send(self, Request("/v1/completions", {"prompt": random.choice(PROMPTS)}), due)


class SageMakerUser(StreamingUser):
    """SageMaker Runtime's InvokeEndpoint: the whole answer at once."""

    operation: ClassVar[str] = "invocations"
    streams: ClassVar[bool] = False

    def ask(self, due: float | None = None) -> None:
        """One question."""
        body = {"messages": [{"role": "user", "content": random.choice(PROMPTS)}]}
        path = f"/endpoints/{self.environment.parsed_options.endpoint}/{self.operation}"
        send(self, Request(path, body, stream=self.streams, event_stream=self.streams), due)


class SageMakerStreamUser(SageMakerUser):
    """SageMaker Runtime's InvokeEndpointWithResponseStream: AWS's event stream."""

    operation = "invocations-response-stream"
    streams = True


class ConversationUser(StreamingUser):
    """A conversation whose context grows turn by turn."""

    turns: ClassVar[int] = 4

    def ask(self, due: float | None = None) -> None:
        """One conversation."""
        messages: list[dict[str, str]] = [{"role": "system", "content": "You are a helpful assistant. Answer in short paragraphs."}]
        for _ in range(self.turns):
            messages.append({"role": "user", "content": random.choice(PROMPTS)})
            messages.append({"role": "assistant", "content": self.chat(messages, due)})
            due = None


class DocumentUser(StreamingUser):
    """Long documents to summarize: pieces of Python's own modules."""

    characters: ClassVar[int] = 6000

    def ask(self, due: float | None = None) -> None:
        """One document."""
        text = inspect.getsource(random.choice((textwrap, inspect, random)))
        start = random.randrange(len(text) - self.characters)
        self.chat([{"role": "user", "content": f"Summarize this text in three sentences:\n\n{text[start : start + self.characters]}"}], due)


class JsonUser(StreamingUser):
    """Answers in the shape of a JSON schema."""

    def ask(self, due: float | None = None) -> None:
        """One object."""
        wanted = {"type": "json_schema", "json_schema": {"name": "person", "schema": PERSON}}
        self.chat([{"role": "user", "content": "Invent a person: name, age and city, as JSON."}], due, response_format=wanted)


class CodeUser(StreamingUser):
    """Long answers of code."""

    def ask(self, due: float | None = None) -> None:
        """One program."""
        thing = random.choice(("a queue", "a binary tree", "a bank account", "a matrix", "a text editor's undo history"))
        self.chat([{"role": "user", "content": f"Write a complete, commented Python class for {thing}, with tests."}], due)
