"""The endpoint manager: the one writer of the registry, which keeps Serve running what is registered."""

import asyncio
import logging
from pathlib import Path

import ray
from ray import serve
from ray.serve import RunTarget

from app.endpoint import Endpoint, EndpointError, Status, next_step
from app.preflight import preflight
from app.registry import Registry
from deployments.builder import build_application
from deployments.spec import EndpointSpec

logger = logging.getLogger("ray.serve")
RECONCILE_S = 0.5


@serve.deployment(
    name="EndpointManager",
    num_replicas=1,
    max_ongoing_requests=1000,
    ray_actor_options={"num_cpus": 0},
    health_check_timeout_s=120,  # importing vLLM for the first deployment holds the interpreter for a while
)
class EndpointManager:
    """Creates, describes and deletes endpoints; each is a Serve application of its own."""

    def __init__(self, registry: str, declared: list[EndpointSpec]) -> None:
        self._registry = Registry(Path(registry))
        self._deploying: dict[str, asyncio.Task[None]] = {}
        self._building = asyncio.Lock()  # two threads importing vLLM for the first time see half of it
        self._declare(declared)
        self._loop = asyncio.get_running_loop().create_task(self._reconcile_forever())

    def _declare(self, declared: list[EndpointSpec]) -> None:
        names = {spec.name for spec in declared}
        for endpoint in self._registry.all():
            if endpoint.declared and endpoint.name not in names:
                self._registry.put(endpoint.into(Status.DELETING))
        for spec in declared:
            known = self._registry.get(spec.name)
            if known is None or known.spec != spec or known.status is Status.FAILED:
                serving = known is not None and known.status is Status.IN_SERVICE
                self._registry.put(Endpoint(spec=spec, declared=True, status=Status.UPDATING if serving else Status.CREATING))

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

    async def delete(self, name: str) -> Endpoint:
        """Start deleting ``name``; running requests are let finish.

        Raises:
            EndpointError: there is none.
        """
        endpoint = await self.describe(name)
        return endpoint if endpoint.status is Status.DELETING else self._registry.put(endpoint.into(Status.DELETING))

    async def check_health(self) -> None:
        """Serve's health check: the reconciling loop must be alive."""
        if self._loop.done():
            self._loop.result()

    async def _reconcile_forever(self) -> None:
        while True:
            try:
                await self._reconcile()
            except Exception:
                logger.exception("reconciling failed; trying again")
            await asyncio.sleep(RECONCILE_S)

    async def _reconcile(self) -> None:
        # Serve's word is older than what happened while it was asked: leave alone what was being deployed then.
        busy = set(self._deploying)
        applications = (await asyncio.to_thread(serve.status)).applications
        for name in [endpoint.name for endpoint in self._registry.all()]:
            endpoint = self._registry.get(name)  # anew, since awaiting below lets clients create and delete
            if endpoint is None or name in busy or name in self._deploying:
                continue
            application = applications.get(endpoint.spec.application)
            messages = [deployment.message for deployment in application.deployments.values()] if application else []
            step = next_step(endpoint, application.status.value if application else None, "\n".join(messages))
            if step.status is not None and step.status is not endpoint.status:
                endpoint = self._registry.put(endpoint.into(step.status, step.reason))
                logger.info("endpoint %s is %s%s", endpoint.name, step.status, f": {step.reason}" if step.reason else "")
            if step.action == "deploy":
                self._deploying[endpoint.name] = asyncio.create_task(self._deploy(endpoint))
            elif step.action == "delete":
                await asyncio.to_thread(serve.delete, endpoint.spec.application, False)
            elif step.action == "forget":
                self._registry.remove(endpoint.name)

    async def _deploy(self, endpoint: Endpoint) -> None:
        try:
            async with self._building:
                if reason := await asyncio.to_thread(preflight, endpoint.spec, ray.cluster_resources()):
                    self._fail(endpoint, reason)
                    return
                application = await asyncio.to_thread(build_application, endpoint.spec)
            target = RunTarget(target=application, name=endpoint.spec.application, route_prefix=None)
            await asyncio.to_thread(serve.run_many, [target], wait_for_applications_running=False)
            if (now := self._registry.get(endpoint.name)) is not None:
                self._registry.put(now.model_copy(update={"deployed": True}))
        except Exception as error:
            logger.exception("endpoint %s could not be deployed", endpoint.name)
            self._fail(endpoint, f"{type(error).__name__}: {error}")
        finally:
            del self._deploying[endpoint.name]

    def _fail(self, endpoint: Endpoint, reason: str) -> None:
        # A deletion asked for meanwhile must stand.
        if (now := self._registry.get(endpoint.name)) is not None and now.status is not Status.DELETING:
            self._registry.put(now.into(Status.FAILED, reason))
