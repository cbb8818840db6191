"""Request bodies: read as JSON objects, and described in the OpenAPI document.

Their fields are checked by what answers them, vLLM or botocore's service model.
"""

import json
from typing import Any


def read_object(raw: bytes) -> dict[str, Any]:
    """A JSON object.

    Raises:
        ValueError: it is not JSON, nests too deep, holds half a character, or is no object; the message says which.
    """
    try:
        value = json.loads(raw)
        if b"\\u" in raw:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("the body nests too deep") from None
    except UnicodeEncodeError:
        raise ValueError("the body escapes half a character (a lone surrogate)") from None
    except ValueError as error:
        raise ValueError(f"the body is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError("the body must be a JSON object")
    return value


def body(schema: dict[str, Any]) -> dict[str, Any]:
    """A route's ``openapi_extra`` for a JSON body of that schema."""
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _fields(**required: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "required": list(required), "properties": required, "additionalProperties": True}


TEXT = {"type": "string"}
MESSAGES = {"type": "array", "minItems": 1, "items": _fields(role={"enum": ["system", "user", "assistant", "tool"]}, content=TEXT)}
CHAT = body(_fields(model=TEXT, messages=MESSAGES))
COMPLETION = body(_fields(model=TEXT, prompt=TEXT))
INVOCATION = body({"anyOf": [_fields(messages=MESSAGES), _fields(prompt=TEXT)]})
ANY = body({"type": "object"})
