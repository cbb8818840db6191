"""What vLLM needs on a CPU: preloaded allocators, eager mode, float32, and the machine it takes."""

import importlib.util
import os
from pathlib import Path
from typing import Any

_TCMALLOC = "libtcmalloc_minimal.so.4"
_LIBRARY_FOLDERS = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")
MIN_CORES = 2
ENDPOINT_GIB = 4.0  # the engine's three processes, float32 SmolLM2-135M and 1 GiB of KV cache
EVERYTHING_ELSE_GIB = 3.0  # Ray, the gateway, the endpoint manager

# Eager mode starts in 40 s instead of 300 s at the same speed; float32 beats bfloat16 from batch 2 up on AVX2.
# The KV cache is given in bytes: vLLM would otherwise take nine tenths of the machine for one engine.
ENGINE_ARGUMENTS: dict[str, Any] = {"dtype": "float32", "enforce_eager": True, "kv_cache_memory_bytes": 2**30}


def preloads() -> list[str]:
    """Shared libraries to preload, those that are installed: vLLM warns of a heavy loss without them."""
    found = [str(path) for folder in _LIBRARY_FOLDERS if (path := Path(folder) / _TCMALLOC).exists()][:1]
    # torch's site-packages is <prefix>/lib/pythonX.Y/site-packages; intel-openmp installs <prefix>/lib/libiomp5.so.
    torch = importlib.util.find_spec("torch")
    if torch and torch.origin:
        openmp = Path(torch.origin).parents[3] / "libiomp5.so"
        found += [str(openmp)] if openmp.exists() else []
    return found


def environment() -> dict[str, str]:
    """Environment of an engine's processes on a CPU."""
    return {"LD_PRELOAD": ":".join(preloads())}


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
