"""SageMaker Runtime: what InvokeEndpoint and InvokeEndpointWithResponseStream take and answer.

Routes, headers and errors: the Amazon SageMaker Runtime API Reference.
"""

from collections.abc import AsyncIterator, Mapping
from typing import Any

from fastapi.responses import JSONResponse, Response, StreamingResponse

from app.bodies import read_object
from app.endpoint import EndpointError
from app.sagemaker import event_stream
from deployments.answer import AnswerStart
from deployments.resume import Task

VARIANT = "x-Amzn-Invoked-Production-Variant"
ATTRIBUTES = "X-Amzn-SageMaker-Custom-Attributes"
_ERRORS = {
    "invalid": (400, "ValidationError"),
    "not_found": (400, "ValidationError"),
    "exists": (400, "ValidationError"),
    "not_ready": (429, "ModelNotReadyException"),
    "busy": (503, "ServiceUnavailable"),
    "lost": (503, "ServiceUnavailable"),
    "late": (503, "ServiceUnavailable"),
    "refused": (400, "ValidationError"),
}


def payload(body: bytes, headers: Mapping[str, str], endpoint: str) -> tuple[Task, dict[str, Any]]:
    """The task (``chat`` or ``completions``) a payload asks for, and the request vLLM gets.

    Raises:
        EndpointError: the payload is none of vLLM's container.
    """
    kind = headers.get("content-type", "application/json").partition(";")[0].strip()
    if kind not in ("application/json", "application/octet-stream", ""):
        raise EndpointError("invalid", f"ContentType: {kind!r} is not served; send application/json")
    try:
        request = read_object(body)
    except ValueError as error:
        raise EndpointError("invalid", f"Body: {error}") from None
    if "messages" not in request and "prompt" not in request:
        raise EndpointError("invalid", "Body: give messages (chat) or prompt (completion)")
    return "chat" if "messages" in request else "completions", {**request, "model": endpoint}


def check_variant(headers: Mapping[str, str], variant: str) -> None:
    """Refuse a request for another variant than the endpoint has.

    Raises:
        EndpointError: it names another one.
    """
    wanted = headers.get("x-amzn-sagemaker-target-variant")
    if wanted and wanted != variant:
        raise EndpointError("invalid", f"TargetVariant: the endpoint has no variant {wanted!r}, it has {variant!r}")


def answer_headers(headers: Mapping[str, str], variant: str) -> dict[str, str]:
    """Headers of every answer: the variant that answered, and the client's own attributes."""
    attributes = headers.get(ATTRIBUTES.lower())
    return {VARIANT: variant, **({ATTRIBUTES: attributes} if attributes else {})}


def error(problem: EndpointError) -> Response:
    """The error response, by which SDKs tell their exceptions apart."""
    status, name = _ERRORS[problem.kind]
    again = {"Retry-After": str(problem.retry_after)} if problem.retry_after else {}
    return JSONResponse({"Message": problem.message, "message": problem.message}, status, headers={"x-amzn-errortype": name, **again})


def model_error(status: int, body: str) -> Response:
    """``ModelError``: the model itself refused, with its own status and words."""
    told = {"Message": f"Received client error ({status}) from primary with message \"{body}\"", "OriginalStatusCode": status,
            "OriginalMessage": body, "LogStreamArn": ""}  # fmt: skip
    return JSONResponse(told, 424, headers={"x-amzn-errortype": "ModelError"})


async def whole(start: AnswerStart, stream: AsyncIterator[str], headers: dict[str, str]) -> Response:
    """The answer to InvokeEndpoint: all of it, also where the payload asked for a stream."""
    text = "".join([part async for part in stream])
    if start.status >= 400:
        return model_error(start.status, text)
    return Response(text, media_type="text/event-stream" if start.streaming else "application/json", headers=headers)


async def streamed(start: AnswerStart, stream: AsyncIterator[str], headers: dict[str, str]) -> Response:
    """The answer to InvokeEndpointWithResponseStream: a payload part for each event as it comes."""
    if start.status >= 400:
        return model_error(start.status, "".join([part async for part in stream]))
    kind = "text/event-stream" if start.streaming else "application/json"
    return StreamingResponse(_parts(stream), media_type=event_stream.MEDIA_TYPE, headers={**headers, "X-Amzn-SageMaker-Content-Type": kind})


async def _parts(stream: AsyncIterator[str]) -> AsyncIterator[bytes]:
    try:
        async for part in stream:
            yield event_stream.payload_part(part.encode())
    except EndpointError as problem:
        yield event_stream.model_stream_error(problem.message)
