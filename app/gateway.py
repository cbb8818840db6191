"""The gateway: one Serve application at ``/`` that finds an endpoint's application by name and passes requests on."""

from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response, StreamingResponse
from ray import serve
from ray.serve.exceptions import DeploymentUnavailableError, RayServeException
from ray.serve.handle import DeploymentHandle

from app import bodies, listening, playground
from app.authentication import Authentication
from app.call import read_call
from app.catalog import DeployRequest, load_cards
from app.counting import Counting
from app.dispatch import LOST, Dispatcher
from app.endpoint import Endpoint, EndpointError, Status
from app.errors import RESPONSES, error_event
from app.locations import within_roots
from app.sagemaker import runtime
from app.sagemaker.api import JSON11, ApiError, json11_error
from app.view import EndpointView
from deployments.answer import AnswerStart
from deployments.builder import LOGGING
from deployments.figures import together
from deployments.resume import Task

FIGURES_S = 5.0  # what every replica has to tell its figures

_ANSWERING = (Status.IN_SERVICE, Status.UPDATING)

api = FastAPI(title="peagle-serve", description="Large language models served with P-EAGLE, behind OpenAI's API.")
api.add_middleware(Authentication)
api.add_middleware(Counting)
api.include_router(playground.router)
for refused, respond in RESPONSES.items():
    api.add_exception_handler(refused, respond)


# Serve pickles the FastAPI application where the class is decorated: what its routes use must stand above it.


async def _json(request: Request) -> dict[str, Any]:
    try:
        return bodies.read_object(await request.body())
    except ValueError as error:
        raise EndpointError("invalid", str(error)) from None


async def _events(parts: AsyncIterator[str]) -> AsyncIterator[str]:
    try:
        async for part in parts:
            yield part
    except EndpointError as error:
        yield error_event(error)


def _model(endpoint: Endpoint) -> dict[str, Any]:
    return {"id": endpoint.name, "object": "model", "created": int(endpoint.created.timestamp()), "owned_by": "peagle-serve"}


