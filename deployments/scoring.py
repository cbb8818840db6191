"""Where a request is best sent: an estimate in seconds for each replica, from what the replicas report."""

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field

from deployments.pace import Pace
from deployments.work import Demand

START_WEIGHT = 20.0
BLOCK = 256  # characters; two prompts share a prefix as far as their blocks agree from the start


class ReplicaLoad(BaseModel):
    """What one replica reports to the routers."""

    model_config = ConfigDict(frozen=True)

    at: float = Field(default=0.0, description="When, in seconds since 1970.")
    running: int = Field(default=0, description="Requests its engine decodes.")
    waiting: int = Field(default=0, description="Requests its engine has not begun.")
    slots: int = Field(default=64, description="Requests its engine decodes at once.")
    prefill_tokens: float = Field(default=0.0, description="Prompt tokens it has still to prefill.")
    decode_tokens: float = Field(default=0.0, description="Tokens its answers are still expected to take.")
    expected_answer: float = Field(default=256.0, description="Tokens of an answer that does not say its length.")
    kv_cache_usage: float = Field(default=0.0, description="Share of the KV cache in use.")
    prefix_hit_rate: float = Field(default=0.0, description="Share of prompt tokens its prefix cache held.")
    stalled_s: float = Field(default=0.0, description="Seconds its engine has made no step while it had requests.")
    pace: Pace = Field(default=Pace(), description="How fast it works.")

    def plus(self, sent: Sequence[Demand]) -> "ReplicaLoad":
        """This load with requests sent after it was reported."""
        if not sent:
            return self
        free = max(0, self.slots - self.running)
        return self.model_copy(
            update={
                "running": self.running + min(free, len(sent)),
                "waiting": self.waiting + max(0, len(sent) - free),
                "prefill_tokens": self.prefill_tokens + sum(one.prompt for one in sent),
                "decode_tokens": self.decode_tokens + sum(one.answer or self.expected_answer for one in sent),
            }
        )


def cost(load: ReplicaLoad, asked: Demand, held: float = 0.0) -> float:
    """What sending ``asked`` to a replica costs: the seconds until it would be answered in full, those before its first token weighed more.

    Waiting for a first token is what a client notices, and what a request waits for is what the next ones wait for too: in the
    routing benchmark the weight makes answers end sooner as well.

    Args:
        load: the replica's.
        asked: the request.
        held: share of the prompt its prefix cache holds, 0 to 1.
    """
    answer = min(asked.answer or load.expected_answer, 4 * load.expected_answer)
    return START_WEIGHT * seconds_to_start(load, asked, held) + answer * load.pace.token_s(min(load.running + 1, load.slots))


def seconds_to_start(load: ReplicaLoad, asked: Demand, held: float = 0.0) -> float:
    """Seconds until its first token: a slot, the prompts before it, its own prompt. What has stalled is expected to go on stalling as long."""
    ongoing = load.running + load.waiting
    wait = 0.0
    if ongoing >= load.slots:
        # Each answer has decode_tokens / ongoing to go on average; slots come free evenly over that time.
        queued = ongoing - load.slots + 1
        wait = queued / load.slots * load.decode_tokens / max(1, ongoing) * load.pace.token_s(load.slots)
    elif load.kv_cache_usage > 0.95:  # the engine would put a request aside to make room
        wait = load.decode_tokens / max(1, ongoing) * load.pace.token_s(load.running)
    prefill = (load.prefill_tokens + asked.prompt * (1.0 - held)) * load.pace.prefill_s
    return load.stalled_s + wait + prefill + load.pace.step_s + load.pace.request_s * min(load.running + 1, load.slots)


def blocks(prompt: str) -> list[bytes]:
    """A prompt's whole blocks, each hashed together with all before it."""
    digest, found = hashlib.blake2b(digest_size=8), []
    for start in range(0, len(prompt) - BLOCK + 1, BLOCK):
        digest.update(prompt[start : start + BLOCK].encode())
        found.append(digest.copy().digest())
    return found


class Prefixes:
    """The beginnings of prompts one replica was lately sent; the oldest are forgotten, as its prefix cache forgets."""

    def __init__(self, capacity: int = 8192) -> None:
        self._capacity = capacity
        self._known: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def remember(self, prompt: Sequence[bytes]) -> None:
        """The replica was sent a prompt of these blocks."""
        for block in prompt:
            self._known[block] = None
            self._known.move_to_end(block)
        while len(self._known) > self._capacity:
            self._known.popitem(last=False)

    def held(self, prompt: Sequence[bytes]) -> int:
        """How many of a prompt's blocks, from its start, the replica should hold."""
        for count, block in enumerate(prompt):
            if block not in self._known:
                return count
        return len(prompt)


def preference(prompt: Sequence[bytes], replica: str) -> bytes:
    """Rendezvous hash: routers that know nothing of each other send the same beginning to the same of equal replicas."""
    return hashlib.blake2b((prompt[0] if prompt else b"") + replica.encode(), digest_size=8).digest()
