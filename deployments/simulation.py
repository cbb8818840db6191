"""A simulated engine that takes and answers requests step by step, as vLLM schedules them, at a measured pace."""

import heapq
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from deployments.pace import Pace
from deployments.scoring import BLOCK, Prefixes, ReplicaLoad
from deployments.work import CHARACTERS_PER_TOKEN, Demand

BUDGET = 2048  # prompt tokens an engine prefills in a step
BLOCK_TOKENS = BLOCK / CHARACTERS_PER_TOKEN


@dataclass
class SimulatedRequest:
    """One request; times are seconds of the simulated clock."""

    at: float
    prompt: list[bytes]  # its blocks
    prompt_tokens: float
    answer_tokens: int
    says_length: bool = True
    started: float = 0.0
    finished: float = 0.0
    prefill: float = 0.0
    left: float = 0.0

    @property
    def demand(self) -> Demand:
        """What a router can know of it."""
        return Demand(prompt=self.prompt_tokens, answer=float(self.answer_tokens) if self.says_length else None)


@dataclass
class SimulatedReplica:
    """Continuous batching with chunked prefill and a prefix cache."""

    pace: Pace
    slots: int
    name: str = "0"
    expected_answer: float = 256.0
    running: list[SimulatedRequest] = field(default_factory=list)
    waiting: deque[SimulatedRequest] = field(default_factory=deque)
    cache: Prefixes = field(default_factory=lambda: Prefixes(capacity=2048))
    reported: ReplicaLoad = field(default_factory=ReplicaLoad)

    @property
    def ongoing(self) -> int:
        """Requests it holds."""
        return len(self.running) + len(self.waiting)

    @property
    def most(self) -> int:
        """Requests it holds at most, as ``EndpointSpec.max_ongoing_requests``."""
        return self.slots + max(1, self.slots // 4)

    def load(self, now: float) -> ReplicaLoad:
        """What it would report."""
        held = [*self.running, *self.waiting]
        return ReplicaLoad(
            at=now,
            running=len(self.running),
            waiting=len(self.waiting),
            slots=self.slots,
            prefill_tokens=sum(one.prefill if one in self.running else one.prompt_tokens for one in held if not one.started),
            decode_tokens=sum(one.left if one.says_length else max(1.0, self.expected_answer - one.answer_tokens + one.left) for one in held),
            expected_answer=self.expected_answer,
            pace=self.pace,
        )

    def take(self, request: SimulatedRequest) -> None:
        """A request arrives."""
        request.left = request.answer_tokens
        self.waiting.append(request)

    def step(self) -> tuple[float, Callable[[float], list[SimulatedRequest]]]:
        """Begin a step: how long it takes, and what to call at its end, which gives the requests it finished."""
        while self.waiting and len(self.running) < self.slots:
            request = self.waiting.popleft()
            request.prefill = max(1.0, request.prompt_tokens - self.cache.held(request.prompt) * BLOCK_TOKENS)
            self.cache.remember(request.prompt)
            self.running.append(request)
        budget, prefilled = float(BUDGET), 0.0
        decoding = []
        for request in self.running:
            if request.prefill > 0:
                part = min(budget, request.prefill)
                request.prefill -= part
                budget, prefilled = budget - part, prefilled + part
            if request.prefill <= 0:
                decoding.append(request)
        took = self.pace.step_s + self.pace.request_s * len(self.running) + self.pace.prefill_s * prefilled

        def end(at: float) -> list[SimulatedRequest]:
            for request in decoding:
                request.started = request.started or at
                request.left -= self.pace.tokens
            done = [request for request in self.running if request.left <= 0 and request.prefill <= 0]
            for request in done:
                request.finished = at
                self.expected_answer += 0.05 * (request.answer_tokens - self.expected_answer)
                self.running.remove(request)
            return done

        return took, end


class Simulation:
    """Replicas, a clock, and a queue in front of them as Serve's handles keep one."""

    def __init__(self, replicas: list[SimulatedReplica], report_s: float = 1.0) -> None:
        self.replicas, self.now = replicas, 0.0
        self.queue: deque[SimulatedRequest] = deque()
        self.done: list[SimulatedRequest] = []
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._busy: set[str] = set()
        self._report_s = report_s

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something later."""
        self._number += 1
        heapq.heappush(self._events, (self.now + seconds, self._number, action))

    def send(self, request: SimulatedRequest, replica: SimulatedReplica) -> None:
        """Give a request to a replica."""
        replica.take(request)
        if replica.name not in self._busy:
            self._busy.add(replica.name)
            self._step(replica)

    def _step(self, replica: SimulatedReplica) -> None:
        took, end = replica.step()

        def ended() -> None:
            self.done += end(self.now)
            if replica.ongoing:
                self._step(replica)
            else:
                self._busy.discard(replica.name)
            self.route()

        self.after(took, ended)

    def arrive(self, request: SimulatedRequest) -> None:
        """A request will come at its time."""

        def came() -> None:
            self.queue.append(request)
            self.route()

        self.after(request.at, came)

    def route(self) -> None:
        """Send on what replicas have room for, the first first."""
        while self.queue and (free := [one for one in self.replicas if one.ongoing < one.most]):
            request = self.queue.popleft()
            self.send(request, self.choose(free, request))

    def choose(self, free: list[SimulatedReplica], request: SimulatedRequest) -> SimulatedReplica:
        """The replica that gets a request."""
        raise NotImplementedError

    def report(self) -> None:
        """Replicas report their load, again and again."""
        for replica in self.replicas:
            replica.reported = replica.load(self.now)
        self.after(self._report_s, self.report)

    def run(self, until: Callable[[], bool]) -> None:
        """Let time pass until ``until()``."""
        while self._events and not until():
            self.now, _, action = heapq.heappop(self._events)
            action()


def conversations(rate: float, count: int, seed: int) -> Iterator[SimulatedRequest]:
    """Mixed traffic, Poisson arrivals: conversations that grow turn by turn, short questions, long documents to sum up.

    Args:
        rate: requests a second.
        count: how many.
        seed: of the draw.
    """
    draw = random.Random(seed)
    open_conversations: list[list[bytes]] = []
    now = 0.0
    for number in range(count):
        now += draw.expovariate(rate)
        kind = draw.random()
        if kind < 0.5:  # a conversation's next turn, or its first
            if open_conversations and draw.random() < 0.8:
                history = draw.choice(open_conversations)
            else:
                history = [_block(draw) for _ in range(6)]  # a system prompt of its own
                open_conversations.append(history)
                del open_conversations[:-40]
            history += [_block(draw) for _ in range(draw.randint(1, 4))]
            blocks, answer = list(history), int(min(800, draw.lognormvariate(4.8, 0.6)))
            if len(history) > 60:
                open_conversations.remove(history)
        elif kind < 0.92:
            blocks, answer = [_block(draw) for _ in range(draw.randint(1, 3))], int(min(1000, draw.lognormvariate(4.5, 1.0)))
        else:
            blocks, answer = [_block(draw) for _ in range(draw.randint(30, 120))], int(min(300, draw.lognormvariate(4.5, 0.4)))
        yield SimulatedRequest(now, blocks, len(blocks) * BLOCK_TOKENS, max(1, answer), says_length=number % 2 == 0)


def _block(draw: random.Random) -> bytes:
    return draw.randbytes(8)
