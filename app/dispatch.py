"""One request on its way to an endpoint: to a replica that takes it, and to another when that one dies."""

import asyncio
import logging
import math
import time
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ray.exceptions import RayError, RayTaskError, TaskCancelledError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError, RayServeException
from ray.serve.handle import DeploymentHandle

from app import metrics
from app.call import Call
from app.endpoint import Endpoint, EndpointError
from deployments import resume
from deployments.answer import AnswerStart, Origin, Piece, Progress

logger = logging.getLogger("ray.serve")
LOST = (RayError, RayServeException, ConnectionError)
DEATHS = 2  # engines a request may have been running on when they died
RECHECK_S = 1.0  # how often a waiting request asks whether its endpoint has moved to another application
AGAIN_S = 0.2  # before a request is sent anew, so that Serve has heard of the death
WINDOW_S = 30.0


class Traffic:
    """What one gateway knows of an endpoint's queue: requests not yet begun, and how many finished lately."""

    def __init__(self) -> None:
        self.waiting = 0
        self._finished: deque[float] = deque()

    def finished(self, now: float) -> None:
        """A request was answered."""
        self._finished.append(now)

    def drain_s(self, now: float) -> float | None:
        """Seconds until what waits has begun, or None before anything was answered."""
        while self._finished and self._finished[0] < now - WINDOW_S:
            self._finished.popleft()
        if len(self._finished) < 2:
            return None
        rate = len(self._finished) / max(1.0, now - self._finished[0])
        return self.waiting / rate

    def retry_after(self, now: float) -> int:
        """Whole seconds after which a refused client may expect a place: when half of the queue is gone."""
        drain = self.drain_s(now)
        return 5 if drain is None else min(120, max(1, math.ceil(drain / 2)))


class Dispatcher:
    """Sends requests to endpoints, over deaths of replicas, within deadlines."""

    def __init__(self, find: Callable[[str], Awaitable[tuple[Endpoint, DeploymentHandle]]], refuse: Callable[[str, str], Awaitable[None]]) -> None:
        """``find``: an endpoint that can answer and the handle of its application; ``refuse``: keep an endpoint from a request's digest."""
        self._find, self._refuse = find, refuse
        self._traffic: dict[str, Traffic] = defaultdict(Traffic)

    def waiting(self, name: str) -> int:
        """Requests that wait here for a replica of the endpoint."""
        return self._traffic[name].waiting if name in self._traffic else 0

    async def open(self, name: Any, call: Call) -> tuple[AnswerStart, AsyncIterator[str]]:
        """Send a request; how the answer starts, and its text to come.

        Raises:
            EndpointError: there is no such endpoint, it has too many requests waiting, the deadline passed, or it failed.
        """
        began = time.monotonic()
        endpoint, handle = await self._find(name)
        metrics.spent(endpoint.name, "gateway", time.monotonic() - began)
        answer = _Answer(endpoint.name, call, self._find, self._refuse, self._traffic[endpoint.name])
        with _counted(endpoint.name):
            return await answer.start(endpoint, handle), answer.text()


@contextmanager
def _counted(name: str) -> Iterator[None]:
    try:
        yield
    except EndpointError as error:
        if error.kind in ("busy", "late", "lost", "refused"):
            metrics.refused(name, error.kind)
        raise


