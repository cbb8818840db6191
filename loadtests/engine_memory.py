"""What an engine's memory grows by: ``python -m loadtests.engine_memory one`` asks for prompts of one length, ``many`` for prompts of many.

Every prompt is new, so that each takes blocks of the KV cache. Prints a line a reading: requests answered, resident memory in MiB. With
``ONEDNN_PRIMITIVE_CACHE_CAPACITY=32`` before it, oneDNN keeps fewer of the kernels it makes for each size of batch (1,024 by default).
"""

import random
import sys
from pathlib import Path

import psutil
from rich.console import Console

from app.catalog import get_card
from drafter.engine import in_engine_process, offline_engine
from drafter.evaluate import speculative_config
from drafter.target import prepare_target

REQUESTS, EVERY = 400, 25
LONGEST = 600  # tokens


def measure(lengths: str) -> None:
    """Answer requests one after the other, and print what the process holds. Call it through ``in_engine_process``."""
    from vllm import SamplingParams

    console, process = Console(), psutil.Process()
    head = Path(get_card("smollm2-135m-instruct").head("p_eagle"))
    engine = offline_engine(prepare_target(), max_num_seqs=4, max_model_len=2048, speculative_config=speculative_config(head, 4))
    draw, sampling = random.Random(0), SamplingParams(temperature=0, max_tokens=8, ignore_eos=True)
    for number in range(REQUESTS + 1):
        if number % EVERY == 0:
            console.print(f"{number:4d} {process.memory_info().rss / 2**20:6.0f}")
        prompt = [draw.randrange(1000, 40000) for _ in range(100 if lengths == "one" else draw.randint(16, LONGEST))]
        engine.generate([{"prompt_token_ids": prompt}], sampling, use_tqdm=False)


if __name__ == "__main__":
    if sys.argv[1:] not in (["one"], ["many"]):
        sys.exit("usage: python -m loadtests.engine_memory one|many")
    in_engine_process(measure, sys.argv[1])
