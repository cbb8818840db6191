"""How a CPU engine's processes wait for each other: asleep, where vLLM 0.29 spins for a second after every message.

The engine core yields the processor in a loop while its worker computes a step. On a GPU host that saves microseconds on cores nobody
needs; on a CPU it takes a core from the worker and from every process that passes the answer on.

``SpinCondition`` is private to vLLM; ``tests/unit/deployments/test_cpu_waiting.py`` fails when it changes.
"""

from typing import Any

# A writer's word that there is a message gets lost when it follows another within about a millisecond, so readers stay awake for longer than
# that after each; what is lost all the same is found by looking.
SPIN_S = 0.005
LOOK_MS = 100


def register() -> None:
    """Entry point of ``vllm.general_plugins``: vLLM calls this in every process of an engine."""
    from vllm.platforms import current_platform

    if current_platform.is_cpu():
        mend()


def mend() -> None:
    """Make readers sleep where they would spin; a second call changes nothing."""
    from vllm.distributed.device_communicators.shm_broadcast import SpinCondition

    if getattr(SpinCondition, "_peagle_mended", False):
        return
    wait = SpinCondition.wait

    def _wait(self: Any, timeout_ms: int | None = None) -> None:
        self.busy_loop_s = min(self.busy_loop_s, SPIN_S)
        wait(self, LOOK_MS if timeout_ms is None else min(timeout_ms, LOOK_MS))

    SpinCondition.wait = _wait
    SpinCondition._peagle_mended = True
