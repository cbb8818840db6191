"""A client's request to an endpoint, as the gateway has read it."""

import hashlib
import json
import uuid
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.endpoint import EndpointError
from deployments.resume import Task

REQUEST_ID = "X-Request-Id"
TIMEOUT = "X-Request-Timeout"
RESUME = "X-Peagle-Resume"


class Call(BaseModel):
    """One request for an answer."""

    model_config = ConfigDict(frozen=True)

    id: str = Field(description="The request's id, in logs and in the X-Request-Id header.")
    task: Task = Field(description="Chat or completion.")
    body: dict[str, Any] = Field(description="The request, for vLLM.")
    timeout_s: float | None = Field(default=None, gt=0, description="Seconds it may take; empty: the endpoint's.")
    resume: bool = Field(default=True, description="Whether its stream may go on at another replica.")

    @property
    def digest(self) -> str:
        """The same for every request that says the same."""
        return hashlib.sha256(json.dumps([self.task, self.body], sort_keys=True).encode()).hexdigest()[:32]


def read_call(task: Task, body: dict[str, Any], headers: Mapping[str, str]) -> Call:
    """A call from its body and headers.

    Raises:
        EndpointError: a header's value is none it can have.
    """
    timeout = headers.get(TIMEOUT.lower())
    try:
        timeout_s = None if timeout is None else float(timeout)
    except ValueError:
        timeout_s = -1.0
    if timeout_s is not None and not 0 < timeout_s < 1e6:
        raise EndpointError("invalid", f"{TIMEOUT}: {timeout!r} is no time; give seconds, such as 30", TIMEOUT)
    resume = headers.get(RESUME.lower(), "on")
    if resume not in ("on", "off"):
        raise EndpointError("invalid", f"{RESUME}: {resume!r} is neither on nor off", RESUME)
    return Call(id=headers.get(REQUEST_ID.lower()) or uuid.uuid4().hex, task=task, body=body, timeout_s=timeout_s, resume=resume == "on")
