"""A gateway's view of the endpoints: the manager tells of every change, so that no request waits for it."""

import asyncio
from collections.abc import Mapping
from typing import Any

from ray.serve.handle import DeploymentHandle

from app.dispatch import LOST
from app.endpoint import Endpoint, EndpointError

AGAIN_S = 0.5  # before the manager is asked again when it could not be


class EndpointView:
    """The endpoints by name, as the manager last told them."""

    def __init__(self, manager: DeploymentHandle) -> None:
        """Needs a running event loop."""
        self._manager = manager
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
        try:
            await self._ask(None)
        except LOST:
            if not self._endpoints:  # what was known before serves until the manager is back
                raise EndpointError("lost", "the endpoint manager is being replaced; try again") from None

    async def _ask(self, seen: Any) -> None:
        self._revision, endpoints = await self._manager.changes.remote(seen)
        self._endpoints = {endpoint.name: endpoint for endpoint in endpoints}
        self._stale = False

    async def _follow(self) -> None:
        while True:
            try:
                await self._ask(self._revision)
            except LOST:
                await asyncio.sleep(AGAIN_S)
