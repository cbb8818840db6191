"""What endpoints on a CPU take: their processes' environment, and how large a machine."""

import os

import psutil

from drafter.engine import preloads

MIN_CORES = 2
ENDPOINT_GIB = 4.0  # the engine's three processes, float32 SmolLM2-135M and 1 GiB of KV cache
EVERYTHING_ELSE_GIB = 3.0  # Ray, the gateway, the endpoint manager


def environment(tensor_parallel_size: int = 1) -> dict[str, str]:
    """Environment of an engine's processes on a CPU."""
    found = {"LD_PRELOAD": ":".join(preloads())}
    cores = sorted(os.sched_getaffinity(0))
    if tensor_parallel_size > 1:  # left to itself, vLLM gives each worker a memory node, and most machines have one
        return found | {"VLLM_CPU_OMP_THREADS_BIND": binding(cores, tensor_parallel_size)}
    # Left to itself, vLLM binds every engine of a machine to the same cores, and replicas wait for each other while others idle.
    threads = max(1, min(len(cores), psutil.cpu_count(logical=False) or 1) - 1)
    return found | {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(threads), "KMP_BLOCKTIME": "5"}  # ms a thread spins


def binding(cores: list[int], workers: int) -> str:
    """Cores of each of an engine's workers, as vLLM reads them; the first core is the engine's own.

    >>> binding([0, 1, 2, 3, 4], 2)
    '1,3|2,4'
    >>> binding([0, 1], 3)
    '1|1|1'
    """
    free = cores[1:] or cores
    return "|".join(",".join(map(str, free[worker::workers] or [free[worker % len(free)]])) for worker in range(workers))


def too_small(endpoints: int = 1) -> str | None:
    """Why this machine is too small for so many CPU endpoints, or None."""
    cores = len(os.sched_getaffinity(0))
    if cores < MIN_CORES:
        return f"a CPU endpoint needs {MIN_CORES} cores (one for the engine, one for everything else); this machine has {cores}"
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    needed = EVERYTHING_ELSE_GIB + endpoints * ENDPOINT_GIB
    if memory < needed:
        return f"{endpoints} CPU endpoint(s) need {needed:.0f} GiB of memory; this machine has {memory:.1f}"
    return None
