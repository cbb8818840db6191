"""Records and results in tables: what faults were to clients, what an experiment found, what changed between two."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import inf, isfinite
from pathlib import Path
from statistics import mean, stdev
from typing import NamedTuple

from rich.table import Table

from loadtests.experiment import CellResult
from loadtests.record import RequestRecord


def read_records(path: Path) -> list[RequestRecord]:
    """The records a run left."""
    return [RequestRecord.model_validate_json(line) for line in path.read_text().splitlines()]


def fault_table(runs: Mapping[str, Sequence[RequestRecord]], retried: Mapping[str, int]) -> Table:
    """What each fault was to clients: retried by the server, sent again by the client; lost is what was neither answered to its end nor refused."""
    columns = ("fault", "sent", "answered", "other text", "retried", "sent again", "refused", "lost", "longest stall (s)")
    table = Table(*columns, title="what faults were to clients")
    for fault, records in runs.items():
        outcomes = Counter(record.outcome for record in records)
        lost = outcomes["cut"] + outcomes["failed"]
        stall = max((record.longest_stall_s for record in records if record.outcome == "answered"), default=0.0)
        table.add_row(fault, str(len(records)), str(outcomes["answered"]), str(other_texts(records)), str(retried.get(fault, 0)),
                      str(sum(record.sent_again for record in records)), str(outcomes["refused"]), str(lost), f"{stall:.1f}")  # fmt: skip
    return table


def other_texts(records: Sequence[RequestRecord]) -> int:
    """Answers that differ from the one most others to the same question had: at temperature 0 there is one."""
    by_prompt: dict[str, Counter[str]] = {}
    for record in records:
        if record.outcome == "answered":
            by_prompt.setdefault(record.prompt, Counter())[record.text] += 1
    return sum(texts.total() - texts.most_common(1)[0][1] for texts in by_prompt.values())


class Mean(NamedTuple):
    """A mean and its 95 % confidence interval, by Student's t over repetitions."""

    value: float
    low: float
    high: float

    def __format__(self, how: str) -> str:
        how = how or ".1f"
        half = self.high - self.value
        return f"{self.value:{how}}" + (f" ± {half:{how.removeprefix('+')}}" if isfinite(half) else "")

    def __str__(self) -> str:
        return format(self)

    def differs(self, other: "Mean") -> bool:
        """Whether the intervals do not overlap; overlap is called noise."""
        return self.low > other.high or other.low > self.high