class _Answer:
    def __init__(self, name: str, call: Call, find: Any, refuse: Any, traffic: Traffic) -> None:
        self._name, self._call, self._find, self._refuse, self._traffic = name, call, find, refuse, traffic
        self._began = time.monotonic()
        self._deadline = math.inf
        self._taken_at = self._began
        self._deaths = 0
        self._running = self._late = False
        self._stream: Any = None
        self._origin: Origin | None = None
        self._tokens: list[int] = []
        self._texts: list[str] = []
        self._finished = False

    async def start(self, endpoint: Endpoint, handle: DeploymentHandle) -> AnswerStart:
        if endpoint.refused and self._call.digest in endpoint.refused:
            raise EndpointError("refused", f"engines of endpoint {self._name!r} died each time this request ran; it is not served any more")
        timeout_s = self._call.timeout_s or endpoint.spec.limits.deadline_s
        self._deadline = self._began + timeout_s
        drain_s = self._traffic.drain_s(self._began)
        if drain_s is not None and drain_s > timeout_s:
            raise self._busy(f"what waits at endpoint {self._name!r} takes {drain_s:.0f} s, longer than this request has ({timeout_s:g} s)")
        return await self._send(endpoint, handle)

    async def _send(self, endpoint: Endpoint, handle: DeploymentHandle, progress: Progress | None = None) -> AnswerStart:
        try:
            while True:
                self._stream = handle.options(stream=True).answer.remote(self._call.task, self._call.body, progress)
                try:
                    self._running = False
                    if await self._taken(endpoint):
                        self._running = True
                        start = await self._next()
                        self._origin = start.origin
                        return start
                except BackPressureError:
                    if progress is None and not self._deaths:
                        raise self._busy(f"endpoint {self._name!r} has as many requests waiting as it takes") from None
                    await self._pause()  # it was accepted: it is not given up for a full queue
                except DeploymentUnavailableError:  # it is being replaced: the next look tells by what
                    await self._pause()
                except LOST as error:
                    await self._died(error)
                endpoint, handle = await self._find(self._name)
        except asyncio.CancelledError:  # the client went away
            self._cancel()
            raise

    async def _taken(self, endpoint: Endpoint) -> bool:
        """Wait in the queue until a replica takes the request; False when the endpoint moves to another application first."""
        sent = time.monotonic()
        self._traffic.waiting += 1
        taken = asyncio.ensure_future(self._next())
        taken.add_done_callback(lambda one: one.cancelled() or one.exception())  # seen, also where nobody waits any more
        try:
            while not (await asyncio.wait({taken}, timeout=RECHECK_S))[0]:
                if (await self._find(self._name))[0].application != endpoint.application:
                    self._cancel()
                    return False
            taken.result()
            self._taken_at = time.monotonic()
            metrics.spent(self._name, "router", self._taken_at - sent)
            return True
        finally:
            self._traffic.waiting -= 1

    async def _next(self) -> Any:
        """The stream's next item.

        Raises:
            EndpointError: the deadline passes first.
        """
        try:
            return await asyncio.wait_for(anext(self._stream), max(0.0, self._deadline - time.monotonic()))
        except TimeoutError:
            self._cancel()
            raise self._too_late() from None

    async def text(self) -> AsyncIterator[str]:
        """The answer's text as it comes.

        Raises:
            EndpointError: the endpoint failed while answering, or the deadline passed.
        """
        timer = asyncio.get_running_loop().call_later(max(0.0, self._deadline - time.monotonic()), self._overrun)
        try:
            with _counted(self._name):
                while True:
                    try:
                        async for piece in self._stream:
                            self._note(piece)
                            yield piece.text
                    except (*LOST, asyncio.CancelledError) as error:
                        if self._late:
                            raise self._too_late() from None
                        if isinstance(error, asyncio.CancelledError):
                            raise
                        if (progress := await self._go_on(error)) is None:
                            continue
                        yield resume.ending(self._call.task, self._call.body, progress)
                    if self._late:
                        raise self._too_late()
                    ended = time.monotonic()
                    self._traffic.finished(ended)
                    metrics.spent(self._name, "engine", ended - self._taken_at)
                    return
        finally:
            timer.cancel()
            self._cancel()  # does nothing to a stream that has ended; stops the generation when the client went away

    async def _go_on(self, error: Exception) -> Progress | None:
        """Continue at another replica; what was sent, where nothing but the end is missing.

        Raises:
            EndpointError: this stream cannot be continued.
        """
        if self._origin is None or not self._call.resume:
            raise self._lost(error)
        progress = Progress(origin=self._origin, tokens=tuple(self._tokens), text="".join(self._texts))
        if self._finished:
            return progress
        await self._died(error)
        endpoint, handle = await self._find(self._name)
        await self._send(endpoint, handle, progress)
        logger.info("request %s goes on at another replica after %d tokens", self._call.id, len(self._tokens))
        return None

    async def _died(self, error: Exception) -> None:
        """A replica died that had this request.

        Raises:
            EndpointError: it was the last it may have, or what failed was no replica.
        """
        if isinstance(error, RayTaskError | TaskCancelledError):
            raise self._lost(error)
        if not self._running:  # it was on its way there
            return await self._pause()
        self._deaths += 1
        logger.warning("request %s was running when a replica of %s died (%s)", self._call.id, self._name, type(error).__name__)
        if self._deaths >= DEATHS:
            await self._refuse(self._name, self._call.digest)
            logger.error("request %s was running at each of %d deaths of %s's replicas: it is refused from now on", self._call.id, DEATHS, self._name)
            raise EndpointError("refused", f"{DEATHS} replicas of endpoint {self._name!r} died while this request ran; it is not tried again")
        metrics.retried(self._name)
        return await self._pause()

    async def _pause(self) -> None:
        await asyncio.sleep(AGAIN_S)
        if time.monotonic() >= self._deadline:
            raise self._too_late()

    def _note(self, piece: Piece) -> None:
        self._tokens += piece.tokens
        self._texts.append(piece.delta)
        self._finished = self._finished or piece.finished

    def _overrun(self) -> None:
        self._late = True
        self._cancel()

    def _cancel(self) -> None:
        if self._stream is not None:
            self._stream.cancel()

    def _busy(self, message: str) -> EndpointError:
        after = self._traffic.retry_after(time.monotonic())
        return EndpointError("busy", f"{message}; try again in {after} s", retry_after=after)

    def _too_late(self) -> EndpointError:
        return EndpointError("late", f"endpoint {self._name!r} had not finished within the request's {self._deadline - self._began:g} s")

    def _lost(self, error: Exception) -> EndpointError:
        return EndpointError("lost", f"endpoint {self._name!r} failed while answering: {type(error).__name__}")
