"""An endpoint as a client sees it, and what has to be done next to bring Serve to what is registered."""

from datetime import UTC, datetime
from enum import StrEnum
from itertools import takewhile
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from deployments.spec import EndpointSpec

_TRACEBACK = ("Traceback", "File ", "ray::", "The above exception", "During handling", "For further information", "^")


class Status(StrEnum):
    """SageMaker's words for an endpoint's state."""

    CREATING = "Creating"
    IN_SERVICE = "InService"
    UPDATING = "Updating"
    FAILED = "Failed"
    DELETING = "Deleting"


class Endpoint(BaseModel):
    """A registered endpoint."""

    model_config = ConfigDict(frozen=True)

    spec: EndpointSpec = Field(description="What is to run.")
    status: Status = Field(default=Status.CREATING, description="State.")
    failure_reason: str | None = Field(default=None, description="Why it failed.")
    deployed: bool = Field(default=False, description="Whether Serve was given this spec.")
    declared: bool = Field(default=False, description="Whether it comes from the application's own arguments.")
    created: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When it was created.")
    modified: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When its state last changed.")

    @property
    def name(self) -> str:
        return self.spec.name

    def into(self, status: Status, reason: str | None = None) -> "Endpoint":
        """This endpoint in another state."""
        return self.model_copy(update={"status": status, "failure_reason": reason, "modified": datetime.now(UTC)})


class EndpointError(Exception):
    """A request about endpoints that cannot be met.

    Args:
        kind: ``exists``, ``not_found``, ``not_ready`` or ``invalid``.
        message: what is wrong and what would do.
        parameter: the field at fault.
    """

    def __init__(self, kind: Literal["exists", "not_found", "not_ready", "invalid"], message: str, parameter: str | None = None) -> None:
        super().__init__(kind, message, parameter)
        self.kind, self.message, self.parameter = kind, message, parameter


class Step(NamedTuple):
    """What to do next about an endpoint: a new state, and something to do to its Serve application."""

    status: Status | None
    action: Literal["deploy", "delete", "forget"] | None = None
    reason: str | None = None


def next_step(endpoint: Endpoint, application: str | None, message: str) -> Step:
    """Compare a registered endpoint with Serve's word for its application.

    Args:
        endpoint: what is registered.
        application: Serve's application status, None when there is no such application.
        message: Serve's message about it.
    """
    match endpoint.status:
        case Status.DELETING:
            return Step(None, "forget") if application is None else Step(None, None if application == "DELETING" else "delete")
        case Status.FAILED:
            return Step(None, "delete" if application not in (None, "DELETING") else None)
        case Status.CREATING | Status.UPDATING:
            if application is None or not endpoint.deployed:
                return Step(None, "deploy")
            if application == "RUNNING":
                return Step(Status.IN_SERVICE)
            if application == "DEPLOY_FAILED":
                return Step(Status.FAILED, "delete", failure_reason(message))
        case Status.IN_SERVICE:
            if application is None:  # Ray or Serve was restarted
                return Step(Status.CREATING, "deploy")
    return Step(None)


def failure_reason(message: str) -> str:
    """The sentence that matters in Serve's message, which ends with a traceback."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    errors = [line for line in lines if any(mark in line for mark in ("Error:", "Exception:"))]
    # Ray chains causes and prints the outermost last; vLLM's own reason is the innermost that is no wrapper.
    for line in reversed(errors):
        if "RayTaskError" not in line and "ray::" not in line:
            # What follows is the error's own further lines, such as pydantic's.
            further = takewhile(lambda after: not after.startswith(_TRACEBACK), lines[lines.index(line) :])
            return " ".join(further)[:600]
    return lines[-1] if lines else "the application failed to start"