def mean_of(values: Sequence[float]) -> Mean:
    """The mean of repetitions; one alone may lie anywhere."""
    from scipy import stats

    value = mean(values)
    if len(values) < 2:
        return Mean(value, -inf, inf)
    half = float(stats.t.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return Mean(value, value - half, value + half)


Cells = dict[tuple[str, int | None, float], list[CellResult]]


def by_cell(results: Sequence[CellResult]) -> Cells:
    """Repetitions together, by method, K and load."""
    cells: Cells = {}
    for one in results:
        cells.setdefault((one.method, one.k, one.load), []).append(one)
    return cells


def by_dataset(results: Sequence[CellResult]) -> dict[str, list[CellResult]]:
    """Apart what was asked apart."""
    return {name: [one for one in results if one.dataset == name] for name in dict.fromkeys(one.dataset for one in results)}


def markdown(results: Sequence[CellResult]) -> str:
    """Output tokens a second by load, method and K, with the ratios P-EAGLE is known by; then latencies, acceptance and goodput."""
    cells, load_name = by_cell(results), "concurrency" if results[0].rate is None else "requests/s"
    methods = sorted({(method, k) for method, k, _ in cells}, key=_order)
    lines = [
        f"| {load_name} | " + " | ".join(_name(*one) for one in methods) + " | P-EAGLE / EAGLE-3 | P-EAGLE / none |",
        "|---" * (len(methods) + 3) + "|",
    ]
    for load in sorted({one.load for one in results}):
        otps = {one: mean_of([cell.otps for cell in cells[*one, load]]) for one in methods if (*one, load) in cells}
        row = [str(otps.get(one, "-")) for one in methods]
        lines.append(f"| {load:g} | " + " | ".join([*row, _ratio(otps, "eagle3"), _ratio(otps, "none")]) + " |")
    lines += [
        "",
        f"| contender | {load_name} | TTFT p50 / p95 (ms) | TPOT p50 (ms) | latency p50 / p95 (s) | acceptance length | good requests/s | answered |",
        "|---" * 8 + "|",
    ]
    for (method, k, load), repeated in sorted(cells.items(), key=lambda one: _order(one[0])):
        lengths = [one.acceptance_length for one in repeated if one.acceptance_length is not None]
        ttft, late = (1000 * mean(getattr(one, name) for one in repeated) for name in ("ttft_p50", "ttft_p95"))
        tpot = 1000 * mean(one.tpot_p50 for one in repeated)
        middle, slow = (mean(getattr(one, name) for one in repeated) for name in ("latency_p50", "latency_p95"))
        told = [f"{ttft:.0f} / {late:.0f}", f"{tpot:.1f}", f"{middle:.2f} / {slow:.2f}", f"{mean(lengths):.2f}" if lengths else "-"]
        good = [one.goodput for one in repeated if one.goodput is not None]
        told += [f"{mean(good):.2f}" if good else "-", f"{sum(one.answered for one in repeated)} of {sum(one.requests for one in repeated)}"]
        lines.append(f"| {_name(method, k)} | {load:g} | " + " | ".join(told) + " |")
    lines += _by_category(results)
    return "\n".join(lines) + "\n"


def paired(results: Sequence[CellResult]) -> str:
    """Each contender against the first one, repetition by repetition, since all are asked the same prompts in each: means and 95 % intervals."""
    first = (results[0].method, results[0].k)
    asked = {(one.method, one.k, one.load, one.category, one.repetition): one for one in results}
    pairs: dict[tuple[str, int | None, float], list[tuple[CellResult, CellResult]]] = {}
    for one in results:
        reference = asked.get((*first, one.load, one.category, one.repetition))
        if reference and (one.method, one.k) != first:
            pairs.setdefault((one.method, one.k, one.load), []).append((one, reference))
    if not pairs:
        return ""
    load_name = "concurrency" if results[0].rate is None else "requests/s"
    lines = [f"| against {_name(*first)} | {load_name} | OTPS (%) | TTFT p50 (ms) |", "|---" * 4 + "|"]
    for (method, k, load), both in sorted(pairs.items(), key=lambda one: _order(one[0])):
        otps = mean_of([100 * one.otps / reference.otps for one, reference in both])
        ttft = mean_of([1000 * (one.ttft_p50 - reference.ttft_p50) for one, reference in both])
        lines.append(f"| {_name(method, k)} | {load:g} | {otps} | {ttft:+.0f} |")
    return "\n".join(lines) + "\n"


def _by_category(results: Sequence[CellResult]) -> list[str]:
    """Acceptance length of each contender by category of prompts, where they were measured apart."""
    categories = sorted({one.category for one in results if one.category and one.acceptance_length is not None})
    if not categories:
        return []
    lines = ["", "| acceptance length | " + " | ".join(categories) + " |", "|---" * (len(categories) + 1) + "|"]
    for method, k in sorted({(one.method, one.k) for one in results if one.acceptance_length is not None}, key=_order):
        cells = []
        for category in categories:
            lengths = [one.acceptance_length for one in results if (one.method, one.k, one.category) == (method, k, category)]
            known = [length for length in lengths if length is not None]
            cells.append(f"{mean(known):.2f}" if known else "-")
        lines.append(f"| {_name(method, k)} | " + " | ".join(cells) + " |")
    return lines


def _order(cell: tuple[str, int | None] | tuple[str, int | None, float]) -> tuple[str, int, float]:
    method, k, *load = cell
    return method, k or 0, load[0] if load else 0.0


def _name(method: str, k: int | None) -> str:
    return {"p_eagle": "P-EAGLE", "eagle3": "EAGLE-3"}.get(method, method) + (f" K={k}" if k else "")


def _ratio(otps: Mapping[tuple[str, int | None], Mean], against: str) -> str:
    """The best P-EAGLE over the best of another method."""
    ours = [one.value for (method, _), one in otps.items() if method == "p_eagle"]
    theirs = [one.value for (method, _), one in otps.items() if method == against]
    return f"{max(ours) / max(theirs):.2f}" if ours and theirs else "-"


def comparison(before: Sequence[CellResult], after: Sequence[CellResult]) -> str:
    """Two runs of an experiment, cell by cell: a difference where the 95 % intervals do not overlap, else noise."""
    earlier, later = by_cell(before), by_cell(after)
    lines = ["| contender | load | before (OTPS) | after (OTPS) | ratio | |", "|---" * 6 + "|"]
    for method, k, load in sorted(set(earlier) & set(later), key=_order):
        old, new = (mean_of([one.otps for one in cells[method, k, load]]) for cells in (earlier, later))
        verdict = "difference" if old.differs(new) else "noise"
        lines.append(f"| {_name(method, k)} | {load:g} | {old} | {new} | {new.value / old.value:.2f} | {verdict} |")
    return "\n".join(lines) + "\n"


def capacity(results: Sequence[CellResult]) -> str:
    """Of an open loop with an SLO: the highest rate at which each contender's p95 TTFT kept it, all below it too."""
    lines = ["| contender | requests/s | output tokens/s | p95 TTFT (ms) | breaks at (requests/s) |", "|---" * 5 + "|"]
    cells = by_cell(results)
    for method, k in sorted({(method, k) for method, k, _ in cells}, key=_order):
        kept, broken = None, None
        for load in sorted(load for one, other, load in cells if (one, other) == (method, k)):
            repeated = cells[method, k, load]
            slo = repeated[0].slo
            if slo is None or mean(one.ttft_p95 for one in repeated) > slo.ttft_s:
                broken = load
                break
            kept = load
        at = cells[method, k, kept] if kept is not None else None
        told = [f"{kept:g}", str(mean_of([one.otps for one in at])), f"{1000 * mean(one.ttft_p95 for one in at):.0f}"] if at else ["-"] * 3
        lines.append(f"| {_name(method, k)} | " + " | ".join([*told, "-" if broken is None else f"{broken:g}"]) + " |")
    return "\n".join(lines) + "\n"
