"""Who calls, and how much they may: an ASGI layer before the gateway's routes.

While no key is configured, this machine alone may call, unless the operator said ``insecure``. OpenAI's and
peagle-serve's own routes take a bearer key, SageMaker's a signature.
"""

import ipaddress
import os
import time
from collections import defaultdict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fastapi.responses import JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.errors import error_response
from app.keys import Key, KeyFileError, Keys, key_file, read_keys
from app.playground import is_page
from app.sagemaker.api import ApiError, json11_error
from app.sagemaker.signature import verify

OPEN = ("/ready", "/-/healthz", "/-/routes")
INSECURE = "PEAGLE_INSECURE"
NO_KEY = "no key is configured, so this server answers its own machine only: make one with `peagle keys create`, or deploy with insecure: true"
REREAD_S = 1.0
MAX_BODY = 32 * 2**20


class Limiter:
    """Counts one key's requests: those running, and those begun in the last minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._running: dict[str, int] = defaultdict(int)
        self._begun: dict[str, deque[float]] = defaultdict(deque)

    def refuse(self, key: Key) -> tuple[str, int] | None:
        """Why the key may not begin another request, and the seconds after which it may; None where it may."""
        begun, now = self._begun[key.name], self._clock()
        while begun and now - begun[0] >= 60:
            begun.popleft()
        limits = key.limits
        if limits.concurrent is not None and self._running[key.name] >= limits.concurrent:
            return f"key {key.name!r} has {limits.concurrent} requests running, as many as it may", 1
        if limits.requests_per_minute is not None and len(begun) >= limits.requests_per_minute:
            return f"key {key.name!r} may begin {limits.requests_per_minute} requests a minute", max(1, round(60 - (now - begun[0])))
        return None

    def begin(self, key: Key) -> None:
        """A request of the key begins."""
        self._begun[key.name].append(self._clock())
        self._running[key.name] += 1

    def end(self, key: Key) -> None:
        """One has ended."""
        self._running[key.name] -= 1


class Authentication:
    """ASGI middleware; reads the key file anew when it changes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._path: Path | None = None
        self._keys, self._read, self._stamp = Keys(), 0.0, -1
        self._limiter = Limiter()

    def _current(self) -> Keys:
        self._path = self._path or key_file()
        if time.monotonic() - self._read > REREAD_S:
            self._read = time.monotonic()
            stamp = self._path.stat().st_mtime_ns if self._path.exists() else 0
            if stamp != self._stamp:
                self._keys, self._stamp = read_keys(self._path), stamp
        return self._keys

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or answer it with why not."""
        if scope["type"] != "http" or scope["path"] in OPEN or is_page(scope["method"], scope["path"]):
            await self._app(scope, receive, send)
            return
        try:
            keys = self._current()
        except KeyFileError as error:  # never open the door because its lock is broken
            await error_response(503, str(error))(scope, receive, send)
            return
        if not keys.keys:
            if _from_this_machine(scope) or os.environ.get(INSECURE) == "1":
                await self._app(scope, receive, send)
            else:
                await error_response(403, NO_KEY)(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        aws = scope["path"] == "/" or scope["path"].startswith("/endpoints/")
        if aws:
            body = await _body(receive)
            if body is None:
                await json11_error(ApiError("RequestEntityTooLargeException", f"the body is over {MAX_BODY} bytes"))(scope, receive, send)
                return
            receive = _replay(body, receive)
            try:
                key = verify(keys, scope["method"], _url(scope, headers), headers, body, datetime.now(UTC))
            except ApiError as error:
                await _aws_error(403, error)(scope, receive, send)
                return
        else:
            kind, _, token = headers.get("authorization", "").partition(" ")
            found = keys.bearer(token.strip()) if kind.lower() == "bearer" else None
            if found is None:
                message = "the API key is wrong" if token else "give an API key: Authorization: Bearer KEY"
                await error_response(401, message, headers={"WWW-Authenticate": "Bearer"})(scope, receive, send)
                return
            key = found
        if (refused := self._limiter.refuse(key)) is not None:
            message, seconds = refused
            again = {"Retry-After": str(seconds)}
            throttled = _aws_error(429, ApiError("ThrottlingException", message), again) if aws else error_response(429, message, headers=again)
            await throttled(scope, receive, send)
            return
        scope.setdefault("state", {})["key"] = key.name
        self._limiter.begin(key)
        try:
            await self._app(scope, receive, send)
        finally:
            self._limiter.end(key)


def _from_this_machine(scope: Scope) -> bool:
    client = scope.get("client")
    try:
        return client is not None and ipaddress.ip_address(client[0]).is_loopback
    except ValueError:
        return False


def _aws_error(status: int, error: ApiError, headers: dict[str, str] | None = None) -> Response:
    """As both of AWS's protocols tell an error: the control plane's in the body, the runtime's in a header."""
    return JSONResponse({"__type": error.code, "message": error.message}, status, {**(headers or {}), "x-amzn-errortype": error.code})


def _url(scope: Scope, headers: dict[str, str]) -> str:
    path = scope.get("raw_path", scope["path"].encode()).decode("latin-1")
    query = scope["query_string"].decode("latin-1")
    return f"{scope['scheme']}://{headers.get('host', '')}{path}" + (f"?{query}" if query else "")


async def _body(receive: Receive) -> bytes | None:
    parts, size = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b""
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > MAX_BODY:
            return None
        if not message.get("more_body"):
            return b"".join(parts)


def _replay(body: bytes, receive: Receive) -> Receive:
    """The body again, and after it what the client goes on to say: that it has gone."""
    waiting: list[dict[str, Any]] = [{"type": "http.request", "body": body, "more_body": False}]

    async def again() -> Message:
        return waiting.pop() if waiting else await receive()

    return again
