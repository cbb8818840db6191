"""The endpoint manager: the one writer of the registry, which keeps Serve running what is registered."""

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import ray
from ray import serve
from ray.serve import RunTarget
from ray.serve.schema import ApplicationStatusOverview

from app.endpoint import Application, Endpoint, EndpointError, Status, Step, next_step
from app.metrics import EndpointStates
from app.preflight import head_problem, preflight
from app.registry import Registry
from app.sagemaker import control_plane
from deployments import arguments
from deployments.builder import LOGGING, build_application
from deployments.spec import EndpointSpec, application_name, application_version

logger = logging.getLogger("ray.serve")
RECONCILE_S = 0.5  # while an endpoint is on its way somewhere
WATCH_S = 2.0  # while none is: Serve's status costs its controller something
REFUSED_KEPT = 100
HAND_OVERS = 4  # times an application is given to Serve, whose controller may be being replaced
HAND_OVER_S = 60.0
STUCK_S = 60.0  # without a pass of the reconciling loop
LOOK_S, TELL_S = 0.05, 5.0  # how often the registry is looked at for gateways, and how long they wait while nothing changes

Revision = tuple[float, int]  # of the endpoints: when this manager began, and changes since


@serve.deployment(
    name="EndpointManager",
    num_replicas=1,
    max_ongoing_requests=1000,
    logging_config=LOGGING,
    # On the head: the registry is a file, and it must be the same one after a restart.
    ray_actor_options={"num_cpus": 0, "resources": {"node:__internal_head__": 0.001}},
    health_check_timeout_s=120,  # importing vLLM for the first deployment holds the interpreter for a while
)
class EndpointManager:
    """Creates, describes and deletes endpoints; each is a Serve application of its own."""

    def __init__(self, registry: str, declared: list[EndpointSpec]) -> None:
        self._registry, self._began = Registry(Path(registry)), time.time()
        self._deploying: dict[str, asyncio.Task[None]] = {}
        self._states = EndpointStates()
        self._building = asyncio.Lock()  # two threads importing vLLM for the first time see half of it
        self._declare(declared)
        self._passed = time.monotonic()
        self._loop = asyncio.get_running_loop().create_task(self._reconcile_forever())

    def _declare(self, declared: list[EndpointSpec]) -> None:
        names = {spec.name for spec in declared}
        for endpoint in self._registry.all():
            if endpoint.declared and endpoint.name not in names:
                self._registry.put(endpoint.into(Status.DELETING))
        for spec in declared:
            known = self._registry.get(spec.name)
            if (endpoint := Endpoint.declared_as(spec, known)) != known:
                self._registry.put(endpoint)

    async def create(self, spec: EndpointSpec) -> Endpoint:
        """Register an endpoint; it is deployed in the background.

        Raises:
            EndpointError: the name is taken.
        """
        if self._registry.get(spec.name) is not None:
            raise EndpointError("exists", f"endpoint {spec.name!r} exists already; delete it first or choose another name", "name")
        return self._registry.put(Endpoint(spec=spec))

    async def describe(self, name: str) -> Endpoint:
        """The endpoint called ``name``.

        Raises:
            EndpointError: there is none.
        """
        if (endpoint := self._registry.get(name)) is None:
            known = ", ".join(endpoint.name for endpoint in self._registry.all()) or "none yet"
            raise EndpointError("not_found", f"endpoint {name!r} does not exist; there are: {known}", "name")
        return endpoint

    async def list(self) -> list[Endpoint]:
        """Every endpoint, by name."""
        return self._registry.all()

    async def changes(self, seen: Revision | None) -> tuple[Revision, Sequence[Endpoint]]:
        """Every endpoint, as soon as they are at another revision than the one seen; after a while anyway."""
        deadline = time.monotonic() + TELL_S
        while seen == (now := (self._began, self._registry.changes)) and time.monotonic() < deadline:  # noqa: ASYNC110 (SQLite counts, it does not call)
            await asyncio.sleep(LOOK_S)
        return now, self._registry.all()

    async def delete(self, name: str) -> Endpoint:
        """Start deleting ``name``; running requests are let finish.

        Raises:
            EndpointError: there is none.
        """
        endpoint = await self.describe(name)
        return endpoint if endpoint.status is Status.DELETING else self._registry.put(endpoint.into(Status.DELETING))

    async def refuse(self, name: str, digest: str) -> None:
        """Keep a request that an endpoint's engines died of from it, from now on."""
        if (endpoint := self._registry.get(name)) is not None:
            kept = endpoint.refused[-(REFUSED_KEPT - 1) :]
            self._registry.put(endpoint.model_copy(update={"refused": (*kept, digest)}))

    async def sagemaker(self, target: str, request: dict[str, Any]) -> dict[str, Any]:
        """One operation of SageMaker's control plane.

        Raises:
            ApiError: it cannot be carried out.
        """
        if target.endswith(".CreateModel"):  # the one that reads vLLM's arguments
            async with self._building:
                await asyncio.to_thread(arguments.load)
        return control_plane.call(self._registry, target, request)

    async def check_health(self) -> None:
        """Serve's health check: the reconciling loop must be alive, and not wait for a controller that is gone."""
        if self._loop.done():
            self._loop.result()
        if (silent := time.monotonic() - self._passed) > STUCK_S:
            raise RuntimeError(f"the endpoints have not been reconciled for {silent:.0f} s")

    async def _reconcile_forever(self) -> None:
        while True:
            try:
                await self._reconcile()
            except Exception:
                logger.exception("reconciling failed; trying again")
            self._passed = time.monotonic()
            self._states.tell({one.name: str(one.status) for one in self._registry.all()})
            settled = all(one.status in (Status.IN_SERVICE, Status.FAILED) for one in self._registry.all())
            await asyncio.sleep(WATCH_S if settled else RECONCILE_S)

    async def _reconcile(self) -> None:
        # Serve's word is older than what happened while it was asked: leave alone what was being deployed then.
        busy = set(self._deploying)
        applications = _by_endpoint((await asyncio.to_thread(serve.status)).applications)
        for name in {endpoint.name for endpoint in self._registry.all()} | set(applications):
            endpoint = self._registry.get(name)  # anew, since awaiting below lets clients create and delete
            if name in busy or name in self._deploying:
                continue
            if endpoint is None:  # nothing registered: an application that outlived its endpoint
                step = Step(None, delete=tuple(applications[name])) if name in applications else Step(None)
            else:
                step = next_step(endpoint, applications.get(name, {}))
                if step.endpoint is None:
                    self._registry.remove(name)
                elif step.endpoint != endpoint:
                    self._registry.put(step.endpoint)
                    reason = step.endpoint.failure_reason
                    logger.info("endpoint %s is %s%s", name, step.endpoint.status, f": {reason}" if reason else "")
            serving = applications.get(name, {}).get(step.endpoint.version) if step.endpoint else None
            if step.endpoint and serving and serving.running != step.endpoint.running:
                self._registry.put(step.endpoint.model_copy(update={"running": serving.running}))
            if step.endpoint is not None and step.deploy is not None:
                self._deploying[name] = asyncio.create_task(self._deploy(step.endpoint, step.deploy))
            if step.endpoint and step.endpoint.status is Status.IN_SERVICE and step.endpoint != endpoint:
                await self._note_head(step.endpoint)
            for version in step.delete:
                await asyncio.to_thread(serve.delete, application_name(name, version), False)

    async def _note_head(self, endpoint: Endpoint) -> None:
        """Say in the endpoint's status that it serves without its head, where it does."""
        if endpoint.spec.on_head_failure != "fallback":
            return
        figures = await serve.get_app_handle(endpoint.application).figures.remote()
        if (now := self._registry.get(endpoint.name)) is not None and now.version == endpoint.version:
            self._registry.put(now.model_copy(update={"head_failure": figures.head_failure}))

    async def _deploy(self, endpoint: Endpoint, version: int) -> None:
        successor = endpoint.successor if endpoint.successor and endpoint.successor.version == version else None
        spec = successor.spec if successor else endpoint.spec
        try:
            async with self._building:
                if reason := await asyncio.to_thread(preflight, spec, ray.cluster_resources()):
                    self._fail(endpoint, version, reason)
                    return
                problem = await asyncio.to_thread(head_problem, spec)
                if problem and spec.on_head_failure == "fail":
                    self._fail(endpoint, version, problem)
                    return
                application = await asyncio.to_thread(build_application, spec.without_head() if problem else spec, problem)
            await self._hand_over(RunTarget(target=application, name=application_name(endpoint.name, version), route_prefix=None))
            if (now := self._registry.get(endpoint.name)) is not None:
                if now.successor and now.successor.version == version and now.successor.spec == spec:
                    self._registry.put(now.model_copy(update={"successor": now.successor.model_copy(update={"deployed": True})}))
                elif now.version == version and now.spec == spec:
                    self._registry.put(now.model_copy(update={"deployed": True}))
        except Exception as error:
            logger.exception("endpoint %s could not be deployed", endpoint.name)
            self._fail(endpoint, version, f"{type(error).__name__}: {error}")
        finally:
            del self._deploying[endpoint.name]

    async def _hand_over(self, target: RunTarget) -> None:
        """Give Serve an application to run; again where its controller was being replaced just then."""
        for attempt in range(1, HAND_OVERS + 1):
            try:
                async with asyncio.timeout(HAND_OVER_S):
                    await asyncio.to_thread(serve.run_many, [target], wait_for_applications_running=False)
                return
            except Exception:
                if attempt == HAND_OVERS:
                    raise
                logger.warning("Serve did not take %s; trying again", target.name, exc_info=True)
                await asyncio.sleep(attempt)

    def _fail(self, endpoint: Endpoint, version: int, reason: str) -> None:
        # A deletion or another update asked for meanwhile must stand.
        now = self._registry.get(endpoint.name)
        if now is None or now.status is Status.DELETING:
            return
        if now.successor and now.successor.version == version:
            self._registry.put(now.rolled_back(reason))
        elif now.version == version:
            self._registry.put(now.into(Status.FAILED, reason))


def _by_endpoint(applications: Mapping[str, ApplicationStatusOverview]) -> dict[str, dict[int, Application]]:
    """Serve's applications that run endpoints, by endpoint and version."""
    found: dict[str, dict[int, Application]] = defaultdict(dict)
    for name, one in applications.items():
        if (run := application_version(name)) is not None:
            messages = [deployment.message for deployment in one.deployments.values()]
            running = sum(deployment.replica_states.get("RUNNING", 0) for deployment in one.deployments.values())
            found[run[0]][run[1]] = Application(one.status.value, "\n".join(messages), running)
    return found
