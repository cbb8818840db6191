"""OpenAI's error object, for every error the gateway itself makes."""

import json

from fastapi.responses import JSONResponse
from pydantic import ValidationError

from app.endpoint import EndpointError

_STATUS = {"exists": 409, "not_found": 404, "not_ready": 503, "invalid": 400, "busy": 429, "lost": 503}


def error_response(status: int, message: str, parameter: str | None = None, headers: dict[str, str] | None = None) -> JSONResponse:
    """``{"error": {...}}`` as OpenAI's API reference describes it."""
    return JSONResponse(error_object(status, message, parameter), status_code=status, headers=headers)


def error_object(status: int, message: str, parameter: str | None = None) -> dict[str, dict[str, object]]:
    """OpenAI's error object alone, as it also stands in a stream."""
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        403: "permission_error",
        404: "not_found_error",
        409: "conflict_error",
        429: "rate_limit_error",
    }
    return {"error": {"message": message, "type": kinds.get(status, "server_error"), "param": parameter, "code": status}}


def error_event(error: EndpointError) -> str:
    """The server-sent event that tells a client its answer broke off."""
    return f"data: {json.dumps(error_object(_STATUS[error.kind], error.message, error.parameter))}\n\n"


def endpoint_error_response(error: EndpointError) -> JSONResponse:
    """The response to a request about an endpoint that cannot be met."""
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
    return error_response(_STATUS[error.kind], error.message, error.parameter, headers)


def validation_error_response(error: ValidationError) -> JSONResponse:
    """The response to a body that does not validate: names the first field and what is wrong with it."""
    first = error.errors()[0]
    parameter = ".".join(str(part) for part in first["loc"]) or None
    return error_response(400, f"{parameter}: {first['msg']}" if parameter else first["msg"], parameter)
