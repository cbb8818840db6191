"""A Locust user that asks each prompt of a file once: fixed work instead of fixed time."""

import json
from collections import deque
from pathlib import Path
from typing import Any

import gevent
from locust import events
from locust.argument_parser import LocustArgumentParser
from locust.exception import StopUser

from loadtests.users import StreamingUser

_prompts: deque[str] = deque()
_idle: set[int] = set()


@events.init_command_line_parser.add_listener
def _options(parser: LocustArgumentParser) -> None:
    parser.add_argument("--prompts", required=True, help="JSONL file; `prompt` in each row.")


@events.test_start.add_listener
def _read(environment: Any, **_: Any) -> None:
    rows = Path(environment.parsed_options.prompts).read_text().splitlines()
    _prompts.extend(json.loads(row)["prompt"] for row in rows)


class DatasetUser(StreamingUser):
    """Takes the next prompt until there is none."""

    def ask(self, due: float | None = None) -> None:
        """One prompt."""
        if not _prompts:
            already = id(self) in _idle
            _idle.add(id(self))  # Locust's own count of users falls too late
            # Once: a second stop would kill a user that is waiting for what it has open.
            if not already and len(_idle) >= self.environment.runner.target_user_count:
                gevent.spawn(self.environment.runner.quit)  # which waits for what is open, this one included
            if due is None:
                raise StopUser
            return
        self.chat([{"role": "user", "content": _prompts.popleft()}], due)
