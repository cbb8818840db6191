"""vLLM on this machine, offline: what a CPU engine needs, and the ``LLM`` that generation and evaluation share."""

import importlib.util
import json
import os
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from vllm import LLM

T = TypeVar("T")

_TCMALLOC = "libtcmalloc_minimal.so.4"
_LIBRARY_FOLDERS = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64")

# Eager mode starts in 40 s instead of 300 s at the same speed; float32 beats bfloat16 from batch 2 up on AVX2.
# The KV cache is given in bytes: vLLM would otherwise take nine tenths of the machine for one engine.
CPU_ARGUMENTS: Mapping[str, Any] = {"dtype": "float32", "enforce_eager": True, "kv_cache_memory_bytes": 2**30}


def cpu_arguments(target: str | Path) -> dict[str, Any]:
    """What an engine for ``target`` needs on a CPU. vLLM's CPU kernels multiply 4-bit weights in bfloat16 alone."""
    config = Path(target) / "config.json"
    quantized = config.is_file() and "quantization_config" in json.loads(config.read_text())
    return {**CPU_ARGUMENTS, **({"dtype": "bfloat16"} if quantized else {})}


def preloads() -> list[str]:
    """Shared libraries to preload on a CPU, those that are installed: vLLM warns of a heavy loss without them."""
    found = [str(path) for folder in _LIBRARY_FOLDERS if (path := Path(folder) / _TCMALLOC).exists()][:1]
    # torch's site-packages is <prefix>/lib/pythonX.Y/site-packages; intel-openmp installs <prefix>/lib/libiomp5.so.
    torch = importlib.util.find_spec("torch")
    if torch and torch.origin:
        openmp = Path(torch.origin).parents[3] / "libiomp5.so"
        found += [str(openmp)] if openmp.exists() else []
    return found


def multiplies_bfloat16() -> bool:
    """Whether this CPU has bfloat16 products (AVX512-BF16 or AMX); without them bfloat16 is slower than float32."""
    try:
        flags = Path("/proc/cpuinfo").read_text()
    except OSError:
        return False
    return "avx512_bf16" in flags or "amx_bf16" in flags


def in_engine_process(function: Callable[..., T], *arguments: Any, **options: Any) -> T:
    """Call ``function``, which starts an offline engine, in a process of its own: an engine does not give everything back.

    On a CPU the process starts with the preloaded libraries, and the engine stays inside it on all cores: beside an
    engine process that waits by spinning, one core would be lost (626 instead of 358 tokens/s on 2 cores of an AMD EPYC,
    SmolLM2-135M, bfloat16, 64 sequences).
    """
    import torch

    inherited = dict(os.environ)
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")  # progress bars and tables are what is asked for
    if not torch.cuda.is_available():
        cores = ",".join(str(core) for core in sorted(os.sched_getaffinity(0)))
        os.environ |= {"LD_PRELOAD": ":".join(preloads()), "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_CPU_OMP_THREADS_BIND": cores}
    try:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as process:
            return process.submit(function, *arguments, **options).result()
    finally:
        os.environ.clear()
        os.environ.update(inherited)


def offline_engine(target: Path, **arguments: Any) -> "LLM":
    """vLLM's offline engine for ``target``, on the GPU or, with what a CPU needs, without one."""
    import torch
    from vllm import LLM

    on_cpu = {} if torch.cuda.is_available() else {**cpu_arguments(target), "distributed_executor_backend": "uni"}
    return LLM(str(target), **{**on_cpu, **arguments})
