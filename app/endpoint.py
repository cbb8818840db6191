"""An endpoint as a client sees it, and what has to be done next to bring Serve to what is registered."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from itertools import takewhile
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field

from deployments.spec import EndpointSpec, application_name

_TRACEBACK = ("Traceback", "File ", "ray::", "The above exception", "During handling", "For further information", "^")


class Status(StrEnum):
    """SageMaker's words for an endpoint's state."""

    CREATING = "Creating"
    IN_SERVICE = "InService"
    UPDATING = "Updating"
    FAILED = "Failed"
    DELETING = "Deleting"


class Successor(BaseModel):
    """What an endpoint is being updated to: it starts beside what serves, and takes over once it is in service."""

    model_config = ConfigDict(frozen=True)

    spec: EndpointSpec = Field(description="What is to run.")
    version: int = Field(description="Version of its Serve application.")
    config: str | None = Field(default=None, description="SageMaker endpoint config it comes from.")
    variant: str = Field(default="AllTraffic", description="Name of its production variant.")
    deployed: bool = Field(default=False, description="Whether Serve was given this spec.")


class Endpoint(BaseModel):
    """A registered endpoint."""

    model_config = ConfigDict(frozen=True)

    spec: EndpointSpec = Field(description="What serves, or is to.")
    version: int = Field(default=0, description="Version of the Serve application that serves.")
    latest: int = Field(default=0, description="Highest version given out; a failed update's is not used again.")
    successor: Successor | None = Field(default=None, description="What it is being updated to.")
    config: str | None = Field(default=None, description="SageMaker endpoint config it comes from.")
    variant: str = Field(default="AllTraffic", description="Name of its production variant; SageMaker's own default.")
    status: Status = Field(default=Status.CREATING, description="State.")
    failure_reason: str | None = Field(default=None, description="Why it, or its last update, failed.")
    deployed: bool = Field(default=False, description="Whether Serve was given this spec.")
    running: int = Field(default=0, description="Replicas that run.")
    head_failure: str | None = Field(default=None, description="Why it serves without its head, where it does.")
    refused: tuple[str, ...] = Field(default=(), description="Digests of requests that two of its engines died of.")
    declared: EndpointSpec | None = Field(default=None, description="What the application's own arguments said, where they name it.")
    created: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When it was created.")
    modified: datetime = Field(default_factory=lambda: datetime.now(UTC), description="When its state last changed.")

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def application(self) -> str:
        """The Serve application that serves."""
        return application_name(self.name, self.version)

    @staticmethod
    def declared_as(spec: EndpointSpec, known: "Endpoint | None") -> "Endpoint":
        """The endpoint of the application's own arguments. What clients made of it since these last said the same stands.

        Args:
            spec: what the arguments say.
            known: the endpoint of that name, if there is one.
        """
        if known is None:
            return Endpoint(spec=spec, declared=spec)
        if known.status is Status.FAILED or spec not in (known.spec, known.declared):
            serving = known.status is Status.IN_SERVICE
            known = known.updated_to(spec) if serving else Endpoint(spec=spec, version=known.latest + 1, latest=known.latest + 1)
        return known.model_copy(update={"declared": spec})

    def updated_to(self, spec: EndpointSpec, config: str | None = None, variant: str = "AllTraffic") -> "Endpoint":
        """This endpoint, being updated: what serves goes on until the successor is in service."""
        following = Successor(spec=spec, version=self.latest + 1, config=config, variant=variant)
        if self.status is Status.FAILED:  # nothing serves
            return self.model_copy(update={**dict(following), "successor": None, "latest": following.version}).into(Status.CREATING)
        return self.model_copy(update={"successor": following, "latest": following.version}).into(Status.UPDATING)

    def scaled_to(self, spec: EndpointSpec) -> "Endpoint":
        """This endpoint with other replicas: the same application is given to Serve again."""
        return self.model_copy(update={"spec": spec, "deployed": False}).into(Status.UPDATING)

    def succeeded(self) -> "Endpoint":
        """This endpoint after its successor took over."""
        if self.successor is None:
            return self.into(Status.IN_SERVICE)
        return self.model_copy(update={**dict(self.successor), "deployed": True, "successor": None}).into(Status.IN_SERVICE)

    def rolled_back(self, reason: str) -> "Endpoint":
        """This endpoint after its update failed: what served goes on serving."""
        return self.model_copy(update={"successor": None}).into(Status.IN_SERVICE, f"the update failed and was rolled back: {reason}")

    def into(self, status: Status, reason: str | None = None) -> "Endpoint":
        """This endpoint in another state."""
        return self.model_copy(update={"status": status, "failure_reason": reason, "modified": datetime.now(UTC)})


Kind = Literal["exists", "not_found", "not_ready", "invalid", "busy", "lost", "late", "refused"]


class EndpointError(Exception):
    """A request about endpoints that cannot be met.

    Args:
        kind: ``exists``, ``not_found``, ``not_ready``, ``invalid``, ``busy`` (as much waits as may), ``lost`` (it failed while answering),
            ``late`` (the deadline passed) or ``refused`` (engines died of it).
        message: what is wrong and what would do.
        parameter: the field at fault.
        retry_after: seconds after which trying again may help; None: the kind's own.
    """

    def __init__(self, kind: Kind, message: str, parameter: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(kind, message, parameter, retry_after)
        self.kind, self.message, self.parameter = kind, message, parameter
        self.retry_after = retry_after or {"not_ready": 5, "busy": 1, "lost": 5}.get(kind)


class Application(NamedTuple):
    """Serve's word for one application: its status, its message about it, and how many replicas run."""

    status: str
    message: str = ""
    running: int = 0


