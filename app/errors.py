"""OpenAI's error object, for every error the gateway itself makes."""

import json
from collections.abc import Awaitable, Callable

from fastapi import Request
from fastapi.responses import JSONResponse
from pydantic import ValidationError

from app.catalog import CatalogError
from app.endpoint import EndpointError
from app.locations import LocationError
from deployments.speculation import SpeculationError

_STATUS = {"exists": 409, "not_found": 404, "not_ready": 503, "invalid": 400, "busy": 429, "lost": 503, "late": 504, "refused": 400}


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


def first_fault(error: ValidationError) -> tuple[str, str]:
    """The first field at fault (empty: the whole), and what is wrong with it."""
    first = error.errors()[0]
    return ".".join(str(part) for part in first["loc"]), first["msg"]


async def _endpoint_error(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, EndpointError):
        raise error
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
    return error_response(_STATUS[error.kind], error.message, error.parameter, headers)


async def _validation_error(_: Request, error: Exception) -> JSONResponse:
    if not isinstance(error, ValidationError):
        raise error
    field, message = first_fault(error)
    return error_response(400, f"{field}: {message}" if field else message, field or None)


async def _speculation_error(_: Request, error: Exception) -> JSONResponse:
    return error_response(400, str(error), "speculative_config")


async def _location_error(_: Request, error: Exception) -> JSONResponse:
    return error_response(400, str(error), "head")


async def _catalog_error(_: Request, error: Exception) -> JSONResponse:
    return error_response(400, str(error), "model")


Handler = Callable[[Request, Exception], Awaitable[JSONResponse]]
# What a route may raise, and how it is answered: the first field at fault and what is wrong with it, never a 500.
RESPONSES: dict[type[Exception], Handler] = {
    EndpointError: _endpoint_error,
    ValidationError: _validation_error,
    SpeculationError: _speculation_error,
    CatalogError: _catalog_error,
    LocationError: _location_error,
}
