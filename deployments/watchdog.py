"""Engines that died or hang: their replica is ended at once, so that Serve starts another.

Serve's own health check replaces a replica after three refusals; until then requests would go on being sent to an engine that is not there.
"""

import logging
import multiprocessing
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress

import psutil

logger = logging.getLogger("ray.serve")
PERIOD_S = 0.5
GRACE_S = 1.0


def stalled_s(now: float, stepped: float, oldest: float | None, newest: float | None, *, busy: bool) -> float:
    """Seconds an engine has owed a step: a loaded one steps, an idle one has nothing to step for.

    Args:
        now: the time, in seconds of any clock.
        stepped: when the engine last finished a step.
        oldest: when the first of the unanswered requests came; None: all are answered.
        newest: when the last of them came.
        busy: whether requests were left in the engine after that step. (Those may be gone since: no step tells of an abort.)
    """
    if oldest is None or newest is None:
        return 0.0
    if busy:
        return now - max(stepped, oldest)
    # The engine answered all it had. A request that reached it as that step ended is one it has not begun.
    return now - max(stepped, newest) if newest > stepped - GRACE_S else 0.0


def end_replica(reason: str) -> None:
    """Kill the engine's processes, stopped ones too, and end this one; Serve sees a dead replica and replaces it."""
    logger.error("this replica ends: %s", reason)
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # it ended with its parent, killed just before
            process.kill()
    os._exit(1)


def watch(hung: Callable[[], bool], reason: str) -> None:
    """End the replica when its engine hangs. A thread: the event loop may be what waits for the engine."""

    def loop() -> None:
        while not hung():
            time.sleep(PERIOD_S)
        end_replica(reason)

    threading.Thread(target=loop, name="engine-watchdog", daemon=True).start()


def end_with_parent() -> None:
    """Entry point of ``vllm.general_plugins``: an engine's processes end with the one that started them.

    A killed replica leaves its engine behind, and that holds the target's memory. It may be killed while the engine still imports: who the parent is
    is asked of the one that started it, not of the kernel, which by then names another.
    """
    starter = multiprocessing.parent_process()
    if starter is None:
        return

    def loop() -> None:
        while os.getppid() == starter.pid:
            time.sleep(PERIOD_S)
        os._exit(1)

    threading.Thread(target=loop, name="end-with-parent", daemon=True).start()