class Step(NamedTuple):
    """What to do next about an endpoint: what to register, a Serve application to deploy, others to delete."""

    endpoint: Endpoint | None
    deploy: int | None = None
    delete: tuple[int, ...] = ()


def next_step(endpoint: Endpoint, applications: Mapping[int, Application]) -> Step:
    """Compare a registered endpoint with Serve's word for its applications.

    Args:
        endpoint: what is registered.
        applications: the endpoint's Serve applications, by version.

    Returns:
        The step; its endpoint is None once nothing is left of a deleted one.
    """
    serving, successor = applications.get(endpoint.version), endpoint.successor
    wanted = {endpoint.version, *([successor.version] if successor else [])}
    if endpoint.status in (Status.DELETING, Status.FAILED):
        wanted = set()
    unwanted = tuple(version for version, one in applications.items() if version not in wanted and one.status != "DELETING")
    match endpoint.status:
        case Status.DELETING:
            return Step(endpoint if applications else None, delete=unwanted)
        case Status.FAILED:
            return Step(endpoint, delete=unwanted)
        case Status.IN_SERVICE:
            if serving is None:  # Ray or Serve was restarted
                return Step(endpoint.into(Status.CREATING), deploy=endpoint.version, delete=unwanted)
        case Status.UPDATING if successor is not None:
            if serving is None:  # restarted in the middle of an update: first what served
                return Step(endpoint, deploy=endpoint.version, delete=unwanted)
            step = _start(successor.deployed, applications.get(successor.version))
            if step == "deploy":
                return Step(endpoint, deploy=successor.version, delete=unwanted)
            if step == "running":
                return Step(endpoint.succeeded(), delete=unwanted)  # what served goes a pass later, when every gateway knows
            if step == "failed":
                return Step(endpoint.rolled_back(failure_reason(applications[successor.version].message)), delete=(*unwanted, successor.version))
        case Status.CREATING | Status.UPDATING:
            step = _start(endpoint.deployed, serving)
            if step == "deploy":
                return Step(endpoint, deploy=endpoint.version, delete=unwanted)
            if step == "running":
                return Step(endpoint.into(Status.IN_SERVICE), delete=unwanted)
            if step == "failed" and serving:
                return Step(endpoint.into(Status.FAILED, failure_reason(serving.message)), delete=(*unwanted, endpoint.version))
    return Step(endpoint, delete=unwanted)


def _start(deployed: bool, application: Application | None) -> Literal["deploy", "running", "failed", "waiting"]:
    if application is None or (not deployed and application.status != "DELETING"):
        return "deploy"
    if application.status == "RUNNING":
        return "running"
    return "failed" if application.status == "DEPLOY_FAILED" else "waiting"


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