@serve.deployment(name="Gateway", num_replicas=2, max_ongoing_requests=4096, ray_actor_options={"num_cpus": 0}, logging_config=LOGGING)
@serve.ingress(api)
class Gateway:
    """Stateless; every replica asks the manager which endpoints there are."""

    def __init__(self, manager: DeploymentHandle) -> None:
        listening.check(listening.host())
        self._manager = manager
        self._view = EndpointView(self._ask)
        self._handles: dict[str, DeploymentHandle] = {}
        self._dispatcher = Dispatcher(self._found, self._refuse)

    async def _ask(self, method: str, *arguments: Any) -> Any:
        """Call the manager.

        Raises:
            EndpointError: its own, or that it is being replaced.
            ApiError: its own.
        """
        try:
            return await getattr(self._manager, method).remote(*arguments)
        except (EndpointError, ApiError):
            raise
        except LOST:
            raise EndpointError("lost", "the endpoint manager is being replaced; try again") from None

    async def _serving(self, name: Any) -> Endpoint:
        """The endpoint called ``name``, which can answer.

        Raises:
            EndpointError: there is none, or it is not in service.
        """
        if not isinstance(name, str) or not name:
            raise EndpointError("invalid", "model: name the endpoint to answer, a string", "model")
        endpoint = (await self._view.get()).get(name)
        if endpoint is None or endpoint.status not in _ANSWERING:
            endpoint = (await self._view.get(fresh=True)).get(name)  # never refuse on an old view
        if endpoint is None:
            known = ", ".join(self._view.known) or "none yet"
            raise EndpointError("not_found", f"model: endpoint {name!r} does not exist; there are: {known}", "model")
        if endpoint.status not in _ANSWERING:
            why = f": {endpoint.failure_reason}" if endpoint.failure_reason else ""
            raise EndpointError("not_ready", f"model: endpoint {name!r} is {endpoint.status}{why}", "model")
        return endpoint

    async def _found(self, name: Any) -> tuple[Endpoint, DeploymentHandle]:
        """The endpoint called ``name``, which can answer, and its application's handle.

        Raises:
            EndpointError: there is none, or it is not in service.
        """
        endpoint = await self._serving(name)
        try:
            return endpoint, self._handle(endpoint)
        except RayServeException:  # deleted, or updated, since the view was taken
            self._view.forget()
            endpoint = await self._serving(name)
        try:
            return endpoint, self._handle(endpoint)
        except RayServeException:
            raise EndpointError("not_ready", f"model: endpoint {name!r} is being replaced", "model") from None

    def _handle(self, endpoint: Endpoint) -> DeploymentHandle:
        # Asking Serve for a handle blocks on its controller: once for each application.
        if endpoint.application not in self._handles:
            applications = {one.application for one in self._view.known.values()}
            self._handles = {name: handle for name, handle in self._handles.items() if name in applications}
            self._handles[endpoint.application] = serve.get_app_handle(endpoint.application)
        return self._handles[endpoint.application]

    async def _refuse(self, name: str, digest: str) -> None:
        await self._ask("refuse", name, digest)
        self._view.forget()

    def _note(self, request: Request, name: Any) -> None:
        """Tell the metrics which endpoint a request is for; names clients make up stay out of them."""
        if isinstance(name, str) and name in self._view.known:
            request.state.endpoint = name

    async def _answer(self, task: Task, request: Request) -> Response:
        body = await _json(request)
        call = read_call(task, body, request.headers)
        self._note(request, body.get("model"))
        start, parts = await self._dispatcher.open(body.get("model"), call)
        if start.streaming:
            return StreamingResponse(_events(parts), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})
        return Response("".join([part async for part in parts]), start.status, media_type="application/json")

    @api.post("/v1/chat/completions", openapi_extra=bodies.CHAT)
    async def chat_completions(self, request: Request) -> Response:
        """OpenAI's chat completions; ``model`` is the endpoint."""
        return await self._answer("chat", request)

    @api.post("/v1/completions", openapi_extra=bodies.COMPLETION)
    async def completions(self, request: Request) -> Response:
        """OpenAI's completions; ``model`` is the endpoint."""
        return await self._answer("completions", request)

    @api.get("/v1/models")
    async def models(self) -> dict[str, Any]:
        """The endpoints in service."""
        served = [_model(endpoint) for endpoint in (await self._view.get()).values() if endpoint.status is Status.IN_SERVICE]
        return {"object": "list", "data": served}

    @api.get("/v1/models/{name}")
    async def model(self, name: str) -> Response:
        """One endpoint in service."""
        endpoint = (await self._view.get(fresh=True)).get(name)
        if endpoint is None or endpoint.status is not Status.IN_SERVICE:
            raise EndpointError("not_found", f"model {name!r} does not exist or is not in service", "model")
        return JSONResponse(_model(endpoint))

    @api.get("/ready")
    async def ready(self) -> Response:
        """Readiness: 200 while an endpoint is in service, 503 before. (``/-/healthz`` tells liveness.)"""
        statuses = {endpoint.name: str(endpoint.status) for endpoint in (await self._view.get()).values()}
        in_service = any(status == Status.IN_SERVICE for status in statuses.values())
        return JSONResponse({"ready": in_service, "endpoints": statuses}, 200 if in_service else 503)

    @api.get("/v1/catalog")
    async def catalog(self) -> list[dict[str, Any]]:
        """The catalog's cards, each with the environment SageMaker would show for it."""
        return [{**card.model_dump(), "environment": card.environment_preset()} for card in load_cards().values()]

    @api.post("/v1/endpoints", status_code=202, openapi_extra=bodies.body(DeployRequest.model_json_schema()))
    async def deploy(self, request: Request) -> Response:
        """Deploy a model of the catalog; the answer is the endpoint, still ``Creating``."""
        spec = within_roots(DeployRequest.model_validate(await _json(request)).to_spec())
        endpoint = await self._ask("create", spec)
        self._view.forget()
        return JSONResponse(endpoint.model_dump(mode="json"), 202)

    @api.get("/v1/endpoints")
    async def list_endpoints(self) -> list[dict[str, Any]]:
        """Every endpoint."""
        return [endpoint.model_dump(mode="json") for endpoint in await self._ask("list")]

    @api.get("/v1/endpoints/{name}")
    async def describe(self, name: str) -> Response:
        """One endpoint."""
        return JSONResponse((await self._ask("describe", name)).model_dump(mode="json"))

    @api.delete("/v1/endpoints/{name}", status_code=202)
    async def delete(self, name: str) -> Response:
        """Start deleting an endpoint."""
        endpoint = await self._ask("delete", name)
        self._view.forget()
        return JSONResponse(endpoint.model_dump(mode="json"), 202)

    @api.get("/v1/endpoints/{name}/stats")
    async def stats(self, name: str) -> Response:
        """An endpoint's figures, all its replicas together: requests running and waiting, tokens, KV-cache use, acceptance.

        ``queued``: requests that wait at the gateway that answers.
        """
        _, handle = await self._found(name)
        try:
            each = await handle.broadcast("figures").results_async(timeout_s=FIGURES_S)
        except DeploymentUnavailableError:  # it has no replica now
            each = []
        except TimeoutError:
            raise EndpointError("not_ready", f"endpoint {name!r}: a replica did not tell its figures within {FIGURES_S:g} s", "name") from None
        return JSONResponse({**together(each).model_dump(), "queued": self._dispatcher.waiting(name)})

    @api.post("/", openapi_extra=bodies.ANY)
    async def control_plane(self, request: Request) -> Response:
        """SageMaker's control plane and Application Auto Scaling, JSON 1.1; ``X-Amz-Target`` names the operation."""
        try:
            body = bodies.read_object(await request.body() or b"{}")
            answer = await self._ask("sagemaker", request.headers.get("x-amz-target", ""), body)
        except ValueError as error:
            return json11_error(ApiError("SerializationException", str(error)))
        except ApiError as error:
            return json11_error(error)
        except EndpointError as error:
            return runtime.error(error)
        self._view.forget()
        return JSONResponse(answer, media_type=JSON11)

    async def _invoked(self, name: str, request: Request) -> tuple[AnswerStart, AsyncIterator[str], dict[str, str]]:
        task, body = runtime.payload(await request.body(), request.headers, name)
        endpoint = await self._serving(name)
        runtime.check_variant(request.headers, endpoint.variant)
        call = read_call(task, body, request.headers)
        self._note(request, name)
        start, parts = await self._dispatcher.open(name, call)
        return start, parts, runtime.answer_headers(request.headers, endpoint.variant)

    @api.post("/endpoints/{name}/invocations", openapi_extra=bodies.INVOCATION)
    async def invoke(self, name: str, request: Request) -> Response:
        """SageMaker Runtime's InvokeEndpoint."""
        try:
            return await runtime.whole(*await self._invoked(name, request))
        except EndpointError as error:
            return runtime.error(error)

    @api.post("/endpoints/{name}/invocations-response-stream", openapi_extra=bodies.INVOCATION)
    async def invoke_with_response_stream(self, name: str, request: Request) -> Response:
        """SageMaker Runtime's InvokeEndpointWithResponseStream."""
        try:
            return await runtime.streamed(*await self._invoked(name, request))
        except EndpointError as error:
            return runtime.error(error)

    @api.get("/endpoints/{name}/ping")
    async def ping(self, name: str) -> Response:
        """200 while the endpoint is in service, as a SageMaker container's own ``/ping``."""
        try:
            await self._serving(name)
        except EndpointError as error:
            return runtime.error(error)
        return Response(status_code=200)
