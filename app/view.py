"""A gateway's view of the endpoints: the manager tells of every change, so that no request waits for it."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from app.endpoint import Endpoint, EndpointError

logger = logging.getLogger("ray.serve")
AGAIN_S = 0.5  # before the manager is asked again when it could not be


class EndpointView:
    """The endpoints by name, as the manager last told them."""

    def __init__(self, ask: Callable[..., Awaitable[Any]]) -> None:
        """``ask``: calls a method of the manager, in the event loop that runs now."""
        self._ask = ask
        self._endpoints: Mapping[str, Endpoint] = {}
        self._revision: Any = None
        self._stale = True
        self._looking: asyncio.Future[None] | None = None
        self._following = asyncio.get_running_loop().create_task(self._follow())

    @property
    def known(self) -> Mapping[str, Endpoint]:
        """The endpoints, without asking."""
        return self._endpoints

    def forget(self) -> None:
        """The next who asks waits for the manager: something was changed through this gateway."""
        self._stale = True

    async def get(self, *, fresh: bool = False) -> Mapping[str, Endpoint]:
        """The endpoints; ``fresh``: as the manager tells them now.

        Raises:
            EndpointError: the manager cannot be reached, and none are known.
        """
        if fresh or self._stale:
            if self._looking is None or self._looking.done():  # one question for all who wait for its answer
                self._looking = asyncio.ensure_future(self._look())
            await asyncio.shield(self._looking)
        return self._endpoints

    async def _look(self) -> None:
        self._stale = False  # before the answer: what is changed meanwhile is not in it
        try:
            await self._take(None)
        except EndpointError:
            self._stale = True
            if not self._endpoints:  # what was known before serves until the manager is back
                raise

    async def _take(self, seen: Any) -> None:
        self._revision, endpoints = await self._ask("changes", seen)
        self._endpoints = {endpoint.name: endpoint for endpoint in endpoints}

    async def _follow(self) -> None:
        while True:
            try:
                await self._take(self._revision)
            except EndpointError:
                await asyncio.sleep(AGAIN_S)
            except Exception:
                logger.exception("the manager could not be asked for changes; trying again")
                await asyncio.sleep(AGAIN_S)
