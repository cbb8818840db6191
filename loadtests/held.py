"""What the stack holds and takes under load: memory, open files, placement groups, requests, processor time. A soak shows what grows."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any

import psutil
from pydantic import BaseModel, ConfigDict, Field

# Parts by what their processes' titles hold; a replica's title is that of a call while it answers, so that each process is named once.
_PARTS = {
    ":Gateway": "gateways",
    ":EndpointManager": "manager",
    "ServeReplica:endpoint-": "workers",
    "VLLM::": "engines",
    "ServeController": "Serve's controller",
    "ProxyActor": "Serve's proxies",
    "raylet": "raylet",
    "gcs_server": "Ray's GCS",
}


class Look(BaseModel):
    """The stack at one moment."""

    model_config = ConfigDict(frozen=True)

    at: float = Field(description="When, in seconds since 1970.")
    memory_mib: dict[str, float] = Field(description="Resident memory, by part.")
    files: dict[str, int] = Field(description="Open files and sockets, by part.")
    processor_s: dict[str, float] = Field(description="Processor seconds taken since they started, by part.")
    placement_groups: int = Field(description="Ray's placement groups that hold resources.")
    requests: int = Field(description="Requests in the engines, decoded or waiting.")


class Stack:
    """Finds the processes of the stack on this machine."""

    def __init__(self) -> None:
        self._known: dict[psutil.Process, str] = {}

    def look(self, requests: int) -> Look:
        """What they hold now, and the requests that are in the engines."""
        memory: dict[str, float] = dict.fromkeys(_PARTS.values(), 0.0)
        processor: dict[str, float] = dict.fromkeys(_PARTS.values(), 0.0)
        files: dict[str, int] = dict.fromkeys(_PARTS.values(), 0)
        for process in psutil.process_iter():
            try:
                if (part := self._part(process)) is not None:
                    memory[part] += process.memory_info().rss / 2**20
                    files[part] += process.num_fds()
                    processor[part] += sum(process.cpu_times()[:2])
            except psutil.Error:  # it has ended meanwhile
                continue
        return Look(at=time.time(), memory_mib=memory, files=files, processor_s=processor, placement_groups=_placement_groups(), requests=requests)

    def _part(self, process: psutil.Process) -> str | None:
        if process not in self._known:
            title = " ".join(process.cmdline()[:1])
            found = next((part for mark, part in _PARTS.items() if mark in title), None)
            if found is None:
                return None
            self._known[process] = found
        return self._known[process]


def _placement_groups() -> int:
    import ray
    from ray.util import placement_group_table

    if not ray.is_initialized():
        ray.init(address="auto", log_to_driver=False, logging_level="ERROR")
    table: dict[str, Any] = placement_group_table()
    return sum(one["state"] == "CREATED" for one in table.values())


@contextmanager
def watched(path: Path, every_s: float, requests: Callable[[], int]) -> Iterator[None]:
    """Look at the stack every so often, and once at the end, into a JSONL file; ``requests`` counts those in the engines."""
    stack, ended = Stack(), threading.Event()

    def note() -> None:
        with path.open("a") as file:
            file.write(stack.look(requests()).model_dump_json() + "\n")

    def keep_looking() -> None:
        while not ended.wait(every_s):
            note()

    note()
    looking = threading.Thread(target=keep_looking, daemon=True)
    looking.start()
    try:
        yield
    finally:
        ended.set()
        looking.join()
        note()


def read_looks(path: Path) -> list[Look]:
    """What was seen."""
    return [Look.model_validate_json(line) for line in path.read_text().splitlines()] if path.exists() else []


def held(looks: Sequence[Look]) -> str:
    """What each part held, as a table: memory and open files are means of the first, the middle and the last tenth of the looks."""
    tenth = max(1, len(looks) // 10)
    middle = len(looks) // 2
    spans = {"start": looks[:tenth], "middle": looks[middle : middle + tenth], "end": looks[-tenth:]}
    hours = (looks[-1].at - looks[middle].at) / 3600
    names = ("memory (MiB): start, middle, end", "growth in the second half (MiB/hour)", "open files: start, middle, end", "processor (% of a core)")
    lines = [f"| part | {' | '.join(names)} |", "|---" * 5 + "|"]
    for part in looks[-1].memory_mib:
        memory = [mean(look.memory_mib[part] for look in span) for span in spans.values()]
        files = [mean(look.files[part] for look in span) for span in spans.values()]
        growth = f"{(memory[2] - memory[1]) / hours:+.0f}" if hours else "-"
        share = 100 * (looks[-1].processor_s[part] - looks[0].processor_s[part]) / max(1e-9, looks[-1].at - looks[0].at)
        told = [", ".join(f"{one:,.0f}" for one in memory), growth, ", ".join(f"{one:,.0f}" for one in files), f"{share:.1f}"]
        lines.append(f"| {part} | {' | '.join(told)} |")
    seen = (looks[0], looks[middle], looks[-1])
    groups, requests = [look.placement_groups for look in seen], [look.requests for look in seen]
    for name, counts in {"placement groups": groups, "requests in engines": requests}.items():
        lines.append(f"| {name} | {', '.join(map(str, counts))} | | | |")
    return "\n".join(lines) + "\n"
