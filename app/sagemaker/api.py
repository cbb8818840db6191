"""What every SageMaker operation shares: request validation by AWS's own service model, errors, ARNs, times, pages."""

import base64
import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, TypeVar

from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel, Shape
from botocore.validate import ParamValidator
from fastapi.responses import JSONResponse

REGION, ACCOUNT = "us-east-1", "000000000000"
Service = Literal["sagemaker", "sagemaker-runtime", "application-autoscaling"]
T = TypeVar("T")


class ApiError(Exception):
    """An operation that cannot be carried out, as SageMaker says it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


JSON11 = "application/x-amz-json-1.1"


def json11_error(error: ApiError) -> JSONResponse:
    """The response by which SDKs know the error."""
    return JSONResponse({"__type": error.code, "message": error.message, "Message": error.message}, 400, media_type=JSON11)


@cache
def operation_model(service: Service, operation: str) -> OperationModel | None:
    """AWS's own description of an operation, from botocore; None for one AWS does not have."""
    model = _service(service)
    return model.operation_model(operation) if operation in model.operation_names else None


@cache
def _service(service: Service) -> ServiceModel:
    return ServiceModel(Loader().load_service_model(service, "service-2"), service)


def validate(service: Service, operation: str, request: dict[str, Any]) -> None:
    """Check a request against AWS's service model.

    Raises:
        ApiError: a field is missing, unknown, of the wrong type, too long, or of the wrong form; the message names it.
    """
    model = operation_model(service, operation)
    if model is None or model.input_shape is None:
        return
    try:
        report = ParamValidator().validate(request, model.input_shape)
    except (RuntimeError, ValueError, OverflowError) as error:  # its own failures, on times no calendar has
        raise ApiError("ValidationException", f"1 validation error detected: {error}") from None
    if report.has_errors():
        raise ApiError("ValidationException", f"1 validation error detected: {report.generate_report().splitlines()[0]}")
    _constraints(request, model.input_shape, "")


def _constraints(value: Any, shape: Shape, path: str) -> None:
    """What botocore leaves to the server: lengths, ranges and patterns."""
    metadata, where = shape.metadata, path.lstrip(".")
    if shape.type_name == "structure" and isinstance(value, dict):
        for name, one in value.items():
            if one is not None and name in shape.members:
                _constraints(one, shape.members[name], f"{path}.{name}")
    elif shape.type_name == "list":
        for index, one in enumerate(value):
            _constraints(one, shape.member, f"{path}.{index + 1}")
    elif shape.type_name == "map":
        for key, one in value.items():
            _constraints(key, shape.key, f"{path}.key")
            _constraints(one, shape.value, f"{path}.{key}")
    size = len(value) if shape.type_name in ("string", "list", "map") else value if shape.type_name in ("integer", "long") else None
    if size is not None and "max" in metadata and size > metadata["max"]:
        what = "value less than or equal to" if isinstance(value, int) else "length less than or equal to"
        raise ApiError("ValidationException", _failed(value, where, f"Member must have {what} {metadata['max']}"))
    pattern = metadata.get("pattern")
    if pattern and isinstance(value, str) and shape.type_name == "string" and not _matches(pattern, value):
        raise ApiError("ValidationException", _failed(value, where, f"Member must satisfy regular expression pattern: {pattern}"))


def _matches(pattern: str, value: str) -> bool:
    try:
        return re.fullmatch(pattern.replace("\\p{L}", "\\w").replace("\\p{Z}", "\\s").replace("\\p{N}", "\\d"), value, re.DOTALL) is not None
    except re.error:  # a pattern in Java's dialect that Python lacks
        return True


def _failed(value: Any, where: str, constraint: str) -> str:
    shown = value if isinstance(value, str | int) else json.dumps(value)
    return f"1 validation error detected: Value '{str(shown)[:200]}' at '{where}' failed to satisfy constraint: {constraint}"


def arn(kind: str, name: str) -> str:
    """The ARN of a resource; AWS lower-cases names in it."""
    return f"arn:aws:sagemaker:{REGION}:{ACCOUNT}:{kind}/{name.lower()}"


def epoch(moment: datetime) -> float:
    """A time as JSON 1.1 carries it: seconds since 1970."""
    return round(moment.timestamp(), 3)


def page(
    request: dict[str, Any],
    items: Sequence[T],
    *,
    name: Callable[[T], str],
    created: Callable[[T], datetime],
    modified: Callable[[T], datetime] | None = None,
    status: Callable[[T], str] | None = None,
) -> tuple[list[T], dict[str, str]]:
    """One page of a list operation: filtered and sorted as the request says, with what carries its ``NextToken``.

    Raises:
        ApiError: the token is none that was given out.
    """
    bounds: list[tuple[str, Callable[[T], datetime]]] = [("Creation", created), *([("LastModified", modified)] if modified else [])]
    for field, moment in bounds:
        for side, later in (("Before", False), ("After", True)):
            if (limit := request.get(f"{field}Time{side}")) is not None:
                at = _moment(limit)
                items = [one for one in items if (moment(one) > at if later else moment(one) < at)]
    if contains := request.get("NameContains"):
        items = [one for one in items if contains.lower() in name(one).lower()]
    if (wanted := request.get("StatusEquals")) and status:
        items = [one for one in items if status(one) == wanted]
    keys: dict[str, Callable[[T], Any]] = {"Name": name, "CreationTime": created}
    if status:
        keys["Status"] = status
    key = keys.get(request.get("SortBy", "CreationTime"), created)
    descending = request.get("SortOrder", "Descending") == "Descending"
    ordered = sorted(items, key=lambda one: (key(one), name(one)), reverse=descending)
    start = _offset(request["NextToken"]) if request.get("NextToken") else 0
    end = start + (request.get("MaxResults") or 10)
    token = {"NextToken": base64.urlsafe_b64encode(f"peagle:{end}".encode()).decode()} if end < len(ordered) else {}
    return ordered[start:end], token


def _moment(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromtimestamp(float(value), UTC)
    except (TypeError, ValueError, OverflowError):
        raise ApiError("ValidationException", f"{value!r} is not a time in seconds since 1970") from None


def _offset(token: str) -> int:
    try:
        return int(base64.urlsafe_b64decode(token.encode()).decode().removeprefix("peagle:"))
    except ValueError:
        raise ApiError("ValidationException", "Invalid pagination token given.") from None
