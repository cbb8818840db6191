"""OpenAI's error object, for every error the gateway itself makes."""

from fastapi.responses import JSONResponse
from pydantic import ValidationError

from app.endpoint import EndpointError

_STATUS = {"exists": 409, "not_found": 404, "not_ready": 503, "invalid": 400}


def error_response(status: int, message: str, parameter: str | None = None, headers: dict[str, str] | None = None) -> JSONResponse:
    """``{"error": {...}}`` as OpenAI's API reference describes it."""
    kinds = {400: "invalid_request_error", 404: "not_found_error", 409: "conflict_error", 429: "rate_limit_error"}
    error = {"message": message, "type": kinds.get(status, "server_error"), "param": parameter, "code": status}
    return JSONResponse({"error": error}, status_code=status, headers=headers)


def endpoint_error_response(error: EndpointError) -> JSONResponse:
    """The response to a request about an endpoint that cannot be met."""
    headers = {"Retry-After": "5"} if error.kind == "not_ready" else None
    return error_response(_STATUS[error.kind], error.message, error.parameter, headers)


def validation_error_response(error: ValidationError) -> JSONResponse:
    """The response to a body that does not validate: names the first field and what is wrong with it."""
    first = error.errors()[0]
    parameter = ".".join(str(part) for part in first["loc"]) or None
    return error_response(400, f"{parameter}: {first['msg']}" if parameter else first["msg"], parameter)
