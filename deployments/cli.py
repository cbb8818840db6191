"""``peagle simulate``: routers and autoscaling policies side by side, on simulated replicas at a measured pace."""

import itertools
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from deployments import routing_benchmark, scaling_benchmark
from deployments.pace import Pace
from deployments.routing_live import measure
from deployments.spec import EndpointSpec
from drafter.target import prepare_target

simulate = typer.Typer(help=__doc__, no_args_is_help=True)

# SmolLM2-135M-Instruct with its P-EAGLE head at K = 4 on 2 cores of an AMD EPYC, as GET /v1/endpoints/NAME/stats told it under load.
CPU_PACE = Pace(step_s=0.057, request_s=0.025, prefill_s=0.0028, tokens=1.5)
TIMES = ("ttft_mean", "ttft_p95", "ttft_p99", "latency_mean", "latency_p95", "latency_p99")
Out = Annotated[Path, typer.Option(help="Folder for the table, the raw figures (JSON) and the plot.")]
Speed = Annotated[str | None, typer.Option(help="Pace as JSON, as an endpoint's stats tell it; empty: the CPU default's.")]


def _pace(text: str | None) -> Pace:
    return Pace.model_validate_json(text) if text else CPU_PACE


@simulate.command()
def routing(out: Out = Path("routing"), pace: Speed = None, replicas: int = 8, slots: int = 16, requests: int = 3000, seeds: int = 5) -> None:
    """Time to first token and latency by router: the same Poisson arrivals of mixed lengths, at 50, 80 and 95 % of capacity."""
    _save(out, "routing", *_routers(routing_benchmark.compare(_pace(pace), (0.5, 0.8, 0.95), replicas, slots, requests, seeds)))


@simulate.command()
def routing_live(out: Out = Path("routing-live"), rate: float = 0.4, requests: int = 40, seeds: int = 2) -> None:
    """The same on real engines: the CPU default, two replicas for each router in turn. Starts a Ray of its own."""
    import ray

    ray.init(address="local", num_cpus=8, include_dashboard=False, log_to_driver=False)
    spec = EndpointSpec(name="routing", model=str(prepare_target()), hardware="cpu", max_num_seqs=4)
    _save(out, "routing-live", *_routers(measure(spec, rate, requests, seeds, Console().log)))


def _routers(results: list[routing_benchmark.RoutingResult]) -> tuple[list[dict[str, object]], Table]:
    table = Table("load", "router", *(name.replace("_", " ") for name in TIMES), title="seconds: mean of the seeds, and their spread")
    for load, router in dict.fromkeys((one.load, one.router) for one in results):
        these = [one for one in results if (one.load, one.router) == (load, router)]
        base = [one for one in results if (one.load, one.router) == (load, "power of two")]
        cells = []
        for name in TIMES:
            values, other = [getattr(one, name) for one in these], mean(getattr(one, name) for one in base)
            spread = stdev(values) if len(values) > 1 else 0.0
            cells.append(f"{mean(values):.2f} ± {spread:.2f} ({mean(values) / other - 1:+.0%})")
        table.add_row(f"{load:.2f}", router, *cells)
    return [one.model_dump() for one in results], table


@simulate.command()
def scaling(out: Out = Path("scaling"), pace: Speed = None, slots: int = 16) -> None:
    """An hour of spikes, ramps, days and bursts under the queue-depth policy and Serve's own, by cold-start time."""
    per_replica = routing_benchmark.capacity(_pace(pace), 1, slots, 800)
    cases = list(itertools.product((30.0, 120.0), scaling_benchmark.ARRIVALS, scaling_benchmark.POLICIES))
    results = [
        scaling_benchmark.simulate(arrivals, policy, _pace(pace), slots, per_replica, cold)
        for cold, arrivals, policy in track(cases, description="simulating", transient=True)
    ]
    table = Table("cold start", "arrivals", "policy", "TTFT p50", "TTFT p95", "replica hours", "starts", title="an hour each, seconds")
    for one in results:
        table.add_row(f"{one.cold_start_s:.0f}", one.arrivals, one.policy, f"{one.ttft_p50:.2f}", f"{one.ttft_p95:.1f}",
                      f"{one.replica_hours:.2f}", str(one.starts))  # fmt: skip
    _save(out, "scaling", [one.model_dump() for one in results], table)
    _plot(out / "scaling.png", [one for one in results if one.cold_start_s == 120.0])


def _plot(path: Path, results: list[scaling_benchmark.ScalingResult]) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(scaling_benchmark.ARRIVALS)
    figure, axes = pyplot.subplots(2, len(names), figsize=(4 * len(names), 6), sharex=True, squeeze=False)
    for column, name in enumerate(names):
        for one in (result for result in results if result.arrivals == name):
            minutes = [at / 60 for at, *_ in one.timeline]
            axes[0][column].plot(minutes, [held for _, held, _, _ in one.timeline], label=one.policy)
            axes[1][column].step(minutes, [ready for _, _, ready, _ in one.timeline], label=one.policy)
        axes[0][column].set_title(name)
        axes[1][column].set_xlabel("minutes")
    axes[0][0].set_ylabel("requests held")
    axes[1][0].set_ylabel("replicas that answer")
    axes[0][0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def _save(out: Path, name: str, results: list[dict[str, object]], table: Table) -> None:
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{name}.json").write_text(json.dumps(results))
    with (out / f"{name}.txt").open("w") as file:
        Console(file=file, width=170).print(table)
    Console(width=170).print(table)
