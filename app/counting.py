"""Counts every HTTP request: an ASGI layer around all others."""

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app import metrics


class Counting:
    """ASGI middleware. Routes tell the endpoint, and authentication the key, in the request's ``state``."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, and count it when it has ended."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, state = time.monotonic(), "gone", scope.setdefault("state", {})

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = str(message["status"])
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            route = getattr(scope.get("route"), "path", "none")  # a pattern, since paths would be without number
            metrics.answered(route, state.get("endpoint", ""), status, state.get("key", ""), time.monotonic() - began)
